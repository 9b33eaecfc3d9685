import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import { sleep, systemClock } from '../../base/clock.ts'
import type { Effects, RowLocks, Work } from '../contract.ts'
import { postgresHome } from '../home.suite.ts'
import { LedgerFixture } from '../ledger-fixture.suite.ts'

const home = postgresHome()
let fixture: LedgerFixture
/** Whose effects have run, as often as they did: a transaction that met a deadlock runs again. */
let runs: string[]
beforeEach(async () => {
  fixture = await LedgerFixture.open(home)
  await fixture.force(`CREATE TABLE counted (name TEXT PRIMARY KEY, n BIGINT NOT NULL)`)
  await fixture.force(`INSERT INTO counted(name, n) VALUES ('a', 0), ('b', 0)`)
  runs = []
})
afterEach(async () => {
  await fixture.checkBooks()
  await fixture.close()
})
after(() => home.remove())

const lock: RowLocks['lock'] = async (tx, keys) => {
  const names = JSON.stringify(keys)
  await tx.run(
    `SELECT 1 FROM counted WHERE name = ANY(ARRAY(SELECT jsonb_array_elements_text(?::jsonb))) ORDER BY name FOR UPDATE`,
    [names],
  )
}

/** Goes on when the other one is as far, or waits for a row that somebody has locked. */
function meeting(): () => Promise<void> {
  let arrived = 0
  const isWaiting = async (): Promise<boolean> => {
    const rows = await fixture.sql<{ n: number }>(
      `SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    )
    return rows[0]!.n > 0
  }
  return async () => {
    arrived += 1
    while (arrived < 2 && !(await isWaiting())) await sleep(systemClock, 5)
  }
}

function counting(who: string, name: string, meet: () => Promise<void> = async () => {}): Work {
  const effects: Effects = async (tx) => {
    runs.push(`${who} ${name}`)
    await tx.run(`UPDATE counted SET n = n + 1 WHERE name = ?`, [name])
    await meet()
  }
  return { effects, locks: { lock, keys: [name] } }
}

describe('two processes that commit at the same time', () => {
  test('wait for each other one way, whatever the order of their outcomes', async () => {
    const meet = meeting()
    const [one, two] = [await fixture.claimed(), await fixture.claimed()]
    const [three, four] = [await fixture.claimed(), await fixture.claimed()]
    await Promise.all([
      fixture.cycle({
        settle: [
          { job: one, event: 'succeed', work: counting('first', 'a', meet) },
          { job: two, event: 'succeed', work: counting('first', 'b') },
        ],
      }),
      fixture.cycle({
        settle: [
          { job: three, event: 'succeed', work: counting('second', 'b', meet) },
          { job: four, event: 'succeed', work: counting('second', 'a') },
        ],
      }),
    ])
    assert.deepEqual(runs.toSorted(), ['first a', 'first b', 'second a', 'second b'])
  })

  test('one that ends a job and one that enqueues its key wait for each other one way', async () => {
    const meet = meeting()
    const job = await fixture.claimed({ key: 'k' })
    await Promise.all([
      fixture.cycle({
        work: [{ ...counting('enqueues', 'a', meet), jobs: [{ kind: 'job', key: 'k', payload: '{}' }] }],
      }),
      fixture.cycle({ settle: [{ job, event: 'succeed', work: counting('ends', 'a', meet) }] }),
    ])
    assert.deepEqual(runs.toSorted(), ['ends a', 'enqueues a'])
  })
})

test('what is enqueued together is written in the order of its turns, and answered in its own', async () => {
  const { work } = await fixture.cycle({
    work: ['c', 'a', undefined, 'b'].map((turn, n) => ({
      ...counting(`${turn}`, 'a'),
      ...(turn !== undefined && { turn }),
      jobs: [{ kind: 'job', key: `k${n}`, payload: '{}' }],
    })),
  })
  assert.deepEqual(runs, ['undefined a', 'a a', 'b a', 'c a'])
  const ids = work.map((answer) => (answer.status === 'held' ? answer.jobs[0]!.id : 0))
  const keys = await fixture.sql<{ id: number; key: string }>(`SELECT id, key FROM jobs ORDER BY key`)
  assert.deepEqual(
    ids,
    keys.map(({ id }) => id),
  )
})
