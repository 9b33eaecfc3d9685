/** Trying bad items again: one job per item, outside its segment, which is mended when the job succeeds. */
import type { Changes } from './changes.ts'
import type { BadRow, Driver, Lane, Tx } from './contract.ts'
import { enqueueJobs } from './enqueue.ts'

const RETRY_BATCH_MAX = 1_000

export type BadFilter = {
  ids?: readonly number[]
  streamId?: number
  triedBefore?: number
  triesMax?: number
}

/** Enqueues a retry for each; an item whose retry is still unsettled is left alone. */
export async function retryBadItems(
  ctx: { tx: Tx; driver: Driver; changes: Changes; now: number },
  filter: BadFilter,
  lane: Lane,
): Promise<number> {
  const rows = await ctx.tx.all<BadRow>(
    `SELECT * FROM bad_items WHERE last_tried < ? AND tries <= ?
     ${filter.streamId === undefined ? '' : 'AND stream_id = ?'}
     ${filter.ids === undefined ? '' : `AND id IN (${filter.ids.map(() => '?').join(',') || 'NULL'})`}
     ORDER BY last_tried LIMIT ${RETRY_BATCH_MAX}`,
    [
      filter.triedBefore ?? Number.MAX_SAFE_INTEGER,
      filter.triesMax ?? Number.MAX_SAFE_INTEGER,
      ...(filter.streamId === undefined ? [] : [filter.streamId]),
      ...(filter.ids ?? []),
    ],
  )
  const results = await enqueueJobs(
    { ...ctx, segmentRefs: new Map() },
    rows.map((row) => ({
      kind: row.kind,
      payload: row.payload,
      key: `bad:${row.id}`,
      streamId: row.stream_id,
      lane,
      badId: row.id,
    })),
  )
  return results.filter((result) => result.outcome !== 'ignored').length
}
