/**
 * What went wrong with a call to OneDrive, and what can be done about it. `classify` is the only place that reads
 * Microsoft Graph's error answers; `answers` names what never became an answer.
 *
 * Invariants:
 * - only an error that Graph itself wrote (its JSON shape) settles an item as gone or permanent: the page of a
 *   proxy or a captive portal says nothing about a file, so it is transient
 * - what is said about the address of a transfer is about that address, never about the item behind it
 * - no message holds a token, a pre-authenticated address or a control character
 */
import { z } from 'zod'
import { TidemarkError, type TidemarkErrorOptions } from '../../base/errors.ts'
import {
  AnswerErrors,
  betweenHint,
  type ErrorAnswer,
  errorIn,
  headerWait,
  longestWait,
  plainText,
  type Verdict,
} from '../answer-errors.ts'

export const answers = new AnswerErrors('OneDrive')

/** Whom was asked: Graph itself, the address of an upload session, or that of a download. */
export type Asked = 'graph' | 'session' | 'download'

export type GraphAnswer = ErrorAnswer & { asked?: Asked }

/**
 * OneDrive no longer knows what changed since the delta link. `location` is where to begin anew. What is missing
 * then was deleted (`apply`), or may be local news that OneDrive never had (`upload`).
 */
export class ResyncError extends TidemarkError {
  readonly location: string | undefined
  readonly differences: 'apply' | 'upload'

  constructor(
    message: string,
    options: TidemarkErrorOptions & { location: string | undefined; differences: 'apply' | 'upload' },
  ) {
    super(message, options)
    this.name = 'ResyncError'
    this.location = options.location
    this.differences = options.differences
  }
}

/** All codes from the outermost to the innermost: the inner ones say more. */
type GraphError = { message: string; codes: readonly string[] }

/** One reading of error answers for all calls. */
export function classify(answer: GraphAnswer): TidemarkError {
  const { status, asked = 'graph' } = answer
  const graph = graphError(answer.body)
  const retryAfterMs = longestWait([headerWait(answer.headers, answer.nowMs)])
  const { kind, code, hint, message } = graphVerdict(status, graph, asked, retryAfterMs)
  // The text about a transfer may quote its address, which is a key.
  const said = asked === 'graph' && graph?.message ? `: ${graph.message}` : ''
  const options = { kind, code, hint, retryAfterMs }
  const text = `${message} (HTTP ${status})${said}`
  if (code !== 'resync') return new TidemarkError(text, options)
  const uploads = graph?.codes.includes('resyncChangesUploadDifferences') === true
  const location = answer.headers.get('location') ?? undefined
  return new ResyncError(text, { ...options, location, differences: uploads ? 'upload' : 'apply' })
}

function graphVerdict(
  status: number,
  graph: GraphError | undefined,
  asked: Asked,
  retryAfterMs: number | undefined,
): Verdict {
  const has = (...codes: string[]): boolean => codes.some((code) => graph?.codes.includes(code))
  if (status === 429 || has('activityLimitReached', 'tooManyRequests', 'throttledRequest')) return SLOWER
  if (status === 509) return BANDWIDTH
  if (status === 507 || has('quotaLimitReached', 'insufficientStorage')) return FULL
  if (status === 503 && retryAfterMs !== undefined) return SLOWER
  if (status === 501) return NOT_SUPPORTED
  if (status >= 500 || status === 408) return SERVER_ERROR
  if (asked === 'session') return sessionVerdictOf(status, graph)
  if (asked === 'download') return downloadVerdictOf(status)
  if (status === 401) return TOKEN_REFUSED
  if (status < 400 || !graph) return NOT_FROM_ONEDRIVE
  return graphVerdictOf(status, graph, has)
}

function graphVerdictOf(status: number, graph: GraphError, has: (...codes: string[]) => boolean): Verdict {
  switch (status) {
    case 403:
      return forbiddenOf(graph, has)
    case 404:
      return GONE
    case 409:
      if (has('nameAlreadyExists')) return EXISTS
      return has('resourceLocked') ? LOCKED : IN_BETWEEN
    case 410:
      return graph.codes.some((code) => /^resync/i.test(code)) ? RESYNC : GONE
    case 412:
      return CHANGED
    case 413:
      return TOO_LARGE
    case 416:
      return RANGE
    case 423:
      return LOCKED
    default:
      return graphRefusal(graph, has)
  }
}

/** Whatever a session's address says, the worst that follows is an upload from the beginning. */
function sessionVerdictOf(status: number, graph: GraphError | undefined): Verdict {
  if (status === 404 || status === 410 || status === 401 || status === 403) return SESSION_GONE
  if (status === 416) return RANGE
  if (status < 400 || !graph) return NOT_FROM_ONEDRIVE
  return graphVerdictOf(status, graph, (...codes) => codes.some((code) => graph.codes.includes(code)))
}

/** The address lives for minutes: that it does not work is no word about the file. */
function downloadVerdictOf(status: number): Verdict {
  if (status === 416) return RANGE
  if (status === 423) return LOCKED
  if (status < 400) return NOT_FROM_ONEDRIVE
  return ADDRESS_ENDED
}

