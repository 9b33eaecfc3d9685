import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { histories, relive, type Step } from './paper-history.suite.ts'
import { FileStore } from './store/file-store.ts'

/** As many on a slow machine as on a fast one; `npm run oracle -- files` lives through more. */
const RUNS = 200

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
    numRuns: RUNS,
    // Shrinking has no bound, and a run that is ended for its silence would not say the seed.
    endOnFailure: true,
  })
  const [steps] = counterexample ?? []
  assert.ok(!failed, `seed ${seed}: ${JSON.stringify(steps)}\n${String(errorInstance)}`)
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
        do: 'run',
        pick: 0,
        isCrash: false,
        before: [],
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
        do: 'run',
        pick: 0,
        isCrash: false,
        before: [],
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
        do: 'run',
        pick: 0,
        isCrash: false,
        between: [],
        before: [
          { do: 'hear', pageSize: 1_000, isTwice: false },
          { do: 'delete', side: 'there', at: 0 },
        ],
      },
    ],
  ],
  [
    'a copy that was set aside and exchanged with another before that was written down is where a look saw it',
    [
      { do: 'make', side: 'here', type: 'file', to: 0, name: 0 },
      { do: 'replace', side: 'here', at: 0 },
      { do: 'make', side: 'here', type: 'folder', to: 7, name: 2 },
      { do: 'make', side: 'here', type: 'file', to: 0, name: 1 },
      { do: 'copy', side: 'there', at: 0, to: 0, name: 0 },
      { do: 'move', side: 'here', at: 11, to: 25, name: 6 },
      { do: 'settle' },
      { do: 'make', side: 'here', type: 'file', to: 8, name: 0 },
      { do: 'replace', side: 'there', at: 6 },
      { do: 'copy', side: 'there', at: 0, to: 3, name: 3 },
      { do: 'hear', pageSize: 1_000, isTwice: false },
      { do: 'glance', at: 11 },
      { do: 'plan' },
      {
        do: 'run',
        pick: 3,
        isCrash: false,
        before: [{ do: 'run', pick: 0, isCrash: false, before: [], between: [] }],
        between: [
          { do: 'swap', side: 'here', at: 7, with: 23 },
          { do: 'look', steps: 1_000 },
        ],
      },
    ],
  ],
  [
    'what a look saw in a folder that was settled as deleted meanwhile is looked at again',
    [
      { do: 'make', side: 'here', type: 'folder', to: 0, name: 0 },
      { do: 'settle' },
      { do: 'rename', side: 'here', at: 0, name: 1 },
      { do: 'delete', side: 'there', at: 0 },
      { do: 'make', side: 'here', type: 'file', to: 7, name: 0 },
      { do: 'look', steps: 2 },
      { do: 'hear', pageSize: 1, isTwice: false },
      { do: 'plan' },
      { do: 'replace', side: 'here', at: 0 },
      {
        do: 'run',
        pick: 0,
        isCrash: false,
        between: [],
        before: [
          { do: 'make', side: 'there', type: 'file', to: 0, name: 0 },
          { do: 'hear', pageSize: 1_000, isTwice: false },
        ],
      },
    ],
  ],
  [
    'a copy that a look has entered as something new before that was written down is not entered twice',
    [
      { do: 'settle' },
      { do: 'make', side: 'here', type: 'file', to: 0, name: 1 },
      { do: 'make', side: 'there', type: 'file', to: 0, name: 0 },
      { do: 'make', side: 'here', type: 'file', to: 0, name: 6 },
      { do: 'look', steps: 1_000 },
      { do: 'plan' },
      {
        do: 'run',
        pick: 0,
        isCrash: true,
        before: [{ do: 'move', side: 'here', at: 0, to: 0, name: 0 }],
        between: [{ do: 'make', side: 'here', type: 'file', to: 0, name: 2 }],
      },
      { do: 'edit', side: 'here', at: 0 },
      { do: 'look', steps: 2 },
      {
        do: 'run',
        pick: 0,
        isCrash: true,
        before: [
          { do: 'make', side: 'here', type: 'file', to: 0, name: 6 },
          { do: 'look', steps: 1_000 },
        ],
        between: [
          { do: 'swap', side: 'there', at: 2, with: 13 },
          { do: 'hear', pageSize: 1_000, isTwice: false },
          { do: 'run', pick: 15, isCrash: false, before: [], between: [] },
        ],
      },
      {
        do: 'run',
        pick: 0,
        isCrash: true,
        before: [{ do: 'plan' }, { do: 'run', pick: 13, isCrash: false, before: [], between: [] }],
        between: [
          { do: 'edit', side: 'here', at: 0 },
          { do: 'look', steps: 1_000 },
        ],
      },
      {
        do: 'run',
        pick: 26,
        isCrash: false,
        before: [],
        between: [
          { do: 'rename', side: 'here', at: 1, name: 0 },
          { do: 'look', steps: 1_000 },
        ],
      },
      { do: 'look', steps: 1_000 },
      {
        do: 'run',
        pick: 26,
        isCrash: true,
        before: [{ do: 'make', side: 'there', type: 'folder', to: 18, name: 0 }],
        between: [{ do: 'run', pick: 24, isCrash: true, before: [], between: [] }],
      },
      { do: 'rename', side: 'here', at: 27, name: 2 },
    ],
  ],
  [
    'a plan that detaches a file and so leaves its place to be compared with another item comes to its end',
    [
      { do: 'make', side: 'here', type: 'file', to: 0, name: 1 },
      { do: 'settle' },
      { do: 'make', side: 'here', type: 'file', to: 0, name: 2 },
      { do: 'copy', side: 'here', at: 0, to: 0, name: 0 },
      { do: 'settle' },
      { do: 'delete', side: 'there', at: 0 },
      { do: 'delete', side: 'there', at: 0 },
      { do: 'again', side: 'there', at: 0 },
      { do: 'settle' },
      { do: 'again', side: 'there', at: 0 },
      { do: 'edit', side: 'here', at: 0 },
      { do: 'copy', side: 'here', at: 0, to: 0, name: 6 },
    ],
  ],
  [
    'what an interrupted exchange of names has left of a deleted item is no copy of a file with its name and content',
    [
      { do: 'make', side: 'here', type: 'file', to: 0, name: 0 },
      { do: 'make', side: 'here', type: 'file', to: 0, name: 1 },
      { do: 'settle' },
      { do: 'swap', side: 'there', at: 1, with: 0 },
      { do: 'look', steps: 1 },
      { do: 'move', side: 'here', at: 0, to: 0, name: 4 },
      { do: 'look', steps: 2 },
      { do: 'hear', pageSize: 2, isTwice: false },
      { do: 'plan' },
      { do: 'look', steps: 8 },
      { do: 'replace', side: 'there', at: 0 },
      { do: 'run', pick: 0, isCrash: true, before: [], between: [] },
      { do: 'copy', side: 'there', at: 0, to: 0, name: 4 },
    ],
  ],
  [
    'a file that is planned while the conflict with the item of its name is left undecided does not wait for ever',
    [
      { do: 'ask' },
      { do: 'make', side: 'here', type: 'file', to: 0, name: 0 },
      { do: 'make', side: 'there', type: 'file', to: 0, name: 0 },
      { do: 'hear', pageSize: 1_000, isTwice: false },
      { do: 'look', steps: 1_000 },
      { do: 'plan' },
      { do: 'look', steps: 1_000 },
      { do: 'plan', between: [{ do: 'run', pick: 0, isCrash: false, before: [], between: [] }] },
    ],
  ],
]

for (const [title, steps] of REMEMBERED) test(title, () => relive(store, steps))
