/** `tidemark jobs stats`: how much of what, and how fast. From tallies and counters; no job is counted. */

import type { CliContext } from '../../app/command.ts'
import { lookAtLedger } from '../../app/with-ledger.ts'
import { formatCount } from '../../base/format.ts'
import { COUNTER_MS } from '../../ledger/changes.ts'
import type { Tally } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { STAGES, type Stage } from '../../ledger/states.ts'

export type StageCounts = Record<Stage, number>

/** In the order of a job's life; what was never counted is shown as 0. */
const COUNTERS = ['processed', 'skipped', 'retried', 'postponed', 'split', 'bad', 'failed', 'canceled']

const WINDOWS = [
  { name: 'hour', minutes: 60 },
  { name: 'fiveMinutes', minutes: 5 },
] as const

type WindowCounts = { counts: Record<string, number>; minutes: number }
type Windows = Record<(typeof WINDOWS)[number]['name'], WindowCounts>

export async function showStats(context: CliContext): Promise<void> {
  const { output } = context
  await lookAtLedger(context, {
    look: async ({ ledger }) => {
      const kinds = [...countsByKind(await ledger.tallies())].map(([kind, counts]) => ({ kind, ...counts }))
      const windows = await readWindows(ledger)
      if (output.json) output.value({ kinds, counters: countersJson(windows) })
      else {
        printKinds(context, kinds)
        if (kinds.length > 0) printCounters(context, windows)
      }
    },
    missing: () => output.json && output.value({ kinds: [], counters: {} }),
  })
}

export function countsByKind(tallies: readonly Tally[]): Map<string, StageCounts> {
  const kinds = new Map<string, StageCounts>()
  for (const { kind, stage, n } of tallies) {
    const counts = kinds.get(kind) ?? noCounts()
    counts[stage] += n
    kinds.set(kind, counts)
  }
  return kinds
}

export function noCounts(): StageCounts {
  return Object.fromEntries(STAGES.map((stage) => [stage, 0])) as StageCounts
}

/** Counters are kept by the minute, so a window begins with a whole one; rates go by its real length. */
async function readWindows(ledger: Ledger): Promise<Windows> {
  const now = ledger.now()
  const windows: Partial<Windows> = {}
  for (const { name, minutes } of WINDOWS) {
    const sinceMinute = Math.floor(now / COUNTER_MS) - minutes + 1
    const counts = await ledger.counters({ sinceMinute })
    windows[name] = { counts, minutes: (now - sinceMinute * COUNTER_MS) / COUNTER_MS }
  }
  return windows as Windows
}

function printKinds({ output }: CliContext, kinds: readonly ({ kind: string } & StageCounts)[]): void {
  const total = noCounts()
  for (const counts of kinds) for (const stage of STAGES) total[stage] += counts[stage]
  const rows = kinds.length > 1 ? [...kinds, { kind: 'all', ...total }] : kinds
  output.listing({
    columns: [
      { title: 'kind', value: ({ kind }) => kind },
      ...STAGES.map((stage) => ({
        title: TITLES[stage] ?? stage,
        value: (row: StageCounts) => formatCount(row[stage]),
        align: 'right' as const,
      })),
    ],
    rows,
    empty: 'There are no jobs.',
  })
}

/** The other stages are called what they are. */
const TITLES: Partial<Record<Stage, string>> = { deps: 'after jobs', time: 'later' }

function printCounters({ output }: CliContext, { hour, fiveMinutes }: Windows): void {
  const names = counterNames(hour)
  const perMinute = ({ counts, minutes }: WindowCounts, name: string): string =>
    formatCount((counts[name] ?? 0) / Math.max(minutes, 1 / 60))
  output.line('')
  output.listing({
    columns: [
      { title: 'counter', value: (name: string) => name },
      { title: 'last hour', value: (name: string) => formatCount(hour.counts[name] ?? 0), align: 'right' },
      { title: 'a minute', value: (name: string) => perMinute(hour, name), align: 'right' },
      {
        title: 'last 5 min',
        value: (name: string) => formatCount(fiveMinutes.counts[name] ?? 0),
        align: 'right',
      },
      { title: 'a minute', value: (name: string) => perMinute(fiveMinutes, name), align: 'right' },
    ],
    rows: names,
  })
}

function counterNames({ counts }: WindowCounts): string[] {
  const others = Object.keys(counts).filter((name) => !COUNTERS.includes(name))
  return [...COUNTERS, ...others.sort()]
}

function countersJson(windows: Windows) {
  return Object.fromEntries(
    WINDOWS.map(({ name }) => {
      const { counts, minutes } = windows[name]
      const entries = counterNames(windows.hour).map((counter) => [counter, counts[counter] ?? 0])
      return [name, { minutes: Number(minutes.toFixed(3)), ...Object.fromEntries(entries) }]
    }),
  )
}
