/**
 * What went wrong with a call to Gmail, and what can be done about it. `classify` is the only place that
 * reads Google's error answers; the other functions name what never became an answer.
 *
 * Invariants:
 * - only an error that Google itself wrote (its JSON shape) settles an item as gone or permanent: the page
 *   of a proxy or a captive portal says nothing about a message, so it is transient
 * - no message holds a token, the content of a mail or a control character
 */
import type { TidemarkError } from '../../base/errors.ts'
import { AnswerErrors, type ErrorAnswer, type Verdict } from '../answer-errors.ts'
import { classifyGoogle, type GoogleError } from '../google/errors.ts'

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

/** One reading of Gmail's error answers for all calls and all parts of batches. */
export function classify(answer: ErrorAnswer): TidemarkError {
  return classifyGoogle(answer, {
    service: 'Gmail',
    strangerCode: 'not-gmail',
    goneText: 'Gmail does not have it any more',
    isScopeMissing: ({ reasons, message }) =>
      reasons.some((reason) => SCOPE_REASONS.test(reason)) || SCOPE_WORDS.test(message),
    throttled: throttleOf,
    forbidden: forbiddenOf,
    refused: callRefusal,
  })
}

function throttleOf(google: GoogleError | undefined): Verdict | undefined {
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
  return undefined
}

function forbiddenOf(google: GoogleError): Verdict | undefined {
  if (google.reasons.includes('domainPolicy')) {
    const hint = "Ask the domain's administrator to allow Gmail's API and this client."
    return { kind: 'auth', code: 'domain-policy', message: 'The domain does not allow it', hint }
  }
  if (/delegation denied/i.test(google.message)) {
    const hint = 'Check the domain-wide delegation of the service account, and the address of the account.'
    return { kind: 'auth', code: 'delegation-denied', message: 'The delegation was denied', hint }
  }
  return undefined
}

function callRefusal(status: number, google: GoogleError): Verdict {
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
