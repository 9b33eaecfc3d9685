/**
 * Putting jobs into the ledger: keys, dependencies, segments.
 *
 * A key is unique among the unsettled jobs of a kind. Who enqueues it again gets, as the kind says, the
 * job that is there (`ignore`), or a replacement: a pending job is canceled in favour of the new one, a
 * claimed one is asked to stop and the new one waits until it has. A failed holder is revived instead.
 * The halves of a split keep the key of the whole (keys.ts).
 */
import { TidemarkError, UsageError } from '../errors.ts'
import { type Changes, marks, oneOf } from './changes.ts'
import type { Driver, EnqueueResult, InsertRow, NewJob, OnDepFailure, Tx } from './contract.ts'
import { chunks, endDependencies, IDS_PER_STATEMENT_MAX } from './dependencies.ts'
import {
  type Holder,
  keyHolder,
  lockHolder,
  makeWay,
  type Rival,
  refuseCircle,
  rivalsByKey,
  splitJobOf,
  takeOver,
} from './keys.ts'
import type { JobState } from './states.ts'

/** A key can be taken again between our look and our insert, but not for ever. */
const KEY_TRIES_MAX = 5
const JOBS_PER_CALL_MAX = 100_000

export type EnqueueContext = {
  tx: Tx
  driver: Driver
  changes: Changes
  now: number
  segmentRefs: ReadonlyMap<string, number>
}

type Edge = { depId: number; onFailure: OnDepFailure }
/** By the id of the job to wait for: each is waited for once. */
type Wanted = Map<number, OnDepFailure>

export async function enqueueJobs(ctx: EnqueueContext, jobs: readonly NewJob[]): Promise<EnqueueResult[]> {
  if (jobs.length > JOBS_PER_CALL_MAX) {
    throw new UsageError(
      `${jobs.length} jobs in one call; at most ${JOBS_PER_CALL_MAX} fit into one transaction.`,
    )
  }
  const plain = jobs.every((job) => job.key == null && !job.after?.length)
  if (plain) {
    const ids = await insert(
      ctx,
      jobs.map((job) => rowOf(ctx, job, null)),
    )
    return ids.map((id) => ({ id: held(id), outcome: 'added' }))
  }
  return enqueueRich(ctx, jobs)
}

/** Jobs with keys or dependencies, in an order in which every dependency comes first. */
async function enqueueRich(ctx: EnqueueContext, jobs: readonly NewJob[]): Promise<EnqueueResult[]> {
  const results: EnqueueResult[] = new Array(jobs.length)
  const idOfRef = new Map<string, number>()
  const rivals = await rivalsByKey(ctx.tx, jobs)
  for (const index of inDependencyOrder(jobs)) {
    const job = jobs[index]!
    const wanted: Wanted = new Map()
    for (const dep of job.after ?? [])
      wanted.set(typeof dep === 'number' ? dep : idOfRef.get(dep)!, job.onDepFailure ?? 'fail')
    const result = await enqueueOne(ctx, job, wanted, rivals.of(job))
    results[index] = result
    if (job.ref !== undefined) idOfRef.set(job.ref, result.id)
  }
  // On SQLite nobody else writes meanwhile. On PostgreSQL a key may have come free while we waited for it, because
  // its holder was asked to stop or was split just then.
  if (ctx.tx.dialect === 'postgres') await waitForLateRivals(ctx, jobs, results)
  return results
}

