/** Opens an object as records: finds out what it is, and lets the reader of that format read it. */
import { TidemarkError } from '../../../base/errors.ts'
import type { ObjectBody } from '../../../cloud/object-store.ts'
import type { OpenRecords, ReadItem, ReadShape } from '../contract.ts'
import { readAvro } from './avro.ts'
import { fromUtf16, inPieces, PIECE_BYTES, type Pieces, peek, unpacked, unreadable } from './byte-stream.ts'
import { CsvReader } from './csv.ts'
import { detectCompression, detectEncoding, detectShape, SAMPLE_BYTES } from './detect.ts'
import { ItemSink } from './item-sink.ts'
import { type JsonLayout, JsonReader } from './json.ts'
import { LineReader, type PieceReader, type Place } from './lines.ts'
import { readParquet } from './parquet.ts'

type Input = Parameters<OpenRecords>[0]
export type Batches = AsyncGenerator<ReadItem[]>

export const openRecords: OpenRecords = async (input) => {
  input.signal.throwIfAborted()
  const { shape, from } = input
  if (shape !== null && from.byte !== null && from.byte > 0)
    return opened(shape, resumed(input, shape, from.byte))
  const body = await input.open(0)
  const stored = await peek(inPieces(body.bytes, input.signal), SAMPLE_BYTES)
  const compression =
    shape?.compression ??
    (input.options.compression === 'auto' ? detectCompression(stored.sample) : input.options.compression)
  // An object without a byte is empty, whatever it is called.
  const isPacked = compression !== 'none' && stored.sample.length > 0
  const plain = isPacked
    ? await peek(unpacked(stored.pieces, compression, input.limits.expansionMax), SAMPLE_BYTES)
    : stored
  try {
    const found = shape ?? detectShape({ ...input, ...plain, contentType: body.contentType, compression })
    return opened(found, fromBeginning(input, found, body, plain))
  } catch (thrown) {
    await plain.pieces.return(undefined)
    throw thrown
  }
}

function fromBeginning(
  input: Input,
  shape: ReadShape,
  body: ObjectBody,
  { sample, isWhole, pieces }: { sample: Buffer; isWhole: boolean; pieces: AsyncGenerator<Buffer> },
): Batches {
  const { records } = input.from
  if (sample.length === 0 && shape.compression === 'none') return nothing(pieces)
  if (shape.format === 'parquet') {
    if (shape.compression !== 'none')
      throw unreadable('schema', `a Parquet file within ${shape.compression} is not read`)
    return readParquet({
      ...input,
      sizeBytes: body.sizeBytes,
      firstRow: records,
      beginning: { sample, pieces },
    })
  }
  const isPlain = shape.compression === 'none'
  if (shape.format === 'avro') {
    return readAvro({
      pieces,
      sink: new ItemSink(0, records),
      limits: input.limits,
      byte: isPlain ? 0 : null,
    })
  }
  const { encoding, markBytes } = detectEncoding(sample)
  if (isWhole && encoding === 'utf-8') {
    const place = { byte: isPlain ? markBytes : null, lines: 0 }
    const sink = new ItemSink(0, records)
    const reader = readerOf(input, shape, sink, { place, isWithin: false })
    return readWhole(sample.subarray(markBytes), pieces, sink, reader)
  }
  const unmarked = withoutFirst(pieces, markBytes)
  const text = encoding === 'utf-8' ? unmarked : fromUtf16(unmarked, encoding)
  const place = { byte: isPlain && encoding === 'utf-8' ? markBytes : null, lines: 0 }
  const sink = new ItemSink(0, records)
  return read(text, sink, readerOf(input, shape, sink, { place, isWithin: false }))
}

/** From a place that was told for the last record that was read. */
async function* resumed(input: Input, shape: ReadShape, byte: number): Batches {
  const { records, line } = input.from
  const sink = new ItemSink(records, records)
  if (shape.format === 'parquet' || shape.compression !== 'none') {
    throw new TidemarkError('reading cannot begin again at a byte of this object', { kind: 'bug' })
  }
  if (shape.format === 'avro') {
    const header = inPieces((await input.open(0)).bytes, input.signal)
    const { open, limits, signal } = input
    const pieces = async (): Promise<Pieces> => inPieces((await open(byte)).bytes, signal)
    yield* readAvro({ pieces: header, sink, limits, byte, goOn: pieces })
    return
  }
  const pieces = inPieces((await input.open(byte)).bytes, input.signal)
  const place = { byte, lines: line }
  yield* read(pieces, sink, readerOf(input, shape, sink, { place, isWithin: true }))
}

