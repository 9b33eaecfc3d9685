import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import avro from 'avsc'
import fc from 'fast-check'
import { parquetWriteBuffer } from 'hyparquet-writer'
import type { ReadFrom, ReadItem } from '../contract.ts'
import { readAll } from './records.suite.ts'

const LIMITS = { recordBytesMax: 120, expansionMax: 5_000 }

/** Text with all that separates, quotes, escapes and breaks. */
const text = fc.string({
  unit: fc.constantFrom('a', 'Z', '7', ' ', ',', '"', "'", '\\', '\n', '\r', '{', ']', 'é', '日', '😀', '\t'),
})
const scalar = fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.double({ noNaN: true }))
const record = fc.dictionary(
  fc.string({ unit: fc.constantFrom('a', 'b', '"', '{', 'é'), minLength: 1, maxLength: 3 }),
  fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(fc.constantFrom('x', 'y'), scalar)),
  { maxKeys: 4 },
)
const junk = fc.constantFrom('{"a":', 'nonsense', '[1,2]', '5', `{"long":"${'x'.repeat(200)}"}`)
const newline = fc.constantFrom('\n', '\r\n', '\n\n')

type Sample = { name: string; bytes: Buffer }

const ndjson = fc
  .tuple(
    fc.array(
      fc.tuple(fc.oneof({ weight: 4, arbitrary: record.map((one) => JSON.stringify(one)) }, junk), newline),
    ),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([lines, hasBom, endsOpen]): Sample => {
    const body = lines.map((parts) => parts.join('')).join('')
    const bytes = Buffer.from((hasBom ? '\ufeff' : '') + (endsOpen ? body.trimEnd() : body))
    return { name: 'a.ndjson', bytes }
  })
