/**
 * What went wrong with a call to Drive, and what can be done about it. `classify` is the only place that reads its error
 * answers; the other functions name what never became an answer.
 *
 * Invariants:
 * - only an error that Google itself wrote settles a file as gone or permanent: the page of a proxy says nothing about it
 * - what is refused for one file is `permanent` with Google's own reason as its code, and never stops a sync; only what
 *   concerns the whole account is `auth`
 */
import { TidemarkError } from '../../base/errors.ts'
import { AnswerErrors, betweenHint, type ErrorAnswer, type Verdict } from '../answer-errors.ts'
import { type GoogleError, googleError, googleRetryAfter, isRateLimit } from '../google/errors.ts'

export const {
  unreachable,
  timedOut,
  wrongContentType,
  damagedAnswer,
  cutShort,
  tooLarge,
  decode,
  parseJson,
} = new AnswerErrors('Google Drive')

const DISABLED_REASONS = /^(?:accessNotConfigured|SERVICE_DISABLED)$/
const SCOPE_REASONS = /^(?:insufficientScopes|ACCESS_TOKEN_SCOPE_INSUFFICIENT)$/

/** Why one file is refused. Google's words are the codes that people find when they search for them. */
export const REFUSALS: Readonly<Record<string, string>> = {
  insufficientFilePermissions: 'The account may not do this with the file',
  appNotAuthorizedToFile: 'The file was not opened to this app',
  domainPolicy: "The domain's policy does not allow it",
  teamDriveMembershipRequired: 'Only members of the shared drive may do this',
  cannotDownloadFile: 'Its owner does not allow it to be downloaded',
  cannotDownloadAbusiveFile: 'Google calls the file abusive and does not give it out',
  exportSizeLimitExceeded: 'It is larger than the 10 MB that Google exports',
  fileNotExportable: 'Google cannot export a file of this type',
  fileNotDownloadable: 'A file of this type has no bytes to download',
  malwareDetected: 'Google has found malware in it',
}

export function classify(answer: ErrorAnswer): TidemarkError {
  const google = googleError(answer.body)
  const { kind, code, hint, message } = verdictOf(answer.status, google, answer.body)
  const said = google?.message ? `: ${google.message}` : ''
  return new TidemarkError(`${message} (HTTP ${answer.status})${said}`, {
    kind,
    code,
    hint,
    retryAfterMs: googleRetryAfter(answer, google),
  })
}

function verdictOf(status: number, google: GoogleError | undefined, body: string): Verdict {
  if (status === 429 || (status === 403 && isRateLimit(google, body))) {
    return { kind: 'throttled', code: 'rate-limit', message: 'Google Drive asked to slow down' }
  }
  if (status === 401) return TOKEN_REFUSED
  if (status >= 500 || status === 408) {
    return { kind: 'transient', code: 'server-error', message: 'Google Drive had a problem of its own' }
  }
  if (status < 400 || !google) return NOT_FROM_DRIVE
  if (status === 403) return forbiddenOf(google)
  if (status === 404 || status === 410) {
    return { kind: 'gone', code: 'not-found', message: 'Google Drive has no such thing for this account' }
  }
  if (status === 416) return { kind: 'permanent', code: 'range', message: 'The file has no such bytes' }
  return refusalOf(google)
}

const TOKEN_REFUSED: Verdict = {
  kind: 'auth',
  code: 'token-refused',
  message: 'Google Drive refused the access token',
  hint: 'Connect the account again: access was withdrawn, or the password changed.',
}

const NOT_FROM_DRIVE: Verdict = {
  kind: 'transient',
  code: 'not-drive',
  message: 'The answer did not come from Google Drive',
  hint: betweenHint('Google Drive'),
}

function forbiddenOf(google: GoogleError): Verdict {
  const gives = (reasons: RegExp): boolean => google.reasons.some((one) => reasons.test(one))
  if (gives(SCOPE_REASONS)) {
    const hint = 'Connect the account again and allow everything that is asked for.'
    return { kind: 'auth', code: 'scope-missing', message: 'The account did not allow this', hint }
  }
  if (gives(DISABLED_REASONS)) {
    const hint =
      'Enable the Google Drive API for the project of the OAuth client in the Google Cloud console.'
    return { kind: 'auth', code: 'api-disabled', message: 'The Google Drive API is not enabled', hint }
  }
  const code = google.reasons.find((reason) => reason in REFUSALS)
  if (code !== undefined) return { kind: 'permanent', code, message: REFUSALS[code]! }
  return { kind: 'permanent', code: 'forbidden', message: 'Google Drive does not allow this' }
}

function refusalOf(google: GoogleError): Verdict {
  const code = google.reasons.find((reason) => reason in REFUSALS)
  if (code !== undefined) return { kind: 'permanent', code, message: REFUSALS[code]! }
  const isToken = /page ?token/i.test([google.message, ...google.locations].join(' '))
  if (isToken) {
    return { kind: 'permanent', code: 'page-token-invalid', message: 'Google Drive does not know the page' }
  }
  return { kind: 'permanent', code: 'refused', message: 'Google Drive refused the call' }
}
