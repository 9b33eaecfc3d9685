/**
 * What the engine bench measures, whoever it is: Tidemark, a peer, or the bare database (`limit`).
 * The measurements themselves (measure.ts) are the same code for all of them.
 */

/**
 * A database with its durability: WAL and `synchronous` on SQLite, `synchronous_commit = on` on PostgreSQL; a libSQL
 * server has `synchronous = NORMAL`, and cannot be told otherwise.
 */
export type Database = 'sqlite full' | 'sqlite normal' | 'postgres' | 'libsql'

/** A fresh place for one measurement. Durability is part of it, so that it is equal for all. */
export type Target =
  | { kind: 'sqlite'; file: string; synchronous: 'FULL' | 'NORMAL' }
  | { kind: 'postgres'; url: string; serverPid: number }
  | { kind: 'libsql'; url: string }

export type StartOptions = {
  /** Called as a handler starts, with the number of jobs that it was given. */
  onJobs(count: number): void
  /** What each job does besides. */
  each?: Each
}

/**
 * `insert`: one row of its own into `effects`, by a statement of its own. `fail`: the same, and the effect of one job in
 * 1,000 throws, for good. `child`: it enqueues one job, which does nothing.
 */
export type Each = 'insert' | 'fail' | 'child'

/** There in every database of this bench. */
export const EFFECTS_TABLE = 'CREATE TABLE effects (n BIGINT NOT NULL)'

/**
 * setup → (enqueue… | start → drained) → teardown, once. A drain finds jobs that an earlier process left.
 */
export interface Subject {
  /** Opens the database and creates what is missing in it. Nothing runs yet. */
  setup(): Promise<void>
  /** Resolves when the job is durably stored. */
  enqueueOne(n: number): Promise<void>
  /** One batch through the subject's own bulk call; resolves when it is durably stored. */
  enqueueMany(count: number): Promise<void>
  /** Starts the workers; returns when they are started, not when they are done. */
  start(options: StartOptions): Promise<void>
  /** Called when every job has reached a handler: resolves when every one is durably completed. */
  drained(): Promise<void>
  /**
   * Jobs that are stored and not durably completed (blocked ones aside), or at least whether there are: must be 0 after a
   * drain. Asked while others work, so it must cost next to nothing.
   */
  left(): Promise<number>
  teardown(): Promise<void>
  /** Leaves this many settled jobs behind, as a ledger that has been in use for long. */
  settle?(count: number): Promise<void>
  /** Leaves this many jobs that wait for another job. */
  block?(count: number): Promise<void>
  /** One batch of jobs with keys of their own, all of which are free. */
  enqueueKeyed?(count: number): Promise<void>
  /** In one call: this many jobs, and one that runs after all of them. Calls back when that one runs. */
  fanIn?(count: number, onLast: () => void): Promise<void>
  /** A number of the bare database that is no engine's: see cases.ts. */
  raw?(variant: string, count: number): Promise<number>
}

export type SubjectOptions = {
  target: Target
  /** Jobs that may be in a handler at the same time. */
  concurrency: number
}

/** The payload of every job in this bench. */
export function payload(n: number): { n: number } {
  return { n }
}

export function payloads(count: number): { n: number }[] {
  return Array.from({ length: count }, (_, n) => payload(n))
}

export function sqliteTarget(target: Target): Extract<Target, { kind: 'sqlite' }> {
  if (target.kind !== 'sqlite') throw new Error('this subject needs a SQLite file')
  return target
}

export function libsqlUrl(target: Target): string {
  if (target.kind !== 'libsql') throw new Error('this subject needs a libSQL server')
  return target.url
}

export function postgresUrl(target: Target): string {
  if (target.kind !== 'postgres') throw new Error('this subject needs a PostgreSQL database')
  return target.url
}
