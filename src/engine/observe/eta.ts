/**
 * An honest estimate of when work will be done, from what was measured and what the budget allows.
 *
 * - Never sooner than the budget allows, however fast the last minute was.
 * - A range, as wide as the measured rate swings; no number before the rate has been seen long enough.
 * - While work is still being listed, "at least".
 * - Never negative, never NaN, and more work never means an earlier end.
 */
import { formatDuration } from '../../base/format.ts'

/** The rate is averaged over slices of this length. */
const SLICE_MS = 2_000
/** Fewer slices than this with work in them are no basis for a promise. */
export const SLICES_MIN = 5
/** How much the newest slice counts: about the last minute matters. */
const WEIGHT = 0.1
/** However steady the rate was, it will not be exactly the same. */
const SPREAD_MIN_SHARE = 0.05
/** The slow end of the range is at most this many times the quick one's. */
const SPREAD_MAX = 4

export type MeasuredRate = {
  /** Units a second. */
  perSecond: number
  /** How far slices lie from the average, on average. */
  deviation: number
  slices: number
}

/** Measures a rate from amounts as they are done. O(1) a call; a long silence is a few steps, not one per slice. */
export class RateMeter {
  #sliceMs: number
  #amount = 0
  #rate: MeasuredRate = { perSecond: 0, deviation: 0, slices: 0 }

  constructor(nowMs: number) {
    this.#sliceMs = nowMs
  }

  add(amount: number, nowMs: number): void {
    this.#turn(nowMs)
    if (Number.isFinite(amount) && amount > 0) this.#amount += amount
  }

  measured(nowMs: number): MeasuredRate {
    this.#turn(nowMs)
    return { ...this.#rate }
  }

  #turn(nowMs: number): void {
    const passed = Math.floor((nowMs - this.#sliceMs) / SLICE_MS)
    if (passed <= 0) return
    this.#sliceMs += passed * SLICE_MS
    this.#fold(this.#amount / (SLICE_MS / 1_000), 1)
    this.#amount = 0
    if (passed > 1) this.#fold(0, passed - 1)
  }

  /** Takes `times` slices of the same rate into the averages at once. */
  #fold(perSecond: number, times: number): void {
    const { perSecond: average, deviation, slices } = this.#rate
    // Before the first work there is nothing to average: waiting for a start is not slowness.
    if (slices === 0 && perSecond === 0) return
    // A plain average at first, so that the first slice does not weigh for ever.
    const weight = 1 - (1 - Math.max(WEIGHT, 1 / (slices + 1))) ** times
    this.#rate = {
      perSecond: average + (perSecond - average) * weight,
      deviation: slices === 0 ? 0 : deviation + (Math.abs(perSecond - average) - deviation) * weight,
      slices: slices + times,
    }
  }
}

export type EtaQuestion = {
  /** In the unit of the rates: items or bytes. */
  remaining: number
  rate: MeasuredRate
  /** What the budget allows at most, in the same unit a second; left out or null for no limit. */
  perSecondMax?: number | null
  /** How long the budget is paused before anything goes on. */
  pausedMs?: number
  /** More may come: the work is still being listed. */
  listing?: boolean
}

export type Eta =
  | { type: 'done' }
  | { type: 'unknown'; why: 'measuring' | 'standing still' | 'listing' }
  | { type: 'range'; lowMs: number; highMs: number; atLeast: boolean }

export function estimate(question: EtaQuestion): Eta {
  const { rate, listing = false } = question
  const remaining = Number.isFinite(question.remaining) ? Math.max(0, question.remaining) : 0
  if (remaining === 0) return listing ? { type: 'unknown', why: 'listing' } : { type: 'done' }
  if (rate.slices < SLICES_MIN) return { type: 'unknown', why: 'measuring' }
  const quick = quickRate(question)
  if (!(quick > 0) || !Number.isFinite(quick)) return { type: 'unknown', why: 'standing still' }
  const slow = slowRate(question, quick)
  const pausedMs = Math.max(0, question.pausedMs ?? 0)
  const lowMs = pausedMs + (remaining / quick) * 1_000
  const highMs = pausedMs + (remaining / slow) * 1_000
  if (!Number.isFinite(highMs)) return { type: 'unknown', why: 'standing still' }
  return { type: 'range', lowMs, highMs, atLeast: listing }
}

function quickRate({ rate, perSecondMax }: EtaQuestion): number {
  return Math.min(rate.perSecond + spreadOf(rate), perSecondMax ?? Number.POSITIVE_INFINITY)
}

function slowRate({ rate }: EtaQuestion, quick: number): number {
  return Math.min(quick, Math.max(rate.perSecond - spreadOf(rate), quick / SPREAD_MAX))
}

function spreadOf({ perSecond, deviation }: MeasuredRate): number {
  return Math.max(deviation, perSecond * SPREAD_MIN_SHARE)
}

/** `about 12 min`, `10 min to 25 min`, `at least 3 h`, `unknown (measuring)`. */
export function formatEta(eta: Eta): string {
  switch (eta.type) {
    case 'done':
      return 'done'
    case 'unknown':
      return `unknown (${eta.why})`
    case 'range': {
      const [low, high] = [formatDuration(rounded(eta.lowMs)), formatDuration(rounded(eta.highMs))]
      if (eta.atLeast) return `at least ${low}`
      return low === high || eta.highMs < eta.lowMs * 1.25
        ? `about ${formatDuration(rounded((eta.lowMs + eta.highMs) / 2))}`
        : `${low} to ${high}`
    }
  }
}

/** To one second in ten, so that the text does not pretend to know and does not flicker. */
function rounded(ms: number): number {
  const stepMs = ms < 60_000 ? 1_000 : ms < 600_000 ? 10_000 : ms < 3_600_000 ? 60_000 : 600_000
  return Math.max(1_000, Math.round(ms / stepMs) * stepMs)
}
