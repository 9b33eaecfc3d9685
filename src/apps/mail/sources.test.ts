import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { etaText } from './sources.ts'

const half = {
  listed: 1_000,
  onTheirWay: 200,
  whole: 3_000,
  phase: 'backfill',
  slices: 9,
  settledSlices: 3,
} as const

describe('when a mailbox will be copied', () => {
  test('counts what is not listed yet, where Gmail says how much that is', () => {
    assert.equal(etaText(half, 10), '3 min 40 s')
    assert.equal(etaText({ ...half, phase: 'following' }, 10), '20 s')
  })

  test('is at least what is listed, where nobody knows how much is not', () => {
    assert.equal(etaText({ ...half, whole: null }, 10), '≥ 20 s')
    assert.equal(etaText({ ...half, whole: null, settledSlices: 9 }, 10), '20 s')
  })

  test('is not told where nothing is left or nothing moves', () => {
    assert.equal(etaText(half, 0), '–')
    assert.equal(etaText({ ...half, whole: 1_000, onTheirWay: 0 }, 10), '–')
  })
})
