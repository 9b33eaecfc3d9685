/**
 * What keeps a whole group of jobs from going on and is the fault of none of them: a service cannot be reached, a disk
 * is full. Such jobs wait without costing a try; one of them at a time finds out whether it is over.
 *
 *   free ──a job meets it──▶ waiting ──its time has come──▶ trying (one job; the others go on waiting)
 *     ▲                         ▲                               │
 *     └────── it went well ─────┼───────────────────────────────┤
 *                               └──────── it is still there ────┘
 *
 * Groups are named by what they have in common, such as an account.
 */
import type { Clock } from '../base/clock.ts'
import type { TidemarkError } from '../base/errors.ts'

export type Obstacle<Where extends string> = {
  where: Where
  error: TidemarkError
  sinceMs: number
  /** When it is looked at again. */
  nextMs: number
}

const WAIT_MS_MIN = 1_000
const WAIT_MS_MAX = 30_000
/** While one job tries, the others leave it alone for this long. */
const TRYING_MS = 2_000

export class Obstacles<Where extends string = string> {
  readonly #clock: Clock
  readonly #found = new Map<string, Obstacle<Where>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(group: string): Obstacle<Where> | undefined {
    return this.#found.get(group)
  }

  /** How long to wait before trying; 0 where nothing is known to be in the way. */
  waitMs(group: string): number {
    const found = this.#found.get(group)
    if (!found) return 0
    const nowMs = this.#clock.monotonicMs()
    if (nowMs < found.nextMs) return found.nextMs - nowMs
    found.nextMs = nowMs + TRYING_MS
    return 0
  }

  /** Somebody met it; returns how long to wait: longer and longer, unless said otherwise between 1 and 30 seconds. */
  met(
    group: string,
    where: Where,
    error: TidemarkError,
    { waitMsMin = WAIT_MS_MIN, waitMsMax = WAIT_MS_MAX }: { waitMsMin?: number; waitMsMax?: number } = {},
  ): number {
    const nowMs = this.#clock.monotonicMs()
    const sinceMs = this.#found.get(group)?.sinceMs ?? nowMs
    const waitMs = Math.min(waitMsMax, Math.max(waitMsMin, (nowMs - sinceMs) / 2))
    this.#found.set(group, { where, error, sinceMs, nextMs: nowMs + waitMs })
    return waitMs
  }

  /** Something happened that may have ended it: whoever comes next tries. */
  maybeOver(group: string): void {
    const found = this.#found.get(group)
    if (found) found.nextMs = this.#clock.monotonicMs()
  }

  over(group: string): void {
    this.#found.delete(group)
  }
}
