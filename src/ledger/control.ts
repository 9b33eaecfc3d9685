/**
 * What people do to jobs: cancel, try again, pause, resume. Works whether or not an engine is running;
 * a running one is told (announce) and stops what was canceled.
 */
import { UsageError } from '../base/errors.ts'
import { type Changes, COUNTER_MS, forUpdate } from './changes.ts'
import type { Tx } from './contract.ts'
import { checkIndexed, described, storableText } from './input-check.ts'
import { REPLACED_CODE } from './keys.ts'
import { type JobState, nextJobState, type Stage, stageOf } from './states.ts'

export type ControlContext = { tx: Tx; changes: Changes; now: number }
const PAUSE_SCOPES = ['all', 'stream', 'kind'] as const
export type PauseScope = (typeof PAUSE_SCOPES)[number]
/** `code` says to programs what `reason` says to people. */
export type PauseRow = { scope: PauseScope; target: string; code: string; reason: string; at: number }

/** A person has paused it, and a person ends it. */
const BY_HAND = 'by-hand'
/** It ends when the account has signed in again. */
export const SIGN_IN = 'sign-in'
/** Until what it works for is removed. */
export const REMOVAL = 'folder-removal'

/** Whether it ends by itself: then it gives way to one that somebody asks for. */
export function isAutomatic(code: string): boolean {
  return !ASKED_CODES.includes(code)
}

const ASKED_CODES: readonly string[] = [BY_HAND, REMOVAL]

/** Canceled by someone: not by what it waited for, with which it would come back. */
const CANCELED_CODES = { own: 'canceled', above: 'canceled-above' } as const

type Target = {
  id: number
  kind: string
  state: JobState
  wait: 'deps' | 'time' | null
  owner: number | null
  segment_id: number | null
  key: string | null
  split_key: string | null
  settled_at: number | null
  note_code: string | null
}

async function lockJob(tx: Tx, id: number): Promise<Target> {
  const job = Number.isSafeInteger(id)
    ? await tx.get<Target>(
        `SELECT id, kind, state, wait, owner, segment_id, key, split_key, settled_at, note_code FROM jobs WHERE id = ?${forUpdate(tx)}`,
        [id],
      )
    : undefined
  if (!job)
    throw new UsageError(`There is no job #${id}.`, {
      code: 'job-unknown',
      hint: 'It may have been pruned. `tidemark jobs list` shows what there is.',
    })
  return job
}

/** `stopping`: its worker has been asked and will let go of it. All that came from the job is canceled with it. */
export async function cancelJob(
  ctx: ControlContext,
  id: number,
  note: string,
): Promise<'canceled' | 'stopping' | 'already'> {
  const job = await lockJob(ctx.tx, id)
  if (nextJobState(job.state, 'cancel') === 'refused') {
    if (job.state === 'canceled') return 'already'
    throw new UsageError(`Job #${id} is ${job.state}: there is nothing to cancel.`)
  }
  const outcome = await cancelOne(ctx, job, { text: note, code: CANCELED_CODES.own })
  const seen = new Set([id])
  // Those below may be adding more until their rows are locked; after that they cannot, so this ends.
  for (;;) {
    const below = (await unsettledBelow(ctx.tx, id)).filter((one) => !seen.has(one.id))
    if (below.length === 0) return outcome
    for (const one of below) {
      seen.add(one.id)
      const target = await lockJob(ctx.tx, one.id)
      if (nextJobState(target.state, 'cancel') === 'refused') continue
      const relation = one.parent_id === id ? 'parent' : 'ancestor'
      const text = `its ${relation} #${id} was canceled`
      await cancelOne(ctx, target, { text, code: CANCELED_CODES.above })
    }
  }
}

/** Also behind jobs that have settled. A parent is there before its child, so there is no circle. */
function unsettledBelow(tx: Tx, id: number): Promise<{ id: number; parent_id: number }[]> {
  return tx.all(
    `WITH RECURSIVE below(id) AS (
       SELECT id FROM jobs WHERE parent_id = ?
       UNION SELECT j.id FROM jobs j JOIN below ON j.parent_id = below.id)
     SELECT j.id, j.parent_id FROM below JOIN jobs j ON j.id = below.id
     WHERE j.state IN ('pending', 'claimed', 'failed') ORDER BY j.id`,
    [id],
  )
}

