/** The mail archive as a module of the server: accounts, search, messages, and taking mail out of Gmail. */
import type { ServerModule } from '../../../app/module.ts'
import { mailAccounts } from './accounts.ts'
import { cleanUpRoutes } from './clean-up.ts'
import { messageRoutes } from './messages.ts'
import type { MailServices } from './route.ts'
import { searchRoutes } from './search.ts'
import { syncRoutes } from './sync.ts'
import { mailTools } from './tools.ts'

export const mailModule: ServerModule<MailServices> = {
  name: 'mail',
  routes: [...syncRoutes, ...searchRoutes, ...messageRoutes, ...cleanUpRoutes],
  tools: mailTools,
  accounts: mailAccounts,
  instructions:
    "Find mail with mail_search, in Gmail's search language; read it with mail_message and mail_thread by the ids that the search gives. Cite messages by account and id.",
}
