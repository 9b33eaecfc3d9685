import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { createMetrics, type MetricSources } from './metrics.ts'
import { EngineStats } from './stats.ts'

function openMetrics(over: Partial<MetricSources> = {}) {
  const clock = new FakeClock()
  const stats = new EngineStats(clock)
  const metrics = createMetrics({
    stats,
    window: () => ({
      size: 10_000,
      claimed: 42,
      running: { interactive: 3, bulk: 5 },
      waiting: { interactive: 1, bulk: 33 },
    }),
    budgets: () => [
      { name: 'gmail', rate: 250, tokens: 12.5, pausedMs: 30_000 },
      { name: 'upload', rate: null, tokens: 0, pausedMs: 0 },
    ],
    tallies: async () => [{ kind: 'mail.fetch', stage: 'ready', n: 7 }],
    ...over,
  })
  return { stats, metrics }
}

/** Every sample of the text, by name and labels. */
function parse(text: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, name, value] = /^(\S+?(?:\{.*\})?) (\S+)$/.exec(line) ?? assert.fail(`not a sample: ${line}`)
    assert.ok(!samples.has(name!), `${name} is there twice`)
    samples.set(
      name!,
      value === '+Inf' ? Number.POSITIVE_INFINITY : value === 'Nan' ? Number.NaN : Number(value),
    )
  }
  return samples
}

