import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { histories, relive, type Step } from './paper-history.suite.ts'
import { FileStore } from './store/file-store.ts'

const RUNS = 600
const SHRINK_MS = 20_000

let ledger: Ledger
let store: FileStore

before(async () => {
  ledger = await openLedger('sqlite::memory:')
  store = await FileStore.open(ledger)
})

after(() => ledger.close())

test('whatever both sides do, crashes and stale looks included, they come to the same and lose nothing', async () => {
  const property = fc.asyncProperty(histories, (steps) => relive(store, steps))
  const { failed, seed, counterexample, errorInstance } = await fc.check(property, {
    ...{ numRuns: RUNS, interruptAfterTimeLimit: SHRINK_MS, markInterruptAsFailure: false },
  })
  const [steps] = counterexample ?? []
  assert.ok(!failed, `seed ${seed}: ${JSON.stringify(steps)}\n${String(errorInstance)}`)
})
