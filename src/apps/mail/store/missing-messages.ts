/**
 * Messages that were stored and are not in the archive any more, in the ledger's database.
 *
 *   noted ──asked for──▶ asked ──stored again──▶ (no row)
 *                          └──Gmail has it no longer, or it is not wanted──▶ lost
 *   import: came from a file, and only that can bring it back
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { ArchiveMark } from './contract.ts'

export type MissingState = 'noted' | 'asked' | 'lost' | 'import'

/** `fromMs`: it did not arrive earlier. `wasStored`: seen in the archive, and not only listed. */
export type MissingMessage = {
  id: string
  shard: string
  fromMs: number
  wasStored: boolean
  state: MissingState
}

/** What the ledger knows of the archive's past. */
export type ArchivePast = { stores: number; tip: string }

/** `pending`: on their way back; none of them arrived before `pendingFromMs`. */
export type MissingCounts = { pending: number; pendingFromMs: number | null; lost: number; imports: number }

export function missingSchema(integer: string): string[] {
  return [
    `CREATE TABLE mail_missing (account TEXT NOT NULL, id TEXT NOT NULL, shard TEXT NOT NULL, from_ms ${integer} NOT NULL, was_stored INTEGER NOT NULL, state TEXT NOT NULL, found_at ${integer} NOT NULL, PRIMARY KEY (account, id))`,
    `ALTER TABLE mail_boxes ADD COLUMN stores ${integer} NOT NULL DEFAULT 0`,
    `ALTER TABLE mail_boxes ADD COLUMN older INTEGER NOT NULL DEFAULT 0`,
    `ALTER TABLE mail_boxes ADD COLUMN verified TEXT`,
  ]
}

export function missingCounts(ledger: Ledger, account: string): Promise<MissingCounts> {
  return ledger.driver.read(async (tx) => {
    const sql = `SELECT state, count(*) AS n, min(from_ms) AS from_ms FROM mail_missing WHERE account = ? GROUP BY state`
    const rows = await tx.all<{ state: MissingState; n: number; from_ms: number }>(sql, [account])
    const counts: MissingCounts = { pending: 0, pendingFromMs: null, lost: 0, imports: 0 }
    for (const { state, n, from_ms: fromMs } of rows) {
      if (state === 'lost') counts.lost += Number(n)
      else if (state === 'import') counts.imports += Number(n)
      else {
        counts.pending += Number(n)
        counts.pendingFromMs = Math.min(counts.pendingFromMs ?? Number(fromMs), Number(fromMs))
      }
    }
    return counts
  })
}

/** In the order of their ids. */
export function missingIds(
  ledger: Ledger,
  account: string,
  { states, after = '', limit }: { states: readonly MissingState[]; after?: string; limit: number },
): Promise<string[]> {
  return ledger.driver.read(async (tx) => {
    const rows = await tx.all<{ id: string }>(
      `SELECT id FROM mail_missing WHERE account = ? AND id > ? AND state IN (${fromJson(tx)}) ORDER BY id LIMIT ${limit}`,
      [account, after, JSON.stringify(states)],
    )
    return rows.map(({ id }) => id)
  })
}

/** Ids that were listed and not seen to be gone, in their order. */
export function listedIds(
  ledger: Ledger,
  account: string,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  return ledger.driver.read(async (tx) => {
    const rows = await tx.all<{ id: string }>(
      `SELECT id FROM mail_listed WHERE account = ? AND id > ? AND gone_at IS NULL ORDER BY id LIMIT ${limit}`,
      [account, after],
    )
    return rows.map(({ id }) => id)
  })
}

export async function noteMissing(
  tx: Tx,
  account: string,
  messages: readonly MissingMessage[],
  atMs: number,
): Promise<void> {
  for (const { id, shard, fromMs, wasStored, state } of messages) {
    await tx.run(
      `INSERT INTO mail_missing(account, id, shard, from_ms, was_stored, state, found_at) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (account, id) DO NOTHING`,
      [account, id, shard, fromMs, wasStored ? 1 : 0, state, atMs],
    )
  }
}

export async function noteAsked(tx: Tx, account: string, ids: readonly string[]): Promise<void> {
  await tx.run(
    `UPDATE mail_missing SET state = 'asked' WHERE account = ? AND state = 'noted' AND id IN (${fromJson(tx)})`,
    [account, JSON.stringify(ids)],
  )
}

/** What a fetch found out about them. */
export async function noteFetched(
  tx: Tx,
  account: string,
  { stored, gone, skipped }: Record<'stored' | 'gone' | 'skipped', readonly string[]>,
): Promise<void> {
  const change = async (sql: string, ids: readonly string[]): Promise<void> => {
    if (ids.length > 0) await tx.run(`${sql} AND id IN (${fromJson(tx)})`, [account, JSON.stringify(ids)])
  }
  await change(`DELETE FROM mail_missing WHERE account = ?`, stored)
  await change(`UPDATE mail_missing SET state = 'lost' WHERE account = ?`, gone)
  // It may have been left out from the beginning.
  await change(`DELETE FROM mail_missing WHERE was_stored = 0 AND account = ?`, skipped)
  await change(`UPDATE mail_missing SET state = 'lost' WHERE account = ?`, skipped)
}

/** Whether what the ledger noted last is in the archive's own past. Before there were tips, the count alone told. */
export function isInPast({ stores, tip }: ArchivePast, mark: ArchiveMark): boolean {
  return tip === '' ? Number(stores) <= mark.stores : mark.tips.includes(tip)
}

/**
 * The archive's state that the ledger counts on. Only ever one that comes after the one before: an older copy of the
 * archive is not noted, and so is noticed however much was stored in it.
 */
export async function noteMark(tx: Tx, account: string, { stores, tips }: ArchiveMark): Promise<void> {
  const [tip] = tips
  if (tip === undefined) return
  await tx.run(
    `UPDATE mail_boxes SET stores = ?, tip = ? WHERE account = ?
     AND ((tip = '' AND stores <= ?) OR tip IN (${fromJson(tx)}))`,
    [stores, tip, account, stores, JSON.stringify(tips)],
  )
}

/** The archive was there before the ledger knew of it: its labels are of any time, and are to be compared. */
export async function noteUncompared(tx: Tx, account: string): Promise<void> {
  await tx.run(`UPDATE mail_boxes SET older = -1 WHERE account = ?`, [account])
}

/** The archive is an older one: all of it was compared, and its labels are to be. */
export async function noteOlderArchive(
  tx: Tx,
  account: string,
  { mark, before }: { mark: ArchiveMark; before: ArchivePast },
): Promise<void> {
  await tx.run(
    `UPDATE mail_boxes SET stores = ?, tip = ?, older = CASE WHEN older < 0 THEN older - 1 ELSE -1 END
     WHERE account = ? AND stores = ? AND tip = ?`,
    [mark.stores, mark.tips[0] ?? '', account, Number(before.stores), before.tip],
  )
}

/** All labels were compared with the mailbox since; unless an older archive was put back meanwhile. */
export async function noteCompared(
  tx: Tx,
  account: string,
  { older, compared }: { older: number; compared: number },
): Promise<void> {
  await tx.run(`UPDATE mail_boxes SET older = ? WHERE account = ? AND older = ?`, [older, account, compared])
}

/** The texts of a list, which is given as JSON. */
export function fromJson(tx: Tx, column = 'value'): string {
  return tx.dialect === 'sqlite'
    ? `SELECT value AS ${column} FROM json_each(?)`
    : `SELECT value AS ${column} FROM json_array_elements_text(?::json)`
}
