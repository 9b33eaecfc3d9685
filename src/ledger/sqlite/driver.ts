/**
 * The ledger on SQLite: one writing connection on this thread, transactions one after another, and a
 * second connection for reading, so that a look never sees what is not committed.
 *
 * Durability: WAL with synchronous = FULL. A commit that was acknowledged survives a power cut; group commit
 * makes that affordable (see bench/RESULTS.md).
 *
 * Two processes on one file take turns: SQLite's own waiting would let the busier one win nearly always
 * (measured: 18,596 jobs against 1,404), so whoever sees the other's writes leaves a gap after its own.
 */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
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
  Value,
} from '../contract.ts'
import { isForeign, refuseInside } from '../guard.ts'
import { inThread, onTimer } from '../heartbeat-loop.ts'
import { classify, isBusy, isConstraint } from './errors.ts'
import { insertEdges, insertJobs, type PreparingTx, readyQueues, settleDone, take } from './jobs.ts'

const NO_CHANGES = new Uint8Array()
const BUSY_WAIT_MS_MAX = 30_000
const BUSY_SPINS = 20
const BUSY_PAUSE_MS = 1
/** How long another process's write makes us polite. */
const NEIGHBOUR_MS = 1_000
const GAP_MS = 1
/** Looking for other processes' writes: often while there are some, seldom while there are none. */
const WATCH_FAST_MS = 5
const WATCH_SLOW_MS = 50
const WATCH_FAST_FOR_MS = 10_000
/** What is under way when the ledger is closed may end by itself for so long; as on PostgreSQL. */
const CLOSE_MS_MAX = 2_000

export type SqliteDriverOptions = { file: string; clock: Clock; synchronous?: 'FULL' | 'NORMAL' }

export class SqliteDriver implements Driver {
  readonly dialect = 'sqlite'
  readonly file: string
  readonly clock: Clock
  readonly #db: DatabaseSync
  readonly #tx: SqliteTx
  readonly #reader: SqliteTx | null
  readonly #readerDb: DatabaseSync | null
  /** Opened on first use. */
  #snapshots: SnapshotReader | undefined
  readonly #version: StatementSync
  readonly #within = new WeakMap<DatabaseSync, SqliteTx>()
  #queue: Promise<unknown> = Promise.resolve()
  #seenVersion = 0
  #neighbourAt = Number.NEGATIVE_INFINITY
  /** The one transaction that is under way. */
  #current: SqliteTx | undefined
  /** Nothing begins any more, and nobody waits for the lock of another process. */
  #closing = false
  #closed = false
  readonly #shutDown = Promise.withResolvers<void>()

  constructor(db: DatabaseSync, options: SqliteDriverOptions) {
    this.file = options.file
    this.clock = options.clock
    this.#db = db
    this.#tx = new SqliteTx(db)
    this.#version = db.prepare('PRAGMA data_version')
    this.#readerDb =
      this.file === ':memory:' ? null : new DatabaseSync(this.file, { readOnly: true, timeout: 5_000 })
    this.#reader = this.#readerDb && new SqliteTx(this.#readerDb)
    this.#seenVersion = this.#dataVersion()
  }

  now(): number {
    return this.clock.now()
  }

