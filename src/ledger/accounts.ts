/**
 * Accounts: what is connected, how it is to be treated, and its sealed secret. The ledger never sees what is inside
 * the secret; see vault.ts.
 *
 * - ready: its secret works as far as anybody knows
 * - sign-in: the service refused the secret; nothing goes on before somebody connects the account again
 *
 * Beside them, the clients with which people sign in, sealed as well.
 */
import { TidemarkError, UsageError } from '../base/errors.ts'
import type { Tx, Value } from './contract.ts'
import type { Ledger } from './ledger.ts'

export type AccountState = 'ready' | 'sign-in'

export type Account = {
  id: number
  /** `gmail` */
  service: string
  /** Unique within its service: an address. */
  name: string
  settings: Record<string, unknown>
  state: AccountState
  /** Whose it is: exactly one user's. */
  userId: number
  createdAtMs: number
}

export type NewAccount = {
  service: string
  name: string
  settings: Record<string, unknown>
  sealed: Uint8Array
  /** The owner's if left out. */
  userId?: number | undefined
}

export type SealedClient = { sealed: Uint8Array; setAtMs: number }

/** The user who is always there: see users.ts. */
export const OWNER_ID = 1

const ACCOUNTS_MAX = 10_000

/** The account as one word: `gmail:ann@example.com`. Also the name under which its secret is sealed. */
export function accountKey({ service, name }: Pick<Account, 'service' | 'name'>): string {
  return `${service}:${name}`
}

type AccountRow = {
  id: number
  service: string
  name: string
  settings: string
  state: AccountState
  user_id: number
  created_at: number
}

const COLUMNS = 'id, service, name, settings, state, user_id, created_at'

/** For whoever undoes what an account has left, inside the transaction that does it. */
export async function hasAccount(
  tx: Tx,
  { service, name }: Pick<Account, 'service' | 'name'>,
): Promise<boolean> {
  const row = await tx.get('SELECT id FROM accounts WHERE service = ? AND name = ?', [service, name])
  return row !== undefined
}

export class Accounts {
  readonly #ledger: Ledger

  private constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  static async open(ledger: Ledger): Promise<Accounts> {
    await ledger.migrateApp('accounts', [
      schema(ledger.dialect),
      ownerStatements(ledger.dialect),
      clientStatements(ledger.dialect),
    ])
    return new Accounts(ledger)
  }

  async list(service?: string): Promise<Account[]> {
    const where = service === undefined ? '' : 'WHERE service = ?'
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<AccountRow>(
        `SELECT ${COLUMNS} FROM accounts ${where} ORDER BY service, name LIMIT ${ACCOUNTS_MAX}`,
        service === undefined ? [] : [service],
      ),
    )
    return rows.map(toAccount)
  }

  /** Those of one user: through these, and no others, they see what was kept of them. */
  async ofUser(userId: number): Promise<Account[]> {
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<AccountRow>(
        `SELECT ${COLUMNS} FROM accounts WHERE user_id = ? ORDER BY service, name LIMIT ${ACCOUNTS_MAX}`,
        [userId],
      ),
    )
    return rows.map(toAccount)
  }

  find(service: string, name: string): Promise<Account | undefined> {
    return this.#one('service = ? AND name = ?', [service, name])
  }

  add({ service, name, settings, sealed, userId = OWNER_ID }: NewAccount): Promise<Account> {
    return this.#ledger.driver.transaction(async (tx) => {
      const now = this.#ledger.now()
      const row = await tx.get<{ id: number }>(
        `INSERT INTO accounts(service, name, settings, state, sealed, user_id, created_at)
         VALUES (?, ?, ?, 'ready', ?, ?, ?) ON CONFLICT (service, name) DO NOTHING RETURNING id`,
        [service, name, JSON.stringify(settings), sealed, userId, now],
      )
      if (!row) {
        throw new UsageError(`The account ${accountKey({ service, name })} is there already.`, {
          code: 'account-exists',
        })
      }
      const kept = { ...settings }
      return { id: row.id, service, name, settings: kept, state: 'ready', userId, createdAtMs: now }
    })
  }

  setSettings(id: number, settings: Record<string, unknown>): Promise<void> {
    return this.#change(id, 'settings = ?', [JSON.stringify(settings)])
  }

  setState(id: number, state: AccountState): Promise<void> {
    return this.#change(id, 'state = ?', [state])
  }

  /** Gives it to another user, who sees from now on what was kept of it; whoever had it does not any more. */
  setUser(id: number, userId: number): Promise<void> {
    return this.#change(id, 'user_id = ?', [userId])
  }

  async sealed(id: number): Promise<Uint8Array> {
    const row = await this.#ledger.driver.read((tx) =>
      tx.get<{ sealed: Uint8Array }>('SELECT sealed FROM accounts WHERE id = ?', [id]),
    )
    if (!row) throw goneError(id)
    return new Uint8Array(row.sealed)
  }

  /**
   * With `was`, only while the secret is still that one: a process that refreshed an old token must not
   * overwrite what somebody has just connected anew. Returns whether it was written.
   */
  async setSealed(id: number, sealed: Uint8Array, was?: Uint8Array): Promise<boolean> {
    if (was === undefined) {
      await this.#change(id, 'sealed = ?', [sealed])
      return true
    }
    const changed = await this.#ledger.driver.transaction((tx) =>
      tx.run('UPDATE accounts SET sealed = ? WHERE id = ? AND sealed = ?', [sealed, id, was]),
    )
    return changed === 1
  }

  /** A new secret for an account that is there: it is ready again, by the same commit. */
  reconnect(id: number, input: { sealed: Uint8Array; settings: Record<string, unknown> }): Promise<void> {
    const set = `sealed = ?, settings = ?, state = 'ready'`
    return this.#change(id, set, [input.sealed, JSON.stringify(input.settings)])
  }

  /** Whether there was one. */
  async remove(id: number): Promise<boolean> {
    const removed = await this.#ledger.driver.transaction((tx) =>
      tx.run('DELETE FROM accounts WHERE id = ?', [id]),
    )
    return removed === 1
  }

  /** Whether anything was sealed here: then there must be a key. */
  async hasSealed(): Promise<boolean> {
    const row = await this.#ledger.driver.read((tx) =>
      tx.get('SELECT 1 AS one FROM accounts UNION ALL SELECT 1 FROM oauth_clients LIMIT 1'),
    )
    return row !== undefined
  }

  /** The sealed client with which people sign in at a provider (`google`), and since when it is kept. */
  async client(provider: string): Promise<SealedClient | undefined> {
    const row = await this.#ledger.driver.read((tx) =>
      tx.get<{ sealed: Uint8Array; set_at: number }>(
        'SELECT sealed, set_at FROM oauth_clients WHERE provider = ?',
        [provider],
      ),
    )
    return row && { sealed: new Uint8Array(row.sealed), setAtMs: row.set_at }
  }

  /** In the place of the one that was there. Accounts go on with the client that they were connected by. */
  async setClient(provider: string, sealed: Uint8Array): Promise<void> {
    await this.#ledger.driver.transaction((tx) =>
      tx.run(
        `INSERT INTO oauth_clients(provider, sealed, set_at) VALUES (?, ?, ?)
         ON CONFLICT (provider) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at`,
        [provider, sealed, this.#ledger.now()],
      ),
    )
  }

  /** Whether there was one. */
  async removeClient(provider: string): Promise<boolean> {
    const removed = await this.#ledger.driver.transaction((tx) =>
      tx.run('DELETE FROM oauth_clients WHERE provider = ?', [provider]),
    )
    return removed === 1
  }

  async #one(where: string, params: readonly Value[]): Promise<Account | undefined> {
    const row = await this.#ledger.driver.read((tx) =>
      tx.get<AccountRow>(`SELECT ${COLUMNS} FROM accounts WHERE ${where}`, params),
    )
    return row && toAccount(row)
  }

  async #change(id: number, set: string, params: readonly Value[]): Promise<void> {
    const changed = await this.#ledger.driver.transaction((tx) =>
      tx.run(`UPDATE accounts SET ${set} WHERE id = ?`, [...params, id]),
    )
    if (changed === 0) throw goneError(id)
  }
}

