/**
 * The end of one lease in every way but the plain `done`: skipped, retried, postponed, failed, stopped,
 * or going on. Every statement is fenced by (job, attempt, owner).
 */
import { TidemarkError } from '../base/errors.ts'
import { redactText } from '../base/redaction.ts'
import { type Changes, oneOf, sendEach } from './changes.ts'
import type { ClaimedJob, Driver, JobError, NewBadItem, NewJob, Settlement, Tx, Value } from './contract.ts'
import { enqueueJobs } from './enqueue.ts'
import { storableItem, storableText } from './input-check.ts'
import { type JobState, nextJobState, type Settling, type Stage } from './states.ts'

export type SettleContext = { tx: Tx; driver: Driver; changes: Changes; now: number; owner: number }

/** Errors kept per job; older ones go when a job fails more often. */
const ERRORS_KEPT_MAX = 20
export const ERROR_TEXT_MAX = 2_000

export type Settled = 'held' | 'lost' | 'canceled'

/**
 * In their order. On a server those that touch nothing but their own rows are asked about in one statement and written in
 * one request: a hundred failures that came together would else be four hundred round trips. What it throws is the fault
 * of the one whose turn it was.
 */
export async function settleAll(
  ctx: SettleContext,
  list: readonly Settlement[],
  onTurn: (place: number | undefined) => void,
): Promise<Settled[]> {
  const settled: Settled[] = []
  for (const run of runsOf(ctx.tx, list)) {
    const from = settled.length
    // A look at several that fails says of none of them that it would fail alone.
    onTurn(run.length > 1 ? undefined : from)
    const held = await heldJobs(ctx, run)
    const ends = run.map((settlement) => settleHeld(ctx, settlement, held.get(settlement.job.id)))
    await Promise.allSettled(ends)
    for (const [at, end] of ends.entries()) {
      onTurn(from + at)
      settled.push(await end)
    }
  }
  return settled
}

/** Together as far as their order is no matter. */
function* runsOf(tx: Tx, list: readonly Settlement[]): Generator<Settlement[]> {
  let run: Settlement[] = []
  const ids = new Set<number>()
  for (const settlement of list) {
    const { job, bad, splitInto } = settlement
    const isPlain = tx.isRemote && job.badId === null && !bad?.length && !splitInto && !ids.has(job.id)
    if (run.length > 0 && !isPlain) {
      yield run
      run = []
      ids.clear()
    }
    run.push(settlement)
    ids.add(job.id)
    if (isPlain) continue
    yield run
    run = []
    ids.clear()
  }
  if (run.length > 0) yield run
}

type HeldJob = { id: number; attempt: number; cancel_requested: number }

