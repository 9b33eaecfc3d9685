/**
 * Everything at a glance. Cheap whatever the ledger holds: tallies, one sum for each stream, and what this process
 * has in memory; no job is counted. Those who ask at the same time share one look, and when looking would take too
 * large a share of the time, those who ask get what was seen last: many pages cost hardly more than one.
 */
import { type SeenEngine, seeEngines } from '../../engine/sightings.ts'
import { formatCount } from '../../format.ts'
import type { Tally } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { STAGES, type Stage } from '../../ledger/states.ts'
import type { Services } from '../services.ts'
import { version } from '../version.ts'
import type { Overview, StreamView } from './schemas.ts'
import { alertView, budgetView, heldView, runningView, workerView } from './state-views.ts'
import { countedRates, StreamRates } from './stream-rates.ts'
import { streamView } from './stream-view.ts'
import { verdictOf } from './verdict.ts'

/** The engine's own jobs come and go on schedules; they are not somebody's work. */
const HOUSEKEEPING = 'engine.'
const RUNNING_MAX = 200
const ALERTS_MAX = 100
const BUDGETS_MAX = 200
const PAUSES_MAX = 200
/** Looking takes at most this share of the time, over a while; after a quiet time, so much at once. */
const SHARE = 0.2
const CREDIT_MS_MAX = 1_000

/** `creditMs`: how long may be looked before somebody gets what was seen last. */
type Desk = {
  rates: StreamRates
  looking?: Promise<Overview> | undefined
  isUnderWay: boolean
  creditMs: number
  creditedAtMs: number
}

const desks = new WeakMap<Ledger, Desk>()

export function readOverview(services: Services): Promise<Overview> {
  const { ledger, clock } = services
  const desk = deskOf(ledger)
  const nowMs = clock.monotonicMs()
  desk.creditMs = Math.min(CREDIT_MS_MAX, desk.creditMs + Math.max(0, nowMs - desk.creditedAtMs) * SHARE)
  desk.creditedAtMs = nowMs
  if (desk.looking && (desk.isUnderWay || desk.creditMs <= 0)) return desk.looking
  const looking = look(services, desk.rates)
  desk.looking = looking
  desk.isUnderWay = true
  const end = (seen: Promise<Overview> | undefined): void => {
    desk.creditMs -= clock.monotonicMs() - nowMs
    if (desk.looking !== looking) return
    desk.isUnderWay = false
    desk.looking = seen
  }
  looking.then(
    () => end(looking),
    () => end(undefined),
  )
  return looking
}

/** After something was changed on purpose: whoever did it wants to see it. */
export function forgetOverview({ ledger }: Pick<Services, 'ledger'>): void {
  const desk = deskOf(ledger)
  desk.looking = undefined
  desk.isUnderWay = false
}

function deskOf(ledger: Ledger): Desk {
  const desk = desks.get(ledger) ?? {
    ...{ rates: new StreamRates(), isUnderWay: false },
    ...{ creditMs: CREDIT_MS_MAX, creditedAtMs: Number.POSITIVE_INFINITY },
  }
  desks.set(ledger, desk)
  return desk
}

async function look(services: Services, rates: StreamRates): Promise<Overview> {
  const { ledger, engine, role } = services
  const now = ledger.now()
  const jobs = stageCounts(await ledger.tallies())
  const pauses = await ledger.pauses()
  const badCounts = byStream(await ledger.badCounts())
  const streams = await readStreams(services, { rates, jobs, badCounts })
  const alerts = (await ledger.alerts()).slice(0, ALERTS_MAX).map(alertView)
  const engines = await seeEngines(ledger)
  const badItems = sumOf(badCounts.values())
  const { running, live } = await atWork(services, jobs)
  const workersAlive = engines.filter(({ liveness }) => liveness === 'live').length
  return {
    ...{ at: Math.round(now), version, role },
    verdict: verdictOf({ streams, jobs, badItems, live, alerts, pauses, workersAlive }),
    ...{ streams, jobs, badItems, alerts, running, live },
    workers: engines.map((one: SeenEngine) => workerView(one, engine.owner)),
    budgets: engine.limits.snapshot().budgets.slice(0, BUDGETS_MAX).map(budgetView),
    pauses: pauses.slice(0, PAUSES_MAX),
  }
}

type StreamsInput = {
  rates: StreamRates
  jobs: Record<Stage, number>
  badCounts: ReadonlyMap<number, number>
}

async function readStreams(
  { ledger, clock }: Services,
  { rates, jobs, badCounts }: StreamsInput,
): Promise<StreamView[]> {
  const rows = await ledger.streams()
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
      ...{ row, pauses },
      rate: measured[index] ?? counted.get(row.id) ?? 0,
      failedJobs: failed.get(row.id) ?? 0,
      badItems: badCounts.get(row.id) ?? 0,
    }),
  )
}

async function atWork(
  { engine, ledger, role }: Services,
  jobs: Record<Stage, number>,
): Promise<Pick<Overview, 'running' | 'live'>> {
  if (role !== 'web') {
    const { running, summary } = await engine.live()
    return { running: running.slice(0, RUNNING_MAX).map(runningView), live: summary }
  }
  const running = (await ledger.heldJobs(RUNNING_MAX)).map(heldView)
  const waiting = jobs.ready + jobs.deps + jobs.time
  const parts = [
    ...(jobs.claimed > 0 ? [`${formatCount(jobs.claimed)} at work elsewhere`] : []),
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
