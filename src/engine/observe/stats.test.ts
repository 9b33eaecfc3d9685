import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import type { JobHappening } from './events.ts'
import { EngineStats } from './stats.ts'

function openStats() {
  const clock = new FakeClock()
  return { clock, stats: new EngineStats(clock) }
}

const near = (actual: number | null, expected: number): void => {
  assert.ok(
    actual !== null && Math.abs(actual - expected) <= expected * 0.1,
    `${actual} is not about ${expected}`,
  )
}

describe('engine statistics', () => {
  test('count every happening per kind and together', () => {
    const { stats } = openStats()
    const happenings: JobHappening[] = [
      'started',
      'done',
      'skipped',
      'retried',
      'postponed',
      'failed',
      'canceled',
      'split',
      'stalled',
      'lost',
    ]
    for (const [i, what] of happenings.entries()) {
      for (let n = 0; n <= i; n++) stats.job('mail.fetch', what, 1, 1)
      stats.job('mail.store', what, 1, 1)
    }
    const { kinds, counts } = stats.snapshot()
    for (const [i, what] of happenings.entries()) {
      assert.equal(kinds['mail.fetch']!.counts[what], i + 1)
      assert.equal(kinds['mail.store']!.counts[what], 1)
      assert.equal(counts[what], i + 2)
    }
  })

  test('count items of jobs that were done or skipped, and rates over seconds and minutes', async () => {
    const { clock, stats } = openStats()
    for (let second = 0; second < 120; second++) {
      stats.job('mail.fetch', 'done', 5, second < 60 ? 50 : 100)
      stats.job('mail.fetch', 'failed', 5, 1_000)
      stats.job('mail.store', 'skipped', 5, 1)
      await clock.advance(1_000)
    }
    const snapshot = stats.snapshot()
    assert.equal(snapshot.uptimeMs, 120_000)
    assert.equal(snapshot.kinds['mail.fetch']!.items, 9_000)
    assert.equal(snapshot.items, 9_120)
    assert.deepEqual(snapshot.kinds['mail.fetch']!.itemRates, {
      perSecond1s: 100,
      perSecond1m: 100,
      perSecond5m: 75,
    })
    assert.deepEqual(snapshot.jobRates, { perSecond1s: 2, perSecond1m: 2, perSecond5m: 2 })
  })

  test('know how long jobs and calls take, over the last five minutes, each kind and service for itself', async () => {
    const { clock, stats } = openStats()
    for (let ms = 1; ms <= 1_000; ms++) {
      stats.job('mail.fetch', 'done', ms, 1)
      stats.job('mail.store', 'done', 7, 1)
      stats.call('gmail', ms * 2, ms % 10 > 0)
    }
    const { kinds, calls } = stats.snapshot()
    const { latency } = kinds['mail.fetch']!
    assert.deepEqual([latency.count, latency.sumMs], [1_000, 500_500])
    near(latency.p50Ms, 500)
    near(latency.p95Ms, 950)
    near(latency.p99Ms, 990)
    near(kinds['mail.store']!.latency.p99Ms, 7)
    assert.deepEqual([calls.gmail!.ok, calls.gmail!.failed], [900, 100])
    near(calls.gmail!.latency.p95Ms, 1_900)
    await clock.advance(6 * 60_000)
    const later = stats.snapshot().kinds['mail.fetch']!.latency
    assert.deepEqual(later, { count: 1_000, sumMs: 500_500, p50Ms: null, p95Ms: null, p99Ms: null })
  })

  test('do not take the time of an interrupted attempt for how long the job takes', () => {
    const { stats } = openStats()
    for (const what of ['started', 'postponed', 'stalled', 'lost', 'canceled'] as const) {
      stats.job('mail.fetch', what, 600_000, 1)
    }
    assert.equal(stats.snapshot().kinds['mail.fetch']!.latency.count, 0)
  })

  test('know the share of bad items among the last ten thousand', () => {
    const { stats } = openStats()
    for (let i = 0; i < 12_000; i++) {
      if (i % 100 === 0) stats.bad('mail.fetch', 1)
      stats.job('mail.fetch', i % 100 === 0 ? 'skipped' : 'done', 1, 1)
    }
    const { recentBad, bad, kinds } = stats.snapshot()
    assert.ok(recentBad.items >= 10_000 && recentBad.items <= 10_200)
    near(recentBad.share, 0.01)
    assert.deepEqual([bad, kinds['mail.fetch']!.bad], [120, 120])
  })

  test('know how large commits are; claims alone are none', () => {
    const { stats } = openStats()
    for (const jobs of [0, 1, 1, 2, 3, 100, 101, 9_999]) stats.commit(jobs, 2)
    for (const jobs of [0, 5, 7]) stats.claim(jobs)
    const { commits, claims } = stats.snapshot()
    assert.deepEqual([commits.total, commits.jobs, commits.latency.count], [7, 10_207, 7])
    assert.deepEqual(
      commits.sizes.filter(({ n }) => n > 0).map(({ max, n }) => [max, n]),
      [
        [1, 2],
        [2, 1],
        [5, 1],
        [100, 1],
        [200, 1],
        [Number.POSITIVE_INFINITY, 1],
      ],
    )
    assert.deepEqual(claims, { total: 2, jobs: 12 })
  })

  test('know for how long a budget has been throttled without a break', async () => {
    const { clock, stats } = openStats()
    for (let minute = 0; minute < 15; minute++) {
      stats.throttled('gmail')
      await clock.advance(60_000)
    }
    assert.deepEqual(stats.snapshot().throttles, { gmail: { total: 15, throttledMs: 15 * 60_000 } })
    await clock.advance(60_001)
    assert.equal(stats.snapshot().throttles.gmail!.throttledMs, 0)
    stats.throttled('gmail')
    assert.deepEqual(stats.snapshot().throttles.gmail, { total: 16, throttledMs: 0 })
  })

  test('count leases that were lost and taken back', () => {
    const { stats } = openStats()
    stats.leaseLost(3)
    stats.reclaimed(4)
    stats.reclaimed(1)
    const { leaseLostJobs, reclaimedJobs } = stats.snapshot()
    assert.deepEqual([leaseLostJobs, reclaimedJobs], [3, 5])
  })

  test('stay small however many names there are', () => {
    const { stats } = openStats()
    for (let i = 0; i < 2_000; i++) {
      stats.job(`kind-${i}`, 'done', 1, 1)
      stats.call(`service-${i}`, 1, true)
      stats.throttled(`budget-${i}`)
    }
    const { kinds, calls, throttles, counts } = stats.snapshot()
    assert.equal(counts.done, 2_000)
    assert.deepEqual(
      [kinds, calls, throttles].map((named) => Object.keys(named).length),
      [501, 501, 501],
    )
  })
})
