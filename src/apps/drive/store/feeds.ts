/** Feeds and accounts as they are written, each inside the transaction of the job that moves them. */
import type { Tx } from '../../../ledger/contract.ts'
import { textsFrom } from './rows.ts'
import type { FeedRow } from './tables.ts'

type FeedOf = Pick<FeedRow, 'account' | 'drive'>

export async function putFeed(tx: Tx, { account, drive, name }: FeedOf & { name: string }): Promise<void> {
  await tx.run(
    `INSERT INTO drive_feeds(account, drive, name, state) VALUES (?, ?, ?, 'new')
     ON CONFLICT (account, drive) DO UPDATE SET name = excluded.name`,
    [account, drive, name],
  )
}

/** The token was taken before: what happens from then on is followed when the listing is done. */
export async function beginListing(
  tx: Tx,
  { account, drive }: FeedOf,
  { token, generation, nowMs }: { token: string; generation: number; nowMs: number },
): Promise<void> {
  await tx.run(
    `INSERT INTO drive_accounts(account, generation, discovery_at) VALUES (?, ?, ?)
     ON CONFLICT (account) DO UPDATE SET generation = excluded.generation, discovery_at = excluded.discovery_at`,
    [account, generation, nowMs],
  )
  await tx.run(
    `UPDATE drive_feeds SET state = 'listing', next_token = ?, listing = ?, wanted = 0 WHERE account = ? AND drive = ?`,
    [token, generation, account, drive],
  )
}

/** False where the feed is gone or another listing has begun: then what was listed is not taken in. */
export async function isListing(tx: Tx, { account, drive }: FeedOf, generation: number): Promise<boolean> {
  const lock = tx.dialect === 'postgres' ? ' FOR UPDATE' : ''
  const row = await tx.get<Pick<FeedRow, 'state' | 'listing'>>(
    `SELECT state, listing FROM drive_feeds WHERE account = ? AND drive = ?${lock}`,
    [account, drive],
  )
  return row?.state === 'listing' && Number(row.listing) === generation
}

/**
 * Changes are followed from here on. After a listing that may have missed something the older token stays: what happened
 * between the two may be what was missed.
 */
export async function endListing(
  tx: Tx,
  { account, drive }: FeedOf,
  { isComplete, nowMs }: { isComplete: boolean; nowMs: number },
): Promise<void> {
  const token = isComplete ? 'next_token' : 'COALESCE(token, next_token)'
  await tx.run(
    `UPDATE drive_feeds SET state = 'following', token = ${token}, next_token = NULL, listed_at = ?, incomplete = ?,
       generation = listing, problem = NULL WHERE account = ? AND drive = ?`,
    [nowMs, isComplete ? 0 : 1, account, drive],
  )
}

/** Nothing was pruned; the next sync tries again, and goes on from what it knew. */
export async function giveUpListing(
  tx: Tx,
  { account, drive }: FeedOf,
  { problem, nowMs }: { problem: string; nowMs: number },
): Promise<void> {
  await tx.run(
    `UPDATE drive_feeds SET state = 'unreachable', next_token = NULL, listed_at = ?, problem = ?
     WHERE account = ? AND drive = ?`,
    [nowMs, problem, account, drive],
  )
}

export async function moveToken(tx: Tx, { account, drive }: FeedOf, token: string): Promise<void> {
  await tx.run(`UPDATE drive_feeds SET token = ?, problem = NULL WHERE account = ? AND drive = ?`, [
    token,
    account,
    drive,
  ])
}

export async function noteProblem(tx: Tx, { account, drive }: FeedOf, problem: string | null): Promise<void> {
  await tx.run(`UPDATE drive_feeds SET problem = ? WHERE account = ? AND drive = ?`, [
    problem,
    account,
    drive,
  ])
}

/** All feeds of the account where none is named. */
export async function wantListing(tx: Tx, account: string, drive?: string): Promise<void> {
  await tx.run(
    `UPDATE drive_feeds SET wanted = 1 WHERE account = ?${drive === undefined ? '' : ' AND drive = ?'}`,
    drive === undefined ? [account] : [account, drive],
  )
}

/** Every other feed, of whatever account, that shows something below these folders: what happened to them happened to it. */
export async function wantBelow(
  tx: Tx,
  { account, drive }: FeedOf,
  folders: readonly string[],
): Promise<void> {
  if (folders.length === 0) return
  await tx.run(
    `WITH RECURSIVE down(id) AS (
       SELECT file FROM drive_access WHERE parent IN (${textsFrom(tx)})
       UNION
       SELECT a.file FROM down JOIN drive_access a ON a.parent = down.id)
     UPDATE drive_feeds SET wanted = 1 WHERE NOT (account = ? AND drive = ?) AND EXISTS (
       SELECT 1 FROM drive_access a WHERE a.account = drive_feeds.account AND a.drive = drive_feeds.drive
         AND a.file IN (SELECT id FROM down))`,
    [JSON.stringify(folders), account, drive],
  )
}

export async function dropFeed(tx: Tx, { account, drive }: FeedOf): Promise<void> {
  await tx.run(`DELETE FROM drive_feeds WHERE account = ? AND drive = ?`, [account, drive])
}

export async function dropAccount(tx: Tx, account: string): Promise<void> {
  await tx.run(`DELETE FROM drive_feeds WHERE account = ?`, [account])
  await tx.run(`DELETE FROM drive_accounts WHERE account = ?`, [account])
}

type AccountTime = 'folders_at' | 'checked_at' | 'processing_at' | 'completed_at'

export async function noteTime(tx: Tx, account: string, what: AccountTime, nowMs: number): Promise<void> {
  await tx.run(
    `INSERT INTO drive_accounts(account, ${what}) VALUES (?, ?)
     ON CONFLICT (account) DO UPDATE SET ${what} = excluded.${what}`,
    [account, nowMs],
  )
}

/** `tookMs`: from when Google says that it happened, where it does. */
export async function noteRevoked(
  tx: Tx,
  account: string,
  revocations: readonly { tookMs: number | null }[],
): Promise<void> {
  if (revocations.length === 0) return
  const timed = revocations.flatMap(({ tookMs }) => (tookMs === null ? [] : [Math.max(0, tookMs)]))
  const sum = timed.reduce((all, one) => all + one, 0)
  await tx.run(
    `INSERT INTO drive_accounts(account, revoked, revoked_timed, revoke_ms_sum, revoke_ms_max, revoke_ms_last)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (account) DO UPDATE SET revoked = drive_accounts.revoked + excluded.revoked,
       revoked_timed = drive_accounts.revoked_timed + excluded.revoked_timed,
       revoke_ms_sum = drive_accounts.revoke_ms_sum + excluded.revoke_ms_sum,
       revoke_ms_max = CASE WHEN excluded.revoke_ms_max > drive_accounts.revoke_ms_max
         THEN excluded.revoke_ms_max ELSE drive_accounts.revoke_ms_max END,
       revoke_ms_last = COALESCE(excluded.revoke_ms_last, drive_accounts.revoke_ms_last)`,
    [account, revocations.length, timed.length, sum, Math.max(0, ...timed), timed.at(-1) ?? null],
  )
}

/** All that one feed of an account has, a part at a time. */
export async function accessOfFeed(tx: Tx, { account, drive }: FeedOf, limit: number): Promise<string[]> {
  const rows = await tx.all<{ file: string }>(
    `SELECT file FROM drive_access WHERE account = ? AND drive = ? ORDER BY file LIMIT ${limit}`,
    [account, drive],
  )
  return rows.map(({ file }) => file)
}
