import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seededRandom } from '../../base/random.ts'
import { LatencyWindow } from './latency.ts'

describe('latency window', () => {
  test('quantiles are within 5 % of the exact ones', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1, max: 2_000 }), (seed, count) => {
        const random = seededRandom(seed)
        const latency = new LatencyWindow()
        const values = Array.from({ length: count }, () => 1 + 5_000 * random() ** 4)
        for (const value of values) latency.record(value, 0)
        values.sort((a, b) => a - b)
        for (const q of [0.5, 0.95, 0.99]) {
          const exact = values[Math.max(1, Math.ceil(q * count)) - 1]!
          const read = latency.quantile(q, 0)!
          assert.ok(Math.abs(read - exact) <= exact * 0.05, `${q}: ${read} for ${exact}`)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('what is older than the window no longer counts', () => {
    const latency = new LatencyWindow({ windowMs: 60_000, slices: 6 })
    for (let i = 0; i < 100; i++) latency.record(1_000, 0)
    latency.record(10, 30_000)
    assert.equal(latency.count(59_000), 101)
    assert.equal(latency.count(60_000), 1)
    assert.ok(latency.quantile(0.99, 60_000)! < 11)
    assert.equal(latency.summary(200_000), undefined)
  })

  test('a clock that jumps far ahead or back does no harm', () => {
    const latency = new LatencyWindow()
    latency.record(5, 1e12)
    latency.record(5, 2e12)
    latency.record(5, 1e12)
    assert.equal(latency.count(2e12), 2)
  })

  test('values out of range are counted at the ends', () => {
    const latency = new LatencyWindow()
    for (const value of [0, -1, Number.NaN, 1e12]) latency.record(value, 0)
    assert.equal(latency.count(0), 4)
    assert.ok(latency.quantile(1, 0)! > 1_000_000)
  })

  test('without a value there is no quantile', () => {
    assert.equal(new LatencyWindow().quantile(0.5, 0), undefined)
  })
})
