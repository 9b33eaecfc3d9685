/** `tidemark drive skipped`: files that are found by their names only. */
import type { CliContext } from '../../../app/command.ts'
import { withDrive } from './context.ts'

type Options = { account?: string; code?: string; limit: number }

export async function listSkipped(context: CliContext, { account, code, limit }: Options): Promise<void> {
  await withDrive(context, async ({ drive }) => {
    const accounts = account === undefined ? undefined : [(await drive.accounts.get(account)).name]
    const rows = await drive.tables.skipped({ accounts, code, after: '', limit })
    context.output.listing({
      columns: [
        { title: 'file', value: ({ name }) => name },
        { title: 'id', value: ({ id }) => id },
        { title: 'code', value: (row) => row.code ?? '' },
        { title: 'reason', value: ({ reason }) => reason ?? '' },
      ],
      rows,
      json: rows.map((row) => ({
        id: row.id,
        name: row.name,
        mimeType: row.mime_type,
        state: row.state,
        code: row.code,
        reason: row.reason,
        url: row.url,
      })),
      empty: 'Every file that Drive lists was read.',
    })
  })
}
