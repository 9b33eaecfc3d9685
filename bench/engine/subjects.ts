/** Who takes part, on which databases, in which cases, and with how much work. */
import type { Database, Subject, SubjectOptions } from './subject.ts'

/**
 * What a subject can meaningfully be asked: `settled` if it keeps finished jobs, `blocked` if it has dependencies,
 * `effects` if its jobs can write, `own` what is compared only with itself.
 */
export type Ability =
  | 'enqueue'
  | 'drain'
  | 'effects'
  | 'together'
  | 'pick up'
  | 'memory'
  | 'settled'
  | 'blocked'
  | 'own'

export type SubjectEntry = {
  name: string
  databases: readonly Database[]
  abilities: readonly Ability[]
  /** Jobs for a drain of one to three seconds on the reference class of machine. */
  drainJobs(database: Database, concurrency: number): number
  /** The same where each job writes a row. */
  effectJobs?: number
  /** For those whose idle poll makes each pick-up slow: how many, and the poll's period. */
  pickUps?: { count: number; spreadMs: number }
  /** Another configuration of a peer that is also there at its best: left out of quick runs. */
  variant?: true
  /** Its configuration, for the reader. */
  note?: string
  create(options: SubjectOptions): Promise<Subject>
}

const ALL: readonly Ability[] = ['enqueue', 'drain', 'pick up', 'memory', 'settled', 'blocked']
const EVERYWHERE: readonly Database[] = ['sqlite full', 'sqlite normal', 'postgres', 'libsql']
const SQLITE: readonly Database[] = ['sqlite full', 'sqlite normal']
const PLAINJOB_POLL_MS = 10
const PLAINJOB_DEFAULT_POLL_MS = 1000

export const SUBJECTS: readonly SubjectEntry[] = [
  {
    name: 'tidemark',
    databases: EVERYWHERE,
    abilities: [...ALL, 'effects', 'together', 'own'],
    drainJobs: () => 100_000,
    effectJobs: 60_000,
    create: async (options) => (await import('./tidemark.ts')).tidemarkSubject(options),
  },
  {
    name: 'plainjob',
    databases: SQLITE,
    abilities: ['enqueue', 'drain', 'pick up', 'memory', 'settled'],
    drainJobs: (database) => (database === 'sqlite full' ? 8_000 : 25_000),
    note: `better-sqlite3, polls every ${PLAINJOB_POLL_MS} ms`,
    create: async (options) =>
      (await import('./plainjob.ts')).plainjobSubject({ ...options, pollMs: PLAINJOB_POLL_MS }),
  },
  {
    name: 'plainjob default',
    variant: true,
    databases: ['sqlite full'],
    abilities: ['pick up'],
    drainJobs: () => 8_000,
    pickUps: { count: 20, spreadMs: PLAINJOB_DEFAULT_POLL_MS },
    note: 'polls every second, as it does if nothing is set',
    create: async (options) =>
      (await import('./plainjob.ts')).plainjobSubject({ ...options, pollMs: PLAINJOB_DEFAULT_POLL_MS }),
  },
  {
    name: 'better-queue',
    databases: SQLITE,
    abilities: ['drain'],
    drainJobs: (_, concurrency) => (concurrency > 10 ? 60_000 : 25_000),
    note: 'for reference: its store is never durable (synchronous = OFF, acknowledged before it is written); for the drain it was forced to the same setting through its private connection; the jobs in flight are one batch, done or failed together',
    create: async (options) => (await import('./better-queue.ts')).betterQueueSubject(options),
  },
  {
    name: 'graphile-worker',
    databases: ['postgres'],
    abilities: ['enqueue', 'drain', 'effects', 'together', 'pick up', 'memory'],
    drainJobs: () => 60_000,
    effectJobs: 15_000,
    note: 'its best: local queue of 4,000, batched completion without delay',
    create: async (options) =>
      (await import('./graphile-worker.ts')).graphileSubject({ ...options, localQueue: 4000 }),
  },
  {
    name: 'graphile-worker 500',
    variant: true,
    databases: ['postgres'],
    abilities: ['drain', 'effects'],
    drainJobs: () => 60_000,
    effectJobs: 15_000,
    note: 'local queue of 500, batched completion without delay',
    create: async (options) =>
      (await import('./graphile-worker.ts')).graphileSubject({ ...options, localQueue: 500 }),
  },
  {
    name: 'graphile-worker default',
    variant: true,
    databases: ['postgres'],
    abilities: ['drain', 'effects', 'pick up'],
    drainJobs: () => 6_000,
    effectJobs: 6_000,
    note: 'no local queue, each completion on its own',
    create: async (options) =>
      (await import('./graphile-worker.ts')).graphileSubject({ ...options, localQueue: undefined }),
  },
  {
    name: 'pg-boss',
    databases: ['postgres'],
    abilities: [...ALL, 'effects', 'together'],
    drainJobs: () => 50_000,
    effectJobs: 30_000,
    note: 'its best: LISTEN/NOTIFY, 4 fetchers, batches of 500 to one handler, burst while batches are full',
    create: async (options) => (await import('./pg-boss.ts')).pgBossSubject(options),
  },
  {
    name: 'limit',
    databases: EVERYWHERE,
    abilities: ['enqueue', 'drain', 'together', 'pick up'],
    drainJobs: (database) => (/^sqlite/.test(database) ? 300_000 : 100_000),
    note: "the bare database, three columns; a drain completes the last batch and claims the next in one transaction (SQLite 100 jobs on its one writer, PostgreSQL 1,000 on each of 4 connections); on libSQL the ledger's own tables and statements for 1,000 jobs in one request; a pick-up is one durable commit",
    create: async (options) =>
      options.target.kind === 'sqlite'
        ? (await import('./limit-sqlite.ts')).sqliteLimit(options)
        : options.target.kind === 'libsql'
          ? (await import('./limit-libsql.ts')).libsqlLimit(options)
          : (await import('./limit-postgres.ts')).postgresLimit(options),
  },
]

export function findSubject(name: string): SubjectEntry {
  const entry = SUBJECTS.find((subject) => subject.name === name)
  if (!entry) throw new Error(`no subject is called ${name}`)
  return entry
}
