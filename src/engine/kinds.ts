/** Kinds of jobs: what their payload looks like, how they run, and what the engine may do with them. */
import type { ZodType } from 'zod'
import { TidemarkError, UsageError } from '../errors.ts'
import type { EnqueueResult, Lane, NewJob, OnDepFailure, OnKeyTaken } from '../ledger/contract.ts'
import type { Outcome } from './outcome.ts'
import type { RunContext } from './run-context.ts'

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
  /** For people: "downloading 3 files". Of a kind with `items`, the noun is what one item is. */
  describe?: { verb: string; noun: string }
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
  return { ...options, attempts: options.attempts ?? ATTEMPTS, stallMs: options.stallMs ?? STALL_MS }
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

/** A job to enqueue: made by `request`, used in outcomes and in bulk. */
export type JobRequest = { kind: AnyJobKind; payload: unknown; options: EnqueueOptions }

export function request<P>(kind: JobKind<P>, payload: P, options: EnqueueOptions = {}): JobRequest {
  return { kind, payload, options }
}

export type { EnqueueResult }

export class KindRegistry {
  readonly #kinds = new Map<string, AnyJobKind>()

  constructor(kinds: readonly AnyJobKind[]) {
    for (const kind of kinds) {
      if (this.#kinds.has(kind.kind)) throw new UsageError(`Two jobs are called ${kind.kind}.`)
      this.#kinds.set(kind.kind, kind)
    }
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
  const parsed = kind.payload.safeParse(payload)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new UsageError(
      `The payload of ${kind.kind} is not valid: ${issue?.path.join('.') || 'the payload'}: ${issue?.message ?? 'unknown'}.`,
      { cause: parsed.error },
    )
  }
  const size = options.size ?? kind.size?.(parsed.data) ?? null
  return {
    kind: kind.kind,
    payload: JSON.stringify(parsed.data),
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
