/**
 * The dispatcher: starts jobs from the window on free workers, and turns what becomes of them into settlements.
 *
 * A worker is free as soon as its handler is done; the commit follows with the next group. Starting is bounded per
 * turn of the event loop, so that a flood of tiny jobs leaves room for I/O and commits.
 */
import type { Clock } from '../clock.ts'
import { asTidemarkError, TidemarkError } from '../errors.ts'
import type { ClaimedJob, NewJob, Settlement, SettleResult } from '../ledger/contract.ts'
import type { Random } from '../random.ts'
import type { Committer } from './committer.ts'
import type { EventStream, JobHappening } from './events.ts'
import { type AnyJobKind, type JobRequest, type KindRegistry, parsePayload } from './kinds.ts'
import type { Limits } from './limits/limits.ts'
import { type Outcome, toContinuation, toSettlement } from './outcome.ts'
import type { ProgressBoard } from './progress.ts'
import { decide } from './retry.ts'
import { type JobStopped, RunContext, type RunServices, type StopReason } from './run-context.ts'
import { halves } from './split.ts'
import type { EngineStats } from './stats.ts'
import type { Window } from './window.ts'

const STARTS_PER_TURN = 512

export type Running = {
  context: RunContext<unknown>
  kind: AnyJobKind
  payload: unknown
  startedAt: number
  startedMs: number
  ranMs: number
  release: (() => void) | undefined
  /** Its outcome is on its way; whatever the handler still does comes too late. */
  ended: boolean
}

export type DispatcherOptions = {
  clock: Clock
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
}

export class Dispatcher {
  readonly running = new Map<number, Running>()
  readonly #options: DispatcherOptions
  readonly #services: RunServices
  readonly #runningOf = new Map<string, number>()
  #startsLeft = STARTS_PER_TURN
  #stopping = false

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
    if (this.#stopping) return
    while (this.#startsLeft > 0) {
      const job = this.#options.window.next(this.#options.isOpen)
      if (!job) return
      if (this.#startsLeft === STARTS_PER_TURN) setImmediate(this.#newTurn)
      this.#startsLeft -= 1
      this.#start(job)
    }
  }

  /** No new starts; running jobs are told to stop and keep their checkpoints. */
  stopAll(reason: StopReason): void {
    this.#stopping = true
    for (const run of this.running.values()) run.context.stop(reason)
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

  runningOf(kind: string): number {
    return this.#runningOf.get(kind) ?? 0
  }

  readonly #newTurn = (): void => {
    this.#startsLeft = STARTS_PER_TURN
    this.pump()
  }

  #start(job: ClaimedJob): void {
    const { clock, kinds, events } = this.#options
    const kind = kinds.get(job.kind)
    this.#runningOf.set(job.kind, this.runningOf(job.kind) + 1)
    const startedMs = clock.monotonicMs()
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
    if (ran instanceof Promise) {
      ran.then(
        (outcome) => this.#returned(run, outcome ?? undefined),
        (thrown: unknown) => this.#threw(run, thrown),
      )
    } else this.#returned(run, ran ?? undefined)
  }

  #returned(run: Running, outcome: Outcome | undefined): void {
    let settlement: Settlement
    try {
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
    this.#runningOf.set(job.kind, this.runningOf(job.kind) - 1)
    this.#options.window.finished(job)
    this.#options.committer.settle(settlement, (result) => this.#settled(run, settlement, result))
    this.pump()
  }

  #settled(run: Running, settlement: Settlement, result: SettleResult): void {
    const { committer, window, onUnwritable } = this.#options
    const { job } = run.context
    const isOutcome = settlement.event === 'succeed' || (!settlement.error && settlement.work !== undefined)
    if (result.status === 'error' && isOutcome) {
      // It could not be written (its effects threw): the attempt has failed like any other.
      const second = this.#afterError(run, result.error)
      committer.settle(second, (again) => this.#settled(run, second, again))
      return
    }
    window.committed(job)
    if (result.status === 'error') onUnwritable(job, result.error)
    this.#record(run, settlement, result)
  }

  #record(run: Running, settlement: Settlement, result: SettleResult): void {
    const { events, progress, stats, stream } = this.#options
    const { job } = run.context
    const what = happeningOf(settlement, result)
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
      detail: settlement?.note,
    })
  }

  #afterError(run: Running, thrown: unknown): Settlement {
    const { clock, random, onAuth } = this.#options
    const { context, kind } = run
    const { job, stopped } = context
    if (stopped && stopped.reason !== 'stalled') return this.#afterStop(job, stopped)
    const error = stopped ? stallError(kind) : asTidemarkError(thrown)
    const items = kind.items && run.payload !== undefined ? kind.items.of(run.payload) : []
    const decision = decide(
      {
        failures: job.failures,
        attempts: kind.attempts,
        items: items.length,
        splittable: items.length > 0,
        hasStream: job.streamId !== 0,
      },
      error,
      random,
    )
    const told = { job, error: { kind: error.kind, message: error.message } }
    switch (decision.act) {
      case 'retry':
        return { ...told, event: 'retry', runAt: clock.now() + decision.afterMs }
      case 'postpone':
        if (decision.pauseStream) onAuth(job, error)
        return { ...told, event: 'postpone', runAt: clock.now() + decision.afterMs }
      case 'split':
        return {
          ...told,
          event: 'skip',
          note: 'split in two',
          splitInto: { halves: halves(job, kind, run.payload, items), failures: decision.failures },
        }
      case 'isolate': {
        const bad = { item: items[0]!, reason: error.message, errorKind: error.kind, payload: job.payload }
        return { ...told, event: 'skip', note: 'isolated as bad', bad: [bad] }
      }
      case 'gone': {
        const counts = job.segmentId === null ? undefined : [{ segment: job.segmentId, gone: job.items }]
        return { ...told, event: 'skip', note: 'gone', work: counts && { counts } }
      }
      case 'fail':
        return { ...told, event: 'fail' }
    }
  }

  #afterStop(job: ClaimedJob, stopped: JobStopped): Settlement {
    return { job, event: stopped.reason === 'canceled' ? 'stop' : 'postpone' }
  }

  #outcomeContext(run: Running) {
    const { job } = run.context
    const { clock, toJob } = this.#options
    return {
      job,
      kind: run.kind,
      payload: run.payload,
      now: clock.now(),
      toJob: (request: JobRequest) => toJob(request, job),
    }
  }

  #commitPart(context: RunContext<unknown>, outcome: Outcome): Promise<SettleResult> {
    const run = this.running.get(context.id)
    if (!run || run.context !== context) return Promise.resolve({ status: 'lost' })
    context.lastProgressMs = this.#options.clock.monotonicMs()
    const settlement = toContinuation(this.#outcomeContext(run), outcome)
    return new Promise((resolve) => this.#options.committer.settle(settlement, resolve))
  }

  /** Lets go of a job whose handler will not stop; others may have it, and what it still returns is fenced out. */
  abandon(run: Running): void {
    this.#finish(run, this.#afterError(run, run.context.stopped))
  }
}

function happeningOf(settlement: Settlement, result: SettleResult): JobHappening {
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

function stallError(kind: AnyJobKind): TidemarkError {
  return new TidemarkError(`no progress for ${Math.round(kind.stallMs / 1_000)} s`, {
    kind: 'transient',
    code: 'stalled',
  })
}
