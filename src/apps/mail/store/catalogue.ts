/**
 * catalogue.db: which shards may have a message's id, its thread or its Message-ID header, so that a look-up asks one
 * shard and not a thousand. It is a hint and never the answer: what it names is looked up in the shard itself.
 *
 * A shard is covered when all that it has is noted here, and is asked only for what is noted. One that is not covered
 * is asked for everything, as if there were no catalogue.
 *
 * Invariants:
 * - a key is noted before the message is committed to its shard: a covered shard stays covered, and a crash in between
 *   leaves a note too many, which a look-up in the shard puts right
 * - every transaction of a shard counts its `generation` up. A shard is covered while the one noted here is its own:
 *   a file that was replaced, or a catalogue that lost its end in a power cut, shows by that. A file whose stamp is
 *   the one noted here was not touched since, and need not be opened to know
 * - a shard whose generation is lower than the one noted here is older than what was stored in it: the ids that it no
 *   longer has are kept in `dropped` until the ledger has taken them down
 * - a state that the ledger is told of has a random name, a tip. An older copy of the whole archive does not have the
 *   one that the ledger noted last, however much is stored in it later
 * - made anew, or brought up to date for a shard, only by who holds the archive's lock alone (a new shard: its year's)
 *
 * All of it can be made from the shards: it is removed and made anew when it is damaged.
 */
