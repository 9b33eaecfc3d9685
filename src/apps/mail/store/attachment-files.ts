/**
 * The contents of large attachments, each once in the archive, by sha256, in `attachments-1.db` and so on. A content is
 * committed before the message that refers to it: a crash in between leaves a content that nobody needs yet, never
 * a message without its content.
 *
 * What is there already is compared before it is relied on: a content that was damaged on disk is written again
 * by the next message that brings it.
 */
import { hash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { ArchiveFile, ListedFile } from './archive-file.ts'
import type { ArchiveLocks } from './archive-locks.ts'
import { compressed, decompressed } from './compression.ts'
import type { AttachmentFileInfo } from './contract.ts'
import type { Content } from './prepared-message.ts'
import {
  bytesOf,
  createFile,
  type FileIdentity,
  inodeOf,
  openForReading,
  openForWriting,
} from './shard-file.ts'
import {
  classifyStore,
  contentUnreadable,
  isContentUnreadable,
  isUnreadable,
  shardMissing,
} from './store-errors.ts'

/** Compressed only where it saves more than a twentieth: pictures and archives do not. */
const WORTH_PACKING = 0.95
const OPEN_MAX = 8

type OpenFile = { db: DatabaseSync; made: number; inode: bigint | undefined }
type ContentRow = { bytes: number; packed: number; content: Uint8Array }

/** Reads contents, for one thread. */
export class AttachmentReader {
  readonly #archive: ArchiveFile
  readonly #open = new Map<string, OpenFile>()

  constructor(archive: ArchiveFile) {
    this.#archive = archive
  }

  /** The content with this hash, checked against it. Throws `content-unreadable`. */
  contentOf(sha256: string): Uint8Array {
    let why = 'no file of the archive has it'
    // The newest file first: contents that were written again are in it.
    for (const listed of [...this.#archive.read().attachmentFiles].reverse()) {
      try {
        const found = readContent(this.#file(listed), sha256)
        if (found && hash('sha256', found, 'hex') === sha256) return found
        if (found) why = `what ${listed.name}.db has of it is damaged`
      } catch (thrown) {
        const error = classifyStore(thrown, listed.name, this.#archive.pathOf(listed.name))
        if (!isUnreadable(error)) throw error
        this.#close(listed.name)
        why = error.message
      }
    }
    throw contentUnreadable(sha256, why)
  }

  /** A look at each file: whether it is there, is what it should be, and has its end. */
  infos(): AttachmentFileInfo[] {
    return this.#archive.read().attachmentFiles.map((listed) => {
      const { name } = listed
      const file = this.#archive.pathOf(name)
      const fileBytes = bytesOf(file) + bytesOf(`${file}-wal`)
      try {
        this.#file(listed).prepare('SELECT max(rowid) FROM contents').get()
        return { name, file, fileBytes, state: 'ok' }
      } catch (thrown) {
        const error = classifyStore(thrown, name, file)
        if (!isUnreadable(error)) throw error
        this.#close(name)
        const state = error.code === 'shard-missing' ? 'missing' : 'corrupt'
        return { name, file, fileBytes, state, detail: error.message }
      }
    })
  }

  /** What was read before is read from the disk again. */
  forget(): void {
    for (const { db } of this.#open.values()) db.exec('PRAGMA shrink_memory')
  }

  close(): void {
    for (const name of [...this.#open.keys()]) this.#close(name)
  }

  #file(listed: ListedFile): DatabaseSync {
    const path = this.#archive.pathOf(listed.name)
    const found = this.#open.get(listed.name)
    if (found && found.made === listed.made && found.inode === inodeOf(path)) return found.db
    this.#close(listed.name)
    if (this.#open.size >= OPEN_MAX) this.#close(this.#open.keys().next().value!)
    const inode = inodeOf(path)
    const { archiveId } = this.#archive
    const db = openForReading(path, { kind: 'attachments', name: listed.name, archiveId })
    this.#open.set(listed.name, { db, made: listed.made, inode })
    return db
  }

  #close(name: string): void {
    const open = this.#open.get(name)
    this.#open.delete(name)
    open?.db.close()
  }
}

/** Adds contents, for one writer thread; the caller holds the lock that keeps files from being set aside. */
export class AttachmentWriter {
  readonly #archive: ArchiveFile
  readonly #locks: ArchiveLocks
  readonly #reader: AttachmentReader
  readonly #bytesMax: number
  #open: (OpenFile & { name: string }) | undefined

  constructor(options: { archive: ArchiveFile; locks: ArchiveLocks; bytesMax: number }) {
    this.#archive = options.archive
    this.#locks = options.locks
    this.#reader = new AttachmentReader(options.archive)
    this.#bytesMax = options.bytesMax
  }

  /** On disk when it returns. */
  store(contents: readonly Content[], nowMs: number): void {
    const fresh = contents.filter(({ sha256 }) => !this.#has(sha256))
    if (fresh.length === 0) return
    const { db, name } = this.#current(nowMs)
    try {
      const replace = db.prepare(
        'INSERT OR REPLACE INTO contents(sha256, bytes, packed, content) VALUES (?, ?, ?, ?)',
      )
      db.exec('BEGIN IMMEDIATE')
      for (const { sha256, content } of fresh) {
        const small = compressed(content)
        const isPacked = small.byteLength < content.byteLength * WORTH_PACKING
        replace.run(
          Buffer.from(sha256, 'hex'),
          content.byteLength,
          isPacked ? 1 : 0,
          isPacked ? small : content,
        )
      }
      db.exec('COMMIT')
    } catch (thrown) {
      if (db.isTransaction) db.exec('ROLLBACK')
      this.#close()
      throw classifyStore(thrown, name, this.#archive.pathOf(name))
    }
  }

  reader(): AttachmentReader {
    return this.#reader
  }

  close(): void {
    this.#reader.close()
    this.#close()
  }

  #has(sha256: string): boolean {
    try {
      this.#reader.contentOf(sha256)
      return true
    } catch (thrown) {
      if (isContentUnreadable(thrown)) return false
      throw thrown
    }
  }

  /** The last file of the list, or the next one where that has grown too large. */
  #current(nowMs: number): OpenFile & { name: string } {
    const listed = this.#archive.read().attachmentFiles.at(-1)
    if (listed) {
      const open = this.#opened(listed)
      const size = open.db.prepare(
        'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
      )
      if ((size.get() as { bytes: number }).bytes < this.#bytesMax) return open
    }
    return this.#opened(this.#add(listed, nowMs))
  }

  #opened(listed: ListedFile): OpenFile & { name: string } {
    const path = this.#archive.pathOf(listed.name)
    const inode = inodeOf(path)
    const open = this.#open
    if (open && open.name === listed.name && open.made === listed.made && open.inode === inode) return open
    this.#close()
    if (inode === undefined) throw shardMissing(listed.name, path)
    const db = openForWriting(path, this.#identity(listed.name))
    this.#open = { name: listed.name, made: listed.made, db, inode }
    return this.#open
  }

  #add(last: ListedFile | undefined, nowMs: number): ListedFile {
    const list = this.#archive.update(this.#locks, (before) => {
      // Another writer may have been faster.
      if (before.attachmentFiles.at(-1)?.made !== last?.made) return before
      const number = 1 + Math.max(0, ...before.attachmentFiles.map(({ name }) => Number(name.split('-')[1])))
      const name = `attachments-${number}`
      const made = before.made + 1
      createFile(this.#archive.pathOf(name), this.#identity(name), nowMs)
      return { ...before, made, attachmentFiles: [...before.attachmentFiles, { name, made }] }
    })
    return list.attachmentFiles.at(-1)!
  }

  #identity(name: string): FileIdentity {
    const { archiveId, account } = this.#archive.read()
    return { kind: 'attachments', name, archiveId, account }
  }

  #close(): void {
    this.#open?.db.close()
    this.#open = undefined
  }
}

/** Not yet compared with its hash; undefined where the file does not have it. */
export function readContent(db: DatabaseSync, sha256: string): Uint8Array | undefined {
  const row = db
    .prepare('SELECT bytes, packed, content FROM contents WHERE sha256 = ?')
    .get(Buffer.from(sha256, 'hex')) as ContentRow | undefined
  if (!row) return undefined
  if (row.packed === 0) return row.content
  try {
    return decompressed(row.content, row.bytes + 1)
  } catch {
    return new Uint8Array() // damaged: has another hash than the one asked for
  }
}
