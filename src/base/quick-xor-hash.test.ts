import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Fold, foldSimd, foldWords, PERIOD_BYTES } from './quick-xor-fold.ts'
import { QuickXorHash, quickXorHash } from './quick-xor-hash.ts'

/** As the description has it, one bit at a time. */
function slowly(bytes: Uint8Array): string {
  const register = new Uint8Array(160)
  bytes.forEach((byte, i) => {
    for (let bit = 0; bit < 8; bit++) register[(11 * i + bit) % 160]! ^= (byte >> bit) & 1
  })
  for (let bit = 0, rest = BigInt(bytes.length); bit < 64; bit++, rest >>= 1n) {
    register[96 + bit]! ^= Number(rest & 1n)
  }
  const digest = Buffer.alloc(20)
  register.forEach((bit, at) => {
    digest[at >> 3]! |= bit << (at & 7)
  })
  return digest.toString('base64')
}

function noise(length: number): Uint8Array {
  let state = 0x9e3779b9
  return Uint8Array.from({ length }, () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state & 0xff
  })
}

const BYTES = noise(1 << 18)

describe('QuickXorHash', () => {
  test('has the published values', () => {
    assert.equal(quickXorHash(new Uint8Array()), 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=')
    assert.equal(quickXorHash(Uint8Array.of(0x4a)), 'SgAAAAAAAAAAAAAAAQAAAAAAAAA=')
  })

  test('agrees with a register of bits at every length around its periods', () => {
    for (let length = 0; length <= 1_300; length++) {
      const bytes = BYTES.subarray(0, length)
      assert.equal(quickXorHash(bytes), slowly(bytes), `${length} bytes`)
    }
    assert.equal(quickXorHash(BYTES), slowly(BYTES))
  })

  test('is the same for any chunks, from any place in memory', () => {
    const expected = slowly(BYTES.subarray(1, 60_000))
    const cuts = fc.array(fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 20_000 })))
    fc.assert(
      fc.property(cuts, fc.integer({ min: 0, max: 7 }), (lengths, shift) => {
        const memory = new Uint8Array(60_016)
        memory.set(BYTES.subarray(1, 60_000), shift)
        let rest = memory.subarray(shift, shift + 59_999)
        const hash = new QuickXorHash()
        for (const length of lengths) {
          hash.update(rest.subarray(0, length))
          rest = rest.subarray(length)
        }
        assert.equal(hash.update(rest).digest().toString('base64'), expected)
      }),
    )
  })

  test('goes on from a copy and from a stored state, and a digest ends nothing', () => {
    const whole = quickXorHash(BYTES)
    const hash = new QuickXorHash().update(BYTES.subarray(0, 100_003))
    const before = hash.digest()
    const copy = hash.copy()
    const state = JSON.parse(JSON.stringify(hash.state()))
    assert.equal(hash.update(BYTES.subarray(100_003)).digest().toString('base64'), whole)
    assert.deepEqual(copy.digest(), before)
    assert.equal(copy.update(BYTES.subarray(100_003)).digest().toString('base64'), whole)
    const stored = QuickXorHash.from(state)
    assert.equal(stored.update(BYTES.subarray(100_003)).digest().toString('base64'), whole)
  })

  test('a length beyond 32 bits is hashed whole', () => {
    const length = 5 * 2 ** 32 + 7
    const digest = QuickXorHash.from({ sums: Buffer.alloc(160).toString('base64'), length }).digest()
    assert.equal(digest.readBigUInt64LE(12), BigInt(length))
  })

  test('a damaged state is refused', () => {
    const { sums } = new QuickXorHash().state()
    assert.throws(() => QuickXorHash.from({ sums: 'AAAA', length: 0 }), RangeError)
    assert.throws(() => QuickXorHash.from({ sums, length: -1 }), RangeError)
  })
})

describe('both ways to fold', () => {
  const naive: Fold = (sums, place, bytes) => {
    bytes.forEach((byte, i) => {
      sums[(place + i) % PERIOD_BYTES]! ^= byte
    })
  }

  test('are there', () => assert.ok(foldSimd))

  test('do the same from any place, for any length and place in memory', () => {
    const lengths = fc.oneof(
      fc.integer({ min: 0, max: 700 }),
      fc.integer({ min: 60_000, max: 70_000 }),
      fc.integer({ min: 130_000, max: 200_000 }),
    )
    const places = fc.integer({ min: 0, max: PERIOD_BYTES - 1 })
    fc.assert(
      fc.property(lengths, places, fc.integer({ min: 0, max: 7 }), (length, place, shift) => {
        const bytes = BYTES.subarray(shift, shift + length)
        const [expected, ...found] = [naive, foldWords, foldSimd!].map((fold) => {
          const sums = BYTES.slice(1_000, 1_000 + PERIOD_BYTES)
          fold(sums, place, bytes)
          return sums
        })
        for (const sums of found) assert.deepEqual(sums, expected)
      }),
    )
  })
})
