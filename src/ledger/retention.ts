/**
 * Pruning: settled jobs stay for the audit trail, then go, a bounded number per transaction.
 *
 * The scan walks along the primary key instead of an index on the settling time: that index would cost every
 * commit a write, and pruning is allowed to take its time.
 */
import { type Changes, COUNTER_MS } from './changes.ts'
import type { Tx } from './contract.ts'
import type { Stage } from './states.ts'

export const PRUNE_SPAN = 5_000
const GONE_WORKERS_KEPT_MS = 24 * 3_600_000
const COUNTERS_KEPT_MS = 8 * 24 * 3_600_000

export type PrunePolicy = { settledBefore: number; failedBefore: number }
export type PruneStep = { deleted: number; nextId: number | null }

/** Prunes among the next PRUNE_SPAN jobs after `afterId`; `nextId` is null at the end of the ledger. */
export async function pruneStep(
  { tx, changes }: { tx: Tx; changes: Changes },
  policy: PrunePolicy,
  afterId: number,
): Promise<PruneStep> {
  const last = await tx.get<{ id: number | null }>(
    `SELECT max(id) AS id FROM (SELECT id FROM jobs WHERE id > ? ORDER BY id LIMIT ${PRUNE_SPAN}) AS span`,
    [afterId],
  )
  if (last?.id == null) return { deleted: 0, nextId: null }
  // A failed or canceled job of an unsettled segment is part of the proof: it stays until someone decides.
  const rows = await tx.all<{ id: number; kind: string; state: Stage }>(
    `DELETE FROM jobs WHERE id > ? AND id <= ? AND (
       (state IN ('done', 'skipped') AND settled_at < ?)
       OR (state = 'canceled' AND settled_at < ? AND NOT EXISTS
         (SELECT 1 FROM segments g WHERE g.id = jobs.segment_id AND g.state <> 'settled'))
       OR (state = 'failed' AND settled_at < ? AND segment_id IS NULL))
     RETURNING id, kind, state`,
    [afterId, last.id, policy.settledBefore, policy.settledBefore, policy.failedBefore],
  )
  for (const row of rows) changes.tally(row.kind, row.state, -1)
  if (rows.length > 0) {
    const ids = rows.map((row) => row.id)
    const [low, high] = [Math.min(...ids), Math.max(...ids)]
    for (const [table, column] of [
      ['job_errors', 'job_id'],
      ['job_deps', 'job_id'],
    ] as const) {
      await tx.run(
        `DELETE FROM ${table} WHERE ${column} BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = ${table}.${column})`,
        [low, high],
      )
    }
  }
  return { deleted: rows.length, nextId: last.id }
}

export async function pruneRest(tx: Tx, now: number): Promise<void> {
  await tx.run(`DELETE FROM counters WHERE minute < ?`, [Math.floor((now - COUNTERS_KEPT_MS) / COUNTER_MS)])
  await tx.run(
    `DELETE FROM workers WHERE state = 'gone' AND lease_until < ? AND NOT EXISTS
       (SELECT 1 FROM jobs j WHERE j.owner = workers.id AND j.state = 'claimed')`,
    [now - GONE_WORKERS_KEPT_MS],
  )
}
