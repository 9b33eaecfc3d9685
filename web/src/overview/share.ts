/** How much of a stream is accounted for, as a share of the whole and not only of what was listed so far. */

import { useRef } from 'preact/hooks'
import type { Overview, StreamView } from '../../../src/app/schemas.ts'

export type Counts = Pick<StreamView, 'listed' | 'onTheirWay' | 'whole'>

export function wholeOf(streams: readonly Counts[]): number {
  return streams.reduce((sum, { whole }) => sum + whole, 0)
}

/** Null where nothing is known yet. */
export function shareOf(streams: readonly Counts[]): number | null {
  const whole = wholeOf(streams)
  const settled = streams.reduce((sum, { listed, onTheirWay }) => sum + listed - onTheirWay, 0)
  return whole > 0 ? settled / whole : null
}

/** What is listed later makes the whole larger: until all was done once, a share that was shown is not taken back. */
export function heldShare(before: number | null, now: number | null): number | null {
  return before === null || now === null || before >= 1 ? now : Math.max(before, now)
}

export function useShare(streams: readonly Counts[]): number | null {
  const held = useRef<number | null>(null)
  held.current = heldShare(held.current, shareOf(streams))
  return held.current
}

/** The figures of all streams together. */
export type Totals = {
  /** Listed, or known to be there. */
  whole: number
  settled: number
  rate: number
  running: number
  waiting: number
  bad: number
  engines: number
  silent: number
}

export function totalsOf(overview: Pick<Overview, 'streams' | 'jobs' | 'badItems' | 'workers'>): Totals {
  const { streams, jobs, workers } = overview
  const settled = streams.reduce(
    (sum, { stored, gone, skipped, bad }) => sum + stored + gone + skipped + bad,
    0,
  )
  return {
    whole: wholeOf(streams),
    settled,
    rate: streams.reduce((sum, { rate }) => sum + rate, 0),
    running: jobs.claimed ?? 0,
    waiting: (jobs.ready ?? 0) + (jobs.deps ?? 0) + (jobs.time ?? 0),
    bad: overview.badItems,
    engines: workers.filter(({ alive }) => alive).length,
    silent: workers.filter(({ alive }) => !alive).length,
  }
}

/** "fetching 300 messages, 12 waiting" as a sentence of its own. */
export function workText({ live }: Pick<Overview, 'live'>): string {
  if (live === '' || live === 'idle') return 'Nothing is being worked on.'
  return `${live[0]!.toUpperCase()}${live.slice(1)}.`
}
