/**
 * `tidemark jobs watch`: what is going on, again and again, until Ctrl-C. On a terminal one screen is drawn over
 * the last; elsewhere a line is printed when something has changed; with --json, an object each time.
 *
 * It only reads. The slower the ledger answers, the less often it is asked: watching must not become the load.
 * While the ledger does not answer at all, it says so and goes on asking.
 */

import type { CliContext } from '../../app/command.ts'
import { lookAtLedger, type OpenedLedger } from '../../app/with-ledger.ts'
import { sleep, systemClock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { listEngines } from '../../engine/observe/engines.ts'
import { COUNTER_MS } from '../../ledger/changes.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { StreamStatus } from '../../ledger/queries.ts'
import { noCounts } from './stats.ts'
import { streamsShown } from './status.ts'
import { jsonView, lineView, type Snapshot, screenView, type View } from './watch-views.ts'

/** Claimed jobs looked at; more are only counted. */
const CLAIMED_MAX = 200
/** Reading takes at most this share of the time. */
const READING_SHARE_MAX = 0.1
const RATE_MS = 10_000

export async function watchJobs(context: CliContext, options: { every: number }): Promise<void> {
  const { output } = context
  await lookAtLedger(context, {
    look: async (opened) => {
      const isScreen = output.isTerminal && context.env.TERM !== 'dumb'
      const view = output.json ? jsonView(output) : isScreen ? screenView(output, opened) : lineView(output)
      await watch(opened, { view, everyMs: options.every })
    },
    missing: () => output.json && output.value(null),
  })
}

async function watch(
  { ledger }: OpenedLedger,
  { view, everyMs }: { view: View; everyMs: number },
): Promise<void> {
  const stop = new AbortController()
  const onSignal = (): void => stop.abort()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, onSignal)
  const reader = new Reader(ledger)
  try {
    while (!stop.signal.aborted) {
      const sinceMs = systemClock.monotonicMs()
      await look(reader, view)
      const tookMs = systemClock.monotonicMs() - sinceMs
      await sleep(systemClock, Math.max(everyMs, tookMs / READING_SHARE_MAX), stop.signal).catch(() => {
        // Told to stop: the loop ends by itself.
      })
    }
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, onSignal)
    view.end()
  }
}

async function look(reader: Reader, view: View): Promise<void> {
  let snapshot: Snapshot
  try {
    snapshot = await reader.read()
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (!error.code?.startsWith('ledger-')) throw thrown
    view.trouble(error)
    return
  }
  view.show(snapshot)
}

/** Remembers what is needed to tell what has changed. */
class Reader {
  readonly #ledger: Ledger
  readonly #sinceMinute: number
  #marks: Map<number, number> | undefined
  #processed: { atMs: number; n: number }[] = []

  constructor(ledger: Ledger) {
    this.#ledger = ledger
    this.#sinceMinute = Math.floor(ledger.now() / COUNTER_MS)
  }

  async read(): Promise<Snapshot> {
    const ledger = this.#ledger
    const jobs = noCounts()
    for (const { stage, n } of await ledger.tallies()) jobs[stage] += n
    const streams = await streamsShown(ledger)
    const { processed = 0 } = await ledger.counters({ sinceMinute: this.#sinceMinute })
    return {
      at: ledger.now(),
      engines: await listEngines(ledger),
      jobs,
      // Looking for claimed jobs where there are none would go through all of them.
      claimed: jobs.claimed > 0 ? await ledger.jobs({ state: 'claimed', limit: CLAIMED_MAX }) : [],
      streams,
      moved: this.#movedMarks(streams),
      rate: this.#rate(processed),
    }
  }

  #movedMarks(streams: readonly StreamStatus[]): Snapshot['moved'] {
    const known = this.#marks
    this.#marks = new Map(streams.map(({ id, mark_at }) => [id, mark_at]))
    if (!known) return []
    return streams
      .filter(({ id, mark, mark_at }) => mark !== null && known.get(id) !== mark_at)
      .map(({ name, mark }) => ({ stream: name, mark }))
  }

  #rate(processed: number): number {
    const nowMs = systemClock.monotonicMs()
    this.#processed.push({ atMs: nowMs, n: processed })
    // The last one from before the window stays: a rate needs two ends.
    while (this.#processed.length > 2 && this.#processed[1]!.atMs < nowMs - RATE_MS) this.#processed.shift()
    const first = this.#processed[0]!
    const elapsedMs = nowMs - first.atMs
    return elapsedMs <= 0 ? 0 : Math.max(0, ((processed - first.n) * 1_000) / elapsedMs)
  }
}
