/**
 * Several budgets (each as in a process of its own) over one store: what all of them promise together.
 * Run against every BudgetStore. Time is simulated; real databases answer in their own time, and the
 * clock waits for them.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { FakeClock, sleep } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { type Random, seededRandom } from '../../base/random.ts'
import type { BudgetStore, Draw, Drawn, Tuned, Tuning } from '../../ledger/contract-budgets.ts'
import { Budget } from './budget.ts'
import type { BudgetSpec } from './spec.ts'

export type OpenStore = { store: BudgetStore; close: () => Promise<void> }

/** A store that can be waited for. */
export class TrackedStore implements BudgetStore {
  readonly #store: BudgetStore
  readonly #pending = new Set<Promise<unknown>>()
  draws = 0
  fails = false
  /** Members that crashed: nothing of theirs arrives. */
  readonly gone = new Set<string>()
  /** Everything arrives, and no answer comes back. */
  isMute = false

  constructor(store: BudgetStore) {
    this.#store = store
  }

  draw(draw: Draw, nowMs: number): Promise<Drawn> {
    this.draws += 1
    if (this.gone.has(draw.member)) return Promise.reject(new Error('crashed'))
    return this.#track(async () => {
      const drawn = await this.#store.draw(draw, nowMs)
      if (this.isMute) throw new Error('the connection is lost')
      return drawn
    })
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
  readonly #memberOf = new Map<Budget, string>()
  #members = 0

  constructor(store: BudgetStore) {
    this.store = new TrackedStore(store)
  }

  /** A process that runs jobs has a lease, which here never ends. */
  open(spec: BudgetSpec, name = 'b', { isLeased } = { isLeased: true }): Budget {
    this.#members += 1
    const owner = isLeased ? this.#members : 0
    const random = seededRandom(this.#members)
    const member = `p${this.#members}`
    const { store, clock } = this
    const budget = new Budget({ name, spec, member, store, clock, random, owner: () => owner })
    this.#budgets.push(budget)
    this.#memberOf.set(budget, member)
    return budget
  }

  /** From now on nothing of this process reaches the store. */
  crash(budget: Budget): void {
    this.store.gone.add(this.#memberOf.get(budget)!)
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

type Shift = { started: number; running: number; longestWaitMs: number; crash: () => void }

/** Endless work: starts a worker whenever the budget lets it, as the dispatcher does. */
export function endless(sharers: Sharers, budget: Budget, random: Random, jobMs: number): Shift {
  const { clock } = sharers
  let crashed = false
  let lastMs = clock.now()
  const shift: Shift = {
    started: 0,
    running: 0,
    longestWaitMs: 0,
    crash: () => {
      crashed = true
      shift.running = 0
    },
  }
  const dispatch = (): void => {
    while (!crashed && budget.gate.canStart()) {
      const end = budget.startWorker()
      shift.longestWaitMs = Math.max(shift.longestWaitMs, clock.now() - lastMs)
      lastMs = clock.now()
      shift.started += 1
      shift.running += 1
      void sleep(clock, jobMs * (0.5 + random())).then(() => {
        if (crashed) return
        shift.running -= 1
        end()
        dispatch()
      })
    }
  }
  budget.gate.onOpen(dispatch)
  // An engine looks for work now and then, whatever it is told.
  const look = (): void => {
    dispatch()
    if (!crashed) clock.timer(5_000, look)
  }
  look()
  return shift
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
      other.gate.canStart()
      await sharers.run(10)
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
      assert.equal(first.gate.canStart(), false, 'not before it was granted')
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

    for (const [max, jobMs] of [
      [1, 300],
      [5, 300],
      [5, 7_000],
    ] as const) {
      shared(
        `of ${max} workers for jobs of ${jobMs} ms, three processes never have more together, nor fewer, and all get turns`,
        async (sharers) => {
          const spec: BudgetSpec = { rate: 1_000, rateMin: 1_000, workers: { start: max, min: max, max } }
          const shifts = [1, 2, 3].map((seed) =>
            endless(sharers, sharers.open(spec), seededRandom(seed), jobMs),
          )
          const busyMs = { sum: 0, of: 0 }
          for (let ms = 0; ms < 45_000; ms += 20) {
            await sharers.run(20, 20)
            const running = shifts.reduce((sum, shift) => sum + shift.running, 0)
            assert.ok(running <= max, `${running} run after ${ms} ms`)
            if (ms < 5_000) continue
            busyMs.sum += running * 20
            busyMs.of += max * 20
          }
          const found = JSON.stringify({ used: busyMs.sum / busyMs.of, draws: sharers.store.draws, shifts })
          assert.ok(busyMs.sum >= 0.9 * busyMs.of, found)
          const started = shifts.map((shift) => shift.started)
          assert.ok(Math.max(...started) <= 1.7 * Math.min(...started), found)
          assert.ok(Math.max(...shifts.map((shift) => shift.longestWaitMs)) <= 20_000, found)
        },
      )
    }

    shared('the workers of a process that crashed go to the others', async (sharers) => {
      const spec: BudgetSpec = { rate: 1_000, rateMin: 1_000, workers: { start: 2, min: 2, max: 2 } }
      const dead = sharers.open(spec, 'b', { isLeased: false })
      const first = endless(sharers, dead, seededRandom(1), 300)
      await sharers.run(1_000)
      assert.equal(first.running, 2)
      sharers.crash(dead)
      first.crash()
      const second = endless(sharers, sharers.open(spec), seededRandom(2), 300)
      await sharers.run(1_000, 100)
      assert.equal(second.running, 0, 'it may still be at work')
      await sharers.run(5_000, 100)
      assert.equal(second.running, 2)
    })

    shared(
      'a wish for a worker that nobody has any more ends, and costs no draws for long',
      async (sharers) => {
        const spec: BudgetSpec = { rate: 1_000, rateMin: 1_000, workers: { start: 1, min: 1, max: 1 } }
        const holder = sharers.open(spec)
        endless(sharers, holder, seededRandom(1), 3_600_000)
        await sharers.run(1_000)
        const wishful = sharers.open(spec)
        assert.equal(wishful.gate.canStart(), false)
        await sharers.run(20_000, 100)
        const before = sharers.store.draws
        await sharers.run(20_000, 100)
        // The holder says once a second that it is at work.
        assert.ok(sharers.store.draws - before <= 25, `${sharers.store.draws - before}`)
        assert.equal(wishful.snapshot().members, 1)
      },
    )

    shared('calls outside of jobs keep no job from its worker', async (sharers) => {
      const spec: BudgetSpec = { rate: 1_000, rateMin: 1_000, workers: { start: 1, min: 1, max: 1 } }
      const calling = sharers.open(spec, 'b', { isLeased: false })
      const calls = Array.from({ length: 3 }, () => calling.call(1, () => sleep(sharers.clock, 60_000)))
      await sharers.run(2_000, 100)
      const shift = endless(sharers, sharers.open(spec), seededRandom(1), 300)
      await sharers.run(5_000, 100)
      assert.ok(shift.started >= 10, `${shift.started}`)
      await sharers.run(60_000, 1_000)
      await Promise.all(calls)
    })

    shared('slots of which the answer was lost are given back by the next exchange', async (sharers) => {
      const spec: BudgetSpec = { rate: 1_000, rateMin: 1_000, workers: { start: 1, min: 1, max: 1 } }
      const unlucky = sharers.open(spec)
      sharers.store.isMute = true
      unlucky.gate.canStart()
      // Longer than anybody there wants a worker.
      await sharers.run(15_000, 100)
      sharers.store.isMute = false
      const shift = endless(sharers, sharers.open(spec), seededRandom(1), 300)
      await sharers.run(15_000, 100)
      assert.ok(shift.started >= 10, `${shift.started}`)
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
