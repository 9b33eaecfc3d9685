/**
 * Users: who may ask, what each may do, and the tokens with which their programs ask. Every account is of one user
 * (accounts.ts), and a user sees what was kept of their own accounts.
 *
 * - admin: may do everything that the server offers, and sees others' documents only by saying so, which is written down
 * - member: may do what is declared for members, with what is their own
 * - active, or disabled: a disabled user's tokens and sessions are worth nothing from that commit on
 *
 * Invariants:
 * - the owner (OWNER_ID) is always there, an active admin: whoever brings the server's own token
 * - of a token only its SHA-256 is kept; it is of 256 random bits, so that nothing can be guessed from that
 * - a user who has accounts is not removed: what was kept of them would be nobody's
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { TidemarkError, UsageError } from '../base/errors.ts'
import { Accounts, OWNER_ID } from './accounts.ts'
import type { Tx, Value } from './contract.ts'
import type { Ledger } from './ledger.ts'

export type UserRole = 'admin' | 'member'
export type UserState = 'active' | 'disabled'

export type User = {
  id: number
  /** Unique: an address, or a plain name. */
  name: string
  role: UserRole
  state: UserState
  createdAtMs: number
}

/** A personal token, without the token itself. */
export type UserToken = {
  id: number
  userId: number
  label: string
  createdAtMs: number
  /** The day on which it was last used, as milliseconds of its beginning; null where it never was. */
  usedDayMs: number | null
}

/** What was done that somebody may want to know of later. */
export type AuditAction =
  | 'view-as'
  | 'who'
  | 'user-added'
  | 'user-changed'
  | 'user-removed'
  | 'token-made'
  | 'token-revoked'
  | 'sign-in-made'
  | 'client-set'
  | 'client-removed'
  | 'setting-changed'

export type AuditEntry = {
  id: number
  atMs: number
  /** Who did it; the name is kept as it was. */
  userId: number
  userName: string
  action: AuditAction
  /** Whom or what it was about. */
  subject: string
}

