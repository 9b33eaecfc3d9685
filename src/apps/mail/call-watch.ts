/** Whether Gmail answers: what a sync that stands still can say about why. */
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'

export type Silence = {
  /** Since the last answer, or since somebody asked first. */
  forMs: number
  /** What became of the last call that failed meanwhile. */
  error: TidemarkError | undefined
}

export class CallWatch {
  readonly #clock: Clock
  #open = 0
  #sinceMs: number | undefined
  #error: TidemarkError | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async watch<T>(call: () => Promise<T>): Promise<T> {
    this.#open += 1
    this.#sinceMs ??= this.#clock.monotonicMs()
    try {
      const answer = await call()
      this.#answered()
      return answer
    } catch (thrown) {
      const error = asTidemarkError(thrown)
      // A refusal is an answer.
      if (error.kind === 'transient') this.#error = error
      else this.#answered()
      throw thrown
    } finally {
      this.#open -= 1
    }
  }

  /** Undefined while answers come, and where nobody asks and nothing failed. */
  get silence(): Silence | undefined {
    if (this.#sinceMs === undefined || (this.#open === 0 && !this.#error)) return undefined
    return { forMs: this.#clock.monotonicMs() - this.#sinceMs, error: this.#error }
  }

  #answered(): void {
    this.#error = undefined
    // Others still wait for theirs, but the service is there.
    this.#sinceMs = this.#open > 1 ? this.#clock.monotonicMs() : undefined
  }
}
