/** Opens the ledger's file, makes it on first use and brings an older one up to date, refusing what is not ours or is newer than we are. */
import { closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import {
  APPLICATION_ID,
  foreignDatabaseError,
  missingLedgerError,
  newerSchemaError,
  SCHEMA_VERSION,
  schemaStatements,
} from '../schema.ts'
import { SqliteDriver, type SqliteDriverOptions } from './driver.ts'
import { classify } from './errors.ts'

/** Pages of log before a checkpoint: at 4 KiB, 16 MB. Fewer means more fsyncs of the main file. */
const CHECKPOINT_PAGES = 4_000
const OPEN_BUSY_MS = 5_000

export async function openSqlite(options: SqliteDriverOptions & { create?: boolean }): Promise<SqliteDriver> {
  const file = options.file === ':memory:' ? options.file : resolve(options.file)
  try {
    if (options.create === false && isMissing(file)) throw missingLedgerError(file)
    if (file !== ':memory:') makePlace(file)
    const db = new DatabaseSync(file, { timeout: OPEN_BUSY_MS })
    try {
      prepare(db, file, options.synchronous ?? 'FULL')
      return new SqliteDriver(db, { ...options, file })
    } catch (thrown) {
      db.close()
      throw thrown
    }
  } catch (thrown) {
    throw withFolder(thrown, file)
  }
}

/** The folder may be there already and open to all: what is in the ledger is for its owner alone, its log too. */
function makePlace(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  if (existsSync(file)) return
  try {
    closeSync(openSync(file, 'a', 0o600))
  } catch {
    // SQLite will fail in the same way, and says it in its own words.
  }
}

/** An empty file is what a crash before the first write leaves. */
function isMissing(file: string): boolean {
  return !statSync(file, { throwIfNoEntry: false })?.size
}

function prepare(db: DatabaseSync, file: string, synchronous: 'FULL' | 'NORMAL'): void {
  const version = schemaVersion(db, file)
  if (version > SCHEMA_VERSION) throw newerSchemaError(version, file)
  db.exec(`PRAGMA journal_mode = WAL`)
  db.exec(`PRAGMA synchronous = ${synchronous}`)
  db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  db.exec(`PRAGMA foreign_keys = ON`)
  db.exec(`PRAGMA cache_size = -8192`)
  if (version < SCHEMA_VERSION) raiseSchema(db, file)
  // From here on waiting is ours: SQLite's own would block the event loop.
  db.exec(`PRAGMA busy_timeout = 0`)
}

/** 0 for an empty file; anything else that is not ours is refused before a byte is written. */
function schemaVersion(db: DatabaseSync, file: string): number {
  const id = (db.prepare('PRAGMA application_id').get() as { application_id: number }).application_id
  if (id === APPLICATION_ID) {
    const row = db.prepare(`SELECT value FROM meta WHERE name = 'schema_version'`).get() as
      | { value: string }
      | undefined
    return Number(row?.value ?? 0)
  }
  const { n } = db.prepare(`SELECT count(*) AS n FROM sqlite_schema`).get() as { n: number }
  if (id !== 0 || n > 0) throw foreignDatabaseError(file)
  return 0
}

/** Makes the tables, or brings those of an earlier version up to this one: all of it or nothing. */
function raiseSchema(db: DatabaseSync, file: string): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    // Two processes may start together: the second finds the work done.
    const from = schemaVersion(db, file)
    if (from > SCHEMA_VERSION) throw newerSchemaError(from, file)
    if (from < SCHEMA_VERSION) for (const sql of schemaStatements('sqlite', { from })) db.exec(sql)
    if (from === 0) db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    db.exec('COMMIT')
  } catch (thrown) {
    if (db.isTransaction) db.exec('ROLLBACK') // a full disk has rolled it back already
    throw thrown
  }
}

function withFolder(thrown: unknown, file: string): unknown {
  const code = (thrown as NodeJS.ErrnoException | null)?.code
  if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM') {
    return classify(Object.assign(new Error(String((thrown as Error).message)), { errcode: 8 }), file)
  }
  if (code === 'ENOSPC') return classify(Object.assign(new Error('no space left'), { errcode: 13 }), file)
  // A part of the path is a file, or missing where nothing can be made, or its name is too long.
  if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'ENOENT' || code === 'ENAMETOOLONG') {
    return classify(Object.assign(new Error(String((thrown as Error).message)), { errcode: 14 }), file)
  }
  return classify(thrown, file)
}
