/**
 * The ledger on PostgreSQL: a few connections for transactions, a few for reading, one that listens, and the
 * heartbeat's in its thread.
 *
 * - A transaction's BEGIN is sent ahead of its first statement and its witness (commit.ts) along with its
 *   COMMIT: neither costs a round trip.
 * - A deadlock runs the transaction again; a connection lost before COMMIT means that nothing happened; one
 *   lost during COMMIT is asked about until the answer is known.
 * - What the database itself refuses or cannot do now gets a `ledger-` code (errors.ts).
 */
import type pg from 'pg'
import { type Clock, sleep, systemClock } from '../../clock.ts'
import { TidemarkError } from '../../errors.ts'
import type { Announcement, Driver, Heartbeat, HeartbeatOptions, Tx } from '../contract.ts'
import { FORGET_COMMITS, hasCommitted, leaveWitness, type Session, SWEEP_COMMITS } from './commit.ts'
import { createPool, searchPath, type Target } from './connection.ts'
import { classify } from './errors.ts'
import { startHeartbeat } from './heartbeat.ts'
import { insertJobs, readyQueues, settleDone, take } from './jobs.ts'
import { channelOf, Listener } from './listener.ts'
import { ReadyHeads } from './ready-heads.ts'
import { StatementBook } from './statements.ts'
import { Deadlock, PostgresTx } from './tx.ts'

const WRITERS_MAX = 4
const READERS_MAX = 2
const DEADLOCK_TRIES_MAX = 5
/** The victim of a deadlock lets the other one finish first. */
const DEADLOCK_PAUSE_MS = 10

export type PostgresDriverOptions = { target: Target; clock: Clock; instance: string; offsetMs: number }

export class PostgresDriver implements Driver {
  readonly dialect = 'postgres'
  readonly file = null
  readonly target: Target
  readonly #clock: Clock
  readonly #instance: string
  readonly #writers: pg.Pool
  readonly #readers: pg.Pool
  readonly #book = new StatementBook()
  readonly #heads = new ReadyHeads()
  readonly #sessions = new WeakMap<pg.ClientBase, Session>()
  readonly #closing = new AbortController()
  readonly #listeners = new Set<Listener>()
  #sessionCount = 0
  #reachable = true
  #closed = false
  #offsetMs: number

  constructor(options: PostgresDriverOptions) {
    this.target = options.target
    this.#clock = options.clock
    this.#instance = options.instance
    this.#offsetMs = options.offsetMs
    this.#writers = createPool(options.target, 'writer', WRITERS_MAX)
    this.#readers = createPool(options.target, 'reader', READERS_MAX)
  }

  /** The database's clock is the one that all processes share. A clock that was passed in for a test is obeyed. */
  now(): number {
    return this.#clock.now() + this.#offsetMs
  }

