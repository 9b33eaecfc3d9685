/** Statements on one connection, for the time of one transaction or look. */
import type { Writable } from 'node:stream'
import pg from 'pg'
import { TidemarkError } from '../../base/errors.ts'
import type { Announcement, Value } from '../contract.ts'
import { isIdle, Manners, RunAgain, type ServerTx } from '../effects.ts'
import { getTypeParser } from './connection.ts'
import { classify, classifyOfEffect, isAftermath, isDeadlock, isDown, isStalePlan } from './errors.ts'
import { ReadyHeads } from './ready-heads.ts'
import { StatementBook } from './statements.ts'

/**
 * Each constraint that waits for COMMIT, looked at now; for what is written from here on it waits again. So does one that
 * need not wait (INITIALLY IMMEDIATE): it is looked at with the others, a moment later than usual. A savepoint that is
 * undone would keep those apart, but then COMMIT would look at everything a second time.
 */
const LOOK = `SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED`

export type Query = { text: string; values: unknown[]; name?: string; rowMode?: 'array' }

/** What is known from one transaction to the next. */
export type Kept = { book?: StatementBook; heads?: ReadyHeads; manners?: Manners }

export class PostgresTx implements ServerTx {
  readonly dialect = 'postgres'
  readonly isRemote = true
  readonly #client: pg.ClientBase
  readonly #where: string
  readonly #book: StatementBook | undefined
  readonly heads: ReadyHeads
  readonly manners: Manners
  #closed = false
  /** The first error of the server or the connection; after it nothing can be committed. */
  failure: unknown
  /** Its COMMIT goes along with a witness, if it has written something. */
  isWitnessed = true
  announced: Announcement | undefined

  /** Without a book, statements are not prepared under a name. */
  constructor(client: pg.ClientBase, where: string, keep: Kept = {}) {
    this.#client = client
    this.#where = where
    this.#book = keep.book
    this.heads = keep.heads ?? new ReadyHeads()
    this.manners = keep.manners ?? new Manners()
  }

  get broken(): boolean {
    return this.failure !== undefined && (isDown(this.failure) || isStalePlan(this.failure))
  }

  close(): void {
    this.#closed = true
  }

  fail(thrown: unknown): void {
    this.failure ??= thrown
  }

  /** What to throw for a transaction that ended with `thrown`: the cause, not what followed from it. */
  reasonFor(thrown: unknown): unknown {
    if (this.failure === undefined || isIdle(thrown)) return thrown
    if (this.failure instanceof RunAgain) return this.failure
    if (isDeadlock(this.failure)) return new RunAgain('deadlock', { cause: this.failure })
    if (thrown === this.failure || this.broken || isAftermath(thrown))
      return classify(this.failure, this.#where)
    return thrown
  }

  async undo(savepoint: string): Promise<void> {
    await this.#client.query(`ROLLBACK TO SAVEPOINT ${savepoint}; RELEASE SAVEPOINT ${savepoint}`)
    this.failure = undefined
  }

  async lookAhead(): Promise<void> {
    await this.query({ text: LOOK, values: [] })
  }

  ofEffect(thrown: unknown): unknown {
    return classifyOfEffect(thrown)
  }

  cork(): void {
    this.#stream?.cork()
  }

  uncork(): void {
    this.#stream?.uncork()
  }

  /** Not part of pg's declared interface; an app's own client may have none. */
  get #stream(): Writable | undefined {
    return (this.#client as { connection?: { stream?: Writable } }).connection?.stream
  }

  /** Not awaited: if it fails, so does what follows. */
  send(text: string): void {
    this.#client.query(text).catch((thrown: unknown) => this.fail(thrown))
  }

  async query<R>(query: Query): Promise<pg.QueryResult & { rows: R[] }> {
    if (this.#closed)
      throw new TidemarkError('A statement came after the end of its transaction.', { kind: 'bug' })
    try {
      const result = await this.#submit(query)
      // Several statements in one text give several results.
      const results = Array.isArray(result) ? (result as pg.QueryResult[]) : [result]
      return results.at(-1)!
    } catch (thrown) {
      this.fail(thrown)
      throw classify(thrown, this.#where)
    }
  }

  /** Named only where names are kept: an app's own client may be behind a pooler, and may parse differently. */
  #submit(query: Query): Promise<pg.QueryResult> {
    if (!this.#book) return this.#client.query({ ...query, name: undefined, types: TYPES })
    if (query.rowMode) return this.#client.query(query)
    // Not as a configuration, which pg copies property by property: that took a tenth of the time of a small effect.
    return new Promise((resolve, reject) => {
      const submitted = new NamedQuery(query.text, query.values, (error, result) =>
        error ? reject(error) : resolve(result),
      )
      submitted.name = query.name
      this.#client.query(submitted)
    })
  }

  async all<T extends object>(sql: string, params: readonly Value[] = []): Promise<T[]> {
    return (await this.#statement<T>(sql, params)).rows
  }

  async get<T extends object>(sql: string, params: readonly Value[] = []): Promise<T | undefined> {
    return (await this.#statement<T>(sql, params)).rows[0]
  }

  async run(sql: string, params: readonly Value[] = []): Promise<number> {
    return (await this.#statement(sql, params)).rowCount ?? 0
  }

  #statement<T>(sql: string, params: readonly Value[]): Promise<pg.QueryResult & { rows: T[] }> {
    const { text, name } = (this.#book ?? ANONYMOUS).find(sql)
    return this.query<T>({ text, values: params as Value[], name })
  }
}

/** As pg makes it; its declared interface leaves out what it takes. */
const NamedQuery = pg.Query as unknown as new (
  text: string,
  values: unknown[],
  callback: (error: Error | null, result: pg.QueryResult) => void,
) => pg.Query & { name?: string }

const ANONYMOUS = new StatementBook()
const TYPES = { getTypeParser, length: 0 } as unknown as pg.CustomTypesConfig
