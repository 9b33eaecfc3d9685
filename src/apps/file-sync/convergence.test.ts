import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { histories, relive, type Step } from './paper-history.suite.ts'
import { FileStore } from './store/file-store.ts'

const RUNS = 600
/** On a slow machine fewer will do; and so long may the search for a shorter history of a failure take. */
const RUNS_MIN = 100
const TIME_MS = 30_000

let ledger: Ledger
let store: FileStore

before(async () => {
  ledger = await openLedger('sqlite::memory:')
  store = await FileStore.open(ledger)
})

after(() => ledger.close())

test('whatever both sides do, crashes and stale looks included, they come to the same and lose nothing', async () => {
  const property = fc.asyncProperty(histories, (steps) => relive(store, steps))
  const { failed, seed, numRuns, counterexample, errorInstance } = await fc.check(property, {
    ...{ numRuns: RUNS, interruptAfterTimeLimit: TIME_MS },
  })
  const [steps] = counterexample ?? []
  assert.ok(!failed, `seed ${seed}: ${JSON.stringify(steps)}\n${String(errorInstance)}`)
  assert.ok(numRuns >= RUNS_MIN, `only ${numRuns} histories`)
})

/** Each of them once ended otherwise. */
const REMEMBERED: [string, Step[]][] = [
  [
    'an upload whose item was deleted and replaced before its end was written is not taken for there',
    [
      { do: 'settle' },
      { do: 'make', side: 'here', type: 'file', to: 0, name: 0 },
      { do: 'look', steps: 2 },
      { do: 'plan' },
      {
        ...{ do: 'run', pick: 0, isCrash: false, before: [] },
        between: [
          { do: 'replace', side: 'there', at: 0 },
          { do: 'hear', pageSize: 1, isTwice: false },
        ],
      },
    ],
  ],
  [
    'a folder that was deleted here comes back when another was moved into it in OneDrive',
    [
      { do: 'make', side: 'here', type: 'folder', to: 0, name: 0 },
      { do: 'make', side: 'there', type: 'folder', to: 0, name: 1 },
      { do: 'settle' },
      { do: 'delete', side: 'here', at: 1 },
      { do: 'move', side: 'there', at: 1, to: 1, name: 0 },
    ],
  ],
  [
    'an item that was moved back before the end of our own move was written is where OneDrive has it',
    [
      { do: 'make', side: 'here', type: 'file', to: 0, name: 2 },
      { do: 'settle' },
      { do: 'rename', side: 'here', at: 0, name: 0 },
      { do: 'look', steps: 1_000 },
      { do: 'plan' },
      {
        ...{ do: 'run', pick: 0, isCrash: false, before: [] },
        between: [
          { do: 'move', side: 'there', at: 0, to: 0, name: 2 },
          { do: 'hear', pageSize: 1_000, isTwice: false },
        ],
      },
    ],
  ],
  [
    'what is in a folder that was found deleted is deleted with it, though nobody says so',
    [
      { do: 'make', side: 'here', type: 'folder', to: 0, name: 6 },
      { do: 'settle' },
      { do: 'delete', side: 'here', at: 0 },
      { do: 'make', side: 'there', type: 'file', to: 1, name: 0 },
      { do: 'look', steps: 8 },
      { do: 'plan' },
      {
        ...{ do: 'run', pick: 0, isCrash: false, between: [] },
        before: [
          { do: 'hear', pageSize: 1_000, isTwice: false },
          { do: 'delete', side: 'there', at: 0 },
        ],
      },
    ],
  ],
]

for (const [title, steps] of REMEMBERED) test(title, () => relive(store, steps))
