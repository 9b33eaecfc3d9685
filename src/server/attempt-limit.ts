/** So many tries in a window of time for each client. Those heard of last are remembered; their number is bounded. */
import type { Clock } from '../base/clock.ts'

const CLIENTS_MAX = 1_000

export class AttemptLimit {
  readonly #clock: Clock
  readonly #max: number
  readonly #windowMs: number
  readonly #clients = new Map<string, { sinceMs: number; n: number }>()

  constructor(options: { clock: Clock; max: number; windowMs: number }) {
    this.#clock = options.clock
    this.#max = options.max
    this.#windowMs = options.windowMs
  }

  /** Counts a try. 0 if it is allowed; otherwise how long to wait. */
  take(client: string): number {
    const nowMs = this.#clock.monotonicMs()
    const before = this.#clients.get(client)
    const entry = before && nowMs - before.sinceMs < this.#windowMs ? before : { sinceMs: nowMs, n: 0 }
    if (entry.n >= this.#max) return entry.sinceMs + this.#windowMs - nowMs
    entry.n += 1
    // Put last again, so that the one that has been quiet for longest is forgotten first.
    this.#clients.delete(client)
    this.#clients.set(client, entry)
    const [oldest] = this.#clients.keys()
    if (this.#clients.size > CLIENTS_MAX && oldest !== undefined) this.#clients.delete(oldest)
    return 0
  }

  forget(client: string): void {
    this.#clients.delete(client)
  }
}
