/**
 * Putting jobs into the ledger: keys, dependencies, segments.
 *
 * A key is unique among the unsettled jobs of a kind. Who enqueues it again gets, as the kind says, the
 * job that is there (`ignore`), or a replacement: a pending job is canceled in favour of the new one, a
 * claimed one is asked to stop and the new one waits until it has. A failed holder is revived instead.
 */
import { TidemarkError, UsageError } from '../errors.ts'
import { type Changes, marks } from './changes.ts'
import type { Driver, EnqueueResult, InsertRow, NewJob, OnDepFailure, Tx } from './contract.ts'
import { chunks, endDependencies, IDS_PER_STATEMENT_MAX } from './dependencies.ts'
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
  const stopping = jobs.some((job) => job.key != null) ? await stoppingJobs(ctx.tx) : []
  for (const index of inDependencyOrder(jobs)) {
    const job = jobs[index]!
    const wanted: Wanted = new Map()
    for (const dep of job.after ?? [])
      wanted.set(typeof dep === 'number' ? dep : idOfRef.get(dep)!, job.onDepFailure ?? 'fail')
    // Canceled but not yet stopped: it has given up the key, and whoever has it next waits for it.
    for (const other of stopping)
      if (other.key === job.key && other.kind === job.kind) wanted.set(other.id, 'run')
    const result = await enqueueOne(ctx, job, wanted)
    results[index] = result
    if (job.ref !== undefined) idOfRef.set(job.ref, result.id)
  }
  return results
}

async function enqueueOne(ctx: EnqueueContext, job: NewJob, wanted: Wanted): Promise<EnqueueResult> {
  const replaced: number[] = []
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
    if (!holder) continue // it settled in between: the key is free again
    if (holder.state !== 'failed' && (job.onKeyTaken ?? 'ignore') === 'ignore')
      return { id: holder.id, outcome: 'ignored' }
    wanted.delete(holder.id)
    await refuseCircle(ctx.tx, [...wanted.keys()], holder.id)
    if (holder.state === 'failed') return revive(ctx, job, holder, await openEdges(ctx.tx, wanted))
    for (const edge of await makeWay(ctx, holder))
      if (!wanted.has(edge.depId)) wanted.set(edge.depId, edge.onFailure)
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

type Holder = {
  id: number
  state: JobState
  wait: 'deps' | 'time' | null
  owner: number | null
  segment_id: number | null
}

function keyHolder(tx: Tx, kind: string, key: string): Promise<Holder | undefined> {
  return tx.get<Holder>(
    `SELECT id, state, wait, owner, segment_id FROM jobs WHERE kind = ? AND key = ?
     AND state IN ('pending', 'claimed', 'failed') AND cancel_requested = 0${forUpdate(tx)}`,
    [kind, key],
  )
}

/** Jobs with a key that were asked to stop and have not yet; there are few at any time. */
function stoppingJobs(tx: Tx): Promise<{ id: number; kind: string; key: string }[]> {
  return tx.all(
    `SELECT id, kind, key FROM jobs WHERE state = 'claimed' AND cancel_requested = 1 AND key IS NOT NULL`,
  )
}

/** Whoever takes the place of `holder` is waited for by its dependents, so it cannot wait for them. */
async function refuseCircle(tx: Tx, after: readonly number[], holder: number): Promise<void> {
  for (const part of chunks(after, IDS_PER_STATEMENT_MAX)) {
    const circle = await tx.get(
      `WITH RECURSIVE up(id) AS (
         SELECT dep_id FROM job_deps WHERE job_id IN (${marks(part.length)}) AND met = 0
         UNION SELECT d.dep_id FROM job_deps d JOIN up ON d.job_id = up.id WHERE d.met = 0)
       SELECT id FROM up WHERE id = ?`,
      [...part, holder],
    )
    if (!circle) continue
    throw new UsageError(
      `A job that takes the place of #${holder} cannot wait for jobs that wait for #${holder}.`,
      {
        code: 'dependency-cycle',
      },
    )
  }
}

/** Frees the key: a pending holder ends now, a claimed one is asked to stop. Returns what the next one waits for. */
async function makeWay(ctx: EnqueueContext, holder: Holder): Promise<Edge[]> {
  const { tx, changes, now } = ctx
  if (holder.state === 'claimed') {
    await tx.run(
      `UPDATE jobs SET cancel_requested = 1, note = 'replaced by a newer job' WHERE id = ? AND state = 'claimed'`,
      [holder.id],
    )
    changes.control = true
    changes.toStop.push({ id: holder.id, owner: holder.owner! })
    return [{ depId: holder.id, onFailure: 'run' }]
  }
  const rows = await tx.all<{ kind: string; stream_id: number }>(
    `UPDATE jobs SET state = 'canceled', note = 'replaced by a newer job', settled_at = ? WHERE id = ? AND state = 'pending'
     RETURNING kind, stream_id`,
    [now, holder.id],
  )
  const row = rows[0]
  if (row) changes.moved(row.kind, holder.wait ?? 'ready', 'canceled')
  if (row && holder.segment_id !== null) changes.segment(holder.segment_id).jobs -= 1
  // What the old one waited for, the new one waits for too: a claimed predecessor that is still stopping.
  const waitFor = await tx.all<{ dep_id: number; on_failure: OnDepFailure }>(
    `SELECT dep_id, on_failure FROM job_deps WHERE job_id = ? AND met = 0`,
    [holder.id],
  )
  return waitFor.map((edge) => ({ depId: edge.dep_id, onFailure: edge.on_failure }))
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
  await endDependencies(ctx, found.broken)
  return { id: holder.id, outcome: 'revived' }
}

/** Those who waited for the old job wait for its replacement. */
async function takeOver(tx: Tx, { from, to }: { from: number; to: number }): Promise<void> {
  await tx.run(`UPDATE job_deps SET dep_id = ? WHERE dep_id = ? AND met = 0 AND job_id <> ?`, [to, from, to])
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
  const ids = [...wanted.keys()].sort((a, b) => a - b)
  const lock = tx.dialect === 'postgres' ? ' ORDER BY id FOR SHARE' : ''
  for (const part of chunks(ids, IDS_PER_STATEMENT_MAX)) {
    const rows = await tx.all<{ id: number; state: JobState }>(
      `SELECT id, state FROM jobs WHERE id IN (${marks(part.length)})${lock}`,
      part,
    )
    const stateOf = new Map(rows.map((row) => [row.id, row.state]))
    for (const id of part) {
      const state = stateOf.get(id)
      found.edges.push({ depId: id, onFailure: wanted.get(id)! })
      // What is no longer there was pruned.
      if (state === undefined || state === 'done' || state === 'skipped') found.met.add(id)
      else if (state === 'failed' || state === 'canceled') found.broken.push({ id, state })
    }
  }
  found.open = found.edges.length - found.met.size
  return found
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

export function forUpdate(tx: Tx): string {
  return tx.dialect === 'postgres' ? ' FOR UPDATE' : ''
}
