import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import { openLedger } from '../../../ledger/open.ts'
import { missingCounts } from './missing-messages.ts'
import { staleIds } from './stale-labels.ts'
import { MailTables } from './tables.ts'

/** As a home of the first version has them. */
function firstSchema(integer: string): string[] {
  return [
    `CREATE TABLE mail_boxes (account TEXT PRIMARY KEY, archive_id TEXT NOT NULL, granularity TEXT, since_s ${integer}, planned_at ${integer}, checked_at ${integer}, choices TEXT)`,
    `CREATE TABLE mail_listed (account TEXT NOT NULL, id TEXT NOT NULL, gone_at ${integer}, PRIMARY KEY (account, id))`,
    `CREATE TABLE mail_labels (account TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (account, id))`,
    `INSERT INTO mail_boxes(account, archive_id, planned_at) VALUES ('ann', 'archive-1', 5)`,
  ]
}

describe('the tables of a ledger of the first version', () => {
  for (const [name, integer] of [
    ['SQLite', 'INTEGER'],
    ['PostgreSQL', 'BIGINT'],
  ] as const) {
    test(`are opened, and know of nothing stored, missing or verified (${name})`, async () => {
      const database = name === 'PostgreSQL' ? await freshDatabase() : undefined
      const ledger = await openLedger(database?.url ?? 'sqlite::memory:')
      try {
        await ledger.migrateApp('mail-archive', [firstSchema(integer)])
        const payload = JSON.stringify({ account: 'ann', ids: ['m1', 'm2'], refresh: true })
        await ledger.transaction((tx) =>
          tx.run(`INSERT INTO jobs(kind, lane, payload, created_at) VALUES ('mail.fetch', 'bulk', ?, 1)`, [
            payload,
          ]),
        )
        const tables = await MailTables.open(ledger)
        const mailbox = await tables.findMailbox('ann')
        assert.deepEqual(
          [
            ...[mailbox?.archive_id, Number(mailbox?.stores), Number(mailbox?.older), mailbox?.verified],
            mailbox?.totals,
          ],
          ['archive-1', 0, 0, null, null],
        )
        const none = { pending: 0, pendingFromMs: null, lost: 0, imports: 0 }
        assert.deepEqual(await missingCounts(ledger, 'ann'), none)
        assert.deepEqual(await staleIds(ledger, 'ann'), new Set(['m1', 'm2']), 'fetches that wait')
      } finally {
        await ledger.close()
        await database?.drop()
      }
    })
  }
})
