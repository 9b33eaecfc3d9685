/**
 * Everything at a glance. Cheap whatever the ledger holds: tallies, one sum for each stream, and what this process
 * has in memory; no job is counted. Those who ask at the same time share one look: see ledger-read-cache.ts.
 */

import { readCacheOf } from '../../app/ledger-read-cache.ts'
import { needsOf, shownStreams } from '../../app/look.ts'
import type { Need } from '../../app/need.ts'
import type { Overview, StreamView } from '../../app/schemas.ts'
import type { Services } from '../../app/services.ts'
import { alertView, heldView, runningView, workerView, workTexts } from '../../app/state-views.ts'
import { formatCount } from '../../base/format.ts'
import { type ListedEngine, listEngines } from '../../engine/observe/engines.ts'
import type { Tally } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { STAGES, type Stage } from '../../ledger/states.ts'
import { version } from '../version.ts'
import { readBudgets } from './budgets.ts'
import { countedRates, StreamRates } from './stream-rates.ts'
import { streamView } from './stream-view.ts'
import { overallVerdict } from './verdict.ts'

/** The engine's own jobs come and go on schedules; they are not somebody's work. */
const HOUSEKEEPING = 'engine.'
const RUNNING_MAX = 200
const ALERTS_MAX = 100
const BUDGETS_MAX = 200
const PAUSES_MAX = 200
const ratesOf = new WeakMap<Ledger, StreamRates>()

export function readOverview(services: Services): Promise<Overview> {
  const { ledger, clock } = services
  const rates = ratesOf.get(ledger) ?? new StreamRates()
  ratesOf.set(ledger, rates)
  return readCacheOf(ledger).read('overview', clock, () => look(services, rates))
}

async function look(services: Services, rates: StreamRates): Promise<Overview> {
  const { ledger, engine, role } = services
  const now = ledger.now()
  const jobs = stageCounts(await ledger.tallies())
  const pauses = await ledger.pauses()
  const badCounts = byStream(await ledger.badCounts())
  const needs = await needsOf(services.apps.values())
  const streams = await readStreams(services, { rates, jobs, badCounts, needs })
  const alerts = (await ledger.alerts()).slice(0, ALERTS_MAX).map(alertView)
  const engines = await listEngines(ledger)
  const badItems = sumOf(badCounts.values())
  const { running, live } = await atWork(services, jobs)
  const workersAlive = engines.filter(({ liveness }) => liveness === 'live').length
  return {
    at: Math.round(now),
    version,
    role,
    verdict: overallVerdict({ streams, jobs, badItems, live, alerts, pauses, workersAlive, needs }),
    streams,
    jobs,
    badItems,
    alerts,
    running,
    live,
    workers: engines.map((one: ListedEngine) => workerView(one, engine.owner)),
    budgets: (await readBudgets(services)).slice(0, BUDGETS_MAX),
    pauses: pauses.slice(0, PAUSES_MAX),
  }
}

type StreamsInput = {
  rates: StreamRates
  jobs: Record<Stage, number>
  badCounts: ReadonlyMap<number, number>
  needs: readonly Need[]
}

async function readStreams(
  services: Services,
  { rates, jobs, badCounts, needs }: StreamsInput,
): Promise<StreamView[]> {
  const { ledger, clock } = services
  const rows = await shownStreams(services.apps, await ledger.streams())
  const pauses = await ledger.pauses()
  const failed = jobs.failed === 0 ? new Map<number, number>() : byStream(await ledger.failedCounts())
  const atMs = clock.monotonicMs()
  const measured = rows.map((row) => {
    const items = [row.stored, row.gone, row.skipped, row.bad].reduce((sum, n) => sum + Number(n), 0)
    return rates.measure(row.id, { atMs, items })
  })
  const counted = measured.includes(undefined) ? await countedRates(ledger) : new Map<number, number>()
  return rows.map((row, index) =>
    streamView({
      row,
      pauses,
      rate: measured[index] ?? counted.get(row.id) ?? 0,
      failedJobs: failed.get(row.id) ?? 0,
      badItems: badCounts.get(row.id) ?? 0,
      whole: row.whole,
      need: needs.find(({ stream }) => stream === row.name)?.text,
    }),
  )
}

async function atWork(
  { engine, ledger, role }: Services,
  jobs: Record<Stage, number>,
): Promise<Pick<Overview, 'running' | 'live'>> {
  const texts = workTexts(engine)
  if (role !== 'web') {
    const { running, summary } = await engine.live()
    return { running: running.slice(0, RUNNING_MAX).map((job) => runningView(job, texts)), live: summary }
  }
  const running = (await ledger.heldJobs(RUNNING_MAX)).map((job) => heldView(job, texts))
  const waiting = jobs.ready + jobs.deps + jobs.time
  const parts = [
    ...(jobs.claimed > 0 ? [`${formatCount(jobs.claimed)} taken by other processes`] : []),
    ...(waiting > 0 ? [`${formatCount(waiting)} waiting`] : []),
  ]
  return { running, live: parts.join(', ') }
}

function stageCounts(tallies: readonly Tally[]): Record<Stage, number> {
  const counts = Object.fromEntries(STAGES.map((stage) => [stage, 0])) as Record<Stage, number>
  for (const { kind, stage, n } of tallies) {
    if (!kind.startsWith(HOUSEKEEPING)) counts[stage] = Math.max(0, counts[stage] + n)
  }
  return counts
}

function byStream(counts: readonly { streamId: number; n: number }[]): Map<number, number> {
  return new Map(counts.map(({ streamId, n }) => [streamId, n]))
}

function sumOf(numbers: Iterable<number>): number {
  let sum = 0
  for (const n of numbers) sum += n
  return sum
}
