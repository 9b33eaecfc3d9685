/**
 * What a caller's function may do with a transaction of the ledger: an outcome's effects, or an app's own. Alike on
 * both databases:
 *
 * - It may not end the transaction, cut it into parts, or change the session: who else commits with it would pay.
 * - Once a statement has ended it all the same (INSERT OR ROLLBACK), nothing more is written outside of it.
 * - It may wait for nothing but its statements for long: everybody waits with it, and PostgreSQL ends a session that
 *   stands still inside a transaction. What stands still longer than that is given up, and only that.
 * - Parameters are what both databases take, one for each place: SQLite would write NULL for NaN, and for what is missing.
 * - After its end, no statement of it counts.
 * - It may not use the engine: what it asked for would wait for the transaction in which it is.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock } from '../base/clock.ts'
import { TidemarkError, UsageError } from '../base/errors.ts'
import type { Driver, Tx, Value } from './contract.ts'
import { described } from './input-check.ts'

/** Well within the time after which PostgreSQL ends the session (connection.ts); a driver may have a shorter one. */
export const IDLE_MS_MAX = 10_000
/** Told apart from an outage, although the connection may be lost with it. */
export const IDLE_CODE = 'transaction-idle'
const TEXTS_MAX = 2_000

/** While `fn` runs, and not in what it left behind. */
const inside = new AsyncLocalStorage<{ what: string; active: boolean }>()

/** What callers' functions threw by themselves: no statement of their transaction did. */
const foreign = new WeakSet<object>()

/** It says nothing about the ledger, whatever it looks like: another database may be away or locked, too. */
export function isForeign(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && foreign.has(thrown)
}

/** Refuses what would wait for the transaction that its caller is in. */
export function refuseInside(what: string): void {
  const around = inside.getStore()
  if (!around?.active) return
  throw new UsageError(`${what} cannot be used inside ${around.what}: it would wait for its end.`, {
    hint: 'Return new jobs with the outcome, use `tx.enqueue` in a transaction, or call it afterwards.',
    code: 'inside-transaction',
  })
}

/** For loops of our own that somebody starts from within: they are not part of it. */
export function outside<T>(fn: () => T): T {
  return inside.exit(fn)
}

export type GuardContext = { driver: Driver; tx: Tx; what: string }

/** Runs `fn` with a transaction that keeps the rules above. */
export async function guarded<T>(ctx: GuardContext, fn: (tx: GuardedTx) => T | Promise<T>): Promise<T> {
  const guard = new GuardedTx(ctx)
  const around = { what: ctx.what, active: true }
  try {
    const running = inside.run(around, async () => fn(guard))
    const value = await guard.untilIdle(running.catch((thrown: unknown) => guard.passOn(thrown)))
    await guard.settled()
    guard.assertLively()
    ctx.driver.assertFit(ctx.tx)
    return value
  } finally {
    around.active = false
    guard.close()
  }
}

export class GuardedTx implements Tx {
  readonly dialect: Tx['dialect']
  readonly isRemote: boolean
  readonly #ctx: GuardContext
  readonly #clock: Clock
  #closed = false
  readonly #open = new Set<Promise<unknown>>()
  readonly #errors = new WeakSet<object>()
  readonly #idleMsMax: number
  #activeMs: number
  #cancel = (): void => {}

  constructor(ctx: GuardContext) {
    this.#ctx = ctx
    this.#clock = ctx.driver.clock
    this.dialect = ctx.tx.dialect
    this.isRemote = ctx.tx.isRemote
    this.#idleMsMax = ctx.driver.idleMsMax ?? IDLE_MS_MAX
    this.#activeMs = this.#clock.monotonicMs()
  }

  all<T extends object>(sql: string, params?: readonly Value[]): Promise<T[]> {
    return this.#statement(sql, params, (tx) => tx.all<T>(sql, params))
  }

  get<T extends object>(sql: string, params?: readonly Value[]): Promise<T | undefined> {
    return this.#statement(sql, params, (tx) => tx.get<T>(sql, params))
  }

  run(sql: string, params?: readonly Value[]): Promise<number> {
    return this.#statement(sql, params, (tx) => tx.run(sql, params))
  }

