/** What a handler returns. Only the engine writes it down: in one transaction with the job's new state. */
import type { ErrorKind } from '../errors.ts'
import type {
  ClaimedJob,
  Effects,
  NewJob,
  NewSegment,
  SegmentCount,
  Settlement,
  Work,
} from '../ledger/contract.ts'
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
  /** Counts for this job's own segment. A batch's `stored` is what is left of its items, unless given. */
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

export type OutcomeContext = {
  job: ClaimedJob
  kind: AnyJobKind
  payload: unknown
  now: number
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
    runAt: outcome.again?.afterMs ? ctx.now + outcome.again.afterMs : null,
    note: outcome.skip ?? outcome.note,
    checkpoint: checkpointText(outcome),
    work: toWork(ctx, outcome),
    bad: outcome.bad?.map((bad) => ({
      item: bad.item,
      reason: bad.reason,
      errorKind: bad.errorKind ?? 'permanent',
      payload: JSON.stringify(ctx.kind.items ? ctx.kind.items.only(ctx.payload, [bad.item]) : ctx.payload),
    })),
  }
}

/** The part of an outcome that a handler commits on its way, keeping the job. */
export function toContinuation(ctx: OutcomeContext, outcome: Outcome): Settlement {
  return {
    job: ctx.job,
    event: 'continue',
    checkpoint: checkpointText(outcome),
    work: toWork(ctx, { ...outcome, stored: outcome.stored ?? 0 }),
  }
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

function ownCounts({ job, kind, payload }: OutcomeContext, o: Outcome): SegmentCount[] {
  if (job.segmentId === null) return []
  const settles = !o.again
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
