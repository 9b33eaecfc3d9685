import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { editDistance, nearest } from './nearest.ts'

describe('the nearest name', () => {
  const known = ['workers', 'window', 'lease_seconds', 'attempts', 'url', 'to']

  test('is found over a missing, an added, a wrong and a swapped letter', () => {
    assert.equal(nearest('worker', known), 'workers')
    assert.equal(nearest('windoww', known), 'window')
    assert.equal(nearest('leese_seconds', known), 'lease_seconds')
    assert.equal(nearest('attmepts', known), 'attempts')
  })

  test('does not depend on capitals', () => {
    assert.equal(nearest('WORKERS', known), 'workers')
  })

  test('is none where nothing is close', () => {
    assert.equal(nearest('colour', known), undefined)
    assert.equal(nearest('foo', known), undefined)
  })
})

describe('the distance between two words', () => {
  test('counts a swap of neighbours once', () => {
    assert.equal(editDistance('wrokers', 'workers'), 1)
    assert.equal(editDistance('kitten', 'sitting'), 3)
    assert.equal(editDistance('', 'abc'), 3)
  })

  test('is symmetric, and nought for equal words alone', () => {
    const word = fc.string({ maxLength: 12 })
    fc.assert(
      fc.property(word, word, (a, b) => {
        assert.equal(editDistance(a, b), editDistance(b, a))
        assert.equal(editDistance(a, b) === 0, a === b)
      }),
    )
  })
})
