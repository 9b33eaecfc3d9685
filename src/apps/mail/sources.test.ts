import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { etaText, progressHead } from './sources.ts'

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

describe('the line of progress', () => {
  const status = { ...half, watermarkMs: Date.UTC(2025, 10, 12) }

  test('says percent, ETA and how far the mailbox is complete, in this order', () => {
    assert.deepEqual(progressHead(status, 10), ['27 %', 'ETA 3 min 40 s', 'complete up to 2025-11-12'])
    assert.deepEqual(progressHead({ ...status, watermarkMs: null }, 0), ['27 %', 'ETA –', 'complete up to –'])
  })

  test('never says 100 % before the end, and no percent where nobody knows how much there is', () => {
    const percent = (part: Partial<typeof status> | object): string =>
      progressHead({ ...status, ...part }, 1)[0]
    assert.equal(percent({ listed: 100_000, onTheirWay: 1, whole: 100_000 }), '99 %')
    assert.equal(percent({ listed: 3_000, onTheirWay: 0, whole: 3_000 }), '100 %')
    assert.equal(percent({ whole: null }), '– %')
    assert.equal(percent({ phase: 'following', listed: 3_010, onTheirWay: 0 }), '100 %')
    assert.equal(percent({ phase: 'following', listed: 0, onTheirWay: 0, whole: 0 }), '100 %')
  })
})
