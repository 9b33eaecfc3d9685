import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FilterParams, filterOf } from './job-filter.ts'

const NONE: FilterParams = { state: '', kind: '', stream: '', age: '', parent: '', segment: '' }

test('a filter is what its address says', () => {
  assert.deepEqual(filterOf(NONE), {})
  assert.deepEqual(filterOf({ ...NONE, state: 'failed', kind: 'mail.fetch', age: '10m', segment: '7' }), {
    state: 'failed',
    kind: 'mail.fetch',
    olderThanMs: 600_000,
    segment: 7,
  })
  assert.deepEqual(filterOf({ ...NONE, stream: 'mail:ann@example.com', parent: '12' }), {
    stream: 'mail:ann@example.com',
    parent: 12,
  })
})

test('what no filter can be is left out', () => {
  assert.deepEqual(filterOf({ ...NONE, state: 'lost', age: 'soon', parent: '-1', segment: '1e9' }), {})
})
