import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock, sleep } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { seededRandom } from '../../base/random.ts'
import type { BudgetStore } from '../../ledger/contract-budgets.ts'
import { MemoryBudgetStore } from '../../ledger/memory-budgets.ts'
import { Budget, type BudgetEvent } from './budget.ts'
import { greedy, pass, TrackedStore, throttled } from './sharing.suite.ts'
import type { BudgetSpec } from './spec.ts'

const SPEC: BudgetSpec = { rate: 100, rateMin: 100, workers: { start: 4, min: 4, max: 4 } }

type Bench = { clock: FakeClock; store: TrackedStore; budget: Budget; events: BudgetEvent[] }

function bench(spec: BudgetSpec = SPEC, store: BudgetStore = new MemoryBudgetStore()): Bench {
  const clock = new FakeClock()
  const tracked = new TrackedStore(store)
  const events: BudgetEvent[] = []
  const options = { name: 'b', spec, member: 'm', store: tracked, clock, random: seededRandom(1) }
  return {
    clock,
    store: tracked,
    events,
    budget: new Budget({ ...options, onEvent: (event) => events.push(event) }),
  }
}

describe('a budget serves takers', () => {
  test('at once while there is enough, then at the rate', async () => {
    const { clock, budget } = bench()
    const got = greedy(budget, 1)
    await pass(clock, 20)
    assert.ok(got.units >= 1)
    await pass(clock, 10_000)
    assert.ok(got.units > 990 && got.units <= 25 + 1_002, `${got.units}`)
    got.stop()
    await budget.close()
  })

  test('at the rate, too, after the clock was put back by a day', async () => {
    const clock = new FakeClock()
    let backMs = 0
    const skewed = {
      now: () => clock.now() - backMs,
      monotonicMs: () => clock.monotonicMs(),
      watchLoop: () => clock.watchLoop(),
      timer: clock.timer.bind(clock),
    }
    const store = new MemoryBudgetStore()
    const budget = new Budget({
      name: 'b',
      spec: SPEC,
      member: 'm',
      store,
      clock: skewed,
      random: seededRandom(1),
    })
    const got = greedy(budget, 1)
    await pass(clock, 2_000)
    backMs = 86_400_000
    const before = got.units
    await pass(clock, 10_000)
    assert.ok(got.units - before > 900, `${got.units - before}`)
    got.stop()
    await budget.close()
  })

  test('in the order in which they came', async () => {
    const { clock, budget } = bench()
    const order: number[] = []
    const takers = [30, 1, 20, 5].map((units, i) => budget.take(units).then(() => order.push(i)))
    await pass(clock, 2_000)
    await Promise.all(takers)
    assert.deepEqual(order, [0, 1, 2, 3])
    await budget.close()
  })

  test('of the interactive lane first, but bulk gets a quarter', async () => {
    const { clock, budget } = bench()
    const order: string[] = []
    const taker = (lane: 'bulk' | 'interactive') => budget.take(10, { lane }).then(() => order.push(lane[0]!))
    const takers = [...Array(6).fill('bulk'), ...Array(12).fill('interactive')].map(taker)
    await pass(clock, 5_000)
    await Promise.all(takers)
    assert.equal(order.join(''), 'iiibiiibiiibiiibbb')
    await budget.close()
  })

  test('whose cost is many times the burst', async () => {
    const { clock, budget } = bench()
    const taken = budget.take(1_000).then(() => clock.now())
    const startMs = clock.now()
    await pass(clock, 12_000)
    const tookMs = (await taken) - startMs
    assert.ok(tookMs >= 9_700 && tookMs < 10_300, `${tookMs}`)
    await budget.close()
  })

  test('never with more than burst + rate * time, whatever they ask for and give up', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { clock, budget } = bench()
      const random = seededRandom(seed)
      const startMs = clock.now()
      let taken = 0
      for (let i = 0; i < 60; i++) {
        const units = 40 * random() ** 2
        const abort = new AbortController()
        budget.take(units, { signal: abort.signal, lane: random() < 0.5 ? 'bulk' : 'interactive' }).then(
          () => {
            taken += units
            assert.ok(taken <= 25 + ((clock.now() - startMs) * 100) / 1000 + 1e-6)
          },
          () => {},
        )
        if (random() < 0.3) void clock.timer(random() * 300, () => abort.abort())
        await pass(clock, random() * 200)
      }
      assert.ok(taken > 0)
      await budget.close()
    }
  })

  test('evenly after quiet, since many services count by the second', async () => {
    const { clock, budget } = bench({ ...SPEC, burstMs: 1_000 })
    await pass(clock, 60_000)
    const got = greedy(budget, 1)
    await pass(clock, 1_000)
    assert.ok(got.units <= 107, `${got.units}`)
    got.stop()
    await budget.close()
  })

  test('and forgets one that gave up, without losing units', async () => {
    const { clock, budget } = bench()
    const abort = new AbortController()
    const large = budget.take(60, { signal: abort.signal })
    const small = budget.take(20)
    await pass(clock, 100)
    abort.abort(new Error('no longer needed'))
    await assert.rejects(large, /no longer needed/)
    await pass(clock, 20)
    await small
    assert.equal(budget.snapshot().waiting, 0)
    await assert.rejects(budget.take(1, { signal: abort.signal }), /no longer needed/)
    await budget.close()
  })

  test('and refuses units that are no number', async () => {
    const { budget } = bench()
    await assert.rejects(budget.take(-1), UsageError)
    await assert.rejects(budget.take(Number.NaN), UsageError)
    await assert.rejects(budget.take(Number.POSITIVE_INFINITY), UsageError)
    await budget.close()
  })

  test('of nothing at once, and leaves no timer behind when all is quiet', async () => {
    const { clock, budget } = bench({ rate: 100, rateMin: 1 })
    await Promise.all([budget.take(0), budget.take(10), pass(clock, 50)])
    await pass(clock, 10_000)
    assert.equal(clock.pendingTimers, 0)
    await budget.close()
  })

  test('until it is closed: who waits is told why', async () => {
    const { clock, budget } = bench()
    const waiting = budget.take(1_000)
    await pass(clock, 50)
    await budget.close()
    await assert.rejects(waiting, { kind: 'transient', code: 'budget-closed' })
    await assert.rejects(budget.take(1), { code: 'budget-closed' })
    assert.equal(clock.pendingTimers, 0)
  })

  test('also when the store was gone for a while', async () => {
    const { clock, store, budget, events } = bench()
    store.fails = true
    let served = false
    const taken = budget.take(5).then(() => {
      served = true
    })
    await pass(clock, 20_000)
    assert.equal(served, false)
    assert.ok(events.length > 3 && events.length < 15 && events.every((event) => event.type === 'error'))
    store.fails = false
    await pass(clock, 6_000)
    await taken
    await budget.close()
  })
})

