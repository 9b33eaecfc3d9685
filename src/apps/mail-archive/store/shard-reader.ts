/**
 * Read-only access to all shards of an archive, for one thread. The list of shards is that of archive.json, read
 * again by `shards`: what another thread or process made or set aside is noticed there.
 *
 * Invariants:
 * - at most OPEN_MAX connections are open; the one used longest ago is closed for a new one. So a caller may keep
 *   what `open` or `prepare` gave while it opens a few others, and must not keep it between two tasks
 * - a shard that is listed and cannot be read is an error with its name (`shard-missing`, `shard-corrupt`),
 *   never an empty answer
 */
import { existsSync } from 'node:fs'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { ArchiveFile, type ListedShard } from './archive-file.ts'
import { POS_PER_SECOND } from './schema.ts'
import { inodeOf, openForReading } from './shard-file.ts'
import { firstPosOf, type TimeRange } from './shard-router.ts'
import { classifyStore, isUnreadable, shardMissing } from './store-errors.ts'

/** Three file handles each; most systems allow a process 1,024. */
export const OPEN_MAX = 128
/** Statements that are kept parsed, per connection. */
const STATEMENTS_MAX = 64

export type ShardListing = {
  name: string
  /** The path of its file. */
  file: string
  /**
   * Messages in it have fromMs <= internalMs < toMs. Shards may overlap: parts of one period do, and so do shards
   * that were made under another policy.
   */
  fromMs: number
  toMs: number
  /** By a look at the file's name only: what is inside shows when it is opened. */
  state: 'ok' | 'missing'
}

type OpenShard = {
  db: DatabaseSync
  made: number
  inode: bigint | undefined
  statements: Map<string, StatementSync>
}

export class ShardReader {
  readonly archive: ArchiveFile
  readonly #open = new Map<string, OpenShard>()
  #listed = new Map<string, ListedShard>()

  constructor(options: { folder: string; archiveId: string }) {
    this.archive = new ArchiveFile(options)
  }

  /** Newest first: by toMs, then by name, both descending. */
  shards(): ShardListing[] {
    const { shards } = this.archive.read()
    this.#listed = new Map(shards.map((shard) => [shard.name, shard]))
    for (const [name, { made, inode }] of this.#open) {
      const isSame = this.#listed.get(name)?.made === made && inodeOf(this.archive.pathOf(name)) === inode
      if (!isSame) this.#close(name)
    }
    return shards
      .map(({ name, fromMs, toMs }) => {
        const file = this.archive.pathOf(name)
        return { name, file, fromMs, toMs, state: existsSync(file) ? ('ok' as const) : ('missing' as const) }
      })
      .sort((a, b) => b.toMs - a.toMs || (a.name < b.name ? 1 : -1))
  }

  /** Those that can hold a message of [fromMs, toMs), newest first. */
  shardsIn(range: TimeRange): ShardListing[] {
    return this.shards().filter(({ fromMs, toMs }) => fromMs < range.toMs && range.fromMs < toMs)
  }

  /** Read-only. Throws a TidemarkError with the code `shard-missing` or `shard-corrupt`. */
  open(name: string): DatabaseSync {
    return this.#shard(name).db
  }

  /** The same statement again and again costs its parsing once per connection. Errors like `open`. */
  prepare(name: string, sql: string): StatementSync {
    const { db, statements } = this.#shard(name)
    let statement = statements.get(sql)
    if (!statement) {
      try {
        statement = db.prepare(sql)
      } catch (thrown) {
        throw this.#failed(name, thrown)
      }
      if (statements.size >= STATEMENTS_MAX) statements.delete(statements.keys().next().value!)
      statements.set(sql, statement)
    }
    return statement
  }

  /**
   * Runs `work`, and turns SQLite's errors that mean a damaged file into `shard-corrupt` with the shard's name,
   * closing its connection.
   */
  guarded<Result>(name: string, work: (db: DatabaseSync) => Result): Result {
    try {
      return work(this.open(name))
    } catch (thrown) {
      throw this.#failed(name, thrown)
    }
  }

  /**
   * Positions that a message of [fromMs, toMs) can have in this shard: [fromPos, toPos). A second with more than
   * 1,024 messages runs over into the next ones, so positions are a bound only: compare internal_ms as well.
   */
  positions(name: string, range: TimeRange): { fromPos: number; toPos: number } {
    const row = this.prepare(name, `SELECT value FROM meta WHERE key = 'overrun_s'`).get()
    const overrun = (1 + Number((row as { value: string } | undefined)?.value ?? 0)) * POS_PER_SECOND
    return { fromPos: firstPosOf(range.fromMs), toPos: firstPosOf(range.toMs) + overrun }
  }

  close(): void {
    for (const name of [...this.#open.keys()]) this.#close(name)
  }

  #shard(name: string): OpenShard {
    const found = this.#open.get(name)
    if (found) {
      // A Map keeps the order of insertion: the first one was used longest ago.
      this.#open.delete(name)
      this.#open.set(name, found)
      return found
    }
    // Made a moment ago, by another thread or process.
    if (!this.#listed.has(name)) this.shards()
    const listed = this.#listed.get(name)
    const file = this.archive.pathOf(name)
    if (!listed) throw shardMissing(name, file)
    const inode = inodeOf(file)
    const { archiveId } = this.archive
    const db = openForReading(file, { kind: 'shard', name, archiveId })
    if (this.#open.size >= OPEN_MAX) this.#close(this.#open.keys().next().value!)
    const shard = { db, made: listed.made, inode, statements: new Map<string, StatementSync>() }
    this.#open.set(name, shard)
    return shard
  }

  #failed(name: string, thrown: unknown): unknown {
    const error = classifyStore(thrown, name, this.archive.pathOf(name))
    if (isUnreadable(error)) this.#close(name)
    return error
  }

  #close(name: string): void {
    const shard = this.#open.get(name)
    this.#open.delete(name)
    shard?.db.close()
  }
}
