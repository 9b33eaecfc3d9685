/**
 * How fast streams settle items. While somebody looks every few seconds, it is measured between the looks; before
 * that, taken from the ledger's counters, which are kept by the minute. Bounded: a minute of looks for each stream.
 */
import { COUNTER_MS } from '../../ledger/changes.ts'
import type { Ledger } from '../../ledger/ledger.ts'

const WINDOW_MS = 60_000
/** Looks closer together than this are one. */
const APART_MS = 1_000
/** A shorter time says too little. */
const MEASURED_MS_MIN = 3_000
const COUNTED = new Set(['processed', 'skipped', 'bad'])

type Look = { atMs: number; items: number }

export class StreamRates {
  readonly #looks = new Map<number, Look[]>()

  /** Items a second; undefined where it was not watched for long enough. */
  measure(streamId: number, look: Look): number | undefined {
    const looks = (this.#looks.get(streamId) ?? []).filter(({ atMs }) => atMs > look.atMs - WINDOW_MS)
    const last = looks.at(-1)
    if (!last || look.atMs - last.atMs >= APART_MS) looks.push(look)
    this.#looks.set(streamId, looks)
    const first = looks[0]!
    const ms = look.atMs - first.atMs
    // Items never become fewer, unless a stream was made anew.
    if (look.items < first.items) this.#looks.set(streamId, [look])
    return ms < MEASURED_MS_MIN || look.items < first.items
      ? undefined
      : ((look.items - first.items) * 1_000) / ms
  }
}

/** From the counters of this minute and the one before, by stream. */
export async function countedRates(ledger: Ledger): Promise<Map<number, number>> {
  const now = ledger.now()
  const sinceMinute = Math.floor(now / COUNTER_MS) - 1
  const seconds = (now - sinceMinute * COUNTER_MS) / 1_000
  const rates = new Map<number, number>()
  for (const { streamId, name, n } of await ledger.countersByStream(sinceMinute)) {
    if (COUNTED.has(name)) rates.set(streamId, (rates.get(streamId) ?? 0) + n / seconds)
  }
  return rates
}
