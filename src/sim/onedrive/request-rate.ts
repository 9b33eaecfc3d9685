/**
 * How many requests an account may make: a bucket per account. Who empties it is told to wait, and until then
 * every call of that account is refused, and counted, so that a test can see whether a client kept still.
 */
import type { Clock } from '../../base/clock.ts'

export type RateSettings = {
  /** Null: as many as they like. */
  requestsPerSecond: number | null
  burst: number
  retryAfterSeconds: number
  status: 429 | 503 | 509
}

export type RateCounts = {
  /** Calls that emptied the bucket. */
  throttled: number
  /** Calls that came although they had been told to wait. */
  calledWhileWaiting: number
}

type Bucket = RateCounts & { tokens: number; filledMs: number; untilMs: number }

export class RequestRate {
  readonly settings: RateSettings = {
    requestsPerSecond: null,
    burst: 20,
    retryAfterSeconds: 1,
    status: 429,
  }
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(options: { clock: Clock; settings?: Partial<RateSettings> }) {
    this.#clock = options.clock
    Object.assign(this.settings, options.settings)
  }

  /** The account has to wait for so long, whatever its rate: also how a test throttles. */
  pause(account: string, seconds: number): void {
    this.#bucket(account).untilMs = this.#clock.monotonicMs() + seconds * 1000
  }

  /** Undefined: go on. Otherwise how long to wait. */
  take(account: string): number | undefined {
    const { requestsPerSecond, burst, retryAfterSeconds } = this.settings
    if (requestsPerSecond === null && this.#buckets.size === 0) return undefined
    const bucket = this.#bucket(account)
    const nowMs = this.#clock.monotonicMs()
    if (nowMs < bucket.untilMs) {
      bucket.calledWhileWaiting += 1
      return Math.ceil((bucket.untilMs - nowMs) / 1000)
    }
    if (requestsPerSecond === null) return undefined
    const filled = bucket.tokens + ((nowMs - bucket.filledMs) / 1000) * requestsPerSecond
    bucket.tokens = Math.min(burst, filled)
    bucket.filledMs = nowMs
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1
      return undefined
    }
    bucket.throttled += 1
    bucket.untilMs = nowMs + retryAfterSeconds * 1000
    return retryAfterSeconds
  }

  counts(account: string): RateCounts {
    const { throttled = 0, calledWhileWaiting = 0 } = this.#buckets.get(account) ?? {}
    return { throttled, calledWhileWaiting }
  }

  #bucket(account: string): Bucket {
    let bucket = this.#buckets.get(account)
    if (!bucket) {
      const filledMs = this.#clock.monotonicMs()
      bucket = { tokens: this.settings.burst, filledMs, untilMs: 0, throttled: 0, calledWhileWaiting: 0 }
      this.#buckets.set(account, bucket)
    }
    return bucket
  }
}
