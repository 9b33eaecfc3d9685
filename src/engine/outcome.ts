/** What the engine makes of the outcome that a handler returned: what is written with the job's new state. */
import { UsageError } from '../base/errors.ts'
import type { ClaimedJob, NewBadItem, NewJob, SegmentCount, Settlement, Work } from '../ledger/contract.ts'
import { described } from '../ledger/input-check.ts'
import { later } from './failure.ts'
import { BAD_FIELD, checkFields, checkSegmentFields, type Fields } from './fields.ts'
import type { AnyJobKind, JobRequest, Outcome, PartialOutcome } from './job-kind.ts'
import { checkFunction, checkRequests } from './kinds.ts'
import { jsonText, payloadText } from './stored-json.ts'

const OUTCOME_FIELDS: Fields<Outcome> = {
  effects: true,
  locks: true,
  jobs: true,
  followUp: true,
  segments: true,
  split: true,
  listed: true,
  stored: true,
  gone: true,
  skipped: true,
  seal: true,
  counts: true,
  cursor: true,
  bad: true,
  skip: true,
  again: true,
  checkpoint: true,
  note: true,
  code: true,
}
const AGAIN_FIELDS: Fields<NonNullable<Outcome['again']>> = { afterMs: true }
const SPLIT_FIELDS: Fields<NonNullable<Outcome['split']>> = { at: true, ref: true, mark: true }
const BAD_FIELDS: Fields<NonNullable<Outcome['bad']>[number]> = { item: true, reason: true, errorKind: true }

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
  checkOutcome(ctx.kind.kind, outcome)
  return {
    job,
    event: outcome.again ? 'postpone' : outcome.skip === undefined ? 'succeed' : 'skip',
    ...settledItems(ctx, outcome),
    runAt: outcome.again?.afterMs ? later(ctx.now, outcome.again.afterMs) : null,
    note: noteOf(outcome),
    checkpoint: checkpointText(ctx.kind.kind, outcome),
    work: toWork(ctx, outcome),
    bad: badItems(ctx, outcome),
  }
}

/** A batch that says what became of its items may leave some of them to another job, which counts them then. */
function settledItems({ kind, hasParts }: OutcomeContext, outcome: Outcome): Pick<Settlement, 'items'> {
  const { stored, gone = 0, skipped = 0, bad = [] } = outcome
  return kind.items && stored !== undefined && !hasParts
    ? { items: stored + gone + skipped + bad.length }
    : {}
}

/** The part of an outcome that a handler commits on its way, keeping the job. */
export function toContinuation(ctx: OutcomeContext, outcome: PartialOutcome): Settlement {
  checkOutcome(ctx.kind.kind, outcome)
  const wrong = ENDINGS.filter((name) => name in outcome)
  if (wrong.length > 0)
    throw new UsageError(`${wrong.join(' and ')} belong to the end of a job: return them.`)
  return {
    job: ctx.job,
    event: 'continue',
    bad: badItems(ctx, outcome),
    checkpoint: checkpointText(ctx.kind.kind, outcome),
    work: toWork(ctx, { ...outcome, stored: outcome.stored ?? 0 }),
  }
}

const ENDINGS = ['skip', 'again', 'note', 'code'] as const

function noteOf({ skip, note, code }: Outcome): Settlement['note'] {
  const text = skip ?? note
  return text === undefined ? undefined : { text, code }
}

function badItems({ kind, payload }: OutcomeContext, { bad }: PartialOutcome): NewBadItem[] | undefined {
  return bad?.map(({ item, reason, errorKind = 'permanent' }) => ({
    item,
    reason,
    errorKind,
    payload: payloadText(kind, kind.items ? kind.items.only(payload, [item]) : payload),
  }))
}

/** A field that nobody reads would be work that is not done, and the job would be done all the same. */
function checkOutcome(kind: string, outcome: Outcome): void {
  checkFields(`What ${kind} returned`, outcome, OUTCOME_FIELDS)
  const { again, split, bad, effects, jobs, followUp } = outcome
  if (effects !== undefined) checkFunction(`effects of ${kind}`, effects)
  checkRequests(`jobs of ${kind}`, jobs)
  if (followUp !== undefined) checkRequests(`followUp of ${kind}`, [followUp])
  for (const name of ['listed', 'stored', 'gone', 'skipped'] as const)
    if (outcome[name] !== undefined) checkField(`${name} of ${kind}`, outcome[name], 'a whole number')
  for (const name of ['skip', 'note', 'code', 'cursor'] as const)
    if (outcome[name] !== undefined) checkField(`${name} of ${kind}`, outcome[name], 'a text')
  if (outcome.seal !== undefined) checkField(`seal of ${kind}`, outcome.seal, 'true or false')
  checkSegmentFields(kind, outcome)
  if (outcome.code !== undefined && noteOf(outcome) === undefined)
    throw new UsageError(`code of ${kind} belongs to a note or a skip.`, { code: BAD_FIELD })
  if (again) checkAgain(kind, again)
  if (split) checkFields(`split of ${kind}`, split, SPLIT_FIELDS)
  for (const one of bad ?? []) checkFields(`bad of ${kind}`, one, BAD_FIELDS)
}

const IS = {
  'a whole number': (value: unknown) => Number.isSafeInteger(value),
  'a text': (value: unknown) => typeof value === 'string',
  'true or false': (value: unknown) => typeof value === 'boolean',
}

function checkField(what: string, value: unknown, must: keyof typeof IS): void {
  if (!IS[must](value))
    throw new UsageError(`${what} must be ${must}, not ${described(value)}.`, { code: BAD_FIELD })
}

function checkAgain(kind: string, again: NonNullable<Outcome['again']>): void {
  checkFields(`again of ${kind}`, again, AGAIN_FIELDS)
  const { afterMs = 0 } = again
  if (Number.isFinite(afterMs) && afterMs >= 0) return
  throw new UsageError(`afterMs of ${kind} must be a number of milliseconds, not ${described(afterMs)}.`, {
    code: BAD_FIELD,
  })
}

function checkpointText(kind: string, outcome: PartialOutcome): string | null | undefined {
  return outcome.checkpoint === undefined
    ? undefined
    : outcome.checkpoint === null
      ? null
      : jsonText(`The checkpoint of ${kind}`, outcome.checkpoint)
}

function toWork(ctx: OutcomeContext, o: Outcome): Work | undefined {
  const { job } = ctx
  const counts = [...(o.counts ?? []), ...ownCounts(ctx, o)]
  const work: Work = {
    effects: o.effects,
    locks: o.locks,
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
