import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, mock, test } from 'node:test'
import pg from 'pg'
import type { NewJob } from '../contract.ts'
import { postgresHome } from '../home.suite.ts'
import { LedgerFixture } from '../ledger-fixture.suite.ts'

const home = postgresHome()
let fixture: LedgerFixture
beforeEach(async () => {
  fixture = await LedgerFixture.open(home)
})
after(() => home.remove())
afterEach(async () => {
  mock.restoreAll()
  await fixture.close()
})

/** How many statements are sent while `fn` runs. */
async function statements(fn: () => Promise<unknown>): Promise<number> {
  const { mock: sent } = mock.method(pg.Client.prototype, 'query')
  await fn()
  const count = sent.callCount()
  sent.restore()
  return count
}

function jobs(count: number, more: (n: number) => Partial<NewJob>): NewJob[] {
  return Array.from({ length: count }, (_, n) => ({ kind: 'job', payload: '{}', ...more(n) }))
}

/** The statements do not grow with the jobs. */
async function assertSame(few: () => Promise<unknown>, many: () => Promise<unknown>): Promise<void> {
  // Connections are made and statements get their names.
  await few()
  assert.equal(await statements(many), await statements(few))
}

describe('on PostgreSQL as many statements serve many jobs as one', () => {
  test('with keys that are free', async () => {
    let key = 0
    const add = (count: number) => () =>
      fixture.write({ jobs: jobs(count, () => ({ key: `k${key++}`, onKeyTaken: 'replace' })) })
    await assertSame(add(1), add(200))
  })

  test('with keys that others have', async () => {
    await fixture.write({ jobs: jobs(200, (n) => ({ key: `k${n}` })) })
    const add = (count: number) => () => fixture.write({ jobs: jobs(count, (n) => ({ key: `k${n}` })) })
    await assertSame(add(1), add(200))
  })

  test('where one waits for all of them, by ids and by refs', async () => {
    const ids = (await fixture.write({ jobs: jobs(200, () => ({})) })).map((job) => job.id)
    const wait = (count: number) => () =>
      fixture.write({ jobs: jobs(1, () => ({ after: ids.slice(0, count) })) })
    await assertSame(wait(1), wait(200))
    const follow = (count: number) => () =>
      fixture.write({ jobs: jobs(count, () => ({})), followUp: jobs(1, () => ({}))[0]! })
    await assertSame(follow(1), follow(200))
  })

  test('where all wait for one', async () => {
    const gate = await fixture.add({})
    const wait = (count: number) => () => fixture.write({ jobs: jobs(count, () => ({ after: [gate] })) })
    await assertSame(wait(1), wait(200))
  })

  test('where the end of one ends those that wait for it, or makes them ready', async () => {
    const end = (event: 'succeed' | 'fail', count: number) => async () => {
      const gate = await fixture.claimed({ kind: 'last' }, { kinds: ['last'] })
      await fixture.write({ jobs: jobs(count, () => ({ after: [gate.id], onDepFailure: 'fail' })) })
      return statements(() => fixture.settle(gate, event))
    }
    for (const event of ['succeed', 'fail'] as const) {
      await end(event, 2)()
      assert.equal(await end(event, 200)(), await end(event, 2)(), event)
    }
  })

  test('where jobs are done whose attempts differ', async () => {
    const done = (count: number) => async () => {
      await fixture.write({ jobs: jobs(count, () => ({ kind: 'tried' })) })
      await fixture.force(`UPDATE jobs SET attempt = id % 7 WHERE kind = 'tried' AND state = 'pending'`)
      const claimed = await fixture.claim({ kinds: ['tried'] })
      assert.equal(new Set(claimed.map(({ attempt }) => attempt)).size, Math.min(count, 7))
      return statements(() => fixture.cycle({ settle: claimed.map((job) => ({ job, event: 'succeed' })) }))
    }
    for (const count of [1, 7]) await done(count)()
    assert.equal(await done(200)(), await done(1)())
  })
})
