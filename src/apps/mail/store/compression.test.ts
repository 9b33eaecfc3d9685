import assert from 'node:assert/strict'
import { test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import { compressed, decompressed } from './compression.ts'

const BYTES_MAX = 1_048_576

test('what is compressed comes back byte by byte, one after another and in any order of sizes', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 2_000 }),
    fc
      .tuple(fc.string(), fc.nat(20_000))
      .map(([text, times]) => Buffer.from(text.repeat(times)).subarray(0, 400_000)),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const packed = pieces.map(compressed)
      pieces.forEach((bytes, at) => {
        assert.deepEqual(Buffer.from(decompressed(packed[at]!, BYTES_MAX)), Buffer.from(bytes))
      })
    }),
    { numRuns: 200 },
  )
})

test('what does not compress comes back too, at any size', () => {
  for (const bytes of [0, 1, 131_071, 131_072, 131_073, 300_000]) {
    const noise = new Uint8Array(bytes)
    for (let at = 0; at < bytes; at += 65_536) crypto.getRandomValues(noise.subarray(at, at + 65_536))
    assert.deepEqual(Buffer.from(zstdDecompressSync(compressed(noise))), Buffer.from(noise))
  }
})

test('a blob of small texts shrinks, and needs no more memory to read than it holds', () => {
  const text = Buffer.from('a line of a mail\r\n'.repeat(500))
  const packed = compressed(text)
  assert.ok(packed.byteLength < 200, `${packed.byteLength}`)
  assert.throws(() => decompressed(packed, 100))
})
