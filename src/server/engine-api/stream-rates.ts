/**
 * How fast streams settle items. While somebody looks every few seconds, it is measured between the looks; before
 * that, taken from the ledger's counters, which are kept by the minute. Bounded: a minute of looks for each stream.
 */
import { listEngines } from '../../engine/observe/engines.ts'
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
    const kept = (this.#looks.get(streamId) ?? []).filter(({ atMs }) => atMs > look.atMs - WINDOW_MS)
    const last = kept.at(-1)
    // Waiting for a start is not slowness: the pace is that since the work began.
    const looks = last && last.items === kept[0]!.items && look.items > last.items ? [last] : kept
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

/**
 * From the counters of this minute and the one before, by stream. Only where work went on all that time: a stream
 * that began, or an engine that started, a few seconds ago would seem a hundred times slower than it is.
 */
export async function countedRates(ledger: Ledger): Promise<Map<number, number>> {
  const now = ledger.now()
  const sinceMinute = Math.floor(now / COUNTER_MS) - 1
  const sinceMs = sinceMinute * COUNTER_MS
  const engines = await listEngines(ledger)
  if (!engines.some(({ liveness, started_at }) => liveness === 'live' && started_at <= sinceMs))
    return new Map()
  const recent = await countedSince(ledger, sinceMinute)
  const earlier = await countedSince(ledger, sinceMinute - 1)
  const seconds = (now - sinceMs) / 1_000
  const wentOn = [...recent].filter(([streamId, n]) => earlier.get(streamId)! > n)
  return new Map(wentOn.map(([streamId, n]) => [streamId, n / seconds]))
}

async function countedSince(ledger: Ledger, minute: number): Promise<Map<number, number>> {
  const counts = new Map<number, number>()
  for (const { streamId, name, n } of await ledger.countersByStream(minute)) {
    if (COUNTED.has(name)) counts.set(streamId, (counts.get(streamId) ?? 0) + n)
  }
  return counts
}
