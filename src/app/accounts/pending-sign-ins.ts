/**
 * Sign-ins that were begun in a browser, known by their state, which only who began one has. Each is there for ten
 * minutes, for one answer, in the process that began it.
 */
import type { Clock } from '../../base/clock.ts'

const KEPT_MS = 600_000
const PENDING_MAX = 50

export class PendingSignIns<T> {
  /** Oldest first. */
  readonly #all = new Map<string, { value: T; begunMs: number }>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  remember(state: string, value: T): void {
    for (const [known, { begunMs }] of this.#all) {
      if (this.#all.size >= PENDING_MAX || this.#isOver(begunMs)) this.#all.delete(known)
    }
    this.#all.set(state, { value, begunMs: this.#clock.monotonicMs() })
  }

  /** Leaves it for who ends it. */
  look(state: string): T | undefined {
    const pending = this.#all.get(state)
    return pending && !this.#isOver(pending.begunMs) ? pending.value : undefined
  }

  /** For one answer: whoever comes second finds nothing. */
  take(state: string): T | undefined {
    const pending = this.look(state)
    this.#all.delete(state)
    return pending
  }

  #isOver(begunMs: number): boolean {
    return this.#clock.monotonicMs() - begunMs > KEPT_MS
  }
}
