/** What every BudgetStore promises; run against each of them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { seededRandom } from '../base/random.ts'
import { MEMBER_MS } from './budget-row.ts'
import type { BudgetStore, Draw, Drawn, Tuning } from './contract-budgets.ts'

/** A fresh, empty store; `other` is a second way to the same data (another connection, where there are any). */
export type OpenBudgets = {
  store: BudgetStore
  other: BudgetStore
  /** A lease that lives. */
  owner: number
  close: () => Promise<void>
}

const T0 = 1_800_000_000_000
const START = { rate: 100, burst: 50, controller: '{"v":1}' }

function drawOf(change: Partial<Draw>): Draw {
  const workers = { owner: 0, running: 0, workersWanted: 0, slots: 0, workersMax: 0 }
  return { name: 'b', member: 'm', want: 0, giveBack: 0, leave: false, start: START, ...workers, ...change }
}

function tuningOf(change: Partial<Tuning>): Tuning {
  return { name: 'b', version: 0, rate: 100, burst: 50, pausedUntilMs: 0, controller: '{}', ...change }
}

function near(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) < 1e-6, `${actual} instead of ${expected}`)
}

export function budgetStoreSuite(label: string, open: () => Promise<OpenBudgets>): void {
  const withStore = (
    title: string,
    run: (store: BudgetStore, other: BudgetStore, owner: number) => Promise<void>,
  ): void => {
    test(title, async () => {
      const opened = await open()
      try {
        await run(opened.store, opened.other, opened.owner)
      } finally {
        await opened.close()
      }
    })
  }

  describe(`budget store: ${label}`, () => {
    withStore('an unknown budget starts full, as its first draw says', async (store) => {
      const drawn = await store.draw(drawOf({ want: 80 }), T0)
      near(drawn.granted, 50)
      assert.deepEqual([drawn.rate, drawn.burst, drawn.controller], [100, 50, '{"v":1}'])
      assert.deepEqual([drawn.version, drawn.members, drawn.pausedUntilMs, drawn.nowMs], [0, 1, 0, T0])
      assert.ok(drawn.waitMs > 0)
    })

    withStore('tokens flow in at the rate and never beyond the burst', async (store) => {
      await store.draw(drawOf({ want: 50 }), T0)
      near((await store.draw(drawOf({ want: 50 }), T0 + 200)).granted, 20)
      near((await store.draw(drawOf({ want: 500 }), T0 + 100_000)).granted, 50)
    })

    withStore('waiting as long as it says makes the next draw worth it', async (store) => {
      await store.draw(drawOf({ want: 50 }), T0)
      const short = await store.draw(drawOf({ want: 10 }), T0)
      assert.equal(short.granted, 0)
      near((await store.draw(drawOf({ want: 10 }), T0 + short.waitMs)).granted, 10)
    })

    withStore(
      'whoever draws, gives back, leaves and comes, the sum stays within burst + rate * time',
      async (store) => {
        const random = seededRandom(7)
        const start = { rate: 1_000, burst: 250, controller: '' }
        const members = ['a', 'b', 'c', 'd']
        let nowMs = T0
        let latestMs = T0
        let out = 0
        for (let i = 0; i < 400; i++) {
          nowMs = Math.max(T0, nowMs + Math.floor(random() * 150) - 20)
          latestMs = Math.max(latestMs, nowMs)
          const giveBack = random() < 0.2 ? Math.min(out, 30) * random() : 0
          const member = members[Math.floor(random() * members.length)]!
          const want = random() * 300
          const drawn = await store.draw(
            drawOf({ member, want, giveBack, leave: random() < 0.1, start }),
            nowMs,
          )
          assert.ok(drawn.granted >= 0 && drawn.granted <= want + 1e-9)
          out += drawn.granted - giveBack
          const bound = 250 + latestMs - T0
          assert.ok(out <= bound + 1e-6, `${out} of ${bound}`)
        }
        assert.ok(out > 0.7 * (latestMs - T0), `only ${out} of ${latestMs - T0} was drawn`)
      },
    )

    withStore(
      'members that want all they can get are served evenly, however often they draw',
      async (store) => {
        const got: Record<string, number> = { often: 0, seldom: 0, late: 0 }
        const want = async (member: string, nowMs: number): Promise<void> => {
          got[member]! += (await store.draw(drawOf({ member, want: 1_000 }), nowMs)).granted
        }
        for (let ms = 0; ms < 10_000; ms += 20) {
          await want('often', T0 + ms)
          if (ms % 100 === 0) await want('seldom', T0 + ms)
          if (ms % 100 === 80) await want('late', T0 + ms)
        }
        const shares = Object.values(got)
        assert.ok(Math.max(...shares) < 1.2 * Math.min(...shares), JSON.stringify(got))
        assert.ok(shares.reduce((a, b) => a + b) > 1_000)
      },
    )

    withStore('the share that a slow member leaves unused is lent to the others', async (store) => {
      let greedy = 0
      let slow = 0
      for (let ms = 0; ms < 10_000; ms += 100) {
        if (ms % 1_000 === 0) slow += (await store.draw(drawOf({ member: 'slow', want: 5 }), T0 + ms)).granted
        greedy += (await store.draw(drawOf({ member: 'greedy', want: 1_000 }), T0 + ms)).granted
      }
      near(slow, 50)
      assert.ok(greedy > 1_000 - 50 - 10, `${greedy}`)
    })

    withStore('a member that crashed is forgotten after a while, one that leaves at once', async (store) => {
      await store.draw(drawOf({ member: 'a', running: 3 }), T0)
      await store.draw(drawOf({ member: 'b', running: 2 }), T0)
      const seen = async (ms: number): Promise<Drawn> =>
        store.draw(drawOf({ member: 'c', running: 1 }), T0 + ms)
      assert.equal((await seen(10)).members, 3)
      await store.draw(drawOf({ member: 'b', leave: true }), T0 + 20)
      assert.equal((await seen(30)).members, 2)
      await seen(MEMBER_MS)
      assert.equal((await seen(MEMBER_MS + 1)).members, 1)
    })

    withStore('what is given back can be drawn by others, up to the burst', async (store) => {
      await store.draw(drawOf({ member: 'a', want: 50 }), T0)
      await store.draw(drawOf({ member: 'a', giveBack: 30, leave: true }), T0)
      near((await store.draw(drawOf({ member: 'b', want: 50 }), T0)).granted, 30)
      await store.draw(drawOf({ member: 'b', giveBack: 5_000, leave: true }), T0)
      near((await store.draw(drawOf({ member: 'a', want: 5_000 }), T0)).granted, 50)
    })

    withStore(
      'during a pause nothing is granted, to nobody, and the wait is its end',
      async (store, other) => {
        await store.draw(drawOf({}), T0)
        await store.tune(tuningOf({ pausedUntilMs: T0 + 5_000 }), T0)
        for (const [from, member] of [[store, 'm'] as const, [other, 'n'] as const]) {
          const drawn = await from.draw(drawOf({ member, want: 10 }), T0 + 1_000)
          assert.deepEqual([drawn.granted, drawn.waitMs, drawn.pausedUntilMs], [0, 4_000, T0 + 5_000])
        }
        assert.ok((await store.draw(drawOf({ want: 10 }), T0 + 5_000)).granted > 0)
      },
    )

    withStore('a tuning under an old version changes nothing and tells what is', async (store, other) => {
      await store.draw(drawOf({}), T0)
      const first = await store.tune(tuningOf({ rate: 10, controller: '{"a":1}' }), T0)
      assert.deepEqual([first.tuned, first.version, first.rate], [true, 1, 10])
      const second = await other.tune(tuningOf({ rate: 99, controller: '{"b":1}' }), T0)
      assert.deepEqual(
        [second.tuned, second.version, second.rate, second.controller],
        [false, 1, 10, '{"a":1}'],
      )
      assert.equal((await other.tune(tuningOf({ version: 1, rate: 20 }), T0)).tuned, true)
    })

    withStore('a new rate counts from when it was set', async (store) => {
      await store.draw(drawOf({ want: 50 }), T0)
      await store.tune(tuningOf({ rate: 10 }), T0 + 200)
      near((await store.draw(drawOf({ want: 50 }), T0 + 1_200)).granted, 20 + 10)
    })

    withStore('a clock that was set back by hours stops nobody', async (store) => {
      await store.draw(drawOf({ want: 50 }), T0)
      await store.draw(drawOf({ want: 50 }), T0 - 3_600_000)
      near((await store.draw(drawOf({ want: 50 }), T0 - 3_600_000 + 100)).granted, 10)
    })

    withStore('of a pause, what is left is left of it when the clock is set back', async (store) => {
      const { version } = await store.draw(drawOf({ want: 50 }), T0)
      await store.tune(tuningOf({ version, pausedUntilMs: T0 + 5_000 }), T0)
      const back = T0 - 3_600_000
      assert.equal((await store.draw(drawOf({ want: 50 }), back)).pausedUntilMs, back + 5_000)
      assert.equal((await store.draw(drawOf({ want: 50 }), back + 4_900)).granted, 0)
      assert.ok((await store.draw(drawOf({ want: 50 }), back + 5_100)).granted > 0)
    })

    withStore(
      'draws at the same moment from several sides never add up to more than there is',
      async (store, other) => {
        const draws = Array.from({ length: 40 }, (_, i) =>
          (i % 2 ? store : other).draw(drawOf({ member: `m${i % 4}`, want: 3 }), T0),
        )
        const drawn = await Promise.all(draws)
        const sum = drawn.reduce((total, one) => total + one.granted, 0)
        assert.ok(sum <= 50 + 1e-6 && sum > 0, `${sum}`)
      },
    )

    withStore(
      'workers granted at the same moment from several sides are never more than there may be',
      async (store, other) => {
        const ask = (member: string, workersMax: number): Promise<Drawn> =>
          (member < 'c' ? store : other).draw(drawOf({ member, workersWanted: 5, workersMax }), T0)
        const drawn = await Promise.all(['a', 'b', 'c', 'd'].map((member) => ask(member, 5)))
        assert.equal(
          drawn.reduce((sum, { slots }) => sum + slots, 0),
          5,
        )
        await Promise.all(
          ['a', 'b', 'c', 'd'].map((member) => store.draw(drawOf({ member, leave: true }), T0)),
        )
        assert.equal((await ask('c', 5)).slots, 5)
      },
    )

    withStore(
      'a member is asked to give up slots that others want, and keeps them until it does',
      async (store, _, owner) => {
        const workers = { owner, workersMax: 4, workersWanted: 4 }
        const draw = async (member: string, change: Partial<Draw>, ms: number): Promise<number> =>
          (await store.draw(drawOf({ member, ...workers, ...change }), T0 + ms)).slots
        assert.equal(await draw('a', {}, 0), 4)
        assert.equal(await draw('b', {}, 10), 0)
        assert.equal(await draw('a', { slots: 4, running: 4 }, 20), 2)
        assert.equal(await draw('b', {}, 30), 0)
        assert.equal(await draw('a', { slots: 2, running: 3 }, 40), 2)
        assert.equal(await draw('b', {}, 50), 1)
        assert.equal(await draw('a', { slots: 2, running: 2 }, 60), 2)
        assert.equal(await draw('b', { slots: 1, running: 1 }, 70), 2)
      },
    )

    withStore('one without a lease that is silent loses its workers as it does its tokens', async (store) => {
      const draw = (member: string, ms: number): Promise<Drawn> =>
        store.draw(drawOf({ member, workersMax: 1, workersWanted: 1 }), T0 + ms)
      assert.equal((await draw('a', 0)).slots, 1)
      assert.equal((await draw('b', MEMBER_MS)).slots, 0)
      assert.equal((await draw('b', MEMBER_MS + 1)).slots, 1)
    })

    withStore('where members know different maxima, the least holds, and all get turns', async (store) => {
      const max = { a: 1, b: 5 }
      const has = { a: 0, b: 0 }
      const turns = { a: 0, b: 0 }
      for (let ms = 0; ms < 30_000; ms += 250) {
        for (const member of ['a', 'b'] as const) {
          const slots = has[member]
          const workers = { workersMax: max[member], workersWanted: max[member], slots, running: slots }
          const drawn = await store.draw(drawOf({ member, ...workers }), T0 + ms)
          // What runs is gone by the next draw.
          has[member] = drawn.slots
          turns[member] += drawn.slots
        }
        assert.ok(has.a + has.b <= 1, JSON.stringify(has))
      }
      assert.ok(turns.a >= 30 && turns.b >= 30, JSON.stringify(turns))
    })

    withStore(
      'of tunings at the same moment under one version, exactly one takes effect',
      async (store, other) => {
        await store.draw(drawOf({}), T0)
        const tuned = await Promise.all(
          Array.from({ length: 10 }, (_, i) => (i % 2 ? store : other).tune(tuningOf({ rate: i + 1 }), T0)),
        )
        assert.equal(tuned.filter((one) => one.tuned).length, 1)
      },
    )

    withStore(
      'budgets of different names know nothing of each other, and all are listed',
      async (store, other) => {
        await store.draw(drawOf({ name: 'two', want: 50 }), T0)
        near((await store.draw(drawOf({ name: 'one', want: 50 }), T0)).granted, 50)
        await store.tune(tuningOf({ name: 'two', pausedUntilMs: T0 + 9_000, controller: '{"x":2}' }), T0)
        const rows = await other.list()
        assert.deepEqual(
          rows.map((row) => [row.name, row.pausedUntilMs, row.controller, row.tunings]),
          [
            ['one', 0, '{"v":1}', 0],
            ['two', T0 + 9_000, '{"x":2}', 1],
          ],
        )
      },
    )
  })
}
