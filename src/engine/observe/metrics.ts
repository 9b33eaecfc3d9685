/**
 * The engine's numbers for Prometheus. Nothing is counted here: each scrape reads the statistics, the window, the
 * budgets and the ledger's tallies, so metrics cost nothing between scrapes.
 *
 * Labels are kinds, stages, lanes, services and budgets: names from code and configuration, a few dozen at most.
 * Streams, jobs and items are never labels.
 */
import type { Metric, Registry } from 'prom-client'
import { LANES, type Lane, type Tally } from '../../ledger/contract.ts'
import type { JobHappening } from './events.ts'
import type { EngineStats, LatencyStats, StatsSnapshot } from './stats.ts'

export type WindowGauge = {
  /** How many jobs it can hold. */
  size: number
  claimed: number
  running: Readonly<Record<Lane, number>>
  waiting: Readonly<Record<Lane, number>>
}

export type BudgetGauge = {
  name: string
  /** Units a second; null for no limit. */
  rate: number | null
  tokens: number
  /** How long it is still paused; 0 if it is not. */
  pausedMs: number
}

export type MetricSources = {
  stats: Pick<EngineStats, 'snapshot'>
  window: () => WindowGauge
  budgets: () => readonly BudgetGauge[]
  /** From the ledger, over all processes. When it cannot be asked, the rest is still told. */
  tallies?: () => Promise<readonly Tally[]>
}

export type Metrics = {
  contentType: string
  metricsText: () => Promise<string>
}

export function createMetrics(sources: MetricSources): Metrics {
  let registry: Promise<Registry> | undefined
  let scrape: Scrape
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    async metricsText() {
      registry ??= createRegistry(() => scrape)
      scrape = await read(sources)
      return (await registry).metrics()
    },
  }
}

type Scrape = {
  stats: StatsSnapshot
  window: WindowGauge
  budgets: readonly BudgetGauge[]
  tallies: readonly Tally[]
  ledgerUp: boolean | undefined
}

async function read({ stats, window, budgets, tallies }: MetricSources): Promise<Scrape> {
  let counted: readonly Tally[] = []
  let ledgerUp: boolean | undefined
  if (tallies) {
    try {
      counted = await tallies()
      ledgerUp = true
    } catch {
      ledgerUp = false // told as a metric of its own
    }
  }
  return { stats: stats.snapshot(), window: window(), budgets: budgets(), tallies: counted, ledgerUp }
}

/** A metric with all its values: for who has them at hand when it is scraped. */
export type MetricFamily = {
  name: string
  type: 'counter' | 'gauge'
  help: string
  samples: readonly { labels?: Record<string, string>; value: number }[]
}

export async function metricsText(families: readonly MetricFamily[]): Promise<string> {
  const definitions = families.map(({ samples, ...about }) => ({ ...about, samples: () => [...samples] }))
  return (await registryOf(definitions)).metrics()
}

type Sample = { labels?: Record<string, string | number>; value: number; metricName?: string }
type MetricType = 'counter' | 'gauge' | 'summary' | 'histogram'
type Definition = { name: string; type: MetricType; help: string; samples: (scrape: Scrape) => Sample[] }

/** prom-client takes 41 ms to load, so only who is scraped loads it. */
async function registryOf(
  definitions: readonly (Omit<Definition, 'samples'> & { samples: () => Sample[] })[],
): Promise<Registry> {
  const { Registry: RegistryClass } = await import('prom-client')
  const registry = new RegistryClass()
  for (const { samples, ...about } of definitions) {
    // What a registry asks of a metric: its name, and its values when it is scraped.
    const metric = { ...about, get: async () => ({ ...about, values: samples(), aggregator: 'sum' }) }
    registry.registerMetric(metric as unknown as Metric)
  }
  return registry
}

function createRegistry(scrape: () => Scrape): Promise<Registry> {
  return registryOf(
    DEFINITIONS.map(({ samples, ...about }) => ({ ...about, samples: () => samples(scrape()) })),
  )
}

