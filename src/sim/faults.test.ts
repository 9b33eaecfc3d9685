import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { FakeClock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import { seededRandom } from '../base/random.ts'
import { faultProfiles } from './fault-profiles.ts'
import type { FaultRule } from './fault-rules.ts'
import { drawLatency, type FaultCall, Faults } from './faults.ts'

const LIST: FaultCall = { method: 'messages.list', account: 'a@example.com', place: 'request' }

function faultsWith(...rules: FaultRule[]): Faults {
  const faults = new Faults({ seed: 7, clock: new FakeClock() })
  faults.set({ rules })
  return faults
}

/** Which of the first calls were struck, as `.` and `x`. */
function strikes(faults: Faults, calls: number, call: FaultCall = LIST): string {
  return Array.from({ length: calls }, () => (faults.plan(call) ? 'x' : '.')).join('')
}

describe('a fault rule', () => {
  test('without conditions strikes at every call', () => {
    assert.equal(strikes(faultsWith({ do: 'error' }), 3), 'xxx')
  })

  test('strikes every nth call, in bursts, after those it skips, and no more than its maximum', () => {
    assert.equal(strikes(faultsWith({ do: 'error', everyNth: 3 }), 9), '..x..x..x')
    assert.equal(strikes(faultsWith({ do: 'error', everyNth: 4, burst: 2 }), 10), '...xx..xx.')
    assert.equal(strikes(faultsWith({ do: 'error', skip: 2 }), 5), '..xxx')
    assert.equal(strikes(faultsWith({ do: 'error', max: 2 }), 5), 'xx...')
  })

  test('strikes with its probability', () => {
    const struck = strikes(faultsWith({ do: 'error', probability: 0.2 }), 5_000).replaceAll('.', '').length
    assert.ok(struck > 850 && struck < 1_150, String(struck))
  })

  test('strikes only within its window', async () => {
    const clock = new FakeClock()
    const faults = new Faults({ clock })
    faults.set({ rules: [{ do: 'throttle', window: { everyMs: 100, forMs: 30 } }] })
    let seen = ''
    for (let at = 0; at < 20; at++) {
      seen += faults.plan(LIST) ? 'x' : '.'
      await clock.advance(10)
    }
    assert.equal(seen, 'xxx.......xxx.......')
  })

  test('concerns the methods, the account and the place that it names', () => {
    const named = faultsWith({ do: 'error', methods: ['messages.*', 'batch'] })
    assert.ok(named.plan(LIST))
    assert.ok(named.plan({ ...LIST, method: 'batch' }))
    assert.equal(named.plan({ ...LIST, method: 'labels.list' }), undefined)
    assert.equal(faultsWith({ do: 'error', account: 'b@example.com' }).plan(LIST), undefined)
    const parts = faultsWith({ do: 'error', on: 'part' })
    assert.equal(parts.plan(LIST), undefined)
    assert.ok(parts.plan({ ...LIST, place: 'part' }))
    assert.ok(parts.hasPartRules)
    assert.equal(faultsWith({ do: 'error', nextPage: true }).plan(LIST), undefined)
  })

  test('leaves sign-in alone unless it names it', () => {
    const token: FaultCall = { method: 'oauth.token', place: 'request' }
    assert.equal(faultsWith({ do: 'error' }).plan(token), undefined)
    assert.ok(faultsWith({ do: 'error', methods: ['oauth.*'] }).plan(token))
  })
})

describe('faults', () => {
  test('of several refusals the first holds, and delays add up', () => {
    const latency = { kind: 'fixed', ms: 5 } as const
    const faults = faultsWith(
      { do: 'latency', latency },
      { do: 'throttle', status: 403 },
      { do: 'error', status: 500 },
      { do: 'latency', latency },
    )
    const plan = faults.plan(LIST)
    assert.equal(plan?.delayMs, 10)
    assert.deepEqual(plan?.refuse, {
      status: 403,
      reason: 'userRateLimitExceeded',
      message: undefined,
      retryAfterSeconds: undefined,
    })
    assert.deepEqual(
      faults.counts().map(({ struck }) => struck),
      [1, 1, 0, 1],
    )
  })

  test('the same seed gives the same faults, and a rule does not disturb its neighbours', () => {
    const probability = fc.double({ min: 0.05, max: 0.95, noNaN: true })
    fc.assert(
      fc.property(fc.integer(), probability, probability, (seed, one, other) => {
        const run = (rules: FaultRule[]): string => {
          const faults = new Faults({ seed, clock: new FakeClock() })
          faults.set({ rules })
          return Array.from({ length: 50 }, () => faults.plan(LIST)?.refuse?.status ?? 0).join()
        }
        const first: FaultRule = { do: 'error', status: 500, probability: one }
        const alone = run([first])
        assert.equal(run([first]), alone)
        const both = run([first, { do: 'latency', latency: { kind: 'fixed', ms: 1 }, probability: other }])
        assert.equal(both, alone)
      }),
      { numRuns: 50 },
    )
  })

  test('that make no sense are refused with the place that is wrong', () => {
    const faults = new Faults()
    assert.throws(() => faults.set({ rules: [{ do: 'explode' }] }), /rules\.0\.do/)
    assert.throws(() => faults.set({ rules: [{ do: 'error', probability: 2 }] }), /rules\.0\.probability/)
    assert.throws(() => faults.set({ profile: 'sunny' }), UsageError)
    assert.deepEqual(faults.counts(), [])
  })

  test('every profile can be set and taken back', () => {
    const faults = new Faults({ profiles: faultProfiles })
    for (const profile of Object.keys(faultProfiles)) {
      faults.set({ profile })
      assert.equal(faults.profile, profile)
      assert.equal(faults.counts().length, faultProfiles[profile]!.length)
    }
    faults.poison({ id: 'm1', mode: 'part' })
    faults.clear()
    assert.equal(faults.poisonOf('m1'), undefined)
    assert.equal(strikes(faults, 10), '..........')
  })
})

describe('latency', () => {
  const sample = (latency: Parameters<typeof drawLatency>[0]): number[] => {
    const random = seededRandom(3)
    return Array.from({ length: 4_000 }, () => drawLatency(latency, random)).sort((a, b) => a - b)
  }

  test('is drawn from the distribution that was asked for', () => {
    const uniform = sample({ kind: 'uniform', minMs: 10, maxMs: 20 })
    assert.ok(uniform[0]! >= 10 && uniform.at(-1)! <= 20)
    const lognormal = sample({ kind: 'lognormal', medianMs: 100, sigma: 0.5, maxMs: 400 })
    assert.ok(Math.abs(lognormal[2_000]! - 100) < 5, String(lognormal[2_000]))
    assert.ok(lognormal.at(-1)! <= 400)
    const exponential = sample({ kind: 'exponential', meanMs: 50 })
    const mean = exponential.reduce((sum, ms) => sum + ms, 0) / exponential.length
    assert.ok(Math.abs(mean - 50) < 4, String(mean))
  })
})
