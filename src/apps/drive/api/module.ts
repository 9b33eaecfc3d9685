/** The Drive index as a module of the server. */
import { z } from 'zod'
import type { ServerModule } from '../../../app/module.ts'
import { SERVICE } from '../account.ts'
import { balanceText } from '../status.ts'
import { startAccounts } from '../work.ts'
import { type DriveServices, defineTool } from './route.ts'
import { driveRoutes, readStatus, statusView } from './routes.ts'
import { driveAccountSchema } from './schemas.ts'

const status = defineTool({
  name: 'drive_status',
  title: 'How far Google Drives are indexed',
  description: 'For each connected Google Drive: how many files it lists, and what became of them.',
  input: z.object({}),
  access: 'read',
  audience: 'member',
  narrower: 'There is nothing to narrow.',
  run: async (_input, services, { user }) => {
    const rows =
      user.role === 'admin' ? await services.accounts.list(SERVICE) : await services.accounts.ofUser(user.id)
    const names = rows.filter(({ service }) => service === SERVICE).map(({ name }) => name)
    const all = await readStatus(services, names)
    if (all.length === 0) return ['No Google Drive is connected.']
    return all.flatMap((one) => [{ quote: one.account }, `${one.status}: ${balanceText(one)}.`])
  },
})

export const driveModule: ServerModule<DriveServices> = {
  name: 'drive',
  routes: driveRoutes,
  tools: [status],
  accounts: {
    schema: driveAccountSchema,
    async view(services, accounts) {
      const all = await readStatus(
        services,
        accounts.map(({ name }) => name),
      )
      return all.map((one) => {
        const { account: _account, ...view } = statusView(one)
        return view
      })
    },
    changed: startAccounts,
    next: 'Its documents are indexed now, and found by search as they come.',
  },
}
