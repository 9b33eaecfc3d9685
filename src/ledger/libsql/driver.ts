/**
 * The ledger on libSQL, over HTTP: one stream for transactions, one after another, and a few for reading.
 *
 * - SQLite has one writer at a time, whoever it is: the server lets them in one after another, in their order, and ends
 *   a transaction that has had its lock for five seconds while others wait. So a transaction is few round trips: BEGIN
 *   goes along with its first statement, COMMIT and its witness (commit.ts) with its last, and what nobody waits for in
 *   between is sent together (tx.ts).
 * - A request that fails before COMMIT means that nothing happened; a COMMIT without an answer is asked about until the
 *   answer is known.
 * - Every look is one at the primary, also where a replica is asked (tx.ts).
 * - Durability is the server's: a commit that it has acknowledged is as safe as it keeps it.
 */
import { type Clock, systemClock } from '../../base/clock.ts'
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
import { forgetWriters, hasCommitted, type Session } from '../doubt.ts'
import { behindSavepoint, Manners, RunAgain, runEffects } from '../effects.ts'
import { refuseInside } from '../guard.ts'
import { inThread, onTimer } from '../heartbeat-loop.ts'
import { Semaphore } from '../semaphore.ts'
import { FORGET_COMMITS, fence, SWEEP_COMMITS, witness } from './commit.ts'
import type { Connection, Stream, Usage } from './connection.ts'
import { classify } from './errors.ts'
import { insertEdges, insertJobs, readyQueues, settleDone, take } from './jobs.ts'
import { ANNOUNCE, Listener } from './listener.ts'
import { LibsqlTx, LookTx } from './tx.ts'
import { transactionOf } from './within.ts'

const READERS_MAX = 4
/** Searches, which may take their time: nobody who only looks is to wait behind them. */
const SNAPSHOTS_MAX = 2
/** What effects are to take of the five seconds after which the server ends a transaction. */
const TRANSACTION_MS = 1_000

export type LibsqlDriverOptions = { connection: Connection; clock: Clock; instance: string; offsetMs: number }

export class LibsqlDriver implements Driver {
  readonly dialect = 'sqlite'
  readonly file = null
  readonly clock: Clock
  /** Well within the time that the server gives a transaction. */
  readonly idleMsMax = 3_000
  #effectsMax = Number.POSITIVE_INFINITY
  /** What an answer of the server may hold, with room for how it is written there. */
  readonly claimBytesMax = 4 * 1024 * 1024
  readonly #connection: Connection
  readonly #instance: string
  readonly #manners = new Manners()
  readonly #writer: { stream: Stream; session: Session }
  readonly #turns = new Semaphore(1)
  readonly #readers: StreamPool
  readonly #snapshots: StreamPool
  readonly #listeners = new Set<Listener>()
  readonly #closing = new AbortController()
  #sessionCount = 0
  #reachable = true
  #offsetMs: number

  constructor(options: LibsqlDriverOptions) {
    this.clock = options.clock
    this.#connection = options.connection
    this.#instance = options.instance
    this.#offsetMs = options.offsetMs
    this.#writer = { stream: options.connection.stream(), session: this.#newSession() }
    this.#readers = new StreamPool(options.connection, READERS_MAX)
    this.#snapshots = new StreamPool(options.connection, SNAPSHOTS_MAX)
  }

  get effectsMax(): number {
    return this.#effectsMax
  }

  /**
   * Effects that wait for answers are round trips: so many of them as end in half of the server's time. Of a transaction
   * that the server has ended, those count that it got to.
   */
  #learnPace({ effects, heldMs }: LibsqlTx): void {
    if (effects === 0) return
    if (heldMs > TRANSACTION_MS)
      this.#effectsMax = Math.max(1, Math.floor((effects * TRANSACTION_MS) / heldMs))
    else if (heldMs < TRANSACTION_MS / 2 && effects >= this.#effectsMax) this.#effectsMax = 2 * effects
  }

  /** What was asked of the server so far, the heartbeat aside. */
  get usage(): Usage {
    return this.#connection.usage
  }

  /** The database's clock is the one that all processes share. A clock that was passed in for a test is obeyed. */
  now(): number {
    return this.clock.now() + this.#offsetMs
  }

