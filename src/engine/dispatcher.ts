/**
 * The dispatcher: starts jobs from the window on free workers, and turns what becomes of them into settlements.
 *
 * A worker is free as soon as its handler is done; the commit follows with the next group. Starting is bounded per
 * turn of the event loop, so that a flood of tiny jobs leaves room for I/O and commits.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { TidemarkError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'
import type { ClaimedJob, Lane, NewJob, Settlement, SettleResult } from '../ledger/contract.ts'
import { refuseInside } from '../ledger/guard.ts'
import type { Committer } from './committer.ts'
import { type Failure, lastResort, settlementOf } from './failure.ts'
import {
  type AnyJobKind,
  type JobRequest,
  type Outcome,
  type PartialOutcome,
  RunContext,
  type RunServices,
  type StopReason,
} from './job-kind.ts'
import { type KindRegistry, parsePayload } from './kinds.ts'
import type { Limits } from './limits/limits.ts'
import type { EventStream, JobHappening } from './observe/events.ts'
import type { ProgressBoard } from './observe/progress.ts'
import type { EngineStats } from './observe/stats.ts'
import { toContinuation, toSettlement } from './outcome.ts'
import { SMALL_BYTES } from './payload-sizes.ts'
import type { Window } from './window.ts'

const STARTS_PER_TURN = 512
/** As the handler said; as an error; as the least that can be. */
const REWRITES_MAX = 2
/** How much the latest run counts in the mean of its kind. */
const MEAN_WEIGHT = 0.1
const ENDED_LOOK_MS = 5

export type Running = {
  context: RunContext<unknown>
  kind: AnyJobKind
  payload: unknown
  startedAt: number
  startedMs: number
  ranMs: number
  release: (() => void) | undefined
  /** How often what became of it was written anew, because it could not be written. */
  rewrites: number
  /** Its outcome is on its way; whatever the handler still does comes too late. */
  ended: boolean
}

export type DispatcherOptions = {
  clock: Clock
  /** By the ledger's clock. */
  now: () => number
  random: Random
  kinds: KindRegistry
  window: Window
  committer: Committer
  events: EventStream
  stats: EngineStats
  /** May jobs like this start now? Pauses and budgets speak here. */
  isOpen: (job: ClaimedJob) => boolean
  /** Counts the job under its budget, if it has one; the result ends that. */
  startWorker: (job: ClaimedJob) => (() => void) | undefined
  limits: Limits
  progress: ProgressBoard
  stream: (streamId: number) => string | null
  toJob: (request: JobRequest, parent: ClaimedJob) => NewJob
  onAuth: (job: ClaimedJob, error: TidemarkError) => void
  /** An outcome could not be written, and neither could the note of that. */
  onUnwritable: (job: ClaimedJob, error: unknown) => void
  /** A large job has left, or one of a full window: what would not fit beside it may be claimed now. */
  onRoom: () => void
}

