/**
 * Asks for a plan soon after actions have left nodes to be planned: many requests within a moment become one plan. Where
 * an action needs to know more first, it asks in the same way for the changes in OneDrive, or for a look at folders. A
 * request is only a hint, made from within transactions that may yet fail: where one is lost, the next look at either
 * side asks for a plan.
 */
import type { CancelTimer, Clock } from '../../base/clock.ts'

const SOON_MS = 50
/** How many nodes are remembered for which a look was asked for; beyond that, each may ask once more. */
const LOOKED_FOR_MAX = 10_000

export type PlanRequest = { what: 'plan' | 'delta' } | { what: 'look'; folders: string[][] }

export class PlanRequests {
  readonly #clock: Clock
  readonly #ask: (pair: string, asked: PlanRequest) => Promise<void>
  readonly #onError: (error: unknown) => void
  readonly #timers = new Map<string, CancelTimer>()
  /** By folder pair: folders in which something is not where it was. */
  readonly #folders = new Map<string, Set<string>>()
  readonly #lookedFor = new Set<string>()

  constructor(options: {
    clock: Clock
    ask: (pair: string, asked: PlanRequest) => Promise<void>
    onError: (error: unknown) => void
  }) {
    this.#clock = options.clock
    this.#ask = options.ask
    this.#onError = options.onError
  }

  soon(pair: string, what: 'plan' | 'delta' = 'plan'): void {
    this.#after(`${what} ${pair}`, () => this.#ask(pair, { what }))
  }

  /**
   * Something is not where it was, and a look at its folder tells what became of it. Once for `whom`: what such a look
   * does not find would be looked for without end.
   */
  lookSoon(pair: string, folder: readonly string[], whom: string): void {
    const key = `${pair} ${whom}`
    if (this.#lookedFor.has(key)) return
    if (this.#lookedFor.size >= LOOKED_FOR_MAX) this.#lookedFor.clear()
    this.#lookedFor.add(key)
    const folders = this.#folders.get(pair) ?? new Set()
    this.#folders.set(pair, folders.add(folder.join('/')))
    this.#after(`look ${pair}`, () => {
      this.#folders.delete(pair)
      const names = [...folders].map((path) => (path === '' ? [] : path.split('/')))
      return this.#ask(pair, { what: 'look', folders: names })
    })
  }

  close(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  #after(key: string, ask: () => Promise<void>): void {
    if (this.#timers.has(key)) return
    const cancel = this.#clock.timer(SOON_MS, () => {
      this.#timers.delete(key)
      ask().catch(this.#onError)
    })
    this.#timers.set(key, cancel)
  }
}