describe('metrics', () => {
  test('tell what was processed, retried, split, stalled and lost, per kind', async () => {
    const { stats, metrics } = openMetrics()
    for (let i = 0; i < 5; i++) stats.job('mail.fetch', 'done', 100, 10)
    stats.job('mail.fetch', 'failed', 100, 1)
    stats.job('mail.fetch', 'retried', 100, 1)
    stats.job('mail.fetch', 'split', 100, 1)
    stats.job('mail.fetch', 'stalled', 0, 0)
    stats.bad('mail.fetch', 2)
    const samples = parse(await metrics.metricsText())
    assert.equal(samples.get('tidemark_jobs_ended_total{kind="mail.fetch",state="done"}'), 5)
    assert.equal(samples.get('tidemark_jobs_ended_total{kind="mail.fetch",state="failed"}'), 1)
    assert.equal(samples.get('tidemark_items_processed_total{kind="mail.fetch"}'), 50)
    assert.equal(samples.get('tidemark_items_bad_total{kind="mail.fetch"}'), 2)
    assert.equal(samples.get('tidemark_items_bad_ratio'), 0.04)
    assert.equal(samples.get('tidemark_job_retries_total{kind="mail.fetch"}'), 1)
    assert.equal(samples.get('tidemark_job_splits_total{kind="mail.fetch"}'), 1)
    assert.equal(samples.get('tidemark_job_stalls_total{kind="mail.fetch"}'), 1)
    assert.equal(samples.get('tidemark_job_losses_total{kind="mail.fetch"}'), 0)
  })

  test('tell latencies in seconds, per kind and per service', async () => {
    const { stats, metrics } = openMetrics()
    for (let ms = 1; ms <= 1_000; ms++) stats.job('mail.fetch', 'done', ms, 1)
    stats.call('gmail', 250, true)
    stats.call('gmail', 250, false)
    const samples = parse(await metrics.metricsText())
    const p95 = samples.get('tidemark_job_duration_seconds{kind="mail.fetch",quantile="0.95"}')!
    assert.ok(Math.abs(p95 - 0.95) < 0.1, String(p95))
    assert.equal(samples.get('tidemark_job_duration_seconds_sum{kind="mail.fetch"}'), 500.5)
    assert.equal(samples.get('tidemark_job_duration_seconds_count{kind="mail.fetch"}'), 1_000)
    assert.equal(samples.get('tidemark_call_duration_seconds_count{service="gmail"}'), 2)
    assert.equal(samples.get('tidemark_calls_total{service="gmail",result="failed"}'), 1)
  })

  test('tell window, lanes, leases, budgets and throttles', async () => {
    const { stats, metrics } = openMetrics()
    stats.throttled('gmail')
    stats.leaseLost(3)
    stats.reclaimed(4)
    stats.claim(9)
    const samples = parse(await metrics.metricsText())
    const expected: Record<string, number> = {
      tidemark_window_size_jobs: 10_000,
      tidemark_window_claimed_jobs: 42,
      'tidemark_lane_running_jobs{lane="interactive"}': 3,
      'tidemark_lane_waiting_jobs{lane="bulk"}': 33,
      tidemark_lease_lost_jobs_total: 3,
      tidemark_lease_reclaimed_jobs_total: 4,
      tidemark_claimed_jobs_total: 9,
      'tidemark_throttles_total{budget="gmail"}': 1,
      'tidemark_budget_rate_per_second{budget="gmail"}': 250,
      'tidemark_budget_rate_per_second{budget="upload"}': Number.POSITIVE_INFINITY,
      'tidemark_budget_tokens{budget="gmail"}': 12.5,
      'tidemark_budget_paused_seconds{budget="gmail"}': 30,
      'tidemark_jobs{kind="mail.fetch",stage="ready"}': 7,
      tidemark_ledger_up: 1,
    }
    for (const [name, value] of Object.entries(expected)) assert.equal(samples.get(name), value, name)
  })

  test('tell commit sizes as a histogram whose buckets add up', async () => {
    const { stats, metrics } = openMetrics()
    for (const jobs of [1, 3, 30, 70_000]) stats.commit(jobs, 4)
    const samples = parse(await metrics.metricsText())
    assert.equal(samples.get('tidemark_commit_batch_jobs_bucket{le="1"}'), 1)
    assert.equal(samples.get('tidemark_commit_batch_jobs_bucket{le="5"}'), 2)
    assert.equal(samples.get('tidemark_commit_batch_jobs_bucket{le="50"}'), 3)
    assert.equal(samples.get('tidemark_commit_batch_jobs_bucket{le="5000"}'), 3)
    assert.equal(samples.get('tidemark_commit_batch_jobs_bucket{le="+Inf"}'), 4)
    assert.equal(samples.get('tidemark_commit_batch_jobs_count'), 4)
    assert.equal(samples.get('tidemark_commit_batch_jobs_sum'), 70_034)
    assert.equal(samples.get('tidemark_commit_duration_seconds_sum'), 0.016)
  })

  test('follow the Prometheus conventions: help, type, our prefix, totals for counters', async () => {
    const { stats, metrics } = openMetrics()
    stats.job('mail.fetch', 'done', 1, 1)
    const text = await metrics.metricsText()
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    assert.ok(types.length > 20)
    for (const [, name, type] of types) {
      assert.match(name!, /^tidemark_[a-z_]+$/)
      assert.equal(name!.endsWith('_total'), type === 'counter', name!)
      assert.ok(text.includes(`# HELP ${name} `))
    }
    const labels = new Set([...text.matchAll(/[{,](\w+)="/g)].map(([, label]) => label!))
    const known = ['kind', 'state', 'quantile', 'stage', 'lane', 'budget', 'le', 'service', 'result']
    assert.deepEqual(
      [...labels].filter((label) => !known.includes(label)),
      [],
    )
    assert.match(metrics.contentType, /^text\/plain; version=0\.0\.4/)
  })

  test('are told, and the outage with them, while the ledger is away', async () => {
    const { stats, metrics } = openMetrics({ tallies: () => Promise.reject(new Error('connection lost')) })
    stats.claim(1)
    const samples = parse(await metrics.metricsText())
    assert.equal(samples.get('tidemark_ledger_up'), 0)
    assert.equal(samples.get('tidemark_claimed_jobs_total'), 1)
  })

  test('of two engines do not mix', async () => {
    const [one, two] = [openMetrics(), openMetrics()]
    one.stats.claim(5)
    const [first, second] = await Promise.all([one.metrics.metricsText(), two.metrics.metricsText()])
    assert.equal(parse(first).get('tidemark_claimed_jobs_total'), 5)
    assert.equal(parse(second).get('tidemark_claimed_jobs_total'), 0)
  })
})
