/** A server may end a transaction that takes too long (libSQL: five seconds). Here it does after so many effects. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TidemarkError } from '../base/errors.ts'
import { type ClaimedJob, type Effects, LONG_CODE, type Settlement } from './contract.ts'
import { memoryHome } from './home.suite.ts'
import { LedgerFixture } from './ledger-fixture.suite.ts'

async function withFixture(fn: (fixture: LedgerFixture) => Promise<void>): Promise<void> {
  const home = memoryHome()
  const fixture = await LedgerFixture.open(home)
  try {
    await fn(fixture)
    await fixture.checkBooks()
  } finally {
    await fixture.close()
    await home.remove()
  }
}

/** From now on; counts the transactions. What is over cannot be undone in part: the error is that of the whole. */
function limitEffects(fixture: LedgerFixture, max: number): { effects: Effects; transactions: () => number } {
  const { driver } = fixture.ledger
  const transaction = driver.transaction.bind(driver)
  let transactions = 0
  let run = 0
  driver.transaction = (fn, options) => {
    transactions += 1
    run = 0
    return transaction(fn, options)
  }
  driver.savepoint = async (_tx, fn) => {
    await fn()
    return undefined
  }
  const effects: Effects = async (tx) => {
    run += 1
    if (run > max) throw new TidemarkError('It took too long.', { kind: 'transient', code: LONG_CODE })
    await tx.run(`INSERT INTO seen VALUES (1)`)
  }
  return { effects, transactions: () => transactions }
}

async function claimed(fixture: LedgerFixture, count: number): Promise<ClaimedJob[]> {
  await fixture.force(`CREATE TABLE seen (n INTEGER)`)
  await fixture.write({ jobs: Array.from({ length: count }, () => ({ kind: 'job', payload: '{}' })) })
  return fixture.claim({ n: count })
}

test('a group that takes too long is cut until its parts do not, at the cost of none of them', () =>
  withFixture(async (fixture) => {
    const jobs = await claimed(fixture, 64)
    const { effects, transactions } = limitEffects(fixture, 4)
    const settle = jobs.map((job): Settlement => ({ job, event: 'succeed', work: { effects } }))
    const { settled } = await fixture.cycle({ settle })
    assert.ok(settled.every(({ status }) => status === 'held'))
    assert.equal(await fixture.count('seen'), 64)
    // Sixteen that end well, and fifteen that were too long: one for each cut.
    assert.equal(transactions(), 31)
  }))

test('one that takes too long alone now and then is written again, at no cost', () =>
  withFixture(async (fixture) => {
    const jobs = await claimed(fixture, 2)
    const { effects } = limitEffects(fixture, 2)
    let slow = 3
    const slowAtFirst: Effects = async (tx) => {
      for (let n = slow-- > 0 ? 0 : 2; n < 3; n++) await effects(tx)
    }
    const settle = jobs.map((job): Settlement => ({ job, event: 'succeed', work: { effects: slowAtFirst } }))
    const { settled } = await fixture.cycle({ settle })
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['held', 'held'],
    )
    assert.equal(await fixture.count('seen'), 2)
  }))

test('whoever takes too long alone has that for an answer, and the others are written', () =>
  withFixture(async (fixture) => {
    const jobs = await claimed(fixture, 8)
    const { effects } = limitEffects(fixture, 4)
    const long: Effects = async (tx) => {
      for (let n = 0; n < 5; n++) await effects(tx)
    }
    const settle = jobs.map(
      (job, at): Settlement => ({ job, event: 'succeed', work: { effects: at === 3 ? long : effects } }),
    )
    const { settled } = await fixture.cycle({ settle })
    assert.deepEqual(
      settled.map(({ status }) => status),
      jobs.map((_, at) => (at === 3 ? 'error' : 'held')),
    )
    assert.equal(await fixture.count('seen'), 7)
  }))
