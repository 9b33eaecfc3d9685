/**
 * Avro object container files: a header with the schema, then blocks of records, each with its length and a mark at its
 * end. One block is held at a time. Reading can begin again behind each block.
 */
import { inflateRawSync, zstdDecompressSync } from 'node:zlib'
import { snappyUncompress } from 'hyparquet'
import type { ReadItem, ReadLimits } from '../contract.ts'
import { type AvroBytes, type AvroDecoder, avroDecoderOf } from './avro-schema.ts'
import { bomb, EXPANDED_BYTES_FREE, type Pieces, unreadable } from './byte-stream.ts'
import { type ItemSink, tooLong } from './item-sink.ts'

const MARK = Buffer.from('Obj\u0001', 'latin1')
const SYNC_BYTES = 16
const HEADER_BYTES_MAX = 16 * 1024 * 1024
const BLOCK_BYTES_MAX = 128 * 1024 * 1024
const ENTRIES_MAX = 1_000

type Header = { decode: AvroDecoder; codec: string; sync: Buffer }

/** `byte` is where the pieces begin, or, with `goOn`, where the blocks do. */
export async function* readAvro(input: {
  pieces: Pieces
  sink: ItemSink
  limits: ReadLimits
  byte: number | null
  goOn?: () => Promise<Pieces>
}): AsyncGenerator<ReadItem[]> {
  const { sink, limits } = input
  let source = new PieceCursor(input.pieces)
  try {
    const header = await headerOf(source)
    let startByte = input.byte
    if (input.goOn) {
      await source.close()
      source = new PieceCursor(await input.goOn())
    } else startByte = 0
    while (await source.has(1)) {
      const { count, data } = await blockOf(source, header)
      const endByte = input.byte === null || startByte === null ? null : startByte + source.position
      if (sink.wantedIn(count) === 0) sink.pass(count)
      else
        yield* tellBlock(unpack(data, header.codec, limits.expansionMax), count, {
          header,
          sink,
          limits,
          endByte,
        })
    }
  } finally {
    await source.close()
  }
}

const RECORDS_AT_ONCE = 1_000

function* tellBlock(
  bytes: Buffer,
  count: number,
  {
    header,
    sink,
    limits,
    endByte,
  }: { header: Header; sink: ItemSink; limits: ReadLimits; endByte: number | null },
): Generator<ReadItem[]> {
  // Records without a byte could be as many as somebody likes.
  if (count > bytes.length)
    throw unreadable('corrupt', 'a block of the Avro file says that it has more records than bytes')
  const at: AvroBytes = { bytes, at: 0, depth: 0 }
  for (let record = 0; record < count; record++) {
    const from = at.at
    let value: unknown
    try {
      value = header.decode(at)
    } catch (thrown) {
      yield sink.take()
      throw unreadable('corrupt', 'a record of the Avro file does not fit its schema', thrown)
    }
    const end = record === count - 1 ? endByte : null
    if (at.at - from > limits.recordBytesMax) {
      sink.bad(tooLong(limits.recordBytesMax), bytes.subarray(from, at.at), end, null)
    } else if (typeof value !== 'object' || value === null || Array.isArray(value))
      sink.record({ value }, end, null)
    else sink.record(value as Record<string, unknown>, end, null)
    if ((record + 1) % RECORDS_AT_ONCE === 0) yield sink.take()
  }
  yield sink.take()
}

async function headerOf(source: PieceCursor): Promise<Header> {
  const mark = await source.take(MARK.length)
  if (!mark.equals(MARK)) throw unreadable('corrupt', 'it does not begin as an Avro file does')
  const entries = new Map<string, Buffer>()
  for (let block = await source.long(); block !== 0; block = await source.long()) {
    // Below zero, the length of the block in bytes comes next.
    if (block < 0) await source.long()
    if (Math.abs(block) + entries.size > ENTRIES_MAX)
      throw unreadable('corrupt', 'the header of the Avro file is too long')
    for (let left = Math.abs(block); left > 0; left--) {
      const name = (await source.take(await source.length(HEADER_BYTES_MAX))).toString()
      entries.set(name, Buffer.from(await source.take(await source.length(HEADER_BYTES_MAX))))
    }
    if (source.position > HEADER_BYTES_MAX)
      throw unreadable('corrupt', 'the header of the Avro file is too long')
  }
  const decode = avroDecoderOf(entries.get('avro.schema')?.toString() ?? '')
  const codec = entries.get('avro.codec')?.toString() ?? 'null'
  return { decode, codec, sync: Buffer.from(await source.take(SYNC_BYTES)) }
}

