/** Whole budgets (store, draws, controller) of several processes against services whose capacity nobody tells them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FakeClock, sleep } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { type Random, seededRandom } from '../../base/random.ts'
import { MemoryBudgetStore } from '../../ledger/memory-budgets.ts'
import type { Budget } from './budget.ts'
import { Sharers, throttled } from './sharing.suite.ts'
import { bucketService, type Service, slidingSecondService } from './simulated-service.suite.ts'

const ADAPTIVE = { rate: 200, rateMin: 2, rateMax: 100_000 }

type Load = { calls: number; throttled: number; units: number; stop: () => void }

/** Workers that call a service one call after another, under a budget, until stopped. */
function load(budget: Budget, service: Service, clock: FakeClock, random: Random): Load {
  let stopped = false
  const total: Load = {
    calls: 0,
    throttled: 0,
    units: 0,
    stop: () => {
      stopped = true
    },
  }
  const call = async (cost: number): Promise<void> => {
    await sleep(clock, 5 + 30 * random())
    const verdict = service(cost, clock.now())
    total.calls += 1
    if (verdict.accepted) total.units += cost
    else total.throttled += 1
    await sleep(clock, 5 + 30 * random())
    if (!verdict.accepted) throw throttled(verdict.retryAfterMs)
  }
  const worker = async (): Promise<void> => {
    while (!stopped) {
      const cost = 1 + Math.floor(100 * random())
      await budget
        .call(cost, () => call(cost))
        .catch((error: unknown) => {
          if (!(error instanceof TidemarkError)) throw error
        })
    }
  }
  for (let i = 0; i < 8; i++) void worker()
  return total
}

function sum(loads: readonly Load[], key: 'calls' | 'throttled' | 'units'): number {
  return loads.reduce((total, one) => total + one[key], 0)
}

async function measure(
  sharers: Sharers,
  loads: readonly Load[],
  ms: number,
): Promise<{ rate: number; throttled: number }> {
  const before = {
    units: sum(loads, 'units'),
    calls: sum(loads, 'calls'),
    throttled: sum(loads, 'throttled'),
  }
  await sharers.run(ms, 1_000)
  const calls = sum(loads, 'calls') - before.calls
  return {
    rate: ((sum(loads, 'units') - before.units) * 1000) / ms,
    throttled: (sum(loads, 'throttled') - before.throttled) / calls,
  }
}

describe('steering together', () => {
  test('three processes settle at 90 % of a capacity that halves and comes back, and another budget is not disturbed', async (t) => {
    const sharers = new Sharers(new MemoryBudgetStore())
    const { clock } = sharers
    let capacity = 2_000
    const service = bucketService(() => capacity)
    const loads = [1, 2, 3].map((seed) => load(sharers.open(ADAPTIVE), service, clock, seededRandom(seed)))
    const other = sharers.open(ADAPTIVE, 'other')
    const otherLoad = load(
      other,
      slidingSecondService(() => 2_500),
      clock,
      seededRandom(9),
    )
    for (const next of [2_000, 1_000, 2_000]) {
      capacity = next
      await sharers.run(75_000, 1_000)
      const otherBefore = otherLoad.units
      const { rate, throttled } = await measure(sharers, loads, 60_000)
      const otherShare = (otherLoad.units - otherBefore) / 60 / 2_500
      const found = `${((rate / next) * 100).toFixed(1)} % used, ${(throttled * 100).toFixed(2)} % throttled, other ${(otherShare * 100).toFixed(1)} %`
      t.diagnostic(found)
      assert.ok(rate >= 0.9 * next && throttled < 0.02, found)
      assert.ok(otherShare >= 0.88, found)
    }
    const shares = loads.map((one) => one.units)
    assert.ok(Math.max(...shares) < 1.2 * Math.min(...shares), `${shares}`)
    for (const one of [...loads, otherLoad]) one.stop()
    await sharers.close()
  })

  test('the number of workers settles just below what the service bears at once', async (t) => {
    const sharers = new Sharers(new MemoryBudgetStore())
    const { clock } = sharers
    const budget = sharers.open({ rate: 10_000, workers: { start: 2, min: 1, max: 100 } })
    const total = { calls: 0, throttled: 0, done: 0, inFlight: 0 }
    const limit = 20
    const work = async (): Promise<void> => {
      total.calls += 1
      const accepted = total.inFlight < limit
      if (accepted) total.inFlight += 1
      await sleep(clock, accepted ? 200 : 20)
      if (!accepted) {
        total.throttled += 1
        throw throttled()
      }
      total.inFlight -= 1
      total.done += 1
    }
    const dispatch = (): void => {
      while (budget.gate.canStart()) {
        const end = budget.startWorker()
        void budget.call(1, work).then(end, end)
      }
    }
    budget.gate.onOpen(dispatch)
    dispatch()
    await sharers.run(90_000, 1_000)
    const before = { ...total }
    await sharers.run(120_000, 1_000)
    const used = ((total.done - before.done) * 200) / 120_000 / limit
    const share = (total.throttled - before.throttled) / (total.calls - before.calls)
    const found = `${(used * 100).toFixed(1)} % used, ${(share * 100).toFixed(2)} % throttled, ${budget.snapshot().workers} workers`
    t.diagnostic(found)
    assert.ok(used >= 0.85 && share < 0.02, found)
    await sharers.close()
  })
})
