/** Error answers as all of Google's APIs write them. What is a service's own about them, its `classify` says. */
import { z } from 'zod'
import { TidemarkError } from '../../base/errors.ts'
import {
  betweenHint,
  type ErrorAnswer,
  errorIn,
  headerWait,
  longestWait,
  plainText,
  type Verdict,
} from '../answer-errors.ts'

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
  const parsed = errorIn(body, errorShape)
  if (!parsed) return undefined
  const { message, status, errors, details } = parsed
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

/** What is a service's own about its error answers. */
export type GoogleReading = {
  /** `Google Drive` */
  service: string
  /** Of an answer that came from somebody else. */
  strangerCode: string
  goneText: string
  /** 403, because the account did not allow it. */
  isScopeMissing: (google: GoogleError) => boolean
  throttled?: (google: GoogleError | undefined) => Verdict | undefined
  forbidden: (google: GoogleError) => Verdict | undefined
  refused: (status: number, google: GoogleError) => Verdict
}

const DISABLED_REASONS = /^(?:accessNotConfigured|SERVICE_DISABLED)$/

export function classifyGoogle(answer: ErrorAnswer, reading: GoogleReading): TidemarkError {
  const google = googleError(answer.body)
  const { kind, code, hint, message } = googleVerdict(answer, google, reading)
  const said = google?.message ? `: ${google.message}` : ''
  const retryAfterMs = googleRetryAfter(answer, google)
  return new TidemarkError(`${message} (HTTP ${answer.status})${said}`, { kind, code, hint, retryAfterMs })
}

function googleVerdict(
  { status, body }: ErrorAnswer,
  google: GoogleError | undefined,
  reading: GoogleReading,
): Verdict {
  const { service } = reading
  if (status === 429 || (status === 403 && isRateLimit(google, body))) {
    const usual = { kind: 'throttled' as const, code: 'rate-limit', message: `${service} asked to slow down` }
    return reading.throttled?.(google) ?? usual
  }
  if (status === 401) {
    const hint = 'Connect the account again: access was withdrawn, or the password changed.'
    return { kind: 'auth', code: 'token-refused', message: `${service} refused the access token`, hint }
  }
  if (status >= 500 || status === 408) {
    return { kind: 'transient', code: 'server-error', message: `${service} had a problem of its own` }
  }
  if (status < 400 || !google) {
    const message = `The answer did not come from ${service}`
    return { kind: 'transient', code: reading.strangerCode, message, hint: betweenHint(service) }
  }
  if (status === 403) return forbiddenOf(google, reading)
  if (status === 404 || status === 410) return { kind: 'gone', code: 'not-found', message: reading.goneText }
  return reading.refused(status, google)
}

function forbiddenOf(google: GoogleError, { service, isScopeMissing, forbidden }: GoogleReading): Verdict {
  if (isScopeMissing(google)) {
    const hint = 'Connect the account again and allow everything that is asked for.'
    return { kind: 'auth', code: 'scope-missing', message: 'The account did not allow this', hint }
  }
  if (google.reasons.some((reason) => DISABLED_REASONS.test(reason))) {
    const hint = `Enable the ${service} API for the project of the OAuth client: https://console.cloud.google.com/apis/library`
    return { kind: 'auth', code: 'api-disabled', message: `The ${service} API is not enabled`, hint }
  }
  return (
    forbidden(google) ?? { kind: 'permanent', code: 'forbidden', message: `${service} does not allow this` }
  )
}
