import assert from 'node:assert/strict'
import { test } from 'node:test'
import { budgetNames, columnsOf, joinPoints, type SeriesPoint, sinceOf, tableRows } from './series-window.ts'

const point = (at: number, rate = at): SeriesPoint => ({ at, rate, running: 0, waiting: 0, budgets: {} })
const span = { stepS: 1, windowS: 10 }

test('new points join, the last one is replaced, and old ones leave', () => {
  const joined = joinPoints([point(1), point(2), point(3, 30)], [point(3), point(4), point(12)], 10)
  assert.deepEqual(
    joined.map(({ at, rate }) => [at, rate]),
    [
      [2, 2],
      [3, 3],
      [4, 4],
      [12, 12],
    ],
  )
})

test('an answer without points changes nothing', () => {
  assert.deepEqual(joinPoints([point(1)], [], 10), [point(1)])
})

test('the whole window is asked for once, then only from the last point on', () => {
  assert.equal(sinceOf([], span, 100.7), 90)
  assert.equal(sinceOf([point(97)], span, 100.7), 96)
  assert.equal(sinceOf([point(20)], span, 100.7), 90)
})

test('a gap in the measurements is a gap in the line', () => {
  const columns = columnsOf([point(1), point(2), point(60)], [({ rate }) => rate, () => undefined], 1)
  assert.deepEqual(columns, [
    [1, 2, 3, 60],
    [1, 2, null, 60],
    [null, null, null, null],
  ])
})

test('the busiest budget is first', () => {
  const budget = (used: number) => ({ used, allowed: 1, throttled: 0, workers: 0 })
  const points = [{ ...point(1), budgets: { a: budget(1), b: budget(5), c: budget(1) } }]
  assert.deepEqual(budgetNames(points), ['b', 'a', 'c'])
})

test('the table has the newest first and never more rows than asked for', () => {
  assert.deepEqual(tableRows([1, 2, 3], 20), [2, 1, 0])
  const rows = tableRows(
    Array.from({ length: 601 }, (_, at) => at),
    20,
  )
  assert.equal(rows[0], 600)
  assert.ok(rows.length <= 20)
})
