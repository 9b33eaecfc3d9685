/** The bytes of stored messages, put together again and compared with the hash that was noted when they came. */
import { hash } from 'node:crypto'
import { unpackMessage } from '../mime/parcel.ts'
import type { AttachmentReader } from './attachment-files.ts'
import { decompressed } from './compression.ts'
import type { ShardReader } from './shard-reader.ts'
import type { MessageRow } from './shard-row.ts'
import { bytesMismatch, isContentUnreadable, isUnreadable } from './store-errors.ts'

export type ByteSources = { shards: ShardReader; contents: AttachmentReader }

export type BytesRow = Pick<MessageRow, 'pos' | 'id' | 'bytes' | 'sha256'>

/** A parcel is smaller than its message plus a few bytes per attachment cut out. */
const PARCEL_EXTRA_BYTES = 1_048_576
export const TEXT_BYTES_MAX = 64 * 1_048_576

/** Throws `bytes-mismatch`, or `shard-…` and `content-unreadable` where a file cannot be read. */
export function readRaw(sources: ByteSources, shard: string, row: BytesRow): Uint8Array {
  return rawOf(storedBytes(sources.shards, shard, row, 'raw'), row, sources.contents)
}

/** The message that was packed. Throws `bytes-mismatch` and `content-unreadable`. */
export function rawOf(packed: Uint8Array, row: BytesRow, contents: AttachmentReader): Uint8Array {
  let raw: Uint8Array
  try {
    const parcel = decompressed(packed, row.bytes * 2 + PARCEL_EXTRA_BYTES)
    raw = unpackMessage(parcel, (sha256) => contents.contentOf(sha256))
  } catch (thrown) {
    if (isContentUnreadable(thrown) || isUnreadable(thrown)) throw thrown
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    throw bytesMismatch(row.id, `they cannot be unpacked (${why})`)
  }
  if (Buffer.compare(hash('sha256', raw, 'buffer'), row.sha256) !== 0) {
    throw bytesMismatch(row.id, 'their sha256 is another one')
  }
  return raw
}

export function readText(sources: ByteSources, shard: string, row: BytesRow): string {
  const packed = storedBytes(sources.shards, shard, row, 'text')
  try {
    return Buffer.from(decompressed(packed, TEXT_BYTES_MAX)).toString('utf8')
  } catch (thrown) {
    throw bytesMismatch(row.id, `its text cannot be unpacked (${(thrown as Error).message})`)
  }
}

function storedBytes(shards: ShardReader, shard: string, row: BytesRow, column: 'raw' | 'text'): Uint8Array {
  const found = shards.guarded(shard, () =>
    shards.prepare(shard, `SELECT ${column} AS body FROM bodies WHERE pos = ?`).get(row.pos),
  ) as { body: Uint8Array } | undefined
  if (!found) throw bytesMismatch(row.id, 'they are not in the shard')
  return found.body
}
