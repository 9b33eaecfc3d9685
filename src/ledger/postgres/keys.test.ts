/** Races that only PostgreSQL has, held at the instant at which they hurt. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { sleep, systemClock } from '../../base/clock.ts'
import { seededRandom } from '../../base/random.ts'
import type { ClaimedJob, NewJob, Tx } from '../contract.ts'
import { outside } from '../guard.ts'
import { Ledger } from '../ledger.ts'
import { openPostgres } from './open.ts'

let database: TestDatabase
let ledger: Ledger
let other: Ledger
let owner: number
before(async () => {
  database = await freshDatabase()
  const open = async (seed: number): Promise<Ledger> =>
    new Ledger(await openPostgres({ url: database.url, clock: systemClock }), { random: seededRandom(seed) })
  ledger = await open(1)
  other = await open(2)
  owner = await ledger.register({ host: 'here', pid: 1, pidStart: 'then', name: 'first' }, 60_000)
})
after(async () => {
  await ledger.close()
  await other.close()
  await database.drop()
})

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

async function claimed(more: Partial<NewJob>): Promise<ClaimedJob> {
  const [added] = await ledger.write({ jobs: [job(more)] })
  const claim = { owner, room: { interactive: 10, bulk: 10 }, kinds: new Set(['job']) }
  const { claimed: jobs } = await ledger.cycle({ owner, claim })
  return jobs.find((one) => one.id === added!.id)!
}

/** Writes without committing until `during`, which is as if in another process, has begun and waits for its lock. */
async function uncommitted<T>(write: (tx: Tx) => Promise<unknown>, during: () => Promise<T>): Promise<T> {
  let running: Promise<T> | undefined
  await ledger.transaction(async (tx) => {
    await write(tx)
    running ??= outside(during)
    for (;;) {
      const waiting = await ledger.driver.read((look) => look.all(`SELECT 1 FROM pg_locks WHERE NOT granted`))
      if (waiting.length > 0) return
      await sleep(systemClock, 5)
    }
  })
  return running!
}

describe('a key on PostgreSQL', () => {
  test('an enqueue that waited for a cancel to commit waits for the job to stop', async () => {
    const running = await claimed({ key: 'canceled' })
    const [added] = await uncommitted(
      (tx) => tx.run(`UPDATE jobs SET cancel_requested = 1 WHERE id = ?`, [running.id]),
      () => other.write({ jobs: [job({ key: 'canceled' })] }),
    )
    const detail = await ledger.job(added!.id)
    assert.deepEqual([detail!.job.wait, detail!.job.deps_left], ['deps', 1])
    assert.equal(detail!.waitsFor[0]!.id, running.id)
    await ledger.cycle({ owner, settle: [{ job: running, event: 'stop' }] })
    assert.equal((await ledger.job(added!.id))!.job.wait, null)
    assert.deepEqual(await ledger.tallies(), await ledger.countedTallies())
  })

  test('an enqueue that waited for a split to commit waits for the halves', async () => {
    const running = await claimed({ key: 'split' })
    const [half] = await ledger.write({ jobs: [job()] })
    const [added] = await uncommitted(
      async (tx) => {
        await tx.run(`UPDATE jobs SET cancel_requested = 1 WHERE id = ?`, [running.id])
        await tx.run(`UPDATE jobs SET split_key = 'split' WHERE id = ?`, [half!.id])
      },
      () => other.write({ jobs: [job({ key: 'split' })] }),
    )
    const { waitsFor } = (await ledger.job(added!.id))!
    assert.deepEqual(
      waitsFor.map((dep) => dep.id),
      [running.id, half!.id],
    )
  })
})

describe('due jobs on PostgreSQL', () => {
  test('a due job that another transaction has locked is left for later', async () => {
    const [added] = await ledger.write({ jobs: [job({ runAt: ledger.now() + 3_600_000 })] })
    await ledger.transaction((tx) => tx.run(`UPDATE jobs SET run_at = 1 WHERE id = ?`, [added!.id]))
    await ledger.transaction(async (tx) => {
      await tx.get(`SELECT id FROM jobs WHERE id = ? FOR UPDATE`, [added!.id])
      const { woken, nextDueAt } = await outside(() => other.wakeDue())
      assert.equal(woken, 0)
      assert.ok(nextDueAt! > other.now() - 1_000, 'and not at once')
    })
    assert.equal((await other.wakeDue()).woken, 1)
  })
})
