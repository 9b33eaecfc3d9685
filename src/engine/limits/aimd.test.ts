import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { COOL_DOWN_MS, fitAimd, nextTickMs, RETRY_AFTER_MS_MAX, startAimd, stepAimd } from './aimd.ts'
import type { AimdEvent, AimdSpec, AimdState } from './aimd-state.ts'

const T0 = 1_800_000_000_000
const spec: AimdSpec = {
  rateStart: 100,
  rateMin: 1,
  rateMax: 10_000,
  workersStart: 16,
  workersMin: 1,
  workersMax: 64,
}

function throttledAt(startedMs: number, retryAfterMs?: number): AimdEvent {
  return { type: 'throttled', calls: 1, units: 5, startedMs, retryAfterMs }
}

/** Lets seconds pass in which the share `use` of the rate is used and everything is accepted. */
function pass(from: AimdState, fromMs: number, seconds: number, use = 1, by = spec): AimdState {
  let state = from
  for (let nowMs = fromMs + 125; nowMs <= fromMs + seconds * 1000; nowMs += 125) {
    const units = state.rate * use * 0.125
    state = stepAimd(state, { type: 'used', calls: 5, units }, by, nowMs)
    if (units > 0) state = stepAimd(state, { type: 'accepted', calls: 5, startedMs: nowMs - 50 }, by, nowMs)
    state = stepAimd(state, { type: 'tick', workersLimited: false }, by, nowMs)
  }
  return state
}

