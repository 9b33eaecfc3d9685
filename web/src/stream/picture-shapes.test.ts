import assert from 'node:assert/strict'
import { test } from 'node:test'
import { badSigns, barsOf, cellAt, cellOffset, edgesOf, ticksOf } from './picture-shapes.ts'
import type { Cell } from './zoom.ts'

const cell = (from: number, to: number, listed = 0, stored = 0): Cell => ({
  from,
  to,
  segments: 1,
  settled: 0,
  state: 'waiting' as const,
  listed,
  stored,
  gone: 0,
  skipped: 0,
  bad: 0,
})

test('cells are as wide as the time they cover', () => {
  assert.deepEqual(edgesOf([cell(0, 10), cell(10, 20), cell(20, 40)]), [0, 250, 500, 1000])
  assert.deepEqual(edgesOf([cell(5, 10)]), [0, 1000])
})

test('a first cell that reaches back without an end is as long as the longest of the others', () => {
  assert.deepEqual(
    edgesOf([cell(0, 1e9), cell(1e9, 1e9 + 5), cell(1e9 + 5, 1e9 + 10)]).map(Math.round),
    [0, 333, 667, 1000],
  )
})

test('a cell of a few seconds is still seen', () => {
  const [, , start, end] = edgesOf([cell(0, 1e6), cell(1e6, 2e6), cell(2e6, 2e6 + 1)])
  assert.ok(end! - start! > 0.9)
})

test('a place in the picture and a cell are found from each other', () => {
  const edges = [0, 250, 500, 1000]
  assert.deepEqual(
    [-5, 0, 249, 250, 999, 1000, 2000].map((x) => cellAt(edges, x)),
    [0, 0, 0, 1, 2, 2, 2],
  )
  assert.deepEqual(
    [0, 0.5, 1, 2.5, 3].map((at) => cellOffset(edges, at)),
    [0, 125, 250, 750, 1000],
  )
})

test('bars are as high as there are items, split into what is accounted for and what is not', () => {
  const cells = [cell(0, 1, 100, 50), cell(1, 2, 25, 25), cell(2, 3)]
  assert.deepEqual(barsOf(cells, [0, 10, 20, 30], 100), {
    accounted: 'M0 50H10V100H0zM10 50H20V100H10z',
    open: 'M0 0H10V50H0z',
  })
  assert.deepEqual(barsOf([cell(0, 1)], [0, 1000], 100), { accounted: '', open: '' })
})

test('a minute of polling with a letter in it is no higher than the month before it', () => {
  const cells = [cell(0, 60, 3_000, 3_000), cell(60, 60.001, 3, 3)]
  const { accounted } = barsOf(cells, [0, 999, 1000], 100)
  const [first = '', second = ''] = accounted.split('z')
  const topOf = (path: string): number => Number(path.split(/[ H]/)[1])
  assert.ok(topOf(first) < topOf(second), accounted)
})

test('a day on which mail was listed again and again does not flatten the years beside it', () => {
  const years = Array.from({ length: 10 }, (_, at) => cell(at, at + 1, at % 2 === 0 ? 100 : 50, 100))
  const edges = [...years.map((_, at) => at * 99), 990, 1000]
  const { accounted } = barsOf([...years, cell(10, 10.01, 100_000, 100_000)], edges, 100)
  const tops = accounted.split('z').map((path) => Number(path.split(/[ H]/)[1]))
  assert.deepEqual([tops[0], Math.round(tops[1]!), tops[10]], [0, 29, 0])
})

test('signs of bad items stand where they are, and do not cover each other', () => {
  const bad = (from: number, n: number): Cell => ({ ...cell(from, from + 1, 10, 10), bad: n })
  const cells = Array.from({ length: 100 }, (_, at) => bad(at, at < 3 || at === 50 ? 1 : 0))
  assert.deepEqual(
    badSigns(
      cells,
      Array.from({ length: 101 }, (_, at) => at * 10),
    ),
    [5, 25, 505],
  )
})

test('dates under the picture do not touch', () => {
  assert.deepEqual(ticksOf([0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000], 5), [0, 2, 4, 6, 8])
  assert.deepEqual(ticksOf([0, 500, 990, 1000], 4), [0, 1])
})