  async transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    refuseInside('A write to the ledger')
    this.#assertOpen()
    await this.#turns.acquire()
    try {
      for (;;) {
        try {
          return await this.#once(fn)
        } catch (thrown) {
          // A kind was mistaken, and each is so only once (effects.ts).
          if (!(thrown instanceof RunAgain)) throw thrown
        }
      }
    } finally {
      this.#turns.release()
    }
  }

  /** There is one writer at a time: who has begun waits for nobody. */
  waitForLocks(): void {}

  async lockedJobs(): Promise<Set<number>> {
    return new Set()
  }

  savepoint(tx: Tx, fn: () => Promise<void>): Promise<{ error: unknown } | undefined> {
    return behindSavepoint(tx as LibsqlTx, fn)
  }

  assertFit(tx: Tx): void {
    this.#assertOpen()
    const { failure } = tx as LibsqlTx
    if (failure !== undefined) throw failure
  }

  /** Sent along with COMMIT. */
  async withCommit(tx: Tx, writes: Promise<void>): Promise<void> {
    writes.catch((thrown: unknown) => (tx as LibsqlTx).fail(thrown))
  }

  read<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    this.#assertOpen()
    return this.#readers.use(async (stream) => {
      const tx = new LookTx(stream, this.#where)
      try {
        return await fn(tx)
      } finally {
        tx.close()
      }
    })
  }

  snapshot<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    this.#assertOpen()
    return this.#snapshots.use(async (stream) => {
      const tx = new LibsqlTx(stream, this.#where, { begin: 'BEGIN' })
      try {
        return await fn(tx)
      } finally {
        await tx.rollBack()
      }
    })
  }

  /** A Transaction of @libsql/client. */
  async within<T>(connection: unknown, fn: (tx: Tx) => Promise<T>): Promise<T> {
    return fn(transactionOf(connection, this.#where))
  }

  /** Nobody else writes meanwhile. */
  async ownSlot(_tx: Tx, { from }: { from: number }): Promise<number> {
    return from
  }

  readonly insertJobs = insertJobs
  readonly insertEdges = insertEdges
  readonly settleDone = settleDone

  async runEffects(tx: Tx, list: readonly KindEffects[], options: EffectOptions): Promise<void> {
    const own = tx as LibsqlTx
    const before = own.effects
    const onTurn = (index: number | undefined): void => {
      own.effects = before + (index === undefined ? list.length : index + 1)
      options.onTurn(index)
    }
    await runEffects(own, list, { ...options, onTurn })
  }

  readonly readyQueues = readyQueues
  readonly take = take

  /** Sent with COMMIT. Only a wake-up: whoever misses it looks again by itself. */
  async announce(tx: Tx, what: Announcement): Promise<void> {
    const raised = tx.get<{ value: string }>(ANNOUNCE, [what])
    if (!(tx instanceof LibsqlTx)) return void (await raised)
    raised.then(
      (row) => {
        tx.announced = { what, value: Number(row!.value) }
      },
      (thrown: unknown) => tx.fail(thrown),
    )
  }

  async listen(fn: (what: Announcement | 'anything') => void): Promise<() => Promise<void>> {
    const listener = new Listener((look) => this.read(look), fn)
    this.#listeners.add(listener)
    await listener.start()
    return async () => {
      this.#listeners.delete(listener)
      listener.stop()
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
    const { target } = this.#connection
    return inThread(new URL('./heartbeat-thread.ts', import.meta.url), { target }, withOffset)
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    for (const listener of this.#listeners) listener.stop()
    if (this.#reachable) {
      await forgetWriters(() => this.#forgetSessions())
    }
    this.#closing.abort(new Error('the ledger was closed'))
    this.#turns.refuseWaiting(closedError())
    this.#connection.close()
  }

  get #where(): string {
    return this.#connection.target.where
  }

  #assertOpen(): void {
    if (this.#closing.signal.aborted) throw closedError()
  }

  async #once<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    const tx = new LibsqlTx(this.#writer.stream, this.#where, {
      begin: 'BEGIN IMMEDIATE',
      manners: this.#manners,
    })
    let value: T
    try {
      value = await fn(tx)
      this.#learnPace(tx)
      this.assertFit(tx)
    } catch (thrown) {
      this.#learnPace(tx)
      await tx.rollBack()
      this.#reachable = !tx.broken
      throw tx.reasonFor(thrown)
    }
    await this.#commit(tx)
    const { announced } = tx
    if (announced) for (const listener of this.#listeners) listener.own(announced.what, announced.value)
    return value
  }

  async #commit(tx: LibsqlTx): Promise<void> {
    const { session } = this.#writer
    let isKnown: boolean
    try {
      isKnown = await tx.commit((hasWritten) => (hasWritten && tx.isWitnessed ? [witness(session)] : []))
      this.#reachable = true
    } catch (thrown) {
      await tx.rollBack()
      this.#reachable = !tx.broken
      throw tx.reasonFor(thrown)
    }
    if (isKnown) return
    this.#reachable = false
    this.#writer.stream.forget()
    // Its row is fenced by the question.
    this.#writer.session = this.#newSession()
    const ask = (): Promise<number> => fence(this.#connection, session)
    const { signal } = this.#closing
    if (await hasCommitted({ ...session }, { where: this.#where, ask, signal })) return
    throw classify(tx.failure, this.#where)
  }

  #newSession(): Session {
    this.#sessionCount += 1
    return { writer: `${this.#instance}:${this.#sessionCount}`, n: 0 }
  }

  async #forgetSessions(): Promise<void> {
    if (this.#writer.session.n === 0 && this.#sessionCount === 1) return
    await this.transaction(async (tx) => {
      await tx.run(FORGET_COMMITS, [`${this.#instance}:%`])
      ;(tx as LibsqlTx).isWitnessed = false // a witness would be a row again
    })
  }
}

/** Streams for looking, as many as are used at a time; who finds none free waits for one. */
class StreamPool {
  readonly #connection: Connection
  readonly #permits: Semaphore
  readonly #idle: Stream[] = []

  constructor(connection: Connection, max: number) {
    this.#connection = connection
    this.#permits = new Semaphore(max)
  }

  async use<T>(fn: (stream: Stream) => Promise<T>): Promise<T> {
    await this.#permits.acquire()
    const stream = this.#idle.pop() ?? this.#connection.stream()
    try {
      return await fn(stream)
    } finally {
      this.#idle.push(stream)
      this.#permits.release()
    }
  }
}

function closedError(): TidemarkError {
  return new TidemarkError('The ledger is closed.', { kind: 'bug' })
}
