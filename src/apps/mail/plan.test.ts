import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  BATCH_MAX,
  BATCH_MIN,
  BatchSize,
  chunksOf,
  cutOf,
  FailureRate,
  granularityFor,
  isWanted,
  listParts,
  sliceQuery,
  slicesOf,
  standingAlone,
} from './plan.ts'

const ALL = { spam: true, trash: true, onlyLabels: [], skipLabels: [] }
const DAY_S = 86_400
const secondOf = (ms: number): number => Math.floor(ms / 1000)

describe('slices', () => {
  test('small mailboxes are cut by the month, larger ones by the week, and the largest by the day', () => {
    assert.equal(granularityFor(500, 'auto'), 'month')
    assert.equal(granularityFor(50_000, 'auto'), 'week')
    assert.equal(granularityFor(900_000, 'auto'), 'day')
    assert.equal(granularityFor(900_000, 'month'), 'month')
  })

  test('slices lie end to end from the origin to the end, whatever the dates', () => {
    fc.assert(
      fc.property(
        fc.nat(3_000_000_000),
        fc.nat(3_000_000_000),
        fc.nat(3_000_000_000),
        fc.constantFrom('day' as const, 'week' as const, 'month' as const),
        (originS, oldest, length, granularity) => {
          const endS = originS + 1 + length
          const slices = slicesOf({ originS, oldestS: Math.min(oldest, endS - 1), endS, granularity })
          assert.equal(slices[0]!.fromS, originS)
          assert.equal(slices.at(-1)!.toS, endS)
          for (const [index, { fromS, toS }] of slices.entries()) {
            assert.ok(fromS < toS)
            if (index > 0) assert.equal(fromS, slices[index - 1]!.toS)
          }
        },
      ),
    )
  })

  test('what lies before the oldest message is one slice with it, and the others are days', () => {
    const oldestS = 1_000 * DAY_S + 5
    const slices = slicesOf({ originS: 0, oldestS, endS: 1_003 * DAY_S + 7, granularity: 'day' })
    assert.deepEqual(
      slices.map(({ toS }) => toS),
      [1_001 * DAY_S, 1_002 * DAY_S, 1_003 * DAY_S, 1_003 * DAY_S + 7],
    )
  })

  test('a slice is cut strictly inside, and one of a second is not cut at all', () => {
    assert.equal(cutOf({ fromS: 10, toS: 20 }), 15)
    assert.equal(cutOf({ fromS: 10, toS: 12 }), 11)
    assert.equal(cutOf({ fromS: 10, toS: 11 }), null)
  })
})

describe('queries', () => {
  test('bounds overlap by the second after, and a side without bound is left open', () => {
    assert.equal(sliceQuery({ fromS: 100, toS: 200 }, ALL), 'after:100 before:201')
    assert.equal(sliceQuery(standingAlone({ fromS: 100, toS: 200 }), ALL), 'after:99 before:201')
    assert.equal(sliceQuery({ fromS: null, toS: 200 }, ALL), 'before:201')
    assert.equal(sliceQuery({ fromS: null, toS: null }, ALL), '')
  })

  test('whatever the bounds mean, a message is listed by its own slice or an older one, and never by a newer one alone', () => {
    // In seconds or milliseconds, with the bound itself or without it.
    const meanings = [
      {
        isAfter: (ms: number, s: number) => ms > s * 1000,
        isBefore: (ms: number, s: number) => ms < s * 1000,
      },
      {
        isAfter: (ms: number, s: number) => ms >= s * 1000,
        isBefore: (ms: number, s: number) => ms <= s * 1000,
      },
      {
        isAfter: (ms: number, s: number) => secondOf(ms) > s,
        isBefore: (ms: number, s: number) => secondOf(ms) < s,
      },
      {
        isAfter: (ms: number, s: number) => secondOf(ms) >= s,
        isBefore: (ms: number, s: number) => secondOf(ms) <= s,
      },
    ]
    const cuts = fc.uniqueArray(fc.nat(20), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(
        cuts,
        fc.nat(21_999),
        fc.constantFrom(...meanings),
        fc.constantFrom(...meanings),
        (at, ms, one, other) => {
          const sorted = [...at].sort((a, b) => a - b)
          const bounds = [...sorted, null].map((toS, index) => ({
            fromS: index === 0 ? null : sorted[index - 1]!,
            toS,
          }))
          const own = bounds.findIndex(({ toS }) => toS === null || ms < toS * 1000)
          const listing = bounds.flatMap((slice, index) => {
            const [, after] = /after:(\d+)/.exec(sliceQuery(slice, ALL)) ?? []
            const [, before] = /before:(\d+)/.exec(sliceQuery(slice, ALL)) ?? []
            const isListed =
              (after === undefined || one.isAfter(ms, Number(after))) &&
              (before === undefined || other.isBefore(ms, Number(before)))
            return isListed ? [index] : []
          })
          assert.ok(listing.length > 0, 'nobody lists it')
          assert.ok(
            listing.every((index) => index <= own),
            'a newer slice lists it',
          )
        },
      ),
    )
  })

  test('what is not wanted is left out by the query', () => {
    const choices = { spam: false, trash: true, onlyLabels: ['Work'], skipLabels: ['Big Files'] }
    assert.equal(sliceQuery({ fromS: null, toS: null }, choices), '-in:spam {label:Work} -label:"Big Files"')
  })

  test('a label that dominates is listed apart, and nothing falls between the two parts', () => {
    assert.deepEqual(listParts('Lists'), ['label:Lists', '-label:Lists'])
    assert.deepEqual(listParts(undefined), [undefined])
  })
})

