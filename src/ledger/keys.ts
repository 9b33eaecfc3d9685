/**
 * Who has a key. Its holder, of which the unique index allows one; and its rivals, which no longer hold it but
 * whose work under it is not over:
 * - a holder that was asked to stop and is still running: the next one waits for it
 * - the unsettled halves of a holder that was split: together they are the job that has the key
 */
import { UsageError } from '../base/errors.ts'
import { type Changes, forUpdate, oneOf, oneOfTexts, textArray } from './changes.ts'
import type { NewJob, OnDepFailure, Tx } from './contract.ts'
import { statementChunks } from './dependencies.ts'
import { type JobState, stageOf } from './states.ts'

export type Holder = {
  id: number
  kind: string
  state: JobState
  wait: 'deps' | 'time' | null
  owner: number | null
  segment_id: number | null
  items: number
}

export type Rival = {
  id: number
  kind: string
  state: JobState
  segment_id: number | null
  stopping: boolean
}

/** Of a job whose work another one does: nothing is missing without it. */
export const REPLACED_CODE = 'replaced'
const REPLACED = `note = 'replaced by a newer job', note_code = '${REPLACED_CODE}'`
const UNSETTLED = `state IN ('pending', 'claimed', 'failed')`
const HOLDER = `SELECT id, kind, state, wait, owner, segment_id, items FROM jobs`

export function keyHolder(tx: Tx, kind: string, key: string): Promise<Holder | undefined> {
  return tx.get<Holder>(
    `${HOLDER} WHERE kind = ? AND key = ? AND ${UNSETTLED} AND cancel_requested = 0${forUpdate(tx)}`,
    [kind, key],
  )
}

/** The half as it is now, if it still stands in the way. */
export function lockHolder(tx: Tx, id: number): Promise<Holder | undefined> {
  return tx.get<Holder>(`${HOLDER} WHERE id = ? AND ${UNSETTLED} AND cancel_requested = 0${forUpdate(tx)}`, [
    id,
  ])
}

/** A key is one among the jobs of its kind. */
export function keyedName({ kind, key }: { kind: string; key?: string | null }): string {
  return `${kind}\n${key}`
}

/** What is known of who has which key. In doubt it is to be looked at again: `state` is then `failed`. */
export class Holders {
  readonly #byName = new Map<string, Pick<Holder, 'id' | 'state'>>()

  of(job: NewJob): Pick<Holder, 'id' | 'state'> | undefined {
    return job.key == null ? undefined : this.#byName.get(keyedName(job))
  }

  set(job: Pick<NewJob, 'kind' | 'key'>, holder: Pick<Holder, 'id' | 'state'>): void {
    if (job.key != null) this.#byName.set(keyedName(job), holder)
  }

  doubt(job: NewJob): void {
    this.set(job, { id: 0, state: 'failed' })
  }

