/**
 * The reading side of an archive, as the reader thread has it. It reads what is committed and nothing else. A message
 * that is not found while a shard cannot be read is not absent: the shard's trouble is the answer.
 */
import type { MessageSource, Proof, StoredMessage } from '../message.ts'
import { AttachmentReader } from './attachment-files.ts'
import type { AttachmentFileInfo, IdEntry, MessageWithText, ShardInfo } from './contract.ts'
import { shardsOfIds } from './id-lookup.ts'
import { type ByteSources, readRaw, readText } from './message-bytes.ts'
import { bytesOf } from './shard-file.ts'
import { ShardReader } from './shard-reader.ts'
import { firstPosOf } from './shard-router.ts'
import { areTexts, MESSAGE_COLUMNS, type MessageRow, textsOf, toMessage } from './shard-row.ts'
import { isContentUnreadable, isDamaged, isUnreadable, messageAbsent } from './store-errors.ts'

export type EntryCursor = { pos: number; shard: string }
export type EntryPage = { entries: IdEntry[]; next: EntryCursor | null }
export type StoredArgs = { ids: readonly string[]; source?: MessageSource | undefined }
export type EntryArgs = { fromMs: number; toMs: number; limit: number; after: EntryCursor | null }

type Found = { shard: string; row: MessageRow }
type PlacedRow = { shard: string; row: MessageRow }

export class ArchiveReader {
  readonly shards: ShardReader
  readonly contents: AttachmentReader
  readonly #sources: ByteSources

  constructor(options: { folder: string; archiveId: string; asks?: 'all' | 'few' }) {
    this.shards = new ShardReader(options)
    this.contents = new AttachmentReader(this.shards.archive)
    this.#sources = { shards: this.shards, contents: this.contents }
  }

