import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import type { Effects, NewJob } from '../contract.ts'
import { libsqlHome, onLibsql } from '../home.suite.ts'
import { LedgerFixture } from '../ledger-fixture.suite.ts'
import type { LibsqlDriver } from './driver.ts'

function jobs(count: number, more: Partial<NewJob> = {}): NewJob[] {
  return Array.from({ length: count }, () => ({ kind: 'job', payload: '{}', ...more }))
}

onLibsql(() => {
  describe('round trips to a libSQL server', () => {
    const home = libsqlHome()
    let fixture: LedgerFixture
    beforeEach(async () => {
      fixture = await LedgerFixture.open(home)
    })
    afterEach(async () => {
      await fixture.checkBooks()
      await fixture.close()
    })
    after(() => home.remove())

    async function requests(fn: () => Promise<unknown>): Promise<number> {
      const { usage } = fixture.ledger.driver as LibsqlDriver
      const before = usage.requests
      await fn()
      return usage.requests - before
    }

    /** Settles all that is claimed, with these effects, and claims as many again. */
    async function cycleOf(count: number, effects?: Effects): Promise<number> {
      await fixture.write({ jobs: jobs(2 * count) })
      const claimed = await fixture.claim({ n: count })
      return requests(() =>
        fixture.cycle({
          settle: claimed.map((job) => ({ job, event: 'succeed', ...(effects && { work: { effects } }) })),
          claim: fixture.claimRequest({ n: count }),
        }),
      )
    }

    test('are as many for a cycle of many jobs as for one of few', async () => {
      const few = await cycleOf(2)
      assert.equal(await cycleOf(300), few)
      assert.ok(few <= 4, `${few} round trips`)
    })

    test('are two more for each 64 failures that come together than for one', async () => {
      const failing = async (count: number): Promise<number> => {
        await fixture.write({ jobs: jobs(count) })
        const claimed = await fixture.claim({ n: count })
        const error = { kind: 'transient' as const, message: 'away' }
        return requests(() =>
          fixture.cycle({ settle: claimed.map((job) => ({ job, event: 'fail', error })) }),
        )
      }
      const one = await failing(1)
      assert.equal(await failing(64), one)
      assert.equal(await failing(200), one + 2 * 3)
    })

    test('are as many for a thousand segments as for one', async () => {
      const streamId = await fixture.stream()
      const lay = (from: number, to: number): Promise<number> => {
        const places = Array.from({ length: to - from }, (_, at) => from + at)
        return requests(() =>
          fixture.write({ segments: places.map((at) => ({ streamId, from: at, to: at + 1 })) }),
        )
      }
      const one = await lay(0, 1)
      assert.equal(await lay(1, 1_001), one)
    })

    test('are two for an enqueue of any size', async () => {
      assert.ok((await requests(() => fixture.write({ jobs: jobs(1) }))) <= 2)
      assert.ok((await requests(() => fixture.write({ jobs: jobs(1_000) }))) <= 2)
    })

    test('of effects that send at once are shared by all of a savepoint', async () => {
      await fixture.force(`CREATE TABLE seen (n INTEGER)`)
      const store: Effects = async (tx) => void (await tx.run(`INSERT INTO seen VALUES (1)`))
      await cycleOf(1, store)
      const plain = await cycleOf(60)
      assert.ok((await cycleOf(60, store)) <= plain + 2)
      assert.equal(await fixture.count('seen'), 61)
    })

    test('of effects that look first are as many as their steps, each behind the last', async () => {
      await fixture.force(`CREATE TABLE seen (n INTEGER)`)
      const countUp: Effects = async (tx) => {
        const row = await tx.get<{ n: number }>(`SELECT count(*) AS n FROM seen`)
        await tx.run(`INSERT INTO seen VALUES (?)`, [row!.n])
      }
      assert.ok((await cycleOf(20, countUp)) >= 40)
      const seen = await fixture.sql<{ n: number }>(`SELECT n FROM seen ORDER BY rowid`)
      assert.deepEqual(
        seen.map(({ n }) => n),
        Array.from({ length: 20 }, (_, n) => n),
      )
    })
  })
})
