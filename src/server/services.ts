/** What the server's own parts work with. */
import type { Services } from '../app/services.ts'
import type { Catalog } from '../config/catalog.ts'
import type { EventHub } from './event-hub.ts'
import type { Series } from './series.ts'

export type ServerServices = Services & {
  /** Every setting that there is. */
  catalog: Catalog
  /** Changes a setting where it is configured, and lets it hold in this process. Missing where nothing is configured. */
  changeSetting?: ((key: string, text: string | undefined) => Promise<void>) | undefined
  /** Live events for pages: see event-hub.ts. */
  hub: EventHub
  /** Rates, budgets and workers over the last minutes, for charts. */
  series: Series
}
