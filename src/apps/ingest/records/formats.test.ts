import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import avro from 'avsc'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { TidemarkError } from '../../../base/errors.ts'
import { avroDecoderOf } from './avro-schema.ts'
import { AUTO, bodyOf, readAll, valuesOf } from './records.suite.ts'

function codeOf(thrown: unknown): string | undefined {
  assert.ok(thrown instanceof TidemarkError, String(thrown))
  assert.equal(thrown.kind, 'permanent')
  return thrown.code
}

describe('what an object is', () => {
  const found: [what: string, name: string, content: string | Buffer, shape: object][] = [
    ['lines of JSON without a name', 'x', '{"a":1}\n{"a":2}\n', { format: 'ndjson' }],
    ['lines of JSON that are called .json', 'x.json', '{"a":1}\n{"a":2}\n', { format: 'ndjson' }],
    ['a list', 'x', ' [ {"a":1} ]', { format: 'json', layout: 'list' }],
    ['one object', 'x.json', '{"a":1}', { format: 'json', layout: 'values' }],
    [
      'an object around its records',
      'x',
      '{"Records":[{"a":1}]}',
      { layout: 'field', recordsField: 'Records' },
    ],
    ['an object around no records', 'x.json', '{"Records":[]}', { layout: 'field', recordsField: 'Records' }],
    ['a log that begins with a bracket', 'app.log', '[2026-01-01] started\n', { format: 'text' }],
    [
      'a table by its name',
      'x.csv.gz',
      gzipSync('a,b\n1,2\n'),
      { format: 'csv', compression: 'gzip', header: ['a', 'b'] },
    ],
    ['semicolons', 'x.csv', 'a;b\n1,5;2\n', { separator: ';' }],
    ['a table without names', 'x.csv', '1,2\n3,4\n', { header: null }],
    [
      'zstd, whatever it is called',
      'x.gz',
      zstdCompressSync('hello\n'),
      { format: 'text', compression: 'zstd' },
    ],
    ['an empty object', 'x.parquet', '', { format: 'parquet' }],
  ]
  for (const [what, name, content, expected] of found) {
    test(what, async () => {
      const { shape, thrown } = await readAll(Buffer.from(content), { name })
      assert.equal(thrown, undefined)
      assert.deepEqual({ ...shape, ...expected }, shape)
    })
  }

  test('a type that the store tells decides where the name says nothing', async () => {
    const bytes = Buffer.from('a,b\n1,2\n')
    const open = async (fromByte: number) => ({
      ...(await bodyOf(bytes)(fromByte)),
      contentType: 'text/csv; charset=utf-8',
    })
    assert.deepEqual(await valuesOf(bytes, { open }), [{ a: '1', b: '2' }])
  })

  test('bytes that are nothing of that are refused as a whole', async () => {
    assert.equal(codeOf((await readAll(Buffer.from([0, 1, 2, 3, 0xff, 0]))).thrown), 'unknown-format')
    assert.equal(codeOf((await readAll(Buffer.from('hello'), { name: 'x.parquet' })).thrown), 'corrupt')
  })

  test('two lists of objects are one too many, until somebody says which', async () => {
    const two = Buffer.from('{"a":[{"x":1}],"b":[{"y":2}]}')
    assert.equal(codeOf((await readAll(two, { name: 'x.json' })).thrown), 'schema')
    assert.deepEqual(await valuesOf(two, { options: { ...AUTO, recordsField: 'b' } }), [{ y: 2 }])
    const without = await readAll(two, { options: { ...AUTO, recordsField: 'c' } })
    assert.equal(codeOf(without.thrown), 'schema')
  })

  test('an empty object of any kind has no records', async () => {
    for (const content of [
      '',
      '\ufeff',
      '[]',
      '{"Records":[]}',
      '\n\n',
      gzipSync(''),
      zstdCompressSync(''),
    ]) {
      assert.deepEqual(await valuesOf(content), [])
    }
  })
})