export class Dispatcher {
  readonly running = new Map<number, Running>()
  readonly #options: DispatcherOptions
  readonly #services: RunServices
  readonly #runningOf = new Map<string, Record<Lane, number>>()
  readonly #paces = new Map<string, { meanMs: number | undefined; movedMs: number }>()
  #startsLeft = STARTS_PER_TURN
  #stopping = false
  #pumping = false

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#services = {
      clock: options.clock,
      random: options.random,
      limits: options.limits,
      stream: options.stream,
      progress: (context, progress) => {
        const { id, kind, streamId } = context.job
        const news = options.progress.report({ id, kind, stream: options.stream(streamId) }, progress)
        context.noteProgress(progress, options.clock.monotonicMs(), news)
      },
      commit: (context, outcome) => this.#commitPart(context, outcome),
    }
  }

  /** Starts what can start. Called whenever a worker, a job or a permission may have become free. */
  pump(): void {
    // A job that ends where it began asks for the next one from within: the loop below goes on with it.
    if (this.#stopping || this.#pumping) return
    this.#pumping = true
    try {
      while (this.#startsLeft > 0 && !this.#stopping) {
        const job = this.#options.window.next(this.#options.isOpen)
        if (!job) return
        if (this.#startsLeft === STARTS_PER_TURN) setImmediate(this.#newTurn)
        this.#startsLeft -= 1
        this.#start(job)
      }
    } finally {
      this.#pumping = false
    }
  }

  /** No new starts; running jobs are told to stop and keep their checkpoints. */
  stopAll(reason: StopReason): void {
    this.#stopping = true
    for (const run of this.running.values()) run.context.stop(reason)
  }

  /** Until the last handler has ended, or for so long. */
  async ended(msMax: number): Promise<void> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + msMax
    while (this.running.size > 0 && clock.monotonicMs() < untilMs) await sleep(clock, ENDED_LOOK_MS)
  }

  /** The lease is gone: what runs must stop and cannot commit, but this process goes on with a new lease. */
  dropAll(): number {
    const lost = [...this.running.values()]
    for (const run of lost) run.context.stop('lost')
    return lost.length
  }

  stop(id: number, reason: StopReason): boolean {
    const run = this.running.get(id)
    run?.context.stop(reason)
    return run !== undefined
  }

  runningOf(kind: string, lane?: Lane): number {
    const running = this.#runningOf.get(kind)
    if (!running) return 0
    return lane ? running[lane] : running.interactive + running.bulk
  }

  /**
   * How long jobs of this kind have lately taken; at least as long as those that run have all been running without one
   * that ended, for what has turned slow shows in no mean yet. Undefined before the first has ended.
   */
  meanMs(kind: string): number | undefined {
    const pace = this.#paces.get(kind)
    if (pace?.meanMs === undefined || this.runningOf(kind) === 0) return pace?.meanMs
    return Math.max(pace.meanMs, this.#options.clock.monotonicMs() - pace.movedMs)
  }

  #measureStart(kind: string, nowMs: number): void {
    if (this.runningOf(kind) > 0) return
    const pace = this.#paces.get(kind)
    if (pace) pace.movedMs = nowMs
    else this.#paces.set(kind, { meanMs: undefined, movedMs: nowMs })
  }

  #measureEnd(kind: string, { startedMs, ranMs }: Running): void {
    const pace = this.#paces.get(kind)!
    pace.meanMs ??= ranMs
    pace.meanMs += (ranMs - pace.meanMs) * MEAN_WEIGHT
    pace.movedMs = startedMs + ranMs
  }

  #count({ kind, lane }: ClaimedJob, n: number): void {
    const running = this.#runningOf.get(kind)
    if (running) running[lane] += n
    else this.#runningOf.set(kind, { interactive: 0, bulk: 0, [lane]: n })
  }

  readonly #newTurn = (): void => {
    this.#startsLeft = STARTS_PER_TURN
    this.pump()
  }

  #start(job: ClaimedJob): void {
    const { clock, kinds, events } = this.#options
    const kind = kinds.get(job.kind)
    const startedMs = clock.monotonicMs()
    this.#measureStart(job.kind, startedMs)
    this.#count(job, 1)
    let payload: unknown
    let ran: ReturnType<AnyJobKind['run']>
    const run: Running = {
      context: undefined as unknown as RunContext<unknown>,
      kind,
      payload,
      startedAt: clock.now(),
      startedMs,
      ranMs: 0,
      release: this.#options.startWorker(job),
      rewrites: 0,
      ended: false,
    }
    try {
      payload = parsePayload(kind, job.payload)
      run.payload = payload
      run.context = new RunContext(job, payload, this.#services, startedMs)
      this.running.set(job.id, run)
      if (events.wantsJobs) this.#emit(job, 'started')
      ran = kind.run(run.context)
    } catch (thrown) {
      run.context ??= new RunContext(job, payload, this.#services, startedMs)
      this.#threw(run, thrown)
      return
    }
    if (isThenable(ran)) {
      ran.then(
        (outcome) => this.#returned(run, outcome ?? undefined),
        (thrown: unknown) => this.#threw(run, thrown),
      )
    } else this.#returned(run, (ran as Outcome | undefined) ?? undefined)
  }

  #returned(run: Running, outcome: Outcome | undefined): void {
    const { parts } = run.context
    // A part that nobody waited for is part of the work all the same: the end of the job comes after it.
    if (parts) void parts.then(() => this.#returned(run, outcome))
    else this.#end(run, outcome)
  }

  #end(run: Running, outcome: Outcome | undefined): void {
    let settlement: Settlement
    try {
      if (run.context.lostPart) throw run.context.lostPart.error
      // Finished although told to stop: for a shutdown that is welcome, a canceled job leaves no effect.
      if (run.context.stopped?.reason === 'canceled') throw run.context.stopped
      settlement = toSettlement(this.#outcomeContext(run), outcome)
    } catch (thrown) {
      settlement = this.#afterError(run, thrown)
    }
    this.#finish(run, settlement)
  }

  #threw(run: Running, thrown: unknown): void {
    this.#finish(run, this.#afterError(run, thrown))
  }

  #finish(run: Running, settlement: Settlement): void {
    const { job } = run.context
    if (run.ended) return
    run.ended = true
    run.release?.()
    run.ranMs = this.#options.clock.monotonicMs() - run.startedMs
    // After a lost lease the same job may already run again here, under a new attempt.
    if (this.running.get(job.id) === run) this.running.delete(job.id)
    this.#count(job, -1)
    this.#measureEnd(job.kind, run)
    this.#options.window.finished(job)
    this.#options.committer.settle(settlement, (result) => this.#settled(run, settlement, result))
    this.pump()
  }

  #settled(run: Running, settlement: Settlement, result: SettleResult): void {
    const { committer, window, onUnwritable, onRoom } = this.#options
    const { job } = run.context
    if (result.status === 'error' && run.rewrites < REWRITES_MAX) {
      // It could not be written (its effects threw, say): the attempt has failed like any other.
      run.rewrites += 1
      const again =
        run.rewrites === 1
          ? this.#afterError(run, result.error)
          : lastResort(this.#failureOf(run), result.error)
      committer.settle(again, (second) => this.#settled(run, again, second))
      return
    }
    const wasFull = window.isFull(job.lane)
    window.committed(job)
    if (wasFull || job.bytes > SMALL_BYTES) onRoom()
    if (result.status === 'error') onUnwritable(job, result.error)
    this.#record(run, settlement, result)
  }

  #record(run: Running, settlement: Settlement, result: SettleResult): void {
    const { events, progress, stats, stream } = this.#options
    const { job } = run.context
    const what = toHappening(settlement, result)
    const settled = what === 'done' || (what === 'skipped' && result.status === 'held')
    progress.end(job, { items: settled ? job.items : 0 })
    const ms = run.ranMs
    stats.job(job.kind, what, ms, job.items)
    if (settlement.bad?.length && result.status === 'held') stats.bad(job.kind, settlement.bad.length)
    for (const bad of settlement.bad ?? []) {
      events.emit({
        type: 'bad',
        stream: stream(job.streamId),
        kind: job.kind,
        item: bad.item,
        reason: bad.reason,
      })
    }
    if (settlement.error || what === 'lost' || events.wantsJobs) this.#emit(job, what, ms, settlement)
  }

  #emit(job: ClaimedJob, what: JobHappening, ms?: number, settlement?: Settlement): void {
    const { events, stream } = this.#options
    events.emit({
      type: 'job',
      what,
      id: job.id,
      kind: job.kind,
      stream: stream(job.streamId),
      attempt: job.attempt,
      ms,
      error: settlement?.error,
      detail: settlement?.note?.text,
    })
  }

  #failureOf(run: Running): Failure {
    const { random, now, onAuth } = this.#options
    const { job, stopped } = run.context
    return { job, kind: run.kind, payload: run.payload, stopped, now: now(), random, onAuth }
  }

  #afterError(run: Running, thrown: unknown): Settlement {
    return settlementOf(this.#failureOf(run), thrown)
  }

  #outcomeContext(run: Running) {
    const { job } = run.context
    const { now, toJob } = this.#options
    return {
      job,
      kind: run.kind,
      payload: run.payload,
      now: now(),
      hasParts: run.context.committedParts || job.checkpoint !== null,
      toJob: (request: JobRequest) => toJob(request, job),
    }
  }

  async #commitPart(context: RunContext<unknown>, outcome: PartialOutcome): Promise<SettleResult> {
    refuseInside('job.commit')
    const run = this.running.get(context.id)
    if (!run || run.context !== context) return { status: 'lost' }
    context.lastProgressMs = this.#options.clock.monotonicMs()
    const settlement = toContinuation(this.#outcomeContext(run), outcome)
    context.committedParts = true
    return new Promise((resolve) => this.#options.committer.settle(settlement, resolve))
  }

  /** Lets go of a job whose handler will not stop; others may have it, and what it still returns is fenced out. */
  abandon(run: Running): void {
    this.#finish(run, this.#afterError(run, run.context.stopped))
  }
}

function toHappening(settlement: Settlement, result: SettleResult): JobHappening {
  if (result.status === 'lost' || result.status === 'error') return 'lost'
  if (result.status === 'canceled') return 'canceled'
  switch (settlement.event) {
    case 'succeed':
      return 'done'
    case 'skip':
      return settlement.splitInto ? 'split' : 'skipped'
    case 'retry':
      return 'retried'
    case 'postpone':
    case 'continue':
      return 'postponed'
    case 'fail':
      return 'failed'
    case 'stop':
      return 'canceled'
  }
}

/** Not only our own promises: a handler may return any library's. */
function isThenable(ran: unknown): ran is PromiseLike<Outcome | undefined> {
  return typeof (ran as { then?: unknown } | undefined)?.then === 'function'
}