/** Told from sessions and from the server's token by how it begins. */
export const TOKEN_PREFIX = 'user-'
export const TOKEN_BYTES = 32
const USERS_MAX = 10_000
const TOKENS_MAX = 100
const LABEL_CHARS_MAX = 100
const PRUNE_PART = 1_000
const PRUNE_PARTS_MAX = 10_000
const DAY_MS = 86_400_000
/** An address, or a word; part of commands that people are told to type. */
const NAME = /^[^\s\p{C}'"`\\/]{1,200}$/u

type UserRow = { id: number; name: string; role: UserRole; state: UserState; created_at: number }
type TokenRow = { id: number; user_id: number; label: string; created_at: number; used_day: number | null }
type AuditRow = {
  id: number
  at: number
  user_id: number
  user_name: string
  action: AuditAction
  subject: string
}

const COLUMNS = 'id, name, role, state, created_at'

/** The token itself, from random bytes. It is shown once, to who asked for it. */
export function tokenText(chance: Uint8Array): string {
  if (chance.length !== TOKEN_BYTES) throw new Error(`A token has ${TOKEN_BYTES} random bytes.`)
  return TOKEN_PREFIX + Buffer.from(chance).toString('base64url')
}

export class Users {
  readonly #ledger: Ledger
  readonly #listeners = new Set<() => void>()

  private constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  static async open(ledger: Ledger): Promise<Users> {
    // Whether a user may go depends on what accounts they have.
    await Accounts.open(ledger)
    await ledger.migrateApp('users', usersSchema(ledger.dialect, ledger.now()))
    return new Users(ledger)
  }

  /** Called when this process changed who may ask. Others hear of it with their next look. */
  onChange(fn: () => void): () => void {
    this.#listeners.add(fn)
    return () => this.#listeners.delete(fn)
  }

  async list(): Promise<User[]> {
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<UserRow>(`SELECT ${COLUMNS} FROM users ORDER BY id LIMIT ${USERS_MAX}`, []),
    )
    return rows.map(toUser)
  }

  get(id: number): Promise<User | undefined> {
    return this.#one('id = ?', [id])
  }

  /** Who may still ask: undefined where they are disabled or removed, or the token is revoked by which they came. */
  async active(id: number, tokenId?: number): Promise<User | undefined> {
    const user = await this.#one(`id = ? AND state = 'active'`, [id])
    if (!user || tokenId === undefined) return user
    const held = await this.#ledger.driver.read((tx) =>
      tx.get<{ id: number }>('SELECT id FROM user_tokens WHERE id = ? AND user_id = ?', [tokenId, id]),
    )
    return held && user
  }

  find(name: string): Promise<User | undefined> {
    return this.#one('name = ?', [plainName(name)])
  }

  async add({ name, role }: { name: string; role: UserRole }): Promise<User> {
    const plain = plainName(name)
    if (!NAME.test(plain)) {
      throw new UsageError(`${JSON.stringify(name.slice(0, 100))} cannot be the name of a user.`, {
        code: 'user-name',
        hint: 'Use an address such as ann@example.com, or one word.',
      })
    }
    const now = this.#ledger.now()
    const row = await this.#ledger.driver.transaction((tx) =>
      tx.get<{ id: number }>(
        `INSERT INTO users(name, role, state, created_at) VALUES (?, ?, 'active', ?)
         ON CONFLICT (name) DO NOTHING RETURNING id`,
        [plain, role, now],
      ),
    )
    if (row) return { id: row.id, name: plain, role, state: 'active', createdAtMs: now }
    throw new UsageError(`The user ${plain} is there already.`, { code: 'user-exists' })
  }

  /** From the commit on: what is asked afterwards is asked in this role, or not at all. */
  async change(
    id: number,
    to: { role?: UserRole | undefined; state?: UserState | undefined },
  ): Promise<User> {
    refuseOwner(id, 'is always an active admin')
    await this.#ledger.driver.transaction((tx) =>
      tx.run('UPDATE users SET role = coalesce(?, role), state = coalesce(?, state) WHERE id = ?', [
        to.role ?? null,
        to.state ?? null,
        id,
      ]),
    )
    this.#changed()
    const user = await this.get(id)
    if (!user) throw goneError(id)
    return user
  }

  /**
   * With all tokens. What else is kept for them goes in the same transaction (`forget`), and so does the note of who did
   * it: behind a user who is gone nothing could be found that was left.
   */
  async remove(
    id: number,
    {
      by,
      forget,
    }: { by?: Pick<User, 'id' | 'name'>; forget?: (tx: Tx, userId: number) => Promise<void> } = {},
  ): Promise<void> {
    refuseOwner(id, 'cannot be removed')
    const now = this.#ledger.now()
    const removed = await this.#ledger.driver.transaction(async (tx) => {
      const owned = await tx.get<{ n: number }>('SELECT count(*) AS n FROM accounts WHERE user_id = ?', [id])
      if (Number(owned?.n ?? 0) > 0) throw ownsAccounts()
      await tx.run('DELETE FROM user_tokens WHERE user_id = ?', [id])
      await forget?.(tx, id)
      const row = await tx.get<{ name: string }>('DELETE FROM users WHERE id = ? RETURNING name', [id])
      if (row && by) await addNote(tx, by, { atMs: now, action: 'user-removed', subject: row.name })
      return row !== undefined
    })
    if (!removed) throw goneError(id)
    this.#changed()
  }

  async tokens(userId: number): Promise<UserToken[]> {
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<TokenRow>(
        'SELECT id, user_id, label, created_at, used_day FROM user_tokens WHERE user_id = ? ORDER BY id',
        [userId],
      ),
    )
    return rows.map(toToken)
  }

  addToken(userId: number, { label, token }: { label: string; token: string }): Promise<UserToken> {
    const kept = label.trim().slice(0, LABEL_CHARS_MAX)
    return this.#ledger.driver.transaction(async (tx) => {
      const user = await tx.get<UserRow>(`SELECT ${COLUMNS} FROM users WHERE id = ?`, [userId])
      if (!user) throw goneError(userId)
      const held = await tx.get<{ n: number }>('SELECT count(*) AS n FROM user_tokens WHERE user_id = ?', [
        userId,
      ])
      if (Number(held?.n ?? 0) >= TOKENS_MAX) throw tooManyTokens()
      const now = this.#ledger.now()
      const row = await tx.get<{ id: number }>(
        'INSERT INTO user_tokens(user_id, label, hash, created_at) VALUES (?, ?, ?, ?) RETURNING id',
        [userId, kept, hashOf(token), now],
      )
      return { id: row!.id, userId, label: kept, createdAtMs: now, usedDayMs: null }
    })
  }

  /** Whether there was one. */
  async revokeToken(userId: number, tokenId: number): Promise<boolean> {
    const gone = await this.#ledger.driver.transaction((tx) =>
      tx.run('DELETE FROM user_tokens WHERE id = ? AND user_id = ?', [tokenId, userId]),
    )
    this.#changed()
    return gone === 1
  }

  /** Whose token this is; undefined where it is none, was revoked, or its user is disabled. */
  async byToken(token: string): Promise<(User & { tokenId: number }) | undefined> {
    const hash = hashOf(token)
    const row = await this.#ledger.driver.read((tx) =>
      tx.get<UserRow & { token_id: number; hash: Uint8Array; used_day: number | null }>(
        `SELECT t.id AS token_id, t.hash, t.used_day, u.id, u.name, u.role, u.state, u.created_at
         FROM user_tokens t JOIN users u ON u.id = t.user_id WHERE t.hash = ? AND u.state = 'active'`,
        [hash],
      ),
    )
    if (!row || !timingSafeEqual(new Uint8Array(row.hash), hash)) return undefined
    const today = this.#ledger.now() - (this.#ledger.now() % DAY_MS)
    // Once a day: what is asked must not cost a write each time.
    if (row.used_day !== today) {
      await this.#ledger.driver.transaction((tx) =>
        tx.run('UPDATE user_tokens SET used_day = ? WHERE id = ?', [today, row.token_id]),
      )
    }
    return { ...toUser(row), tokenId: row.token_id }
  }

  /**
   * Writes down who did what to whom; with it, or before it, but never left out. `onceInMs`: what was written down so
   * lately in the same words need not be again, such as the next page of a search.
   */
  async note(
    by: Pick<User, 'id' | 'name'>,
    action: AuditAction,
    subject: string,
    { onceInMs = 0 }: { onceInMs?: number } = {},
  ): Promise<void> {
    const now = this.#ledger.now()
    await this.#ledger.driver.transaction(async (tx) => {
      const isKnown =
        onceInMs > 0 &&
        (await tx.get<{ id: number }>(
          `SELECT id FROM user_audit WHERE at > ? AND user_id = ? AND action = ? AND subject = ? LIMIT 1`,
          [now - onceInMs, by.id, action, subject],
        ))
      if (!isKnown) await addNote(tx, by, { atMs: now, action, subject })
    })
  }

  /** Forgets what was written down before, some at a time, so that nobody waits long behind it. How many those were. */
  async pruneAudit(beforeMs: number): Promise<number> {
    let pruned = 0
    for (let part = 0; part < PRUNE_PARTS_MAX; part++) {
      const gone = await this.#ledger.driver.transaction((tx) =>
        tx.run(
          `DELETE FROM user_audit WHERE id IN (SELECT id FROM user_audit WHERE at < ? ORDER BY at LIMIT ${PRUNE_PART})`,
          [beforeMs],
        ),
      )
      pruned += gone
      if (gone < PRUNE_PART) break
    }
    return pruned
  }

  /** The newest first. */
  async audit({ before, limit }: { before?: number | undefined; limit: number }): Promise<AuditEntry[]> {
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<AuditRow>(
        `SELECT id, at, user_id, user_name, action, subject FROM user_audit
         ${before === undefined ? '' : 'WHERE id < ?'} ORDER BY id DESC LIMIT ?`,
        before === undefined ? [limit] : [before, limit],
      ),
    )
    return rows.map(({ id, at, user_id, user_name, action, subject }) => ({
      id,
      atMs: at,
      userId: user_id,
      userName: user_name,
      action,
      subject,
    }))
  }

  #changed(): void {
    for (const fn of this.#listeners) fn()
  }

  async #one(where: string, params: readonly Value[]): Promise<User | undefined> {
    const row = await this.#ledger.driver.read((tx) =>
      tx.get<UserRow>(`SELECT ${COLUMNS} FROM users WHERE ${where}`, params),
    )
    return row && toUser(row)
  }
}

