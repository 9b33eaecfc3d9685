import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { FakeClock } from '../base/clock.ts'
import { newPrices, oldPrices } from './gmail/prices.ts'
import { Quota } from './quota.ts'

const USER = 'a@example.com'

/** How many gets go through at once. */
function burst(quota: Quota, method = 'messages.get'): number {
  let calls = 0
  while (calls < 100_000 && !quota.charge(USER, method)) calls += 1
  return calls
}

describe('a window of a minute', () => {
  test('lets through what its units pay for, and again after a minute', async () => {
    const clock = new FakeClock()
    const quota = new Quota({ prices: newPrices, unitsPerMinute: 6_000, clock })
    assert.equal(burst(quota), 300)
    await clock.advance(59_000)
    assert.equal(burst(quota), 0)
    await clock.advance(1_100)
    assert.equal(burst(quota), 300)
  })

  test('never charges more than its limit in any minute, whatever comes when', async () => {
    const gap = fc.integer({ min: 0, max: 5_000 })
    await fc.assert(
      fc.asyncProperty(fc.array(gap, { maxLength: 120 }), async (gapsMs) => {
        const clock = new FakeClock()
        const quota = new Quota({ prices: newPrices, unitsPerMinute: 300, clock })
        const charged: number[] = []
        for (const gapMs of gapsMs) {
          await clock.advance(gapMs)
          if (!quota.charge(USER, 'messages.get')) charged.push(clock.now())
        }
        for (const from of charged) {
          const units = charged.filter((at) => at >= from && at < from + 59_900).length * 20
          assert.ok(units <= 300, String(units))
        }
      }),
      { numRuns: 20 },
    )
  })

  test('a steady client at the rate is never refused, and another client leaves it its share', async () => {
    const clock = new FakeClock()
    const quota = new Quota({ prices: newPrices, unitsPerMinute: 6_000, clock })
    // A get every 200 ms is 100 units per second: the whole budget.
    const run = async (gets: number, everyMs: number): Promise<number> => {
      let refused = 0
      for (let at = 0; at < gets; at++) {
        await clock.advance(everyMs)
        if (quota.charge(USER, 'messages.get')) refused += 1
      }
      return refused
    }
    assert.equal(await run(600, 200), 0)
    quota.set({ otherShare: 0.5 })
    const refused = await run(600, 200)
    assert.ok(refused > 280 && refused < 320, String(refused))
    assert.ok((await run(300, 410)) < 5)
    assert.ok(quota.usage(USER).unitsOther > 6_000)
  })
})

describe('a bucket', () => {
  test('holds its burst and fills evenly', async () => {
    const clock = new FakeClock()
    const quota = new Quota({
      prices: newPrices,
      unitsPerMinute: 6_000,
      model: 'bucket',
      burstSeconds: 10,
      clock,
    })
    assert.equal(burst(quota), 50)
    await clock.advance(1_000)
    assert.equal(burst(quota), 5)
    quota.set({ otherShare: 0.5 })
    await clock.advance(2_000)
    assert.equal(burst(quota), 5)
  })
})

describe('the quota', () => {
  test('prices each method, and prices can be changed', () => {
    const quota = new Quota({ prices: newPrices, clock: new FakeClock() })
    assert.equal(quota.priceOf('messages.get'), 20)
    assert.equal(quota.priceOf('messages.batchModify'), 50)
    quota.set({ prices: oldPrices })
    assert.equal(quota.priceOf('messages.get'), 5)
    assert.equal(quota.priceOf('something.new'), 5)
  })

  test('without a limit only counts', () => {
    const quota = new Quota({ prices: newPrices, unitsPerMinute: null, clock: new FakeClock() })
    for (let at = 0; at < 1_000; at++) assert.equal(quota.charge(USER, 'messages.get'), undefined)
    const { unitsUsed, calls, callsRefused, methods } = quota.usage(USER)
    assert.deepEqual({ unitsUsed, calls, callsRefused }, { unitsUsed: 20_000, calls: 1_000, callsRefused: 0 })
    assert.deepEqual(methods, { 'messages.get': { calls: 1_000, units: 20_000, refused: 0 } })
  })

  test('counts what it refused, user by user', () => {
    const quota = new Quota({
      prices: newPrices,
      unitsPerMinute: 40,
      shape: 'user403',
      retryAfterSeconds: 3,
      clock: new FakeClock(),
    })
    assert.equal(burst(quota), 2)
    assert.equal(quota.charge(USER, 'messages.get')?.shape, 'user403')
    assert.equal(quota.charge(USER, 'messages.get')?.retryAfterSeconds, 3)
    assert.equal(quota.charge('b@example.com', 'messages.get'), undefined)
    assert.equal(quota.usage(USER).unitsRefused, 60)
    assert.equal(quota.usage(USER).methods['messages.get']?.refused, 3)
  })

  test('lets in no more requests at once than it is told', () => {
    const quota = new Quota({ prices: newPrices, concurrencyMax: 2, clock: new FakeClock() })
    assert.ok(quota.enter(USER))
    assert.ok(quota.enter(USER))
    assert.ok(!quota.enter(USER))
    quota.leave(USER)
    assert.ok(quota.enter(USER))
  })

  test('refuses settings that make no sense', () => {
    const quota = new Quota({ prices: newPrices, clock: new FakeClock() })
    assert.throws(() => quota.set({ otherShare: 1.5 }), /from 0 to 1/)
    assert.throws(() => quota.set({ unitsPerMinute: 0 }), /positive/)
  })
})