describe('a call under a budget', () => {
  test('returns what the function returns and is measured', async () => {
    const { clock, budget } = bench()
    const calls = Promise.all(
      Array.from({ length: 10 }, (_, i) => budget.call(1, () => sleep(clock, 100).then(() => i))),
    )
    await pass(clock, 20)
    assert.ok(budget.snapshot().inFlight > 0)
    await pass(clock, 1_000)
    assert.deepEqual(await calls, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    const { p50Ms, p95Ms, inFlight } = budget.snapshot()
    assert.ok(Math.abs(p50Ms! - 100) < 6 && Math.abs(p95Ms! - 100) < 6)
    assert.equal(inFlight, 0)
    await budget.close()
  })

  test('that is throttled pauses the budget for as long as the service asks, and throws on', async () => {
    const { clock, budget, events } = bench()
    const startMs = clock.now()
    const refused = budget.call(1, () => Promise.reject(throttled(3_000)))
    await Promise.all([assert.rejects(refused, { kind: 'throttled', retryAfterMs: 3_000 }), pass(clock, 5)])
    const next = budget.take(1).then(() => clock.now() - startMs)
    assert.ok(budget.snapshot().pausedUntilMs >= startMs + 3_000)
    await pass(clock, 4_000)
    const waitedMs = await next
    assert.ok(waitedMs >= 3_000 && waitedMs < 3_100, `${waitedMs}`)
    assert.equal(budget.snapshot().pausedUntilMs, 0)
    const throttle = events.find((event) => event.type === 'throttle')
    assert.ok(throttle && throttle.retryAfterMs === 3_000 && throttle.budget === 'b')
    await budget.close()
  })

  test('that fails otherwise throws on and slows nobody', async () => {
    const { clock, budget, events } = bench({ rate: 100, rateMin: 1 })
    for (const error of [new TidemarkError('reset', { kind: 'transient' }), new Error('bug')]) {
      const failed = budget.call(1, () => Promise.reject(error))
      await Promise.all([assert.rejects(failed, error), pass(clock, 50)])
    }
    assert.deepEqual([budget.snapshot().rate, budget.snapshot().throttles], [100, 0])
    assert.deepEqual(
      events.map((event) => (event.type === 'call' ? [event.name, event.ok] : event)),
      [
        ['b', false],
        ['b', false],
      ],
      'told as failed calls, and as nothing else',
    )
    await budget.close()
  })

  test('hands its signal on, and one that was aborted is not measured', async () => {
    const { clock, budget } = bench()
    const abort = new AbortController()
    const call = budget.call(1, (signal) => sleep(clock, 5_000, signal), { signal: abort.signal })
    await pass(clock, 100)
    abort.abort(new Error('stopped'))
    await assert.rejects(call, /stopped/)
    assert.equal(budget.snapshot().p50Ms, null)
    await budget.close()
  })

  test('a hundred throttles of the same moment halve the rate once', async () => {
    const { clock, budget, events } = bench({ rate: 10_000, rateMin: 1 })
    const refuse = (): Promise<never> => sleep(clock, 300).then(() => Promise.reject(throttled()))
    const calls = Array.from({ length: 100 }, () => budget.call(1, refuse))
    const all = Promise.allSettled(calls)
    await pass(clock, 500)
    await all
    assert.equal(budget.snapshot().rate, 5_000)
    assert.equal(budget.snapshot().throttles, 100)
    assert.equal(events.filter((event) => event.type === 'rate').length, 1)
    await budget.close()
  })

  test('that is throttled while the store is gone is told to the controller later', async () => {
    const memory = new MemoryBudgetStore()
    const { clock, store, budget } = bench({ rate: 100, rateMin: 1 }, memory)
    await Promise.all([budget.take(1), pass(clock, 50)])
    const refused = budget.call(1, () => {
      store.fails = true
      return Promise.reject(throttled(10_000))
    })
    await Promise.all([assert.rejects(refused), pass(clock, 3_000)])
    assert.equal((await memory.list())[0]?.rate, 100)
    assert.equal(budget.gate.canStart(), false)
    store.fails = false
    await pass(clock, 1_500)
    const [row] = await memory.list()
    assert.equal(row?.rate, 50)
    assert.ok(row.pausedUntilMs > clock.now())
    assert.equal(budget.snapshot().throttles, 1)
    await budget.close()
  })

  test('that is refused slows the budget down, however busy this process is', async () => {
    const { clock, budget } = bench({ rate: 200, rateMin: 1, latencyP95MaxMs: 400 })
    await Promise.all([budget.take(1), pass(clock, 50)])
    clock.turnMs = 10_000
    const refused = budget.call(1, () => Promise.reject(throttled()))
    await Promise.all([assert.rejects(refused), pass(clock, 1_000)])
    assert.equal(budget.snapshot().throttles, 1)
    assert.ok(budget.snapshot().rate <= 100)
    await budget.close()
  })

  test('that gets slow beyond the bound slows the budget down, but not while it is this process that is slow', async () => {
    const { clock, budget } = bench({ rate: 200, rateMin: 1, latencyP95MaxMs: 400 })
    let latencyMs = 100
    const abort = new AbortController()
    const worker = async (): Promise<void> => {
      while (!abort.signal.aborted) await budget.call(5, () => sleep(clock, latencyMs))
    }
    const workers = Array.from({ length: 10 }, worker)
    await pass(clock, 10_000)
    assert.equal(budget.snapshot().rate, 200)
    latencyMs = 600
    // Two thirds of it the calls and their answers waited for this process.
    clock.turnMs = 200
    await pass(clock, 30_000)
    assert.equal(budget.snapshot().rate, 200)
    // As busy as before, and the service really is slow.
    latencyMs = 900
    await pass(clock, 15_000)
    assert.ok(budget.snapshot().rate <= 100)
    abort.abort()
    await pass(clock, 60_000)
    await Promise.all(workers)
    await budget.close()
  })
})

describe('the spec of a budget', () => {
  test('takes effect at once when it changes, for those who wait, too', async () => {
    const { clock, budget } = bench()
    const got = greedy(budget, 1)
    await pass(clock, 2_000)
    const before = got.units
    const changed = budget.setSpec({ ...SPEC, rate: 1_000, rateMin: 1_000 })
    await pass(clock, 2_000)
    await changed
    assert.ok(got.units - before > 1_900, `${got.units - before}`)
    got.stop()
    await budget.close()
  })

  test('applies to what an earlier run left in the ledger', async () => {
    const store = new MemoryBudgetStore()
    const first = bench({ rate: 1_000, rateMin: 10 }, store)
    await Promise.all([first.budget.take(1), pass(first.clock, 50)])
    await first.budget.close()
    const second = bench({ rate: 50, rateMin: 50, workers: { max: 2 } }, store)
    await Promise.all([second.budget.take(1), pass(second.clock, 50)])
    assert.deepEqual([second.budget.snapshot().rate, second.budget.snapshot().workers], [50, 2])
    assert.equal((await store.list())[0]?.rate, 50)
    await second.budget.close()
  })

  test('the ceiling that an earlier run found is remembered', async () => {
    const store = new MemoryBudgetStore()
    const first = bench({ rate: 1_000, rateMin: 10 }, store)
    const refused = first.budget.call(1, () => Promise.reject(throttled()))
    await Promise.all([assert.rejects(refused), pass(first.clock, 50)])
    await first.budget.close()
    const second = bench({ rate: 1_000, rateMin: 10 }, store)
    await Promise.all([second.budget.take(1), pass(second.clock, 50)])
    assert.deepEqual([second.budget.snapshot().rate, second.budget.snapshot().ceiling], [500, 1_000])
    await second.budget.close()
  })
})
