/**
 * The inbox: a queue that is a table of the ledger, for what is pushed to this machine or dropped into a folder.
 *
 *   ingest_inbox  one for each message that is not acknowledged: what it says, when it is visible again, and how often it
 *                 was delivered. A delivery is known by (id, deliveries): the next one makes this one's receipt invalid
 *   ingest_drops  one for each file of a drop folder that was announced, by path: which version
 *
 * Invariants:
 * - a message is in the table from the transaction that put it there until it is acknowledged
 * - no two deliveries of a message have the same number, so an old receipt changes nothing
 * - a pipeline has a bounded number of messages: what does not fit is refused as a whole, before anything is told
 * - a file's announcement and the row that keeps it from being announced again are one transaction
 */
import { TidemarkError } from '../../../base/errors.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'

export type InboxRow = {
  id: number
  body: Uint8Array
  attributes: string
  deliveries: number
  sent_at: number
}

export type NewMessage = { body: Uint8Array; attributes: Readonly<Record<string, string>> }

/** A file of a drop folder; `version` as the store that reads it names it. */
export type Drop = { path: string; version: string }

export type Delivery = { id: number; deliveries: number }

/** Messages that are put in by one statement. */
const INSERT_MAX = 100
/** Messages of one pipeline that are not acknowledged. */
export const INBOX_MAX = 100_000
/** Paths that one statement asks about. */
const PATHS_MAX = 500

export function inboxSchema(dialect: Tx['dialect']): string[][] {
  const int = dialect === 'sqlite' ? 'INTEGER' : 'BIGINT'
  const id =
    dialect === 'sqlite'
      ? 'id INTEGER PRIMARY KEY AUTOINCREMENT'
      : 'id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY'
  const blob = dialect === 'sqlite' ? 'BLOB' : 'BYTEA'
  // Paths are ordered by their bytes on both.
  const path = dialect === 'sqlite' ? 'TEXT' : 'TEXT COLLATE "C"'
  return [
    [
      `CREATE TABLE ingest_inbox (${id}, pipeline TEXT NOT NULL, body ${blob} NOT NULL, attributes TEXT NOT NULL,
         visible_at ${int} NOT NULL, deliveries ${int} NOT NULL DEFAULT 0, sent_at ${int} NOT NULL)`,
      `CREATE INDEX ingest_inbox_visible ON ingest_inbox(pipeline, visible_at, id)`,
      `CREATE TABLE ingest_drops (pipeline TEXT NOT NULL, path ${path} NOT NULL, version TEXT NOT NULL,
         announced_at ${int} NOT NULL, PRIMARY KEY (pipeline, path))${dialect === 'sqlite' ? ' WITHOUT ROWID' : ''}`,
    ],
  ]
}

export class InboxTables {
  readonly ledger: Ledger
  readonly #waiting = new Set<() => void>()

  readonly #max: number

  private constructor(ledger: Ledger, max: number) {
    this.ledger = ledger
    this.#max = max
  }

  static async open(ledger: Ledger, { max = INBOX_MAX }: { max?: number } = {}): Promise<InboxTables> {
    await ledger.migrateApp('ingest-inbox', inboxSchema(ledger.dialect))
    return new InboxTables(ledger, max)
  }

  /** Visible from the commit on. Whoever commits calls `arrived` then, or a reader of this process sees it a moment later. */
  async put(tx: Tx, pipeline: string, messages: readonly NewMessage[]): Promise<void> {
    if (messages.length === 0) return
    await this.#checkRoom(tx, pipeline, messages.length)
    const nowMs = this.ledger.now()
    for (let from = 0; from < messages.length; from += INSERT_MAX) {
      const some = messages.slice(from, from + INSERT_MAX)
      await tx.run(
        `INSERT INTO ingest_inbox(pipeline, body, attributes, visible_at, sent_at)
         VALUES ${some.map(() => '(?, ?, ?, ?, ?)').join(', ')}`,
        some.flatMap(({ body, attributes }) => [pipeline, body, JSON.stringify(attributes), nowMs, nowMs]),
      )
    }
  }

