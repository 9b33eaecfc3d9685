/** The engine as a module of the server: streams, jobs, bad items, and everything else that the ledger keeps. */
import type { ServerModule } from '../../app/module.ts'
import { route } from '../../app/route.ts'
import { overviewSchema } from '../../app/schemas.ts'
import type { Services } from '../../app/services.ts'
import { badRoutes } from './bad.ts'
import { controlRoutes } from './control.ts'
import { frontierRoutes } from './frontier.ts'
import { jobRoutes } from './jobs.ts'
import { readOverview } from './overview.ts'
import { stateRoutes } from './state.ts'
import { streamRoutes } from './streams.ts'
import { engineTools } from './tools.ts'

const showOverview = route('GET /api/overview', {
  tag: 'state',
  etag: true,
  summary: 'Everything at a glance: what is going on, how far it is, what needs somebody',
  answer: overviewSchema,
  handle: (_input, services) => readOverview(services),
})

export const engineModule: ServerModule<Services> = {
  name: 'engine',
  routes: [
    showOverview,
    ...streamRoutes,
    ...frontierRoutes,
    ...jobRoutes,
    ...badRoutes,
    ...controlRoutes,
    ...stateRoutes,
  ],
  snapshot: readOverview,
  snapshotSchema: overviewSchema,
  tools: engineTools,
}
