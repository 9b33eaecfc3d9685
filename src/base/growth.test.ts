import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertLinear, assertNearlySame } from './growth.suite.ts'

/** What the processor does is proportional to `steps`. */
function spin(steps: number): void {
  let sum = 0
  for (let step = 0; step < steps; step++) sum = (sum * 31 + step) | 0
  assert.equal(typeof sum, 'number')
}

describe('growth', () => {
  const make = (size: number): number => size

  test('that is linear is accepted, and so is less', () => {
    assertLinear({ sizeMax: 400_000, make, work: (size) => spin(size * 50) })
    assertLinear({ sizeMax: 400_000, make, work: () => spin(8_000_000) })
  })

  test('with the square is refused', () => {
    assert.throws(
      () => assertLinear({ sizeMax: 12_000, make, work: (size) => spin(size * size) }),
      /8 times the input took \d+ ms of the processor instead of \d+/,
    )
  })

  test('where there must be none is refused from more than three times', () => {
    assertNearlySame({ one: 8_000_000, other: 10_000_000, work: spin })
    assert.throws(() => assertNearlySame({ one: 8_000_000, other: 64_000_000, work: spin }), /instead of/)
  })

  test('below what can be told from noise is accepted', () => {
    assertLinear({ sizeMax: 800, make, work: (size) => spin(size * size) })
  })
})
