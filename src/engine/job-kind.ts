/**
 * What a kind of jobs is, to who writes one: its options and its handler, what the handler is given, what it may return,
 * and the jobs that it asks for. Each of these names the others, so they stand in one file. What the engine makes of
 * them is in kinds.ts, outcome.ts and dispatcher.ts.
 */
import type { ZodType } from 'zod'
import type { Clock } from '../base/clock.ts'
import { type ErrorKind, TidemarkError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'
import type {
  ClaimedJob,
  Effects,
  Lane,
  NewSegment,
  OnDepFailure,
  OnKeyTaken,
  RowLocks,
  SegmentCount,
  SettleResult,
} from '../ledger/contract.ts'
import type { Limits } from './limits/limits.ts'

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without an outcome may simply end
type Ran = Outcome | undefined | void
/** A handler that needs no I/O need not be async. */
export type Run<P> = (job: RunContext<P>) => Ran | Promise<Ran>

export type JobOptions<P> = {
  /** Such as `mail.fetch`: app, then verb. */
  kind: string
  payload: ZodType<P>
  run: Run<P>
  /** A fixed lane; without it, jobs of 10 MB and more are bulk, the others interactive. */
  lane?: Lane
  size?: (payload: P) => number | undefined
  key?: (payload: P) => string | undefined
  onKeyTaken?: OnKeyTaken
  onDepFailure?: OnDepFailure
  priority?: number
  /** Tries before a batch is split, an item isolated, or the job fails. */
  attempts?: number
  /** At most this many at a time in one process. */
  concurrency?: number
  /** The budget whose pauses and worker limit hold this kind back; per stream where accounts have their own. */
  budget?: string | ((stream: string | null) => string)
  /** Units of its budget that one item costs: an ETA then never promises more than the budget allows. */
  cost?: number
  stallMs?: number
  /** For jobs about several items: how to name them, and how to make a job for some of them. */
  items?: { of: (payload: P) => readonly string[]; only: (payload: P, items: readonly string[]) => P }
  /**
   * For people: "downloading 3 files". Of a kind with `items`, the noun is what one item is. `input`: what of its
   * payload they are shown, where that has codes in it; all of it otherwise.
   */
  describe?: { verb: string; noun: string; input?: (payload: P) => unknown }
}

export type JobKind<P> = JobOptions<P> & { readonly attempts: number; readonly stallMs: number }
// biome-ignore lint/suspicious/noExplicitAny: a registry holds kinds of every payload; each is parsed by its own schema
export type AnyJobKind = JobKind<any>

export type EnqueueOptions = {
  key?: string
  stream?: string
  segment?: number | string
  lane?: Lane
  priority?: number
  /** Epoch milliseconds before which it does not start. */
  runAt?: number
  size?: number
  /** How many listed items it stands for: 0 for a keyed job of a segment that is about none, such as a lister. */
  items?: number
  ref?: string
  after?: readonly (number | string)[]
}

/** A job to enqueue: made by `request`, used in outcomes and in bulk. */
export type JobRequest = { kind: AnyJobKind; payload: unknown; options: EnqueueOptions }

/** What a handler returns. Only the engine writes it down: in one transaction with the job's new state. */
export type Outcome = {
  /** SQL in the commit's transaction. It may run more than once before it commits: touch nothing else. */
  effects?: Effects
  /** Rows that the effects change and those of others too: locked before any effects of the commit run. */
  locks?: RowLocks
  jobs?: readonly JobRequest[]
  /** Runs when all of `jobs` have settled. */
  followUp?: JobRequest
  segments?: readonly NewSegment[]
  /** Cuts this job's own segment; the rest becomes a new one that `jobs` can name by `ref`. */
  split?: { at: number; ref?: string; mark?: string }
  /**
   * Counts for this job's own segment. A batch's `stored` is what is left of its items, unless given; a job that
   * commits in parts counts for itself.
   */
  listed?: number
  stored?: number
  gone?: number
  skipped?: number
  seal?: boolean
  /** Counts for other segments. */
  counts?: readonly SegmentCount[]
  /** Where the listing of this job's stream stands. */
  cursor?: string
  /** Items that will not work, each with its reason. */
  bad?: readonly { item: string; reason: string; errorKind?: ErrorKind }[]
  /** Nothing was to be done, for this reason. */
  skip?: string
  /** Not finished: run again, after a while if given, from `checkpoint`. Costs no attempt. */
  again?: { afterMs?: number }
  checkpoint?: unknown
  note?: string
  /** What `skip` or `note` says, for programs: a short name in kebab-case. */
  code?: string
}

/** What a handler can commit on its way; how the job ends is said at its end. */
export type PartialOutcome = Omit<Outcome, 'skip' | 'again' | 'note' | 'code'>

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

/**
 * What a handler sees of its job: the payload, a signal to stop, and ways to report and to save on its way.
 * Handlers may take it apart: `({ payload, signal, progress, commit })` all work on their own.
 */
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
