/**
 * The files of an archive, as SQLite databases: made, opened and checked here. A file that is there under its own name
 * is complete: it is made under another name and renamed. What is not ours, or newer than we are, is refused before a
 * byte is written.
 */
import { chmodSync, existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { syncFolder } from './archive-file.ts'
import { ATTACHMENT_SCHEMA, DERIVATION, SHARD_FORMAT, SHARD_SCHEMA } from './schema.ts'
import { shardOf } from './shard-router.ts'
import { classifyStore, shardCorrupt, shardForeign, shardMissing, shardNewer } from './store-errors.ts'

/** "TdMA" in the file's header. */
const APPLICATION_ID = 0x54644d41
const PAGE_BYTES = 4_096
/** Pages of log before a checkpoint: 16 MB. */
const CHECKPOINT_PAGES = 4_000
const BUSY_MS = 30_000
/**
 * How the search index grows, per 8 kB mail in transactions of 100: as SQLite has it 190 µs, with room in memory for
 * all words of a transaction and fewer merges 150 µs. Sixteen segments a level would take 135 µs and slow searches.
 */
const INDEX_SETTINGS = { hashsize: 8_388_608, automerge: 8, crisismerge: 32 }

export type FileIdentity = {
  /** `shard` or `attachments`. */
  kind: 'shard' | 'attachments'
  name: string
  archiveId: string
  account: string
}

/** Makes the file, or takes one that a crash (or a restored archive.json) left without an entry in the list. */
export function createFile(file: string, identity: FileIdentity, nowMs: number): void {
  try {
    if (existsSync(file)) {
      if (isSound(file, identity)) return
      moveAside(file, 'unlisted', nowMs)
    }
    for (const rest of [`${file}-wal`, `${file}-shm`]) {
      // Left from a file that is gone: SQLite would replay it into the new one.
      if (existsSync(rest)) moveAside(rest, 'unlisted', nowMs)
    }
    const beside = `${file}.new`
    for (const rest of [beside, `${beside}-wal`, `${beside}-shm`, `${beside}-journal`])
      rmSync(rest, { force: true })
    writeSchema(beside, identity)
    chmodSync(beside, 0o600)
    renameSync(beside, file)
    syncFolder(dirname(file))
  } catch (thrown) {
    throw classifyStore(thrown, identity.name, file)
  }
}

/** For the one writer: WAL, and every commit is on disk before it is answered. */
export function openForWriting(file: string, identity: FileIdentity): DatabaseSync {
  return opened(file, identity, 'rw', (db) => {
    db.exec('PRAGMA synchronous = FULL')
    db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    db.exec('PRAGMA mmap_size = 0')
    db.exec('PRAGMA cache_size = -2048')
  })
}

const READ_CACHE_KB = 512

export function openForReading(
  file: string,
  identity: Omit<FileIdentity, 'account'>,
  cacheKb = READ_CACHE_KB,
): DatabaseSync {
  return opened(file, identity, 'ro', (db) => {
    db.exec('PRAGMA query_only = ON')
    db.exec('PRAGMA mmap_size = 0')
    db.exec(`PRAGMA cache_size = -${cacheKb}`)
  })
}

/** What a file takes; 0 where there is none. */
export function bytesOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Identifies a file on its disk: one that was replaced or removed has another, or none. */
export function inodeOf(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino
}

/** The file and its log under a name that says what they are, never over another file. */
export function moveAside(file: string, why: string, nowMs: number): string {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const taken = new Set(readdirSync(dirname(file)))
  let target = `${file}.${why}-${time}`
  for (let n = 2; taken.has(basename(target)) || taken.has(`${basename(target)}-wal`); n++) {
    target = `${file}.${why}-${time}-${n}`
  }
  // The log first: left behind, it would be replayed into the next file of this name.
  for (const end of ['-wal', '-shm', '']) {
    if (existsSync(`${file}${end}`)) renameSync(`${file}${end}`, `${target}${end}`)
  }
  syncFolder(dirname(file))
  return target
}

function writeSchema(file: string, identity: FileIdentity): void {
  const db = new DatabaseSync(file)
  try {
    db.exec(`PRAGMA page_size = ${PAGE_BYTES}`)
    db.exec('PRAGMA journal_mode = WAL')
    db.exec('PRAGMA synchronous = FULL')
    db.exec('BEGIN IMMEDIATE')
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    for (const sql of identity.kind === 'shard' ? SHARD_SCHEMA : ATTACHMENT_SCHEMA) db.exec(sql)
    if (identity.kind === 'shard') {
      for (const [name, value] of Object.entries(INDEX_SETTINGS)) {
        db.exec(`INSERT INTO words(words, rank) VALUES ('${name}', ${value})`)
      }
    }
    const insert = db.prepare('INSERT INTO meta(key, value) VALUES (?, ?)')
    insert.run('format', String(SHARD_FORMAT))
    insert.run('kind', identity.kind)
    insert.run('archive_id', identity.archiveId)
    insert.run('account', identity.account)
    insert.run('name', identity.name)
    const period = identity.kind === 'shard' ? shardOf(identity.name) : undefined
    if (period) {
      insert.run('derivation', String(DERIVATION))
      insert.run('from_ms', String(period.fromMs))
      insert.run('to_ms', String(period.toMs))
      insert.run('generation', '0')
    }
    db.exec('COMMIT')
  } finally {
    db.close()
  }
}

function opened(
  file: string,
  identity: Omit<FileIdentity, 'account'>,
  mode: 'ro' | 'rw',
  prepare: (db: DatabaseSync) => void,
): DatabaseSync {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (!stat) throw shardMissing(identity.name, file)
  if (stat.size === 0) throw shardCorrupt(identity.name, file, 'it is empty')
  let db: DatabaseSync | undefined
  try {
    const url = pathToFileURL(file)
    // `rw` and not `rwc`: a file that vanished meanwhile is not made anew.
    url.searchParams.set('mode', mode)
    db = new DatabaseSync(url, { readOnly: mode === 'ro', timeout: BUSY_MS })
    checkIdentity(db, file, identity)
    prepare(db)
    return db
  } catch (thrown) {
    db?.close()
    throw classifyStore(thrown, identity.name, file)
  }
}

function checkIdentity(db: DatabaseSync, file: string, identity: Omit<FileIdentity, 'account'>): void {
  const { application_id: id } = db.prepare('PRAGMA application_id').get() as { application_id: number }
  if (id !== APPLICATION_ID) throw shardForeign(file, 'it is a database of another program')
  const rows = db.prepare('SELECT key, value FROM meta').all() as { key: string; value: string }[]
  const meta = new Map(rows.map(({ key, value }) => [key, value]))
  const format = meta.get('format') ?? 'unknown'
  if (!(Number(format) <= SHARD_FORMAT)) throw shardNewer(file, format)
  if (meta.get('archive_id') !== identity.archiveId) throw shardForeign(file, 'it is part of another archive')
  if (meta.get('kind') !== identity.kind || meta.get('name') !== identity.name) {
    throw shardForeign(file, `it is the archive's ${meta.get('name')}.db under another name`)
  }
}

function isSound(file: string, identity: FileIdentity): boolean {
  try {
    const db = openForReading(file, identity)
    try {
      const [row] = db.prepare('PRAGMA quick_check(1)').all() as { quick_check: string }[]
      return row?.quick_check === 'ok'
    } finally {
      db.close()
    }
  } catch {
    return false // whatever it is, it is moved aside and kept
  }
}

/** Changes with every change of the file or its log, whoever makes it; null where there is no file. */
export function stampOf(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  if (!stat) return null
  const { ino, size, mtimeNs, ctimeNs } = stat
  const log = statSync(`${file}-wal`, { bigint: true, throwIfNoEntry: false })
  // Whoever reads may leave an empty log behind.
  const logStamp = log && log.size > 0n ? ` ${log.size} ${log.mtimeNs}` : ''
  return `${ino} ${size} ${mtimeNs} ${ctimeNs}${logStamp}`
}
