/** What a user searched for lately, and what they keep to search again. The tables are those of the index. */
import type { Search } from '../../app/search.ts'
import { UsageError } from '../../base/errors.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { SEARCH_APP } from '../../search/index/tables.ts'

export type SavedSearch = { id: number; name: string; query: string; createdAtMs: number }

const RECENT_MAX = 20
const SAVED_MAX = 200

export class OwnSearches {
  readonly #ledger: Ledger
  readonly #search: Pick<Search, 'prepare'>

  constructor({ ledger, search }: { ledger: Ledger; search: Pick<Search, 'prepare'> }) {
    this.#ledger = ledger
    this.#search = search
  }

  async saved(userId: number): Promise<SavedSearch[]> {
    await this.#search.prepare()
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<{ id: number; name: string; query: string; created_at: number }>(
        'SELECT id, name, query, created_at FROM search_saved WHERE user_id = ? ORDER BY name',
        [userId],
      ),
    )
    return rows.map(({ created_at, ...row }) => ({ ...row, createdAtMs: created_at }))
  }

  async save(userId: number, { name, query }: { name: string; query: string }): Promise<SavedSearch> {
    await this.#search.prepare()
    return this.#ledger.driver.transaction(async (tx) => {
      const held = await tx.get<{ n: number }>('SELECT count(*) AS n FROM search_saved WHERE user_id = ?', [
        userId,
      ])
      if (Number(held?.n ?? 0) >= SAVED_MAX) {
        throw new UsageError(`At most ${SAVED_MAX} searches are kept.`, { code: 'saved-many' })
      }
      const now = this.#ledger.now()
      const row = await tx.get<{ id: number }>(
        `INSERT INTO search_saved(user_id, name, query, created_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (user_id, name) DO UPDATE SET query = excluded.query RETURNING id`,
        [userId, name, query, now],
      )
      return { id: row!.id, name, query, createdAtMs: now }
    })
  }

  /** Whether there was one. */
  async forget(userId: number, id: number): Promise<boolean> {
    await this.#search.prepare()
    const gone = await this.#ledger.driver.transaction((tx) =>
      tx.run('DELETE FROM search_saved WHERE id = ? AND user_id = ?', [id, userId]),
    )
    return gone === 1
  }

  /** The newest first. */
  async recent(userId: number): Promise<string[]> {
    await this.#search.prepare()
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<{ text: string }>(
        `SELECT text FROM search_recent WHERE user_id = ? ORDER BY at DESC, text LIMIT ${RECENT_MAX}`,
        [userId],
      ),
    )
    return rows.map(({ text }) => text)
  }

  async note(userId: number, text: string): Promise<void> {
    await this.#search.prepare()
    await this.#ledger.driver.transaction(async (tx) => {
      await tx.run(
        `INSERT INTO search_recent(user_id, text, at) VALUES (?, ?, ?)
         ON CONFLICT (user_id, text) DO UPDATE SET at = excluded.at`,
        [userId, text, this.#ledger.now()],
      )
      await tx.run(
        `DELETE FROM search_recent WHERE user_id = ? AND text NOT IN (
           SELECT text FROM search_recent WHERE user_id = ? ORDER BY at DESC, text LIMIT ${RECENT_MAX})`,
        [userId, userId],
      )
    })
  }

  async forgetRecent(userId: number): Promise<void> {
    await this.#search.prepare()
    await this.#ledger.driver.transaction((tx) =>
      tx.run('DELETE FROM search_recent WHERE user_id = ?', [userId]),
    )
  }
}

/** All that was kept for a user. Makes no tables where nobody has searched yet. */
export async function forgetUser(tx: Tx, userId: number): Promise<void> {
  const made = await tx.get(`SELECT 1 AS made FROM app_schemas WHERE app = ? AND version > 0`, [SEARCH_APP])
  if (!made) return
  for (const table of ['search_saved', 'search_recent']) {
    await tx.run(`DELETE FROM ${table} WHERE user_id = ?`, [userId])
  }
}
