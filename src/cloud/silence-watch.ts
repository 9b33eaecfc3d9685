/**
 * The patience of one call: ends its waiting when the caller aborts or the service is silent for too long.
 *
 * Invariants:
 * - silence is measured only while we wait for the service, never while the answer's reader is busy
 * - a wait whose signal aborts rejects with the signal's reason at once, whatever the network does
 */
import type { Clock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'

export type SilenceErrors = {
  timedOut(timeoutMs: number): TidemarkError
  unreachable(thrown: unknown): TidemarkError
}

export type SilenceWatchOptions = {
  clock: Clock
  timeoutMs: number
  caller: AbortSignal | undefined
  errors: SilenceErrors
}

export class SilenceWatch {
  readonly #options: SilenceWatchOptions
  readonly #controller = new AbortController()
  readonly #onAbort: () => void
  /** At most one wait at a time. */
  #stopWaiting: ((reason: unknown) => void) | undefined
  #heardAgain = false
  #isHeld = false

  constructor(options: SilenceWatchOptions) {
    this.#options = options
    const { caller } = options
    this.#onAbort = () => this.#stop(caller?.reason)
    if (caller?.aborted) this.#stop(caller.reason)
    else caller?.addEventListener('abort', this.#onAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The caller wants no more. */
  get stopped(): boolean {
    return this.#options.caller?.aborted === true
  }

  /** Waits for the service to say something. */
  async hear<T>(work: Promise<T>, timeoutMs = this.#options.timeoutMs): Promise<T> {
    const { clock, errors } = this.#options
    let cancel = (): void => undefined
    const arm = (): void => {
      this.#heardAgain = false
      cancel = clock.timer(timeoutMs, () => {
        if (this.#heardAgain || this.#isHeld) arm()
        else this.#stop(errors.timedOut(timeoutMs))
      })
    }
    arm()
    try {
      return await this.unless(work)
    } catch (error) {
      if (this.signal.aborted) throw this.signal.reason
      // What was sent has its own failures, which are none of the connection.
      throw error instanceof TidemarkError ? error : errors.unreachable(error)
    } finally {
      cancel()
    }
  }

  /** The other side moves: it took some of what we send. The wait in course gets its time anew. */
  moved(): void {
    this.#heardAgain = true
  }

  /** What is to be sent, with the time that it takes to come left out: that is our own silence. */
  async *sending(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    this.#isHeld = true
    try {
      for await (const piece of body) {
        this.#isHeld = false
        yield piece
        this.#isHeld = true
      }
    } finally {
      this.moved()
      this.#isHeld = false
    }
  }

  /** Waits for `work` unless the call is stopped first. */
  unless<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#stopWaiting = reject
      work.then(resolve, reject)
      if (this.signal.aborted) reject(this.signal.reason)
    })
  }

  end(): void {
    this.#options.caller?.removeEventListener('abort', this.#onAbort)
    this.#stopWaiting = undefined
  }

  #stop(reason: unknown): void {
    if (this.signal.aborted) return
    this.#controller.abort(reason)
    this.#stopWaiting?.(reason)
  }
}
