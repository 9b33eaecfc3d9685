/**
 * Putting jobs into the ledger: keys, dependencies, segments.
 *
 * A key is unique among the unsettled jobs of a kind. Who enqueues it again gets, as the kind says, the
 * job that is there (`ignore`), or a replacement: a pending job is canceled in favour of the new one, a
 * claimed one is asked to stop and the new one waits until it has. A failed holder is revived instead.
 * The halves of a split keep the key of the whole (keys.ts).
 */
import { TidemarkError, UsageError } from '../base/errors.ts'
import type { Changes } from './changes.ts'
import type { Driver, Edge, EnqueueResult, InsertRow, Locks, NewJob, Tx } from './contract.ts'
import { endDependencies } from './dependencies.ts'
import { edgeRows, edgesOf, type FoundEdges, standingOf, type Wanted } from './edges.ts'
import { checkJob } from './input-check.ts'
import {
  type Holder,
  type Holders,
  holdersByKey,
  keyedName,
  keyHolder,
  lockHolder,
  makeWay,
  type Rival,
  refuseCircle,
  rivalsByKey,
  splitJobOf,
  takeOver,
} from './keys.ts'

/** A key can be taken again between our look and our insert, but not for ever. */
const KEY_TRIES_MAX = 5
const JOBS_PER_CALL_MAX = 100_000

export type EnqueueContext = {
  tx: Tx
  driver: Driver
  changes: Changes
  now: number
  locks?: Locks
}

/** `fresh`: jobs that this call has inserted and that are pending. */
type Call = EnqueueContext & {
  fresh: Set<number>
  holders: Holders
  idOfRef: Map<string, number>
  results: EnqueueResult[]
}

export async function enqueueJobs(ctx: EnqueueContext, jobs: readonly NewJob[]): Promise<EnqueueResult[]> {
  if (jobs.length > JOBS_PER_CALL_MAX) {
    throw new UsageError(
      `${jobs.length} jobs in one call; at most ${JOBS_PER_CALL_MAX} fit into one transaction.`,
    )
  }
  for (const job of jobs) checkJob(job)
  const plain = jobs.every((job) => job.key == null && !job.after?.length)
  if (plain) {
    const ids = await insert(
      ctx,
      jobs.map((job) => insertedRow(ctx, job, null)),
    )
    return ids.map((id) => ({ id: held(id), outcome: 'added' }))
  }
  // Keys that others are taking, and jobs that they end or wait for, are locked until they commit.
  const isBrief = ctx.locks === 'apart'
  if (isBrief) ctx.driver.waitForLocks(ctx.tx, 'briefly')
  const results = await enqueueRich(ctx, jobs)
  if (isBrief) ctx.driver.waitForLocks(ctx.tx, 'patiently')
  return results
}

/**
 * Jobs with keys or dependencies, in an order in which every dependency comes first. Those whose keys are free are
 * inserted together, up to the first that needs one of them; what meets a key that is taken goes one by one.
 */
async function enqueueRich(ctx: EnqueueContext, jobs: readonly NewJob[]): Promise<EnqueueResult[]> {
  const results: EnqueueResult[] = new Array(jobs.length)
  const [rivals, holders] = await Promise.all([rivalsByKey(ctx.tx, jobs), holdersByKey(ctx.tx, jobs)])
  const call: Call = { ...ctx, fresh: new Set(), holders, idOfRef: new Map(), results }
  const stopped = ctx.changes.toStop.length
  const run = new Run()
  const endRun = (): Promise<void> => insertRun(call, run.take())
  const answer = (index: number, result: EnqueueResult): void => {
    const { ref } = jobs[index]!
    results[index] = result
    if (ref !== undefined) call.idOfRef.set(ref, result.id)
  }
  for (const index of inDependencyOrder(jobs)) {
    const job = jobs[index]!
    if (run.isNeededBy(job)) await endRun()
    const busy = rivals.of(job)
    const holder = holders.of(job)
    if (!holder && busy.length === 0) run.add(index, job)
    else if (holder && busy.length === 0 && isLeftTo(holder, job)) answer(index, leaveTo(call, holder, job))
    else {
      await endRun()
      answer(index, await enqueueOne(call, job, wantedBy(call, job), busy))
      holders.doubt(job)
    }
  }
  await endRun()
  // A key may have come free meanwhile because its holder was asked to stop: by us, or on PostgreSQL, where it may also
  // have been split, by somebody else.
  if (ctx.tx.dialect === 'postgres' || ctx.changes.toStop.length > stopped)
    await waitForLateRivals(call, jobs, results)
  return results
}

