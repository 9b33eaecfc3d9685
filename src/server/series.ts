/**
 * What charts draw: a few numbers a second for the last minutes, a minute for the last day; bounded, in memory. They
 * come from the ledger, so they speak for all processes on it, whichever of them is asked.
 */
import type { CancelTimer, Clock } from '../base/clock.ts'
import type { Engine } from '../engine/engine.ts'
import { COUNTER_MS } from '../ledger/changes.ts'
import type { BudgetRow } from '../ledger/contract-budgets.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { SqlBudgetStore } from '../ledger/sql-budgets.ts'
import { controllerOf } from './budget-controller.ts'

export type SeriesPoint = {
  /** Seconds since the epoch. */
  at: number
  /** Items settled a second. */
  rate: number
  /** By budget: units a second allowed and used, refused calls, workers. */
  budgets: Record<string, { allowed: number; used: number; throttled: number; workers: number }>
  running: number
  waiting: number
}

export type Series = {
  points(options: { sinceS: number; stepS: 1 | 60 }): readonly SeriesPoint[]
}

export const SECOND_POINTS = 600
export const MINUTE_POINTS = 1_440
const SECOND_MS = 1_000
const EARLY_MS = 50
const MINUTE_S = 60
const BUDGETS_MAX = 50
/** A controller that has not ticked for this long has nothing to do: its last share of use is history. */
const TICK_OLD_MS = 5_000
/** Nothing is measured over a longer gap: the machine slept, or the database was away. */
const GAP_MS_MAX = 10_000

type Sampler = { engine: Engine; ledger: Ledger; clock: Clock }

export function createSeries(options: Sampler): Series & { close(): Promise<void> } {
  const { clock } = options
  const seconds: SeriesPoint[] = []
  const minutes: SeriesPoint[] = []
  const takeSample = sampler(options)
  let minute: SeriesPoint[] = []
  let cancel: CancelTimer = () => {}
  let sampling: Promise<void> = Promise.resolve()
  let closed = false

  const keep = (point: SeriesPoint): void => {
    add(seconds, point, SECOND_POINTS)
    const [first] = minute
    if (first && Math.floor(first.at / MINUTE_S) !== Math.floor(point.at / MINUTE_S)) {
      add(minutes, minuteOf(minute), MINUTE_POINTS)
      minute = []
    }
    minute.push(point)
  }

  const sample = async (): Promise<void> => {
    try {
      const point = await takeSample()
      if (point && !closed) keep(point)
    } catch {
      // The database is away: the chart has a gap there, and /readyz says why.
    }
    if (!closed) sampleLater()
  }

  const sampleLater = (): void => {
    const leftMs = SECOND_MS - (clock.now() % SECOND_MS)
    // A timer may be a little early; the same second must not be told twice.
    cancel = clock.timer(leftMs < EARLY_MS ? leftMs + SECOND_MS : leftMs, () => {
      sampling = sample()
    })
  }
  sampleLater()

  return {
    points({ sinceS, stepS }) {
      const all = stepS === 1 ? seconds : minute.length > 0 ? [...minutes, minuteOf(minute)] : minutes
      return all.filter(({ at }) => at >= sinceS)
    },
    async close() {
      closed = true
      cancel()
      await sampling
    },
  }
}

/** Each call measures since the one before; the first only takes its bearings. */
function sampler({ engine, ledger, clock }: Sampler): () => Promise<SeriesPoint | undefined> {
  const budgets = new SqlBudgetStore(ledger.driver)
  let before: { atMs: number; minute: number; settled: number; throttles: Map<string, number> } | undefined

  const settledSince = async (minute: number): Promise<number> => {
    const { processed = 0, bad = 0 } = await ledger.counters({ sinceMinute: minute })
    return processed + bad
  }

  return async () => {
    const minute = Math.floor(ledger.now() / COUNTER_MS)
    const rows = (await budgets.list()).slice(0, BUDGETS_MAX)
    const tallies = await ledger.tallies()
    const last = before
    const settled = await settledSince(last?.minute ?? minute)
    const atMs = clock.monotonicMs()
    // Counters are kept by the minute: from a new one on, what is compared begins there.
    const base = last && last.minute !== minute ? await settledSince(minute) : settled
    before = {
      atMs,
      minute,
      settled: base,
      throttles: new Map(rows.map((row) => [row.name, throttlesOf(row)])),
    }
    if (!last || atMs - last.atMs > GAP_MS_MAX || atMs <= last.atMs) return undefined
    const ofStages = (...stages: string[]): number =>
      tallies.filter(({ stage }) => stages.includes(stage)).reduce((sum, { n }) => sum + n, 0)
    const claimed = ofStages('claimed')
    // Claimed jobs may still wait in a window; only the process that has them knows.
    const running = engine.state === 'started' ? Math.min(claimed, engine.dispatcher.running.size) : claimed
    return {
      at: Math.floor(clock.now() / SECOND_MS),
      rate: round((Math.max(0, settled - last.settled) * SECOND_MS) / (atMs - last.atMs)),
      budgets: Object.fromEntries(
        rows.flatMap((row) => {
          const view = budgetOf(row, ledger.now(), last.throttles.get(row.name))
          return view ? [[row.name, view] as const] : []
        }),
      ),
      running,
      waiting: Math.max(0, ofStages('ready', 'deps', 'time') + claimed - running),
    }
  }
}

function throttlesOf(row: BudgetRow): number {
  return controllerOf(row)?.throttledCalls ?? 0
}

function budgetOf(
  row: BudgetRow,
  nowMs: number,
  throttlesBefore: number | undefined,
): SeriesPoint['budgets'][string] | undefined {
  const state = controllerOf(row)
  if (!state) return undefined
  const isPaused = Math.max(row.pausedUntilMs, state.pausedUntilMs) > nowMs
  const isIdle = nowMs - state.tickMs > TICK_OLD_MS
  return {
    allowed: isPaused ? 0 : round(state.rate),
    used: isIdle ? 0 : round(state.useShare * state.rate),
    throttled: Math.max(0, state.throttledCalls - (throttlesBefore ?? state.throttledCalls)),
    workers: state.workers,
  }
}

/** Averages; refused calls are added up. */
function minuteOf(points: readonly SeriesPoint[]): SeriesPoint {
  const [first] = points
  const average = (values: readonly number[]): number =>
    round(values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length))
  const names = new Set(points.flatMap((point) => Object.keys(point.budgets)))
  const budgets = [...names].map((name) => {
    const seen = points.flatMap((point) => point.budgets[name] ?? [])
    const view = {
      allowed: average(seen.map(({ allowed }) => allowed)),
      used: average(seen.map(({ used }) => used)),
      throttled: seen.reduce((sum, { throttled }) => sum + throttled, 0),
      workers: average(seen.map(({ workers }) => workers)),
    }
    return [name, view] as const
  })
  return {
    at: Math.floor((first?.at ?? 0) / MINUTE_S) * MINUTE_S,
    rate: average(points.map(({ rate }) => rate)),
    budgets: Object.fromEntries(budgets),
    running: average(points.map(({ running }) => running)),
    waiting: average(points.map(({ waiting }) => waiting)),
  }
}

function add(points: SeriesPoint[], point: SeriesPoint, max: number): void {
  points.push(point)
  if (points.length > max) points.splice(0, points.length - max)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
