/**
 * Tells the dispatcher whether work under a budget may start, without waiting for anything.
 *
 * States: open, closed for a known time (a pause; a timer opens it), closed until something changes
 * (all workers busy; `changed` looks again). Whoever found it closed is called once it opens.
 */
import type { CancelTimer, Clock } from '../../base/clock.ts'

export type Closed = { forMs: number } | 'until-change' | undefined

export type GateOptions = {
  clock: Clock
  closed: () => Closed
  /** Somebody found it closed until something changes. */
  onWanted?: () => void
}

export class Gate {
  readonly #options: GateOptions
  readonly #listeners = new Set<() => void>()
  #foundClosed = false
  #timer: CancelTimer | undefined

  constructor(options: GateOptions) {
    this.#options = options
  }

  canStart(): boolean {
    const closed = this.#look()
    if (closed === 'until-change') this.#options.onWanted?.()
    return closed === undefined
  }

  /** Calls `fn` whenever the gate opens after it was found closed. Returns how to stop that. */
  onOpen(fn: () => void): () => void {
    this.#listeners.add(fn)
    return () => {
      this.#listeners.delete(fn)
    }
  }

  /** Something changed that may open the gate. */
  changed(): void {
    if (!this.#foundClosed) return
    const wasPaused = this.#timer !== undefined
    const closed = this.#look()
    // Whoever found it paused wants what it now lacks, too.
    if (closed === 'until-change' && wasPaused) this.#options.onWanted?.()
    if (closed !== undefined) return
    this.#foundClosed = false
    for (const listener of [...this.#listeners]) listener()
  }

  close(): void {
    this.#timer?.()
    this.#listeners.clear()
  }

  #look(): Closed {
    this.#timer?.()
    this.#timer = undefined
    const closed = this.#options.closed()
    if (closed === undefined) return undefined
    this.#foundClosed = true
    if (closed !== 'until-change') this.#openIn(closed.forMs)
    return closed
  }

  #openIn(forMs: number): void {
    this.#timer = this.#options.clock.timer(Math.max(1, Math.ceil(forMs)), () => this.changed())
  }
}
