/**
 * What went wrong with a call to Cloud Storage, and what can be done about it. `classify` is the only place that reads
 * its error answers.
 *
 * Downloads answer errors in plain words and not in JSON, so their status counts; the page of a proxy says nothing.
 */
import { TidemarkError } from '../../base/errors.ts'
import { AnswerErrors, betweenHint, type ErrorAnswer, type Verdict } from '../answer-errors.ts'
import { googleError, googleRetryAfter, isRateLimit } from '../google/errors.ts'

export const {
  unreachable,
  timedOut,
  wrongContentType,
  damagedAnswer,
  cutShort,
  tooLarge,
  decode,
  parseJson,
} = new AnswerErrors('Google Cloud Storage')

export function classify(answer: ErrorAnswer): TidemarkError {
  const google = googleError(answer.body)
  const isPage = google === undefined && /^\s*<(?:!doctype|html|\?xml)/i.test(answer.body)
  const isRate = answer.status === 403 && isRateLimit(google, answer.body)
  const { kind, code, message, hint } = verdictOf(answer.status, { isPage, isRate })
  const said = google?.message ? `: ${google.message}` : ''
  const retryAfterMs = googleRetryAfter(answer, google)
  return new TidemarkError(`${message} (HTTP ${answer.status})${said}`, {
    kind,
    code,
    ...(hint !== undefined && { hint }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

function verdictOf(status: number, { isPage, isRate }: { isPage: boolean; isRate: boolean }): Verdict {
  if (status === 429 || isRate) {
    return { kind: 'throttled', code: 'rate-limit', message: 'Cloud Storage asked to slow down' }
  }
  if (status === 401) {
    const hint = 'Check the key of the service account, or the access token.'
    return { kind: 'auth', code: 'token-refused', message: 'Cloud Storage refused the access token', hint }
  }
  if (status >= 500 || status === 408) {
    return { kind: 'transient', code: 'server-error', message: 'Cloud Storage had a problem of its own' }
  }
  if (isPage || status < 400) {
    const hint = betweenHint('Google Cloud Storage')
    return { kind: 'transient', code: 'not-gcs', message: 'The answer is not from Cloud Storage', hint }
  }
  if (status === 404) return { kind: 'gone', code: 'object-missing', message: 'The object is not there' }
  if (status === 412) {
    return { kind: 'gone', code: 'object-replaced', message: 'The object is another generation by now' }
  }
  if (status === 403) {
    return { kind: 'permanent', code: 'object-denied', message: 'The object may not be used like this' }
  }
  if (status === 416) return { kind: 'permanent', code: 'range', message: 'The object has no such bytes' }
  return { kind: 'permanent', code: 'refused', message: 'Cloud Storage refused the call' }
}

export function bucketMissing(bucket: string, cause: unknown): TidemarkError {
  const message = `There is no bucket ${bucket} for this account`
  return new TidemarkError(message, { kind: 'permanent', code: 'bucket-missing', cause })
}
