/**
 * Asks for a plan soon after actions have left nodes to be planned: many of them within a moment become one plan. And
 * for what changed in OneDrive, where an action has to know. It is only a hint, rung from within transactions that may
 * yet fail; what it forgets, the next look at either side asks for.
 */
import type { CancelTimer, Clock } from '../../clock.ts'

const SOON_MS = 50

export type Asked = 'plan' | 'delta'

export class PlanBell {
  readonly #clock: Clock
  readonly #ask: (drive: string, what: Asked) => Promise<void>
  readonly #onError: (error: unknown) => void
  readonly #timers = new Map<string, CancelTimer>()

  constructor(options: {
    clock: Clock
    ask: (drive: string, what: Asked) => Promise<void>
    onError: (error: unknown) => void
  }) {
    this.#clock = options.clock
    this.#ask = options.ask
    this.#onError = options.onError
  }

  ring(drive: string, what: Asked = 'plan'): void {
    const key = `${what} ${drive}`
    if (this.#timers.has(key)) return
    const cancel = this.#clock.timer(SOON_MS, () => {
      this.#timers.delete(key)
      this.#ask(drive, what).catch(this.#onError)
    })
    this.#timers.set(key, cancel)
  }

  close(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }
}
