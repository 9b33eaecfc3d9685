import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { extensionMs, type Granted, type VisibilityStep, visibilityStep } from './visibility.ts'

const HOUR_MS = 3_600_000
const SQS = { extendMsMax: 12 * HOUR_MS, heldMsMax: 12 * HOUR_MS }
const RULES = { extensionMs: 60_000, marginMs: 4_000 }

function step(granted: Granted, nowMs: number, limits = SQS): VisibilityStep {
  return visibilityStep(granted, { limits, rules: RULES, nowMs })
}

describe('the visibility of a message', () => {
  const granted = { receivedAtMs: 0, grantedAtMs: 0, visibleAtMs: 120_000 }

  test('is extended when half of it is left, and not before', () => {
    assert.deepEqual(step(granted, 0), { act: 'wait', untilMs: 60_000 })
    assert.deepEqual(step(granted, 59_999), { act: 'wait', untilMs: 60_000 })
    assert.deepEqual(step({ ...granted, visibleAtMs: 60_000 }, 30_000), { act: 'extend', byMs: 60_000 })
  })

  test('is never extended beyond 12 hours from the receipt, and is let go there', () => {
    const late = { receivedAtMs: 0, grantedAtMs: 12 * HOUR_MS - 70_000, visibleAtMs: 12 * HOUR_MS - 10_000 }
    const asked = step(late, 12 * HOUR_MS - 35_000)
    assert.deepEqual(asked, { act: 'extend', byMs: 31_000 })
    const last = { receivedAtMs: 0, grantedAtMs: 12 * HOUR_MS - 35_000, visibleAtMs: 12 * HOUR_MS - 4_000 }
    assert.equal(step(last, 12 * HOUR_MS - 15_000).act, 'wait')
    assert.equal(step(last, 12 * HOUR_MS - 8_000).act, 'release')
  })

  test('of a service that grants less than is asked for is what it grants', () => {
    const limits = { extendMsMax: 10_000, heldMsMax: null }
    const short = { receivedAtMs: 0, grantedAtMs: 0, visibleAtMs: 10_000 }
    assert.deepEqual(visibilityStep(short, { limits, rules: RULES, nowMs: 6_000 }), {
      act: 'extend',
      byMs: 10_000,
    })
  })

  test('that has passed is given up, whatever the clock did', () => {
    assert.deepEqual(step(granted, 120_000), { act: 'release' })
    assert.deepEqual(step(granted, 500_000), { act: 'release' })
  })

  test('is never extended by less than nothing, nor beyond what the service allows', () => {
    const ms = fc.integer({ min: -(10 ** 12), max: 10 ** 12 })
    fc.assert(
      fc.property(ms, ms, ms, ms, (receivedAtMs, grantedAtMs, visibleAtMs, nowMs) => {
        const at = { limits: SQS, rules: RULES, nowMs }
        const byMs = extensionMs({ receivedAtMs }, at)
        assert.ok(byMs >= 0 && byMs <= RULES.extensionMs)
        const next = visibilityStep({ receivedAtMs, grantedAtMs, visibleAtMs }, at)
        if (next.act === 'wait') assert.ok(next.untilMs >= nowMs)
        if (next.act === 'extend') {
          assert.ok(next.byMs > 0 && nowMs + next.byMs <= receivedAtMs + SQS.heldMsMax)
        }
      }),
    )
  })

  test('held for as long as it is allowed is extended again and again, and let go before the end', () => {
    let now = 0
    let held: Granted = { receivedAtMs: 0, grantedAtMs: 0, visibleAtMs: 180_000 }
    let extensions = 0
    for (let turn = 0; turn < 10_000; turn++) {
      const next = step(held, now)
      if (next.act === 'release') break
      if (next.act === 'wait') now = Math.max(next.untilMs, now + 1)
      else {
        held = { ...held, grantedAtMs: now, visibleAtMs: now + next.byMs }
        extensions += 1
        assert.ok(held.visibleAtMs <= SQS.heldMsMax)
      }
    }
    assert.ok(extensions > 700)
    assert.ok(now < SQS.heldMsMax && now > SQS.heldMsMax - 60_000)
  })
})