type Planned = { index: number; job: NewJob }

/** Shared by all that wait for nothing: there may be 100,000 of them in a call. */
const NOTHING_WANTED: Readonly<Wanted> = new Map()
const NO_EDGES: FoundEdges = { edges: [], open: 0, met: new Set(), broken: [] }

/** Jobs that can be inserted by one statement: no two have the same key, and none waits for another. */
class Run {
  #planned: Planned[] = []
  readonly #keys = new Set<string>()
  readonly #refs = new Set<string>()

  isNeededBy(job: NewJob): boolean {
    if (this.#planned.length === 0) return false
    if (job.key != null && this.#keys.has(keyedName(job))) return true
    return this.#refs.size > 0 && (job.after?.some((dep) => this.#refs.has(dep as string)) ?? false)
  }

  add(index: number, job: NewJob): void {
    this.#planned.push({ index, job })
    if (job.key != null) this.#keys.add(keyedName(job))
    if (job.ref !== undefined) this.#refs.add(job.ref)
  }

  take(): Planned[] {
    const planned = this.#planned
    this.#planned = []
    this.#keys.clear()
    this.#refs.clear()
    return planned
  }
}

async function insertRun(call: Call, run: readonly Planned[]): Promise<void> {
  if (run.length === 0) return
  const { tx, driver, fresh, idOfRef, results } = call
  const wanted = run.map(({ job }) => (job.after?.length ? wantedBy(call, job) : NOTHING_WANTED))
  const waitedFor = new Set<number>()
  for (const deps of wanted) for (const id of deps.keys()) waitedFor.add(id)
  const standing = await standingOf(tx, waitedFor, fresh)
  const found = wanted.map((deps) => (deps.size > 0 ? edgesOf(deps, standing) : NO_EDGES))
  const ids = await insert(
    call,
    run.map(({ job }, at) => insertedRow(call, job, found[at]!.open)),
  )
  const edges: Edge[] = []
  const broken = new Map<number, FoundEdges['broken'][number]>()
  for (const [at, { index, job }] of run.entries()) {
    const id = ids[at]
    if (id == null) continue
    const its = found[at]!
    refuseFuture(id, its)
    for (const edge of edgeRows(id, its)) edges.push(edge)
    for (const dep of its.broken) broken.set(dep.id, dep)
    results[index] = { id, outcome: 'added' }
    if (job.ref !== undefined) idOfRef.set(job.ref, id)
    fresh.add(id)
    call.holders.set(job, { id, state: 'pending' })
  }
  if (edges.length > 0) await driver.insertEdges(tx, edges, 'new jobs')
  await endBroken(call, [...broken.values()])
  // Somebody took these keys since we looked.
  for (const [at, { index, job }] of run.entries()) {
    if (ids[at] != null) continue
    const result = await enqueueOne(call, job, new Map(wanted[at]), [])
    results[index] = result
    if (job.ref !== undefined) idOfRef.set(job.ref, result.id)
    call.holders.doubt(job)
  }
}

/** Whoever waits for one that ended without success may end too, and so on: nothing that was known is sure after it. */
async function endBroken(call: Call, broken: FoundEdges['broken']): Promise<void> {
  if (broken.length === 0) return
  await endDependencies(call, broken)
  call.fresh.clear()
  call.holders.doubtAll()
}

function wantedBy({ idOfRef }: Call, job: NewJob): Wanted {
  const wanted: Wanted = new Map()
  for (const dep of job.after ?? [])
    wanted.set(typeof dep === 'number' ? dep : idOfRef.get(dep)!, job.onDepFailure ?? 'fail')
  return wanted
}

/** A job that is not there was pruned; one that cannot have been there yet is a mistake. */
function refuseFuture(id: number, { edges }: FoundEdges): void {
  const future = edges.find((edge) => edge.depId >= id)
  if (future) throw new UsageError(`There is no job #${future.depId} to wait for.`, { code: 'job-unknown' })
}

function isLeftTo(holder: Pick<Holder, 'state'>, job: NewJob): boolean {
  return holder.state !== 'failed' && (job.onKeyTaken ?? 'ignore') === 'ignore'
}

function leaveTo(ctx: EnqueueContext, holder: Pick<Holder, 'id'>, job: NewJob): EnqueueResult {
  countElsewhere(ctx, job)
  return { id: holder.id, outcome: 'ignored' }
}

async function openEdges({ tx, fresh }: Call, wanted: Wanted): Promise<FoundEdges> {
  return edgesOf(wanted, await standingOf(tx, wanted.keys(), fresh))
}

async function enqueueOne(ctx: Call, job: NewJob, wanted: Wanted, rivals: Rival[]): Promise<EnqueueResult> {
  const replaced: number[] = []
  const halves = rivals.filter((rival) => !rival.stopping)
  if (halves.length > 0 && (job.onKeyTaken ?? 'ignore') === 'ignore') return leaveToHalves(ctx, job, halves)
  for (const half of halves) {
    const holder = await lockHolder(ctx.tx, half.id)
    if (holder) await displace(ctx, holder, job, wanted)
    if (holder) replaced.push(holder.id)
  }
  // Canceled but not yet stopped: it has given up the key, and whoever has it next waits for it.
  for (const rival of rivals) if (rival.stopping) wanted.set(rival.id, 'run')
  // Whoever has the key next in this call finds them dealt with: the new job has it.
  rivals.length = 0
  let found = await openEdges(ctx, wanted)
  for (let tries = 0; tries < KEY_TRIES_MAX; tries++) {
    const [id] = await insert(ctx, [insertedRow(ctx, job, found.open)])
    if (id != null) {
      refuseFuture(id, found)
      await writeEdges(ctx, id, found)
      for (const from of replaced) await takeOver(ctx.tx, { from, to: id })
      ctx.fresh.add(id)
      await endBroken(ctx, found.broken)
      return { id, outcome: replaced.length > 0 ? 'replaced' : 'added' }
    }
    const holder = await keyHolder(ctx.tx, job.kind, job.key!)
    if (!holder) continue // it settled, or was asked to stop, in between: the key is free again
    if (isLeftTo(holder, job)) return leaveTo(ctx, holder, job)
    if (holder.state === 'failed') {
      wanted.delete(holder.id)
      await refuseCircle(ctx.tx, [...wanted.keys()], holder.id)
      return revive(ctx, job, holder, await openEdges(ctx, wanted))
    }
    await displace(ctx, holder, job, wanted)
    replaced.push(holder.id)
    found = await openEdges(ctx, wanted)
  }
  throw new TidemarkError(
    `The key ${job.key} of ${job.kind} changed hands ${KEY_TRIES_MAX} times in a row.`,
    {
      kind: 'transient',
    },
  )
}

/** Makes way for a new job, which waits for what `holder` leaves to wait for. */
async function displace(ctx: Call, holder: Holder, job: NewJob, wanted: Wanted): Promise<void> {
  wanted.delete(holder.id)
  ctx.fresh.delete(holder.id)
  await refuseCircle(ctx.tx, [...wanted.keys()], holder.id)
  // The new job accounts for the items: outside of the segment, that needs nothing more for them.
  if (holder.segment_id !== null && holder.segment_id !== segmentOf(job))
    ctx.changes.segment(holder.segment_id).left += holder.items
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
  if (segmentOf(job) !== halves[0]!.segment_id) countElsewhere(ctx, job)
  return { id, outcome: 'revived' }
}

/** The job that has the key accounts for the items; in the segment that asked again they need nothing more. */
function countElsewhere(ctx: EnqueueContext, job: NewJob): void {
  const segment = segmentOf(job)
  if (segment !== null) ctx.changes.segment(segment).skipped += job.items ?? 1
}

async function waitForLateRivals(
  ctx: Call,
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
async function waitForMore(ctx: Call, id: number, late: readonly number[]): Promise<void> {
  const { tx, changes } = ctx
  const edges = await tx.all<{ dep_id: number }>(`SELECT dep_id FROM job_deps WHERE job_id = ?`, [id])
  const known = new Set(edges.map((edge) => edge.dep_id))
  const wanted: Wanted = new Map()
  for (const depId of late) if (!known.has(depId)) wanted.set(depId, 'run')
  if (wanted.size === 0) return
  const found = await openEdges(ctx, wanted)
  const row = await tx.get<{ kind: string; wait: 'deps' | 'time' | null }>(
    `SELECT kind, wait FROM jobs WHERE id = ? AND state = 'pending'`,
    [id],
  )
  if (!row || found.open === 0) return
  await writeEdges(ctx, id, found)
  await tx.run(`UPDATE jobs SET wait = 'deps', deps_left = deps_left + ? WHERE id = ?`, [found.open, id])
  changes.moved(row.kind, row.wait ?? 'ready', 'deps')
  if (row.wait === null) changes.becameReady -= 1
  await endBroken(ctx, found.broken)
}

/** The failed job starts over as it is asked for now; a checkpoint is kept only for the same payload. */
async function revive(ctx: Call, job: NewJob, holder: Holder, found: FoundEdges): Promise<EnqueueResult> {
  const { tx, changes } = ctx
  const row = insertedRow(ctx, job, found.open)
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
  await writeEdges(ctx, holder.id, found)
  changes.moved(job.kind, 'failed', row.wait ?? 'ready')
  if (row.wait === 'time') changes.due(row.runAt)
  else if (row.wait === null) changes.becameReady += 1
  if (row.segmentId !== holder.segment_id) countElsewhere(ctx, job)
  await endBroken(ctx, found.broken)
  return { id: holder.id, outcome: 'revived' }
}

function insertedRow(ctx: EnqueueContext, job: NewJob, depsOpen: number | null): InsertRow {
  const later = job.runAt != null && job.runAt > ctx.now
  return {
    kind: job.kind,
    key: job.key ?? null,
    streamId: job.streamId ?? 0,
    segmentId: segmentOf(job),
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

function segmentOf({ segment }: NewJob): number | null {
  if (typeof segment === 'string') throw new UsageError(`No segment called ${segment} is added by this work.`)
  return segment ?? null
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

async function writeEdges({ tx, driver }: EnqueueContext, jobId: number, found: FoundEdges): Promise<void> {
  if (found.edges.length > 0) await driver.insertEdges(tx, edgeRows(jobId, found), 'any jobs')
}

/** Indexes such that a job comes after those it names; a cycle is refused. */
export function inDependencyOrder(jobs: readonly NewJob[]): number[] {
  const indexOfRef = new Map<string, number>()
  for (const [index, job] of jobs.entries()) {
    if (job.ref === undefined) continue
    if (indexOfRef.has(job.ref)) throw new UsageError(`Two jobs of one call have the ref ${job.ref}.`)
    indexOfRef.set(job.ref, index)
  }
  const left = jobs.map(() => 0)
  const dependents = new Map<number, number[]>()
  for (const [index, job] of jobs.entries()) {
    for (const dep of job.after ?? []) {
      if (typeof dep === 'number') continue
      const depIndex = indexOfRef.get(dep)
      if (depIndex === undefined)
        throw new UsageError(`A job waits for ${dep}, which this call does not enqueue.`)
      left[index]! += 1
      const list = dependents.get(depIndex)
      if (list) list.push(index)
      else dependents.set(depIndex, [index])
    }
  }
  const order: number[] = []
  for (const [index, n] of left.entries()) if (n === 0) order.push(index)
  for (let at = 0; at < order.length; at++) {
    for (const dependent of dependents.get(order[at]!) ?? []) {
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
