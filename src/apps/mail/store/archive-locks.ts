/**
 * Locks between everything that writes one archive, threads and processes alike. They are SQLite's own file locks
 * on empty files in `locks/`: the system lets go of them when their holder dies, however it dies.
 *
 *   all     shared by whoever stores messages from the cloud or changes labels; held alone by an import (its
 *           messages may be in any shard, so nobody else may add one meanwhile) and by `setAside`
 *   year-N  held alone while messages of that year are looked for and added: an id that is in no part of its period
 *           can be added by nobody else until it is in
 *   list    held alone while archive.json is rewritten
 *
 * Always taken in this order, so nobody waits in a circle. Waiting blocks the thread: never for the main thread,
 * except for the moment in which an archive is made.
 */
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { classifyStore } from './store-errors.ts'

/** A transaction is over within seconds; after this, somebody holds on to it. */
const WAIT_MS_MAX = 60_000
/** Years share locks beyond this: a hostile import cannot make thousands of files. */
const YEAR_LOCKS = 64

export class ArchiveLocks {
  readonly #folder: string
  readonly #open = new Map<string, DatabaseSync>()

  constructor(folder: string) {
    this.#folder = join(folder, 'locks')
  }

  /** While messages of a year are added. */
  year<Result>(year: number, work: () => Result): Result {
    return this.shared(() => this.#held(`year-${year % YEAR_LOCKS}`, 'BEGIN IMMEDIATE', work))
  }

  /** While others may write too, but nothing may be set aside. */
  shared<Result>(work: () => Result): Result {
    return this.#held('all', 'BEGIN', work)
  }

  alone<Result>(work: () => Result): Result {
    return this.#held('all', 'BEGIN EXCLUSIVE', work)
  }

  list<Result>(work: () => Result): Result {
    return this.#held('list', 'BEGIN IMMEDIATE', work)
  }

  close(): void {
    for (const db of this.#open.values()) db.close()
    this.#open.clear()
  }

  #held<Result>(name: string, begin: string, work: () => Result): Result {
    const db = this.#connection(name)
    try {
      db.exec(begin)
      // A deferred transaction takes its lock with its first look.
      if (begin === 'BEGIN') db.exec('SELECT 1 FROM sqlite_schema')
    } catch (thrown) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw classifyStore(thrown, name, join(this.#folder, name))
    }
    try {
      return work()
    } finally {
      db.exec('ROLLBACK')
    }
  }

  #connection(name: string): DatabaseSync {
    let db = this.#open.get(name)
    if (db) return db
    const file = join(this.#folder, name)
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
      db = new DatabaseSync(file, { timeout: WAIT_MS_MAX })
      chmodSync(file, 0o600)
    } catch (thrown) {
      throw classifyStore(thrown, name, file)
    }
    this.#open.set(name, db)
    return db
  }
}