async function enqueueOne(
  ctx: EnqueueContext,
  job: NewJob,
  wanted: Wanted,
  rivals: Rival[],
): Promise<EnqueueResult> {
  const replaced: number[] = []
  const halves = rivals.filter((rival) => !rival.stopping)
  if (halves.length > 0 && (job.onKeyTaken ?? 'ignore') === 'ignore') return leaveToHalves(ctx, job, halves)
  for (const half of halves) {
    const holder = await lockHolder(ctx.tx, half.id)
    if (holder) await displace(ctx, holder, wanted)
    if (holder) replaced.push(holder.id)
  }
  // Canceled but not yet stopped: it has given up the key, and whoever has it next waits for it.
  for (const rival of rivals) if (rival.stopping) wanted.set(rival.id, 'run')
  // Whoever has the key next in this call finds them dealt with: the new job has it.
  rivals.length = 0
  let found = await openEdges(ctx.tx, wanted)
  for (let tries = 0; tries < KEY_TRIES_MAX; tries++) {
    const [id] = await insert(ctx, [rowOf(ctx, job, found.open)])
    if (id != null) {
      const future = found.edges.find((edge) => edge.depId >= id)
      if (future) throw new UsageError(`There is no job #${future.depId} to wait for.`)
      await writeEdges(ctx.tx, id, found)
      for (const from of replaced) await takeOver(ctx.tx, { from, to: id })
      await endDependencies(ctx, found.broken)
      return { id, outcome: replaced.length > 0 ? 'replaced' : 'added' }
    }
    const holder = await keyHolder(ctx.tx, job.kind, job.key!)
    if (!holder) continue // it settled, or was asked to stop, in between: the key is free again
    if (holder.state !== 'failed' && (job.onKeyTaken ?? 'ignore') === 'ignore') {
      countElsewhere(ctx, job)
      return { id: holder.id, outcome: 'ignored' }
    }
    if (holder.state === 'failed') {
      wanted.delete(holder.id)
      await refuseCircle(ctx.tx, [...wanted.keys()], holder.id)
      return revive(ctx, job, holder, await openEdges(ctx.tx, wanted))
    }
    await displace(ctx, holder, wanted)
    replaced.push(holder.id)
    found = await openEdges(ctx.tx, wanted)
  }
  throw new TidemarkError(
    `The key ${job.key} of ${job.kind} changed hands ${KEY_TRIES_MAX} times in a row.`,
    {
      kind: 'transient',
    },
  )
}

/** Makes way for a new job, which waits for what `holder` leaves to wait for. */
async function displace(ctx: EnqueueContext, holder: Holder, wanted: Wanted): Promise<void> {
  wanted.delete(holder.id)
  await refuseCircle(ctx.tx, [...wanted.keys()], holder.id)
  for (const edge of await makeWay(ctx, holder))
    if (!wanted.has(edge.depId)) wanted.set(edge.depId, edge.onFailure)
}

/** The halves of a split are the job whose key they keep. Failed ones, if nothing else is left, start over. */
async function leaveToHalves(
  ctx: EnqueueContext,
  job: NewJob,
  halves: readonly Rival[],
): Promise<EnqueueResult> {
  const { tx, changes } = ctx
  const id = await splitJobOf(tx, halves[0]!.id)
  if (halves.some((half) => half.state !== 'failed')) {
    countElsewhere(ctx, job)
    return { id, outcome: 'ignored' }
  }
  for (const half of halves) {
    const revived = await tx.run(
      `UPDATE jobs SET state = 'pending', wait = NULL, run_at = NULL, failures = 0, owner = NULL, settled_at = NULL, error = NULL
       WHERE id = ? AND state = 'failed'`,
      [half.id],
    )
    if (revived === 0) continue
    changes.moved(half.kind, 'failed', 'ready')
    changes.becameReady += 1
    half.state = 'pending'
  }
  if (segmentOf(ctx, job) !== halves[0]!.segment_id) countElsewhere(ctx, job)
  return { id, outcome: 'revived' }
}

/** The job that has the key accounts for the items; in the segment that asked again they need nothing more. */
function countElsewhere(ctx: EnqueueContext, job: NewJob): void {
  const segment = segmentOf(ctx, job)
  if (segment !== null) ctx.changes.segment(segment).skipped += job.items ?? 1
}

async function waitForLateRivals(
  ctx: EnqueueContext,
  jobs: readonly NewJob[],
  results: readonly EnqueueResult[],
): Promise<void> {
  const rivals = await rivalsByKey(ctx.tx, jobs)
  for (const [index, { id, outcome }] of results.entries()) {
    if (outcome === 'ignored' || outcome === 'revived') continue
    const late = rivals.of(jobs[index]!).map((rival) => rival.id)
    if (late.length > 0) await waitForMore(ctx, id, late)
  }
}

