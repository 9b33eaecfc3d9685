import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase } from '../../scripts/test-database.ts'
import { systemClock } from '../clock.ts'
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
  return {
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