  doubtAll(): void {
    for (const name of this.#byName.keys()) this.#byName.set(name, { id: 0, state: 'failed' })
  }
}

/** Who has the keys of these jobs now. On PostgreSQL they are locked and stay so; a key can still be taken. */
export async function holdersByKey(tx: Tx, jobs: readonly NewJob[]): Promise<Holders> {
  const holders = new Holders()
  const keysOf = Map.groupBy(
    jobs.filter((job) => job.key != null),
    (job) => job.kind,
  )
  for (const [kind, keyed] of keysOf) {
    for (const part of statementChunks(tx, [...new Set(keyed.map((job) => job.key!))])) {
      const among = oneOfTexts(tx, part)
      const rows = await tx.all<{ id: number; key: string; state: JobState }>(
        `SELECT id, key, state FROM jobs WHERE kind = ? AND key ${among.sql} AND ${UNSETTLED} AND cancel_requested = 0
         ORDER BY id${forUpdate(tx)}`,
        [kind, ...among.params],
      )
      for (const { id, key, state } of rows) holders.set({ kind, key }, { id, state })
    }
  }
  return holders
}

/**
 * Locks these jobs and those that have the keys of others, on PostgreSQL, in the order of their ids. `isBrief`: but for
 * those that somebody else has locked.
 */
export async function lockHolders(
  tx: Tx,
  { ids, jobs, isBrief }: { ids: readonly number[]; jobs: readonly NewJob[]; isBrief: boolean },
): Promise<void> {
  const kinds = textArray(jobs.map(({ kind }) => kind))
  const keys = textArray(jobs.map(({ key }) => key!))
  await tx.run(
    `SELECT id FROM jobs WHERE id = ANY(ARRAY(SELECT unnest(?::bigint[]) UNION ALL
       SELECT holder.id FROM unnest(?::text[], ?::text[]) AS asked(kind, key) CROSS JOIN LATERAL (
         SELECT id FROM jobs WHERE kind = asked.kind AND key = asked.key AND ${UNSETTLED} AND cancel_requested = 0
         LIMIT 1) AS holder))
     ORDER BY id FOR UPDATE${isBrief ? ' SKIP LOCKED' : ''}`,
    [`{${ids.join(',')}}`, kinds, keys],
  )
}

/** For jobs with keys, in the order of ids; both parts have an index of their own that is almost always empty. */
export async function rivalsByKey(tx: Tx, jobs: readonly NewJob[]): Promise<{ of(job: NewJob): Rival[] }> {
  const keys = [...new Set(jobs.flatMap((job) => job.key ?? []))]
  const rivals = new Map<string, Rival[]>()
  for (const part of statementChunks(tx, keys)) {
    const among = oneOfTexts(tx, part)
    const rows = await tx.all<Omit<Rival, 'stopping'> & { key: string; cancel_requested: number }>(
      `SELECT id, kind, key, state, segment_id, cancel_requested FROM jobs
       WHERE state = 'claimed' AND cancel_requested = 1 AND key ${among.sql}
       UNION ALL SELECT id, kind, split_key AS key, state, segment_id, cancel_requested FROM jobs
       WHERE split_key ${among.sql} AND ${UNSETTLED} ORDER BY id`,
      [...among.params, ...among.params],
    )
    for (const { id, kind, key, state, segment_id, cancel_requested } of rows) {
      const name = keyedName({ kind, key })
      const list = rivals.get(name) ?? []
      list.push({ id, kind, state, segment_id, stopping: cancel_requested === 1 })
      rivals.set(name, list)
    }
  }
  return { of: (job) => (job.key == null ? [] : (rivals.get(keyedName(job)) ?? [])) }
}

/** The job whose split, and the splits of its halves, led to this one: whoever waits for it waits for all of them. */
export async function splitJobOf(tx: Tx, half: number): Promise<number> {
  const top = await tx.get<{ id: number }>(
    `WITH RECURSIVE up(id, split_of) AS (
       SELECT id, split_of FROM jobs WHERE id = ?
       UNION SELECT j.id, j.split_of FROM jobs j JOIN up ON j.id = up.split_of)
     SELECT min(id) AS id FROM up`,
    [half],
  )
  return top!.id
}

/** Whoever takes the place of `holder` is waited for by its dependents, so it cannot wait for them. */
export async function refuseCircle(tx: Tx, after: readonly number[], holder: number): Promise<void> {
  for (const part of statementChunks(tx, after)) {
    const among = oneOf(tx, part)
    const circle = await tx.get(
      `WITH RECURSIVE up(id) AS (
         SELECT dep_id FROM job_deps WHERE job_id ${among.sql} AND met = 0
         UNION SELECT d.dep_id FROM job_deps d JOIN up ON d.job_id = up.id WHERE d.met = 0)
       SELECT id FROM up WHERE id = ?`,
      [...among.params, holder],
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

/** Frees the key: a claimed holder is asked to stop, any other ends now. Returns what the next one waits for. */
export async function makeWay(
  { tx, changes, now }: { tx: Tx; changes: Changes; now: number },
  holder: Holder,
): Promise<{ depId: number; onFailure: OnDepFailure }[]> {
  if (holder.state === 'claimed') {
    await tx.run(`UPDATE jobs SET cancel_requested = 1, ${REPLACED} WHERE id = ? AND state = 'claimed'`, [
      holder.id,
    ])
    changes.control = true
    changes.toStop.push({ id: holder.id, owner: holder.owner! })
    return [{ depId: holder.id, onFailure: 'run' }]
  }
  const ended = await tx.run(
    `UPDATE jobs SET state = 'canceled', ${REPLACED}, settled_at = ?
     WHERE id = ? AND state IN ('pending', 'failed')`,
    [now, holder.id],
  )
  if (ended > 0) {
    changes.moved(holder.kind, stageOf(holder.state, holder.wait), 'canceled')
    if (holder.segment_id !== null) changes.segment(holder.segment_id).jobs -= 1
  }
  // What the old one waited for, the new one waits for too: a claimed predecessor that is still stopping.
  const waitFor = await tx.all<{ dep_id: number; on_failure: OnDepFailure }>(
    `SELECT dep_id, on_failure FROM job_deps WHERE job_id = ? AND met = 0`,
    [holder.id],
  )
  return waitFor.map((edge) => ({ depId: edge.dep_id, onFailure: edge.on_failure }))
}

/** Those who waited for the old job wait for its replacement; once, if it replaces several of theirs. */
export async function takeOver(tx: Tx, { from, to }: { from: number; to: number }): Promise<void> {
  const edges = await tx.all<{ job_id: number; on_failure: OnDepFailure }>(
    `DELETE FROM job_deps WHERE dep_id = ? AND met = 0 AND job_id <> ? RETURNING job_id, on_failure`,
    [from, to],
  )
  for (const { job_id, on_failure } of edges) {
    const added = await tx.run(
      `INSERT INTO job_deps(dep_id, job_id, on_failure) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
      [to, job_id, on_failure],
    )
    if (added === 0) await tx.run(`UPDATE jobs SET deps_left = deps_left - 1 WHERE id = ?`, [job_id])
  }
}
