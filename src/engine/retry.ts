/**
 * What becomes of a job whose handler threw: a pure decision.
 *
 * | error | costs an attempt | then |
 * |---|---|---|
 * | throttled | no | again after the pause that the service asked for |
 * | auth | no | its stream is paused until the account is connected again |
 * | gone | no | skipped and counted as gone; a batch is split first |
 * | permanent | – | split, isolate or fail at once |
 * | transient, bug | yes | again with full jitter; out of budget: split, isolate or fail |
 */
import type { TidemarkError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'

export const BACKOFF_BASE_MS = 1_000
export const BACKOFF_MAX_MS = 5 * 60_000
/** By then its stream is paused, and the pause holds it. */
export const AUTH_RETRY_MS = 5_000

export type Failing = {
  failures: number
  attempts: number
  items: number
  splittable: boolean
  hasStream: boolean
}

export type Decision =
  | { act: 'retry'; afterMs: number }
  | { act: 'postpone'; afterMs: number; pauseStream: boolean }
  | { act: 'split'; failures: number }
  | { act: 'isolate' }
  | { act: 'gone' }
  | { act: 'fail' }

export function decide(job: Failing, error: TidemarkError, random: Random): Decision {
  switch (error.kind) {
    case 'throttled':
      return {
        act: 'postpone',
        afterMs: error.retryAfterMs ?? backoffMs(job.failures, random),
        pauseStream: false,
      }
    case 'auth':
      // Nobody to pause: treat it like any error, so that it ends.
      if (!job.hasStream) return spend(job, error, random)
      return { act: 'postpone', afterMs: AUTH_RETRY_MS, pauseStream: true }
    case 'gone':
      return job.splittable && job.items > 1 ? splitOf(job, error) : { act: 'gone' }
    case 'permanent':
      return giveUp(job, error)
    case 'transient':
    case 'bug':
      return spend(job, error, random)
  }
}

function spend(job: Failing, error: TidemarkError, random: Random): Decision {
  if (job.failures + 1 >= job.attempts) return giveUp(job, error)
  return { act: 'retry', afterMs: Math.max(error.retryAfterMs ?? 0, backoffMs(job.failures, random)) }
}

function giveUp(job: Failing, error: TidemarkError): Decision {
  if (!job.splittable) return { act: 'fail' }
  return job.items > 1 ? splitOf(job, error) : { act: 'isolate' }
}

/**
 * Halves of a batch that failed for a lasting reason are split on at once, so a poison item among n is alone after
 * log2(n) rounds. Where nobody classified the error it may well come again: the halves get two tries each. After
 * transient errors they get the full budget, so that an outage does not grind good batches down to single items.
 */
function splitOf(job: Failing, error: TidemarkError): Decision {
  return { act: 'split', failures: error.kind === 'bug' ? Math.max(0, job.attempts - 2) : 0 }
}

/** Full jitter: anywhere between now and the exponential bound, so that failures spread out. */
export function backoffMs(failures: number, random: Random): number {
  return Math.ceil(random() * Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** Math.min(failures, 20)))
}