  async transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    refuseInside('A write to the ledger')
    return this.#exclusive(async () => {
      await this.#begin()
      const tx = this.#tx.once()
      this.#current = tx
      try {
        const value = await fn(tx)
        this.assertFit(tx)
        this.#db.exec('COMMIT')
        return value
      } catch (thrown) {
        if (this.#isOpen) this.#db.exec('ROLLBACK')
        throw this.#reasonFor(thrown)
      } finally {
        tx.close()
        this.#current = undefined
      }
    })
  }

  /** There is one writer at a time: who has begun waits for nobody. */
  waitForLocks(): void {}

  async lockedJobs(): Promise<Set<number>> {
    return new Set()
  }

  async savepoint(_tx: Tx, fn: () => Promise<void>): Promise<{ error: unknown } | undefined> {
    this.#tx.prepare('SAVEPOINT tidemark_part').run()
    try {
      await fn()
    } catch (thrown) {
      // Some errors, such as a full disk, end the whole transaction.
      if (!this.#isOpen) throw thrown
      this.#tx.prepare('ROLLBACK TO tidemark_part').run()
      this.#tx.prepare('RELEASE tidemark_part').run()
      return { error: this.#reasonFor(thrown) }
    }
    this.#tx.prepare('RELEASE tidemark_part').run()
    return undefined
  }

  withCommit(_tx: Tx, writes: Promise<void>): Promise<void> {
    return writes
  }

  assertFit(_tx: Tx): void {
    if (this.#closed) throw closedError()
    if (!this.#isOpen) throw endedError()
  }

  /**
   * The session extension is the only way to SQLite's count of open violations from here: a changeset, be it empty, is
   * refused while there are any, and what it has done by then (nothing) is undone. It takes 4 µs.
   */
  #assertConstraints(): void {
    try {
      this.#db.applyChangeset(NO_CHANGES)
    } catch (thrown) {
      if (!isConstraint(thrown)) throw thrown
      throw new TidemarkError('FOREIGN KEY constraint failed', { kind: 'bug', cause: thrown })
    }
  }

  /** A transaction is under way. */
  get #isOpen(): boolean {
    return !this.#closed && this.#db.isTransaction
  }

  async read<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    const reader = this.#reader
    if (this.#closed) throw closedError()
    if (reader) return this.#classified(() => fn(reader))
    refuseInside('A look at a database in memory')
    return this.#exclusive(() => fn(this.#tx))
  }

  async snapshot<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.#closed) throw closedError()
    // A database in memory has one connection, which nobody else uses meanwhile.
    if (this.file === ':memory:') return this.read(fn)
    this.#snapshots ??= new SnapshotReader(this.file)
    const snapshots = this.#snapshots
    return this.#classified(() => snapshots.run(fn))
  }

  async within<T>(connection: unknown, fn: (tx: Tx) => Promise<T>): Promise<T> {
    if (!(connection instanceof DatabaseSync)) {
      throw new TidemarkError('On SQLite, enqueueing within a transaction needs a DatabaseSync.', {
        kind: 'bug',
      })
    }
    if (!connection.isTransaction) {
      throw new TidemarkError('Enqueueing within a transaction: begin one on this connection first.', {
        kind: 'bug',
      })
    }
    let tx = this.#within.get(connection)
    if (!tx) {
      tx = new SqliteTx(connection)
      this.#within.set(connection, tx)
    }
    return fn(tx)
  }

  /** Nobody else writes meanwhile. */
  async ownSlot(_tx: Tx, { from }: { from: number }): Promise<number> {
    return from
  }

  readonly insertJobs = insertJobs
  readonly insertEdges = insertEdges
  readonly settleDone = settleDone

  async runEffects(
    tx: Tx,
    list: readonly KindEffects[],
    { onTurn, looksAhead }: EffectOptions,
  ): Promise<void> {
    for (const [index, { run }] of list.entries()) {
      onTurn(index)
      await run(tx)
      this.assertFit(tx)
    }
    onTurn(undefined)
    if (looksAhead) this.#assertConstraints()
  }

  readonly readyQueues = readyQueues
  readonly take = take

  /** Nothing to send: the others watch the file's data version. */
  async announce(tx: Tx, what: Announcement): Promise<void> {
    if (what === 'control')
      await tx.run(`UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE name = 'control'`)
  }

  async listen(fn: (what: 'anything') => void): Promise<() => Promise<void>> {
    let cancel = (): void => {}
    const look = (): void => {
      if (this.#closed) return
      if (!this.#db.isTransaction && this.#noticeNeighbour()) fn('anything')
      const lively = this.clock.monotonicMs() - this.#neighbourAt < WATCH_FAST_FOR_MS
      cancel = this.clock.timer(lively ? WATCH_FAST_MS : WATCH_SLOW_MS, look)
    }
    look()
    return async () => cancel()
  }

  async startHeartbeat(options: HeartbeatOptions): Promise<Heartbeat> {
    // A database in memory has no other process to tell.
    if (this.file === ':memory:') return onTimer(this, this.clock, options)
    return inThread(new URL('./heartbeat-thread.ts', import.meta.url), { file: this.file }, options)
  }

  /** A transaction that does not end is not waited for: it is rolled back. */
  async close(): Promise<void> {
    this.#closing = true
    const cancel = systemClock.timer(CLOSE_MS_MAX, () => this.#shut(), { keepAlive: true })
    await Promise.race([this.#exclusive(async () => this.#shut()), this.#shutDown.promise])
    cancel()
  }

  #shut(): void {
    this.#shutDown.resolve()
    if (this.#closed) return
    this.#current?.close()
    if (this.#isOpen) this.#db.exec('ROLLBACK')
    this.#closed = true
    this.#readerDb?.close()
    this.#snapshots?.close()
    this.#db.close()
  }

  #exclusive<T>(fn: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(fn)
    this.#queue = turn.then(ignore, ignore)
    return turn
  }

  async #begin(): Promise<void> {
    if (this.#closing) throw closedError()
    const sinceMs = this.clock.monotonicMs()
    if (sinceMs - this.#neighbourAt < NEIGHBOUR_MS) await sleep(this.clock, GAP_MS)
    for (let spins = 0; ; spins++) {
      try {
        this.#db.exec('BEGIN IMMEDIATE')
        break
      } catch (thrown) {
        const isOver = this.#closing || this.clock.monotonicMs() - sinceMs > BUSY_WAIT_MS_MAX
        if (!isBusy(thrown) || isOver) throw classify(thrown, this.file)
        this.#neighbourAt = this.clock.monotonicMs()
        if (spins < BUSY_SPINS) await new Promise((resolve) => setImmediate(resolve))
        else await sleep(this.clock, BUSY_PAUSE_MS)
      }
    }
  }

  /** True if another connection has committed since we last looked. */
  #noticeNeighbour(): boolean {
    const version = this.#dataVersion()
    if (version === this.#seenVersion) return false
    this.#seenVersion = version
    // Our own heartbeat writes on a connection of its own: alone on the file, we need not leave gaps for it.
    if (this.#hasNeighbour()) this.#neighbourAt = this.clock.monotonicMs()
    return true
  }

  #hasNeighbour(): boolean {
    const { n } = this.#tx.prepare(`SELECT count(*) AS n FROM workers WHERE state = 'live'`).get() as {
      n: number
    }
    return n > 1
  }

  #dataVersion(): number {
    return Number((this.#version.get() as { data_version: number }).data_version)
  }

  #reasonFor(thrown: unknown): unknown {
    return isForeign(thrown) ? thrown : classify(thrown, this.file)
  }

  async #classified<T>(fn: () => Promise<T>): Promise<T> {
    try {
      return await fn()
    } catch (thrown) {
      throw classify(thrown, this.file)
    }
  }
}

function ignore(): void {}

function closedError(): TidemarkError {
  return new TidemarkError('The ledger is closed.', { kind: 'bug' })
}

/** Such as INSERT OR ROLLBACK: what came before it is gone, and what came after it was no part of a transaction. */
function endedError(): TidemarkError {
  return new TidemarkError(
    'A statement ended the transaction in which it ran, and nobody passed its error on.',
    {
      kind: 'bug',
    },
  )
}

/** Statements are prepared once per connection; the cache is bounded by the number of texts in the code. */
export class SqliteTx implements PreparingTx {
  readonly dialect = 'sqlite'
  readonly isRemote = false
  readonly #db: DatabaseSync
  readonly #statements: Map<string, StatementSync>
  #closed = false

  constructor(db: DatabaseSync, statements = new Map<string, StatementSync>()) {
    this.#db = db
    this.#statements = statements
  }

  /** For one transaction. What comes after its end would be committed by itself, or with somebody else's. */
  once(): SqliteTx {
    return new SqliteTx(this.#db, this.#statements)
  }

  close(): void {
    this.#closed = true
  }

  prepare(sql: string): StatementSync {
    if (this.#closed)
      throw new TidemarkError('A statement came after the end of its transaction.', { kind: 'bug' })
    let statement = this.#statements.get(sql)
    if (!statement) {
      if (this.#statements.size >= STATEMENTS_MAX) this.#statements.clear()
      statement = this.#db.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  prepareArrays(sql: string): StatementSync {
    const statement = this.prepare(sql)
    statement.setReturnArrays(true)
    return statement
  }

  async all<T extends object>(sql: string, params: readonly Value[] = []): Promise<T[]> {
    return this.prepare(sql).all(...(params as SQLInputValue[])) as T[]
  }

  async get<T extends object>(sql: string, params: readonly Value[] = []): Promise<T | undefined> {
    return this.prepare(sql).get(...(params as SQLInputValue[])) as T | undefined
  }

  async run(sql: string, params: readonly Value[] = []): Promise<number> {
    return Number(this.prepare(sql).run(...(params as SQLInputValue[])).changes)
  }
}

const STATEMENTS_MAX = 500

/** A connection for reads that belong together, one after another; also for a thread of its own. */
export class SnapshotReader {
  readonly #db: DatabaseSync
  readonly #tx: SqliteTx
  #queue: Promise<unknown> = Promise.resolve()

  constructor(file: string, options: { cacheKib?: number; mappedBytes?: number } = {}) {
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
    if (options.cacheKib !== undefined) this.#db.exec(`PRAGMA cache_size = -${options.cacheKib}`)
    if (options.mappedBytes !== undefined) this.#db.exec(`PRAGMA mmap_size = ${options.mappedBytes}`)
    this.#tx = new SqliteTx(this.#db)
  }

  run<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    const turn = this.#queue.then(async () => {
      this.#db.exec('BEGIN')
      try {
        return await fn(this.#tx)
      } finally {
        if (this.#db.isOpen && this.#db.isTransaction) this.#db.exec('ROLLBACK')
      }
    })
    this.#queue = turn.then(ignore, ignore)
    return turn
  }

  close(): void {
    this.#db.close()
  }
}
