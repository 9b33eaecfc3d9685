import assert from 'node:assert/strict'
import { test } from 'node:test'
import { budgetColumns, budgetRow } from './budget-row.ts'
import { budgetStoreSuite } from './budgets.suite.ts'
import { MemoryBudgetStore } from './memory-budgets.ts'

budgetStoreSuite('memory', async () => {
  const store = new MemoryBudgetStore()
  return { store, other: store, owner: 1, close: async () => {} }
})

test('a budget row survives its columns, whole numbers as text or bigint included', async () => {
  const store = new MemoryBudgetStore()
  const start = { rate: 3, burst: 7, controller: '{"v":1}' }
  const workers = { owner: 1, running: 2, workersWanted: 3, slots: 0, workersMax: 8 }
  await store.draw(
    { name: 'b', member: 'm', want: 0.5, giveBack: 0, ...workers, leave: false, start },
    1_800_000_000_000,
  )
  const [row] = await store.list()
  assert.ok(row)
  const columns = budgetColumns(row)
  assert.deepEqual(Object.keys(columns), ['name', 'tokens', 'updated_at', 'controller', 'version'])
  assert.deepEqual(budgetRow(columns), row)
  const asText = { ...columns, updated_at: String(columns.updated_at), version: BigInt(columns.version) }
  assert.deepEqual(budgetRow(asText), row)
})
