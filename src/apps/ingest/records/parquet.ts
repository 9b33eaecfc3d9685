/**
 * Parquet: the footer first, then one row group after the other, each in one ranged read and decoded in windows of
 * rows. A row is a place by itself: reading goes on at any of them, and groups before it are not fetched.
 */
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  type RowGroup,
} from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { TidemarkError } from '../../../base/errors.ts'
import type { ObjectBody } from '../../../cloud/object-store.ts'
import type { ReadItem, ReadLimits } from '../contract.ts'
import { bomb, EXPANDED_BYTES_FREE, unreadable } from './byte-stream.ts'
import { isParquet } from './detect.ts'
import { ItemSink, tooLong } from './item-sink.ts'

/** Of a row group as it is stored. */
const GROUP_BYTES_MAX = 512 * 1024 * 1024
const FOOTER_BYTES_MAX = 64 * 1024 * 1024
/** Cells are arrays in memory before they are rows. */
const GROUP_VALUES_MAX = 50_000_000
/** Decoded at once, about. */
const WINDOW_BYTES = 32 * 1024 * 1024
const FOOTER_FETCH_BYTES = 256 * 1024
const TAIL_BYTES = 8

type Open = (fromByte: number) => Promise<ObjectBody>

export async function* readParquet(input: {
  open: Open
  sizeBytes: number | null
  firstRow: number
  beginning: { sample: Buffer; pieces: AsyncGenerator<Buffer> }
  limits: ReadLimits
}): AsyncGenerator<ReadItem[]> {
  const { limits, sizeBytes, firstRow, beginning } = input
  // What was opened to see what it is would otherwise be fetched to its end.
  await beginning.pieces.return(undefined)
  if (sizeBytes === null)
    throw unreadable('schema', 'its store does not tell how long it is, which Parquet needs')
  if (!isParquet(beginning.sample)) throw unreadable('corrupt', 'it does not begin as a Parquet file does')
  const file = new RangedFile(input.open, sizeBytes)
  const metadata = await metadataOf(file)
  const sink = new ItemSink(firstRow, firstRow)
  let groupStart = 0
  for (const group of metadata.row_groups) {
    const rows = countOf(group.num_rows)
    const groupEnd = groupStart + rows
    if (groupEnd > firstRow && rows > 0) {
      const range = rangeOf(group, sizeBytes)
      await file.keep(range.start, range.end)
      const windowRows = windowOf(group, rows)
      for (let rowStart = Math.max(groupStart, firstRow); rowStart < groupEnd; rowStart += windowRows) {
        const rowEnd = Math.min(groupEnd, rowStart + windowRows)
        const objects = await rowsOf({ file, metadata, rowStart, rowEnd }, limits.expansionMax)
        if (objects.length !== rowEnd - rowStart)
          throw unreadable('corrupt', 'a row group has fewer rows than it says')
        for (const row of objects) tell(row, sink, limits.recordBytesMax)
        yield sink.take()
      }
    }
    groupStart = groupEnd
  }
}

async function metadataOf(file: RangedFile): Promise<FileMetaData> {
  if (file.byteLength < TAIL_BYTES + 4)
    throw unreadable('truncated', 'the Parquet file ends before its footer')
  const tail = Buffer.from(await file.slice(file.byteLength - TAIL_BYTES, file.byteLength))
  if (tail.toString('latin1', 4) === 'PARE') throw unreadable('schema', 'the Parquet file is encrypted')
  if (tail.toString('latin1', 4) !== 'PAR1')
    throw unreadable('truncated', 'the Parquet file ends before its footer')
  const footerBytes = tail.readUInt32LE(0)
  if (footerBytes > FOOTER_BYTES_MAX || footerBytes > file.byteLength - TAIL_BYTES) {
    throw unreadable('corrupt', 'the footer of the Parquet file has no possible length')
  }
  await file.keep(
    Math.max(0, file.byteLength - Math.max(FOOTER_FETCH_BYTES, footerBytes + TAIL_BYTES)),
    file.byteLength,
  )
  return await guarded(() => parquetMetadataAsync(file, { initialFetchSize: FOOTER_FETCH_BYTES }))
}

async function rowsOf(
  window: { file: AsyncBuffer; metadata: FileMetaData; rowStart: number; rowEnd: number },
  expansionMax: number,
): Promise<Record<string, unknown>[]> {
  return await guarded(() => parquetReadObjects({ ...window, compressors: boundedCompressors(expansionMax) }))
}

/** What goes wrong inside of the parser says that the file is damaged; what the store says stays what it is. */
async function guarded<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (thrown) {
    if (thrown instanceof TidemarkError || (thrown instanceof Error && thrown.name === 'AbortError'))
      throw thrown
    throw unreadable('corrupt', 'the Parquet file is damaged', thrown)
  }
}

