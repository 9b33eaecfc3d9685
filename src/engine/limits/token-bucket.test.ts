import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type BucketState, fullBucket, refill, take } from './token-bucket.ts'

const flows = fc.record({
  rate: fc.double({ min: 0.01, max: 10_000, noNaN: true }),
  burst: fc.double({ min: 0.1, max: 10_000, noNaN: true }),
})
/** Steps in time, some of them backwards, with a cost as a share of the burst. */
const steps = fc.array(
  fc.record({
    afterMs: fc.integer({ min: -2_000, max: 5_000 }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  { maxLength: 200 },
)

describe('token bucket', () => {
  test('never grants more than burst + rate * time, whatever the order of calls and clocks', () => {
    fc.assert(
      fc.property(flows, steps, (flow, calls) => {
        let state = fullBucket(flow, 0)
        let nowMs = 0
        let latestMs = 0
        let granted = 0
        for (const call of calls) {
          nowMs = Math.max(0, nowMs + call.afterMs)
          latestMs = Math.max(latestMs, nowMs)
          const taking = take(state, flow, call.share * flow.burst, nowMs)
          state = taking.state
          if (taking.taken) granted += call.share * flow.burst
          const bound = flow.burst + (flow.rate * latestMs) / 1000
          assert.ok(granted <= bound * (1 + 1e-6), `${granted} of ${bound}`)
        }
      }),
    )
  })

  test('a wait is never negative, and waiting that long is enough', () => {
    fc.assert(
      fc.property(flows, fc.double({ min: 0, max: 20_000, noNaN: true }), steps, (flow, cost, calls) => {
        let state = fullBucket(flow, 0)
        let nowMs = 0
        for (const call of calls) {
          nowMs = Math.max(0, nowMs + call.afterMs)
          state = take(state, flow, call.share * flow.burst, nowMs).state
        }
        const first = take(state, flow, cost, nowMs)
        assert.ok(first.waitMs >= 0 && first.taken === (first.waitMs === 0))
        if (first.taken) return
        const laterMs = Math.max(nowMs, first.state.updatedMs) + first.waitMs
        assert.equal(take(first.state, flow, cost, laterMs).taken, true)
      }),
    )
  })

  test('a cost larger than the burst waits for a full bucket, passes, and is paid back afterwards', () => {
    const flow = { rate: 10, burst: 5 }
    let state: BucketState = { tokens: 0, updatedMs: 0 }
    const tooSoon = take(state, flow, 100, 0)
    assert.deepEqual([tooSoon.taken, tooSoon.waitMs], [false, 500])
    const passed = take(tooSoon.state, flow, 100, 500)
    assert.equal(passed.taken, true)
    state = passed.state
    assert.equal(state.tokens, -95)
    assert.equal(take(state, flow, 1, 500).waitMs, 9_600)
    assert.equal(take(state, flow, 1, 10_100).taken, true)
  })

  test('large costs keep the long-term rate', () => {
    fc.assert(
      fc.property(flows, fc.double({ min: 1, max: 50, noNaN: true }), (flow, times) => {
        const cost = flow.burst * times
        let state = fullBucket(flow, 0)
        let nowMs = 0
        for (let i = 0; i < 20; i++) {
          const waited = take(state, flow, cost, nowMs)
          nowMs += waited.waitMs
          state = take(waited.state, flow, cost, nowMs).state
        }
        const bound = flow.burst + (flow.rate * nowMs) / 1000 + cost
        assert.ok(20 * cost <= bound * (1 + 1e-6))
      }),
    )
  })

  test('time that runs backwards adds nothing and takes nothing away', () => {
    const flow = { rate: 10, burst: 5 }
    assert.deepEqual(refill({ tokens: 2, updatedMs: 1_000 }, flow, 0), { tokens: 2, updatedMs: 1_000 })
  })

  test('nothing flows at a rate of zero, and the wait says so', () => {
    assert.equal(
      take({ tokens: 0, updatedMs: 0 }, { rate: 0, burst: 5 }, 1, 1e9).waitMs,
      Number.POSITIVE_INFINITY,
    )
  })
})
