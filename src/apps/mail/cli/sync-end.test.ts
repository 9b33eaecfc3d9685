import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../../base/errors.ts'
import { type Ending, wordFor } from './sync-end.ts'

const settled: Ending = {
  ...{
    account: 'ann@example.com',
    stoppedSinceMs: null,
    isAttended: true,
    phase: 'following',
    paused: false,
    watermarkMs: 1_000,
    watermarkAsOfMs: 1_000,
  },
  ...{ slices: 3, settledSlices: 3, listed: 9, stored: 9, gone: 0, skipped: 0, bad: 0, onTheirWay: 0 },
  ...{ unbalanced: 0, historyId: '1', checkedAtMs: 1_000, plannedAtMs: 1_000, granularity: 'month' },
  ...{ missing: 0, lost: 0, lostImports: 0, verified: null, gmail: null, leftOut: null, whole: null },
  ...{ sinceMs: null, pauseReason: null, obstacle: undefined, failed: [] },
}

describe('a sync that ended', () => {
  test('is done where everything is settled, stopped or not', () => {
    assert.deepEqual([wordFor(settled, false), wordFor(settled, true)], ['done', 'done'])
  })

  test('is not done where Gmail could not be asked, although all that was listed is stored', () => {
    const error = new TidemarkError('The connection to Gmail failed', { kind: 'transient' })
    const away: Ending = { ...settled, obstacle: { where: 'cloud', error, sinceMs: 0, nextMs: 0 } }
    assert.deepEqual([wordFor(away, false), wordFor(away, true)], ['not finished', 'stopped'])
  })

  test('is stopped where something is left', () => {
    assert.equal(wordFor({ ...settled, onTheirWay: 1 }, true), 'stopped')
    assert.equal(wordFor({ ...settled, settledSlices: 2 }, true), 'stopped')
  })
})
