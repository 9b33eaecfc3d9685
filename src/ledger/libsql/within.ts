/** A transaction that an app has begun with @libsql/client, as the ledger's statements see it. */
import { TidemarkError } from '../../base/errors.ts'
import type { Value } from '../contract.ts'
import { classify, ServerError } from './errors.ts'
import type { Statements } from './tx.ts'

/** What is used of its Transaction. */
type ClientTransaction = {
  closed: boolean
  execute(statement: { sql: string; args: Value[] }): Promise<{
    columns: string[]
    rows: ArrayLike<Value>[]
    rowsAffected: number
  }>
}

export function transactionOf(connection: unknown, where: string): Statements {
  const client = connection as Partial<ClientTransaction> | null
  if (typeof client?.execute !== 'function' || typeof client.closed !== 'boolean') {
    throw new TidemarkError(
      'On libSQL, enqueueing within a transaction needs a Transaction of @libsql/client.',
      { kind: 'bug' },
    )
  }
  if (client.closed) {
    throw new TidemarkError('Enqueueing within a transaction: this one has ended.', { kind: 'bug' })
  }
  return new ClientTx(client as ClientTransaction, where)
}

class ClientTx implements Statements {
  readonly dialect = 'sqlite'
  readonly isRemote = true
  readonly #client: ClientTransaction
  readonly #where: string
  /** One at a time, whatever the client does with several. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(client: ClientTransaction, where: string) {
    this.#client = client
    this.#where = where
  }

  async all<T extends object>(sql: string, params?: readonly Value[]): Promise<T[]> {
    const { columns, rows } = await this.#execute(sql, params)
    return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, plain(row[at]!)])) as T)
  }

  async get<T extends object>(sql: string, params?: readonly Value[]): Promise<T | undefined> {
    return (await this.all<T>(sql, params))[0]
  }

  async run(sql: string, params?: readonly Value[]): Promise<number> {
    return (await this.#execute(sql, params)).rowsAffected
  }

  async arrays<R extends unknown[]>(sql: string, params?: readonly Value[]): Promise<R[]> {
    const { rows } = await this.#execute(sql, params)
    return rows.map((row) => Array.from(row, plain) as R)
  }

  #execute(sql: string, params: readonly Value[] = []): ReturnType<ClientTransaction['execute']> {
    const turn = this.#last.then(async () => {
      try {
        return await this.#client.execute({ sql, args: [...params] })
      } catch (thrown) {
        throw classify(asServerError(thrown), this.#where)
      }
    })
    this.#last = turn.catch(() => {}) // whoever asked is told
    return turn
  }
}

/** An error of the client tells by its code what the server said of a statement; others are of the connection. */
function asServerError(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || thrown instanceof ServerError) return thrown
  const { code } = thrown as { code?: unknown }
  if (typeof code !== 'string' || !OF_STATEMENT.test(code)) return thrown
  // It puts the code before the words.
  return new ServerError(thrown.message.replace(`${code}: `, ''), { code })
}

const OF_STATEMENT = /^(?:SQLITE_|SQL_|ARGS_|TRANSACTION_|BLOCKED|RESPONSE_TOO_LARGE)/

/** How integers come is the client's setting. */
function plain(value: Value): Value {
  return typeof value === 'bigint' ? Number(value) : value
}
