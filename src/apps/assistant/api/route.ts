/** How the routes and tools of this app are written. */
import { toolsOf } from '../../../app/module.ts'
import { routesOf } from '../../../app/route.ts'
import type { Services } from '../../../app/services.ts'
import type { AssistRuntime } from '../runtime.ts'

export type AssistServices = Services & AssistRuntime

export const { route } = routesOf<AssistServices>()
export const defineTool = toolsOf<AssistServices>()