/** A job that this transaction has just inserted waits for these too. */
async function waitForMore(ctx: EnqueueContext, id: number, late: readonly number[]): Promise<void> {
  const { tx, changes } = ctx
  const edges = await tx.all<{ dep_id: number }>(`SELECT dep_id FROM job_deps WHERE job_id = ?`, [id])
  const known = new Set(edges.map((edge) => edge.dep_id))
  const wanted: Wanted = new Map()
  for (const depId of late) if (!known.has(depId)) wanted.set(depId, 'run')
  if (wanted.size === 0) return
  const found = await openEdges(tx, wanted)
  const row = await tx.get<{ kind: string; wait: 'deps' | 'time' | null }>(
    `SELECT kind, wait FROM jobs WHERE id = ? AND state = 'pending'`,
    [id],
  )
  if (!row || found.open === 0) return
  await writeEdges(tx, id, found)
  await tx.run(`UPDATE jobs SET wait = 'deps', deps_left = deps_left + ? WHERE id = ?`, [found.open, id])
  changes.moved(row.kind, row.wait ?? 'ready', 'deps')
  if (row.wait === null) changes.becameReady -= 1
  await endDependencies(ctx, found.broken)
}

/** The failed job starts over as it is asked for now; a checkpoint is kept only for the same payload. */
async function revive(
  ctx: EnqueueContext,
  job: NewJob,
  holder: Holder,
  found: FoundEdges,
): Promise<EnqueueResult> {
  const { tx, changes } = ctx
  const row = rowOf(ctx, job, found.open)
  await tx.run(
    `UPDATE jobs SET state = 'pending', wait = ?, run_at = ?, deps_left = ?, lane = ?, priority = ?, size = ?, items = ?,
       checkpoint = CASE WHEN payload = ? THEN checkpoint END, payload = ?, failures = 0, owner = NULL, settled_at = NULL,
       error = NULL WHERE id = ? AND state = 'failed'`,
    [
      ...[row.wait, row.runAt, row.depsLeft, row.lane, row.priority, row.size, row.items],
      ...[row.payload, row.payload, holder.id],
    ],
  )
  await tx.run(`DELETE FROM job_deps WHERE job_id = ?`, [holder.id])
  await writeEdges(tx, holder.id, found)
  changes.moved(job.kind, 'failed', row.wait ?? 'ready')
  if (row.wait === 'time') changes.due(row.runAt)
  else if (row.wait === null) changes.becameReady += 1
  if (row.segmentId !== holder.segment_id) countElsewhere(ctx, job)
  await endDependencies(ctx, found.broken)
  return { id: holder.id, outcome: 'revived' }
}

function rowOf(ctx: EnqueueContext, job: NewJob, depsOpen: number | null): InsertRow {
  const later = job.runAt != null && job.runAt > ctx.now
  return {
    kind: job.kind,
    key: job.key ?? null,
    streamId: job.streamId ?? 0,
    segmentId: segmentOf(ctx, job),
    parentId: job.parentId ?? null,
    lane: job.lane ?? 'interactive',
    priority: job.priority ?? 0,
    wait: depsOpen ? 'deps' : later ? 'time' : null,
    runAt: job.runAt ?? null,
    depsLeft: depsOpen ?? 0,
    payload: job.payload,
    size: job.size ?? null,
    items: job.items ?? 1,
    badId: job.badId ?? null,
    createdAt: ctx.now,
  }
}

function segmentOf(ctx: EnqueueContext, job: NewJob): number | null {
  if (job.segment == null || typeof job.segment === 'number') return job.segment ?? null
  const id = ctx.segmentRefs.get(job.segment)
  if (id === undefined) throw new UsageError(`No segment called ${job.segment} is added by this work.`)
  return id
}

async function insert(ctx: EnqueueContext, rows: readonly InsertRow[]): Promise<(number | null)[]> {
  const ids = await ctx.driver.insertJobs(ctx.tx, rows)
  const { changes } = ctx
  for (const [index, row] of rows.entries()) {
    if (ids[index] == null) continue
    changes.tally(row.kind, row.wait ?? 'ready', 1)
    if (row.segmentId !== null) changes.segment(row.segmentId).jobs += 1
    if (row.wait === null) changes.becameReady += 1
    else if (row.wait === 'time') changes.due(row.runAt)
  }
  return ids
}

type FoundEdges = { edges: Edge[]; open: number; met: Set<number>; broken: { id: number; state: JobState }[] }