async function cancelOne(
  { tx, changes, now }: ControlContext,
  job: Target,
  note: { text: string; code: string },
): Promise<'canceled' | 'stopping'> {
  const { id } = job
  if (job.state === 'claimed') {
    await tx.run(
      `UPDATE jobs SET cancel_requested = 1, note = ?, note_code = ? WHERE id = ? AND state = 'claimed'`,
      [note.text, note.code, id],
    )
    changes.control = true
    changes.toStop.push({ id, owner: job.owner! })
    return 'stopping'
  }
  await tx.run(`UPDATE jobs SET state = 'canceled', note = ?, note_code = ?, settled_at = ? WHERE id = ?`, [
    note.text,
    note.code,
    now,
    id,
  ])
  changes.moved(job.kind, stageOf(job.state, job.wait), 'canceled')
  changes.count('canceled', 0)
  if (job.segment_id !== null) changes.segment(job.segment_id).jobs -= 1
  changes.ended.push({ id, state: 'canceled' })
  return 'canceled'
}

/** Failed and canceled jobs start over with a full budget; so do dependents that ended because of them. */
export async function redoJob(ctx: ControlContext, id: number): Promise<number> {
  const job = await lockJob(ctx.tx, id)
  if (nextJobState(job.state, 'redo') === 'refused') {
    throw new UsageError(`Job #${id} is ${job.state}: only failed and canceled jobs can be tried again.`)
  }
  const obstacle = await obstacleTo(ctx, job)
  if (obstacle) throw obstacle
  return startOver(ctx, job)
}

async function startOver(ctx: ControlContext, job: Target): Promise<number> {
  const { tx, changes } = ctx
  const { id } = job
  if (job.state === 'canceled' && job.segment_id !== null) changes.segment(job.segment_id).jobs += 1
  // A dependency that was pruned meanwhile will not come back to be waited for.
  await tx.run(
    `UPDATE job_deps SET met = 1 WHERE job_id = ? AND met = 0
       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = job_deps.dep_id)`,
    [id],
  )
  // Locked: a dependency that is settling right now is either seen as settled or will find us waiting.
  const open = await tx.all(
    `SELECT dep_id FROM job_deps WHERE job_id = ? AND met = 0 ORDER BY dep_id${forUpdate(tx)}`,
    [id],
  )
  const blocked = open.length
  await tx.run(
    `UPDATE jobs SET state = 'pending', wait = ?, run_at = NULL, deps_left = ?, failures = 0, owner = NULL, settled_at = NULL,
     cancel_requested = 0, note = NULL, note_code = NULL WHERE id = ?`,
    [blocked > 0 ? 'deps' : null, blocked, id],
  )
  changes.moved(job.kind, job.state as Stage, blocked > 0 ? 'deps' : 'ready')
  if (blocked === 0) changes.becameReady += 1
  const canceled = [REPLACED_CODE, ...Object.values(CANCELED_CODES)].map((code) => `'${code}'`).join(', ')
  const dependents = await tx.all<{ id: number }>(
    `SELECT j.id FROM job_deps d JOIN jobs j ON j.id = d.job_id WHERE d.dep_id = ? AND d.met = 0
       AND (j.state = 'failed' OR (j.state = 'canceled' AND d.on_failure = 'cancel'
         AND coalesce(j.note_code, '') NOT IN (${canceled}))) ORDER BY j.id`,
    [id],
  )
  let redone = 1
  for (const dependent of dependents) {
    const target = await lockJob(tx, dependent.id)
    // It may be back already, by another way through the graph.
    if (nextJobState(target.state, 'redo') === 'refused' || (await obstacleTo(ctx, target))) continue
    redone += await startOver(ctx, target)
  }
  return redone
}

async function obstacleTo(ctx: ControlContext, job: Target): Promise<UsageError | undefined> {
  const { tx } = ctx
  const broken = await brokenDependency(tx, job.id)
  if (broken) {
    return new UsageError(`Job #${job.id} waits for job #${broken.id}, which is ${broken.state}.`, {
      hint: `Try #${broken.id} again first: what ended because of it comes back with it.`,
    })
  }
  const taken = await keyTaker(tx, job)
  if (taken !== undefined) {
    return new UsageError(`Job #${job.id} cannot be tried again: job #${taken} has taken its key.`)
  }
  if (job.state !== 'canceled' || job.segment_id === null) return undefined
  if (job.note_code === REPLACED_CODE) {
    return new UsageError(`Job #${job.id} cannot be tried again: a newer job accounts for its items.`, {
      hint: 'Try the newer one again, or enqueue the work anew.',
    })
  }
  const segment = await tx.get<{ state: string }>(`SELECT state FROM segments WHERE id = ?`, [job.segment_id])
  if (segment?.state !== 'settled') return undefined
  return new UsageError(
    `Job #${job.id} cannot be tried again: its segment #${job.segment_id} has settled without it.`,
    { hint: 'Enqueue the work anew.' },
  )
}