describe('AIMD', () => {
  test('the rate rises while the budget is used and nothing is refused', () => {
    assert.ok(pass(startAimd(spec, T0), T0, 30).rate > 500)
  })

  test('a budget that is used from its first second on takes its first step within three', () => {
    assert.ok(pass(startAimd(spec, T0), T0, 3, 0.9).rate > 100)
  })

  test('the rate does not rise while idle or while little of it is used', () => {
    const start = startAimd(spec, T0)
    assert.equal(pass(start, T0, 600, 0).rate, 100)
    assert.equal(pass(start, T0, 600, 0.5).rate, 100)
  })

  test('a throttle halves rate and workers and is remembered as the ceiling', () => {
    const cut = stepAimd(startAimd(spec, T0), throttledAt(T0 + 10), spec, T0 + 20)
    assert.deepEqual([cut.rate, cut.workers, cut.ceiling, cut.phase], [50, 8, 100, 'recover'])
  })

  test('a burst of throttles of the same moment counts once', () => {
    let state = startAimd(spec, T0)
    for (let i = 0; i < 100; i++) state = stepAimd(state, throttledAt(T0 + i), spec, T0 + 100 + i)
    assert.deepEqual([state.rate, state.cuts, state.throttledCalls], [50, 1, 100])
    state = stepAimd(state, throttledAt(T0 + 100 + COOL_DOWN_MS), spec, T0 + 400)
    assert.deepEqual([state.rate, state.cuts], [25, 2])
  })

  test('it returns quickly to just below the ceiling, and probes beyond it only later', () => {
    const cut = stepAimd(startAimd({ ...spec, rateStart: 1_000 }, T0), throttledAt(T0 + 10), spec, T0 + 20)
    const back = pass(cut, T0 + 20, 3)
    assert.deepEqual([back.phase, back.rate], ['hold', 990])
    const held = pass(back, T0 + 3_020, 10)
    assert.equal(held.rate, 990)
    const grown = pass(held, T0 + 13_020, 60)
    assert.ok(grown.rate > 2_000, `${grown.rate}`)
    assert.equal(grown.ceiling, null)
  })

  test('it does not recover before the service has accepted something again', () => {
    const cut = stepAimd(startAimd(spec, T0), throttledAt(T0 + 10), spec, T0 + 20)
    let state = cut
    for (let s = 1; s < 60; s++) {
      state = stepAimd(state, { type: 'tick', workersLimited: true }, spec, T0 + 20 + s * 1000)
    }
    assert.deepEqual([state.rate, state.workers], [50, 8])
  })

  test('Retry-After pauses for as long as asked, is never shortened, and has a limit', () => {
    let state = stepAimd(startAimd(spec, T0), throttledAt(T0, 30_000), spec, T0)
    assert.equal(state.pausedUntilMs, T0 + 30_000)
    state = stepAimd(state, throttledAt(T0, 5_000), spec, T0 + 1_000)
    assert.equal(state.pausedUntilMs, T0 + 30_000)
    state = stepAimd(state, throttledAt(T0, 1e15), spec, T0)
    assert.equal(state.pausedUntilMs, T0 + RETRY_AFTER_MS_MAX)
  })

  test('p95 latency beyond its bound halves once per queue that has to drain', () => {
    const slow: AimdSpec = { ...spec, latencyP95MaxMs: 500 }
    let state = startAimd(slow, T0)
    state = stepAimd(state, { type: 'latency', p95Ms: 499, startedMs: T0 }, slow, T0 + 1_000)
    assert.equal(state.rate, 100)
    state = stepAimd(state, { type: 'latency', p95Ms: 800, startedMs: T0 }, slow, T0 + 2_000)
    assert.equal(state.rate, 50)
    state = stepAimd(state, { type: 'latency', p95Ms: 800, startedMs: T0 + 2_500 }, slow, T0 + 3_500)
    assert.equal(state.rate, 50)
    state = stepAimd(state, { type: 'latency', p95Ms: 800, startedMs: state.coolUntilMs }, slow, T0 + 9_000)
    assert.equal(state.rate, 25)
  })

  test('latency does not count without a bound', () => {
    const state = stepAimd(startAimd(spec, T0), { type: 'latency', p95Ms: 1e9, startedMs: T0 }, spec, T0 + 1)
    assert.equal(state.rate, 100)
  })

  test('workers rise by one a second only while work waits for workers and not for units', () => {
    let state = startAimd(spec, T0)
    state = stepAimd(state, { type: 'accepted', calls: 1, startedMs: T0 }, spec, T0)
    for (let s = 1; s <= 10; s++) {
      state = stepAimd(state, { type: 'tick', workersLimited: s > 5 }, spec, T0 + s * 1000)
    }
    assert.equal(state.workers, 21)
    let bound = pass(state, T0 + 10_000, 20)
    bound = stepAimd(bound, { type: 'used', calls: 5, units: bound.rate }, spec, T0 + 31_000)
    assert.equal(stepAimd(bound, { type: 'tick', workersLimited: true }, spec, T0 + 31_000).workers, 21)
  })

  test('a clock that is set back does not hold the controller up', () => {
    const state = pass(startAimd(spec, T0), T0, 10)
    const earlierMs = T0 - 3_600_000
    assert.ok(pass(state, earlierMs, 30).rate > state.rate)
  })

  test('a changed spec brings rate and workers within its bounds', () => {
    const state = fitAimd(startAimd(spec, T0), { ...spec, rateMax: 40, workersMax: 3 })
    assert.deepEqual([state.rate, state.workers], [40, 3])
  })

  test('whatever happens, bounds hold, pauses are kept, and the state survives JSON', () => {
    const event = fc.oneof(
      fc.record({ type: fc.constant('used' as const), calls: fc.nat(50), units: fc.nat(5_000) }),
      fc.record({ type: fc.constant('accepted' as const), calls: fc.nat(50), agoMs: fc.nat(5_000) }),
      fc.record({
        type: fc.constant('throttled' as const),
        calls: fc.nat(50),
        units: fc.nat(500),
        agoMs: fc.nat(5_000),
        retryAfterMs: fc.option(fc.nat(100_000), { nil: undefined }),
      }),
      fc.record({ type: fc.constant('latency' as const), p95Ms: fc.nat(2_000), agoMs: fc.nat(5_000) }),
      fc.record({ type: fc.constant('tick' as const), workersLimited: fc.boolean() }),
    )
    const by: AimdSpec = {
      ...spec,
      rateMin: 10,
      rateMax: 1_000,
      workersMin: 2,
      workersMax: 20,
      latencyP95MaxMs: 900,
    }
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.nat(3_000)), { maxLength: 300 }), (events) => {
        let state = startAimd(by, T0)
        let nowMs = T0
        for (const [raw, afterMs] of events) {
          nowMs += afterMs
          const event = ('agoMs' in raw ? { ...raw, startedMs: nowMs - raw.agoMs } : raw) as AimdEvent
          const before = structuredClone(state)
          const next = stepAimd(state, event, by, nowMs)
          assert.deepEqual(state, before)
          assert.deepEqual(JSON.parse(JSON.stringify(next)), next)
          assert.ok(next.rate >= by.rateMin && next.rate <= by.rateMax, `rate ${next.rate}`)
          assert.ok(next.workers >= by.workersMin && next.workers <= by.workersMax)
          assert.ok(Number.isInteger(next.workers))
          assert.ok(next.pausedUntilMs >= state.pausedUntilMs)
          assert.ok(next.cuts === state.cuts || nowMs >= state.coolUntilMs)
          assert.ok(nextTickMs(next) >= next.tickMs)
          state = next
        }
      }),
    )
  })
})
