/** A job as it is shown: its state, its progress and its last error in a few words, and its form in JSON. */
import { formatBytes, formatCount, formatShare } from '../format.ts'
import type { JobRow } from '../ledger/contract.ts'
import type { PauseRow } from '../ledger/control.ts'
import { plural } from './jobs-input.ts'
import { distance, isoTime } from './jobs-time.ts'

export type JobJson = ReturnType<typeof jobJson>

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

/** `0`, `1`, `3, 2 failed`. */
export function triesText(job: JobRow): string {
  const failures = failureCount(job)
  return failures > 0
    ? `${formatCount(job.attempt)}, ${formatCount(failures)} failed`
    : formatCount(job.attempt)
}

/** The ledger counts failures that left budget; the one that ended the job is one more. */
export function failureCount(job: Pick<JobRow, 'state' | 'attempt' | 'failures'>): number {
  return job.failures + (job.state === 'failed' && job.attempt > 0 ? 1 : 0)
}

/** What is worth knowing about a job in one line: how far it is, or what went wrong, or why it ended. */
export function aboutText(job: JobRow): string {
  if (job.state === 'claimed') return progressText(job.progress) ?? job.note ?? ''
  if (job.state === 'done') return job.note ?? ''
  const error = errorText(job.error)
  if (job.state === 'pending') return error ?? ''
  return job.state === 'failed' ? (error ?? job.note ?? '') : (job.note ?? error ?? '')
}

export function errorText(error: string | null): string | undefined {
  const parsed = parsedJson(error)
  if (parsed === null) return undefined
  if (!isRecord(parsed)) return String(parsed)
  const { kind, message } = parsed
  return typeof kind === 'string' ? `${kind}: ${String(message)}` : String(message ?? error)
}

/** `label 3 of 10 (30 %)`, in bytes where it says so. */
export function progressText(progress: string | null): string | undefined {
  const parsed = parsedJson(progress)
  if (parsed === null) return undefined
  if (!isRecord(parsed)) return String(parsed)
  const amount = parsed.unit === 'bytes' ? formatBytes : formatCount
  const done = typeof parsed.done === 'number' ? parsed.done : undefined
  const total = typeof parsed.total === 'number' ? parsed.total : undefined
  const parts: string[] = []
  if (typeof parsed.label === 'string') parts.push(parsed.label)
  if (done !== undefined)
    parts.push(total === undefined ? amount(done) : `${amount(done)} of ${amount(total)}`)
  if (done !== undefined && total) parts.push(`(${formatShare(done / total)})`)
  return parts.length > 0 ? parts.join(' ') : undefined
}

/** What was meant as JSON, or the text itself if it is none. */
export function parsedJson(text: string | null): unknown {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
