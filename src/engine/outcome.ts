/** What a handler returns. Only the engine writes it down: in one transaction with the job's new state. */
import { type ErrorKind, UsageError } from '../errors.ts'
import type {
  ClaimedJob,
  Effects,
  NewBadItem,
  NewJob,
  NewSegment,
  SegmentCount,
  Settlement,
  Work,
} from '../ledger/contract.ts'
import { later } from './failure.ts'
import type { AnyJobKind, JobRequest } from './kinds.ts'

export type Outcome = {
  /** SQL in the commit's transaction. It may run more than once before it commits: touch nothing else. */
  effects?: Effects
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
}

/** What a handler can commit on its way; how the job ends is said at its end. */
export type PartialOutcome = Omit<Outcome, 'skip' | 'again' | 'note'>

export type OutcomeContext = {
  job: ClaimedJob
  kind: AnyJobKind
  payload: unknown
  now: number
  /** Parts were committed before, so that what is stored must be counted by the handler. */
  hasParts: boolean
  toJob: (request: JobRequest) => NewJob
}

export function toSettlement(ctx: OutcomeContext, outcome: Outcome | undefined): Settlement {
  const { job } = ctx
  if (!outcome)
    return job.segmentId === null || !ctx.kind.items
      ? { job, event: 'succeed' }
      : { job, event: 'succeed', work: toWork(ctx, {}) }
  return {
    job,
    event: outcome.again ? 'postpone' : outcome.skip === undefined ? 'succeed' : 'skip',
    runAt: outcome.again?.afterMs ? later(ctx.now, outcome.again.afterMs) : null,
    note: outcome.skip ?? outcome.note,
    checkpoint: checkpointText(outcome),
    work: toWork(ctx, outcome),
    bad: badItems(ctx, outcome),
  }
}

/** The part of an outcome that a handler commits on its way, keeping the job. */
export function toContinuation(ctx: OutcomeContext, outcome: PartialOutcome): Settlement {
  const wrong = ENDINGS.filter((name) => name in outcome)
  if (wrong.length > 0)
    throw new UsageError(`${wrong.join(' and ')} belong to the end of a job: return them.`)
  return {
    job: ctx.job,
    event: 'continue',
    bad: badItems(ctx, outcome),
    checkpoint: checkpointText(outcome),
    work: toWork(ctx, { ...outcome, stored: outcome.stored ?? 0 }),
  }
}

const ENDINGS = ['skip', 'again', 'note'] as const

function badItems({ kind, payload }: OutcomeContext, { bad }: PartialOutcome): NewBadItem[] | undefined {
  return bad?.map(({ item, reason, errorKind = 'permanent' }) => ({
    item,
    reason,
    errorKind,
    payload: JSON.stringify(kind.items ? kind.items.only(payload, [item]) : payload),
  }))
}

function checkpointText(outcome: Outcome): string | null | undefined {
  return outcome.checkpoint === undefined
    ? undefined
    : outcome.checkpoint === null
      ? null
      : JSON.stringify(outcome.checkpoint)
}

function toWork(ctx: OutcomeContext, o: Outcome): Work | undefined {
  const { job } = ctx
  const counts = [...(o.counts ?? []), ...ownCounts(ctx, o)]
  const work: Work = {
    effects: o.effects,
    segments: o.segments,
    splits: o.split && job.segmentId !== null ? [{ segmentId: job.segmentId, ...o.split }] : undefined,
    counts: counts.length > 0 ? counts : undefined,
    cursors: o.cursor === undefined ? undefined : [{ streamId: job.streamId, value: o.cursor }],
    jobs: o.jobs?.map(ctx.toJob),
    followUp: o.followUp && ctx.toJob(o.followUp),
  }
  return Object.values(work).some((part) => part !== undefined) ? work : undefined
}

function ownCounts({ job, kind, payload, hasParts }: OutcomeContext, o: Outcome): SegmentCount[] {
  if (job.segmentId === null) return []
  const settles = !o.again && !hasParts
  const spoken = (o.gone ?? 0) + (o.skipped ?? 0) + (o.bad?.length ?? 0)
  const rest = kind.items && settles ? kind.items.of(payload).length - spoken : 0
  const count = {
    listed: o.listed,
    stored: o.stored ?? Math.max(0, rest),
    gone: o.gone,
    skipped: o.skipped,
    seal: o.seal,
  }
  return Object.values(count).some(Boolean) ? [{ segment: job.segmentId, ...count }] : []
}
