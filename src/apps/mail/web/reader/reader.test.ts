import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FRAME_PX_MAX, FRAME_PX_MIN, foldThread, frameHeightPx } from './thread.ts'

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
  test('is as high as its HTML is guessed to be, within bounds', () => {
    assert.equal(frameHeightPx(0), FRAME_PX_MIN)
    assert.equal(frameHeightPx(1e9), FRAME_PX_MAX)
    assert.ok(frameHeightPx(800) >= 800 && frameHeightPx(800) < 1_000)
  })
})
