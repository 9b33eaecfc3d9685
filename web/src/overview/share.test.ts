import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { heldShare, shareOf } from './share.ts'

const stream = { listed: 1_000, onTheirWay: 250, whole: 3_000 }

describe('the share that is accounted for', () => {
  test('is one of the whole, and none where nothing is known', () => {
    assert.equal(shareOf([stream]), 0.25)
    assert.equal(shareOf([stream, { listed: 1_000, onTheirWay: 0, whole: 1_000 }]), 0.4375)
    assert.equal(shareOf([{ listed: 0, onTheirWay: 0, whole: 0 }]), null)
  })

  test('never runs backwards until all was done once', () => {
    const seen: (number | null)[] = []
    let held: number | null = null
    for (const now of [null, 0.5, 0.4, 0.6, 1, 0.99, 0.98]) {
      held = heldShare(held, now)
      seen.push(held)
    }
    assert.deepEqual(seen, [null, 0.5, 0.5, 0.6, 1, 0.99, 0.99])
  })
})
