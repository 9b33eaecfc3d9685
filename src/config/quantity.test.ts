import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { formatBytes, formatRate, parseBytes, parseRate } from './quantity.ts'

describe('sizes', () => {
  test('are read in powers of 1000 and of 1024', () => {
    assert.equal(parseBytes('10MB'), 10_000_000)
    assert.equal(parseBytes('10MiB'), 10_485_760)
    assert.equal(parseBytes('1.5 GB'), 1_500_000_000)
    assert.equal(parseBytes('512kib'), 524_288)
    assert.equal(parseBytes('17'), 17)
    assert.equal(parseBytes(4096), 4096)
  })

  test('are refused when they are none', () => {
    for (const text of ['', 'MB', '-1MB', '10 XB', '10MB/s', '1e3', 'ten', '99999999TB']) {
      assert.equal(parseBytes(text), undefined, text)
    }
  })

  test('that are printed are read back as the same size', () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 48 }), (bytes) => {
        assert.equal(parseBytes(formatBytes(bytes)), bytes)
      }),
    )
  })
})

describe('rates', () => {
  test('are read in bytes and in bits a second', () => {
    assert.equal(parseRate('10MB/s'), 10_000_000)
    assert.equal(parseRate('100Mbit/s'), 12_500_000)
    assert.equal(parseRate('1 MB / s'), 1_000_000)
    assert.equal(parseRate('8kbps'), undefined)
    assert.equal(parseRate(5000), 5000)
  })

  test('may be unlimited, and are never nought', () => {
    assert.equal(parseRate('unlimited'), null)
    assert.equal(parseRate('Unlimited'), null)
    assert.equal(parseRate('0MB/s'), undefined)
  })

  test('are printed as they are written', () => {
    assert.equal(formatRate(10_000_000), '10MB/s')
    assert.equal(formatRate(null), 'unlimited')
  })
})
