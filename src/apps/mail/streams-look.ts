/** What the ledger alone tells of mailboxes. */
import type { AppLook } from '../../app/runtime.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { mailWholes } from './status.ts'
import { MailTables } from './store/tables.ts'
import { withWatermarks } from './watermark.ts'

export async function lookAtMail(ledger: Ledger): Promise<AppLook> {
  const tables = await MailTables.open(ledger)
  return {
    async shownStreams(rows) {
      const marked = await withWatermarks(ledger, tables, rows)
      const wholes = await mailWholes(tables, marked)
      return marked.map((row) => ({ ...row, whole: wholes.get(row.name) }))
    },
  }
}