function forbiddenOf(graph: GraphError, has: (...codes: string[]) => boolean): Verdict {
  if (has('malwareDetected', 'virusSuspicious', 'virusInfected')) {
    return { kind: 'permanent', code: 'malware', message: 'OneDrive holds the file for harmful' }
  }
  if (/\bscopes?\b|insufficient privileges/i.test(graph.message) || has('Authorization_RequestDenied')) {
    const hint = 'Connect the account again and allow everything that is asked for.'
    return { kind: 'auth', code: 'scope-missing', message: 'The account did not allow this', hint }
  }
  if (has('accountSuspended', 'accountUpgradeRequired', 'provisioningNotAllowed')) {
    const hint = 'Open OneDrive in a browser with this account and see what it says.'
    return { kind: 'auth', code: 'account-suspended', message: 'OneDrive has locked the account', hint }
  }
  return { kind: 'permanent', code: 'forbidden', message: 'OneDrive does not allow this' }
}

function graphRefusal(graph: GraphError, has: (...codes: string[]) => boolean): Verdict {
  if (has('invalidRange', 'fragmentOverlap', 'fragmentRowCountExceeded', 'fragmentOutOfOrder')) return RANGE
  const name = has('invalidName', 'nameContainsInvalidCharacters', 'pathIsTooLong', 'nameTooLong')
  const says = /\bname\b.{0,60}\b(?:invalid|not allowed|not valid|reserved|too long)|invalid (?:file )?name/i
  if (name || says.test(graph.message)) {
    const hint = 'Rename the file: its name has characters, a length or a word that OneDrive does not take.'
    return { kind: 'permanent', code: 'invalid-name', message: 'OneDrive does not take this name', hint }
  }
  if (has('nameAlreadyExists')) return EXISTS
  if (has('maxFileSizeExceeded', 'maxFragmentLengthExceeded')) return TOO_LARGE
  if (has('notSupported')) return NOT_SUPPORTED
  return { kind: 'permanent', code: 'refused', message: 'OneDrive refused the call' }
}

function verdict(kind: Verdict['kind'], code: string, message: string, hint?: string): Verdict {
  return { kind, code, message, ...(hint !== undefined && { hint }) }
}

const SLOWER = verdict('throttled', 'rate-limit', 'OneDrive asked to slow down')
const BANDWIDTH = verdict('throttled', 'bandwidth-limit', 'OneDrive allows no more transfers for a while')
const FULL = verdict(
  'permanent',
  'quota-full',
  'The OneDrive is full',
  'Delete something, empty the recycle bin, or get more space; then it goes on.',
)
const SERVER_ERROR = verdict('transient', 'server-error', 'OneDrive had a problem of its own')
const TOKEN_REFUSED = verdict(
  'auth',
  'token-refused',
  'OneDrive refused the access token',
  'Connect the account again: access was withdrawn, or the password changed.',
)
const NOT_FROM_ONEDRIVE = verdict(
  'transient',
  'not-onedrive',
  'The answer did not come from OneDrive',
  betweenHint('OneDrive'),
)
const GONE = verdict('gone', 'not-found', 'OneDrive does not have it any more')
const EXISTS = verdict('permanent', 'exists', 'OneDrive has something of that name already')
const IN_BETWEEN = verdict('transient', 'conflict', 'Another change came in between')
const RESYNC = verdict('gone', 'resync', 'OneDrive no longer knows what changed since the last time')
const CHANGED = verdict('permanent', 'precondition-failed', 'It has changed on OneDrive in the meantime')
const TOO_LARGE = verdict('permanent', 'too-large', 'It is too large for OneDrive')
const RANGE = verdict('permanent', 'range', 'OneDrive expects other bytes than these')
const LOCKED = verdict(
  'transient',
  'locked',
  'Somebody has the file open on OneDrive',
  'It is tried again; close the file elsewhere if it stays that way.',
)
const SESSION_GONE = verdict('gone', 'session-gone', 'The upload session has ended')
const ADDRESS_ENDED = verdict(
  'transient',
  'download-address',
  'The address of the download does not work any more',
)
const NOT_SUPPORTED = verdict('permanent', 'not-supported', 'This OneDrive cannot do that')

const INNER_DEPTH_MAX = 5

type WireError = { code?: unknown; message?: unknown; innererror?: unknown; innerError?: unknown }

const errorShape = z.object({ error: z.looseObject({ code: z.string(), message: z.string().catch('') }) })

/** Undefined where the body is not in Graph's shape. */
function graphError(body: string): GraphError | undefined {
  const parsed = errorIn(body, errorShape)
  if (!parsed) return undefined
  const codes: string[] = []
  let error: WireError | undefined = parsed
  for (let depth = 0; error && depth < INNER_DEPTH_MAX; depth++) {
    if (typeof error.code === 'string') codes.push(error.code)
    const inner: unknown = error.innererror ?? error.innerError
    error = typeof inner === 'object' && inner !== null ? inner : undefined
  }
  return { message: plainText(parsed.message), codes }
}

/** An address that was to be followed, or a link that was to be asked, leads to a stranger. */
export function strangeAddress(what: string): TidemarkError {
  return new TidemarkError(`${what} leads to an address that is not OneDrive's; nothing was sent there`, {
    kind: 'permanent',
    code: 'strange-address',
  })
}

/** The same as a session that has ended: look whether the file is there, and begin anew otherwise. */
export function sessionFull(): TidemarkError {
  const message = 'The upload session has all bytes, but they have not become a file'
  return new TidemarkError(message, { kind: 'gone', code: 'session-gone' })
}
