/** What routes, live snapshots and MCP tools work with. */
import type { Clock } from '../base/clock.ts'
import type { Runtime } from './runtime.ts'

export type Services = Runtime & {
  clock: Clock
}
