import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FRAME_REM_MAX, FRAME_REM_MIN, foldThread, frameHeightRem } from './thread.ts'

const shape = (count: number, open: number[] = []) =>
  foldThread(
    Array.from({ length: count }, (_, at) => at),
    (message) => open.includes(message),
  ).map((part) => ('folded' in part ? `${part.folded.length} folded` : part.message))

describe('a thread', () => {
  test('of a few messages is shown whole', () => {
    assert.deepEqual(shape(0), [])
    assert.deepEqual(shape(1), [0])
    assert.deepEqual(shape(5), [0, 1, 2, 3, 4])
  })

  test('of many folds what lies between the first and the last two', () => {
    assert.deepEqual(shape(6), [0, '3 folded', 4, 5])
    assert.deepEqual(shape(100), [0, '97 folded', 98, 99])
  })

  test('never folds an open message', () => {
    assert.deepEqual(shape(12, [5]), [0, '4 folded', 5, '4 folded', 10, 11])
    assert.deepEqual(shape(8, [2]), [0, 1, 2, '3 folded', 6, 7])
  })
})

describe('the frame of a message', () => {
  test('is as high as its text, within bounds', () => {
    assert.equal(frameHeightRem(''), FRAME_REM_MIN)
    assert.equal(frameHeightRem('a\n'.repeat(10_000)), FRAME_REM_MAX)
    assert.equal(frameHeightRem('x'.repeat(100_000)), FRAME_REM_MAX)
    const middle = frameHeightRem('line\n'.repeat(12))
    assert.ok(middle > FRAME_REM_MIN && middle < FRAME_REM_MAX)
  })
})
