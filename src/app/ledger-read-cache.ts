/**
 * A cache of what many pages read from the ledger at once. Those who ask for the same at the same time share one read,
 * and when reading would take too large a share of the time, those who ask get what was read last: many pages cost
 * hardly more than one. All reads of one ledger draw on one credit, and at most so many answers are kept.
 */
import type { Clock } from '../base/clock.ts'
import type { Ledger } from '../ledger/ledger.ts'

/** Looking takes at most this share of the time, over a while; after a quiet time, so much at once. */
const SHARE = 0.05
const CREDIT_MS_MAX = 500
const KEPT_MAX = 100

type Seen = { answer: Promise<unknown>; isUnderWay: boolean }

export class LedgerReadCache {
  readonly #seen = new Map<string, Seen>()
  #creditMs = CREDIT_MS_MAX
  #creditedAtMs = Number.POSITIVE_INFINITY

  /** `key` says what is looked at: equal keys get equal answers. */
  read<T>(key: string, clock: Clock, load: () => Promise<T>): Promise<T> {
    const nowMs = clock.monotonicMs()
    const earnedMs = Math.max(0, nowMs - this.#creditedAtMs) * SHARE
    this.#creditMs = Math.min(CREDIT_MS_MAX, this.#creditMs + earnedMs)
    this.#creditedAtMs = nowMs
    const last = this.#seen.get(key)
    if (last && (last.isUnderWay || this.#creditMs <= 0)) return last.answer as Promise<T>
    const answer = load()
    const seen = { answer, isUnderWay: true }
    this.#keep(key, seen)
    const end = (isSeen: boolean): void => {
      seen.isUnderWay = false
      // Debts are bounded, too: one look that took long is no reason to show its answer for ever.
      this.#creditMs = Math.max(-CREDIT_MS_MAX, this.#creditMs - (clock.monotonicMs() - nowMs))
      if (!isSeen && this.#seen.get(key) === seen) this.#seen.delete(key)
    }
    answer.then(
      () => end(true),
      () => end(false),
    )
    return answer
  }

  /** After something was changed on purpose: whoever did it wants to see it. */
  forget(): void {
    this.#seen.clear()
  }

  /** What was asked for longest ago goes first. */
  #keep(key: string, seen: Seen): void {
    this.#seen.delete(key)
    this.#seen.set(key, seen)
    if (this.#seen.size > KEPT_MAX) this.#seen.delete(this.#seen.keys().next().value!)
  }
}

const byLedger = new WeakMap<Ledger, LedgerReadCache>()

export function readCacheOf(ledger: Ledger): LedgerReadCache {
  const cache = byLedger.get(ledger) ?? new LedgerReadCache()
  byLedger.set(ledger, cache)
  return cache
}
