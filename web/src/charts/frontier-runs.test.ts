import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FrontierView } from '../../../src/app/schemas.ts'
import { type Box, badBoxes, markCell, runsOf } from './frontier-runs.ts'

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

test('neighbours of the same kind are one shape', () => {
  const cells = [
    cell(0, 'settled'),
    cell(10, 'settled'),
    cell(20, 'settled', 1),
    cell(30, 'active'),
    cell(40, 'waiting'),
  ]
  assert.deepEqual(runsOf(cells), [
    { kind: 'done', from: 0, cells: 3 },
    { kind: 'active', from: 3, cells: 1 },
    { kind: 'waiting', from: 4, cells: 1 },
  ])
})

const areaOf = (boxes: readonly Box[]): number =>
  boxes.reduce((sum, { width, height }) => sum + width * height, 0)

test('red is as much of the picture as is bad: seen, and not exaggerated', () => {
  const edges = Array.from({ length: 61 }, (_, at) => (at * 1000) / 60)
  const month = (at: number, bad: number): Cell => ({
    ...cell(at, 'settled', bad),
    listed: 60,
    stored: 60 - bad,
  })
  const months = (bad: (at: number) => number): Cell[] => edges.slice(1).map((_, at) => month(at, bad(at)))
  // Two of 3,600: two ticks, which can be seen and are far less than the two months that they are in.
  const few = badBoxes(
    months((at) => (at === 3 || at === 40 ? 1 : 0)),
    edges,
    10,
  )
  assert.equal(few.length, 2)
  assert.ok(few.every(({ width, height }) => width >= 3 && height >= 2))
  assert.ok(areaOf(few) / 10_000 < 0.002, `${areaOf(few) / 100} %`)
  for (const bad of [15, 30, 60]) {
    const half = badBoxes(
      months((at) => (at % 2 === 0 ? bad : 0)),
      edges,
      10,
    )
    assert.ok(Math.abs(areaOf(half) / 10_000 - bad / 120) < 1e-9, `${bad} of 60 in every other month`)
  }
  const boxes = badBoxes(
    months(() => 1),
    edges,
    10,
  )
  assert.ok(
    boxes.every(
      ({ x, y, width, height }, at) =>
        x >= edges[at]! && x + width <= edges[at + 1]! + 1e-9 && y + height === 10,
    ),
  )
})

test('the mark stands between what is accounted for and the rest', () => {
  const cells = [cell(0, 'settled'), cell(10, 'active')]
  assert.equal(markCell({ cells, markAt: 0 }), 0)
  assert.equal(markCell({ cells, markAt: 10 }), 1)
  assert.equal(markCell({ cells, markAt: 15 }), 1.5)
  assert.equal(markCell({ cells, markAt: 99 }), 2)
  assert.equal(markCell({ cells: [], markAt: 0 }), 0)
})
