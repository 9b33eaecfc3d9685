/** What a handler sees of its job: the payload, a signal to stop, and ways to report and to save on its way. */
import type { Clock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'
import type { ClaimedJob, SettleResult } from '../ledger/contract.ts'
import type { Limits } from './limits/limits.ts'
import type { PartialOutcome } from './outcome.ts'

/** Why a running job is told to stop. */
export type StopReason = 'canceled' | 'shutdown' | 'stalled' | 'lost'

export class JobStopped extends TidemarkError {
  readonly reason: StopReason

  constructor(reason: StopReason) {
    super(`the job was stopped: ${reason}`, { kind: 'transient', code: `stopped-${reason}` })
    this.name = 'JobStopped'
    this.reason = reason
  }
}

export type Progress = { done?: number; total?: number; unit?: 'bytes' | 'items'; label?: string }

export type RunServices = {
  clock: Clock
  random: Random
  limits: Limits
  stream: (streamId: number) => string | null
  progress: (context: RunContext<unknown>, progress: Progress) => void
  commit: (context: RunContext<unknown>, outcome: PartialOutcome) => Promise<SettleResult>
}

/** Handlers may take it apart: `({ payload, signal, progress, commit })` all work on their own. */
export class RunContext<P> {
  readonly job: ClaimedJob
  readonly payload: P
  readonly #services: RunServices
  // Made when first asked for, like the set of parts: most short jobs never do, and these cost more than they do.
  #controller: AbortController | undefined
  #stopped: JobStopped | undefined
  /** Monotonic. */
  lastProgressMs: number
  committedParts = false
  #parts: Set<Promise<void>> | undefined
  #lostPart: { error: unknown } | undefined
  #progressed: Progress | undefined
  #progressSaved = true

  constructor(job: ClaimedJob, payload: P, services: RunServices, startedMs: number) {
    this.job = job
    this.payload = payload
    this.#services = services
    this.lastProgressMs = startedMs
  }

  get id(): number {
    return this.job.id
  }

  /** Counts from 1; interrupted attempts count here, but cost nothing. Claims that never ran do not count. */
  get attempt(): number {
    return this.job.attempt
  }

  get stream(): string | null {
    return this.#services.stream(this.job.streamId)
  }

  get segment(): number | null {
    return this.job.segmentId
  }

  get clock(): Clock {
    return this.#services.clock
  }

  get random(): Random {
    return this.#services.random
  }

  /** Budgets and bandwidth: `limits.budget(name, spec).call(cost, fn)` paces a call and learns from its answer. */
  get limits(): Limits {
    return this.#services.limits
  }

  /** Aborted when the job must stop: canceled, shutting down, stalled, or its lease lost. Pass it to all I/O. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#stopped) this.#controller.abort(this.#stopped)
    }
    return this.#controller.signal
  }

  /** What an earlier attempt saved, as it was saved. */
  get checkpoint(): unknown {
    return this.job.checkpoint === null ? null : JSON.parse(this.job.checkpoint)
  }

  get stopped(): JobStopped | undefined {
    return this.#stopped
  }

  stop(reason: StopReason): void {
    if (this.#stopped) return
    this.#stopped = new JobStopped(reason)
    this.#controller?.abort(this.#stopped)
  }

  /** Says that it is alive and how far it got; without a word for its stall time it is stopped and tried again. */
  get progress(): (progress?: Progress) => void {
    return (progress = {}) => this.#services.progress(this as RunContext<unknown>, progress)
  }

  get progressed(): Progress | undefined {
    return this.#progressed
  }

  /** `news`: the same numbers again are no progress, and do not save a job from being stopped as stalled. */
  noteProgress(progress: Progress, nowMs: number, news: boolean): void {
    if (!news) return
    this.lastProgressMs = nowMs
    this.#progressed = { ...this.#progressed, ...progress }
    this.#progressSaved = false
  }

  /** As JSON, if there is news since this was last asked. */
  unsavedProgress(): string | undefined {
    if (this.#progressSaved) return undefined
    this.#progressSaved = true
    return JSON.stringify(this.#progressed)
  }

  /**
   * Commits part of the work now and goes on. Throws if the job was taken away or canceled meanwhile. A job ends only
   * after all of its parts, awaited or not, and not as done if one of them could not be written.
   */
  get commit(): (outcome: PartialOutcome) => Promise<void> {
    return (outcome) => this.#part(outcome)
  }

  /** Saves where to resume from. */
  get save(): (checkpoint: unknown) => Promise<void> {
    return (checkpoint) => this.#part({ checkpoint })
  }

  /** Parts that are still on their way; undefined if there are none. */
  get parts(): Promise<unknown> | undefined {
    return this.#parts?.size ? Promise.allSettled(this.#parts) : undefined
  }

  /** Why a part of the work is not there. */
  get lostPart(): { error: unknown } | undefined {
    return this.#lostPart
  }

  #part(outcome: PartialOutcome): Promise<void> {
    const part = this.#commit(outcome)
    this.#parts ??= new Set()
    const parts = this.#parts.add(part)
    part.then(
      () => parts.delete(part),
      (error: unknown) => {
        parts.delete(part)
        this.#lostPart ??= { error }
      },
    )
    return part
  }

  async #commit(outcome: PartialOutcome): Promise<void> {
    const result = await this.#services.commit(this as RunContext<unknown>, outcome)
    switch (result.status) {
      case 'held':
        if (outcome.checkpoint !== undefined) this.job.checkpoint = JSON.stringify(outcome.checkpoint)
        return
      case 'lost':
      case 'canceled':
        this.stop(result.status)
        throw this.#stopped!
      case 'error':
        throw result.error
    }
  }
}