  async transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const client = await this.#checkOut(this.#writers)
      try {
        return await this.#once(client, fn)
      } catch (thrown) {
        if (!(thrown instanceof Deadlock)) throw thrown
        if (tries >= DEADLOCK_TRIES_MAX) throw classify(thrown.cause, this.target.where)
        await sleep(systemClock, DEADLOCK_PAUSE_MS * tries)
      }
    }
  }

  async read<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#checkOut(this.#readers)
    // Not prepared under a name: a look is rare enough to be planned for the table as it is now.
    const tx = new PostgresTx(client, this.target.where, { heads: this.#heads })
    try {
      return await fn(tx)
    } finally {
      tx.close()
      client.release(tx.broken)
    }
  }

  /** The app's connection keeps its own search path: ours is there only while `fn` runs. */
  async within<T>(connection: unknown, fn: (tx: Tx) => Promise<T>): Promise<T> {
    const client = connection as pg.ClientBase
    if (typeof client?.query !== 'function') {
      throw new TidemarkError('On PostgreSQL, enqueueing within a transaction needs a client of pg.', {
        kind: 'bug',
      })
    }
    if (client.getTransactionStatus?.() === 'I') {
      throw new TidemarkError('Enqueueing within a transaction: begin one on this client first.', {
        kind: 'bug',
      })
    }
    const tx = new PostgresTx(client, this.target.where)
    const before = await tx.get<{ path: string }>(`SELECT current_setting('search_path') AS path`)
    const setPath = `SELECT set_config('search_path', ?, true)`
    await tx.get(setPath, [searchPath(this.target)])
    try {
      const value = await fn(tx)
      // Signed by nobody: when the app commits, this process must hear of it too.
      if (tx.announced) await tx.get(`SELECT pg_notify(?, ?)`, [channelOf(this.target), tx.announced])
      return value
    } finally {
      // After a failed statement the app can only roll back, and that brings its path back too.
      if (tx.failure === undefined) await tx.get(setPath, [before!.path])
      tx.close()
    }
  }

  readonly insertJobs = insertJobs
  readonly settleDone = settleDone
  readonly readyQueues = readyQueues
  readonly take = take

  /** Sent with COMMIT. Only a wake-up: whoever misses it looks again by itself. */
  async announce(tx: Tx, what: Announcement): Promise<void> {
    const { announced } = tx as PostgresTx
    if (announced !== 'control') (tx as PostgresTx).announced = what
  }

  async listen(fn: (what: Announcement | 'anything') => void): Promise<() => Promise<void>> {
    const listener = new Listener(this.target, this.#instance, fn)
    this.#listeners.add(listener)
    await listener.start()
    return async () => {
      this.#listeners.delete(listener)
      await listener.stop()
    }
  }

  async startHeartbeat(options: HeartbeatOptions): Promise<Heartbeat> {
    await this.transaction((tx) => tx.run(SWEEP_COMMITS))
    const onOffset = (offsetMs: number): void => {
      this.#offsetMs = offsetMs
    }
    return startHeartbeat(this, this.#clock, { ...options, onOffset })
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new Error('the ledger was closed'))
    if (this.#sessionCount > 0 && this.#reachable) await this.#forgetSessions()
    this.#closed = true
    for (const listener of this.#listeners) await listener.stop()
    await Promise.all([this.#writers.end(), this.#readers.end()])
  }

  async #checkOut(pool: pg.Pool): Promise<pg.PoolClient> {
    if (this.#closed) throw new TidemarkError('The ledger is closed.', { kind: 'bug' })
    try {
      const client = await pool.connect()
      this.#reachable = true
      return client
    } catch (thrown) {
      this.#reachable = false
      throw classify(thrown, this.target.where)
    }
  }

  async #once<T>(client: pg.PoolClient, fn: (tx: Tx) => Promise<T>): Promise<T> {
    const tx = new PostgresTx(client, this.target.where, { book: this.#book, heads: this.#heads })
    // Not awaited: if it fails, the session is read-only and what follows fails too.
    const begun = client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE')
    begun.catch((thrown: unknown) => tx.fail(thrown))
    let value: T
    try {
      value = await fn(tx)
      await begun
      // Somebody went on after a failed statement: the server would roll back and call it COMMIT.
      if (tx.failure !== undefined) throw tx.failure
    } catch (thrown) {
      tx.close()
      this.#heads.forget()
      await this.#rollBack(client, tx)
      throw tx.reasonFor(thrown)
    }
    tx.close()
    return this.#commit(client, tx, value)
  }

  async #rollBack(client: pg.PoolClient, tx: PostgresTx): Promise<void> {
    let broken = tx.broken
    if (!broken) {
      try {
        await client.query('ROLLBACK')
      } catch {
        broken = true // the server rolls back what a lost connection had begun
      }
    }
    client.release(broken)
  }

  async #commit<T>(client: pg.PoolClient, tx: PostgresTx, value: T): Promise<T> {
    const session = this.#session(client)
    const extras: Promise<unknown>[] = []
    if (tx.wrote) extras.push(leaveWitness(client, session))
    if (tx.announced) {
      const values = [channelOf(this.target), `${tx.announced} ${this.#instance}`]
      extras.push(client.query({ name: 'announce', text: 'SELECT pg_notify($1, $2)', values }))
    }
    for (const extra of extras) extra.catch((thrown: unknown) => tx.fail(thrown))
    let command: string
    try {
      command = (await client.query('COMMIT')).command
    } catch (thrown) {
      client.release(true)
      this.#reachable = false
      // A transaction that only looked has nothing to lose.
      const committed = tx.wrote && (await hasCommitted(this.target, { ...session }, this.#closing.signal))
      if (committed) return value
      this.#heads.forget()
      tx.fail(thrown)
      throw tx.reasonFor(thrown)
    }
    client.release()
    if (command === 'COMMIT') return value
    throw tx.reasonFor(
      tx.failure ??
        new TidemarkError(`${this.target.where} rolled back instead of committing.`, { kind: 'transient' }),
    )
  }

  #session(client: pg.ClientBase): Session {
    let session = this.#sessions.get(client)
    if (!session) {
      this.#sessionCount += 1
      session = { writer: `${this.#instance}:${this.#sessionCount}`, n: 0 }
      this.#sessions.set(client, session)
    }
    return session
  }

  async #forgetSessions(): Promise<void> {
    try {
      await this.transaction(async (tx) => {
        await (tx as PostgresTx).query({ text: FORGET_COMMITS, values: [`${this.#instance}:%`] })
        ;(tx as PostgresTx).wrote = false // a witness would be a row again
      })
    } catch {
      // The database is away; the next engine that starts sweeps them.
    }
  }
}
