/** Kinds of jobs: what their payload looks like, how they run, and what the engine may do with them. */
import type { ZodType } from 'zod'
import { TidemarkError, UsageError } from '../base/errors.ts'
import {
  type EnqueueResult,
  LANES,
  type Lane,
  type NewJob,
  type OnDepFailure,
  type OnKeyTaken,
} from '../ledger/contract.ts'
import { checkJob, checkWhole, described } from '../ledger/input-check.ts'
import { BAD_FIELD, checkFields, type Fields } from './fields.ts'
import type { Outcome } from './outcome.ts'
import type { RunContext } from './run-context.ts'
import { payloadText } from './stored-json.ts'

/** Larger than this is bulk, unless the kind says otherwise. */
export const BULK_BYTES = 10 * 1024 * 1024
/** Tries of a job whose kind names no other number. */
export const ATTEMPTS = 5
export const STALL_MS = 10 * 60_000
const KIND_NAME = /^[a-z][a-z0-9]*([.-][a-z0-9]+)*$/

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

export function defineJob<P>(options: JobOptions<P>): JobKind<P> {
  if (!KIND_NAME.test(options.kind)) {
    throw new UsageError(
      `"${options.kind}" is not a job kind: use lower-case words joined by dots, such as mail.fetch.`,
    )
  }
  const { kind, attempts = ATTEMPTS, stallMs = STALL_MS } = options
  checkFields(`The job kind ${kind}`, options, JOB_FIELDS)
  checkWhole(`attempts of ${kind}`, attempts, 1)
  checkWhole(`stallMs of ${kind}`, stallMs, 1)
  if (options.concurrency !== undefined) checkWhole(`concurrency of ${kind}`, options.concurrency, 1)
  if (options.priority !== undefined) checkWhole(`priority of ${kind}`, options.priority)
  checkChoice(`lane of ${kind}`, options.lane, LANES)
  checkChoice(`onKeyTaken of ${kind}`, options.onKeyTaken, KEY_TAKEN)
  checkChoice(`onDepFailure of ${kind}`, options.onDepFailure, DEP_FAILURE)
  checkFunction(`run of ${kind}`, options.run)
  checkFunction(`payload of ${kind}, a schema of zod, must have safeParse, which`, options.payload?.safeParse)
  for (const [name, fn] of Object.entries({ size: options.size, key: options.key }))
    if (fn !== undefined) checkFunction(`${name} of ${kind}`, fn)
  if (options.items) {
    checkFunction(`items.of of ${kind}`, options.items.of)
    checkFunction(`items.only of ${kind}`, options.items.only)
  }
  return { ...options, attempts, stallMs }
}

const KEY_TAKEN: readonly OnKeyTaken[] = ['ignore', 'replace']
const DEP_FAILURE: readonly OnDepFailure[] = ['fail', 'cancel', 'run']

function checkChoice<T extends string>(what: string, value: T | undefined, choices: readonly T[]): void {
  if (value === undefined || choices.includes(value)) return
  throw new UsageError(`${what} must be one of ${choices.join(', ')}, not ${described(value)}.`)
}

export function checkFunction(what: string, value: unknown): void {
  if (typeof value !== 'function')
    throw new UsageError(`${what} must be a function, not ${described(value)}.`, { code: BAD_FIELD })
}

const JOB_FIELDS: Fields<JobOptions<unknown>> = {
  kind: true,
  payload: true,
  run: true,
  lane: true,
  size: true,
  key: true,
  onKeyTaken: true,
  onDepFailure: true,
  priority: true,
  attempts: true,
  concurrency: true,
  budget: true,
  cost: true,
  stallMs: true,
  items: true,
  describe: true,
}

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

const ENQUEUE_FIELDS: Fields<EnqueueOptions> = {
  key: true,
  stream: true,
  segment: true,
  lane: true,
  priority: true,
  runAt: true,
  size: true,
  items: true,
  ref: true,
  after: true,
}

/** A job to enqueue: made by `request`, used in outcomes and in bulk. */
export type JobRequest = { kind: AnyJobKind; payload: unknown; options: EnqueueOptions }

