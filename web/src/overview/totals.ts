/** The figures of all streams together. */
import type { Overview } from '../../../src/app/schemas.ts'
import { wholeOf } from './share.ts'

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
