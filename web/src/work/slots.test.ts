import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placed } from './slots.ts'

test('who stays keeps its place, and who comes takes the first that is free', () => {
  assert.deepEqual(placed([], [1, 2, 3], 4), [1, 2, 3])
  assert.deepEqual(placed([1, 2, 3], [3], 4), [undefined, undefined, 3])
  assert.deepEqual(placed([undefined, undefined, 3], [3, 4], 4), [4, undefined, 3])
  assert.deepEqual(placed([4, undefined, 3], [3, 4, 5, 6], 4), [4, 5, 3, 6])
})

test('there are never more places than allowed, and none when nobody is there', () => {
  assert.deepEqual(placed([1, 2], [1, 2, 3, 4], 3), [1, 2, 3])
  assert.deepEqual(placed([1, 2], [3, 4, 2, 5], 2), [3, 2])
  assert.deepEqual(placed([1, undefined, 2], [], 3), [])
})
