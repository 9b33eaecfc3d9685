/** Trying bad items again: one job per item, outside its segment, which is mended when the job succeeds. */
import { type Changes, oneOf } from './changes.ts'
import type { BadRow, Driver, Lane, Tx } from './contract.ts'
import { enqueueJobs } from './enqueue.ts'

/** Items per transaction: each brings its payload. */
const RETRY_STEP_MAX = 500

export type BadFilter = {
  ids?: readonly number[]
  streamId?: number
  triedBefore?: number
  triesMax?: number
}

type WriteContext = { tx: Tx; driver: Driver; changes: Changes; now: number }
type RetryStep = { enqueued: number; nextId: number | null }

/** Enqueues a retry for each, in steps of a transaction each; an item whose retry is still unsettled is left alone. */
export async function retryBadItems(
  write: (fn: (ctx: WriteContext) => Promise<RetryStep>) => Promise<RetryStep>,
  filter: BadFilter,
  lane: Lane,
): Promise<number> {
  let enqueued = 0
  for (let afterId = 0; ; ) {
    const from = afterId
    const step = await write((ctx) => retryStep(ctx, filter, { lane, afterId: from }))
    enqueued += step.enqueued
    if (step.nextId === null) return enqueued
    afterId = step.nextId
  }
}

async function retryStep(
  ctx: WriteContext,
  filter: BadFilter,
  { lane, afterId }: { lane: Lane; afterId: number },
): Promise<RetryStep> {
  const ids = filter.ids?.filter((id) => id > afterId).sort((a, b) => a - b)
  const among = ids && oneOf(ctx.tx, ids.slice(0, RETRY_STEP_MAX))
  const rows = await ctx.tx.all<BadRow>(
    `SELECT * FROM bad_items WHERE id > ? AND last_tried < ? AND tries <= ?
     ${filter.streamId === undefined ? '' : 'AND stream_id = ?'} ${among ? `AND id ${among.sql}` : ''}
     ORDER BY id LIMIT ${RETRY_STEP_MAX}`,
    [
      afterId,
      filter.triedBefore ?? Number.MAX_SAFE_INTEGER,
      filter.triesMax ?? Number.MAX_SAFE_INTEGER,
      ...(filter.streamId === undefined ? [] : [filter.streamId]),
      ...(among?.params ?? []),
    ],
  )
  const results = await enqueueJobs(
    ctx,
    rows.map((row) => ({
      kind: row.kind,
      payload: row.payload,
      key: `bad:${row.id}`,
      streamId: row.stream_id,
      lane,
      badId: row.id,
    })),
  )
  const last = ids ? ids[RETRY_STEP_MAX - 1] : rows[RETRY_STEP_MAX - 1]?.id
  return {
    enqueued: results.filter((result) => result.outcome !== 'ignored').length,
    nextId: last ?? null,
  }
}

/** An app has settled otherwise what none of its jobs will try again. What a segment has counted stays as it is. */
export async function forgetBadItem(
  tx: Tx,
  { stream, kind, item }: { stream: string; kind: string; item: string },
): Promise<void> {
  await tx.run(
    `DELETE FROM bad_items WHERE stream_id = (SELECT id FROM streams WHERE name = ?) AND kind = ? AND item = ?
       AND segment_id IS NULL`,
    [stream, kind, item],
  )
}