const broken = fc.array(fc.uint8Array({ maxLength: 150 })).map((lines): Sample => {
  const bytes = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]))
  return { name: 'a.jsonl', bytes }
})
const values = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: record.map((one) => JSON.stringify(one, null, 1)) },
    fc.constantFrom('5', '"x"', '{"a":}'),
  ),
)
const list = values.map((all): Sample => ({ name: 'a.json', bytes: Buffer.from(`[${all.join(' ,\n')}]\n`) }))
const wrapped = values.map((all): Sample => {
  const bytes = Buffer.from(
    `{"v":{"q":["]}"]},"Records":[{"first":1}${all.map((one) => `,${one}`).join('')}],"after":[1]}`,
  )
  return { name: 'trail.json', bytes }
})
const following = fc.array(record, { minLength: 1 }).map((all): Sample => {
  return { name: 'a.json', bytes: Buffer.from(all.map((one) => JSON.stringify(one, null, 1)).join('')) }
})
const cell = fc.oneof(text, fc.constantFrom('5" pipe', '', 'x'.repeat(130)))
const csv = fc
  .array(fc.tuple(fc.array(cell, { minLength: 1, maxLength: 4 }), newline))
  .map((rows): Sample => {
    const lines = rows.map(
      ([cells, end]) =>
        cells
          .map((one) => (/[",\r\n]/.test(one) && one !== '5" pipe' ? `"${one.replaceAll('"', '""')}"` : one))
          .join(',') + end,
    )
    return { name: 'a.csv', bytes: Buffer.from(`id,name,it\n${lines.join('')}`) }
  })
const unclosed = csv.map(
  ({ name, bytes }): Sample => ({ name, bytes: Buffer.concat([bytes, Buffer.from('1,"open\n'), bytes]) }),
)
const lines = fc.array(text).map((all): Sample => ({ name: 'a.txt', bytes: Buffer.from(all.join('\n')) }))
const utf16 = ndjson.map(({ name, bytes }): Sample => {
  const content = bytes.toString().replace(/^\ufeff/, '')
  return { name, bytes: Buffer.from(`\ufeff${content}`, 'utf16le') }
})
const packed = fc
  .tuple(
    fc.oneof(ndjson, list, csv),
    fc.constantFrom(gzipSync, zstdCompressSync),
    fc.double({ min: 0, max: 1, noNaN: true }),
  )
  .map(([{ name, bytes }, pack, share]): Sample => {
    const at = Math.floor(bytes.length * share)
    // Two members are one stream.
    return {
      name: `${name}.gz`,
      bytes: Buffer.concat([pack(bytes.subarray(0, at)), pack(bytes.subarray(at))]),
    }
  })
const parquet = fc
  .array(fc.tuple(fc.integer(), text), { minLength: 1, maxLength: 30 })
  .map((rows): Sample => {
    const columnData = [
      { name: 'n', data: rows.map(([n]) => n), type: 'INT32' as const },
      { name: 's', data: rows.map(([, s]) => s), type: 'STRING' as const },
    ]
    return { name: 'a.parquet', bytes: Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 7 })) }
  })

async function assertResumes({ name, bytes }: Sample, chunk: number, cut: number): Promise<void> {
  const whole = await readAll(bytes, { name, chunk, limits: LIMITS })
  assert.equal(whole.thrown, undefined)
  assert.deepEqual(
    whole.items.map(({ at }) => at),
    whole.items.map((_, at) => at),
    'records are counted without a gap',
  )
  const again = await readAll(bytes, { name, chunk: 1 + ((chunk * 7) % 50), limits: LIMITS })
  assert.deepEqual(again.items, whole.items, 'the same in any pieces')
  const head = whole.items.slice(0, Math.floor(cut * (whole.items.length + 1)))
  const rest = await readAll(bytes, { name, chunk, limits: LIMITS, shape: whole.shape, from: behind(head) })
  assert.equal(rest.thrown, undefined)
  assert.deepEqual([...head, ...rest.items], whole.items)
}

function behind(head: readonly ReadItem[]): ReadFrom {
  const place = head.at(-1)?.place
  return { records: head.length, byte: place?.endByte ?? null, line: place?.line ?? null }
}

const KINDS: readonly (readonly [string, fc.Arbitrary<Sample>])[] = [
  ['NDJSON', ndjson],
  ['lines of any bytes', broken],
  ['a JSON list', list],
  ['a list in a JSON object', wrapped],
  ['JSON values one behind the other', following],
  ['CSV', csv],
  ['CSV with a quote that is never closed', unclosed],
  ['text', lines],
  ['UTF-16', utf16],
  ['gzip and zstd in two members', packed],
  ['Parquet', parquet],
]

describe('what was read and the rest from behind any record are the whole, for', () => {
  for (const [what, sample] of KINDS) {
    test(what, async () => {
      const cut = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
      const numRuns = what === 'Parquet' ? 30 : 100
      await fc.assert(fc.asyncProperty(sample, fc.integer({ min: 1, max: 60 }), cut, assertResumes), {
        numRuns,
      })
    })
  }

  test('Avro, where it goes on behind each block', async () => {
    const type = avro.Type.forSchema({
      type: 'record',
      name: 'Event',
      fields: [
        { name: 'id', type: 'long' },
        { name: 'tags', type: { type: 'array', items: 'string' } },
        { name: 'note', type: ['null', 'string'], default: null },
      ],
    })
    for (const codec of ['null', 'deflate']) {
      const bytes = await avroFile(type, 40, codec)
      const whole = await readAll(bytes, { chunk: 13 })
      assert.equal(whole.thrown, undefined)
      assert.equal(whole.items.length, 40)
      assert.ok(
        whole.items.filter(({ place }) => place.endByte !== null).length > 2,
        'there are several blocks',
      )
      for (let cut = 0; cut <= 40; cut++) {
        const head = whole.items.slice(0, cut)
        const rest = await readAll(bytes, { chunk: 13, shape: whole.shape, from: behind(head) })
        assert.deepEqual([...head, ...rest.items], whole.items)
      }
    }
  })

  test('a place that was told is where the object is opened, and nothing before it is fetched', async () => {
    const bytes = Buffer.from('{"a":1}\n{"a":2}\n{"a":3}\n')
    const { shape, items } = await readAll(bytes)
    const rest = await readAll(bytes, { shape, from: behind(items.slice(0, 2)) })
    assert.deepEqual([rest.opened, rest.items], [[16], items.slice(2)])
  })
})

async function avroFile(type: avro.Type, count: number, codec: string): Promise<Buffer> {
  const encoder = new avro.streams.BlockEncoder(type, { codec: codec as 'null', blockSize: 200 })
  const chunks: Buffer[] = []
  encoder.on('data', (chunk: Buffer) => chunks.push(chunk))
  const ended = new Promise((resolve) => encoder.on('end', resolve))
  for (let id = 0; id < count; id++)
    encoder.write({ id: id * 1e9 - 5, tags: ['x'.repeat(id), 'y'], note: id % 2 ? 'n' : null })
  encoder.end()
  await ended
  return Buffer.concat(chunks)
}
