/**
 * Several budgets (each as in a process of its own) over one store: what all of them promise together.
 * Run against every BudgetStore. Time is simulated; real databases answer in their own time, and the
 * clock waits for them.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { FakeClock } from '../../clock.ts'
import { TidemarkError } from '../../errors.ts'
import type { BudgetStore, Draw, Drawn, Tuned, Tuning } from '../../ledger/contract-budgets.ts'
import { seededRandom } from '../../random.ts'
import { Budget } from './budget.ts'
import type { BudgetSpec } from './spec.ts'

export type OpenStore = { store: BudgetStore; close: () => Promise<void> }

/** A store that can be waited for. */
export class TrackedStore implements BudgetStore {
  readonly #store: BudgetStore
  readonly #pending = new Set<Promise<unknown>>()
  draws = 0
  fails = false

  constructor(store: BudgetStore) {
    this.#store = store
  }

  draw(draw: Draw, nowMs: number): Promise<Drawn> {
    this.draws += 1
    return this.#track(() => this.#store.draw(draw, nowMs))
  }

  tune(tuning: Tuning, nowMs: number): Promise<Tuned> {
    return this.#track(() => this.#store.tune(tuning, nowMs))
  }

  list(): ReturnType<BudgetStore['list']> {
    return this.#store.list()
  }

  async idle(): Promise<void> {
    while (this.#pending.size > 0) {
      await Promise.allSettled(this.#pending)
      await setImmediate()
    }
  }

  #track<T>(run: () => Promise<T>): Promise<T> {
    if (this.fails) return Promise.reject(new Error('the database is gone'))
    const answer = run()
    this.#pending.add(answer)
    const done = (): void => {
      this.#pending.delete(answer)
    }
    answer.then(done, done)
    return answer
  }
}

/** Processes that share a store, under one simulated clock. */
export class Sharers {
  readonly clock = new FakeClock()
  readonly store: TrackedStore
  readonly #budgets: Budget[] = []
  #members = 0

  constructor(store: BudgetStore) {
    this.store = new TrackedStore(store)
  }

  open(spec: BudgetSpec, name = 'b'): Budget {
    this.#members += 1
    const random = seededRandom(this.#members)
    const member = `p${this.#members}`
    const budget = new Budget({ name, spec, member, store: this.store, clock: this.clock, random })
    this.#budgets.push(budget)
    return budget
  }

  async run(ms: number, stepMs = 10): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      await this.clock.advance(stepMs)
      await this.store.idle()
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#budgets.map((budget) => budget.close()))
  }
}

/** Lets time pass after all that is under way has come to its next wait. */
export async function pass(clock: FakeClock, ms: number): Promise<void> {
  await clock.advance(0)
  await clock.advance(ms)
}

/** Takes as much as it can get until stopped; counts what it got. */
export function greedy(budget: Budget, units: number): { units: number; stop: () => void } {
  const abort = new AbortController()
  const got = { units: 0, stop: () => abort.abort() }
  const run = async (): Promise<void> => {
    for (;;) {
      await budget.take(units, { signal: abort.signal })
      got.units += units
    }
  }
  run().catch(() => {
    // Stopped, or closed.
  })
  return got
}

export function throttled(retryAfterMs?: number): TidemarkError {
  return new TidemarkError('slow down', { kind: 'throttled', retryAfterMs })
}

const FIXED: BudgetSpec = { rate: 1_000, rateMin: 1_000, workers: { start: 8, min: 8, max: 8 } }

