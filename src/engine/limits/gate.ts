/**
 * Tells the dispatcher whether work under a budget may start, without waiting for anything.
 *
 * States: open, closed for a known time (a pause; a timer opens it), closed until something changes
 * (all workers busy; `changed` looks again). Whoever found it closed is called once it opens.
 */
import type { CancelTimer, Clock } from '../../clock.ts'

export type Closed = { forMs: number } | 'until-change' | undefined

export class Gate {
  readonly #clock: Clock
  readonly #closed: () => Closed
  readonly #listeners = new Set<() => void>()
  #foundClosed = false
  #timer: CancelTimer | undefined

  constructor(clock: Clock, closed: () => Closed) {
    this.#clock = clock
    this.#closed = closed
  }

  canStart(): boolean {
    const closed = this.#closed()
    if (closed === undefined) return true
    this.#foundClosed = true
    if (closed !== 'until-change') this.#openIn(closed.forMs)
    return false
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
    if (!this.#foundClosed || !this.canStart()) return
    this.#foundClosed = false
    for (const listener of [...this.#listeners]) listener()
  }

  close(): void {
    this.#timer?.()
    this.#listeners.clear()
  }

  #openIn(forMs: number): void {
    this.#timer?.()
    this.#timer = this.#clock.timer(Math.max(1, Math.ceil(forMs)), () => {
      this.#timer = undefined
      this.changed()
    })
  }
}