async function blockOf(source: PieceCursor, { sync }: Header): Promise<{ count: number; data: Buffer }> {
  const count = await source.length(Number.MAX_SAFE_INTEGER)
  const bytes = await source.length(Number.MAX_SAFE_INTEGER)
  if (bytes > BLOCK_BYTES_MAX)
    throw unreadable('too-large', `a block of the Avro file has more than ${BLOCK_BYTES_MAX} bytes`)
  const data = Buffer.from(await source.take(bytes))
  if (!(await source.take(SYNC_BYTES)).equals(sync)) {
    throw unreadable('corrupt', 'a block of the Avro file does not end with the mark of the file')
  }
  return { count, data }
}

function unpack(data: Buffer, codec: string, expansionMax: number): Buffer {
  const maxOutputLength = Math.min(
    4 * BLOCK_BYTES_MAX,
    Math.max(EXPANDED_BYTES_FREE, Math.ceil(data.length * expansionMax)),
  )
  try {
    if (codec === 'null') return data
    if (codec === 'deflate') return inflateRawSync(data, { maxOutputLength })
    if (codec === 'zstandard') return zstdDecompressSync(data, { maxOutputLength })
    if (codec === 'snappy') return unsnapped(data.subarray(0, -4), maxOutputLength, expansionMax)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw bomb(expansionMax)
    throw (thrown as { kind?: string }).kind === undefined
      ? unreadable('corrupt', `a block of the Avro file cannot be unpacked (${codec})`, thrown)
      : thrown
  }
  throw unreadable('schema', `the Avro file is packed in a way that is not known: ${codec.slice(0, 40)}`)
}

function unsnapped(data: Buffer, bytesMax: number, expansionMax: number): Buffer {
  let length = 0
  for (let at = 0; at < 5; at++) {
    length += (data[at]! & 0x7f) * 2 ** (7 * at)
    if (data[at]! < 0x80) break
  }
  if (length > bytesMax) throw bomb(expansionMax)
  const output = Buffer.alloc(length)
  snappyUncompress(data, output)
  return output
}

/** Bytes of pieces by how many are wanted. */
class PieceCursor {
  readonly #iterator: AsyncIterator<Buffer>
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  /** How many were taken. */
  position = 0

  constructor(pieces: Pieces) {
    this.#iterator = pieces[Symbol.asyncIterator]()
  }

  async has(count: number): Promise<boolean> {
    const parts = [this.#bytes.subarray(this.#at)]
    let length = parts[0]!.length
    while (length < count) {
      const next = await this.#iterator.next()
      if (next.done === true) break
      parts.push(next.value)
      length += next.value.length
    }
    if (parts.length > 1) {
      this.#bytes = Buffer.concat(parts)
      this.#at = 0
    }
    return length >= count
  }

  async take(count: number): Promise<Buffer> {
    if (!(await this.has(count))) throw unreadable('truncated', 'the Avro file ends in the middle of a block')
    this.#at += count
    this.position += count
    return this.#bytes.subarray(this.#at - count, this.#at)
  }

  async long(): Promise<number> {
    let [value, scale] = [0, 1]
    for (let bytes = 0; bytes < 10; bytes++) {
      const byte = (await this.take(1))[0]!
      value += (byte & 0x7f) * scale
      scale *= 128
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    }
    throw unreadable('corrupt', 'a number of the Avro file has no end')
  }

  async length(max: number): Promise<number> {
    const value = await this.long()
    if (value < 0 || value > max) throw unreadable('corrupt', 'a length of the Avro file is not possible')
    return value
  }

  async close(): Promise<void> {
    await this.#iterator.return?.()
  }
}
