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
import { type Clock, sleep, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type {
  Announcement,
  Driver,
  EffectOptions,
  Heartbeat,
  HeartbeatOptions,
  KindEffects,
  Tx,
} from '../contract.ts'
import { forgetWriters, type Session } from '../doubt.ts'
import { behindSavepoint, Manners, RunAgain, runEffects } from '../effects.ts'
import { refuseInside } from '../guard.ts'
import { inThread, onTimer } from '../heartbeat-loop.ts'
import { FORGET_COMMITS, hasCommitted, leaveWitness, SWEEP_COMMITS } from './commit.ts'
import { searchPath, type Target } from './connection.ts'
import { classify } from './errors.ts'
import { insertEdges, insertJobs, lockedJobs, readyQueues, settleDone, take } from './jobs.ts'
import { channelOf, Listener } from './listener.ts'
import { ConnectionPool } from './pool.ts'
import { ReadyHeads } from './ready-heads.ts'
import { StatementBook } from './statements.ts'
import { PostgresTx } from './tx.ts'

/** Two cycles, what the engine does beside them, and four transactions of apps (see Ledger). */
const WRITERS_MAX = 8
const READERS_MAX = 2
/** Searches, which may take their time: nobody who only looks is to wait behind them. */
const SNAPSHOTS_MAX = 4
const DEADLOCK_TRIES_MAX = 5
const BEGIN_SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE'
/** Cycles of other processes are over by then, mostly; what is not is an app's transaction, or stands still. */
const BEGIN_BRIEF = `${BEGIN}; SET LOCAL lock_timeout = 500`
/** For one that is known to meet locks, and tries several times to find out who does. */
const BRIEF_MS = 20
/** 'SLOT' as a number. */
const SLOT_LOCK = 0x534c4f54
/** The victim of a deadlock lets the other one finish first. */
const DEADLOCK_PAUSE_MS = 10

export type PostgresDriverOptions = { target: Target; clock: Clock; instance: string; offsetMs: number }

export class PostgresDriver implements Driver {
  readonly dialect = 'postgres'
  readonly file = null
  readonly target: Target
  readonly clock: Clock
  readonly #instance: string
  readonly #writers: ConnectionPool
  readonly #readers: ConnectionPool
  readonly #snapshots: ConnectionPool
  readonly #book = new StatementBook()
  readonly #heads = new ReadyHeads()
  readonly #manners = new Manners()
  readonly #sessions = new WeakMap<pg.ClientBase, Session>()
  readonly #closing = new AbortController()
  readonly #listeners = new Set<Listener>()
  #sessionCount = 0
  #reachable = true
  #offsetMs: number

  constructor(options: PostgresDriverOptions) {
    this.target = options.target
    this.clock = options.clock
    this.#instance = options.instance
    this.#offsetMs = options.offsetMs
    this.#writers = new ConnectionPool(options.target, 'writer', WRITERS_MAX)
    this.#readers = new ConnectionPool(options.target, 'reader', READERS_MAX)
    this.#snapshots = new ConnectionPool(options.target, 'reader', SNAPSHOTS_MAX)
  }

  /** The database's clock is the one that all processes share. A clock that was passed in for a test is obeyed. */
  now(): number {
    return this.clock.now() + this.#offsetMs
  }

  async transaction<T>(fn: (tx: Tx) => Promise<T>, options: { locks?: 'brief' } = {}): Promise<T> {
    refuseInside('A write to the ledger')
    for (let tries = 1; ; ) {
      const client = await this.#checkOut(this.#writers)
      try {
        return await this.#once(client, fn, options.locks === 'brief' ? BEGIN_BRIEF : BEGIN)
      } catch (thrown) {
        if (!(thrown instanceof RunAgain)) throw thrown
        // Nobody was in the way: a kind was mistaken, and each is so only once (effects.ts).
        if (thrown.cause === undefined) continue
        if (tries >= DEADLOCK_TRIES_MAX) throw classify(thrown.cause, this.target.where)
        await sleep(systemClock, DEADLOCK_PAUSE_MS * tries)
        tries += 1
      }
    }
  }

  /** Not waited for. With the savepoint in which it was sent, it is undone. */
  waitForLocks(tx: Tx, how: 'briefly' | 'patiently'): void {
    ;(tx as PostgresTx).send(`SET LOCAL lock_timeout = ${how === 'briefly' ? BRIEF_MS : 0}`)
  }

  readonly lockedJobs = lockedJobs

  savepoint(tx: Tx, fn: () => Promise<void>): Promise<{ error: unknown } | undefined> {
    return behindSavepoint(tx as PostgresTx, fn)
  }

  assertFit(tx: Tx): void {
    const { failure } = tx as PostgresTx
    if (failure !== undefined) throw failure
  }

  /** Sent by now, and so before COMMIT: a round trip less, in which the server would have nothing to do. */
  async withCommit(tx: Tx, writes: Promise<void>): Promise<void> {
    writes.catch((thrown: unknown) => (tx as PostgresTx).fail(thrown))
  }

  async read<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#checkOut(this.#readers)
    // Not prepared under a name: a look is rare enough to be planned for the table as it is now.
    const tx = new PostgresTx(client, this.target.where, { heads: this.#heads })
    try {
      return await fn(tx)
    } finally {
      tx.close()
      this.#readers.release(client, tx.broken)
    }
  }

  async snapshot<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#checkOut(this.#snapshots)
    const tx = new PostgresTx(client, this.target.where, { heads: this.#heads })
    tx.send(BEGIN_SNAPSHOT)
    try {
      return await fn(tx)
    } finally {
      if (!tx.broken) tx.send('ROLLBACK')
      tx.close()
      this.#snapshots.release(client, tx.broken)
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

  /** All of them taken: then it is as with any other row. */
  async ownSlot(tx: Tx, { from, to }: { from: number; to: number }): Promise<number> {
    const free = await tx.get<{ slot: number }>(
      `SELECT slot FROM generate_series(?::int, ?::int) AS slot WHERE pg_try_advisory_xact_lock(${SLOT_LOCK}, slot) LIMIT 1`,
      [from, to - 1],
    )
    return free?.slot ?? from
  }

  readonly insertJobs = insertJobs
  readonly insertEdges = insertEdges
  readonly settleDone = settleDone

  runEffects(tx: Tx, list: readonly KindEffects[], options: EffectOptions): Promise<void> {
    return runEffects(tx as PostgresTx, list, options)
  }

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

  /** The heartbeat also keeps our idea of the server's clock right. */
  async startHeartbeat(options: HeartbeatOptions): Promise<Heartbeat> {
    await this.transaction((tx) => tx.run(SWEEP_COMMITS))
    const onOffset = (offsetMs: number): void => {
      this.#offsetMs = offsetMs
    }
    const withOffset = { ...options, onOffset }
    if (this.clock !== systemClock) return onTimer(this, this.clock, withOffset)
    return inThread(new URL('./heartbeat-thread.ts', import.meta.url), { target: this.target }, withOffset)
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new Error('the ledger was closed'))
    if (this.#sessionCount > 0 && this.#reachable) {
      await forgetWriters(() => this.#forgetSessions())
    }
    for (const listener of this.#listeners) await listener.stop()
    await Promise.all([this.#writers, this.#readers, this.#snapshots].map((pool) => pool.close()))
  }

  async #checkOut(pool: ConnectionPool): Promise<pg.PoolClient> {
    try {
      const client = await pool.connect()
      this.#reachable = true
      return client
    } catch (thrown) {
      this.#reachable = false
      throw thrown
    }
  }

  async #once<T>(client: pg.PoolClient, fn: (tx: Tx) => Promise<T>, begin: string): Promise<T> {
    const tx = new PostgresTx(client, this.target.where, {
      book: this.#book,
      heads: this.#heads,
      manners: this.#manners,
    })
    // Not awaited: if it fails, the session is read-only and what follows fails too.
    const begun = client.query(begin)
    begun.catch((thrown: unknown) => tx.fail(thrown))
    // Told at once also where no statement is under way, with the reason that later ones would not get.
    const onLost = (thrown: unknown): void => tx.fail(thrown)
    client.on('error', onLost)
    try {
      return await this.#run(client, tx, begun, fn)
    } finally {
      client.off('error', onLost)
    }
  }

  async #run<T>(
    client: pg.PoolClient,
    tx: PostgresTx,
    begun: Promise<unknown>,
    fn: (tx: Tx) => Promise<T>,
  ): Promise<T> {
    let value: T
    try {
      value = await fn(tx)
      await begun
      // Somebody went on after a failed statement: the server would roll back and call it COMMIT.
      this.assertFit(tx)
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
    this.#writers.release(client, broken)
  }

  async #commit<T>(client: pg.PoolClient, tx: PostgresTx, value: T): Promise<T> {
    const session = this.#session(client)
    const extras: Promise<unknown>[] = []
    if (tx.isWitnessed) extras.push(leaveWitness(client, session))
    if (tx.announced) {
      const values = [channelOf(this.target), `${tx.announced} ${this.#instance}`]
      extras.push(client.query({ name: 'announce', text: 'SELECT pg_notify($1, $2)', values }))
    }
    for (const extra of extras) extra.catch((thrown: unknown) => tx.fail(thrown))
    let command: string
    try {
      command = (await client.query('COMMIT')).command
    } catch (thrown) {
      this.#writers.release(client, true)
      this.#reachable = false
      // One that only looked has left no witness, and nothing to lose.
      const { signal } = this.#closing
      if (tx.isWitnessed && (await hasCommitted(this.target, { ...session }, signal))) return value
      this.#heads.forget()
      tx.fail(thrown)
      throw tx.reasonFor(thrown)
    }
    this.#writers.release(client)
    if (command === 'COMMIT') return value
    this.#heads.forget()
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
    await this.transaction(async (tx) => {
      await (tx as PostgresTx).query({ text: FORGET_COMMITS, values: [`${this.#instance}:%`] })
      ;(tx as PostgresTx).isWitnessed = false // a witness would be a row again
    })
  }
}
