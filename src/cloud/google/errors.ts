/** Error answers as all of Google's APIs write them. What they mean for a service, its own `classify` says. */
import { z } from 'zod'
import { type ErrorAnswer, headerWait, longestWait, plainText } from '../answer-errors.ts'

/** The `cause` of a TidemarkError from `classify` where more than its kind may matter. */
export type GoogleError = {
  message: string
  status: string
  reasons: readonly string[]
  /** Parameters that it is about. */
  locations: readonly string[]
}

const TEXT_MAX = 200

const RATE_REASONS =
  /^(?:rateLimitExceeded|userRateLimitExceeded|quotaExceeded|dailyLimitExceeded(?:Unreg)?|concurrentLimitExceeded|RATE_LIMIT_EXCEEDED|RESOURCE_EXHAUSTED)$/
const RATE_WORDS =
  /quota exceeded|rate limit exceeded|rate-limit exceeded|too many concurrent|too many requests|limit exceeded \(e\.g\. check quota\)|bandwidth|resource has been exhausted/i
/** Asked to slow down: 403 and 429 alike, in the fields or only in the words. */
export function isRateLimit(google: GoogleError | undefined, body: string): boolean {
  if (!google) return RATE_WORDS.test(body.slice(0, TEXT_MAX * 10))
  if (google.status === 'RESOURCE_EXHAUSTED' || google.reasons.some((one) => RATE_REASONS.test(one)))
    return true
  return RATE_WORDS.test(google.message)
}

const errorShape = z.object({
  error: z.object({
    message: z.string().catch(''),
    status: z.string().catch(''),
    errors: z.array(z.object({ reason: z.string().catch(''), location: z.string().catch('') })).catch([]),
    details: z.array(z.object({ reason: z.string().catch('') })).catch([]),
  }),
})

/** Undefined where the body is not in Google's shape. */
export function googleError(body: string): GoogleError | undefined {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return undefined
  }
  const parsed = errorShape.safeParse(value)
  if (!parsed.success) return undefined
  const { message, status, errors, details } = parsed.data.error
  const reasons = [...errors, ...details].map(({ reason }) => reason).filter((reason) => reason !== '')
  // An object that only happens to have an `error` is another service's.
  if (!message && !status && reasons.length === 0) return undefined
  const locations = errors.map(({ location }) => location).filter((location) => location !== '')
  return { message: plainText(message), status, reasons, locations }
}

export function googleRetryAfter(answer: ErrorAnswer, google: GoogleError | undefined): number | undefined {
  return longestWait([
    headerWait(answer.headers, answer.nowMs),
    messageWait(google?.message ?? '', answer.nowMs),
  ])
}

/** `User-rate limit exceeded.  Retry after 2026-01-21T12:57:51.196Z` */
function messageWait(message: string, nowMs: number): number {
  const time = /retry after (\d{4}-\d\d-\d\dT[\d:.]{5,20})(Z|[+-]\d\d:?\d\d)?/i.exec(message)
  return time ? Date.parse(`${time[1]}${time[2] ?? 'Z'}`) - nowMs : 0
}
