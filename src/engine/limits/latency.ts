/**
 * Quantiles over the last stretch of time, in fixed memory: a histogram with logarithmic buckets per
 * slice of the window, the oldest slice dropped as time goes on. Recording is O(1); a quantile is read
 * with an error of at most half a bucket (about 4.5 %).
 */
export type LatencyOptions = { windowMs?: number; slices?: number }
export type LatencySummary = { count: number; p50Ms: number; p95Ms: number; p99Ms: number }

const BUCKETS_PER_DOUBLING = 8
const LEAST_MS = 0.05
/** Up to about 28 minutes; what takes longer counts as that. */
const BUCKETS = BUCKETS_PER_DOUBLING * 25

export class LatencyWindow {
  readonly #sliceMs: number
  readonly #slices: { counts: Uint32Array; total: number }[]
  #current = 0
  #startMs: number | undefined

  constructor(options: LatencyOptions = {}) {
    const slices = options.slices ?? 6
    this.#sliceMs = (options.windowMs ?? 60_000) / slices
    this.#slices = Array.from({ length: slices }, () => ({ counts: new Uint32Array(BUCKETS), total: 0 }))
  }

  record(latencyMs: number, nowMs: number): void {
    this.#turn(nowMs)
    const slice = this.#slices[this.#current]!
    slice.counts[bucketOf(latencyMs)]! += 1
    slice.total += 1
  }

  count(nowMs: number): number {
    this.#turn(nowMs)
    return this.#slices.reduce((sum, slice) => sum + slice.total, 0)
  }

  /** The value below which the share `q` of the recorded ones lies; undefined without any. */
  quantile(q: number, nowMs: number): number | undefined {
    const count = this.count(nowMs)
    if (count === 0) return undefined
    const rank = Math.min(count, Math.max(1, Math.ceil(q * count)))
    let seen = 0
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      for (const slice of this.#slices) seen += slice.counts[bucket]!
      if (seen >= rank) return middleOf(bucket)
    }
    return middleOf(BUCKETS - 1)
  }

  summary(nowMs: number): LatencySummary | undefined {
    const p50Ms = this.quantile(0.5, nowMs)
    if (p50Ms === undefined) return undefined
    const p95Ms = this.quantile(0.95, nowMs) ?? p50Ms
    return { count: this.count(nowMs), p50Ms, p95Ms, p99Ms: this.quantile(0.99, nowMs) ?? p95Ms }
  }

  reset(): void {
    for (const slice of this.#slices) clear(slice)
  }

  #turn(nowMs: number): void {
    this.#startMs ??= nowMs
    const turns = Math.floor((nowMs - this.#startMs) / this.#sliceMs)
    if (turns <= 0) return
    for (let i = 0; i < Math.min(turns, this.#slices.length); i++) {
      this.#current = (this.#current + 1) % this.#slices.length
      clear(this.#slices[this.#current]!)
    }
    this.#startMs += turns * this.#sliceMs
  }
}

function clear(slice: { counts: Uint32Array; total: number }): void {
  slice.counts.fill(0)
  slice.total = 0
}

function bucketOf(latencyMs: number): number {
  if (!(latencyMs > LEAST_MS)) return 0
  return Math.min(BUCKETS - 1, Math.floor(Math.log2(latencyMs / LEAST_MS) * BUCKETS_PER_DOUBLING))
}

function middleOf(bucket: number): number {
  return LEAST_MS * 2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING)
}