function boundedCompressors(expansionMax: number): typeof compressors {
  const bounded: typeof compressors = {}
  for (const [codec, unpack] of Object.entries(compressors)) {
    bounded[codec as keyof typeof compressors] = (input, outputLength) => {
      if (outputLength > EXPANDED_BYTES_FREE && outputLength > input.length * expansionMax)
        throw bomb(expansionMax)
      return unpack(input, outputLength)
    }
  }
  return bounded
}

/** Where the group's bytes are. What a file says about itself is checked against what it is. */
function rangeOf(group: RowGroup, sizeBytes: number): { start: number; end: number } {
  let [start, end] = [sizeBytes, 0]
  for (const { meta_data: column } of group.columns) {
    if (column === undefined) throw unreadable('corrupt', 'a column of the Parquet file is not described')
    if (countOf(column.num_values) > GROUP_VALUES_MAX) {
      throw unreadable('too-large', `a row group has more than ${GROUP_VALUES_MAX} values in a column`)
    }
    const first = Math.min(
      countOf(column.dictionary_page_offset || column.data_page_offset),
      countOf(column.data_page_offset),
    )
    start = Math.min(start, first)
    end = Math.max(end, first + countOf(column.total_compressed_size))
  }
  if (start >= end || end > sizeBytes)
    throw unreadable('corrupt', 'a row group is not within the Parquet file')
  if (end - start > GROUP_BYTES_MAX)
    throw unreadable('too-large', `a row group has more than ${GROUP_BYTES_MAX} bytes`)
  return { start, end }
}

function windowOf(group: RowGroup, rows: number): number {
  const bytes = Math.max(1, countOf(group.total_byte_size))
  return Math.max(1, Math.min(rows, Math.floor((rows * WINDOW_BYTES) / bytes)))
}

function countOf(value: bigint | number): number {
  const count = Number(value)
  if (!Number.isSafeInteger(count) || count < 0)
    throw unreadable('corrupt', 'the Parquet file counts below zero')
  return count
}

function tell(row: Record<string, unknown>, sink: ItemSink, bytesMax: number): void {
  const size = { left: bytesMax }
  const value: Record<string, unknown> = {}
  for (const name in row) value[name] = plainValue(row[name], size)
  if (size.left >= 0) sink.record(value, null, null)
  else sink.bad(tooLong(bytesMax), new Uint8Array(0), null, null)
}

/** As JSON would have it, so that all formats give the same kinds of values. */
function plainValue(value: unknown, size: { left: number }): unknown {
  size.left -= 8
  if (typeof value === 'string') size.left -= value.length
  if (size.left < 0) return null
  if (typeof value === 'bigint') {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : String(value)
  }
  if (typeof value !== 'object' || value === null) return value === undefined ? null : value
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (value instanceof Uint8Array) {
    size.left -= value.length
    return size.left < 0 ? null : Buffer.from(value.buffer, value.byteOffset, value.length).toString('base64')
  }
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    return Array.from(value as ArrayLike<unknown>, (one) => plainValue(one, size))
  }
  const fields = Object.entries(value).map(([name, field]) => [name, plainValue(field, size)] as const)
  return Object.fromEntries(fields)
}

/** Keeps one range, of which the parser takes its slices. */
class RangedFile implements AsyncBuffer {
  readonly byteLength: number
  readonly #open: Open
  #kept: { start: number; bytes: Buffer } = { start: 0, bytes: Buffer.alloc(0) }

  constructor(open: Open, byteLength: number) {
    this.#open = open
    this.byteLength = byteLength
  }

  async keep(start: number, end: number): Promise<void> {
    this.#kept = { start, bytes: Buffer.alloc(0) }
    this.#kept.bytes = await this.#fetch(start, end)
  }

  async slice(start: number, end = this.byteLength): Promise<ArrayBuffer> {
    const { start: keptStart, bytes: kept } = this.#kept
    const isKept = start >= keptStart && end <= keptStart + kept.length
    const bytes = isKept ? kept.subarray(start - keptStart, end - keptStart) : await this.#fetch(start, end)
    const copy = new ArrayBuffer(bytes.length)
    new Uint8Array(copy).set(bytes)
    return copy
  }

  async #fetch(start: number, end: number): Promise<Buffer> {
    if (start < 0 || end < start || end > this.byteLength || end - start > GROUP_BYTES_MAX) {
      throw unreadable('corrupt', 'the Parquet file points outside of itself')
    }
    const bytes = Buffer.allocUnsafe(end - start)
    let length = 0
    if (bytes.length === 0) return bytes
    for await (const chunk of (await this.#open(start)).bytes) {
      const wanted = chunk.subarray(0, bytes.length - length)
      bytes.set(wanted, length)
      length += wanted.length
      if (length === bytes.length) return bytes
    }
    throw unreadable('truncated', 'the object is shorter than its store says')
  }
}
