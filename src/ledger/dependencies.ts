/**
 * What the end of a job does to those that wait for it.
 *
 * An edge (dep, job) is met when the dependency is done or skipped, or when it failed and the edge says
 * `run`. With `fail` or `cancel` the dependent ends too, and so on down the graph; its edge stays unmet, so
 * that trying the dependency again can bring it back.
 */
import { type Changes, marks, oneOf } from './changes.ts'
import type { OnDepFailure, Tx } from './contract.ts'
import type { JobState, Stage } from './states.ts'

/** Parameters per statement; both databases allow far more. */
export const IDS_PER_STATEMENT_MAX = 500

export type DependencyContext = { tx: Tx; changes: Changes; now: number }
type Ended = { id: number; state: JobState }

/** Follows all consequences of `ended`, breadth first; a job ends once, so this ends. */
export async function endDependencies(ctx: DependencyContext, ended: readonly Ended[]): Promise<void> {
  let wave = ended
  while (wave.length > 0) {
    const next: Ended[] = []
    for (const part of chunks(wave, IDS_PER_STATEMENT_MAX)) {
      const good = part.filter((job) => job.state === 'done' || job.state === 'skipped').map((job) => job.id)
      const broken = part
        .filter((job) => job.state === 'failed' || job.state === 'canceled')
        .map((job) => job.id)
      if (good.length > 0) await meetEdges(ctx, good, '')
      if (broken.length > 0) {
        await meetEdges(ctx, broken, `AND on_failure = 'run'`)
        next.push(...(await breakDependents(ctx, broken)))
      }
    }
    wave = next
  }
}

async function meetEdges(ctx: DependencyContext, ids: readonly number[], which: string): Promise<void> {
  const among = oneOf(ctx.tx, ids)
  const edges = await ctx.tx.all<{ job_id: number }>(
    `UPDATE job_deps SET met = 1 WHERE dep_id ${among.sql} AND met = 0 ${which} RETURNING job_id`,
    among.params,
  )
  const metOf = new Map<number, number>()
  for (const edge of edges) metOf.set(edge.job_id, (metOf.get(edge.job_id) ?? 0) + 1)
  // In the order of ids, so that two processes never lock the same rows crosswise.
  for (const jobId of [...metOf.keys()].sort((a, b) => a - b)) await unblock(ctx, jobId, metOf.get(jobId)!)
}

async function unblock({ tx, changes, now }: DependencyContext, jobId: number, met: number): Promise<void> {
  const rows = await tx.all<{ kind: string; wait: 'deps' | 'time' | null; run_at: number | null }>(
    `UPDATE jobs SET deps_left = deps_left - ?,
       wait = CASE WHEN deps_left > ? THEN 'deps' WHEN run_at > ? THEN 'time' ELSE NULL END
     WHERE id = ? AND state = 'pending' AND wait = 'deps' RETURNING kind, wait, run_at`,
    [met, met, now, jobId],
  )
  const job = rows[0]
  if (!job || job.wait === 'deps') return
  changes.moved(job.kind, 'deps', job.wait ?? 'ready')
  if (job.wait === 'time') changes.due(job.run_at)
  else changes.becameReady += 1
}

type Dependent = {
  job_id: number
  dep_id: number
  on_failure: OnDepFailure
  kind: string
  segment_id: number | null
}

async function breakDependents(ctx: DependencyContext, ids: readonly number[]): Promise<Ended[]> {
  const { tx, changes, now } = ctx
  const dependents = await tx.all<Dependent>(
    `SELECT d.job_id, d.dep_id, d.on_failure, j.kind, j.segment_id FROM job_deps d JOIN jobs j ON j.id = d.job_id
     WHERE d.dep_id IN (${marks(ids.length)}) AND d.met = 0 AND d.on_failure <> 'run'
       AND j.state = 'pending' AND j.wait = 'deps' ORDER BY d.job_id`,
    ids,
  )
  const ended: Ended[] = []
  for (const { job_id, dep_id, on_failure, kind, segment_id } of dependents) {
    const state: JobState = on_failure === 'fail' ? 'failed' : 'canceled'
    const message = `job #${dep_id}, which it waited for, ended without success`
    const changed = await tx.run(
      `UPDATE jobs SET state = ?, settled_at = ?, error = ? WHERE id = ? AND state = 'pending' AND wait = 'deps'`,
      [state, now, JSON.stringify({ kind: 'permanent', message }), job_id],
    )
    if (changed === 0) continue
    changes.moved(kind, 'deps', state as Stage)
    if (state === 'canceled' && segment_id !== null) changes.segment(segment_id).jobs -= 1
    ended.push({ id: job_id, state })
  }
  return ended
}

export function* chunks<T>(list: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size)
}
