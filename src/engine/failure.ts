/**
 * From a handler's error to what is written about it. Asks retry.ts what to do and fills in the rest.
 *
 * Apps' own functions are called here (to name and split items); if they throw, the job fails with that as its
 * reason, and nothing else is harmed.
 */
import { asTidemarkError, TidemarkError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'
import type { ClaimedJob, NewJob, Settlement } from '../ledger/contract.ts'
import { BAD_FIELD } from './fields.ts'
import type { AnyJobKind, JobStopped } from './job-kind.ts'
import { backoffMs, decide } from './retry.ts'
import { payloadText } from './stored-json.ts'

export type Failure = {
  job: ClaimedJob
  kind: AnyJobKind
  /** Undefined if it did not parse. */
  payload: unknown
  stopped: JobStopped | undefined
  /** By the ledger's clock: that is what `runAt` is compared with. */
  now: number
  random: Random
  onAuth: (job: ClaimedJob, error: TidemarkError) => void
}

export function settlementOf(failure: Failure, thrown: unknown): Settlement {
  const { job, kind, stopped } = failure
  if (stopped && stopped.reason !== 'stalled') {
    return { job, event: stopped.reason === 'canceled' ? 'stop' : 'postpone' }
  }
  const error = stopped ? stallError(kind) : asTidemarkError(thrown)
  // The handler is wrong, and no item: not one of them is better off alone.
  if (error.code === BAD_FIELD)
    return { job, event: 'fail', error: { kind: error.kind, code: error.code, message: error.message } }
  try {
    return decided(failure, error)
  } catch (second) {
    const message = `${error.message} (and ${kind.kind} could not say what it is about: ${asTidemarkError(second).message})`
    return { job, event: 'fail', error: { kind: 'bug', message } }
  }
}

function decided(failure: Failure, error: TidemarkError): Settlement {
  const { job, kind, payload, now, random, onAuth } = failure
  const items = kind.items && payload !== undefined ? kind.items.of(payload) : []
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
  const told = { job, error: { kind: error.kind, code: error.code, message: error.message } }
  switch (decision.act) {
    case 'retry':
      return { ...told, event: 'retry', runAt: later(now, decision.afterMs) }
    case 'postpone':
      if (decision.pauseStream) onAuth(job, error)
      return { ...told, event: 'postpone', runAt: later(now, decision.afterMs) }
    case 'split': {
      const splitInto = { halves: halves(job, kind, payload, items), failures: decision.failures }
      return { ...told, event: 'skip', note: { text: 'split in two', code: 'split' }, splitInto }
    }
    case 'isolate': {
      const bad = { item: items[0]!, reason: error.message, errorKind: error.kind, payload: job.payload }
      return { ...told, event: 'skip', note: { text: 'isolated as bad', code: 'bad' }, bad: [bad] }
    }
    case 'gone': {
      // Without items nobody knows what the segment listed for it.
      const counted = job.segmentId !== null && items.length > 0
      const counts = counted ? [{ segment: job.segmentId!, gone: items.length }] : undefined
      return { ...told, event: 'skip', note: { text: 'gone', code: 'gone' }, work: counts && { counts } }
    }
    case 'fail':
      return { ...told, event: 'fail' }
  }
}

/** When what became of a job cannot be written either: the least that can be, so that it ends. */
export function lastResort({ job, kind, now, random }: Failure, thrown: unknown): Settlement {
  const { kind: errorKind, code, message } = asTidemarkError(thrown)
  const spent = job.failures + 1 >= kind.attempts
  return {
    job,
    event: spent ? 'fail' : 'retry',
    runAt: spent ? null : later(now, backoffMs(job.failures, random)),
    error: { kind: errorKind, code, message: `what became of it could not be written: ${message}` },
  }
}

/** Whole milliseconds within reason, whatever a service put into its Retry-After. */
export function later(now: number, afterMs: number): number {
  const ms = Number.isFinite(afterMs) ? Math.min(Math.max(0, afterMs), AFTER_MS_MAX) : AFTER_MS_MAX
  return Math.ceil(now + ms)
}

const AFTER_MS_MAX = 30 * 86_400_000

function stallError(kind: AnyJobKind): TidemarkError {
  return new TidemarkError(`no progress for ${Math.round(kind.stallMs / 1_000)} s`, {
    kind: 'transient',
    code: 'stalled',
  })
}

/** Binary split: a batch that keeps failing becomes two, until the item at fault is alone. */
function halves(job: ClaimedJob, kind: AnyJobKind, payload: unknown, items: readonly string[]): NewJob[] {
  const middle = Math.ceil(items.length / 2)
  return [items.slice(0, middle), items.slice(middle)].map((part) => ({
    kind: job.kind,
    payload: payloadText(kind, kind.items!.only(payload, part)),
    streamId: job.streamId,
    segment: job.segmentId,
    parentId: job.id,
    lane: job.lane,
    priority: job.priority,
    size: job.size === null ? null : Math.ceil((job.size * part.length) / items.length),
    items: part.length,
  }))
}