function readerOf(
  { limits, options }: Input,
  shape: ReadShape,
  sink: ItemSink,
  { place, isWithin }: { place: Place; isWithin: boolean },
): PieceReader {
  const bytesMax = limits.recordBytesMax
  if (shape.format === 'ndjson' || shape.format === 'text') {
    return new LineReader(sink, { format: shape.format, bytesMax, place })
  }
  if (shape.format === 'json') {
    const layout = layoutOf(shape, options.recordsField)
    return new JsonReader(sink, { layout, bytesMax, fromByte: place.byte, isWithin })
  }
  const separator = shape.separator ?? (shape.format === 'tsv' ? '\t' : ',')
  const isHeaderAhead = shape.header !== null && !isWithin
  return new CsvReader(sink, { separator, header: shape.header, isHeaderAhead, bytesMax, place })
}

function layoutOf(shape: ReadShape, recordsField: string | undefined): JsonLayout {
  if (shape.layout !== 'field') return { kind: shape.layout ?? 'values' }
  return { kind: 'field', name: shape.recordsField ?? recordsField ?? 'Records' }
}

async function* read(pieces: Pieces, sink: ItemSink, reader: PieceReader): Batches {
  for await (const piece of pieces) {
    let failed: { thrown: unknown } | undefined
    try {
      reader.push(piece)
    } catch (thrown) {
      // What the piece held before the fault counts.
      failed = { thrown }
    }
    yield sink.take()
    if (failed) throw failed.thrown
  }
  reader.end()
  yield sink.take()
}

/** All of it is there: nobody has to be waited for. */
async function* readWhole(
  bytes: Buffer,
  pieces: AsyncGenerator<Buffer>,
  sink: ItemSink,
  reader: PieceReader,
): Batches {
  await pieces.return(undefined)
  let failed: { thrown: unknown } | undefined
  try {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) reader.push(bytes.subarray(at, at + PIECE_BYTES))
    reader.end()
  } catch (thrown) {
    failed = { thrown }
  }
  yield sink.take()
  if (failed) throw failed.thrown
}

async function* nothing(pieces: AsyncGenerator<Buffer>): Batches {
  await pieces.return(undefined)
  yield []
}

async function* withoutFirst(pieces: Pieces, bytes: number): AsyncGenerator<Buffer> {
  let left = bytes
  for await (const piece of pieces) {
    if (left < piece.length) yield left === 0 ? piece : piece.subarray(left)
    left = Math.max(0, left - piece.length)
  }
}

function opened(shape: ReadShape, batches: Batches): { shape: ReadShape; items: AsyncIterable<ReadItem> } {
  return { shape, items: { [Symbol.asyncIterator]: () => new ItemIterator(batches) } }
}

/** Record by record out of batches: a generator within a generator costs more than most records do. */
class ItemIterator implements AsyncIterator<ReadItem> {
  readonly #batches: Batches
  #batch: readonly ReadItem[] = []
  #at = 0

  constructor(batches: Batches) {
    this.#batches = batches
  }

  next(): Promise<IteratorResult<ReadItem>> {
    if (this.#at < this.#batch.length)
      return Promise.resolve({ done: false, value: this.#batch[this.#at++]! })
    return this.#nextBatch()
  }

  async #nextBatch(): Promise<IteratorResult<ReadItem>> {
    for (;;) {
      const next = await this.#batches.next()
      if (next.done === true) return { done: true, value: undefined }
      if (next.value.length === 0) continue
      this.#batch = next.value
      this.#at = 1
      return { done: false, value: this.#batch[0]! }
    }
  }

  async return(): Promise<IteratorResult<ReadItem>> {
    await this.#batches.return(undefined)
    return { done: true, value: undefined }
  }
}
