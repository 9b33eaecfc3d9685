import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { freshDatabase } from '../../scripts/test-database.ts'
import { systemClock } from '../base/clock.ts'
import { budgetStoreSuite, type OpenBudgets } from './budgets.suite.ts'
import type { BudgetStore } from './contract-budgets.ts'
import type { Ledger } from './ledger.ts'
import { openLedger } from './open.ts'
import { SqlBudgetStore } from './sql-budgets.ts'

/** The store goes by the ledger's clock; here that clock shows whatever time the caller names. */
async function openAt(url: string): Promise<{ store: BudgetStore; ledger: Ledger }> {
  let nowMs = 0
  const clock = { ...systemClock, now: () => nowMs }
  const ledger = await openLedger(url, { clock })
  const sql = new SqlBudgetStore(ledger.driver)
  const at =
    <A, B>(fn: (what: A) => Promise<B>) =>
    (what: A, callerMs: number): Promise<B> => {
      nowMs = callerMs
      return fn(what)
    }
  return {
    ledger,
    store: { draw: at((d) => sql.draw(d)), tune: at((t) => sql.tune(t)), list: () => sql.list() },
  }
}

async function openTwice(url: string, cleanUp: () => Promise<void>): Promise<OpenBudgets> {
  const one = await openAt(url)
  const two = await openAt(url)
  const owner = await one.ledger.register({ host: 'h', pid: 1, pidStart: '', name: 'w' }, 60_000)
  return {
    owner,
    store: one.store,
    other: two.store,
    close: async () => {
      await one.ledger.close()
      await two.ledger.close()
      await cleanUp()
    },
  }
}

budgetStoreSuite('a SQLite file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-budgets-'))
  return openTwice(`sqlite:${join(folder, 'ledger.db')}`, async () => rmSync(folder, { recursive: true }))
})

budgetStoreSuite('PostgreSQL', async () => {
  const database = await freshDatabase()
  return openTwice(database.url, () => database.drop())
})

for (const [name, open] of [
  ['SQLite', async () => ({ ledger: await openLedger('sqlite::memory:'), drop: async () => {} })],
  [
    'PostgreSQL',
    async () => {
      const { url, drop } = await freshDatabase()
      return { ledger: await openLedger(url), drop }
    },
  ],
] as const) {
  test(`on ${name}, slots go with the lease of their holder: kept in silence, free once it is gone`, async () => {
    const { ledger, drop } = await open()
    const store = new SqlBudgetStore(ledger.driver)
    const start = { rate: 100, burst: 50, controller: '' }
    const worker = { host: 'h', pid: 1, pidStart: '', name: 'w' }
    const draw = async (owner: number) => {
      const workers = { owner, running: 0, workersWanted: 1, slots: 0, workersMax: 1 }
      return (
        await store.draw({
          name: 'b',
          member: `m${owner}`,
          want: 0,
          giveBack: 0,
          leave: false,
          start,
          ...workers,
        })
      ).slots
    }
    const owners = [await ledger.register(worker, 60_000), await ledger.register(worker, 60_000)] as const
    assert.equal(await draw(owners[0]), 1)
    // As if it had been silent for an hour: its event loop is blocked, its heartbeat goes on.
    await ledger.transaction(async (tx) => {
      const sql = 'SELECT controller FROM budgets'
      const row = JSON.parse((await tx.get<{ controller: string }>(sql))!.controller)
      row.members[0].seenMs -= 3_600_000
      await tx.run('UPDATE budgets SET controller = ?', [JSON.stringify(row)])
    })
    assert.equal(await draw(owners[1]), 0)
    await ledger.retire(owners[0])
    assert.equal(await draw(owners[1]), 1)
    const [row] = await store.list()
    assert.deepEqual(
      row!.members.map(({ id }) => id),
      [`m${owners[1]}`],
    )
    await ledger.close()
    await drop()
  })
}
