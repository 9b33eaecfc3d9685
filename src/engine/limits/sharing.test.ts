import { MemoryBudgetStore } from '../../ledger/memory-budgets.ts'
import { budgetSharingSuite } from './sharing.suite.ts'

budgetSharingSuite('memory', async () => ({ store: new MemoryBudgetStore(), close: async () => {} }))
