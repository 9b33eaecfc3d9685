/**
 * A budget as handlers use it: what calls to one service may cost, shared by all that call it.
 * `call` takes the units, makes the call, measures it, and tells the controller (aimd.ts) how it went;
 * the controller's state lives in the ledger, so all processes steer together.
 *
 * Invariants:
 * - a throttle answer pauses exactly those that share this budget, in every process
 * - only errors of the kind `throttled` count as refusals; every error is thrown on
 * - the controller hears of a throttle at once, of everything else about once a second
 */
import type { CancelTimer, Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { Random } from '../../base/random.ts'
import type { BudgetStore, BudgetView } from '../../ledger/contract-budgets.ts'
import { fitAimd, nextTickMs, RETRY_AFTER_MS_MAX, startAimd, stepAimd } from './aimd.ts'
import type { AimdEvent, AimdState } from './aimd-state.ts'
import { Feedback } from './feedback.ts'
import { type Closed, Gate } from './gate.ts'
import { LatencyWindow } from './latency.ts'
import { type Change, SharedBucket, type TakeOptions } from './shared-bucket.ts'
import { aimdSpecOf, type BudgetSpec, burstOf, isFixed } from './spec.ts'

export type BudgetEvent =
  | { type: 'throttle'; budget: string; retryAfterMs: number | undefined; pausedUntilMs: number }
  | { type: 'rate'; budget: string; rate: number; workers: number; ceiling: number | null }
  | { type: 'call'; budget: string; name: string; ms: number; ok: boolean }
  | { type: 'error'; budget: string; error: unknown }

/** `name`: what is called, such as `messages.get`; latencies are told apart by it. */
export type CallOptions = TakeOptions & { name?: string }

export type BudgetOptions = {
  name: string
  spec: BudgetSpec
  member: string
  store: BudgetStore
  clock: Clock
  random: Random
  /** The lease under which workers run here; 0 without one. */
  owner?: () => number
  onEvent?: (event: BudgetEvent) => void
}

export type BudgetSnapshot = {
  name: string
  rate: number
  ceiling: number | null
  /** Units at hand here, and those that all processes could draw now. */
  tokens: number
  sharedTokens: number
  /** 0 when not paused. */
  pausedUntilMs: number
  /** Allowed over all processes, and of these here. */
  workers: number
  workersHere: number
  running: number
  inFlight: number
  waiting: number
  members: number
  /** Refused calls, over all processes. */
  throttles: number
  p50Ms: number | null
  p95Ms: number | null
  p99Ms: number | null
}

const RETRY_MS = 1_000
const TICK_MS_MAX = 10_000

export class Budget {
  readonly name: string
  readonly gate: Gate
  readonly #options: BudgetOptions
  readonly #bucket: SharedBucket
  readonly #latency = new LatencyWindow()
  readonly #feedback = new Feedback()
  #spec: BudgetSpec
  #specTold = false
  #state: AimdState
  #heard = ''
  #started = 0
  #inFlight = 0
  #telling: Promise<void> | undefined
  #tellAgain = false
  #timer: CancelTimer | undefined
  #closed = false

  constructor(options: BudgetOptions) {
    this.name = options.name
    this.#options = options
    this.#spec = options.spec
    this.#state = startAimd(aimdSpecOf(options.spec), options.clock.now())
    this.#bucket = new SharedBucket({
      ...options,
      start: () => this.#start(),
      workers: {
        owner: options.owner ?? (() => 0),
        running: () => this.#running,
        max: () => this.#state.workers,
      },
      onView: (view) => this.#hear(view),
      onSlots: () => this.gate.changed(),
      onError: (error) => options.onEvent?.({ type: 'error', budget: this.name, error }),
    })
    this.gate = new Gate({
      clock: options.clock,
      closed: () => this.#closedFor(),
      onWanted: () => this.#wantWorker(),
    })
  }

  /** Waits until `units` may be spent. */
  async take(units: number, options: TakeOptions = {}): Promise<void> {
    await this.#bucket.take(units, options)
    this.#feedback.used(units)
    this.#tickLater()
  }

  /** Takes `cost` units, then runs `fn`; what it throws is thrown on. */
  async call<T>(
    cost: number,
    fn: (signal?: AbortSignal) => Promise<T>,
    options: CallOptions = {},
  ): Promise<T> {
    await this.take(cost, options)
    const { clock } = this.#options
    const startedMs = this.#bucket.now()
    const fromMs = clock.monotonicMs()
    const loop = clock.watchLoop()
    this.#inFlight += 1
    this.#bucket.workerStarted()
    let ok = false
    try {
      const result = await fn(options.signal)
      this.#answered(startedMs, clock.monotonicMs() - fromMs, loop.endMs())
      ok = true
      return result
    } catch (error) {
      if (error instanceof TidemarkError && error.kind === 'throttled') {
        this.#throttled(Math.min(cost, error.refusedUnits ?? cost), startedMs, error.retryAfterMs)
      } else if (!options.signal?.aborted) {
        this.#answered(startedMs, clock.monotonicMs() - fromMs, loop.endMs())
      }
      throw error
    } finally {
      loop.endMs()
      this.#inFlight -= 1
      const ms = clock.monotonicMs() - fromMs
      this.#options.onEvent?.({ type: 'call', budget: this.name, name: options.name ?? this.name, ms, ok })
      this.#workerEnded()
      this.#tickLater()
    }
  }

  /** Counts a worker that runs under this budget; the result ends it. */
  startWorker(): () => void {
    this.#started += 1
    this.#bucket.workerStarted()
    let running = true
    return () => {
      if (!running) return
      running = false
      this.#started -= 1
      this.#workerEnded()
    }
  }

  /** A spec that differs takes effect at once, in all processes. */
  async setSpec(spec: BudgetSpec): Promise<void> {
    if (JSON.stringify(spec) === JSON.stringify(this.#spec)) return
    this.#spec = spec
    this.#specTold = true
    this.#state = fitAimd(this.#state, aimdSpecOf(spec))
    await this.#tell()
  }

  snapshot(): BudgetSnapshot {
    const { clock } = this.#options
    const latency = this.#latency.summary(clock.now())
    const view = this.#bucket.view
    const pausedUntilMs = this.#bucket.pausedUntilMs
    return {
      name: this.name,
      rate: this.#state.rate,
      ceiling: this.#state.ceiling,
      tokens: this.#bucket.pool,
      sharedTokens: view?.tokens ?? burstOf(this.#spec, this.#state.rate),
      pausedUntilMs: pausedUntilMs > this.#bucket.now() ? pausedUntilMs : 0,
      workers: this.#state.workers,
      workersHere: this.#bucket.slots,
      running: this.#running,
      inFlight: this.#inFlight,
      waiting: this.#bucket.waiting,
      members: view?.members ?? 0,
      throttles: this.#state.throttledCalls,
      p50Ms: latency?.p50Ms ?? null,
      p95Ms: latency?.p95Ms ?? null,
      p99Ms: latency?.p99Ms ?? null,
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.()
    this.gate.close()
    if (!this.#feedback.isEmpty) await this.#tell()
    await this.#bucket.close()
  }

  get #running(): number {
    return Math.max(this.#started, this.#inFlight)
  }

  #workerEnded(): void {
    this.gate.changed()
    this.#bucket.workerEnded()
  }

  #closedFor(): Closed {
    const pauseMs = this.#bucket.pausedUntilMs - this.#bucket.now()
    if (pauseMs > 0) return { forMs: pauseMs }
    return this.#running < this.#bucket.slots ? undefined : 'until-change'
  }

  #wantWorker(): void {
    // Whoever has none yet waits for its turn, and not for the controller to allow more.
    if (this.#running > 0) this.#feedback.wantedWorkers()
    this.#bucket.askForSlot()
  }

  #start(): { rate: number; burst: number; controller: string } {
    const state = startAimd(aimdSpecOf(this.#spec), this.#options.clock.now())
    return { rate: state.rate, burst: burstOf(this.#spec, state.rate), controller: JSON.stringify(state) }
  }

  #answered(startedMs: number, latencyMs: number, ownMs: number): void {
    const nowMs = this.#options.clock.now()
    this.#latency.record(latencyMs, nowMs)
    // An answer that waits until a busy process takes it is no sign of a slow service.
    this.#feedback.answered({ startedMs, latencyMs: Math.max(0, latencyMs - ownMs) }, this.#state, nowMs)
  }

  #throttled(cost: number, startedMs: number, retryAfterMs: number | undefined): void {
    this.#feedback.throttled({ units: cost, startedMs, retryAfterMs })
    const pauseMs = Math.min(retryAfterMs ?? 0, RETRY_AFTER_MS_MAX)
    if (pauseMs > 0) this.#bucket.pauseUntil(this.#bucket.now() + pauseMs)
    const pausedUntilMs = this.#bucket.pausedUntilMs
    this.#options.onEvent?.({ type: 'throttle', budget: this.name, retryAfterMs, pausedUntilMs })
    void this.#tell()
  }

  #hear(view: BudgetView): void {
    const before = this.#state
    if (view.controller !== this.#heard) {
      this.#heard = view.controller
      const state = parseState(view.controller)
      if (state) this.#state = fitAimd(state, aimdSpecOf(this.#spec))
    }
    if (this.#state.cuts !== before.cuts) {
      this.#feedback.forget()
      // Ticks are denser after a cut.
      if (this.#timer) this.#tickIn(nextTickMs(this.#state) - this.#bucket.now())
    }
    if (this.#state.rate !== before.rate || this.#state.workers !== before.workers) {
      const { rate, workers, ceiling } = this.#state
      this.#options.onEvent?.({ type: 'rate', budget: this.name, rate, workers, ceiling })
    }
    // Once only: processes with different specs must not undo each other's without end.
    if (!this.#specTold && view.rate !== this.#state.rate) void this.#tell()
    this.#specTold = true
    this.gate.changed()
  }

  /** Tells the controller, one message at a time; what happens meanwhile goes with the next. */
  #tell(): Promise<void> {
    this.#tellAgain = true
    this.#telling ??= this.#tellAll()
    return this.#telling
  }

  async #tellAll(): Promise<void> {
    try {
      while (this.#tellAgain) {
        this.#tellAgain = false
        await this.#tellOnce(this.#feedback.drain(this.#options.clock.now()))
      }
    } finally {
      this.#telling = undefined
    }
  }

  async #tellOnce(events: readonly AimdEvent[]): Promise<void> {
    try {
      await this.#bucket.tune((view) => this.#next(view, events))
    } catch (error) {
      this.#feedback.putBack(events)
      this.#tellAgain = false
      this.#options.onEvent?.({ type: 'error', budget: this.name, error })
      if (!this.#closed) this.#tickIn(RETRY_MS)
    }
  }

  /** The shared row after the events. */
  #next(view: BudgetView, events: readonly AimdEvent[]): ReturnType<Change> {
    const spec = aimdSpecOf(this.#spec)
    const nowMs = this.#bucket.now()
    let state = fitAimd(parseState(view.controller) ?? startAimd(spec, nowMs), spec)
    for (const event of events) state = stepAimd(state, event, spec, nowMs)
    const { rate, pausedUntilMs } = state
    return { rate, burst: burstOf(this.#spec, rate), pausedUntilMs, controller: JSON.stringify(state) }
  }

  #tickLater(): void {
    if (this.#timer || this.#closed || isFixed(this.#spec)) return
    // The clock may have been put back since.
    this.#tickIn(Math.min(TICK_MS_MAX, nextTickMs(this.#state) - this.#bucket.now()))
  }

  #tickIn(afterMs: number): void {
    this.#timer?.()
    this.#timer = this.#options.clock.timer(Math.max(1, Math.ceil(afterMs)), () => {
      this.#timer = undefined
      const idle = this.#feedback.isEmpty && this.#inFlight === 0 && this.#bucket.waiting === 0
      void this.#tell().then(() => {
        if (!idle) this.#tickLater()
      })
    })
  }
}

/** What another version of the program left in the ledger is not understood, and started anew. */
function parseState(controller: string): AimdState | undefined {
  try {
    const state = JSON.parse(controller) as Partial<AimdState> | null
    return state?.v === 1 ? (state as AimdState) : undefined
  } catch {
    return undefined
  }
}
