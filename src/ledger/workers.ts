/**
 * Owners of leases. A worker row is one incarnation of one process: it is live until its lease runs out
 * or its process is seen to be dead, then gone for good, and all that it held is pending again.
 *
 * One lease covers all jobs of a process, so a heartbeat is one row however many jobs it holds.
 */
import type { Changes } from './changes.ts'
import type { Tx, WorkerInfo } from './contract.ts'
import { chunks } from './dependencies.ts'

export type WorkerRow = WorkerInfo & {
  id: number
  state: 'live' | 'gone'
  pid_start: string
  started_at: number
  heartbeat_at: number
  lease_until: number
}

export type WorkerContext = { tx: Tx; changes: Changes; now: number }

export async function registerWorker(
  { tx, now }: WorkerContext,
  info: WorkerInfo,
  leaseMs: number,
): Promise<number> {
  const row = await tx.get<{ id: number }>(
    `INSERT INTO workers(host, pid, pid_start, name, started_at, heartbeat_at, lease_until)
     VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    [info.host, info.pid, info.pidStart, info.name, now, now, now + leaseMs],
  )
  return row!.id
}

/** False when the owner was declared gone: everything it holds belongs to others now. */
export async function extendLease(tx: Tx, owner: number, now: number, leaseMs: number): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE workers SET heartbeat_at = ?, lease_until = ? WHERE id = ? AND state = 'live'`,
    [now, now + leaseMs, owner],
  )
  return changed === 1
}

export function liveWorkers(tx: Tx): Promise<WorkerRow[]> {
  return tx.all<WorkerRow>(`SELECT * FROM workers WHERE state = 'live' ORDER BY id`)
}

/** Declares gone whose lease ran out, and those that `isDead` knows to be dead; takes back their jobs. */
export async function reclaimFromGone(
  ctx: WorkerContext,
  isDead: (worker: WorkerRow) => boolean,
  self: number,
): Promise<{ owners: number[]; jobs: number }> {
  const live = await liveWorkers(ctx.tx)
  const suspects = live.filter((w) => w.id !== self && (w.lease_until < ctx.now || isDead(w)))
  const owners: number[] = []
  let jobs = 0
  for (const worker of suspects) {
    // Fenced: a heartbeat that came in meanwhile saves the owner, unless its process is dead.
    const changed = await ctx.tx.run(
      `UPDATE workers SET state = 'gone' WHERE id = ? AND state = 'live' AND (lease_until < ? OR ? = 1)`,
      [worker.id, ctx.now, isDead(worker) ? 1 : 0],
    )
    if (changed === 0) continue
    owners.push(worker.id)
    jobs += await releaseAll(ctx, worker.id)
  }
  return { owners, jobs }
}

/** A worker that leaves by itself: what it still holds goes back. */
export async function retireWorker(ctx: WorkerContext, owner: number): Promise<number> {
  await ctx.tx.run(`UPDATE workers SET state = 'gone' WHERE id = ?`, [owner])
  return releaseAll(ctx, owner)
}

/** Gives back jobs that were claimed but not started. */
export async function releaseJobs(
  { tx, changes }: WorkerContext,
  owner: number,
  jobs: readonly { id: number; attempt: number }[],
): Promise<number> {
  let released = 0
  for (const part of chunks(jobs, RELEASE_MAX)) {
    const rows = await tx.all<{ kind: string }>(
      `UPDATE jobs SET state = 'pending', wait = NULL, owner = NULL
       WHERE owner = ? AND state = 'claimed' AND cancel_requested = 0
         AND (id, attempt) IN (VALUES ${part.map(() => PAIR).join(',')}) RETURNING kind`,
      [owner, ...part.flatMap(({ id, attempt }) => [id, attempt])],
    )
    for (const job of rows) changes.moved(job.kind, 'claimed', 'ready')
    released += rows.length
  }
  changes.becameReady += released
  return released
}

const RELEASE_MAX = 500
/** PostgreSQL takes the parameters of VALUES for text unless told otherwise. */
const PAIR = '(CAST(? AS BIGINT), CAST(? AS BIGINT))'

/** An interrupted attempt costs no attempt: failures stay as they are. Those being stopped are stopped now. */
async function releaseAll(ctx: WorkerContext, owner: number): Promise<number> {
  const { tx, changes, now } = ctx
  const stopped = await tx.all<{ id: number; kind: string; segment_id: number | null }>(
    `UPDATE jobs SET state = 'canceled', settled_at = ? WHERE owner = ? AND state = 'claimed' AND cancel_requested = 1
     RETURNING id, kind, segment_id`,
    [now, owner],
  )
  for (const job of stopped) {
    changes.moved(job.kind, 'claimed', 'canceled')
    if (job.segment_id !== null) changes.segment(job.segment_id).jobs -= 1
    changes.ended.push({ id: job.id, state: 'canceled' })
  }
  const released = await tx.all<{ kind: string }>(
    `UPDATE jobs SET state = 'pending', wait = NULL, owner = NULL WHERE owner = ? AND state = 'claimed' RETURNING kind`,
    [owner],
  )
  for (const job of released) changes.moved(job.kind, 'claimed', 'ready')
  changes.becameReady += released.length
  return released.length + stopped.length
}
