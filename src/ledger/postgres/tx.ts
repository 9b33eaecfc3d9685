/** Statements on one connection, for the time of one transaction or look. */
import type pg from 'pg'
import { TidemarkError } from '../../errors.ts'
import type { Announcement, Tx, Value } from '../contract.ts'
import { getTypeParser } from './connection.ts'
import { classify, isAftermath, isDeadlock, isDown, isStalePlan } from './errors.ts'
import { ReadyHeads } from './ready-heads.ts'
import { StatementBook } from './statements.ts'

/** Ends one run of a transaction, to begin the next. */
export class Deadlock extends Error {}

export type Query = { text: string; values: unknown[]; name?: string; rowMode?: 'array' }

export class PostgresTx implements Tx {
  readonly dialect = 'postgres'
  readonly #client: pg.ClientBase
  readonly #where: string
  readonly #book: StatementBook | undefined
  readonly heads: ReadyHeads
  #closed = false
  /** The first error of the server or the connection; after it nothing can be committed. */
  failure: unknown
  wrote = false
  announced: Announcement | undefined

  /** Without a book, statements are not prepared under a name. */
  constructor(client: pg.ClientBase, where: string, keep: { book?: StatementBook; heads?: ReadyHeads } = {}) {
    this.#client = client
    this.#where = where
    this.#book = keep.book
    this.heads = keep.heads ?? new ReadyHeads()
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
    if (this.failure === undefined) return thrown
    if (isDeadlock(this.failure)) return new Deadlock('deadlock', { cause: this.failure })
    if (thrown === this.failure || this.broken || isAftermath(thrown))
      return classify(this.failure, this.#where)
    return thrown
  }

  async query<R>(query: Query): Promise<pg.QueryResult & { rows: R[] }> {
    if (this.#closed)
      throw new TidemarkError('A statement came after the end of its transaction.', { kind: 'bug' })
    try {
      // Named only where names are kept: an app's own client may be behind a pooler.
      const name = this.#book ? query.name : undefined
      const result = await this.#client.query({ ...query, name, types: TYPES })
      // Several statements in one text give several results.
      const results = Array.isArray(result) ? (result as pg.QueryResult[]) : [result]
      if (results.some(({ command }) => command !== 'SELECT')) this.wrote = true
      return results.at(-1)!
    } catch (thrown) {
      this.fail(thrown)
      throw classify(thrown, this.#where)
    }
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

const ANONYMOUS = new StatementBook()
/** Given with each query too: an app's own client may parse differently. */
const TYPES = { getTypeParser, length: 0 } as unknown as pg.CustomTypesConfig
