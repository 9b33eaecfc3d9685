import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import avro from 'avsc'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { TidemarkError } from '../../../base/errors.ts'
import { assertLinear } from '../../../base/growth.suite.ts'
import type { ObjectBody } from '../../../cloud/object-store.ts'
import { CsvReader } from './csv.ts'
import { ItemSink } from './item-sink.ts'
import { JsonReader } from './json.ts'
import { LineReader, type PieceReader } from './lines.ts'
import { openRecords } from './open-records.ts'
import { bodyOf, input, LIMITS, readAll, valuesOf } from './records.suite.ts'

const MIB = 1024 * 1024
const PIECE = 64 * 1024

/** `count` times the same bytes, between a beginning and an end. */
function repeated(beginning: string, piece: Buffer, count: number, end: string): () => Promise<ObjectBody> {
  return async () => ({
    ...(await bodyOf(Buffer.alloc(0))(0)),
    sizeBytes: null,
    bytes: (async function* () {
      yield Buffer.from(beginning)
      for (let at = 0; at < count; at++) yield piece
      yield Buffer.from(end)
    })(),
  })
}

/** Reads to the end; answers how much memory was in use at most, beyond what there was. */
async function memoryOf(
  name: string,
  open: () => Promise<ObjectBody>,
): Promise<{ codes: string[]; bytesMax: number }> {
  const codes: string[] = []
  const before = inUse()
  let bytesMax = 0
  const watched = async () => {
    const body = await open()
    const bytes = (async function* () {
      for await (const chunk of body.bytes) {
        bytesMax = Math.max(bytesMax, inUse() - before)
        yield chunk
      }
    })()
    return { ...body, bytes }
  }
  const { items } = await openRecords(input(Buffer.alloc(0), { name, open: watched }))
  for await (const item of items)
    if (codes.length < 10) codes.push(item.kind === 'bad' ? item.code : 'record')
  return { codes, bytesMax }
}

function inUse(): number {
  return process.memoryUsage().arrayBuffers
}

describe('memory does not grow with', () => {
  const piece = Buffer.alloc(PIECE, 'x')
  const cases: [what: string, name: string, beginning: string, end: string, codes: string[]][] = [
    ['a line of 100 MB', 'a.jsonl', '{"a":1}\n{"b":"', '"}\n{"a":2}\n', ['record', 'too-long', 'record']],
    ['an element of 100 MB', 'a.json', '[{"a":1},{"b":"', '"},{"a":2}]', ['record', 'too-long', 'record']],
    ['a cell of 100 MB', 'a.csv', 'a,b\n1,2\n3,', '\n4,5\n', ['record', 'too-long', 'record']],
    ['a field of 100 MB before the records', 'a.json', '{"Records":[{"a":1}],"pad":"', '"}', ['record']],
  ]
  for (const [what, name, beginning, end, expected] of cases) {
    test(what, async () => {
      const { codes, bytesMax } = await memoryOf(name, repeated(beginning, piece, 1_600, end))
      assert.deepEqual(codes, expected)
      assert.ok(bytesMax < 8 * MIB, `${bytesMax} bytes`)
    })
  }

  test('a quote that is never closed, and rows behind it are read again', async () => {
    const rows = Buffer.from('1,2\n'.repeat(PIECE / 4))
    const { codes, bytesMax } = await memoryOf('a.csv', repeated('a,b\n1,"open\n', rows, 20, ''))
    assert.deepEqual(codes.slice(0, 3), ['too-long', 'record', 'record'])
    assert.ok(bytesMax < 8 * MIB, `${bytesMax} bytes`)
  })

  test('nobody who reads: no more is fetched than is wanted', async () => {
    let fetched = 0
    const open = async () => ({
      ...(await bodyOf(Buffer.alloc(0))(0)),
      bytes: (async function* () {
        for (; fetched < 10_000; fetched++) yield Buffer.from('{"a":1}\n'.repeat(PIECE / 8))
      })(),
    })
    const { items } = await openRecords(input(Buffer.alloc(0), { open }))
    let read = 0
    for await (const _ of items) if (++read === 100) break
    assert.ok(fetched <= 3, `${fetched} pieces`)
  })
})

describe('bombs end the reading', () => {
  test('of gzip and zstd, as soon as they are one', async () => {
    const zeros = Buffer.alloc(16 * MIB, ' ')
    const level = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
    for (const packed of [gzipSync(zeros), zstdCompressSync(zeros, level)]) {
      const { thrown } = await readAll(packed, { limits: { recordBytesMax: 1_000, expansionMax: 100 } })
      assert.equal((thrown as TidemarkError).code, 'bomb')
    }
  })

  test('of Parquet pages', async () => {
    const data = Array.from({ length: 2 }, () => 'x'.repeat(2 * MIB))
    const bytes = Buffer.from(parquetWriteBuffer({ columnData: [{ name: 's', data }] }))
    const { thrown } = await readAll(bytes, { limits: { recordBytesMax: 4 * MIB, expansionMax: 2 } })
    assert.equal((thrown as TidemarkError).code, 'bomb')
  })

  test('of Avro: records and items without a byte', async () => {
    const header = await avroHeader({
      type: 'record',
      name: 'E',
      fields: [{ name: 'l', type: { type: 'array', items: 'null' } }],
    })
    const sync = header.subarray(-16)
    // Counts of 2^40 and so on, in as few bytes as they take.
    const huge = Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80, 0x40])
    for (const block of [
      [huge, Buffer.from([0])],
      [Buffer.from([2]), Buffer.from([huge.length * 2 + 2]), huge, Buffer.from([0])],
    ]) {
      const { thrown } = await readAll(Buffer.concat([header, ...block, sync]))
      assert.equal((thrown as TidemarkError).code, 'corrupt')
    }
  })
})