/** Locked: a dependency that is settling right now is either seen as settled or will find us waiting. */
async function brokenDependency(tx: Tx, id: number): Promise<{ id: number; state: JobState } | undefined> {
  const lock = tx.dialect === 'postgres' ? ' FOR SHARE OF j' : ''
  const open = await tx.all<{ id: number; state: JobState }>(
    `SELECT j.id, j.state FROM job_deps d JOIN jobs j ON j.id = d.dep_id WHERE d.job_id = ? AND d.met = 0 ORDER BY j.id${lock}`,
    [id],
  )
  return open.find((dep) => dep.state === 'failed' || dep.state === 'canceled')
}

/** Whoever has the job's key now, or had it and is still at work; a failed job has kept its own. */
async function keyTaker(tx: Tx, job: Target): Promise<number | undefined> {
  const key = job.key ?? job.split_key
  if (key === null || (job.state === 'failed' && job.key !== null)) return undefined
  // In parts, each of which has its index.
  const taken = await tx.get<{ id: number }>(
    `SELECT o.id FROM jobs o WHERE o.kind = ? AND o.key = ? AND o.id <> ?
       AND o.state IN ('pending', 'claimed', 'failed') AND o.cancel_requested = 0
     UNION ALL SELECT o.id FROM jobs o WHERE o.kind = ? AND o.key = ? AND o.state = 'claimed' AND o.cancel_requested = 1
       AND NOT EXISTS (SELECT 1 FROM job_deps d WHERE d.dep_id = o.id AND d.job_id = ? AND d.met = 0)
     UNION ALL SELECT o.id FROM jobs o WHERE o.kind = ? AND o.split_key = ? AND o.state IN ('pending', 'claimed', 'failed')
       AND (? = 0 OR o.created_at > ?)
       AND NOT EXISTS (SELECT 1 FROM job_deps d WHERE d.dep_id = o.id AND d.job_id = ? AND d.met = 0)`,
    [
      ...[job.kind, key, job.id],
      ...[job.kind, key, job.id],
      // Halves of one split do not stand in each other's way, but those of a later holder do.
      ...[job.kind, key, job.key === null ? 1 : 0, job.settled_at ?? 0, job.id],
    ],
  )
  return taken?.id
}

/** False where it is paused already: that one's reason stays, unless it would end by itself and this one would not. */
export async function pause(
  ctx: ControlContext,
  { scope, target, code = BY_HAND, reason }: Omit<PauseRow, 'at' | 'code'> & { code?: string | undefined },
): Promise<boolean> {
  if (!PAUSE_SCOPES.includes(scope))
    throw new UsageError(`What is paused must be one of ${PAUSE_SCOPES.join(', ')}, not ${described(scope)}.`)
  checkIndexed(`What is paused (${scope})`, target)
  const replaced = isAutomatic(code)
    ? 'NOTHING'
    : `UPDATE SET code = excluded.code, reason = excluded.reason, at = excluded.at
       WHERE pauses.code NOT IN (${ASKED_CODES.map(() => '?').join(', ')})`
  const added = await ctx.tx.run(
    `INSERT INTO pauses(scope, target, code, reason, at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (scope, target) DO ${replaced}`,
    [scope, target, code, storableText(reason), ctx.now, ...(isAutomatic(code) ? [] : ASKED_CODES)],
  )
  ctx.changes.control = true
  return added > 0
}

/** `code`: only where it is paused for that. */
export async function resume(
  ctx: ControlContext,
  { scope, target, code }: Pick<PauseRow, 'scope' | 'target'> & { code?: string | undefined },
): Promise<boolean> {
  const removed = await ctx.tx.run(
    `DELETE FROM pauses WHERE scope = ? AND target = ?${code === undefined ? '' : ' AND code = ?'}`,
    [scope, target, ...(code === undefined ? [] : [code])],
  )
  ctx.changes.control = true
  return removed > 0
}

export function listPauses(tx: Tx): Promise<PauseRow[]> {
  return tx.all<PauseRow>(`SELECT scope, target, code, reason, at FROM pauses ORDER BY scope, target`)
}

/** What must not be claimed now, with streams by id. */
export type Pauses = {
  all: boolean
  streams: ReadonlySet<number>
  kinds: ReadonlySet<string>
  /** A stream is paused that nobody had opened yet: it has no id before somebody does. */
  isAhead: boolean
}

export const NO_PAUSES: Pauses = { all: false, streams: new Set(), kinds: new Set(), isAhead: false }

