/**
 * One process's end of a budget that all processes on the ledger share. Takers wait in line; units are
 * drawn from the store in chunks (about 100 ms worth, divided by those that share), so that a busy
 * budget costs about ten draws a second and not one per call.
 *
 * States of the connection: idle (no share held) → drawing (units come in, takers are served in order)
 * → idle again once nobody has waited for a while: what is left goes back, the share is lent to others.
 *
 * Invariants:
 * - units handed out here never exceed units granted by the store, so the store's bound holds for all
 * - takers of a lane are served in the order in which they came; an aborted one leaves nothing behind
 * - a cost larger than the burst is saved up from several draws, so it always passes
 * - during a pause nobody is served; a store that fails is tried again and takers keep waiting
 * - units are released evenly (at most PACE_SHARE of the rate), since many services count by the second
 */
import type { CancelTimer, Clock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { Random } from '../../base/random.ts'
import type { Lane } from '../../ledger/contract.ts'
import type {
  BudgetStart,
  BudgetStore,
  BudgetView,
  Draw,
  Drawn,
  Flow,
} from '../../ledger/contract-budgets.ts'
import { outside, refuseInside } from '../../ledger/guard.ts'
import { type BucketState, take } from './token-bucket.ts'
import { type Waiter, Waiters } from './waiters.ts'
import { WorkerSlots } from './worker-slots.ts'

export type TakeOptions = { signal?: AbortSignal; lane?: Lane }

export type SharedBucketOptions = {
  name: string
  member: string
  store: BudgetStore
  clock: Clock
  random: Random
  start: () => BudgetStart
  /** Under which lease workers run here, how many, and how many all may have together; without, it grants none. */
  workers?: { owner: () => number; running: () => number; max: () => number }
  onView?: (view: BudgetView) => void
  /** The slots for workers may be others than before. */
  onSlots?: () => void
  onError?: (error: unknown) => void
}

/** A change to the shared row, as a function of what it is now; undefined changes nothing. */
export type Change = (view: BudgetView) => (Flow & { pausedUntilMs: number; controller: string }) | undefined

const DRAW_MS = 100
/** More than flows in between two draws, so that a draw takes all that has come. */
const CHUNK_MS = 2 * DRAW_MS
/** After a draw that was granted in full there may be more at once (a burst after quiet). */
const DRAW_AGAIN_MS = 20
/** Waiting takers look at least this often, since others may have left or the rate may have changed. */
const POLL_MS = 1_000
const IDLE_MS = 250
const FAILED_MS = 200
const FAILED_MS_MAX = 5_000
const PACE_SHARE = 1.05
const PACE_MS = 10
const TUNE_TRIES_MAX = 50
/** A smaller difference to the store's clock is the time that the answer took. */
const CLOCK_SKEW_MS = 250
/** Answers that overtake each other are closer. */
const CLOCK_BACK_MS = 10_000
const ROUNDING = 1e-9

type Exchange = Pick<Draw, 'want' | 'giveBack' | 'leave'>
const REPORT: Exchange = { want: 0, giveBack: 0, leave: false }
const NO_WORKERS = { owner: () => 0, running: () => 0, max: () => 0 }

export class SharedBucket {
  readonly #options: SharedBucketOptions
  readonly #waiters = new Waiters()
  readonly #slots: WorkerSlots
  #pool = 0
  #pace: BucketState = { tokens: 0, updatedMs: 0 }
  #view: BudgetView | undefined
  #aheadMs = 0
  #pausedUntilMs = 0
  #unlimited = false
  #drawing = false
  #drawn: Promise<void> = Promise.resolve()
  #joined = false
  #exchanged: Promise<unknown> = Promise.resolve()
  #drawAtMs = 0
  #failures = 0
  #timer: CancelTimer | undefined
  #askTimer: CancelTimer | undefined
  #closed = false

  constructor(options: SharedBucketOptions) {
    this.#options = options
    this.#slots = new WorkerSlots(options.workers ?? NO_WORKERS)
  }

  /** The last that was heard of the shared row. */
  get view(): BudgetView | undefined {
    return this.#view
  }

  get waiting(): number {
    return this.#waiters.count
  }

  get pool(): number {
    return this.#pool
  }

  get pausedUntilMs(): number {
    return Math.max(this.#pausedUntilMs, this.#view?.pausedUntilMs ?? 0)
  }

  /** Workers that may run here. */
  get slots(): number {
    return this.#slots.count(this.#options.clock.monotonicMs())
  }

  /** A worker could start, were there a slot for it. */
  askForSlot(): void {
    this.#slots.ask(this.#options.clock.monotonicMs())
    this.#reportWorkers()
  }

  workerStarted(): void {
    this.#slots.started()
  }

  workerEnded(): void {
    this.#reportWorkers()
  }

  /** Now, by the store's clock. */
  now(): number {
    return this.#options.clock.now() + this.#aheadMs
  }

  async take(units: number, options: TakeOptions = {}): Promise<void> {
    // What it may have to wait for is written by a transaction of its own.
    refuseInside(`The budget ${this.#options.name}`)
    const { signal, lane = 'bulk' } = options
    if (!(units >= 0 && Number.isFinite(units))) {
      throw new UsageError(`The budget ${this.#options.name} cannot give ${units} units.`)
    }
    if (this.#closed) throw this.#closedError()
    signal?.throwIfAborted()
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        if (!this.#waiters.remove(waiter)) return
        reject(signal?.reason)
        this.#pump()
      }
      const waiter: Waiter = {
        units,
        lane,
        resolve: () => {
          signal?.removeEventListener('abort', onAbort)
          resolve()
        },
        reject: (reason) => {
          signal?.removeEventListener('abort', onAbort)
          reject(reason)
        },
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiters.add(waiter)
      this.#pump()
    })
  }

  /** Units that were taken and then not needed. */
  refund(units: number): void {
    this.#pool += units
    this.#pump()
  }

  /** Stops serving here at once, before the shared row says so. */
  pauseUntil(untilMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, untilMs)
  }

  /** Everyone passes without units until it is switched off again. */
  setUnlimited(unlimited: boolean): void {
    this.#unlimited = unlimited
    this.#drawAtMs = 0
    this.#pump()
  }

  /** Compare and swap on the shared row, tried again while others change it, too. */
  async tune(change: Change): Promise<void> {
    const { store, name, clock } = this.#options
    let view = this.#view ?? (await this.#exchange(REPORT))
    for (let tries = 0; tries < TUNE_TRIES_MAX; tries++) {
      const changed = change(view)
      if (!changed) {
        this.#pump()
        return
      }
      const sentMs = clock.now()
      const tuning = { ...changed, name, version: view.version }
      const tuned = await outside(() => store.tune(tuning, sentMs))
      view = tuned
      this.#adopt(view, sentMs)
      if (!tuned.tuned) continue
      this.#drawAtMs = 0
      this.#pump()
      return
    }
    throw new TidemarkError(`The budget ${name} changes too fast to be tuned.`, { kind: 'transient' })
  }

  /** Gives back what is left. Those who wait are rejected. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#timer?.()
    this.#askTimer?.()
    for (const waiter of this.#waiters.drain()) waiter.reject(this.#closedError())
    await this.#drawn
    if (this.#joined) await this.#draw({ want: 0, giveBack: this.#pool, leave: true })
  }

  #pump(): void {
    if (this.#closed) return
    this.#timer?.()
    this.#timer = undefined
    for (let head = this.#waiters.head(); head; head = this.#waiters.head()) {
      const waitMs = this.#unlimited ? 0 : this.#waitOf(head)
      if (waitMs !== 0) {
        if (waitMs === 'short') this.#askForMore(head)
        else this.#wakeIn(waitMs, { keepAlive: true })
        return
      }
      this.#waiters.shift()?.resolve()
    }
    if (this.#joined) this.#wakeIn(this.#pool > 0 ? IDLE_MS : POLL_MS, { keepAlive: false })
  }

  /** Asks for slots, or frees those that are no longer needed; whatever is drawn meanwhile does the same. */
  #reportWorkers(): void {
    if (this.#closed || this.#drawing) return
    this.#askTimer?.()
    this.#askTimer = undefined
    const { clock } = this.#options
    const nowMs = clock.monotonicMs()
    const dueMs = this.#slots.dueMs(nowMs)
    if (dueMs === undefined) return
    const waitMs = (this.#failures > 0 ? Math.max(dueMs, this.#drawAtMs) : dueMs) - nowMs
    if (waitMs <= 0) this.#drawn = this.#draw(REPORT)
    else this.#askTimer = clock.timer(Math.ceil(waitMs), () => this.#reportWorkers())
  }

  /** How long the head has to wait still; 0 when it got its units, 'short' when there are too few. */
  #waitOf(head: Waiter): number | 'short' {
    const pauseMs = this.pausedUntilMs - this.now()
    if (pauseMs > 0) return pauseMs
    if (this.#pool + ROUNDING < head.units) return 'short'
    const rate = (this.#view?.rate ?? 0) * PACE_SHARE
    // Large costs pace themselves, as they are saved up from several draws.
    const cost = Math.min(head.units, (rate * CHUNK_MS) / 1000)
    const pace = take(
      this.#pace,
      { rate, burst: (rate * PACE_MS) / 1000 },
      cost,
      this.#options.clock.monotonicMs(),
    )
    this.#pace = pace.state
    // A rate of zero stops further draws only; what was granted may go.
    if (!pace.taken && rate > 0) return pace.waitMs
    this.#pool = Math.max(0, this.#pool - head.units)
    return 0
  }

  #askForMore(head: Waiter): void {
    if (this.#drawing) return
    const waitMs = this.#drawAtMs - this.#options.clock.monotonicMs()
    if (waitMs > 0) {
      this.#wakeIn(waitMs, { keepAlive: true })
      return
    }
    const view = this.#view
    const chunk = view ? (view.rate * CHUNK_MS) / 1000 / Math.max(1, view.members) : 0
    this.#drawn = this.#draw({ want: Math.max(head.units, chunk) - this.#pool, giveBack: 0, leave: false })
  }

  #wakeIn(afterMs: number, options: { keepAlive: boolean }): void {
    this.#timer?.()
    this.#timer = this.#options.clock.timer(
      Math.max(1, Math.ceil(afterMs)),
      () => {
        this.#timer = undefined
        if (this.#waiters.count > 0) this.#pump()
        else this.#rest()
      },
      options,
    )
  }

  /** Nobody waits: what is left goes back; who still has workers running stays known to the others. */
  #rest(): void {
    if (this.#drawing || !this.#joined) return
    const leave = !this.#slots.isUsed(this.#options.clock.monotonicMs())
    this.#drawn = this.#draw({ want: 0, giveBack: this.#pool, leave })
  }

  /** Never rejects: a store that fails is tried again, later and later. */
  async #draw(exchange: Exchange): Promise<void> {
    const { clock, random, onError } = this.#options
    this.#drawing = true
    try {
      const drawn = await this.#exchange(exchange)
      const short = drawn.granted + ROUNDING < exchange.want
      const nextMs = short ? Math.min(POLL_MS, Math.max(DRAW_MS, drawn.waitMs)) : DRAW_AGAIN_MS
      // So that processes do not draw in step.
      if (exchange.want > 0) this.#drawAtMs = clock.monotonicMs() + nextMs * (0.95 + 0.1 * random())
      this.#failures = 0
    } catch (error) {
      this.#failures += 1
      this.#drawAtMs =
        clock.monotonicMs() + Math.min(FAILED_MS_MAX, FAILED_MS * 2 ** Math.min(10, this.#failures - 1))
      onError?.(error)
    } finally {
      this.#drawing = false
      this.#pump()
      this.#reportWorkers()
    }
  }

  /** One after another: of two at a time, the answers could overtake each other, and the lesser slots be lost. */
  #exchange(exchange: Exchange): Promise<Drawn> {
    const exchanged = this.#exchanged.then(() => this.#exchangeNow(exchange))
    this.#exchanged = exchanged.catch(() => {})
    return exchanged
  }

  async #exchangeNow(exchange: Exchange): Promise<Drawn> {
    const { store, name, member, clock, start, onSlots } = this.#options
    // Gone even if the store fails: handing them out here as well would break the bound.
    this.#pool -= exchange.giveBack
    const sentMs = clock.now()
    const monotonicMs = clock.monotonicMs()
    const offer = this.#slots.offer(monotonicMs, exchange.leave)
    try {
      const draw = { ...exchange, ...offer, name, member, start: start() }
      // Whoever made it due may be inside a transaction; the exchange is not part of that.
      const drawn = await outside(() => store.draw(draw, sentMs))
      this.#slots.granted(offer, drawn.slots, monotonicMs)
      this.#pool += drawn.granted
      this.#joined = !exchange.leave
      this.#adopt(drawn, sentMs)
      return drawn
    } finally {
      // After a failure, too: whoever waits for a slot asks again.
      onSlots?.()
    }
  }

  #adopt(view: BudgetView, sentMs: number): void {
    const last = this.#view
    // Answers may overtake each other.
    if (last && view.version < last.version && view.nowMs <= last.nowMs) return
    // The clock was put back: a pause of before ends at a time that nobody knows; the row has it, if it still holds.
    if (last && last.nowMs - view.nowMs > CLOCK_BACK_MS) this.#pausedUntilMs = 0
    this.#view = view
    const aheadMs = view.nowMs - sentMs
    this.#aheadMs = Math.abs(aheadMs) > CLOCK_SKEW_MS ? aheadMs : 0
    this.#options.onView?.(view)
  }

  #closedError(): TidemarkError {
    return new TidemarkError(`The budget ${this.#options.name} is closed: the engine is stopping.`, {
      kind: 'transient',
      code: 'budget-closed',
    })
  }
}