describe('depth', () => {
  test('of JSON is limited, and such a record is bad by itself', async () => {
    const deep = `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`
    assert.deepEqual(await valuesOf(`{"x":1}\n${deep}\n{"y":1}\n`), [{ x: 1 }, 'too-deep', { y: 1 }])
    assert.deepEqual(await valuesOf(`[{"x":1},${deep},{"y":1}]`), [{ x: 1 }, 'too-deep', { y: 1 }])
    const open = await readAll(Buffer.from(`[${'['.repeat(200_000)}`), { name: 'a.json' })
    assert.equal((open.thrown as TidemarkError).code, 'truncated')
  })
})

describe('work grows with the bytes, not with their square, for', () => {
  const options = { bytesMax: LIMITS.recordBytesMax, place: { byte: 0, lines: 0 } }
  const readers: [what: string, open: (sink: ItemSink) => PieceReader, content: (size: number) => string][] =
    [
      [
        'bad lines',
        (sink) => new LineReader(sink, { format: 'ndjson', ...options }),
        (size) => '{"a":\n'.repeat(size / 6),
      ],
      ['quotes that open in every row', csv, (size) => '"a\n'.repeat(size / 3)],
      ['quotes that are doubled', csv, (size) => `"${'""'.repeat(size / 2)}`],
      ['cells without end', csv, (size) => ','.repeat(size)],
      ['brackets that only open', json, (size) => '['.repeat(size)],
      ['brackets that only close', json, (size) => `[${'}'.repeat(size)}`],
      ['escapes', json, (size) => `["${'\\'.repeat(size)}`],
      ['commas', json, (size) => `[${','.repeat(size)}`],
    ]
  function csv(sink: ItemSink): PieceReader {
    return new CsvReader(sink, { separator: ',', header: ['a'], isHeaderAhead: false, ...options })
  }
  function json(sink: ItemSink): PieceReader {
    return new JsonReader(sink, {
      layout: { kind: 'list' },
      bytesMax: options.bytesMax,
      fromByte: 0,
      isWithin: false,
    })
  }
  for (const [what, open, content] of readers) {
    test(what, () => {
      assertLinear({
        sizeMax: 48 * 1024,
        make: (size) => Buffer.from(content(size)),
        work: (bytes) => {
          const sink = new ItemSink(0, 0)
          const reader = open(sink)
          // In small pieces, which is where what is held would be looked at again and again.
          for (let at = 0; at < bytes.length; at += 512) reader.push(bytes.subarray(at, at + 512))
          sink.take()
        },
      })
    })
  }
})

describe('whatever the bytes are', () => {
  test('a Parquet or Avro file with any byte changed gives records or a permanent error', async () => {
    const columnData = [{ name: 's', data: Array.from({ length: 20 }, (_, at) => `t${at}`) }]
    const parquet = Buffer.from(parquetWriteBuffer({ columnData }))
    const header = await avroHeader({ type: 'record', name: 'E', fields: [{ name: 's', type: 'string' }] })
    const avroFile = Buffer.concat([header, Buffer.from([4, 8, 2, 0x61, 2, 0x62]), header.subarray(-16)])
    assert.deepEqual(await valuesOf(avroFile), [{ s: 'a' }, { s: 'b' }])
    for (const [name, bytes] of [
      ['a.parquet', parquet],
      ['a.avro', avroFile],
    ] as const) {
      for (let at = 0; at < bytes.length; at += 3) {
        for (const mask of [0xff]) {
          const changed = Buffer.from(bytes)
          changed[at]! ^= mask
          const { thrown } = await readAll(changed, { name })
          if (thrown !== undefined) {
            assert.ok(
              thrown instanceof TidemarkError && thrown.kind === 'permanent',
              `${name} ${at}: ${String(thrown)}`,
            )
          }
        }
      }
    }
  })
})

async function avroHeader(schema: avro.Schema): Promise<Buffer> {
  const encoder = new avro.streams.BlockEncoder(avro.Type.forSchema(schema))
  const chunks: Buffer[] = []
  encoder.on('data', (chunk: Buffer) => chunks.push(chunk))
  const ended = new Promise((resolve) => encoder.on('end', resolve))
  encoder.end()
  await ended
  const header = Buffer.concat(chunks)
  if (header.length > 0) return header
  return await headerByHand(schema)
}

/** The encoder writes no header where there is no record. */
async function headerByHand(schema: avro.Schema): Promise<Buffer> {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value)
    const length: number[] = []
    for (let left = bytes.length * 2; ; left >>= 7) {
      length.push(left >= 128 ? (left & 127) | 128 : left)
      if (left < 128) break
    }
    return Buffer.concat([Buffer.from(length), bytes])
  }
  const entries = [Buffer.from([2]), text('avro.schema'), text(JSON.stringify(schema)), Buffer.from([0])]
  return Buffer.concat([Buffer.from('Obj\u0001', 'latin1'), ...entries, Buffer.alloc(16, 7)])
}
