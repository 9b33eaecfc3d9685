/**
 * Time is passed in. `systemClock` is the only place that reads the machine's clock; `FakeClock`
 * lets every rule about time be tested without sleeping.
 */
import { performance } from 'node:perf_hooks'
import { LoopLag, type LoopWatch } from './loop-lag.ts'

export type CancelTimer = () => void

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds that never go backwards, for durations. */
  monotonicMs(): number
  /** Measures how much of a call's time was this process's own doing, from now to its end. */
  watchLoop(): LoopWatch
  /** Calls `fn` once after `ms`. A pending timer does not keep the process alive unless `keepAlive`. */
  timer(ms: number, fn: () => void, options?: { keepAlive?: boolean }): CancelTimer
}

/** Node's timers fire at once beyond this; longer waits are cut into pieces. */
const TIMER_MS_MAX = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  watchLoop: () => loopLag.watch(),
  timer(ms, fn, options) {
    const wait = Math.max(0, ms)
    let cancelled = false
    let handle: NodeJS.Timeout
    const arm = (leftMs: number): void => {
      const pieceMs = Math.min(leftMs, TIMER_MS_MAX)
      handle = setTimeout(() => {
        if (cancelled) return
        if (leftMs > pieceMs) arm(leftMs - pieceMs)
        else fn()
      }, pieceMs)
      if (!options?.keepAlive) handle.unref()
    }
    arm(wait)
    return () => {
      cancelled = true
      clearTimeout(handle)
    }
  },
}

const loopLag = new LoopLag(systemClock)

/** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = (): void => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.timer(
      ms,
      () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      },
      { keepAlive: true },
    )
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

type FakeTimer = { at: number; order: number; fn: () => void }

/** A clock that moves only when told to. Timers fire in order of time, then of creation. */
export class FakeClock implements Clock {
  #nowMs: number
  /** How long a turn of the event loop takes: a call waits for one to be sent, and its answer for another. */
  turnMs = 0
  #order = 0
  #timers: FakeTimer[] = []

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs
  }

  now(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs
  }

  watchLoop(): LoopWatch {
    const fromMs = this.#nowMs
    return { endMs: () => Math.min(this.#nowMs - fromMs, 2 * this.turnMs) }
  }

  timer(ms: number, fn: () => void): CancelTimer {
    const timer = { at: this.#nowMs + Math.max(0, ms), order: this.#order++, fn }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((t) => t !== timer)
    }
  }

  get pendingTimers(): number {
    return this.#timers.length
  }

  /** Moves time forward, firing what falls due and letting promises settle in between. */
  async advance(ms: number): Promise<void> {
    // What was just called may still be on its way to its timer.
    await settlePromises()
    const until = this.#nowMs + ms
    for (;;) {
      const next = this.#nextDue(until)
      if (!next) break
      this.#nowMs = Math.max(this.#nowMs, next.at)
      this.#timers = this.#timers.filter((t) => t !== next)
      next.fn()
      await settlePromises()
    }
    this.#nowMs = until
    await settlePromises()
  }

  #nextDue(until: number): FakeTimer | undefined {
    let next: FakeTimer | undefined
    for (const timer of this.#timers) {
      if (timer.at > until) continue
      if (!next || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) next = timer
    }
    return next
  }
}

/** One turn of the event loop: promise chains that need no I/O have run to their end. */
function settlePromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
