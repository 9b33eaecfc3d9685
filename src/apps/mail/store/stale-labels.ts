/**
 * Messages whose labels in the archive may be older than the stream's cursor, in the ledger's database. Noted in the
 * transaction that says so (the one that moves the cursor past a change which could not be applied), and forgotten in
 * the one of a fetch that read the message later. So they are known whatever becomes of that fetch: canceled, pruned,
 * killed or bad.
 *
 * Notes are numbered for each account: a fetch forgets only those that were there when it began.
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { fromJson } from './missing-messages.ts'

/** Fetches outside of slices were all that told of them before: those that have not ended well are taken over. */
export function staleSchema(dialect: Tx['dialect'], integer: string): string[] {
  const ids =
    dialect === 'sqlite'
      ? `json_extract(j.payload, '$.account'), i.value FROM jobs j, json_each(j.payload, '$.ids') i`
      : `j.payload::json ->> 'account', i.value FROM jobs j, json_array_elements_text(j.payload::json -> 'ids') i`
  return [
    `ALTER TABLE mail_boxes ADD COLUMN stale_notes ${integer} NOT NULL DEFAULT 0`,
    `CREATE TABLE mail_stale (account TEXT NOT NULL, id TEXT NOT NULL, note ${integer} NOT NULL, PRIMARY KEY (account, id))`,
    `INSERT INTO mail_stale(note, account, id) SELECT DISTINCT 0, ${ids}
     WHERE j.kind = 'mail.fetch' AND j.segment_id IS NULL AND j.state NOT IN ('done', 'skipped')`,
  ]
}

export function staleIds(ledger: Ledger, account: string): Promise<Set<string>> {
  return ledger.driver.read(async (tx) => {
    const rows = await tx.all<{ id: string }>(`SELECT id FROM mail_stale WHERE account = ?`, [account])
    return new Set(rows.map(({ id }) => id))
  })
}

export async function noteStale(tx: Tx, account: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await tx.run(`UPDATE mail_boxes SET stale_notes = stale_notes + 1 WHERE account = ?`, [account])
  await tx.run(
    `INSERT INTO mail_stale(account, id, note) SELECT m.account, i.value, m.stale_notes
     FROM mail_boxes m, (${fromJson(tx)}) AS i WHERE m.account = ?
     ON CONFLICT (account, id) DO UPDATE SET note = excluded.note`,
    [JSON.stringify([...new Set(ids)]), account],
  )
}

/** These were read after the note of that number, and every one before it. */
export async function forgetStale(
  tx: Tx,
  account: string,
  { ids, upTo }: { ids: readonly string[]; upTo: number },
): Promise<void> {
  if (ids.length === 0) return
  await tx.run(`DELETE FROM mail_stale WHERE account = ? AND note <= ? AND id IN (${fromJson(tx)})`, [
    account,
    upTo,
    JSON.stringify(ids),
  ])
}
