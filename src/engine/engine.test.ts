import { openLedger } from '../ledger/open.ts'
import { engineContract } from './engine.suite.ts'

engineContract('SQLite in memory', async () => {
  const ledger = await openLedger('sqlite::memory:')
  return { ledger, close: () => ledger.close() }
})