/** Text is ordered byte by byte on both databases, as in schema.ts. Numbers are never used twice. */
function schema(dialect: Tx['dialect']): string[] {
  const w =
    dialect === 'sqlite'
      ? {
          id: 'INTEGER PRIMARY KEY AUTOINCREMENT',
          int: 'INTEGER',
          text: 'TEXT',
          bytes: 'BLOB',
          end: 'STRICT',
        }
      : {
          id: 'BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY',
          int: 'BIGINT',
          text: 'TEXT COLLATE "C"',
          bytes: 'BYTEA',
          end: '',
        }
  return [
    `CREATE TABLE accounts (
      id ${w.id}, service ${w.text} NOT NULL, name ${w.text} NOT NULL, settings ${w.text} NOT NULL,
      state ${w.text} NOT NULL CHECK (state IN ('ready', 'sign-in')), sealed ${w.bytes} NOT NULL,
      created_at ${w.int} NOT NULL, UNIQUE (service, name)) ${w.end}`,
  ]
}

/** Version 2: whose each is. Those of before users were there are the owner's. */
function ownerStatements(dialect: Tx['dialect']): string[] {
  const int = dialect === 'sqlite' ? 'INTEGER' : 'BIGINT'
  return [
    `ALTER TABLE accounts ADD COLUMN user_id ${int} NOT NULL DEFAULT ${OWNER_ID}`,
    `CREATE INDEX accounts_user ON accounts(user_id)`,
  ]
}

/** Version 3: the clients with which people sign in, one for each provider. */
function clientStatements(dialect: Tx['dialect']): string[] {
  const [int, text, bytes, end] =
    dialect === 'sqlite' ? ['INTEGER', 'TEXT', 'BLOB', 'STRICT'] : ['BIGINT', 'TEXT COLLATE "C"', 'BYTEA', '']
  return [
    `CREATE TABLE oauth_clients (
      provider ${text} PRIMARY KEY, sealed ${bytes} NOT NULL, set_at ${int} NOT NULL) ${end}`,
  ]
}

function toAccount(row: AccountRow): Account {
  return {
    id: row.id,
    service: row.service,
    name: row.name,
    settings: parseSettings(row),
    state: row.state,
    userId: row.user_id,
    createdAtMs: row.created_at,
  }
}

function parseSettings(row: AccountRow): Record<string, unknown> {
  const parsed: unknown = JSON.parse(row.settings)
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) {
    return parsed as Record<string, unknown>
  }
  throw new TidemarkError(`The settings of the account ${accountKey(row)} are not a table.`, { kind: 'bug' })
}

function goneError(id: number): TidemarkError {
  return new TidemarkError(`There is no account #${id} any more.`, {
    kind: 'gone',
    code: 'account-gone',
    hint: 'It was removed meanwhile.',
  })
}
