/**
 * How long a call to somewhere else was held up by this process itself, as far as that can be known: the event loop was
 * in a turn when the call was to be sent, and in another one when its answer had come. What the loop did in between is
 * not deducted, for meanwhile the other side was at work.
 *
 * A timer looks while there are calls: what it comes late by is the turn of the loop that held it up, and everything
 * else that was due. A process that was frozen, or got no processor, looks the same.
 */
const EVERY_MS = 20

export type LoopWatch = {
  /** Ends the watch; of the time since its beginning, what this process had to do with it. */
  endMs(): number
}

type Timing = { monotonicMs(): number; timer(ms: number, fn: () => void): () => void }
type Turn = { fromMs: number; toMs: number }

export class LoopLag {
  readonly #timing: Timing
  /** Each with the turn in which it began, once that is over. */
  readonly #watches = new Set<{ sinceMs: number; first: Turn | undefined }>()
  #dueMs = 0
  #last: Turn = { fromMs: 0, toMs: 0 }
  #cancel: (() => void) | undefined

  constructor(timing: Timing) {
    this.#timing = timing
  }

  watch(): LoopWatch {
    const sinceMs = this.#timing.monotonicMs()
    if (this.#watches.size === 0) this.#arm(sinceMs)
    const watch = { sinceMs, first: undefined as Turn | undefined }
    this.#watches.add(watch)
    let ownMs: number | undefined
    return {
      endMs: () => {
        ownMs ??= this.#end(watch)
        return ownMs
      },
    }
  }

  #end(watch: { sinceMs: number; first: Turn | undefined }): number {
    this.#watches.delete(watch)
    const nowMs = this.#timing.monotonicMs()
    const isLate = nowMs > this.#dueMs
    const last = isLate ? { fromMs: this.#dueMs, toMs: nowMs } : this.#last
    if (this.#watches.size === 0) this.#cancel?.()
    const first = watch.first ?? { fromMs: watch.sinceMs, toMs: watch.sinceMs }
    // An answer that came after the last turn had ended did not wait for it.
    const isRecent = nowMs - last.toMs <= EVERY_MS
    const lastMs = isRecent ? last.toMs - Math.max(last.fromMs, first.toMs, watch.sinceMs) : 0
    return first.toMs - first.fromMs + Math.max(0, lastMs)
  }

  #arm(nowMs: number): void {
    this.#dueMs = nowMs + EVERY_MS
    this.#cancel = this.#timing.timer(EVERY_MS, () => this.#look())
  }

  #look(): void {
    const nowMs = this.#timing.monotonicMs()
    this.#last = { fromMs: Math.min(this.#dueMs, nowMs), toMs: nowMs }
    for (const watch of this.#watches) {
      watch.first ??= { fromMs: Math.max(watch.sinceMs, this.#last.fromMs), toMs: nowMs }
    }
    this.#arm(nowMs)
  }
}