async function heldJobs(
  { tx, owner }: SettleContext,
  run: readonly Settlement[],
): Promise<Map<number, HeldJob>> {
  const among = oneOf(
    tx,
    run.map(({ job }) => job.id),
  )
  const lock = tx.dialect === 'postgres' ? ' ORDER BY id FOR UPDATE' : ''
  const rows = await tx.all<HeldJob>(
    `SELECT id, attempt, cancel_requested FROM jobs WHERE id ${among.sql} AND owner = ? AND state = 'claimed'${lock}`,
    [...among.params, owner],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

/** Of several at a time, all that a plain one sends leaves before anything of the next one does. */
async function settleHeld(
  ctx: SettleContext,
  settlement: Settlement,
  found: HeldJob | undefined,
): Promise<Settled> {
  const { job, event } = settlement
  if (found?.attempt !== job.attempt) return 'lost'
  // Someone asked for it to stop: whatever it brought is dropped.
  const stopped = found.cancel_requested === 1
  // A handler that is still running has not stopped yet: it learns of it, and ends with `stop`.
  if (stopped && event === 'continue') return 'canceled'
  const end = stopped ? { job, event: 'stop' as const, checkpoint: settlement.checkpoint } : settlement
  const writes = [() => write(ctx, end)]
  if (!stopped && settlement.error && event !== 'continue') writes.push(() => recordError(ctx, settlement))
  await sendEach(ctx.tx, writes, (one) => one())
  if (stopped) return event === 'stop' ? 'held' : 'canceled'
  if (settlement.bad?.length) {
    const bad = settlement.bad.map((one) => ({ ...one, item: storableItem(one.item) }))
    await isolate(ctx, job, bad)
  }
  if (settlement.splitInto) await replaceBySplit(ctx, job, settlement.splitInto)
  const isMended = job.badId !== null && !settlement.bad?.length
  if (isMended && event === 'succeed') await mend(ctx, job, 'stored')
  if (isMended && event === 'skip') await mend(ctx, job, 'gone')
  return 'held'
}

async function write(
  ctx: SettleContext,
  s: Pick<Settlement, 'job' | 'event' | 'items' | 'runAt' | 'error' | 'checkpoint' | 'note'>,
): Promise<void> {
  const { tx, changes, now } = ctx
  const { job, event } = s
  const state = nextJobState('claimed', event) as JobState
  const pending = state === 'pending'
  const later = pending && s.runAt != null && s.runAt > now
  const ended = !pending && state !== 'claimed'
  const set: [string, string | number | null][] = [
    ['state = ?', state],
    ['wait = ?', later ? 'time' : null],
  ]
  if (pending) set.push(['run_at = ?', s.runAt ?? null], ['owner = ?', null])
  // By the clock that said how long to wait: see wakeAheadJobs.
  if (later) set.push(['claimed_at = ?', now])
  if (event === 'retry') set.push(['failures = failures + ?', 1])
  if (ended) set.push(['settled_at = ?', now])
  if (s.error) set.push(['error = ?', errorText(s.error)])
  if (s.checkpoint !== undefined) set.push(['checkpoint = ?', s.checkpoint])
  if (s.note !== undefined) {
    set.push(['note = ?', storableText(s.note.text)], ['note_code = ?', s.note.code ?? null])
  }
  const changed = await tx.run(
    `UPDATE jobs SET ${set.map(([column]) => column).join(', ')}
     WHERE id = ? AND attempt = ? AND owner = ? AND state = 'claimed'`,
    [...set.map(([, value]) => value), job.id, job.attempt, ctx.owner],
  )
  if (changed !== 1) throw new TidemarkError(`Job #${job.id} slipped out of a locked row.`, { kind: 'bug' })
  if (event === 'continue') return
  const stage: Stage = pending ? (later ? 'time' : 'ready') : (state as Stage)
  changes.moved(job.kind, 'claimed', stage)
  const items = s.items ?? job.items
  changes.count(COUNTER_OF[event], job.streamId, event === 'succeed' || event === 'skip' ? items : 1)
  if (later) changes.due(s.runAt!)
  else if (pending) changes.becameReady += 1
  if (!pending) changes.ended.push({ id: job.id, state })
  if (job.segmentId !== null && (state === 'done' || state === 'skipped' || state === 'canceled')) {
    changes.segment(job.segmentId).jobs -= 1
  }
}

const COUNTER_OF: Record<Exclude<Settling, 'continue'>, string> = {
  succeed: 'processed',
  skip: 'skipped',
  retry: 'retried',
  postpone: 'postponed',
  fail: 'failed',
  stop: 'canceled',
}

async function recordError({ tx, now }: SettleContext, { job, error }: Settlement): Promise<void> {
  const { kind, code = null, message } = error!
  const writes: [sql: string, params: Value[]][] = [
    [
      `INSERT INTO job_errors(job_id, attempt, at, kind, code, message) VALUES (?, ?, ?, ?, ?, ?)`,
      [job.id, job.attempt, now, kind, code, storedText(message)],
    ],
    [
      `DELETE FROM job_errors WHERE job_id = ? AND id NOT IN
         (SELECT id FROM job_errors WHERE job_id = ? ORDER BY id DESC LIMIT ${ERRORS_KEPT_MAX})`,
      [job.id, job.id],
    ],
  ]
  await sendEach(tx, writes, ([sql, params]) => tx.run(sql, params))
}

export function errorText({ kind, code, message }: JobError): string {
  return JSON.stringify({ kind, code, message: storedText(message) })
}

/** Services repeat in their errors what they were sent: no secret of it stays in the database. */
function storedText(text: string): string {
  return storableText(redactText(text).slice(0, ERROR_TEXT_MAX))
}

/** Registers bad items and counts them in their segment, so that they block nothing. */
async function isolate(ctx: SettleContext, job: ClaimedJob, bad: readonly NewBadItem[]): Promise<void> {
  const { tx, changes, now } = ctx
  const again = job.badId === null ? undefined : await badAgain(ctx, job.badId, bad)
  for (const item of bad) {
    if (item === again || (await isKnown(ctx, job, item))) continue
    // One row per segment, because each segment has counted it and is mended by itself.
    await tx.run(
      `INSERT INTO bad_items(stream_id, segment_id, kind, item, reason, error_kind, payload, first_seen, last_tried)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (stream_id, kind, item, coalesce(segment_id, 0)) DO UPDATE SET reason = excluded.reason,
         error_kind = excluded.error_kind, payload = excluded.payload, last_tried = excluded.last_tried,
         tries = bad_items.tries + 1, times = bad_items.times + 1`,
      [
        ...[job.streamId, job.segmentId, job.kind, item.item, storedText(item.reason), item.errorKind],
        ...[item.payload, now, now],
      ],
    )
  }
  changes.count('bad', job.streamId, bad.length)
  if (job.segmentId !== null) changes.segment(job.segmentId).bad += bad.length
}

/**
 * A job outside every segment counted nothing, so that what it finds bad gets no row beside one that is there. A row that
 * such a job has made becomes that of the segment which counts the item later.
 */
async function isKnown({ tx, now }: SettleContext, job: ClaimedJob, bad: NewBadItem): Promise<boolean> {
  const which = `stream_id = ? AND kind = ? AND item = ?`
  const values = [job.streamId, job.kind, bad.item]
  if (job.segmentId === null) {
    const known = await tx.run(
      `UPDATE bad_items SET reason = ?, error_kind = ?, payload = ?, last_tried = ?, tries = tries + 1 WHERE ${which}`,
      [storedText(bad.reason), bad.errorKind, bad.payload, now, ...values],
    )
    return known > 0
  }
  await tx.run(
    `UPDATE bad_items SET segment_id = ?, times = 0 WHERE ${which} AND segment_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM bad_items b WHERE b.stream_id = ? AND b.kind = ? AND b.item = ? AND b.segment_id = ?)`,
    [job.segmentId, ...values, ...values, job.segmentId],
  )
  return false
}

/** The retry of a bad item found it bad again: it keeps its row, and its segment the count. */
async function badAgain(
  { tx, now }: SettleContext,
  badId: number,
  bad: readonly NewBadItem[],
): Promise<NewBadItem | undefined> {
  const row = await tx.get<{ item: string }>(`SELECT item FROM bad_items WHERE id = ?`, [badId])
  if (!row) return undefined
  await forgetCopies({ tx }, badId)
  const named = bad.find((one) => one.item === row.item)
  const { reason, errorKind, payload } = named ?? bad[0]!
  await tx.run(
    `UPDATE bad_items SET reason = ?, error_kind = ?, payload = CASE WHEN ? = 1 THEN ? ELSE payload END, last_tried = ?,
       tries = tries + 1 WHERE id = ?`,
    [storedText(reason), errorKind, named ? 1 : 0, payload, now, badId],
  )
  return named
}

/**
 * The halves take the batch's place: same segment, children of the batch, keepers of its key (`split_key`, down
 * through all splits), and whoever waited for the batch waits for both.
 */
async function replaceBySplit(
  ctx: SettleContext,
  job: ClaimedJob,
  { halves, failures }: { halves: readonly NewJob[]; failures: number },
): Promise<void> {
  const { tx, driver, changes, now } = ctx
  const added = await enqueueJobs(
    { tx, driver, changes, now },
    halves.map((half) => ({ ...half, parentId: half.parentId ?? job.id })),
  )
  for (const half of added) {
    await tx.run(
      `UPDATE jobs SET failures = ?, split_of = ?, split_key = (SELECT coalesce(b.key, b.split_key) FROM jobs b WHERE b.id = ?)
       WHERE id = ?`,
      [failures, job.id, job.id, half.id],
    )
  }
  const edges = await tx.all<{ job_id: number; on_failure: string }>(
    `DELETE FROM job_deps WHERE dep_id = ? AND met = 0 RETURNING job_id, on_failure`,
    [job.id],
  )
  for (const edge of edges) {
    for (const half of added) {
      await tx.run(`INSERT INTO job_deps(dep_id, job_id, on_failure) VALUES (?, ?, ?)`, [
        half.id,
        edge.job_id,
        edge.on_failure,
      ])
    }
    await tx.run(`UPDATE jobs SET deps_left = deps_left + ? WHERE id = ?`, [added.length - 1, edge.job_id])
  }
  changes.count('split', job.streamId)
}

/** A bad item worked after all, or is gone: its segment counts it so, as often as it was listed, and the registry forgets it. */
async function mend({ tx }: SettleContext, job: ClaimedJob, as: 'stored' | 'gone'): Promise<void> {
  await forgetCopies({ tx }, job.badId!)
  const rows = await tx.all<{ segment_id: number | null; times: number }>(
    `DELETE FROM bad_items WHERE id = ? RETURNING segment_id, times`,
    [job.badId],
  )
  const row = rows[0]
  if (row?.segment_id == null) return
  await tx.run(`UPDATE segments SET bad = bad - ?, ${as} = ${as} + ? WHERE id = ? AND bad >= ?`, [
    row.times,
    row.times,
    row.segment_id,
    row.times,
  ])
}

/** Rows outside every segment, beside one that a segment counts: earlier versions made them. */
async function forgetCopies({ tx }: Pick<SettleContext, 'tx'>, badId: number): Promise<void> {
  await tx.run(
    `DELETE FROM bad_items WHERE segment_id IS NULL AND EXISTS (SELECT 1 FROM bad_items b WHERE b.id = ?
       AND b.segment_id IS NOT NULL AND b.stream_id = bad_items.stream_id AND b.kind = bad_items.kind
       AND b.item = bad_items.item)`,
    [badId],
  )
}