export async function readPauses(tx: Tx): Promise<Pauses> {
  const rows = await tx.all<{ scope: PauseScope; target: string; stream_id: number | null }>(
    `SELECT p.scope, p.target, s.id AS stream_id FROM pauses p LEFT JOIN streams s ON p.scope = 'stream' AND s.name = p.target`,
  )
  return {
    all: rows.some((row) => row.scope === 'all'),
    streams: new Set(rows.flatMap((row) => (row.stream_id === null ? [] : [row.stream_id]))),
    isAhead: rows.some((row) => row.scope === 'stream' && row.stream_id === null),
    kinds: new Set(rows.flatMap((row) => (row.scope === 'kind' ? [row.target] : []))),
  }
}

/** Jobs of this owner that someone wants stopped. */
export async function stopRequests(tx: Tx, owner: number): Promise<number[]> {
  const rows = await tx.all<{ id: number }>(
    `SELECT id FROM jobs WHERE state = 'claimed' AND cancel_requested = 1 AND owner = ?`,
    [owner],
  )
  return rows.map((row) => row.id)
}

/** Jobs of a stream that were put off after a try need not wait any longer. */
export async function wakeStream({ tx, changes }: ControlContext, stream: string): Promise<number> {
  const rows = await tx.all<{ kind: string }>(
    `UPDATE jobs SET wait = NULL, run_at = NULL WHERE state = 'pending' AND wait = 'time' AND attempt > 0
       AND stream_id = (SELECT id FROM streams WHERE name = ?) RETURNING kind`,
    [stream],
  )
  return woken(changes, rows)
}

/** More than clocks of machines that work together may differ. */
export const AHEAD_MS = 60_000

/** A new job that waits no longer than this waits for a moment to pass; one that waits longer waits for a date. */
const MOMENT_MS = 3_600_000

/**
 * Jobs that were put off at a time that is still to come: the clock was put back since. When the time of those that were
 * tried will be nobody knows, so they are tried now. New ones that were to wait for a moment wait for it from now on;
 * those that were to wait for a date wait for that date.
 *
 * Whoever put a job off counted that in the minute it was, so a look at the latest minute tells whether there can be
 * any: looking at all jobs that wait took 0.57 s for 500,000. What was counted ahead is then counted now.
 */
export async function wakeAheadJobs({ tx, changes, now }: ControlContext): Promise<number> {
  const ahead = Math.floor((now + AHEAD_MS) / COUNTER_MS)
  const latest = await tx.get<{ minute: number | null }>(`SELECT max(minute) AS minute FROM counters`)
  if ((latest?.minute ?? 0) < ahead) return 0
  await tx.run(
    `INSERT INTO counters(slot, minute, stream_id, name, n)
     SELECT slot, ?, stream_id, name, CAST(sum(n) AS BIGINT) FROM counters WHERE minute >= ? GROUP BY slot, stream_id, name
     ON CONFLICT (minute, stream_id, name, slot) DO UPDATE SET n = counters.n + excluded.n`,
    [Math.floor(now / COUNTER_MS), ahead],
  )
  await tx.run(`DELETE FROM counters WHERE minute >= ?`, [ahead])
  // Their time is later still: by that the index finds them without a look at all that wait.
  const found = `state = 'pending' AND wait = 'time' AND run_at > ?`
  const rows = await tx.all<{ kind: string }>(
    `UPDATE jobs SET wait = NULL, run_at = NULL WHERE ${found} AND attempt > 0 AND claimed_at > ? RETURNING kind`,
    [now + AHEAD_MS, now + AHEAD_MS],
  )
  const moved = await tx.all<{ run_at: number }>(
    `UPDATE jobs SET run_at = ? + (run_at - created_at), created_at = ? WHERE ${found} AND attempt = 0
       AND created_at > ? AND run_at - created_at <= ? RETURNING run_at`,
    [now, now, now + AHEAD_MS, now + AHEAD_MS, MOMENT_MS],
  )
  for (const { run_at } of moved) changes.due(run_at)
  return woken(changes, rows)
}

/** Jobs whose time has come are ready; those that another transaction holds are left to it. */
export async function wakeDueJobs({ tx, changes, now }: ControlContext, max: number): Promise<number> {
  const skipLocked = tx.dialect === 'postgres' ? ' FOR UPDATE SKIP LOCKED' : ''
  const rows = await tx.all<{ kind: string }>(
    `UPDATE jobs SET wait = NULL WHERE id IN (SELECT id FROM jobs WHERE state = 'pending' AND wait = 'time' AND run_at <= ?
       ORDER BY run_at LIMIT ${max}${skipLocked}) RETURNING kind`,
    [now],
  )
  return woken(changes, rows)
}

function woken(changes: ControlContext['changes'], rows: readonly { kind: string }[]): number {
  for (const row of rows) changes.moved(row.kind, 'time', 'ready')
  changes.becameReady += rows.length
  return rows.length
}
