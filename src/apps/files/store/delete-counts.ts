/** Deletions that were done although nobody was asked, counted over time: see `isHeld` in guard.ts. */
import type { Tx } from '../../../ledger/contract.ts'
import { RECENT_MS, type RecentDeletes, SHARE_MS } from '../guard.ts'

/**
 * Deletions were done. They take of those that somebody said yes to, so that later ones are asked about anew; where
 * nobody was asked, it is counted, so that many come to be asked about although they come little by little.
 */
export async function countDelete(
  tx: Tx,
  pair: string,
  { nowMs, items, files }: { nowMs: number; items: number; files: number },
): Promise<void> {
  const spent = await tx.run(
    `UPDATE file_drives SET forced_deletes = CASE WHEN forced_deletes > ? THEN forced_deletes - ? ELSE 0 END
     WHERE name = ? AND forced_deletes > 0`,
    [items, items, pair],
  )
  if (spent > 0) return
  const at = nowMs - (nowMs % COUNTED_MS)
  await tx.run(
    `INSERT INTO file_deletes(drive, at, items, files) VALUES (?, ?, ?, ?) ON CONFLICT (drive, at)
     DO UPDATE SET items = file_deletes.items + excluded.items, files = file_deletes.files + excluded.files`,
    [pair, at, items, files],
  )
  // Later ones are of a clock that was wrong.
  await tx.run(`DELETE FROM file_deletes WHERE drive = ? AND (at <= ? OR at > ?)`, [
    pair,
    at - SHARE_MS,
    nowMs,
  ])
}

/** Deletions of so much time are counted together. */
const COUNTED_MS = 600_000

export async function recentDeletes(tx: Tx, pair: string, nowMs: number): Promise<RecentDeletes> {
  const row = await tx.get<{ lately: number | null; items: number | null; files: number | null }>(
    `SELECT sum(CASE WHEN at > ? THEN items ELSE 0 END) AS lately, sum(items) AS items, sum(files) AS files
     FROM file_deletes WHERE drive = ? AND at > ? AND at <= ?`,
    [nowMs - RECENT_MS - COUNTED_MS, pair, nowMs - SHARE_MS - COUNTED_MS, nowMs],
  )
  return { lately: Number(row?.lately ?? 0), items: Number(row?.items ?? 0), files: Number(row?.files ?? 0) }
}