import { hash } from 'node:crypto'
import { chmodSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { ArchiveFile, ArchiveList, ListedShard } from './archive-file.ts'
import type { ArchiveMark, DroppedId } from './contract.ts'
import { inodeOf, stampOf } from './shard-file.ts'
import { shardOf } from './shard-router.ts'
import { classifyStore, isUnreadable } from './store-errors.ts'

const NAME = 'catalogue'
const FORMAT = '1'
const BUSY_MS = 30_000
/** Tips that are kept: more than fetches can be between here and the ledger. Where one is forgotten all is compared. */
const TIPS_MAX = 100
/** Of the generation of a shard that is not covered. */
const UNKNOWN = -1

const SCHEMA = [
  `CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE shards (no INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, made INTEGER NOT NULL,
    generation INTEGER NOT NULL, is_older INTEGER NOT NULL DEFAULT 0, stamp TEXT, UNIQUE (name, made))`,
  `CREATE TABLE ids (key TEXT NOT NULL, shard INTEGER NOT NULL, PRIMARY KEY (key, shard)) WITHOUT ROWID`,
  `CREATE INDEX ids_shard ON ids(shard, key)`,
  `CREATE TABLE threads (key TEXT NOT NULL, shard INTEGER NOT NULL, PRIMARY KEY (key, shard)) WITHOUT ROWID`,
  `CREATE TABLE message_ids (key INTEGER NOT NULL, shard INTEGER NOT NULL, PRIMARY KEY (key, shard)) WITHOUT ROWID`,
  `CREATE TABLE dropped (id TEXT PRIMARY KEY, shard TEXT NOT NULL, from_ms INTEGER NOT NULL) WITHOUT ROWID`,
]

export type KeyKind = 'id' | 'thread' | 'message-id'
const TABLES: Record<KeyKind, string> = { id: 'ids', thread: 'threads', 'message-id': 'message_ids' }

/** Of these keys, those that a shard has to be asked for. */
export type Hints = (shard: string) => readonly string[]

/** What is noted of a message; `replaces`: the id whose place it takes. */
export type Keys = { id: string; threadId: string; messageId: string; replaces?: string | null }

type ShardRow = {
  no: number
  name: string
  made: number
  generation: number
  is_older: number
  stamp: string | null
}

/** Look-ups, for one thread. */
export class CatalogueReader {
  readonly #archive: ArchiveFile
  readonly #generationOf: (shard: string) => number | null
  #open: { db: DatabaseSync; inode: bigint | undefined } | undefined
  #covered = new Map<string, { made: number; no: number }>()
  /** Generations of shards whose stamp said nothing. */
  readonly #lookedInto = new Map<string, number>()
  /** Stamps of shards that could not be read: another try is worth while when the file is another one. */
  readonly #unreadable = new Map<string, string | null>()
  /** For which list, and as of which change of the catalogue, everything was looked at. */
  #seen: { list: ArchiveList; version: number } | undefined

  /** `generationOf`: what the shard itself says; null where it says nothing. Throws where it cannot be read. */
  constructor(archive: ArchiveFile, generationOf: (shard: string) => number | null) {
    this.#archive = archive
    this.#generationOf = generationOf
  }

  hints(kind: KeyKind, keys: readonly string[]): Hints {
    try {
      const db = this.#current()
      if (!db) return () => keys
      this.#cover(db)
      const textOf = new Map(keys.map((key) => [catalogueKey(kind, key), key]))
      const sql = `SELECT k.value AS key, t.shard AS no FROM json_each(?) k CROSS JOIN ${TABLES[kind]} t ON t.key = k.value`
      const rows = db.prepare(sql).all(JSON.stringify([...textOf.keys()]))
      const found = new Map<number, string[]>()
      for (const { key, no } of rows as { key: string | number; no: number }[]) {
        const here = found.get(no)
        if (here) here.push(textOf.get(key)!)
        else found.set(no, [textOf.get(key)!])
      }
      return (shard) => {
        const covered = this.#covered.get(shard)
        return covered ? (found.get(covered.no) ?? []) : keys
      }
    } catch (thrown) {
      this.#failed(thrown)
      return () => keys
    }
  }

  /** Shards that are asked for everything, and could be covered; null where there is no catalogue that can be used. */
  uncovered(): ListedShard[] | null {
    try {
      const db = this.#current()
      if (!db) return null
      this.#cover(db)
    } catch (thrown) {
      this.#failed(thrown)
      return null
    }
    return this.#archive
      .read()
      .shards.filter(({ name }) => !this.#covered.has(name) && !this.#isUnreadable(name))
  }

  /** It stays uncovered: who asks it learns why. */
  noteUnreadable(name: string): void {
    this.#unreadable.set(name, stampOf(this.#archive.pathOf(name)))
  }

  /** Looks at every file again, and not only at those that are not covered. */
  recheck(): void {
    this.#covered.clear()
    this.#lookedInto.clear()
    this.#unreadable.clear()
    this.#seen = undefined
  }

  /** Shards whose file was opened to know whether they are covered, which they are, and their generation. */
  lookedInto(): ReadonlyMap<string, number> {
    return this.#lookedInto
  }

  close(): void {
    this.#open?.db.close()
    this.#open = undefined
    this.recheck()
  }

  #current(): DatabaseSync | undefined {
    const file = this.#archive.pathOf(NAME)
    const inode = inodeOf(file)
    if (this.#open?.inode !== inode) this.close()
    if (inode === undefined) return undefined
    this.#open ??= { db: opened(file, this.#archive.archiveId, 'ro'), inode }
    return this.#open.db
  }

  #cover(db: DatabaseSync): void {
    const list = this.#archive.read()
    const { data_version: version } = db.prepare('PRAGMA data_version').get() as { data_version: number }
    const isWhole = this.#covered.size === list.shards.length
    if (this.#seen?.list === list && (isWhole || this.#seen.version === version)) return
    const rows = new Map(shardRows(db).map((row) => [row.name, row]))
    const covered = new Map<string, { made: number; no: number }>()
    for (const { name, made } of list.shards) {
      const row = rows.get(name)
      if (row?.made !== made) continue
      const isKnown = this.#covered.get(name)?.made === made
      if (isKnown || this.#isCovered(row)) covered.set(name, { made, no: row.no })
    }
    this.#covered = covered
    this.#seen = { list, version }
  }

  #isCovered({ name, generation, is_older: isOlder, stamp }: ShardRow): boolean {
    if (generation === UNKNOWN || isOlder === 1) return false
    if (stamp !== null && stamp === stampOf(this.#archive.pathOf(name))) return true
    if (this.#isUnreadable(name)) return false
    try {
      if (this.#generationOf(name) !== generation) return false
      this.#lookedInto.set(name, generation)
      return true
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown
      this.noteUnreadable(name)
      return false
    }
  }

  #isUnreadable(name: string): boolean {
    const stamp = this.#unreadable.get(name)
    return stamp !== undefined && stamp === stampOf(this.#archive.pathOf(name))
  }

  /** Without it everything is slower, and as right. */
  #failed(thrown: unknown): void {
    const error = classifyStore(thrown, NAME, this.#archive.pathOf(NAME))
    if (!isUnreadable(error) && !(error instanceof CatalogueForeign)) throw error
    this.close()
  }
}

/** What writers note, for one thread. Who calls holds a lock of the archive. */
export class CatalogueWriter {
  readonly #archive: ArchiveFile
  #open: { db: DatabaseSync; inode: bigint | undefined } | undefined

  constructor(archive: ArchiveFile) {
    this.#archive = archive
  }

  /** Before they are stored there. */
  note(shard: ListedShard, messages: readonly Keys[]): void {
    this.#transaction((db) => {
      const { no } = shardRow(db, shard) ?? added(db, shard)
      noteKeys(db, no, messages)
    })
  }

  /**
   * After a transaction of the shard. What was not covered before it is not covered now. `replaced`: ids that the shard
   * no longer has, because their messages are there under others.
   */
  confirm(
    shard: ListedShard,
    { before, after, replaced }: { before: number; after: number; replaced: readonly string[] },
  ): void {
    if (before === after) return
    this.#transaction((db) => {
      const row = replaced.length > 0 ? shardRow(db, shard) : undefined
      for (const id of row ? replaced : [])
        run(db, 'DELETE FROM ids WHERE key = ? AND shard = ?', id, row!.no)
      const sql = 'UPDATE shards SET generation = ? WHERE name = ? AND made = ? AND generation = ?'
      run(db, sql, after, shard.name, shard.made, before)
      run(db, `UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'stores'`)
    })
  }

  /** A file that is older than what is known of it must not catch up by what is written to it from now on. */
  opened(shard: ListedShard, generation: number): void {
    this.#transaction((db) => {
      const sql = 'UPDATE shards SET is_older = 1 WHERE name = ? AND made = ? AND generation > ?'
      run(db, sql, shard.name, shard.made, generation)
    })
  }

  /** Nobody has it open for writing here; it was closed as it is noted here. */
  closed(shard: ListedShard, generation: number): void {
    const stamp = stampOf(this.#archive.pathOf(shard.name))
    const sql =
      'UPDATE shards SET stamp = ? WHERE name = ? AND made = ? AND generation = ? AND stamp IS NOT ?'
    this.#transaction((db) => run(db, sql, stamp, shard.name, shard.made, generation, stamp))
  }

  /** Brings it up to date with a shard: `messages` are all that it has. */
  cover(shard: ListedShard, generation: number, messages: Iterable<Keys>): void {
    const stamp = stampOf(this.#archive.pathOf(shard.name))
    this.#transaction((db) => {
      const row = shardRow(db, shard)
      const { no } = row ?? added(db, shard)
      const isOlder = row !== undefined && (row.is_older === 1 || generation < row.generation)
      const rest = new Set(row ? idsOf(db, no) : [])
      const note = keyNoter(db, no)
      for (const keys of messages) {
        note(keys)
        rest.delete(keys.id)
      }
      drop(db, { no, shard, ids: rest, isOlder })
      if (isOlder) run(db, `UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'older'`)
      const sql = 'UPDATE shards SET generation = ?, is_older = 0, stamp = ? WHERE no = ?'
      run(db, sql, generation, stamp, no)
    })
  }

  /** Whether it knows shards that are not listed. */
  hasOthers(shards: readonly ListedShard[]): boolean {
    return othersThan(this.#current(), shards).length > 0
  }

  /** What was in shards that are no longer listed: it may be elsewhere by now. */
  forget(shards: readonly ListedShard[]): void {
    this.#transaction((db) => {
      for (const { no, name } of othersThan(db, shards)) {
        const { fromMs } = shardOf(name)!
        run(db, 'INSERT OR IGNORE INTO dropped SELECT key, ?, ? FROM ids WHERE shard = ?', name, fromMs, no)
        run(db, 'DELETE FROM ids WHERE shard = ?', no)
        run(db, 'DELETE FROM shards WHERE no = ?', no)
      }
    })
  }

  dropped(limit: number): DroppedId[] {
    const sql = 'SELECT id, shard, from_ms AS fromMs FROM dropped ORDER BY id LIMIT ?'
    const rows = this.#current().prepare(sql).all(limit) as DroppedId[]
    return rows.map(({ id, shard, fromMs }) => ({ id, shard, fromMs }))
  }

  takenDown(ids: readonly string[]): void {
    this.#transaction((db) =>
      run(db, 'DELETE FROM dropped WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(ids)),
    )
  }

  /** How many transactions were ever noted here. */
  stores(): number {
    return storedCount(this.#current(), 'stores')
  }

  /** A new tip, unless nothing was stored since the last one. */
  mark(): ArchiveMark {
    return this.#transaction((db) => {
      const stores = storedCount(db, 'stores')
      const { at, tips } = tipsOf(db)
      if (at === stores) return { stores, tips }
      const { tip } = db.prepare('SELECT lower(hex(randomblob(8))) AS tip').get() as { tip: string }
      const marked = [tip, ...tips].slice(0, TIPS_MAX)
      const value = JSON.stringify({ at: stores, tips: marked } satisfies Tips)
      run(db, `INSERT OR REPLACE INTO meta(key, value) VALUES ('tips', ?)`, value)
      return { stores, tips: marked }
    })
  }

  remember(key: string, value: string | undefined): void {
    this.#transaction((db) => {
      run(db, 'DELETE FROM meta WHERE key = ?', key)
      if (value !== undefined) run(db, 'INSERT INTO meta(key, value) VALUES (?, ?)', key, value)
    })
  }

  remembered(key: string): string | undefined {
    const row = this.#current().prepare('SELECT value FROM meta WHERE key = ?').get(key)
    return (row as { value: string } | undefined)?.value
  }

  /** How often a shard was found to be older than what was stored in it. */
  older(): number {
    return storedCount(this.#current(), 'older')
  }

  /** Made anew where it is not there or cannot be used. Who calls holds the lock alone. */
  make(): void {
    try {
      this.#current()
    } catch (thrown) {
      const error = classifyStore(thrown, NAME, this.#archive.pathOf(NAME))
      if (!isUnreadable(error) && !(error instanceof CatalogueForeign)) throw error
      this.close()
      const file = this.#archive.pathOf(NAME)
      for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
      const db = created(file, this.#archive.archiveId)
      this.#open = { db, inode: inodeOf(file) }
    }
  }

  close(): void {
    this.#open?.db.close()
    this.#open = undefined
  }

  #current(): DatabaseSync {
    const file = this.#archive.pathOf(NAME)
    const inode = inodeOf(file)
    if (this.#open && this.#open.inode !== inode) this.close()
    this.#open ??= { db: opened(file, this.#archive.archiveId, 'rw'), inode }
    return this.#open.db
  }

  #transaction<Result>(work: (db: DatabaseSync) => Result): Result {
    const db = this.#current()
    try {
      db.exec('BEGIN IMMEDIATE')
      const result = work(db)
      db.exec('COMMIT')
      return result
    } catch (thrown) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw classifyStore(thrown, NAME, this.#archive.pathOf(NAME))
    }
  }
}

/** It is of another archive, or of another version. */
class CatalogueForeign extends Error {}

function opened(file: string, archiveId: string, mode: 'ro' | 'rw'): DatabaseSync {
  statSync(file) // `DatabaseSync` would make one that is not there
  const db = new DatabaseSync(file, { readOnly: mode === 'ro', timeout: BUSY_MS })
  try {
    const rows = db.prepare('SELECT key, value FROM meta').all() as { key: string; value: string }[]
    const meta = new Map(rows.map(({ key, value }) => [key, value]))
    if (meta.get('archive_id') !== archiveId || meta.get('format') !== FORMAT) {
      throw new CatalogueForeign('the catalogue is of another archive or another version')
    }
    // A power cut may take the last commits: the generations tell.
    if (mode === 'rw') db.exec('PRAGMA synchronous = NORMAL')
    return db
  } catch (thrown) {
    db.close()
    const isWithoutTables = (thrown as { errcode?: number }).errcode === 1
    throw isWithoutTables ? new CatalogueForeign('the catalogue was not made to its end') : thrown
  }
}

function created(file: string, archiveId: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_MS })
  try {
    chmodSync(file, 0o600)
    db.exec('PRAGMA journal_mode = WAL')
    db.exec('PRAGMA synchronous = NORMAL')
    db.exec('BEGIN IMMEDIATE')
    for (const sql of SCHEMA) db.exec(sql)
    const insert = db.prepare('INSERT INTO meta(key, value) VALUES (?, ?)')
    insert.run('format', FORMAT)
    insert.run('archive_id', archiveId)
    insert.run('stores', '0')
    insert.run('older', '0')
    db.exec('COMMIT')
    return db
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

function shardRows(db: DatabaseSync): ShardRow[] {
  return db.prepare('SELECT * FROM shards ORDER BY no').all() as ShardRow[]
}

function othersThan(db: DatabaseSync, shards: readonly ListedShard[]): ShardRow[] {
  const listed = new Set(shards.map(({ name, made }) => `${name} ${made}`))
  return shardRows(db).filter(({ name, made }) => !listed.has(`${name} ${made}`))
}

function shardRow(db: DatabaseSync, { name, made }: ListedShard): ShardRow | undefined {
  return db.prepare('SELECT * FROM shards WHERE name = ? AND made = ?').get(name, made) as
    | ShardRow
    | undefined
}

function added(db: DatabaseSync, { name, made }: ListedShard): { no: number } {
  const sql = 'INSERT INTO shards(name, made, generation) VALUES (?, ?, ?) RETURNING no'
  return db.prepare(sql).get(name, made, UNKNOWN) as { no: number }
}

function noteKeys(db: DatabaseSync, no: number, messages: readonly Keys[]): void {
  const note = keyNoter(db, no)
  for (const keys of messages) note(keys)
}

function keyNoter(db: DatabaseSync, no: number): (keys: Keys) => void {
  const [ids, threads, messageIds] = Object.values(TABLES).map((table) =>
    db.prepare(`INSERT OR IGNORE INTO ${table}(key, shard) VALUES (?, ?)`),
  )
  return ({ id, threadId, messageId }) => {
    ids!.run(catalogueKey('id', id), no)
    threads!.run(catalogueKey('thread', threadId), no)
    messageIds!.run(catalogueKey('message-id', messageId), no)
  }
}

function idsOf(db: DatabaseSync, no: number): string[] {
  const rows = db.prepare('SELECT key FROM ids WHERE shard = ?').all(no) as { key: string }[]
  return rows.map(({ key }) => key)
}

function drop(
  db: DatabaseSync,
  { no, shard, ids, isOlder }: { no: number; shard: ListedShard; ids: Iterable<string>; isOlder: boolean },
): void {
  const remove = db.prepare('DELETE FROM ids WHERE key = ? AND shard = ?')
  const keep = db.prepare('INSERT OR IGNORE INTO dropped(id, shard, from_ms) VALUES (?, ?, ?)')
  for (const id of ids) {
    remove.run(id, no)
    // Otherwise it was noted and never stored.
    if (isOlder) keep.run(id, shard.name, shard.fromMs)
  }
}

function storedCount(db: DatabaseSync, key: 'stores' | 'older'): number {
  const row = db.prepare('SELECT value FROM meta WHERE key = ?').get(key) as { value: string } | undefined
  return Number(row?.value ?? 0)
}

/** `at`: how much was stored when the newest was given. */
type Tips = { at: number; tips: readonly string[] }

function tipsOf(db: DatabaseSync): Tips {
  const row = db.prepare(`SELECT value FROM meta WHERE key = 'tips'`).get() as { value: string } | undefined
  return row ? (JSON.parse(row.value) as Tips) : { at: -1, tips: [] }
}

function run(db: DatabaseSync, sql: string, ...values: SQLInputValue[]): void {
  db.prepare(sql).run(...values)
}

/** Headers may be of any length, and are in no order: 48 bits of their hash do for a hint. */
function catalogueKey(kind: KeyKind, text: string): string | number {
  return kind === 'message-id' ? hash('sha256', text, 'buffer').readUIntBE(0, 6) : text
}