describe('records', () => {
  test('of CSV keep quotes, line feeds, what is missing and what is too many', async () => {
    const csv = '\ufeffid,name,id\r\n1,"a ""q"",\r\nb",x\r\n2,5" pipe,y,more,"and ""more"""\r\n3\r\n'
    assert.deepEqual(await valuesOf(csv, { name: 'x.csv', options: { ...AUTO, header: true }, chunk: 3 }), [
      { id: '1', name: 'a "q",\nb', id_2: 'x' },
      { id: '2', name: '5" pipe', id_2: 'y', _extra: ['more', 'and "more"'] },
      { id: '3' },
    ])
  })

  test('of a table whose header tries to be a prototype are plain', async () => {
    const [record] = (await valuesOf('__proto__,b\nx,y\n', { name: 'x.csv' })) as [object]
    assert.deepEqual(record, { column1: 'x', b: 'y' })
    assert.equal(Object.getPrototypeOf(record), Object.prototype)
  })

  test('of UTF-16 are read with its mark, in both orders', async () => {
    const content = Buffer.from('\ufeff{"a":"é😀"}\n{"a":2}\n', 'utf16le')
    for (const bytes of [content, Buffer.from(content).swap16()]) {
      assert.deepEqual(await valuesOf(bytes, { chunk: 3 }), [{ a: 'é😀' }, { a: 2 }])
    }
  })

  test('keep integers that a number cannot hold', async () => {
    const json =
      '{"id":9007199254740993,"n":-12345678901234567890,"f":0.25000000000000000000,"t":"9007199254740993"}'
    const expected = {
      id: '9007199254740993',
      n: '-12345678901234567890',
      f: 0.25,
      t: '9007199254740993',
    }
    assert.deepEqual(await valuesOf(json), [expected])
    assert.deepEqual(await valuesOf(`[${json}]`), [expected])
  })

  test('of Parquet are plain values, by row group and from any row', async () => {
    const columnData = [
      { name: 'id', data: [1n, 9007199254740993n, 3n], type: 'INT64' as const },
      { name: 'at', data: [new Date(0), new Date(1), new Date(2)], type: 'TIMESTAMP' as const },
      { name: 'tags', data: [['a', 'b'], [], ['c']] },
      { name: 'note', data: ['x', null, 'é'], type: 'STRING' as const, nullable: true },
    ]
    const bytes = Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 2 }))
    const { items, thrown, shape, opened } = await readAll(bytes)
    assert.equal(thrown, undefined)
    assert.deepEqual(
      items.map((item) => item.kind === 'record' && item.value),
      [
        { id: 1, at: '1970-01-01T00:00:00.000Z', tags: ['a', 'b'], note: 'x' },
        { id: '9007199254740993', at: '1970-01-01T00:00:00.001Z', tags: [], note: null },
        { id: 3, at: '1970-01-01T00:00:00.002Z', tags: ['c'], note: 'é' },
      ],
    )
    const rest = await readAll(bytes, { shape, from: { records: 2, byte: null, line: null } })
    assert.deepEqual(rest.items, items.slice(2))
    assert.ok(rest.opened.length < opened.length, 'the group before is not fetched')
  })

  test('of Avro are plain values', async () => {
    const type = avro.Type.forSchema({
      type: 'record',
      name: 'E',
      namespace: 'n',
      fields: [
        { name: 'at', type: 'long' },
        { name: 'kind', type: { type: 'enum', name: 'K', symbols: ['A', 'B'] } },
        { name: 'map', type: { type: 'map', values: ['null', 'double', 'string'] } },
        { name: 'child', type: ['null', 'n.E'], default: null },
        { name: 'raw', type: { type: 'fixed', name: 'F', size: 2 } },
        { name: 'on', type: 'boolean' },
      ],
    } as avro.Schema)
    const plain = {
      kind: 'B',
      map: { a: 1.5, b: 'x', c: null },
      raw: Buffer.from('hi'),
      on: true,
    }
    const encoder = new avro.streams.BlockEncoder(type)
    const chunks: Buffer[] = []
    encoder.on('data', (chunk: Buffer) => chunks.push(chunk))
    const ended = new Promise((resolve) => encoder.on('end', resolve))
    encoder.end({ ...plain, at: 1, child: { ...plain, at: -1, child: null } })
    await ended
    const common = { kind: 'B', map: { a: 1.5, b: 'x', c: null }, raw: 'aGk=', on: true }
    const child = { ...common, at: -1, child: null }
    assert.deepEqual(await valuesOf(Buffer.concat(chunks)), [{ ...common, at: 1, child }])
  })
})

test('times and decimals of Avro are texts that everybody reads', () => {
  const decode = (schema: object, bytes: number[]) =>
    avroDecoderOf(JSON.stringify(schema))({ bytes: Buffer.from(bytes), at: 0, depth: 0 })
  assert.equal(decode({ type: 'long', logicalType: 'timestamp-millis' }, [2]), '1970-01-01T00:00:00.001Z')
  assert.equal(decode({ type: 'int', logicalType: 'date' }, [4]), '1970-01-03')
  assert.equal(decode({ type: 'bytes', logicalType: 'decimal', scale: 2 }, [4, 0xff, 0x85]), '-1.23')
})

