/** A job as it is shown: its state, its progress and its last error in a few words, and its form in JSON. */

import { formatCount } from '../../base/format.ts'
import { distance, isoTime } from '../../base/moment.ts'
import { plural } from '../../base/wording.ts'
import { errorText, failureCount, parsedJson, progressText } from '../../engine/observe/job-texts.ts'
import type { JobRow } from '../../ledger/contract.ts'
import type { PauseRow } from '../../ledger/control.ts'

/** What `--json` prints of a job; the help of `jobs list` names these fields. */
export function jobJson(job: JobRow) {
  return {
    id: job.id,
    kind: job.kind,
    state: job.state,
    waitsFor: job.state === 'pending' ? job.wait : null,
    runAt: isoTime(job.run_at),
    depsLeft: job.deps_left,
    key: job.key,
    stream: job.stream,
    segment: job.segment_id,
    parent: job.parent_id,
    lane: job.lane,
    priority: job.priority,
    size: job.size,
    items: job.items,
    attempts: job.attempt,
    failures: failureCount(job),
    owner: job.owner,
    stopping: job.cancel_requested === 1,
    progress: parsedJson(job.progress),
    error: parsedJson(job.error),
    note: job.note,
    noteCode: job.note_code,
    createdAt: isoTime(job.created_at),
    claimedAt: isoTime(job.claimed_at),
    settledAt: isoTime(job.settled_at),
  }
}

export type Pausing = Pick<PauseRow, 'scope' | 'target'>

/** `pending, 2 jobs first`, `pending, in 3 min`, `pending, paused`, `claimed, stopping`. */
export function stateText(job: JobRow, input: { now: number; pauses: readonly Pausing[] }): string {
  if (job.state === 'claimed') return job.cancel_requested === 1 ? 'claimed, stopping' : 'claimed'
  if (job.state !== 'pending') return job.state
  const parts = ['pending']
  if (job.wait === 'deps') {
    parts.push(`${formatCount(job.deps_left)} ${plural(job.deps_left, 'job')} first`)
  } else if (job.wait === 'time') {
    parts.push(job.run_at !== null && job.run_at > input.now ? distance(job.run_at, input.now) : 'due')
  }
  if (input.pauses.some((pause) => isPausedBy(job, pause))) parts.push('paused')
  else if (job.wait === null) parts.push('ready')
  return parts.join(', ')
}

export function isPausedBy(job: Pick<JobRow, 'kind' | 'stream'>, { scope, target }: Pausing): boolean {
  return (
    scope === 'all' ||
    (scope === 'kind' && target === job.kind) ||
    (scope === 'stream' && target === job.stream)
  )
}

/** How often it was taken, also where it was handed back untouched: `0`, `1`, `3, 2 failed`. */
export function takenText(job: JobRow): string {
  const failures = failureCount(job)
  return failures > 0
    ? `${formatCount(job.attempt)}, ${formatCount(failures)} failed`
    : formatCount(job.attempt)
}

/** What is worth knowing about a job in one line: how far it is, or what went wrong, or why it ended. */
export function aboutText(job: JobRow): string {
  if (job.state === 'claimed') return progressText(job.progress) ?? job.note ?? ''
  if (job.state === 'done') return job.note ?? ''
  const error = errorText(job.error)
  if (job.state === 'pending') return error ?? ''
  return job.state === 'failed' ? (error ?? job.note ?? '') : (job.note ?? error ?? '')
}