  /** Two who put at the same time may go beyond it by what they put. */
  async #checkRoom(tx: Tx, pipeline: string, count: number): Promise<void> {
    const last = await tx.get(
      `SELECT 1 AS one FROM ingest_inbox WHERE pipeline = ? ORDER BY visible_at, id LIMIT 1 OFFSET ?`,
      [pipeline, Math.max(0, this.#max - count)],
    )
    if (last === undefined) return
    throw new TidemarkError(
      `The inbox of ${pipeline} has ${this.#max} messages: it takes more when some are read.`,
      {
        kind: 'transient',
        code: 'inbox-full',
      },
    )
  }

  /** Wakes who waits for messages in this process. */
  arrived(): void {
    for (const wake of this.#waiting) wake()
  }

  onArrival(wake: () => void): () => void {
    this.#waiting.add(wake)
    return () => this.#waiting.delete(wake)
  }

  /** The oldest that are visible become invisible to others, in one statement. */
  async receive(pipeline: string, page: { max: number; visibleAtMs: number }): Promise<InboxRow[]> {
    const rows = await this.ledger.driver.transaction((tx) => {
      const visible = `SELECT id FROM ingest_inbox WHERE pipeline = ? AND visible_at <= ?
        ORDER BY visible_at, id LIMIT ?`
      // An array is made once; a subquery could be run anew for each row, and skip others each time.
      const chosen =
        tx.dialect === 'postgres' ? `= ANY(ARRAY(${visible} FOR UPDATE SKIP LOCKED))` : `IN (${visible})`
      return tx.all<InboxRow>(
        `UPDATE ingest_inbox SET visible_at = ?, deliveries = deliveries + 1 WHERE id ${chosen}
         RETURNING id, body, attributes, deliveries, sent_at`,
        [page.visibleAtMs, pipeline, this.ledger.now(), page.max],
      )
    })
    return rows.sort((a, b) => a.id - b.id)
  }

  /** Without a write: a queue that is empty costs no commit. */
  async hasVisible(pipeline: string): Promise<boolean> {
    const row = await this.ledger.driver.read((tx) =>
      tx.get(`SELECT 1 AS one FROM ingest_inbox WHERE pipeline = ? AND visible_at <= ? LIMIT 1`, [
        pipeline,
        this.ledger.now(),
      ]),
    )
    return row !== undefined
  }

  /** Whether each of them still was what had been delivered. */
  extend(deliveries: readonly Delivery[], visibleAtMs: number): Promise<boolean[]> {
    return this.#each(deliveries, (tx, { id, deliveries: n }) =>
      tx.run(`UPDATE ingest_inbox SET visible_at = ? WHERE id = ? AND deliveries = ?`, [visibleAtMs, id, n]),
    )
  }

  /** Whether each of them is gone now. */
  acknowledge(deliveries: readonly Delivery[]): Promise<boolean[]> {
    return this.#each(deliveries, async (tx, { id, deliveries: n }) => {
      const removed = await tx.run(`DELETE FROM ingest_inbox WHERE id = ? AND deliveries = ?`, [id, n])
      if (removed > 0) return removed
      const other = await tx.get(`SELECT 1 AS one FROM ingest_inbox WHERE id = ?`, [id])
      return other === undefined ? 1 : 0
    })
  }

  async depth(pipeline: string): Promise<{ waiting: number; inFlight: number; oldestAt: number | null }> {
    const nowMs = this.ledger.now()
    const row = await this.ledger.driver.read((tx) =>
      tx.get<{ waiting: number; held: number; oldest: number | null }>(
        `SELECT COALESCE(SUM(CASE WHEN visible_at <= ? THEN 1 ELSE 0 END), 0) AS waiting,
           COALESCE(SUM(CASE WHEN visible_at > ? THEN 1 ELSE 0 END), 0) AS held, MIN(sent_at) AS oldest
         FROM ingest_inbox WHERE pipeline = ?`,
        [nowMs, nowMs, pipeline],
      ),
    )
    return { waiting: Number(row!.waiting), inFlight: Number(row!.held), oldestAt: row!.oldest }
  }

  /** Announces those of the files that were not announced in this version; how many those were. */
  async announce(
    pipeline: string,
    drops: readonly Drop[],
    messageOf: (drop: Drop) => NewMessage,
  ): Promise<number> {
    let announced = 0
    for (let from = 0; from < drops.length; from += INSERT_MAX) {
      const some = drops.slice(from, from + INSERT_MAX)
      announced += await this.ledger.driver.transaction(async (tx) => {
        const fresh: Drop[] = []
        for (const drop of some) {
          const changed = await tx.run(
            `INSERT INTO ingest_drops(pipeline, path, version, announced_at) VALUES (?, ?, ?, ?)
             ON CONFLICT (pipeline, path) DO UPDATE SET version = excluded.version, announced_at = excluded.announced_at
             WHERE ingest_drops.version <> excluded.version`,
            [pipeline, drop.path, drop.version, this.ledger.now()],
          )
          if (changed > 0) fresh.push(drop)
        }
        await this.put(tx, pipeline, fresh.map(messageOf))
        return fresh.length
      })
    }
    if (announced > 0) this.arrived()
    return announced
  }

  /** What was announced, by path, in the order of paths. */
  drops(pipeline: string, after: string): Promise<Drop[]> {
    return this.ledger.driver.read((tx) =>
      tx.all<Drop>(
        `SELECT path, version FROM ingest_drops WHERE pipeline = ? AND path > ? ORDER BY path LIMIT ${PATHS_MAX}`,
        [pipeline, after],
      ),
    )
  }

  /** Files that are not there any more: one of the same name would be another. */
  async forget(pipeline: string, drops: readonly Drop[]): Promise<void> {
    if (drops.length === 0) return
    await this.ledger.driver.transaction(async (tx) => {
      for (const { path, version } of drops) {
        await tx.run(`DELETE FROM ingest_drops WHERE pipeline = ? AND path = ? AND version = ?`, [
          pipeline,
          path,
          version,
        ])
      }
    })
  }

  #each(
    deliveries: readonly Delivery[],
    run: (tx: Tx, delivery: Delivery) => Promise<number>,
  ): Promise<boolean[]> {
    return this.ledger.driver.transaction(async (tx) => {
      const done = new Map<Delivery, boolean>()
      // In one order everywhere: two who hold some of the same must not wait for each other.
      for (const one of [...deliveries].sort((a, b) => a.id - b.id)) done.set(one, (await run(tx, one)) > 0)
      return deliveries.map((one) => done.get(one) ?? false)
    })
  }
}
