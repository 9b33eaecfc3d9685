/**
 * Owners of leases. A worker row is one incarnation of one process: it is live until its lease runs out
 * or its process is seen to be dead, then gone for good, and all that it held is pending again.
 *
 * One lease covers all jobs of a process, so a heartbeat is one row however many jobs it holds.
 */
import type { Changes } from './changes.ts'
import type { Tx, Value, WorkerInfo } from './contract.ts'
import { chunks } from './dependencies.ts'

export type WorkerRow = WorkerInfo & {
  id: number
  state: 'live' | 'gone'
  pid_start: string
  started_at: number
  heartbeat_at: number
  lease_until: number
}

export type HeldJob = { id: number; attempt: number }
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
export async function extendLease(
  tx: Pick<Tx, 'run'>,
  owner: number,
  now: number,
  leaseMs: number,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE workers SET heartbeat_at = ?, lease_until = ? WHERE id = ? AND state = 'live'`,
    [now, now + leaseMs, owner],
  )
  return changed === 1
}

/** When any process last worked on this ledger; null where none ever did, or nobody remembers. */
export async function lastHeartbeatAt(tx: Tx): Promise<number | null> {
  const row = await tx.get<{ at: number | null }>(`SELECT MAX(heartbeat_at) AS at FROM workers`)
  return row?.at ?? null
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
  await ctx.tx.run(`UPDATE workers SET state = 'gone', heartbeat_at = ? WHERE id = ?`, [ctx.now, owner])
  return releaseAll(ctx, owner)
}

/**
 * Gives back jobs of a living owner, which holds them no longer. Those that had not `started` have had no attempt: the
 * next claim counts the same one again, which is safe because nobody can report of a run that never was.
 */
export async function releaseJobs(
  ctx: WorkerContext,
  owner: number,
  jobs: readonly HeldJob[],
  { started }: { started: boolean },
): Promise<number> {
  let released = 0
  for (const part of chunks(jobs, RELEASE_MAX)) {
    released += await endClaims(ctx, {
      sql: `owner = ? AND (id, attempt) IN (VALUES ${part.map(() => PAIR).join(',')})`,
      params: [owner, ...part.flatMap(({ id, attempt }) => [id, attempt])],
      started,
    })
  }
  return released
}

const RELEASE_MAX = 500
/** PostgreSQL takes the parameters of VALUES for text unless told otherwise. */
const PAIR = '(CAST(? AS BIGINT), CAST(? AS BIGINT))'

/** An interrupted attempt costs no try: failures stay as they are. Which jobs had started only their owner knew. */
function releaseAll(ctx: WorkerContext, owner: number): Promise<number> {
  return endClaims(ctx, { sql: `owner = ?`, params: [owner], started: true })
}

type Claims = { sql: string; params: readonly Value[]; started: boolean }

/** Claims that end without an outcome: jobs that were asked to stop have stopped, the others are ready again. */
async function endClaims(
  { tx, changes, now }: WorkerContext,
  { sql, params, started }: Claims,
): Promise<number> {
  const stopped = await tx.all<{ id: number; kind: string; stream_id: number; segment_id: number | null }>(
    `UPDATE jobs SET state = 'canceled', settled_at = ? WHERE state = 'claimed' AND cancel_requested = 1 AND ${sql}
     RETURNING id, kind, stream_id, segment_id`,
    [now, ...params],
  )
  for (const job of stopped) {
    changes.moved(job.kind, 'claimed', 'canceled')
    changes.count('canceled', job.stream_id)
    if (job.segment_id !== null) changes.segment(job.segment_id).jobs -= 1
    changes.ended.push({ id: job.id, state: 'canceled' })
  }
  const released = await tx.all<{ kind: string }>(
    `UPDATE jobs SET state = 'pending', wait = NULL, owner = NULL${started ? '' : ', attempt = attempt - 1'}
     WHERE state = 'claimed' AND cancel_requested = 0 AND ${sql} RETURNING kind`,
    params,
  )
  for (const job of released) changes.moved(job.kind, 'claimed', 'ready')
  changes.becameReady += released.length
  return released.length + stopped.length
}
