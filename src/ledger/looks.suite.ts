/** The contract of looks that outcomes share, or that go ahead of them: one that fails is laid to no outcome. */
import assert from 'node:assert/strict'
import type { ClaimedJob } from './contract.ts'
import type { LedgerFixture, LedgerTest } from './ledger-fixture.suite.ts'

async function claimMany(fixture: LedgerFixture, n: number): Promise<ClaimedJob[]> {
  await fixture.write({ jobs: Array.from({ length: n }, () => ({ kind: 'job', payload: '{}' })) })
  return fixture.claim()
}

export function lookContract(test: LedgerTest): void {
  test('a look at several outcomes that fails for none of them is laid to none; all commit', async (fixture) => {
    const jobs = await claimMany(fixture, 70)
    const { driver } = fixture.ledger
    const savepoint = driver.savepoint.bind(driver)
    driver.savepoint = (tx, fn) => {
      const all = tx.all.bind(tx)
      tx.all = (sql, params = []) => {
        const isShared = tx.isRemote && /cancel_requested FROM jobs/.test(sql) && /,/.test(String(params[0]))
        return all(isShared ? `SELECT * FROM nowhere` : sql, isShared ? [] : params)
      }
      return savepoint(tx, fn).finally(() => {
        tx.all = all
      })
    }
    const error = { kind: 'transient' as const, message: 'away' }
    const { settled } = await fixture.cycle({
      settle: jobs.map((one) => ({ job: one, event: 'fail', error })),
      claim: fixture.claimRequest(),
    })
    assert.deepEqual([...new Set(settled.map((one) => one.status))], ['held'])
    assert.deepEqual([...new Set(await fixture.stages(...jobs.map((one) => one.id)))], ['failed'])
  })

  for (const count of [1, 5])
    test(`where the look at what there is to claim fails, ${count} with it commit, and it is looked again`, async (fixture) => {
      const jobs = await claimMany(fixture, count)
      await fixture.add({ kind: 'other' })
      const { driver } = fixture.ledger
      const readyQueues = driver.readyQueues.bind(driver)
      let looks = 0
      driver.readyQueues = async (tx, ...more) => {
        looks += 1
        if (looks === 1) await tx.all(`SELECT * FROM nowhere`)
        return readyQueues(tx, ...more)
      }
      const error = { kind: 'transient' as const, message: 'away' }
      const { settled, claimed } = await fixture.cycle({
        settle: jobs.map((one) => ({ job: one, event: 'fail', error })),
        claim: fixture.claimRequest(),
      })
      assert.deepEqual(
        settled.map((one) => one.status),
        jobs.map(() => 'held'),
      )
      assert.equal(claimed.length, 1)
    })
}