export function request<P>(kind: JobKind<P>, payload: NoInfer<P>, options: EnqueueOptions = {}): JobRequest {
  return { kind, payload, options }
}

const REQUEST_FIELDS: Fields<JobRequest> = { kind: true, payload: true, options: true }

/** A list of jobs to enqueue; what `request` made, and nothing else. */
export function checkRequests(what: string, jobs: readonly JobRequest[] | undefined): void {
  if (jobs === undefined) return
  if (!Array.isArray(jobs))
    throw new UsageError(`${what} must be a list, not ${described(jobs)}.`, { code: BAD_FIELD })
  for (const job of jobs) {
    checkFields(what, job, REQUEST_FIELDS)
    if (
      typeof job.kind === 'object' &&
      job.kind !== null &&
      typeof job.options === 'object' &&
      job.options !== null
    )
      continue
    throw new UsageError(`${what} are made by request(kind, payload, options), not by hand.`, {
      code: BAD_FIELD,
    })
  }
}

export type { EnqueueResult }

export class KindRegistry {
  readonly #kinds = new Map<string, AnyJobKind>()
  /** Kinds of which only some jobs may run at a time. */
  readonly limitedCount: number

  constructor(kinds: readonly AnyJobKind[]) {
    for (const kind of kinds) {
      if (this.#kinds.has(kind.kind)) throw new UsageError(`Two jobs are called ${kind.kind}.`)
      this.#kinds.set(kind.kind, kind)
    }
    const isLimited = ({ concurrency, budget }: AnyJobKind) =>
      concurrency !== undefined || budget !== undefined
    this.limitedCount = kinds.filter(isLimited).length
  }

  get names(): ReadonlySet<string> {
    return new Set(this.#kinds.keys())
  }

  find(name: string): AnyJobKind | undefined {
    return this.#kinds.get(name)
  }

  get(name: string): AnyJobKind {
    const kind = this.#kinds.get(name)
    if (kind) return kind
    throw new UsageError(`There is no job kind called ${name} here.`, {
      code: 'kind-unknown',
      hint: `Known kinds: ${[...this.#kinds.keys()].join(', ') || 'none'}.`,
    })
  }
}

/** Checks the payload and turns a request into a row; the ledger gets JSON text. */
export function toNewJob(
  { kind, payload, options }: JobRequest,
  streamId: number,
  bulkBytes: number,
): NewJob {
  checkFields(kind.kind, options, ENQUEUE_FIELDS)
  const parsed = kind.payload.safeParse(payload)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new UsageError(
      `The payload of ${kind.kind} is not valid: ${issue?.path.join('.') || 'the payload'}: ${issue?.message ?? 'unknown'}.`,
      { cause: parsed.error },
    )
  }
  const size = options.size ?? kind.size?.(parsed.data) ?? null
  const job: NewJob = {
    kind: kind.kind,
    payload: payloadText(kind, parsed.data),
    key: options.key ?? kind.key?.(parsed.data) ?? null,
    onKeyTaken: kind.onKeyTaken,
    streamId,
    segment: options.segment,
    lane: options.lane ?? kind.lane ?? (size !== null && size >= bulkBytes ? 'bulk' : 'interactive'),
    priority: options.priority ?? kind.priority ?? 0,
    runAt: options.runAt,
    size,
    items: options.items ?? (kind.items ? Math.max(1, kind.items.of(parsed.data).length) : 1),
    ref: options.ref,
    after: options.after,
    onDepFailure: kind.onDepFailure,
  }
  checkJob(job)
  return job
}

/** What was written by an older or newer version may no longer fit: that job fails, with the reason. */
export function parsePayload<P>(kind: JobKind<P>, text: string): P {
  const parsed = kind.payload.safeParse(JSON.parse(text))
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new TidemarkError(
    `its payload does not fit ${kind.kind}: ${issue?.path.join('.') || 'payload'}: ${issue?.message}`,
    {
      kind: 'permanent',
      cause: parsed.error,
    },
  )
}
