/**
 * What is to be read into the index, or read again: a row for each document, written in the transaction in which an app
 * stores, changes or deletes what it is about, and taken away in the transaction that publishes it. So nothing is
 * forgotten between an app's commit and the index's, and a document that changes while it is read stays wanted.
 *
 * What an app had before it wanted anything, and what changed without being wanted, is found by comparing (`Walk`).
 */
import type { Tx } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'

/** Whose documents: an app's, and there of one mailbox or folder. */
export type WantedOf = { source: string; unit: string }

/** `version` tells whether it was wanted again since it was taken. */
export type Wanted = { id: string; version: number; tries: number }

/**
 * Where a comparison of an app's documents with the index stands: first all that the app has (`forth`), then all that
 * the index has (`back`). `over`: nobody compares now; with no row, nobody ever has.
 */
export type Walk = {
  phase: 'forth' | 'back' | 'over'
  cursor: string | null
  /** Of what the app had when it began. */
  stamp: string
}

/** One that fails more often waits until it is wanted again. */
export const TRIES_MAX = 3

const ROWS_PER_STATEMENT = 200

export class WantedDocuments {
  readonly #ledger: Ledger

  private constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  static async open(ledger: Ledger): Promise<WantedDocuments> {
    await ledger.migrateApp('search-wanted', [schema(ledger.dialect)])
    return new WantedDocuments(ledger)
  }

  /** Also of what is gone: reading it will find that out. */
  async want(tx: Tx, { source, unit }: WantedOf, ids: readonly string[]): Promise<void> {
    const unique = [...new Set(ids)].sort()
    for (let at = 0; at < unique.length; at += ROWS_PER_STATEMENT) {
      const some = unique.slice(at, at + ROWS_PER_STATEMENT)
      await tx.run(
        `INSERT INTO search_wanted(source, unit, id, version, tries) VALUES ${some.map(() => '(?, ?, ?, 1, 0)').join(', ')}
         ON CONFLICT (source, unit, id) DO UPDATE SET version = search_wanted.version + 1, tries = 0`,
        some.flatMap((id) => [source, unit, id]),
      )
    }
  }

  /** The next ones, in no order that means anything. */
  async next({ source, unit }: WantedOf, limit: number): Promise<Wanted[]> {
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<{ id: string; version: number; tries: number }>(
        `SELECT id, version, tries FROM search_wanted WHERE source = ? AND unit = ? AND tries < ${TRIES_MAX} ORDER BY tries, id LIMIT ?`,
        [source, unit, limit],
      ),
    )
    return rows.map(({ id, version, tries }) => ({ id, version: Number(version), tries: Number(tries) }))
  }

  /** Whether it is wanted as it was taken; until the end of the transaction nobody else sees to it then. */
  async hold(tx: Tx, { source, unit }: WantedOf, { id, version }: Wanted): Promise<boolean> {
    const held = await tx.run(
      `UPDATE search_wanted SET version = version WHERE source = ? AND unit = ? AND id = ? AND version = ?`,
      [source, unit, id, version],
    )
    return held === 1
  }

  async done(tx: Tx, { source, unit }: WantedOf, { id, version }: Wanted): Promise<void> {
    await tx.run(`DELETE FROM search_wanted WHERE source = ? AND unit = ? AND id = ? AND version = ?`, [
      source,
      unit,
      id,
      version,
    ])
  }

  /** It could not be read: it comes after the others, and has one try less. */
  async failed(tx: Tx, { source, unit }: WantedOf, { id, version }: Wanted): Promise<void> {
    await tx.run(
      `UPDATE search_wanted SET tries = tries + 1 WHERE source = ? AND unit = ? AND id = ? AND version = ?`,
      [source, unit, id, version],
    )
  }

  /** Nothing of it is wanted any more; should it come back, everything is compared. */
  async forget(tx: Tx, { source, unit }: WantedOf): Promise<void> {
    for (const table of ['search_wanted', 'search_walks']) {
      await tx.run(`DELETE FROM ${table} WHERE source = ? AND unit = ?`, [source, unit])
    }
  }

  /** Waiting to be read, and given up. */
  async counts({ source, unit }: WantedOf): Promise<{ waiting: number; failed: number }> {
    const row = await this.#ledger.driver.read((tx) =>
      tx.get<{ waiting: number; failed: number }>(
        `SELECT count(*) - count(CASE WHEN tries >= ${TRIES_MAX} THEN 1 END) AS waiting, count(CASE WHEN tries >= ${TRIES_MAX} THEN 1 END) AS failed
         FROM search_wanted WHERE source = ? AND unit = ?`,
        [source, unit],
      ),
    )
    return { waiting: Number(row?.waiting ?? 0), failed: Number(row?.failed ?? 0) }
  }

  async walk({ source, unit }: WantedOf): Promise<Walk> {
    const row = await this.#ledger.driver.read((tx) =>
      tx.get<{ phase: Walk['phase']; cursor_at: string | null; stamp: string }>(
        `SELECT phase, cursor_at, stamp FROM search_walks WHERE source = ? AND unit = ?`,
        [source, unit],
      ),
    )
    return row ? { phase: row.phase, cursor: row.cursor_at, stamp: row.stamp } : FIRST_WALK
  }

  async noteWalk(tx: Tx, { source, unit }: WantedOf, { phase, cursor, stamp }: Walk): Promise<void> {
    await tx.run(
      `INSERT INTO search_walks(source, unit, phase, cursor_at, stamp) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (source, unit) DO UPDATE SET phase = excluded.phase, cursor_at = excluded.cursor_at, stamp = excluded.stamp`,
      [source, unit, phase, cursor, stamp],
    )
  }
}

export const FIRST_WALK: Walk = { phase: 'forth', cursor: null, stamp: '' }

function schema(dialect: Tx['dialect']): string[] {
  const withoutRowid = dialect === 'sqlite' ? ' WITHOUT ROWID' : ''
  return [
    `CREATE TABLE search_wanted (source TEXT NOT NULL, unit TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, tries INTEGER NOT NULL, PRIMARY KEY (source, unit, id))${withoutRowid}`,
    `CREATE TABLE search_walks (source TEXT NOT NULL, unit TEXT NOT NULL, phase TEXT NOT NULL, cursor_at TEXT, stamp TEXT NOT NULL, PRIMARY KEY (source, unit))${withoutRowid}`,
  ]
}