describe('what is wanted', () => {
  const idOf = (name: string): string | undefined =>
    ({ work: 'Label_1', lists: 'Label_2' })[name.toLowerCase()]

  test('spam and trash count only when they were asked for', () => {
    assert.equal(isWanted(['SPAM'], { ...ALL, spam: false }, idOf), false)
    assert.equal(isWanted(['TRASH'], { ...ALL, trash: false }, idOf), false)
    assert.equal(isWanted(['SPAM', 'TRASH'], ALL, idOf), true)
  })

  test('labels are known by their names', () => {
    assert.equal(isWanted(['Label_1'], { ...ALL, onlyLabels: ['Work'] }, idOf), true)
    assert.equal(isWanted(['INBOX'], { ...ALL, onlyLabels: ['Work'] }, idOf), false)
    assert.equal(isWanted(['Label_2', 'INBOX'], { ...ALL, skipLabels: ['Lists'] }, idOf), false)
  })
})

describe('batches', () => {
  test('grow while all goes well, shrink by errors and slowness, and stay between 200 and 500', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.nat(600_000), errors: fc.nat(3) }), { maxLength: 200 }),
        (batches) => {
          const size = new BatchSize(300)
          for (const batch of batches) {
            const before = size.size
            size.went(batch)
            if (batch.errors > 0) assert.ok(size.size <= before)
            assert.ok(size.size >= BATCH_MIN && size.size <= BATCH_MAX)
          }
        },
      ),
    )
  })

  test('chunks hold every item once, in order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), fc.integer({ min: 1, max: 50 }), (items, size) => {
        const chunks = chunksOf(items, size)
        assert.deepEqual(chunks.flat(), items)
        assert.ok(chunks.every(({ length }) => length > 0 && length <= size))
      }),
    )
  })
})

describe('how often messages fail that come later', () => {
  const after = (failures: readonly number[]): number => {
    const rate = new FailureRate()
    for (const [id, times] of failures.entries()) {
      for (let n = 0; n < times; n++) rate.failed(`m${id}`)
      rate.came(`m${id}`)
    }
    return rate.tries
  }

  test('asks for no more tries while nothing fails', () => {
    assert.equal(after([]), 0)
    assert.equal(after([0, 0, 0]), 0)
  })

  test('asks for as many tries as make a mistake about a good message unlikely, within bounds', () => {
    assert.equal(after(Array(100).fill(1)), 20)
    assert.equal(after([1, ...Array(98).fill(0)]), 3)
    assert.equal(after(Array(100).fill(50)), 39)
  })

  test('learns nothing from messages that never come', () => {
    const rate = new FailureRate()
    for (let n = 0; n < 30_000; n++) rate.failed(`bad ${n}`)
    rate.came('good')
    assert.equal(rate.tries, 0)
  })

  test('forgets bad days', () => {
    assert.equal(after([...Array(1_000).fill(1), ...Array(50_000).fill(0)]), 1)
  })
})
