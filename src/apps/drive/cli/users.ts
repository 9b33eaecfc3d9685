/** `tidemark drive users`: whose Drives are indexed. */
import type { CliContext } from '../../../app/command.ts'
import { formatCount } from '../../../base/format.ts'
import { SERVICE } from '../account.ts'
import { driveStatus } from '../status.ts'
import { withDrive } from './context.ts'

export async function listUsers(context: CliContext): Promise<void> {
  await withDrive(context, async ({ drive, ledger, accounts, users }) => {
    const rows = await accounts.list(SERVICE)
    const names = new Map((await users.list()).map((user) => [user.id, user.name]))
    const states = await driveStatus(
      ledger,
      drive.tables,
      rows.map(({ name }) => name),
    )
    const all = rows.map((row, at) => ({ row, user: names.get(row.userId) ?? '', status: states[at]! }))
    context.output.listing({
      columns: [
        { title: 'account', value: ({ row }) => row.name },
        { title: 'user', value: ({ user }) => user },
        { title: 'status', value: ({ status }) => status.status },
        { title: 'files', value: ({ status }) => formatCount(status.listed), align: 'right' },
        { title: 'indexed', value: ({ status }) => formatCount(status.indexed), align: 'right' },
        { title: 'drives', value: ({ status }) => formatCount(status.feeds.length), align: 'right' },
      ],
      rows: all,
      json: all.map(({ user, status }) => ({ user, ...status })),
      empty: 'No Google Drive is connected. Connect one with: tidemark account add drive',
    })
  })
}