  /** What `running` ends with, unless nothing happens in the transaction for too long. */
  untilIdle<T>(running: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const leftMs =
          this.#open.size > 0 ? this.#idleMsMax : this.#activeMs + this.#idleMsMax - this.#clock.monotonicMs()
        if (leftMs <= 0) reject(this.#idleError())
        else this.#cancel = this.#clock.timer(leftMs, look)
      }
      look()
      running.then(resolve, reject)
    })
  }

  /** Statements that nobody waited for belong to it too. Waited for all of them: one may be over before others. */
  async settled(): Promise<void> {
    while (this.#open.size > 0) await Promise.allSettled(this.#open)
  }

  close(): void {
    this.#closed = true
    this.#cancel()
  }

  async #statement<T>(
    sql: string,
    params: readonly Value[] | undefined,
    fn: (tx: Tx) => Promise<T>,
  ): Promise<T> {
    checkParams(placesOf(sql, this.dialect), params ?? [])
    return this.busy(() => fn(this.#ctx.tx))
  }

  /** For what is done in the transaction on its behalf: meanwhile it does not stand still. */
  async busy<T>(fn: () => Promise<T>): Promise<T> {
    const { driver, tx, what } = this.#ctx
    if (this.#closed)
      throw new TidemarkError(`A statement came after the end of ${what} to which it belongs.`, {
        kind: 'bug',
      })
    this.assertLively()
    driver.assertFit(tx)
    const running = fn()
    this.#open.add(running)
    try {
      return await running
    } catch (thrown) {
      if (typeof thrown === 'object' && thrown !== null) this.#errors.add(thrown)
      throw thrown
    } finally {
      this.#open.delete(running)
      this.#activeMs = this.#clock.monotonicMs()
    }
  }

  /** What the function ended with, marked if no statement of its transaction threw it. */
  passOn(thrown: unknown): never {
    if (typeof thrown === 'object' && thrown !== null && !this.#errors.has(thrown)) foreign.add(thrown)
    throw thrown
  }

  /** No timer tells of one that keeps the whole thread busy meanwhile. */
  assertLively(): void {
    if (this.#open.size === 0 && this.#clock.monotonicMs() - this.#activeMs > this.#idleMsMax)
      throw this.#idleError()
  }

  #idleError(): TidemarkError {
    const seconds = Math.round(this.#idleMsMax / 1_000)
    return new TidemarkError(
      `For over ${seconds} s ${this.#ctx.what} waited for something else than its statements, while others waited for it.`,
      {
        kind: 'bug',
        code: IDLE_CODE,
        hint: 'Do in the handler what takes time; in the transaction, only write.',
      },
    )
  }
}

/** Strings, quoted names, comments and dollar quotes; an E or a $ at the end of a name begins none. */
const OPAQUE =
  /(?<![\w$\x80-\uffff])E'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n\r]*|\/\*[\s\S]*?\*\/|(?<![\w$\x80-\uffff])\$((?![0-9])[\w\x80-\uffff]*)\$[\s\S]*?\$\1\$/gi
/** SET LOCAL ends with the transaction. */
const CONTROL =
  /^\s*(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|PREPARE\s+TRANSACTION|SET(?!\s+(?:LOCAL(?!\s+"?transaction)|CONSTRAINTS)\b)|RESET|DISCARD|PRAGMA|ATTACH|DETACH|VACUUM)\b/i
/** SQLite's other ways to name a place. */
const NAMED_PLACE = /\?\d|[:@$][a-z_]/i
/** Texts that were looked at: how many parameters each takes, where that can be told. */
const HARMLESS: Record<Tx['dialect'], Map<string, number | undefined>> = {
  sqlite: new Map(),
  postgres: new Map(),
}

/** Refuses what controls the transaction. */
function placesOf(sql: string, dialect: Tx['dialect']): number | undefined {
  const harmless = HARMLESS[dialect]
  if (harmless.has(sql)) return harmless.get(sql)
  const bare = sql.replaceAll(OPAQUE, (text) => (dialect === 'postgres' ? withoutComment(text) : ' '))
  const statements = bare.split(';').filter((statement) => statement.trim() !== '')
  // SQLite runs only the first of them, and what follows a ; may be the body of a trigger.
  for (const statement of dialect === 'sqlite' ? statements.slice(0, 1) : statements) {
    const found = CONTROL.exec(statement)
    if (found)
      throw controlError(`${found[0].trim().toUpperCase()} is not for a transaction that others commit with.`)
  }
  if (harmless.size >= TEXTS_MAX) harmless.clear()
  const isNamed = dialect === 'sqlite' && NAMED_PLACE.test(bare)
  const places = isNamed ? undefined : bare.split('?').length - 1
  harmless.set(sql, places)
  return places
}

function checkParams(places: number | undefined, params: readonly Value[]): void {
  if (places !== undefined && places !== params.length)
    throw new UsageError(
      `A statement has ${places} places for parameters (?), and was given ${params.length}.`,
    )
  for (const [at, value] of params.entries()) {
    const type = typeof value
    if (type === 'string' || value == null || type === 'bigint') continue
    if (type === 'number' ? Number.isFinite(value) : value instanceof Uint8Array) continue
    throw new UsageError(
      `Parameter ${at + 1} of a statement is ${described(value)}, which no database takes as it is.`,
      {
        hint: 'Parameters are texts, finite numbers, BigInts, bytes and null.',
      },
    )
  }
}

/** PostgreSQL ends a comment within a comment, and goes on in the outer one: where, this scan cannot tell. */
function withoutComment(text: string): string {
  if (text.startsWith('/*') && text.includes('/*', 2))
    throw controlError(
      'A comment within a comment could hide a COMMIT: it is not for a transaction that others commit with.',
    )
  return ' '
}

function controlError(message: string): UsageError {
  return new UsageError(message, {
    hint: 'The ledger begins and ends it; throw an error to have everything undone.',
    code: 'transaction-control',
  })
}
