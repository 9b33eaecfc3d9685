import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  type Eta,
  type EtaQuestion,
  estimate,
  formatEta,
  type MeasuredRate,
  RateMeter,
  SLICES_MIN,
} from './eta.ts'

const steady = (perSecond: number): MeasuredRate => ({ perSecond, deviation: 0, slices: 100 })

const rates = fc.record({
  perSecond: fc.double({ min: 0, max: 1e12, noNaN: true }),
  deviation: fc.double({ min: 0, max: 1e12, noNaN: true }),
  slices: fc.nat({ max: 1_000 }),
})
const questions: fc.Arbitrary<EtaQuestion> = fc.record({
  remaining: fc.oneof(
    fc.double({ min: -10, max: 1e15, noNaN: true }),
    fc.constant(Number.NaN),
    fc.constant(Number.POSITIVE_INFINITY),
  ),
  rate: rates,
  perSecondMax: fc.option(fc.double({ min: 0, max: 1e12, noNaN: true })),
  pausedMs: fc.double({ min: -10, max: 1e9, noNaN: true }),
  listing: fc.boolean(),
})

const highOf = (eta: Eta): number =>
  eta.type === 'done' ? 0 : eta.type === 'range' ? eta.highMs : Number.POSITIVE_INFINITY
const lowOf = (eta: Eta): number =>
  eta.type === 'done' ? 0 : eta.type === 'range' ? eta.lowMs : Number.POSITIVE_INFINITY

describe('an estimate', () => {
  test('is never negative, never NaN, and its range is in order', () => {
    fc.assert(
      fc.property(questions, (question) => {
        const eta = estimate(question)
        if (eta.type !== 'range') return
        assert.ok(Number.isFinite(eta.lowMs) && eta.lowMs >= 0)
        assert.ok(Number.isFinite(eta.highMs) && eta.highMs >= eta.lowMs)
        assert.doesNotMatch(formatEta(eta), /NaN|-|\?|Infinity/)
      }),
    )
  })

  test('never gets earlier with more work', () => {
    fc.assert(
      fc.property(questions, fc.double({ min: 0, max: 1e12, noNaN: true }), (question, more) => {
        if (!Number.isFinite(question.remaining)) return
        const less = estimate({ ...question, listing: false })
        const later = estimate({ ...question, listing: false, remaining: question.remaining + more })
        assert.ok(lowOf(later) >= lowOf(less))
        assert.ok(highOf(later) >= highOf(less))
      }),
    )
  })

  test('never promises more than the budget allows', () => {
    fc.assert(
      fc.property(questions, (question) => {
        const eta = estimate(question)
        if (eta.type !== 'range' || question.perSecondMax == null) return
        const atBestMs =
          (question.remaining / question.perSecondMax) * 1_000 + Math.max(0, question.pausedMs ?? 0)
        assert.ok(eta.lowMs >= atBestMs * (1 - 1e-9))
      }),
    )
  })

  test('is what is left by the rate, give or take', () => {
    const eta = estimate({ remaining: 6_000, rate: steady(10) })
    assert.equal(formatEta(eta), 'about 10 min')
  })

  test('is a range when the rate swings', () => {
    const eta = estimate({ remaining: 6_000, rate: { perSecond: 10, deviation: 5, slices: 100 } })
    assert.equal(formatEta(eta), '6 min 40 s to 20 min')
  })

  test('waits for a budget that is paused', () => {
    const eta = estimate({ remaining: 100, rate: steady(10), pausedMs: 600_000 })
    assert.ok(eta.type === 'range' && eta.lowMs >= 600_000)
  })

  test('is unknown until the rate was measured for a while', () => {
    assert.deepEqual(estimate({ remaining: 1, rate: { ...steady(10), slices: SLICES_MIN - 1 } }), {
      type: 'unknown',
      why: 'measuring',
    })
    assert.equal(estimate({ remaining: 1, rate: { ...steady(10), slices: SLICES_MIN } }).type, 'range')
  })

  test('is unknown while nothing moves or nothing is allowed', () => {
    assert.deepEqual(estimate({ remaining: 1, rate: steady(0) }), { type: 'unknown', why: 'standing still' })
    assert.deepEqual(estimate({ remaining: 1, rate: steady(10), perSecondMax: 0 }), {
      type: 'unknown',
      why: 'standing still',
    })
  })

  test('is "at least" while work is still being listed', () => {
    assert.equal(
      formatEta(estimate({ remaining: 36_000, rate: steady(10), listing: true })),
      'at least 57 min',
    )
    assert.equal(formatEta(estimate({ remaining: 0, rate: steady(10), listing: true })), 'unknown (listing)')
  })

  test('of nothing is done', () => {
    assert.equal(formatEta(estimate({ remaining: 0, rate: steady(0) })), 'done')
  })
})

describe('a rate', () => {
  const run = (
    meter: RateMeter,
    fromMs: number,
    seconds: number,
    perSecond: (second: number) => number,
  ): number => {
    for (let second = 0; second < seconds; second++) {
      for (let tenth = 0; tenth < 10; tenth++)
        meter.add(perSecond(second) / 10, fromMs + second * 1_000 + tenth * 100)
    }
    return fromMs + seconds * 1_000
  }

  test('that is steady is found within a few slices, without deviation', () => {
    const meter = new RateMeter(0)
    const nowMs = run(meter, 0, 20, () => 50)
    const { perSecond, deviation, slices } = meter.measured(nowMs)
    assert.ok(Math.abs(perSecond - 50) < 0.01, String(perSecond))
    assert.ok(deviation < 0.01)
    assert.equal(slices, 10)
  })

  test('that changes is followed within about a minute', () => {
    const meter = new RateMeter(0)
    const nowMs = run(meter, 0, 180, (second) => (second < 120 ? 50 : 10))
    const { perSecond } = meter.measured(nowMs)
    assert.ok(perSecond > 10 && perSecond < 13, String(perSecond))
  })

  test('that swings shows how far', () => {
    const meter = new RateMeter(0)
    const nowMs = run(meter, 0, 300, (second) => (second % 4 < 2 ? 90 : 10))
    const { perSecond, deviation } = meter.measured(nowMs)
    assert.ok(Math.abs(perSecond - 50) < 5)
    assert.ok(Math.abs(deviation - 40) < 8)
  })

  test('falls to nothing in a long silence, in one step', () => {
    const meter = new RateMeter(0)
    const nowMs = run(meter, 0, 60, () => 50)
    const { perSecond } = meter.measured(nowMs + 86_400_000)
    assert.ok(perSecond < 1e-6)
  })

  test('does not begin before the first work does', () => {
    const meter = new RateMeter(0)
    assert.equal(meter.measured(600_000).slices, 0)
    const nowMs = run(meter, 600_000, 20, () => 50)
    assert.ok(Math.abs(meter.measured(nowMs).perSecond - 50) < 0.01)
  })

  test('stays a number whatever is reported and however time goes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.double(), fc.integer({ min: -10_000, max: 1e7 }))), (steps) => {
        const meter = new RateMeter(0)
        let nowMs = 0
        for (const [amount, ms] of steps) {
          nowMs += ms
          meter.add(Math.min(amount, 1e15), nowMs)
        }
        const { perSecond, deviation } = meter.measured(nowMs)
        assert.ok(Number.isFinite(perSecond) && perSecond >= 0)
        assert.ok(Number.isFinite(deviation) && deviation >= 0)
      }),
    )
  })
})
