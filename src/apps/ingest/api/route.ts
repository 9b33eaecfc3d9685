/** How the routes and tools of this app are written. */
import { toolsOf } from '../../../app/module.ts'
import { routesOf } from '../../../app/route.ts'
import type { Services } from '../../../app/services.ts'
import type { IngestRuntime } from '../runtime.ts'

export type IngestServices = Services & IngestRuntime

export const { route } = routesOf<IngestServices>()
export const defineTool = toolsOf<IngestServices>()