describe('what cannot be read', () => {
  test('is told with its place, its reason and how it begins, and reading goes on', async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"a":1}\nnonsense\n'),
      Buffer.from([0x7b, 0xff, 0x7d, 0x0a]),
      Buffer.from(`[1]\n{"long":"${'x'.repeat(70_000)}"}\n{"a":2}\n`),
    ])
    const { items, thrown } = await readAll(bytes, { name: 'x.jsonl', chunk: 1_000 })
    assert.equal(thrown, undefined)
    assert.deepEqual(
      items.map((item) => [item.at, item.place.line, item.kind === 'bad' ? item.code : item.value]),
      [
        [0, 1, { a: 1 }],
        [1, 2, 'bad-json'],
        [2, 3, 'not-utf8'],
        [3, 4, 'not-an-object'],
        [4, 5, 'too-long'],
        [5, 6, { a: 2 }],
      ],
    )
    const bad = items[4]!
    assert.ok(bad.kind === 'bad' && bad.excerpt.length === 200 && bad.reason !== '')
  })

  test('a stream that was cut gives all that came before', async () => {
    const content = Array.from({ length: 50_000 }, (_, at) =>
      JSON.stringify({ at, text: `${(at * 7_919) % 1_000}` }),
    ).join('\n')
    for (const pack of [gzipSync, zstdCompressSync]) {
      const packed = pack(content)
      const { items, thrown } = await readAll(packed.subarray(0, packed.length - 9), { chunk: 777 })
      assert.equal(codeOf(thrown), 'truncated')
      assert.ok(items.length > 1_000, `${items.length} records came before`)
      assert.ok(items.every((item, at) => item.kind === 'record' && item.value.at === at))
    }
  })

  test('a stream that is damaged, or followed by what is none, is not taken for whole', async () => {
    const tail = Buffer.from('something else')
    for (const pack of [gzipSync, zstdCompressSync]) {
      const packed = pack('{"a":1}\n{"a":2}\n')
      assert.equal(codeOf((await readAll(Buffer.concat([packed, tail]))).thrown), 'corrupt')
      const damaged = Buffer.from(packed)
      damaged[packed.length >> 1]! ^= 0xff
      assert.match(codeOf((await readAll(damaged)).thrown) ?? '', /^(corrupt|truncated)$/)
    }
  })

  test('JSON that was cut is truncated, behind its whole records', async () => {
    for (const content of ['[{"a":1},{"a":', '{"Records":[{"a":1},', '{"Records":[{"a":1}]']) {
      const { items, thrown } = await readAll(Buffer.from(content), { name: 'x.json' })
      assert.deepEqual([codeOf(thrown), items.length], ['truncated', 1])
    }
  })

  test('JSON that turns into something else is corrupt, behind what came before', async () => {
    const { items, thrown } = await readAll(Buffer.from('[{"a":1},{"a":2}] and so on'))
    assert.deepEqual([codeOf(thrown), items.length], ['corrupt', 2])
  })

  test('Parquet without its footer is truncated, with bytes that were changed corrupt', async () => {
    const data = Array.from({ length: 50 }, (_, at) => `text ${at}`)
    const bytes = Buffer.from(parquetWriteBuffer({ columnData: [{ name: 's', data }] }))
    assert.equal(codeOf((await readAll(bytes.subarray(0, -20))).thrown), 'truncated')
    for (let at = bytes.length - 40; at < bytes.length - 4; at++) {
      const damaged = Buffer.from(bytes)
      damaged[at]! ^= 0xff
      const { thrown } = await readAll(damaged)
      if (thrown !== undefined)
        assert.ok(['corrupt', 'truncated', 'too-large'].includes(codeOf(thrown) ?? ''), String(thrown))
    }
  })

  test('what the store says while it is read is passed on as it is', async () => {
    const error = new TidemarkError('reset', { kind: 'transient' })
    for (const content of [Buffer.from('{"a":1}\n'.repeat(20_000)), gzipSync('{"a":1}\n'.repeat(200_000))]) {
      const open = async (fromByte: number) => {
        const body = await bodyOf(content)(fromByte)
        const bytes = (async function* () {
          yield* [content.subarray(0, content.length >> 1)]
          throw error
        })()
        return { ...body, bytes }
      }
      const { items, thrown } = await readAll(content, { open })
      assert.equal(thrown, error)
      assert.ok(items.length > 100)
    }
  })
})
