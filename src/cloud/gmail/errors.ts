/**
 * What went wrong with a call to Gmail, and what can be done about it. `classify` is the only place that
 * reads Google's error answers; the other functions name what never became an answer.
 *
 * Invariants:
 * - only an error that Google itself wrote (its JSON shape) settles an item as gone or permanent: the page
 *   of a proxy or a captive portal says nothing about a message, so it is transient
 * - no message holds a token, the content of a mail or a control character
 */
import { TidemarkError } from '../../base/errors.ts'
import { AnswerErrors, betweenHint, type ErrorAnswer, type Verdict } from '../answer-errors.ts'
import { type GoogleError, googleError, googleRetryAfter, isRateLimit } from '../google/errors.ts'

export type { AnswerHeaders } from '../answer-errors.ts'
export { plainText } from '../answer-errors.ts'

export const {
  unreachable,
  timedOut,
  wrongContentType,
  damagedAnswer,
  cutShort,
  tooLarge,
  decode,
  parseJson,
} = new AnswerErrors('Gmail')

const SCOPE_REASONS = /^(?:insufficientPermissions|insufficientScopes|ACCESS_TOKEN_SCOPE_INSUFFICIENT)$/
const SCOPE_WORDS = /insufficient (?:authentication )?(?:scope|permission)/i
const DISABLED_REASONS = /^(?:accessNotConfigured|SERVICE_DISABLED)$/

/** One reading of Gmail's error answers for all calls and all parts of batches. */
export function classify(answer: ErrorAnswer): TidemarkError {
  const google = googleError(answer.body)
  const retryAfterMs = googleRetryAfter(answer, google)
  const { kind, code, hint, message } = verdictOf(answer.status, google, answer.body)
  const said = google?.message ? `: ${google.message}` : ''
  return new TidemarkError(`${message} (HTTP ${answer.status})${said}`, { kind, code, hint, retryAfterMs })
}

function verdictOf(status: number, google: GoogleError | undefined, body: string): Verdict {
  if (status === 429 || (status === 403 && isRateLimit(google, body))) return throttleOf(google)
  if (status === 401) return TOKEN_REFUSED
  if (status >= 500 || status === 408) {
    return { kind: 'transient', code: 'server-error', message: 'Gmail had a problem of its own' }
  }
  if (status < 400 || !google) return NOT_FROM_GMAIL
  if (status === 403) return forbiddenOf(google)
  if (status === 404 || status === 410) {
    return { kind: 'gone', code: 'not-found', message: 'Gmail does not have it any more' }
  }
  return refusalOf(status, google)
}

const TOKEN_REFUSED: Verdict = {
  kind: 'auth',
  code: 'token-refused',
  message: 'Gmail refused the access token',
  hint: 'Connect the account again: access was withdrawn, or the password changed.',
}

const NOT_FROM_GMAIL: Verdict = {
  kind: 'transient',
  code: 'not-gmail',
  message: 'The answer did not come from Gmail',
  hint: betweenHint('Gmail'),
}

function throttleOf(google: GoogleError | undefined): Verdict {
  const says = (words: RegExp): boolean => words.test([google?.message, ...(google?.reasons ?? [])].join(' '))
  if (says(/dailyLimitExceeded|daily limit|per day/i)) {
    const hint =
      "The project's units of the day are used up; it goes on when Google's day ends, at midnight Pacific."
    return { kind: 'throttled', code: 'daily-limit', message: 'The daily limit of Gmail is reached', hint }
  }
  if (says(/concurrent/i)) {
    return { kind: 'throttled', code: 'concurrency-limit', message: 'Too many calls to Gmail at once' }
  }
  if (says(/bandwidth|retry after \d{4}-/i)) {
    const message = 'Gmail allows this user no more for a while'
    return { kind: 'throttled', code: 'bandwidth-limit', message }
  }
  return { kind: 'throttled', code: 'rate-limit', message: 'Gmail asked to slow down' }
}

function forbiddenOf(google: GoogleError): Verdict {
  const gives = (reasons: RegExp): boolean => google.reasons.some((one) => reasons.test(one))
  if (gives(SCOPE_REASONS) || SCOPE_WORDS.test(google.message)) {
    const hint = 'Connect the account again and allow everything that is asked for.'
    return { kind: 'auth', code: 'scope-missing', message: 'The account did not allow this', hint }
  }
  if (gives(DISABLED_REASONS)) {
    const hint = 'Enable the Gmail API for the project of the OAuth client in the Google Cloud console.'
    return { kind: 'auth', code: 'api-disabled', message: 'The Gmail API is not enabled', hint }
  }
  if (gives(/^domainPolicy$/)) {
    const hint = "Ask the domain's administrator to allow Gmail's API and this client."
    return { kind: 'auth', code: 'domain-policy', message: 'The domain does not allow it', hint }
  }
  if (/delegation denied/i.test(google.message)) {
    const hint = 'Check the domain-wide delegation of the service account, and the address of the account.'
    return { kind: 'auth', code: 'delegation-denied', message: 'The delegation was denied', hint }
  }
  return { kind: 'permanent', code: 'forbidden', message: 'Gmail does not allow this' }
}

function refusalOf(status: number, google: GoogleError): Verdict {
  const precondition =
    google.status === 'FAILED_PRECONDITION' || google.reasons.includes('failedPrecondition')
  if (precondition) {
    const off = /mail service not enabled/i.test(google.message)
    return {
      kind: 'permanent',
      code: off ? 'mail-not-enabled' : 'precondition-failed',
      message: 'Gmail cannot do this in the present state of the account',
      hint: off
        ? 'The account has no Gmail: check the address, or have the mail service switched on for it.'
        : 'Open Gmail in a browser with this account and see whether it works there.',
    }
  }
  if (status === 409) {
    const exists = /exists|conflicts|duplicate/i.test([google.message, ...google.reasons].join(' '))
    if (exists) return { kind: 'permanent', code: 'exists', message: 'Gmail has one of that name already' }
    return { kind: 'transient', code: 'conflict', message: 'Another change came in between' }
  }
  if (status === 413) return { kind: 'permanent', code: 'too-large', message: 'It is too large for Gmail' }
  const code = /page ?token|not valid for this list/i.test(google.message) ? 'page-token-invalid' : 'refused'
  return { kind: 'permanent', code, message: 'Gmail refused the call' }
}
