/**
 * The bare limit on SQLite: node:sqlite, prepared statements, a table of three columns, and transactions
 * that complete the last batch and claim the next. No engine on SQLite can be faster than this, and none
 * that keeps more than this about a job comes near.
 */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { systemClock } from '../../src/base/clock.ts'
import { payload, type StartOptions, type Subject, type SubjectOptions, sqliteTarget } from './subject.ts'

const BATCH = 100
const PAGE_BYTES = 4096
const STATE = { ready: 0, claimed: 1, done: 2 }

type Statements = {
  insert: StatementSync
  claim: StatementSync
  complete: StatementSync
  left: StatementSync
}

export function sqliteLimit(options: SubjectOptions): Subject {
  const { file, synchronous } = sqliteTarget(options.target)
  let database: DatabaseSync
  let statements: Statements
  let onJobs: StartOptions['onJobs'] | undefined
  let loop: Promise<void> | undefined
  let stopped = false

  function transaction<T>(run: () => T): T {
    database.exec('BEGIN IMMEDIATE')
    const result = run()
    database.exec('COMMIT')
    return result
  }

  /** Completes the last batch and claims the next in one transaction; returns the ids claimed. */
  function turn(last: readonly number[], batch: number): number[] {
    return transaction(() => {
      if (last.length > 0) statements.complete.run(JSON.stringify(last))
      return statements.claim.all(batch).map((row) => Number(row.id))
    })
  }

  async function work(batch: number): Promise<void> {
    for (let ids = turn([], batch); ids.length > 0 && !stopped; ids = turn(ids, batch)) {
      onJobs?.(ids.length)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  function fill(count: number): void {
    transaction(() => {
      for (let n = 0; n < count; n++) statements.insert.run(JSON.stringify(payload(n)))
    })
  }

  return {
    async setup() {
      database = new DatabaseSync(file)
      database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`)
      database.exec(`CREATE TABLE IF NOT EXISTS jobs (
        id INTEGER PRIMARY KEY, state INTEGER NOT NULL DEFAULT ${STATE.ready}, payload TEXT NOT NULL)`)
      database.exec(`CREATE INDEX IF NOT EXISTS jobs_ready ON jobs (id) WHERE state = ${STATE.ready}`)
      statements = prepare(database)
    },
    async enqueueOne(n) {
      // With workers started this is the floor of a pick-up: one durable commit that stores and claims.
      const ids = transaction(() => {
        statements.insert.run(JSON.stringify(payload(n)))
        return onJobs ? statements.claim.all(1) : []
      })
      if (ids.length > 0) onJobs?.(ids.length)
    },
    async enqueueMany(count) {
      fill(count)
    },
    async start(start) {
      onJobs = start.onJobs
      loop = work(BATCH)
    },
    async drained() {
      await loop
    },
    async left() {
      return Number(statements.left.get()?.count)
    },
    async teardown() {
      stopped = true
      await loop
      database.close()
    },
    async raw(variant, count) {
      const from = systemClock.monotonicMs()
      if (variant === 'fdatasync') syncs(`${file}.raw`, count)
      else await work(Number(variant))
      return count / ((systemClock.monotonicMs() - from) / 1000)
    },
  }
}

function prepare(database: DatabaseSync): Statements {
  return {
    insert: database.prepare('INSERT INTO jobs (payload) VALUES (?)'),
    claim: database.prepare(
      `UPDATE jobs SET state = ${STATE.claimed}
       WHERE id IN (SELECT id FROM jobs WHERE state = ${STATE.ready} ORDER BY id LIMIT ?)
       RETURNING id, payload`,
    ),
    complete: database.prepare(
      `UPDATE jobs SET state = ${STATE.done} WHERE id IN (SELECT value FROM json_each(?))`,
    ),
    left: database.prepare(`SELECT count(*) AS count FROM jobs WHERE state <> ${STATE.done}`),
  }
}

/** What the disk gives: one page appended and synced at a time. */
function syncs(path: string, count: number): void {
  const page = Buffer.alloc(PAGE_BYTES, 1)
  const descriptor = openSync(path, 'w')
  for (let n = 0; n < count; n++) {
    writeSync(descriptor, page)
    fdatasyncSync(descriptor)
  }
  closeSync(descriptor)
  rmSync(path)
}
