/**
 * Statements on one stream. What is asked for in one turn of the event loop leaves in one request: statements that
 * nobody waits for in between, be they of several jobs' effects, cost one round trip together.
 */
import { sleep, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { type Announcement, LONG_CODE, type Tx, type Value } from '../contract.ts'
import { isIdle, Manners, RunAgain, type ServerTx } from '../effects.ts'
import { type BatchAnswer, REFUSED_PAUSE_MS, type Step, type StepResult, type Stream } from './connection.ts'
import { Aftermath, classify, ServerError, TIMED_OUT, TooLargeError, UnreadError } from './errors.ts'

/** Of one request; what is more follows in the next. */
const STEPS_MAX = 2_000
/** Answers have a limit on the server, 10 MB by default, and so may requests. */
const REQUEST_BYTES_MAX = 4 * 1024 * 1024
/** The server ends a transaction after five seconds, if others wait: who has worked for so long of them was busy. */
const LONG_MS = 2_500
/**
 * For how long a BEGIN that is refused is sent anew. The server lets writers in one after another,
 * but sends those away who wait while it empties its log, and on a busy machine also some who are next: what they had
 * seen of the database is old by then, and they have only 15 ms for another look.
 */
const BEGIN_MS_MAX = 120_000

type Pending = Step & { resolve: (result: StepResult) => void; reject: (thrown: unknown) => void }

/** What the statements of ledger and apps look like, wherever they go. */
export interface Statements extends Tx {
  arrays<R extends unknown[]>(sql: string, params?: readonly Value[]): Promise<R[]>
}

abstract class StreamTx implements Statements {
  readonly dialect = 'sqlite'
  readonly isRemote = true
  #queue: Pending[] = []
  /** Somebody will send what is in the queue. */
  #isSending = false
  /** The request that is under way. */
  #current: Promise<void> | undefined
  #closed = false

  /** Answers each of them. Never throws. */
  protected abstract post(list: readonly Pending[]): Promise<void>
  protected abstract reason(thrown: unknown): unknown

  close(): void {
    this.#closed = true
  }

  async all<T extends object>(sql: string, params?: readonly Value[]): Promise<T[]> {
    const { columns, rows } = await this.query(sql, params)
    return rows().map((row) => toObject<T>(columns, row))
  }

  async get<T extends object>(sql: string, params?: readonly Value[]): Promise<T | undefined> {
    const { columns, rows } = await this.query(sql, params)
    const [first] = rows()
    return first && toObject<T>(columns, first)
  }

  async run(sql: string, params?: readonly Value[]): Promise<number> {
    return (await this.query(sql, params)).changes
  }

  async arrays<R extends unknown[]>(sql: string, params?: readonly Value[]): Promise<R[]> {
    return (await this.query(sql, params)).rows() as R[]
  }

  async query(sql: string, args: readonly Value[] = []): Promise<StepResult> {
    if (this.#closed)
      throw new TidemarkError('A statement came after the end of its transaction.', { kind: 'bug' })
    try {
      return await new Promise<StepResult>((resolve, reject) => {
        this.#queue.push({ sql, args, resolve, reject })
        this.#send()
      })
    } catch (thrown) {
      throw this.reason(thrown)
    }
  }

  /** What waits to be sent, for whoever sends it along with something else; nothing is under way then. */
  protected async takeQueue(): Promise<Pending[]> {
    while (this.#current) await this.#current
    return this.#queue.splice(0)
  }

  /** After this turn of the event loop, so that all it asks for is there. */
  #send(): void {
    if (this.#isSending) return
    this.#isSending = true
    setImmediate(() => {
      this.#isSending = false
      if (this.#current || this.#queue.length === 0) return
      this.#current = this.post(this.#queue.splice(0, fitting(this.#queue))).finally(() => {
        this.#current = undefined
        if (this.#queue.length > 0) this.#send()
      })
    })
  }
}

/** How many of them one request takes: at least one. */
function fitting(list: readonly Step[]): number {
  let bytes = 0
  for (const [at, { sql, args = [] }] of list.entries()) {
    bytes += sql.length
    for (const value of args)
      if (typeof value === 'string' || value instanceof Uint8Array) bytes += value.length
    if (at > 0 && (bytes > REQUEST_BYTES_MAX || at >= STEPS_MAX)) return at
  }
  return list.length
}

function toObject<T extends object>(columns: readonly string[], row: readonly Value[]): T {
  const object: Record<string, Value> = {}
  for (const [at, name] of columns.entries()) object[name] = row[at]!
  return object as T
}

/**
 * Looks. Each request is a transaction of its own that is left open and rolled back by the next thing in the request: a
 * replica passes on to the primary whatever leaves a transaction open, and answers a plain SELECT from its own copy.
 */
export class LookTx extends StreamTx {
  readonly #stream: Stream
  readonly #where: string

  constructor(stream: Stream, where: string) {
    super()
    this.#stream = stream
    this.#where = where
  }

  protected async post(list: readonly Pending[]): Promise<void> {
    try {
      const steps = [{ sql: 'BEGIN' }, ...list.map(({ sql, args }): Step => ({ sql, args, when: 'begun' }))]
      const { results, errors } = await this.#stream.batch(steps, { isFirst: true, thenRollBack: true })
      for (const [at, { resolve, reject }] of list.entries()) {
        const result = results[at + 1]
        if (result) resolve(result)
        else reject(errors[at + 1] ?? errors[0])
      }
    } catch (thrown) {
      const isTooLarge = thrown instanceof TooLargeError
      const isOfOne = thrown instanceof UnreadError || isTooLarge
      if (isOfOne && list.length > 1) for (const one of list) await this.post([one])
      else if (isTooLarge) await this.#postLarge(list[0]!)
      else for (const { reject } of list) reject(thrown)
    }
  }

  /** One that has more rows than an answer may hold. */
  async #postLarge(one: Pending): Promise<void> {
    const stream = this.#stream
    try {
      // So that it goes to the primary.
      const open = await stream.batch([{ sql: 'BEGIN' }, { sql: 'SELECT 1', when: 'begun' }], {
        isFirst: true,
      })
      const error = open.errors.find((each) => each !== undefined)
      if (error) throw error
      one.resolve(await stream.rows(one))
      await stream.batch([{ sql: 'ROLLBACK', when: 'open' }], { isFirst: false })
    } catch (thrown) {
      stream.forget() // the server ends what it had begun
      one.reject(thrown)
    }
  }

  protected reason(thrown: unknown): unknown {
    return classify(thrown, this.#where)
  }
}

/** A transaction; its BEGIN is sent along with its first statement. */
export class LibsqlTx extends StreamTx implements ServerTx {
  readonly #stream: Stream
  readonly #where: string
  readonly #begin: string
  readonly manners: Manners
  #isBegun = false
  /** The server has it under way. */
  #isOpen = false
  /** How long the server had something to do for it, or an answer was on its way. */
  busyMs = 0
  failure: unknown
  broken = false
  /** Something was changed: its COMMIT goes along with a witness. */
  hasWritten = false
  /** How many outcomes with effects are in it by now. */
  effects = 0
  #begunMs: number | undefined
  isWitnessed = true
  /** What it tells other processes with its COMMIT, and the counter that says so. */
  announced: { what: Announcement; value: number } | undefined

  constructor(
    stream: Stream,
    where: string,
    { begin, manners }: { begin: 'BEGIN' | 'BEGIN IMMEDIATE'; manners?: Manners },
  ) {
    super()
    this.#stream = stream
    this.#where = where
    this.#begin = begin
    this.manners = manners ?? new Manners()
  }

  /** For how long it has had the lock, whoever was waited for: the server counts that, and not who was busy. */
  get heldMs(): number {
    return this.#begunMs === undefined ? 0 : systemClock.monotonicMs() - this.#begunMs
  }

  fail(thrown: unknown): void {
    this.failure ??= thrown
  }

  /** Not awaited: if it fails, so does what follows. */
  send(sql: string, params?: readonly Value[]): void {
    this.query(sql, params).catch(() => {}) // noted by post()
  }

  protected async post(list: readonly Pending[]): Promise<void> {
    if (this.failure !== undefined) {
      for (const { reject } of list) reject(new Aftermath('a statement before it failed'))
      return
    }
    const answer = await this.#batch(list)
    if (answer === 'unread') for (const one of list) await this.post([one])
    else if (answer === 'large') await this.#postLarge(list)
    else if (answer) this.#answer(list, answer)
    else for (const { reject } of list) reject(this.failure)
  }

  /** Each SELECT by itself, with as many rows as it has; those before them were run. */
  async #postLarge(list: readonly Pending[]): Promise<void> {
    for (const one of list) {
      const sinceMs = systemClock.monotonicMs()
      try {
        if (this.failure !== undefined) throw new Aftermath('a statement before it failed')
        one.resolve(SELECT.test(one.sql) ? await this.#stream.rows(one) : NO_ROWS)
      } catch (thrown) {
        if (!(thrown instanceof Aftermath)) this.fail(thrown)
        // Nothing is known of the transaction any more.
        this.broken = true
        one.reject(thrown)
      } finally {
        this.busyMs += systemClock.monotonicMs() - sinceMs
      }
    }
  }

  /**
   * Undefined where there is no answer, or a failure is all of it; `unread` where several have to be sent one by one,
   * `large` where each of those that look has to be asked for by itself.
   */
  async #batch(list: readonly Step[]): Promise<BatchAnswer | 'unread' | 'large' | undefined> {
    const isFirst = !this.#isBegun
    const steps: Step[] = list.map(({ sql, args }) => ({ sql, args, when: 'open' }))
    if (isFirst) steps.unshift({ sql: this.#begin })
    this.#isBegun = true
    const sinceMs = systemClock.monotonicMs()
    try {
      let answer = await this.#stream.batch(steps, { isFirst })
      while (isFirst && answer.errors[0]?.isNotBegun && systemClock.monotonicMs() - sinceMs < BEGIN_MS_MAX) {
        await sleep(systemClock, REFUSED_PAUSE_MS)
        answer = await this.#stream.batch(steps, { isFirst })
      }
      this.#isOpen = answer.isOpen
      this.#begunMs ??= systemClock.monotonicMs()
      if (!isFirst) return answer
      if (answer.errors[0]) {
        this.fail(answer.errors[0])
        return undefined
      }
      return { ...answer, results: answer.results.slice(1), errors: answer.errors.slice(1) }
    } catch (thrown) {
      const isUnread = thrown instanceof UnreadError
      // Not even BEGIN was run.
      if (isUnread && isFirst) this.#isBegun = false
      if (isUnread && list.length > 1) return 'unread'
      const goesOn = thrown instanceof TooLargeError && thrown.isOpen
      if (goesOn) {
        this.#isOpen = true
        this.#begunMs ??= systemClock.monotonicMs()
        if (looksOnly(list)) return 'large'
      }
      this.fail(thrown)
      this.broken = !isUnread && !goesOn
      return undefined
    } finally {
      // Waiting for others at the beginning is not its own time.
      if (!isFirst) this.busyMs += systemClock.monotonicMs() - sinceMs
    }
  }

  #answer(list: readonly Pending[], { results, errors }: BatchAnswer): void {
    const failed = errors.findIndex((error) => error !== undefined)
    if (failed >= 0) this.fail(errors[failed])
    else if (results.some((result) => result === undefined)) this.fail(endedError())
    if (!this.#isOpen) this.broken = true
    for (const [at, { sql, resolve, reject }] of list.entries()) {
      const result = results[at]
      if (result) {
        this.hasWritten ||= isWrite(sql, result)
        resolve(result)
      } else
        reject(at === failed || failed < 0 ? this.failure : new Aftermath('a statement before it failed'))
    }
  }

  protected reason(thrown: unknown): unknown {
    return this.#isLong(thrown) ? this.#longError() : classify(thrown, this.#where)
  }

  /** What to throw for a transaction that ended with `thrown`: the cause, not what followed from it. */
  reasonFor(thrown: unknown): unknown {
    if (this.failure === undefined || isIdle(thrown)) return thrown
    if (this.failure instanceof RunAgain) return this.failure
    const follows = thrown instanceof Aftermath || (thrown as Error | null)?.cause === this.failure
    return thrown === this.failure || this.broken || follows ? this.reason(this.failure) : thrown
  }

  #isLong(thrown: unknown): boolean {
    return thrown instanceof ServerError && thrown.code === TIMED_OUT && this.busyMs > LONG_MS
  }

  #longError(): TidemarkError {
    return new TidemarkError(
      `A transaction on ${this.#where} took longer than the server allows while others wait (5 s).`,
      {
        kind: 'transient',
        code: LONG_CODE,
        hint: 'Each statement that waits for the one before it is a round trip: send those together that can be.',
        cause: this.failure,
      },
    )
  }

  async undo(savepoint: string): Promise<void> {
    this.failure = undefined
    this.send(`ROLLBACK TO ${savepoint}`)
    await this.query(`RELEASE ${savepoint}`)
  }

  /** Requests are put together as it is. */
  cork(): void {}
  uncork(): void {}

  /** A libSQL server cannot be asked what COMMIT would refuse, short of looking through all tables. */
  async lookAhead(): Promise<void> {}

  ofEffect(thrown: unknown): unknown {
    return thrown
  }

  /**
   * With what waits to be sent, and `last` behind it, in one request. True if it is committed; false if nothing is known
   * of that; throws if it is not.
   */
  async commit(last: (hasWritten: boolean) => readonly Step[]): Promise<boolean> {
    const list = await this.takeQueue()
    this.close()
    if (this.failure !== undefined) {
      for (const { reject } of list) reject(new Aftermath('a statement before it failed'))
      throw this.failure
    }
    const isNothing = !this.#isBegun && list.length === 0
    if (isNothing) return true
    const hasWritten = this.hasWritten || list.some(({ sql }) => !LOOKS.test(sql))
    const more = last(hasWritten)
    const steps = [...list, ...more, { sql: 'COMMIT' }]
    const answer = await this.#batch(steps)
    if (answer === 'large' || answer === 'unread' || !answer) {
      this.fail(new ServerError('a statement cannot be read', { code: 'SQL_PARSE_ERROR' }))
      for (const { reject } of list) reject(this.failure)
      if (hasWritten && this.#isUnknown) return false
      throw this.failure
    }
    const isCommitted = answer.results.at(-1) !== undefined
    this.#answer(list, {
      ...answer,
      results: answer.results.slice(0, list.length),
      errors: answer.errors.slice(0, list.length),
    })
    if (isCommitted) return true
    this.fail(answer.errors.find((error) => error !== undefined) ?? endedError())
    throw this.failure
  }

  /** No answer, or none of which it is sure that the server gave it before it did anything. */
  get #isUnknown(): boolean {
    const { failure } = this
    return this.broken && !(failure instanceof ServerError && failure.isRefusal)
  }

  /** What is under way is not waited for longer than its answer takes. */
  async rollBack(): Promise<void> {
    for (const { reject } of await this.takeQueue()) reject(new Aftermath('its transaction was rolled back'))
    this.close()
    if (this.broken) return this.#stream.forget()
    if (!this.#isOpen) return
    try {
      await this.#stream.batch([{ sql: 'ROLLBACK', when: 'open' }], { isFirst: false })
    } catch {
      this.#stream.forget() // the server rolls back what a stream that is gone had begun
    }
  }
}

const LOOKS = /^\s*(?:SELECT|EXPLAIN|SAVEPOINT|RELEASE|ROLLBACK)\b/i
const CHANGES = /^\s*(?:INSERT|UPDATE|DELETE|REPLACE|WITH)\b/i
const SELECT = /^\s*(?:SELECT|WITH\b(?![\s\S]*\b(?:INSERT|UPDATE|DELETE|REPLACE)\b))\b/i
const HAS_NO_ROWS = /^\s*(?:SAVEPOINT|RELEASE|ROLLBACK)\b/i
const NO_ROWS: StepResult = { columns: [], rows: () => [], changes: 0, rowsRead: 0, rowsWritten: 0 }

/** SELECTs, and before them at most what has no rows: so it is known how far it got where one of them has too many. */
function looksOnly(list: readonly Step[]): boolean {
  const first = list.findIndex(({ sql }) => !HAS_NO_ROWS.test(sql))
  return first >= 0 && list.slice(first).every(({ sql }) => SELECT.test(sql))
}

/** What neither looks nor changes rows is a change of tables, of which the server tells no number. */
function isWrite(sql: string, { changes, rowsWritten }: StepResult): boolean {
  if (LOOKS.test(sql)) return false
  return !CHANGES.test(sql) || changes > 0 || rowsWritten > 0
}

/** Such as INSERT OR ROLLBACK: what came before it is gone, and what came after it was not run. */
function endedError(): TidemarkError {
  return new TidemarkError(
    'A statement ended the transaction in which it ran, and nobody passed its error on.',
    {
      kind: 'bug',
    },
  )
}
