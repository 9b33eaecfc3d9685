/** The figures of all streams together. */
import type { Overview } from '../../../src/server/engine-api/schemas.ts'

export type Totals = {
  listed: number
  settled: number
  /** Null where nothing is listed yet. */
  share: number | null
  rate: number
  running: number
  waiting: number
  bad: number
  engines: number
  silent: number
}

export function totalsOf(overview: Pick<Overview, 'streams' | 'jobs' | 'badItems' | 'workers'>): Totals {
  const { streams, jobs, workers } = overview
  const listed = streams.reduce((sum, stream) => sum + stream.listed, 0)
  const settled = streams.reduce(
    (sum, { stored, gone, skipped, bad }) => sum + stored + gone + skipped + bad,
    0,
  )
  return {
    listed,
    settled,
    share: listed > 0 ? settled / listed : null,
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