function perKind(help: string, name: string, what: JobHappening): Definition {
  const samples = ({ stats }: Scrape): Sample[] =>
    Object.entries(stats.kinds).map(([kind, { counts }]) => ({ labels: { kind }, value: counts[what] }))
  return { name, type: 'counter', help, samples }
}

function total(help: string, name: string, value: (scrape: Scrape) => number): Definition {
  return { name, type: 'counter', help, samples: (scrape) => [{ value: value(scrape) }] }
}

function gauge(help: string, name: string, samples: (scrape: Scrape) => Sample[]): Definition {
  return { name, type: 'gauge', help, samples }
}

function latency(
  help: string,
  name: string,
  of: (scrape: Scrape) => { labels: Record<string, string>; latency: LatencyStats }[],
): Definition {
  const samples = (scrape: Scrape): Sample[] =>
    of(scrape).flatMap(({ labels, latency: { p50Ms, p95Ms, p99Ms, count, sumMs } }) => [
      { labels: { ...labels, quantile: 0.5 }, value: seconds(p50Ms) },
      { labels: { ...labels, quantile: 0.95 }, value: seconds(p95Ms) },
      { labels: { ...labels, quantile: 0.99 }, value: seconds(p99Ms) },
      { metricName: `${name}_sum`, labels, value: sumMs / 1_000 },
      { metricName: `${name}_count`, labels, value: count },
    ])
  return { name, type: 'summary', help, samples }
}

/** NaN is how a summary says that nothing was measured lately. */
function seconds(ms: number | null): number {
  return ms === null ? Number.NaN : ms / 1_000
}

const SETTLED_AS = ['done', 'skipped', 'failed', 'canceled'] as const
const BATCH = 'tidemark_commit_batch_jobs'

