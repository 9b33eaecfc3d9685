/** The mail archive as a module of the server: accounts, search, messages, and taking mail out of Gmail. */
import type { ServerModule } from '../module.ts'
import { accountRoutes } from './accounts.ts'
import { archiveRoutes } from './archive.ts'
import { archiveRunRoutes } from './archive-run.ts'
import { connectRoutes } from './connect.ts'
import { messageRoutes } from './messages.ts'
import { searchRoutes } from './search.ts'
import { syncRoutes } from './sync.ts'
import { mailTools } from './tools.ts'

export const mailModule: ServerModule = {
  name: 'mail',
  routes: [
    ...accountRoutes,
    ...connectRoutes,
    ...syncRoutes,
    ...searchRoutes,
    ...messageRoutes,
    ...archiveRoutes,
    ...archiveRunRoutes,
  ],
  tools: mailTools,
}
