import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { quickXorHash } from '../../base/quick-xor-hash.ts'
import { bytesOfContent, ContentStore, readContent } from './content.ts'
import { isSyntheticAt, syntheticBytes, syntheticHash, syntheticOf } from './synthetic.ts'

const BLOCK = 4 * 320 * 1024
const SIZES = [
  0,
  1,
  31,
  32,
  33,
  1_000,
  BLOCK - 1,
  BLOCK,
  BLOCK + 7,
  BLOCK + 8,
  2 * BLOCK + 40,
  3 * BLOCK + 123_457,
]

const whole = (synthetic: { seed: number; size: number }): Buffer =>
  Buffer.concat([...syntheticBytes(synthetic)])

describe('synthetic content', () => {
  test('has its size, and the hash that its bytes have', () => {
    for (const size of SIZES) {
      const bytes = whole({ seed: 7, size })
      assert.equal(bytes.length, size)
      assert.equal(syntheticHash({ seed: 7, size }), quickXorHash(bytes), String(size))
    }
  })

  test('is the same from any place on, and another for another seed or size', () => {
    const bytes = whole({ seed: 3, size: 2 * BLOCK + 100 })
    for (const [from, to] of [
      [0, 10],
      [5, 40],
      [BLOCK - 3, BLOCK + 20],
      [BLOCK + 4, 2 * BLOCK + 100],
    ] as const) {
      const part = Buffer.concat([...syntheticBytes({ seed: 3, size: bytes.length }, { from, to })])
      assert.ok(part.equals(bytes.subarray(from, to)), `${from} to ${to}`)
      assert.ok(isSyntheticAt({ seed: 3, size: bytes.length }, from, part))
    }
    assert.deepEqual(syntheticOf(bytes), { seed: 3, size: bytes.length })
    assert.equal(syntheticOf(Buffer.alloc(64)), undefined)
    assert.notEqual(syntheticHash({ seed: 4, size: 5_000 }), syntheticHash({ seed: 3, size: 5_000 }))
    assert.ok(!isSyntheticAt({ seed: 3, size: bytes.length }, 0, whole({ seed: 4, size: 100 })))
  })
})

describe('kept contents', () => {
  test('are kept once, under their hash', () => {
    const store = new ContentStore()
    const first = store.add('hello')
    assert.equal(store.addChunks([Buffer.from('he'), Buffer.from('llo')]), first)
    assert.equal(first.hash, quickXorHash(Buffer.from('hello')))
    assert.equal(bytesOfContent(store.get(first.key)!)!.toString(), 'hello')
    assert.equal(store.add('').hash, 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=')
  })

  test('two with the same hash are two', () => {
    const one = Buffer.alloc(400)
    const two = Buffer.alloc(400)
    one[3] = 9
    two[163] = 9
    const store = new ContentStore()
    const [a, b] = [store.add(one), store.add(two)]
    assert.equal(a.hash, b.hash)
    assert.notEqual(a.key, b.key)
    assert.ok(bytesOfContent(b)!.equals(two))
    assert.equal(store.add(two), b)
  })

  test('an upload of synthetic content takes no memory and can be read again', () => {
    const store = new ContentStore({ keepBytesMax: 1_000 })
    const synthetic = { seed: 11, size: 2 * BLOCK + 5 }
    const writer = store.writer()
    const bytes = whole(synthetic)
    for (let at = 0; at < bytes.length; at += 70_001) writer.append(bytes.subarray(at, at + 70_001))
    const content = writer.finish()
    assert.equal(content.source.kind, 'synthetic')
    assert.equal(content.hash, quickXorHash(bytes))
    assert.ok(Buffer.concat([...readContent(content, { from: 40, to: 90 })!]).equals(bytes.subarray(40, 90)))
  })

  test('what only begins like synthetic content is kept as it is', () => {
    const bytes = whole({ seed: 11, size: BLOCK + 500 })
    for (const changedAt of [40, BLOCK - 1, BLOCK + 499]) {
      const other = Buffer.from(bytes)
      other[changedAt]! ^= 1
      const store = new ContentStore()
      const writer = store.writer()
      for (let at = 0; at < other.length; at += 64_000) writer.append(other.subarray(at, at + 64_000))
      const content = writer.finish()
      assert.equal(content.hash, quickXorHash(other))
      assert.ok(bytesOfContent(content)!.equals(other))
    }
    const store = new ContentStore()
    const cut = store.addChunks([bytes.subarray(0, 5_000)])
    assert.ok(bytesOfContent(cut)!.equals(bytes.subarray(0, 5_000)))
    assert.equal(cut.hash, quickXorHash(bytes.subarray(0, 5_000)))
  })

  test('above the limit only hash and size are kept', () => {
    const store = new ContentStore({ keepBytesMax: 100 })
    const bytes = Buffer.alloc(150, 'x')
    const content = store.addChunks([bytes.subarray(0, 90), bytes.subarray(90)])
    assert.equal(content.hash, quickXorHash(bytes))
    assert.equal(content.size, 150)
    assert.equal(readContent(content), undefined)
  })

  test('small chunks do not hold on to the memory that they were read into', () => {
    const memory = Buffer.alloc(65_536)
    const content = new ContentStore().addChunks([memory.subarray(100, 200)])
    assert.ok(content.source.kind === 'bytes')
    assert.notEqual(content.source.chunks[0]!.buffer, memory.buffer)
  })
})