async function addNote(
  tx: Tx,
  by: Pick<User, 'id' | 'name'>,
  { atMs, action, subject }: Pick<AuditEntry, 'atMs' | 'action' | 'subject'>,
): Promise<void> {
  await tx.run('INSERT INTO user_audit(at, user_id, user_name, action, subject) VALUES (?, ?, ?, ?, ?)', [
    atMs,
    by.id,
    by.name,
    action,
    subject,
  ])
}

/** Addresses are the same whatever their case; so are the names here. */
function plainName(name: string): string {
  return name.trim().toLowerCase()
}

function hashOf(token: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(token).digest())
}

/** By version. */
export function usersSchema(dialect: Tx['dialect'], nowMs: number): string[][] {
  return [firstSchema(dialect, nowMs), ['CREATE INDEX user_audit_at ON user_audit(at)']]
}

function firstSchema(dialect: Tx['dialect'], nowMs: number): string[] {
  const isLite = dialect === 'sqlite'
  const id = isLite
    ? 'INTEGER PRIMARY KEY AUTOINCREMENT'
    : 'BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY'
  const int = isLite ? 'INTEGER' : 'BIGINT'
  const text = isLite ? 'TEXT' : 'TEXT COLLATE "C"'
  const bytes = isLite ? 'BLOB' : 'BYTEA'
  const end = isLite ? 'STRICT' : ''
  return [
    `CREATE TABLE users (
      id ${id}, name ${text} NOT NULL UNIQUE, role ${text} NOT NULL CHECK (role IN ('admin', 'member')),
      state ${text} NOT NULL CHECK (state IN ('active', 'disabled')), created_at ${int} NOT NULL) ${end}`,
    `CREATE TABLE user_tokens (
      id ${id}, user_id ${int} NOT NULL REFERENCES users(id), label ${text} NOT NULL,
      hash ${bytes} NOT NULL UNIQUE, created_at ${int} NOT NULL, used_day ${int}) ${end}`,
    `CREATE INDEX user_tokens_user ON user_tokens(user_id)`,
    `CREATE TABLE user_audit (
      id ${id}, at ${int} NOT NULL, user_id ${int} NOT NULL, user_name ${text} NOT NULL, action ${text} NOT NULL,
      subject ${text} NOT NULL) ${end}`,
    // The first number is OWNER_ID.
    `INSERT INTO users(name, role, state, created_at) VALUES ('owner', 'admin', 'active', ${nowMs})`,
  ]
}

function toUser({ id, name, role, state, created_at }: UserRow): User {
  return { id, name, role, state, createdAtMs: created_at }
}

function toToken({ id, user_id, label, created_at, used_day }: TokenRow): UserToken {
  return { id, userId: user_id, label, createdAtMs: created_at, usedDayMs: used_day }
}

function refuseOwner(id: number, why: string): void {
  if (id === OWNER_ID) throw new UsageError(`The owner ${why}.`, { code: 'user-owner' })
}

function ownsAccounts(): UsageError {
  return new UsageError('The user has accounts still.', {
    code: 'user-busy',
    hint: 'Remove them, or give them to another user with: tidemark users give ACCOUNT USER',
  })
}

function tooManyTokens(): UsageError {
  return new UsageError(`A user has at most ${TOKENS_MAX} tokens.`, {
    code: 'tokens-many',
    hint: 'Revoke those that nobody uses any more.',
  })
}

function goneError(id: number): TidemarkError {
  return new TidemarkError(`There is no user #${id}.`, { kind: 'gone', code: 'user-gone' })
}
