/**
 * Read-only access to all shards of an archive, for one thread. The list of shards is that of archive.json, read
 * again by `shards`: what another thread or process made or set aside is noticed there.
 *
 * Invariants:
 * - at most `openMax` connections are open; the one used longest ago is closed for a new one. So a caller may keep
 *   what `open` or `prepare` gave while it opens a few others, and must not keep it between two tasks
 * - what is kept of pages and statements is bounded over all connections together
 * - a look-up by a key asks the shards that the catalogue names, and those that it does not cover
 * - a shard that is listed and cannot be read is an error with its name (`shard-missing`, `shard-corrupt`),
 *   never an empty answer
 */
import { readFileSync } from 'node:fs'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { ArchiveFile, type ArchiveList, type ListedShard } from './archive-file.ts'
import { CatalogueReader, type Hints, type KeyKind } from './catalogue.ts'
import { POS_PER_SECOND } from './schema.ts'
import { inodeOf, openForReading } from './shard-file.ts'
import { firstPosOf, type TimeRange } from './shard-router.ts'
import { classifyStore, isUnreadable, shardMissing } from './store-errors.ts'

/** For who asks few of them, or one after another. */
const OPEN_FEW = 32
/**
 * For who asks all of them, again and again: opening a shard takes 0.5 ms and more, asking one that is open 0.03 ms.
 * Open, it takes some 190 kB and three file handles.
 */
const OPEN_MAX = 1_024
const OPEN_MIN = 128
/** Other archives are open in the same process, and other files. */
const HANDLES_SHARE = 8
const HANDLES_USUAL = 1_024
/** Over all connections: statements that are kept parsed, of 2 kB and more, and pages that are kept, in kB. */
const STATEMENTS_MAX = 8_192
const STATEMENTS_MIN = 4
const CACHE_KB_MAX = 65_536
const CACHE_KB_EACH = { min: 64, max: 512 }

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
}

type OpenShard = {
  db: DatabaseSync
  /** When its file was last looked at. */
  task: number
  made: number
  inode: bigint | undefined
  statements: Map<string, StatementSync>
}

export class ShardReader {
  readonly archive: ArchiveFile
  readonly catalogue: CatalogueReader
  readonly #open = new Map<string, OpenShard>()
  readonly #openMax: number
  #opens = 0
  #task = 0
  #list: ArchiveList | undefined
  #listed = new Map<string, ListedShard>()
  #listings: readonly ShardListing[] = []

  /** `asks`: whether all shards are asked again and again, or few of them. */
  constructor(options: { folder: string; archiveId: string; asks?: 'all' | 'few' }) {
    this.archive = new ArchiveFile(options)
    this.catalogue = new CatalogueReader(this.archive, (name) => this.generation(name))
    this.#openMax = options.asks === 'all' ? openMaxHere() : OPEN_FEW
  }

  /** How many connections were ever opened. */
  get opens(): number {
    return this.#opens
  }

  /** What a shard has to be asked for: it has none of the others. */
  hints(kind: KeyKind, keys: readonly string[]): Hints {
    return this.catalogue.hints(kind, keys)
  }

  /** Counts the shard's transactions; null in one that was last written by an earlier version. */
  generation(name: string): number | null {
    const sql = `SELECT value FROM meta WHERE key = 'generation'`
    const row = this.guarded(name, () => this.prepare(name, sql).get()) as { value: string } | undefined
    return row ? Number(row.value) : null
  }

  /** Newest first: by toMs, then by name, both descending. Whoever begins a task asks for them. */
  shards(): readonly ShardListing[] {
    this.#task += 1
    const list = this.archive.read()
    if (list === this.#list) return this.#listings
    this.#list = list
    this.#listed = new Map(list.shards.map((shard) => [shard.name, shard]))
    this.#listings = list.shards
      .map(({ name, fromMs, toMs }) => ({ name, file: this.archive.pathOf(name), fromMs, toMs }))
      .sort((a, b) => b.toMs - a.toMs || (a.name < b.name ? 1 : -1))
    return this.#listings
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
      const kept = Math.max(STATEMENTS_MIN, Math.floor(STATEMENTS_MAX / Math.max(OPEN_MIN, this.#open.size)))
      if (statements.size >= kept) statements.delete(statements.keys().next().value!)
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
    this.catalogue.close()
    for (const name of [...this.#open.keys()]) this.#close(name)
  }

  #shard(name: string): OpenShard {
    const found = this.#open.get(name)
    if (found && this.#isCurrent(name, found)) {
      // A Map keeps the order of insertion: the first one was used longest ago.
      this.#open.delete(name)
      this.#open.set(name, found)
      return found
    }
    this.#close(name)
    // Made a moment ago, by another thread or process.
    if (!this.#listed.has(name)) this.shards()
    const listed = this.#listed.get(name)
    const file = this.archive.pathOf(name)
    if (!listed) throw shardMissing(name, file)
    const inode = inodeOf(file)
    if (this.#open.size >= this.#openMax) this.#close(this.#open.keys().next().value!)
    const db = this.#opened(name)
    const statements = new Map<string, StatementSync>()
    const shard = { db, task: this.#task, made: listed.made, inode, statements }
    this.#open.set(name, shard)
    return shard
  }

  /** Once in a task: another file may have been put in its place. */
  #isCurrent(name: string, shard: OpenShard): boolean {
    if (shard.task === this.#task) return true
    shard.task = this.#task
    return this.#listed.get(name)?.made === shard.made && inodeOf(this.archive.pathOf(name)) === shard.inode
  }

  /** Whatever the system allows: where it has no handles left, those of others are given back. */
  #opened(name: string): DatabaseSync {
    const { archiveId } = this.archive
    const file = this.archive.pathOf(name)
    const { min, max } = CACHE_KB_EACH
    const cacheKb = Math.max(min, Math.min(max, Math.floor(CACHE_KB_MAX / this.#listed.size)))
    const open = (): DatabaseSync => openForReading(file, { kind: 'shard', name, archiveId }, cacheKb)
    this.#opens += 1
    try {
      return open()
    } catch (thrown) {
      if (this.#open.size === 0 || !isUnreadable(thrown) || thrown.code !== 'archive-unwritable') throw thrown
      for (const other of [...this.#open.keys()]) this.#close(other)
      return open()
    }
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

/** By what the system allows this process; what is usual, where it does not say. */
function openMaxHere(): number {
  let handles = HANDLES_USUAL
  try {
    const soft = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    handles = soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft ?? HANDLES_USUAL)
  } catch {
    // Not on Linux: then it is not told.
  }
  return Math.max(OPEN_MIN, Math.min(OPEN_MAX, Math.floor(handles / HANDLES_SHARE)))
}
