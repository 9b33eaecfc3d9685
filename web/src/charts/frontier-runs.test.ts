import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FrontierView } from '../../../src/app/schemas.ts'
import { markCell, runsOf } from './frontier-runs.ts'

type Cell = FrontierView['cells'][number]
const cell = (from: number, state: Cell['state'], bad = 0): Cell => ({
  from,
  to: from + 10,
  segments: 1,
  settled: state === 'settled' ? 1 : 0,
  state,
  listed: 0,
  stored: 0,
  gone: 0,
  skipped: 0,
  bad,
})

test('neighbours of the same kind are one shape, and bad items stand out', () => {
  const cells = [
    cell(0, 'settled'),
    cell(10, 'settled'),
    cell(20, 'settled', 1),
    cell(30, 'active'),
    cell(40, 'waiting'),
  ]
  assert.deepEqual(runsOf(cells), [
    { kind: 'done', from: 0, cells: 2 },
    { kind: 'bad', from: 2, cells: 1 },
    { kind: 'active', from: 3, cells: 1 },
    { kind: 'waiting', from: 4, cells: 1 },
  ])
})

test('the mark stands between what is accounted for and the rest', () => {
  const cells = [cell(0, 'settled'), cell(10, 'active')]
  assert.equal(markCell({ cells, markAt: 0 }), 0)
  assert.equal(markCell({ cells, markAt: 10 }), 1)
  assert.equal(markCell({ cells, markAt: 15 }), 1.5)
  assert.equal(markCell({ cells, markAt: 99 }), 2)
  assert.equal(markCell({ cells: [], markAt: 0 }), 0)
})
