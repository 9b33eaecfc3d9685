import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Cell, closer, isClose, moved, stretchFrom, stretchOf, wider } from './zoom.ts'

const cellsOf = (count: number, segments = 1): Cell[] =>
  Array.from({ length: count }, (_, at) => ({
    from: at * 10,
    to: at * 10 + 10,
    segments,
    settled: 0,
    state: 'waiting' as const,
    listed: 0,
    stored: 0,
    gone: 0,
    skipped: 0,
    bad: 0,
  }))

test('a stretch goes from one cell to another, in either order', () => {
  const cells = cellsOf(10)
  assert.deepEqual(stretchOf(cells, 2, 4), { from: 20, to: 50 })
  assert.deepEqual(stretchOf(cells, 4, 2), { from: 20, to: 50 })
  assert.deepEqual(stretchOf(cells, -3, 99), { from: 0, to: 100 })
  assert.equal(stretchOf([], 0, 0), undefined)
})

test('each step shows less around the same place, until slices stand alone', () => {
  assert.deepEqual(closer(cellsOf(80), 40), { from: 350, to: 450 })
  assert.deepEqual(closer(cellsOf(80), 0), { from: 0, to: 100 })
  assert.deepEqual(closer(cellsOf(80), 79), { from: 700, to: 800 })
  assert.equal(closer(cellsOf(6), 3), undefined)
  assert.equal(isClose(cellsOf(6, 2)), false)
  assert.deepEqual(closer(cellsOf(6, 2), 3), { from: 30, to: 40 })
})

test('going back out ends with the whole, and moving stays inside', () => {
  const whole = { from: 0, to: 1000 }
  assert.deepEqual(wider({ from: 500, to: 510 }, whole), { from: 465, to: 545 })
  assert.equal(wider({ from: 100, to: 600 }, whole), undefined)
  assert.deepEqual(moved({ from: 100, to: 200 }, whole, 1), { from: 150, to: 250 })
  assert.deepEqual(moved({ from: 20, to: 120 }, whole, -1), { from: 0, to: 100 })
  assert.deepEqual(moved({ from: 880, to: 980 }, whole, 1), { from: 900, to: 1000 })
})

test('an address that makes no sense shows the whole', () => {
  assert.deepEqual(stretchFrom('-5', '10'), { from: -5, to: 10 })
  for (const [from, to] of [
    ['', ''],
    ['5', '5'],
    ['9', '1'],
    ['a', '2'],
    ['1', '1e9'],
  ] as const) {
    assert.equal(stretchFrom(from, to), undefined)
  }
})
