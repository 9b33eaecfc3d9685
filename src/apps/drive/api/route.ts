/** How the routes and tools of this app are written. */
import { toolsOf } from '../../../app/module.ts'
import { routesOf } from '../../../app/route.ts'
import type { Services } from '../../../app/services.ts'
import type { DriveRuntime } from '../runtime.ts'

export type DriveServices = Services & DriveRuntime

export const { route } = routesOf<DriveServices>()
export const defineTool = toolsOf<DriveServices>()
