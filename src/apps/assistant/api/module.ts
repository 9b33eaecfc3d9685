/** The assistant as a module of the server. */
import { z } from 'zod'
import type { ServerModule } from '../../../app/module.ts'
import { SERVICE } from '../account.ts'
import { balanceText } from '../status.ts'
import {
  accountViews,
  addAccount,
  agreeToCosts,
  changeAccount,
  getAccounts,
  getBriefing,
  getCosts,
  getSettings,
  putSettings,
  startSync,
} from './accounts.ts'
import { type AssistServices, defineTool } from './route.ts'
import {
  addRule,
  changeExample,
  changeRule,
  dropExample,
  dropRule,
  getExamples,
  getRules,
  getRun,
  getRuns,
  testRouting,
  tryRule,
} from './rules.ts'
import { accountSchema } from './schemas.ts'
import {
  approveThread,
  draftThread,
  editThread,
  getThread,
  getThreadMail,
  getThreads,
  moveThread,
  reworkThread,
  undoThread,
} from './threads.ts'
import { pushRoute } from './webhook.ts'

const status = defineTool({
  name: 'assist_status',
  title: 'How far mail is sorted',
  description: 'For each mailbox with the assistant: what came, what became of it, and how many drafts wait.',
  input: z.object({}),
  access: 'read',
  audience: 'member',
  narrower: 'There is nothing to narrow.',
  run: async (_input, services, { user }) => {
    const rows =
      user.role === 'admin' ? await services.accounts.list(SERVICE) : await services.accounts.ofUser(user.id)
    const names = rows.filter(({ service }) => service === SERVICE).map(({ name }) => name)
    const all = await accountViews(services, names)
    if (all.length === 0) return ['The assistant is switched on for no mailbox.']
    return all.flatMap((one) => [
      { quote: one.account },
      `${balanceText(one)}; ${one.draftsWaiting} drafts wait for a look.`,
    ])
  },
})

export const assistModule: ServerModule<AssistServices> = {
  name: 'assist',
  routes: [
    getAccounts,
    addAccount,
    changeAccount,
    startSync,
    agreeToCosts,
    getSettings,
    putSettings,
    getCosts,
    getBriefing,
    getThreads,
    getThread,
    getThreadMail,
    moveThread,
    draftThread,
    reworkThread,
    editThread,
    approveThread,
    undoThread,
    getRules,
    addRule,
    changeRule,
    dropRule,
    getExamples,
    changeExample,
    dropExample,
    tryRule,
    testRouting,
    getRuns,
    getRun,
    pushRoute,
  ],
  tools: [status],
  accounts: {
    schema: accountSchema.omit({ account: true }).nullable(),
    async view(services, accounts) {
      const names = accounts.map(({ name }) => name)
      const views = new Map((await accountViews(services, names)).map((view) => [view.account, view]))
      return names.map((name) => {
        const { account: _account, ...view } = views.get(name) ?? { account: name }
        return views.has(name) ? view : null
      })
    },
    changed: async ({ assist }) => assist.accounts.reload(),
    next: 'The assistant can sort it: switch it on under Assistant.',
  },
}
