import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Row } from './bench.ts'
import { formatValue, markdownTable, textTable } from './table.ts'

const ROWS: Row[] = [
  { case: 'drain', subject: 'tidemark', value: 50_123.4, unit: 'jobs/s' },
  { case: 'drain', subject: 'limit', value: 146_000, unit: 'jobs/s' },
  { case: 'pick-up p50', subject: 'tidemark', value: 0.61, unit: 'ms' },
]

describe('tables of results', () => {
  test('columns are aligned, values to the right, and a case is named once', () => {
    assert.deepEqual(textTable(ROWS).split('\n'), [
      'case         subject     value  unit',
      'drain        tidemark   50,123  jobs/s',
      '             limit     146,000  jobs/s',
      'pick-up p50  tidemark     0.61  ms',
    ])
  })

  test('the Markdown table has a head and one line per row', () => {
    const lines = markdownTable(ROWS).split('\n')
    assert.equal(lines.length, 2 + ROWS.length)
    assert.equal(lines[3], '|  | limit | 146,000 | jobs/s |')
  })

  test('small values keep digits after the point and large ones lose them', () => {
    assert.deepEqual([0.614, 12.34, 99.96, 1234.5].map(formatValue), ['0.61', '12.3', '100.0', '1,235'])
  })
})
