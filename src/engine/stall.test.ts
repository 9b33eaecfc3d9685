import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type RunningJob, StallWatch, stalledJobs } from './stall.ts'

const STALL_MS = 600_000
const stallMsOf = (kind: string): number =>
  kind === 'quick' ? 1_000 : kind === 'patient' ? Number.POSITIVE_INFINITY : STALL_MS
const AWAKE = { awakeSinceMs: Number.NEGATIVE_INFINITY, stallMsOf }

describe('a running job is stalled', () => {
  const job: RunningJob = { id: 7, kind: 'mail.fetch', progressMs: 0 }

  test('when it has been silent for as long as its kind allows, and not a moment before', () => {
    assert.deepEqual(stalledJobs([job], { ...AWAKE, nowMs: STALL_MS - 1 }), [])
    assert.deepEqual(stalledJobs([job], { ...AWAKE, nowMs: STALL_MS }), [
      { id: 7, kind: 'mail.fetch', silentMs: STALL_MS },
    ])
  })

  test('by the limit of its own kind', () => {
    const jobs = [job, { id: 8, kind: 'quick', progressMs: 0 }, { id: 9, kind: 'patient', progressMs: 0 }]
    assert.deepEqual(
      stalledJobs(jobs, { ...AWAKE, nowMs: 2_000 }).map(({ id }) => id),
      [8],
    )
    assert.deepEqual(
      stalledJobs(jobs, { ...AWAKE, nowMs: 1e12 }).map(({ id }) => id),
      [7, 8],
    )
  })

  test('only by silence while the process was awake', () => {
    assert.deepEqual(stalledJobs([job], { nowMs: STALL_MS, awakeSinceMs: 1, stallMsOf }), [])
    assert.equal(stalledJobs([job], { nowMs: STALL_MS + 1, awakeSinceMs: 1, stallMsOf }).length, 1)
  })
})

describe('the stall watch', () => {
  const everyMs = 5_000

  test('reports a stalled job once, and again after new progress and new silence', () => {
    const watch = new StallWatch({ everyMs, stallMsOf })
    const quick: RunningJob = { id: 1, kind: 'quick', progressMs: 0 }
    assert.equal(watch.check([quick], 0).length, 0)
    assert.equal(watch.check([quick], 5_000).length, 1)
    assert.equal(watch.check([quick], 10_000).length, 0)
    quick.progressMs = 11_000
    assert.equal(watch.check([quick], 15_000).length, 1)
  })

  test('gives every job its full time after the process was asleep', () => {
    const watch = new StallWatch({ everyMs, stallMsOf })
    const job: RunningJob = { id: 1, kind: 'mail.fetch', progressMs: 0 }
    watch.check([job], 0)
    const wokeMs = 8 * 3_600_000
    assert.deepEqual(watch.check([job], wokeMs), [])
    let nowMs = wokeMs
    while (nowMs < wokeMs + STALL_MS - everyMs) {
      nowMs += everyMs
      assert.deepEqual(watch.check([job], nowMs), [])
    }
    assert.deepEqual(watch.check([job], wokeMs + STALL_MS), [
      { id: 1, kind: 'mail.fetch', silentMs: STALL_MS },
    ])
  })

  test('forgets jobs that are gone', () => {
    const watch = new StallWatch({ everyMs, stallMsOf })
    watch.check([{ id: 1, kind: 'quick', progressMs: 0 }], 5_000)
    watch.check([], 10_000)
    assert.equal(watch.check([{ id: 1, kind: 'quick', progressMs: 0 }], 15_000).length, 1)
  })
})
