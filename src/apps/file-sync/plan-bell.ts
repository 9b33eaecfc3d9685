/**
 * Asks for a plan soon after actions have left nodes to be planned: many of them within a moment become one plan. It
 * is only a hint, rung from within transactions that may yet fail; what it forgets, the next look at either side asks
 * for.
 */
import type { CancelTimer, Clock } from '../../clock.ts'

const SOON_MS = 50

export class PlanBell {
  readonly #clock: Clock
  readonly #ask: (drive: string) => Promise<void>
  readonly #onError: (error: unknown) => void
  readonly #timers = new Map<string, CancelTimer>()

  constructor(options: {
    clock: Clock
    ask: (drive: string) => Promise<void>
    onError: (error: unknown) => void
  }) {
    this.#clock = options.clock
    this.#ask = options.ask
    this.#onError = options.onError
  }

  ring(drive: string): void {
    if (this.#timers.has(drive)) return
    const cancel = this.#clock.timer(SOON_MS, () => {
      this.#timers.delete(drive)
      this.#ask(drive).catch(this.#onError)
    })
    this.#timers.set(drive, cancel)
  }

  close(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }
}
