/** What went wrong with an address of the web. `classify` is the only place that reads its status. */
import { TidemarkError } from '../../base/errors.ts'
import { AnswerErrors, type ErrorAnswer, headerWait, longestWait } from '../answer-errors.ts'
import { noSuchBytes, objectDenied, objectMissing, objectReplaced } from '../object-bytes.ts'

export const { timedOut, unreachable, cutShort, damagedAnswer } = new AnswerErrors('the web server')

export function classify(
  answer: ErrorAnswer,
  { uri, fromByte }: { uri: string; fromByte: number },
): TidemarkError {
  const { status } = answer
  if (status === 404 || status === 410) return objectMissing(uri)
  if (status === 412) return objectReplaced(uri)
  if (status === 401 || status === 403 || status === 451) return objectDenied(uri)
  if (status === 416) return noSuchBytes(uri, fromByte)
  const retryAfterMs = longestWait([headerWait(answer.headers, answer.nowMs)])
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  if (status === 429) {
    const message = `The web server asked to slow down (HTTP ${status})`
    return new TidemarkError(message, { kind: 'throttled', code: 'rate-limit', ...wait })
  }
  if (status >= 500 || status === 408 || status < 400) {
    const message = `The web server had a problem of its own (HTTP ${status})`
    return new TidemarkError(message, { kind: 'transient', code: 'server-error', ...wait })
  }
  return new TidemarkError(`The web server refused ${uri} (HTTP ${status})`, {
    kind: 'permanent',
    code: 'refused',
  })
}

export function hostDenied(uri: string, why: string): TidemarkError {
  return new TidemarkError(`${uri} may not be read: ${why}`, {
    kind: 'permanent',
    code: 'object-denied',
    hint: 'Add the host to those that the pipeline may read from.',
  })
}
