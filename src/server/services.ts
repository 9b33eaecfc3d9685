/** What the routes, the events and the MCP tools work with. */
import type { Clock } from '../clock.ts'
import type { EventHub } from './event-hub.ts'
import type { Runtime } from './runtime.ts'
import type { Series } from './series.ts'

export type Services = Runtime & {
  clock: Clock
  /** Live events for pages: see event-hub.ts. */
  hub: EventHub
  /** Rates, budgets and workers over the last minutes, for charts. */
  series: Series
  /** What the modules know of that waits for somebody, in whole sentences; set by the server. */
  needs?: () => Promise<readonly string[]>
}
