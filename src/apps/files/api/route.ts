/** How the routes and tools of this app are written. */
import { toolsOf } from '../../../app/module.ts'
import { routesOf } from '../../../app/route.ts'
import type { Services } from '../../../app/services.ts'
import type { FilesRuntime } from '../runtime.ts'

export type FilesServices = Services & FilesRuntime

export const { route, download } = routesOf<FilesServices>()
export const defineTool = toolsOf<FilesServices>()