const DEFINITIONS: readonly Definition[] = [
  {
    name: 'tidemark_jobs_ended_total',
    type: 'counter',
    help: 'Jobs that this process brought to an end, by kind and state.',
    samples: ({ stats }) =>
      Object.entries(stats.kinds).flatMap(([kind, { counts }]) =>
        SETTLED_AS.map((state) => ({ labels: { kind, state }, value: counts[state] })),
      ),
  },
  {
    name: 'tidemark_items_processed_total',
    type: 'counter',
    help: 'Items of jobs that were done or skipped.',
    samples: ({ stats }) =>
      Object.entries(stats.kinds).map(([kind, { items }]) => ({ labels: { kind }, value: items })),
  },
  {
    name: 'tidemark_items_bad_total',
    type: 'counter',
    help: 'Items isolated as bad.',
    samples: ({ stats }) =>
      Object.entries(stats.kinds).map(([kind, { bad }]) => ({ labels: { kind }, value: bad })),
  },
  gauge('Share of bad items among the last 10,000.', 'tidemark_items_bad_ratio', ({ stats }) => [
    { value: stats.recentBad.share },
  ]),
  perKind('Attempts that failed and are tried again.', 'tidemark_job_retries_total', 'retried'),
  perKind('Batches split in two.', 'tidemark_job_splits_total', 'split'),
  perKind(
    'Attempts put off without cost: interrupted or throttled.',
    'tidemark_job_postponements_total',
    'postponed',
  ),
  perKind('Attempts stopped because they made no progress.', 'tidemark_job_stalls_total', 'stalled'),
  perKind('Attempts whose lease was lost before they were committed.', 'tidemark_job_losses_total', 'lost'),
  latency(
    'How long attempts take, by kind; quantiles over five minutes.',
    'tidemark_job_duration_seconds',
    ({ stats }) =>
      Object.entries(stats.kinds).map(([kind, one]) => ({ labels: { kind }, latency: one.latency })),
  ),
  {
    name: 'tidemark_calls_total',
    type: 'counter',
    help: 'Calls to services, by result.',
    samples: ({ stats }) =>
      Object.entries(stats.calls).flatMap(([service, { ok, failed }]) => [
        { labels: { service, result: 'ok' }, value: ok },
        { labels: { service, result: 'failed' }, value: failed },
      ]),
  },
  latency(
    'How long calls take, by service; quantiles over five minutes.',
    'tidemark_call_duration_seconds',
    ({ stats }) =>
      Object.entries(stats.calls).map(([service, one]) => ({ labels: { service }, latency: one.latency })),
  ),
  {
    name: 'tidemark_throttles_total',
    type: 'counter',
    help: 'Answers that asked us to slow down.',
    samples: ({ stats }) =>
      Object.entries(stats.throttles).map(([budget, one]) => ({ labels: { budget }, value: one.total })),
  },
  gauge('Units a second that a budget allows now.', 'tidemark_budget_rate_per_second', ({ budgets }) =>
    budgets.map(({ name, rate }) => ({ labels: { budget: name }, value: rate ?? Number.POSITIVE_INFINITY })),
  ),
  gauge('Units that a budget has left to spend at once.', 'tidemark_budget_tokens', ({ budgets }) =>
    budgets.map(({ name, tokens }) => ({ labels: { budget: name }, value: tokens })),
  ),
  gauge('How long a budget is still paused.', 'tidemark_budget_paused_seconds', ({ budgets }) =>
    budgets.map(({ name, pausedMs }) => ({ labels: { budget: name }, value: pausedMs / 1_000 })),
  ),
  gauge('How many claimed jobs fit into memory.', 'tidemark_window_size_jobs', ({ window }) => [
    { value: window.size },
  ]),
  gauge('Claimed jobs in memory.', 'tidemark_window_claimed_jobs', ({ window }) => [
    { value: window.claimed },
  ]),
  gauge('Jobs running, by lane.', 'tidemark_lane_running_jobs', ({ window }) =>
    LANES.map((lane) => ({ labels: { lane }, value: window.running[lane] })),
  ),
  gauge('Claimed jobs waiting for a worker, by lane.', 'tidemark_lane_waiting_jobs', ({ window }) =>
    LANES.map((lane) => ({ labels: { lane }, value: window.waiting[lane] })),
  ),
  total('Jobs claimed.', 'tidemark_claimed_jobs_total', ({ stats }) => stats.claims.jobs),
  total(
    'Jobs given up because the lease was lost.',
    'tidemark_lease_lost_jobs_total',
    ({ stats }) => stats.leaseLostJobs,
  ),
  total(
    'Jobs taken back from processes that are gone.',
    'tidemark_lease_reclaimed_jobs_total',
    ({ stats }) => stats.reclaimedJobs,
  ),
  { name: BATCH, type: 'histogram', help: 'Jobs settled by one commit.', samples: batchSizes },
  latency(
    'How long commits take; quantiles over five minutes.',
    'tidemark_commit_duration_seconds',
    ({ stats }) => [{ labels: {}, latency: stats.commits.latency }],
  ),
  gauge('Jobs in the ledger, by kind and stage, over all processes.', 'tidemark_jobs', ({ tallies }) =>
    tallies.map(({ kind, stage, n }) => ({ labels: { kind, stage }, value: n })),
  ),
  gauge('1 if the ledger answers.', 'tidemark_ledger_up', ({ ledgerUp }) =>
    ledgerUp === undefined ? [] : [{ value: ledgerUp ? 1 : 0 }],
  ),
]

function batchSizes({ stats: { commits } }: Scrape): Sample[] {
  let upTo = 0
  const buckets = commits.sizes.map(({ max, n }) => {
    upTo += n
    return {
      metricName: `${BATCH}_bucket`,
      labels: { le: max === Number.POSITIVE_INFINITY ? '+Inf' : max },
      value: upTo,
    }
  })
  return [
    ...buckets,
    { metricName: `${BATCH}_sum`, value: commits.jobs },
    { metricName: `${BATCH}_count`, value: commits.total },
  ]
}
