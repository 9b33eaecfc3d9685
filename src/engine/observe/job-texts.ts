/** What a job's row says, in a few words: its error, its progress, how often it failed. */
import { formatBytes, formatCount, formatShare } from '../../base/format.ts'
import type { JobRow } from '../../ledger/contract.ts'

/** The ledger counts failures that left budget; the one that ended the job is one more. */
export function failureCount(job: Pick<JobRow, 'state' | 'attempt' | 'failures'>): number {
  return job.failures + (job.state === 'failed' && job.attempt > 0 ? 1 : 0)
}

export function errorText(error: string | null): string | undefined {
  const parsed = parsedJson(error)
  if (parsed === null) return undefined
  if (!isRecord(parsed)) return String(parsed)
  const { kind, message } = parsed
  return typeof kind === 'string' ? `${kind}: ${String(message)}` : String(message ?? error)
}

/** The same without its kind: for those whom it is explained to. */
export function errorMessage(error: string | null): string {
  const parsed = parsedJson(error)
  const message = isRecord(parsed) ? parsed.message : parsed
  return typeof message === 'string' && message !== '' ? message : 'no reason was noted'
}

/** What a stored error says to programs, where it says it. */
export function errorCode(error: string | null): string | undefined {
  const parsed = parsedJson(error)
  return isRecord(parsed) && typeof parsed.code === 'string' ? parsed.code : undefined
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