/** How the jobs to wait for stand now; on PostgreSQL they are locked so that none settles meanwhile. */
async function openEdges(tx: Tx, wanted: ReadonlyMap<number, OnDepFailure>): Promise<FoundEdges> {
  const found: FoundEdges = { edges: [], open: 0, met: new Set(), broken: [] }
  const lock = tx.dialect === 'postgres' ? ' ORDER BY id FOR SHARE' : ''
  const seen = new Set<number>()
  // Each wave holds the halves of those jobs of the one before that were split.
  let wave: Wanted = new Map(wanted)
  while (wave.size > 0) {
    const skipped: number[] = []
    const ids = [...wave.keys()].sort((a, b) => a - b)
    for (const part of chunks(ids, IDS_PER_STATEMENT_MAX)) {
      const rows = await tx.all<{ id: number; state: JobState }>(
        `SELECT id, state FROM jobs WHERE id IN (${marks(part.length)})${lock}`,
        part,
      )
      const stateOf = new Map(rows.map((row) => [row.id, row.state]))
      for (const id of part) {
        seen.add(id)
        const state = stateOf.get(id)
        found.edges.push({ depId: id, onFailure: wave.get(id)! })
        // What is no longer there was pruned.
        if (state === undefined || state === 'done' || state === 'skipped') found.met.add(id)
        else if (state === 'failed' || state === 'canceled') found.broken.push({ id, state })
        if (state === 'skipped') skipped.push(id)
      }
    }
    wave = await halvesOf(tx, skipped, wave)
    for (const id of seen) wave.delete(id)
  }
  found.open = found.edges.length - found.met.size
  return found
}

/** Whoever waits for a batch that was split waits for its halves, in the same way. */
async function halvesOf(tx: Tx, skipped: readonly number[], wanted: Wanted): Promise<Wanted> {
  const halves: Wanted = new Map()
  for (const part of chunks(skipped, IDS_PER_STATEMENT_MAX)) {
    const among = oneOf(tx, part)
    const rows = await tx.all<{ id: number; split_of: number }>(
      `SELECT id, split_of FROM jobs WHERE split_of ${among.sql}`,
      among.params,
    )
    for (const row of rows) halves.set(row.id, wanted.get(row.split_of)!)
  }
  return halves
}

async function writeEdges(tx: Tx, jobId: number, { edges, met }: FoundEdges): Promise<void> {
  for (const edge of edges) {
    await tx.run(
      `INSERT INTO job_deps(dep_id, job_id, on_failure, met) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      [edge.depId, jobId, edge.onFailure, met.has(edge.depId) ? 1 : 0],
    )
  }
}

/** Indexes such that a job comes after those it names; a cycle is refused. */
export function inDependencyOrder(jobs: readonly NewJob[]): number[] {
  const indexOfRef = new Map<string, number>()
  for (const [index, job] of jobs.entries()) {
    if (job.ref === undefined) continue
    if (indexOfRef.has(job.ref)) throw new UsageError(`Two jobs of one call have the ref ${job.ref}.`)
    indexOfRef.set(job.ref, index)
  }
  const left = jobs.map((job) => (job.after ?? []).filter((dep) => typeof dep === 'string').length)
  const dependents: number[][] = jobs.map(() => [])
  for (const [index, job] of jobs.entries()) {
    for (const dep of job.after ?? []) {
      if (typeof dep === 'number') continue
      const depIndex = indexOfRef.get(dep)
      if (depIndex === undefined)
        throw new UsageError(`A job waits for ${dep}, which this call does not enqueue.`)
      dependents[depIndex]!.push(index)
    }
  }
  const order = left.flatMap((n, index) => (n === 0 ? [index] : []))
  for (let at = 0; at < order.length; at++) {
    for (const dependent of dependents[order[at]!]!) {
      left[dependent]! -= 1
      if (left[dependent] === 0) order.push(dependent)
    }
  }
  if (order.length < jobs.length) {
    const stuck = jobs.flatMap((job, index) => (left[index]! > 0 ? [job.ref ?? job.kind] : []))
    throw new UsageError(`These jobs wait for each other in a circle: ${stuck.slice(0, 10).join(', ')}.`, {
      code: 'dependency-cycle',
    })
  }
  return order
}

function held(id: number | null): number {
  if (id === null) throw new TidemarkError('A job without a key was refused as a duplicate.', { kind: 'bug' })
  return id
}