  /** Those of the ids that are here and can be read. */
  stored({ ids, source }: StoredArgs): string[] {
    const { found } = shardsOfIds(this.shards, ids, this.#names())
    if (source === undefined) return [...found.keys()]
    const idsOf = new Map<string, string[]>()
    for (const [id, shard] of found) {
      const here = idsOf.get(shard)
      if (here) here.push(id)
      else idsOf.set(shard, [id])
    }
    const sql = 'SELECT id FROM messages WHERE source = ? AND id IN (SELECT value FROM json_each(?))'
    return [...idsOf].flatMap(([shard, here]) => {
      const rows = this.shards.guarded(shard, () =>
        this.shards.prepare(shard, sql).all(source, JSON.stringify(here)),
      )
      return (rows as unknown as { id: string }[]).map(({ id }) => id)
    })
  }

  message(id: string): StoredMessage | null {
    const found = this.#find(id)
    return found && toMessage(found.shard, found.row)
  }

  thread(threadId: string): StoredMessage[] {
    const sql = `SELECT ${MESSAGE_COLUMNS} FROM messages m WHERE m.thread_id = ?`
    const hints = this.shards.hints('thread', [threadId])
    const messages = this.#names().flatMap((shard) => {
      if (hints(shard).length === 0) return []
      const rows = this.shards.guarded(shard, () => this.shards.prepare(shard, sql).all(threadId))
      return (rows as unknown as MessageRow[]).map((row) => toMessage(shard, row))
    })
    return messages.sort((a, b) => a.internalMs - b.internalMs || (a.id < b.id ? -1 : 1))
  }

  raw(id: string): Uint8Array {
    const { shard, row } = this.#mustFind(id)
    return readRaw(this.#sources, shard, row)
  }

  text(id: string): string {
    const { shard, row } = this.#mustFind(id)
    return readText(this.#sources, shard, row)
  }

  messageWithText(id: string): MessageWithText | null {
    const found = this.#find(id)
    if (!found) return null
    const { shard, row } = found
    return { message: toMessage(shard, row), text: readText(this.#sources, shard, row) }
  }

  async attachment(id: string, index: number): Promise<{ name: string; type: string; content: Uint8Array }> {
    const { parseMessage } = await import('../mime/parse.ts')
    const found = parseMessage(this.raw(id)).attachments[index]
    if (!found) throw messageAbsent(`${id} with an attachment number ${index}`)
    // A copy: a view would take the whole message along to the other thread.
    return { name: found.name, type: found.type, content: found.content.slice() }
  }

  prove(ids: readonly string[]): Proof[] {
    const names = this.#names()
    const { found, unreadable } = shardsOfIds(this.shards, ids, names)
    // What is proven is what the disk has, not what was read before.
    for (const shard of new Set(found.values())) this.#forget(shard)
    this.contents.forget()
    return ids.map((id) => {
      const shard = found.get(id)
      if (shard !== undefined) return this.#proofOf(id, shard)
      const none = { id, bytes: 0, internalMs: null, deletedAtMs: null, labelIds: [] }
      const trouble = unreadable[0]
      if (!trouble) return { ...none, state: 'absent', detail: 'the archive does not have it' }
      return {
        ...none,
        state: 'unreadable',
        detail: `not found where the archive can be read. ${trouble.message}`,
      }
    })
  }

  /** In the order of positions, oldest first. */
  entries({ fromMs, toMs, limit, after }: EntryArgs): EntryPage {
    const range = { fromMs, toMs }
    const shards = this.shards.shardsIn(range).toSorted((a, b) => a.fromMs - b.fromMs)
    let placed: PlacedRow[] = []
    for (const { name, fromMs: shardFromMs } of shards) {
      const last = placed.length >= limit ? placed[limit - 1] : undefined
      if (last && firstPosOf(shardFromMs) > last.row.pos) break
      const { fromPos, toPos } = this.shards.positions(name, range)
      // After the cursor: shards are in the order of their names where positions are the same.
      const startPos = after ? Math.max(fromPos, name > after.shard ? after.pos : after.pos + 1) : fromPos
      const sql = `SELECT m.pos, m.id, m.internal_ms, m.bytes, m.deleted_ms, m.source, m.labels FROM messages m
        WHERE m.pos >= ? AND m.pos < ? AND m.internal_ms >= ? AND m.internal_ms < ? ORDER BY m.pos LIMIT ?`
      const rows = this.shards.guarded(name, () =>
        this.shards.prepare(name, sql).all(startPos, toPos, fromMs, toMs, limit),
      ) as unknown as MessageRow[]
      placed = [...placed, ...rows.map((row) => ({ shard: name, row }))]
        .sort((a, b) => a.row.pos - b.row.pos || (a.shard < b.shard ? -1 : 1))
        .slice(0, limit)
    }
    const last = placed.length === limit ? placed.at(-1) : undefined
    return {
      entries: placed.map(({ row }) => toEntry(row)),
      next: last ? { pos: last.row.pos, shard: last.shard } : null,
    }
  }

  shardInfos(): ShardInfo[] {
    return this.shards.shards().map(({ name, file, fromMs, toMs }) => {
      const fileBytes = bytesOf(file) + bytesOf(`${file}-wal`)
      const base = { name, file, fromMs, toMs, fileBytes }
      try {
        const sql = `SELECT count(*) AS messages, count(deleted_ms) AS deleted, coalesce(sum(bytes), 0) AS rawBytes
          FROM messages`
        const row = this.shards.guarded(name, () => this.shards.prepare(name, sql).get())
        return { ...base, ...(row as { messages: number; deleted: number; rawBytes: number }), state: 'ok' }
      } catch (thrown) {
        if (!isUnreadable(thrown)) throw thrown
        const state = thrown.code === 'shard-missing' ? 'missing' : 'corrupt'
        return { ...base, messages: 0, deleted: 0, rawBytes: 0, state, detail: thrown.message }
      }
    })
  }

  attachmentFileInfos(): AttachmentFileInfo[] {
    return this.contents.infos()
  }

  close(): void {
    this.contents.close()
    this.shards.close()
  }

  #proofOf(id: string, shard: string): Proof {
    const none = { id, bytes: 0, internalMs: null, deletedAtMs: null, labelIds: [] }
    try {
      const row = this.#row(shard, id)
      if (!row) return { ...none, state: 'absent', detail: 'the archive does not have it' }
      const facts = {
        id,
        bytes: row.bytes,
        internalMs: row.internal_ms,
        deletedAtMs: row.deleted_ms,
        labelIds: textsOf(row.labels),
      }
      try {
        readRaw(this.#sources, shard, row)
        // Whoever acts on it goes by its labels too, and these are none.
        if (!areTexts(row.labels)) {
          return { ...facts, state: 'unreadable', detail: 'its labels in the archive cannot be read' }
        }
        return { ...facts, state: row.source === 'gmail' ? 'proven' : 'imported' }
      } catch (thrown) {
        if (isContentUnreadable(thrown) || isUnreadable(thrown)) {
          return { ...facts, state: 'unreadable', detail: (thrown as Error).message }
        }
        if (isDamaged(thrown)) return { ...facts, state: 'mismatch', detail: (thrown as Error).message }
        throw thrown
      }
    } catch (thrown) {
      if (isUnreadable(thrown)) return { ...none, state: 'unreadable', detail: thrown.message }
      throw thrown
    }
  }

  #forget(shard: string): void {
    try {
      this.shards.guarded(shard, (db) => db.exec('PRAGMA shrink_memory'))
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown // and where it is, each of its messages says so
    }
  }

  #mustFind(id: string): Found {
    const found = this.#find(id)
    if (!found) throw messageAbsent(id)
    return found
  }

  #find(id: string): Found | null {
    const { found, unreadable } = shardsOfIds(this.shards, [id], this.#names())
    const shard = found.get(id)
    if (shard === undefined) {
      if (unreadable[0]) throw unreadable[0]
      return null
    }
    const row = this.#row(shard, id)
    return row ? { shard, row } : null
  }

  #row(shard: string, id: string): MessageRow | undefined {
    const sql = `SELECT ${MESSAGE_COLUMNS} FROM messages m WHERE m.id = ?`
    return this.shards.guarded(shard, () => this.shards.prepare(shard, sql).get(id)) as MessageRow | undefined
  }

  #names(): string[] {
    return this.shards.shards().map(({ name }) => name)
  }
}

function toEntry(row: MessageRow): IdEntry {
  return {
    id: row.id,
    internalMs: row.internal_ms,
    bytes: row.bytes,
    deletedAtMs: row.deleted_ms,
    source: row.source,
    labelIds: textsOf(row.labels),
  }
}
