/**
 * What the end of a job does to those that wait for it.
 *
 * An edge (dep, job) is met when the dependency is done or skipped, or when it failed and the edge says
 * `run`. With `fail` or `cancel` the dependent ends too, and so on down the graph; its edge stays unmet, so
 * that trying the dependency again can bring it back.
 */
import { type Changes, oneOf } from './changes.ts'
import type { OnDepFailure, Tx } from './contract.ts'
import type { JobState, Stage } from './states.ts'

/** A file of SQLite has a parameter for each id, a server one for all: there a round trip is what costs. */
const IDS_PER_STATEMENT_MAX = { file: 500, server: 10_000 }

export type DependencyContext = { tx: Tx; changes: Changes; now: number }
type Ended = { id: number; state: JobState }

/** Follows all consequences of `ended`, breadth first; a job ends once, so this ends. */
export async function endDependencies(ctx: DependencyContext, ended: readonly Ended[]): Promise<void> {
  let wave = ended
  while (wave.length > 0) {
    const next: Ended[] = []
    for (const part of statementChunks(ctx.tx, wave)) {
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
  if (edges.length === 0) return
  const metOf = new Map<number, number>()
  for (const edge of edges) metOf.set(edge.job_id, (metOf.get(edge.job_id) ?? 0) + 1)
  for (const part of statementChunks(ctx.tx, [...metOf.keys()])) await unblock(ctx, part, metOf)
}

/** Those with as many edges met share a statement. Sent one behind the other and waited for together. */
async function unblock(
  { tx, changes, now }: DependencyContext,
  ids: readonly number[],
  metOf: ReadonlyMap<number, number>,
): Promise<void> {
  const sent: Promise<unknown>[] = [lockInOrder(tx, ids)]
  const updates = [...Map.groupBy(ids, (id) => metOf.get(id)!)].map(([met, together]) => {
    const among = oneOf(tx, together)
    return tx.all<{ kind: string; wait: 'deps' | 'time' | null; run_at: number | null }>(
      `UPDATE jobs SET deps_left = deps_left - ?,
         wait = CASE WHEN deps_left > ? THEN 'deps' WHEN run_at > ? THEN 'time' ELSE NULL END
       WHERE id ${among.sql} AND state = 'pending' AND wait = 'deps' RETURNING kind, wait, run_at`,
      [met, met, now, ...among.params],
    )
  })
  await Promise.all([...sent, ...updates])
  for (const rows of updates) {
    for (const job of await rows) {
      if (job.wait === 'deps') continue
      changes.moved(job.kind, 'deps', job.wait ?? 'ready')
      if (job.wait === 'time') changes.due(job.run_at)
      else changes.becameReady += 1
    }
  }
}

/** In the order of ids, so that two processes never lock the same rows crosswise. */
async function lockInOrder(tx: Tx, ids: readonly number[]): Promise<void> {
  if (tx.dialect !== 'postgres' || ids.length < 2) return
  const among = oneOf(tx, ids)
  await tx.run(`SELECT id FROM jobs WHERE id ${among.sql} ORDER BY id FOR UPDATE`, among.params)
}

type Dependent = {
  job_id: number
  dep_id: number
  on_failure: OnDepFailure
  kind: string
  segment_id: number | null
}

async function breakDependents(ctx: DependencyContext, ids: readonly number[]): Promise<Ended[]> {
  const { tx } = ctx
  const among = oneOf(tx, ids)
  const found = await tx.all<Dependent>(
    `SELECT d.job_id, d.dep_id, d.on_failure, j.kind, j.segment_id FROM job_deps d JOIN jobs j ON j.id = d.job_id
     WHERE d.dep_id ${among.sql} AND d.met = 0 AND d.on_failure <> 'run'
       AND j.state = 'pending' AND j.wait = 'deps' ORDER BY d.job_id, d.dep_id`,
    among.params,
  )
  // A job that waited for several of them ends because of the first.
  const dependents = new Map<number, Dependent>()
  for (const one of found) if (!dependents.has(one.job_id)) dependents.set(one.job_id, one)
  const ended: Ended[] = []
  for (const part of statementChunks(tx, [...dependents.values()]))
    ended.push(...(await breakTogether(ctx, part)))
  return ended
}

/** In the error of a job that ended because another did, which is the one to look at. */
export const BROKEN_CODE = 'dependency'

/** Those that end for the same reason share a statement. */
async function breakTogether(
  { tx, changes, now }: DependencyContext,
  dependents: readonly Dependent[],
): Promise<Ended[]> {
  const locked = lockInOrder(
    tx,
    dependents.map((one) => one.job_id),
  )
  const groups = Map.groupBy(dependents, (one) => `${one.dep_id} ${one.on_failure}`)
  const ends = [...groups.values()].map(async (group) => {
    const { dep_id, on_failure } = group[0]!
    const state: JobState = on_failure === 'fail' ? 'failed' : 'canceled'
    const message = `job #${dep_id}, which it waited for, ended without success`
    const among = oneOf(
      tx,
      group.map((one) => one.job_id),
    )
    const rows = await tx.all<{ id: number }>(
      `UPDATE jobs SET state = ?, settled_at = ?, error = ?
       WHERE id ${among.sql} AND state = 'pending' AND wait = 'deps' RETURNING id`,
      [state, now, JSON.stringify({ kind: 'permanent', code: BROKEN_CODE, message }), ...among.params],
    )
    const changed = new Set(rows.map((row) => row.id))
    return group.filter((one) => changed.has(one.job_id)).map((one) => ({ ...one, state }))
  })
  await Promise.all([locked, ...ends])
  const ended: Ended[] = []
  for (const group of ends) {
    for (const { job_id, kind, segment_id, state } of await group) {
      changes.moved(kind, 'deps', state as Stage)
      if (state === 'canceled' && segment_id !== null) changes.segment(segment_id).jobs -= 1
      ended.push({ id: job_id, state })
    }
  }
  return ended
}

export function* chunks<T>(list: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size)
}

/** As many as one statement takes. */
export function statementChunks<T>(tx: Tx, list: readonly T[]): Generator<T[]> {
  return chunks(list, IDS_PER_STATEMENT_MAX[tx.isRemote ? 'server' : 'file'])
}
