import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { ShardPeriod } from './contract.ts'
import { firstPosOf, partName, periodOf, shardOf, yearOf } from './shard-router.ts'

const PERIODS: ShardPeriod[] = ['month', 'quarter', 'year']
const anyMs = fc.oneof(
  fc.integer({ min: -(10 ** 15), max: 10 ** 15 }),
  fc.constantFrom(
    0,
    -1,
    Number.MAX_SAFE_INTEGER,
    -Number.MAX_SAFE_INTEGER,
    Date.UTC(9999, 11, 31, 23, 59, 59, 999),
  ),
)

describe('the shard of a message', () => {
  test('is named after its year, quarter or month in UTC', () => {
    const ms = Date.UTC(2020, 6, 31, 23, 59, 59, 999)
    assert.equal(periodOf(ms, 'year').name, '2020')
    assert.equal(periodOf(ms, 'quarter').name, '2020-q3')
    assert.equal(periodOf(ms, 'month').name, '2020-m07')
    assert.equal(periodOf(ms + 1, 'month').name, '2020-m08')
  })

  test('is "earlier" before 1970, and the last year for what claims to be later', () => {
    assert.equal(periodOf(-1, 'month').name, 'earlier')
    assert.equal(periodOf(Number.MAX_SAFE_INTEGER, 'year').name, '9999')
    assert.equal(periodOf(Number.NaN, 'year').name, '1970')
  })

  test('covers its time, and its name says so', () => {
    fc.assert(
      fc.property(
        anyMs,
        fc.constantFrom(...PERIODS),
        fc.integer({ min: 1, max: 40 }),
        (ms, shardBy, part) => {
          const period = periodOf(ms, shardBy)
          const clamped = Math.max(-8.64e15, Math.min(8.64e15, ms))
          assert.ok(period.fromMs <= clamped && clamped < period.toMs, period.name)
          assert.deepEqual(shardOf(partName(period.name, part)), { ...period, part })
          assert.equal(yearOf(period.fromMs), yearOf(ms))
        },
      ),
    )
  })

  test('is not read into other names', () => {
    for (const name of [
      '2020-1',
      '2020-q5',
      '2020-m13',
      '2020-m1',
      'later',
      '2020-',
      '../2020',
      '2020-q1-0',
      'lock',
    ]) {
      assert.equal(shardOf(name), undefined, name)
    }
  })
})

test('positions keep the order of seconds and are exact numbers', () => {
  fc.assert(
    fc.property(anyMs, anyMs, (a, b) => {
      assert.ok(Number.isSafeInteger(firstPosOf(a)))
      if (a <= b) assert.ok(firstPosOf(a) <= firstPosOf(b))
    }),
  )
})
