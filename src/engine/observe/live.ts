/** The live picture of one engine: what runs, what waits, how fast, and when it will be done. */
import type { Lane, Tally } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Dispatcher } from '../dispatcher.ts'
import type { KindRegistry } from '../kinds.ts'
import type { Limits } from '../limits/limits.ts'
import type { Window } from '../window.ts'
import type { Eta } from './eta.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { type JobProgress, type ProgressBoard, summarize } from './progress.ts'
import type { EngineStats } from './stats.ts'

const REMAINING = new Set(['ready', 'deps', 'time', 'claimed'])

export type KindOutlook = { kind: string; remaining: number; eta: Eta }

export type LiveSnapshot = {
  owner: number
  state: string
  /** "downloading 3 files (2.1 GB), uploading 5 (340 MB), 12 waiting" */
  summary: string
  running: (Pick<
    JobProgress,
    'id' | 'kind' | 'stream' | 'label' | 'done' | 'total' | 'unit' | 'startedAt'
  > & { lane: Lane; things: number })[]
  window: { size: number; target: number; running: Record<Lane, number>; waiting: Record<Lane, number> }
  kinds: KindOutlook[]
}

/** What is looked at of an engine. */
export type SeenEngine = {
  readonly owner: number
  readonly state: string
  readonly ledger: Ledger
  readonly kinds: KindRegistry
  readonly window: Window
  readonly dispatcher: Dispatcher
  readonly progress: ProgressBoard
  readonly limits: Limits
  readonly stats: EngineStats
}

export async function liveSnapshot(engine: SeenEngine): Promise<LiveSnapshot> {
  const running = runningJobs(engine)
  const tallies = await engine.ledger.tallies()
  const waiting = tallies
    .filter((t) => REMAINING.has(t.stage) && t.stage !== 'claimed')
    .reduce((sum, t) => sum + t.n, 0)
  return {
    owner: engine.owner,
    state: engine.state,
    summary: summarize(running, { describe: (kind) => engine.kinds.find(kind)?.describe, waiting }),
    running,
    window: {
      size: engine.window.size,
      target: engine.window.target,
      running: { ...engine.window.running },
      waiting: engine.window.waiting,
    },
    kinds: outlooks(engine, tallies, await engine.ledger.isListing()),
  }
}

function runningJobs(engine: SeenEngine): LiveSnapshot['running'] {
  const reported = new Map(engine.progress.running().map((job) => [job.id, job]))
  return [...engine.dispatcher.running.values()].map(({ context, kind: { items }, startedAt }) => {
    const { id, kind, lane, size } = context.job
    // A batch is about its messages, a lister about one slice, however many items are in it.
    const things = items ? Math.max(1, context.job.items) : 1
    const {
      label = null,
      done = 0,
      total = size,
      unit = size === null ? 'items' : 'bytes',
    } = reported.get(id) ?? {}
    return { id, kind, lane, things, stream: context.stream, label, done, total, unit, startedAt }
  })
}

/** Remaining work per kind, and how long it takes at the measured pace, but never faster than its budget allows. */
function outlooks(engine: SeenEngine, tallies: readonly Tally[], listing: boolean): KindOutlook[] {
  const remaining = new Map<string, number>()
  for (const { kind, stage, n } of tallies) {
    if (REMAINING.has(stage)) remaining.set(kind, (remaining.get(kind) ?? 0) + n)
  }
  const budgets = engine.limits.snapshot().budgets
  return [...remaining].map(([name, n]) => {
    const kind = engine.kinds.find(name)
    const budget = budgets.find((b) => typeof kind?.budget === 'string' && b.name === kind.budget)
    const perSecondMax = budget && kind?.cost ? budget.rate / kind.cost : null
    const pausedMs = budget ? Math.max(0, budget.pausedUntilMs - engine.ledger.now()) : 0
    return {
      kind: name,
      remaining: n,
      eta: engine.progress.eta(name, 'items', { remaining: n, perSecondMax, pausedMs, listing }),
    }
  })
}

export function engineMetrics({ stats, window, limits, ledger }: SeenEngine): Metrics {
  return createMetrics({
    stats,
    window: () => ({
      size: window.size,
      claimed: window.size,
      running: { ...window.running },
      waiting: window.waiting,
    }),
    budgets: () =>
      limits.snapshot().budgets.map(({ name, rate, tokens, pausedUntilMs }) => ({
        name,
        rate,
        tokens,
        pausedMs: Math.max(0, pausedUntilMs - ledger.now()),
      })),
    tallies: () => ledger.tallies(),
  })
}