export function budgetSharingSuite(label: string, open: () => Promise<OpenStore>): void {
  const shared = (title: string, run: (sharers: Sharers) => Promise<void>): void => {
    test(title, async () => {
      const opened = await open()
      const sharers = new Sharers(opened.store)
      try {
        await run(sharers)
      } finally {
        await sharers.close()
        await opened.close()
      }
    })
  }

  describe(`budgets shared over ${label}`, () => {
    shared(
      'three greedy processes get the same within 20 %, together the rate and never more',
      async (sharers) => {
        const got = [7, 20, 50].map((units) => greedy(sharers.open(FIXED), units))
        for (let second = 1; second <= 5; second++) {
          await sharers.run(1_000)
          const sum = got.reduce((total, one) => total + one.units, 0)
          assert.ok(sum <= 250 + second * 1_000, `${sum} after ${second} s`)
          assert.ok(sum >= 0.93 * second * 1_000, `only ${sum} after ${second} s`)
        }
        const shares = got.map((one) => one.units)
        assert.ok(Math.max(...shares) <= 1.2 * Math.min(...shares), `${shares}`)
        assert.ok(sharers.store.draws <= 3 * 5 * 12, `${sharers.store.draws} draws`)
        for (const one of got) one.stop()
      },
    )

    shared('an idle process lends its share and gets it back when it wakes', async (sharers) => {
      const first = sharers.open(FIXED)
      const second = sharers.open(FIXED)
      await Promise.all([second.take(1), sharers.run(50)])
      const busy = greedy(first, 10)
      await sharers.run(3_000)
      assert.ok(busy.units >= 0.95 * 3_000, `${busy.units}`)
      const woken = greedy(second, 10)
      const before = busy.units
      await sharers.run(3_000)
      const ratio = (busy.units - before) / woken.units
      assert.ok(ratio > 1 / 1.2 && ratio < 1.2, `${ratio}`)
      busy.stop()
      woken.stop()
    })

    shared('a throttle answer pauses all processes of this budget and of no other', async (sharers) => {
      const [here, there] = [sharers.open(FIXED), sharers.open(FIXED)]
      const other = sharers.open(FIXED, 'other')
      const [gotHere, gotThere, gotOther] = [greedy(here, 10), greedy(there, 10), greedy(other, 10)]
      await sharers.run(1_000)
      const refused = here.call(10, async () => {
        throw throttled(5_000)
      })
      await Promise.all([assert.rejects(refused, { kind: 'throttled' }), sharers.run(300)])
      const paused = [gotHere.units, gotThere.units]
      const otherBefore = gotOther.units
      await sharers.run(4_000)
      assert.deepEqual([gotHere.units, gotThere.units], paused)
      assert.ok(gotOther.units - otherBefore >= 0.95 * 4_000)
      assert.equal(there.gate.canStart(), false)
      assert.equal(other.gate.canStart(), true)
      await sharers.run(2_000)
      assert.ok(gotHere.units > paused[0]! && gotThere.units > paused[1]!)
      for (const one of [gotHere, gotThere, gotOther]) one.stop()
    })

    shared('what a process does not use goes back, so that another finds it', async (sharers) => {
      const slow: BudgetSpec = { rate: 10, rateMin: 10, burstMs: 10_000 }
      const [first, second] = [sharers.open(slow), sharers.open(slow)]
      await Promise.all([first.take(1), sharers.run(100)])
      await first.close()
      const taken = second.take(90)
      await sharers.run(100)
      await taken
    })

    shared('workers are shared; what others leave idle may be used', async (sharers) => {
      const [first, second] = [sharers.open(FIXED), sharers.open(FIXED)]
      const keep = [greedy(first, 10), greedy(second, 10)]
      const ends = Array.from({ length: 3 }, () => second.startWorker())
      await sharers.run(500)
      assert.equal(first.snapshot().workersHere, 5)
      for (let i = 0; i < 5; i++) first.startWorker()
      await sharers.run(500)
      assert.equal(first.gate.canStart(), false)
      for (const end of ends) end()
      await sharers.run(500)
      assert.equal(first.gate.canStart(), true)
      for (const one of keep) one.stop()
    })

    shared('the rate found by one process is the rate of all', async (sharers) => {
      const spec: BudgetSpec = { rate: 1_000, rateMin: 10 }
      const [first, second] = [sharers.open(spec), sharers.open(spec)]
      const keep = greedy(second, 10)
      const refused = first.call(1, async () => {
        throw throttled()
      })
      await Promise.all([assert.rejects(refused), sharers.run(300)])
      assert.deepEqual([first.snapshot().rate, second.snapshot().rate], [500, 500])
      assert.equal(second.snapshot().throttles, 1)
      keep.stop()
    })
  })
}
