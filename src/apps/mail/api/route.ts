/** How the routes and tools of this app are written. */
import { toolsOf } from '../../../app/module.ts'
import { routesOf } from '../../../app/route.ts'
import type { Services } from '../../../app/services.ts'
import type { MailRuntime } from '../runtime.ts'

export type MailServices = Services & MailRuntime

export const { route, download } = routesOf<MailServices>()
export const defineTool = toolsOf<MailServices>()
