/** What went wrong with a call to S3, and what can be done about it. `classify` is the only place that reads its errors. */
import { TidemarkError } from '../../base/errors.ts'
import { AnswerErrors, type Verdict } from '../answer-errors.ts'
import { type AwsError, awsError, isSignIn, isThrottle } from '../aws/errors.ts'
import { objectDenied, objectMissing, objectReplaced } from '../object-bytes.ts'

export const { timedOut, unreachable, cutShort, damagedAnswer } = new AnswerErrors('S3')

export function classify(thrown: unknown, { uri, nowMs }: { uri: string; nowMs: number }): TidemarkError {
  if (thrown instanceof TidemarkError) return thrown
  const aws = awsError(thrown, nowMs)
  const isObject = !isThrottle(aws) && !isSignIn(aws)
  if (isObject && aws.name !== 'NoSuchBucket') {
    if (aws.status === 404) return objectMissing(uri, thrown)
    if (aws.status === 412) return objectReplaced(uri, thrown)
    // Archived: its bytes are not to be had before somebody restores it.
    if (aws.status === 403) return objectDenied(uri, thrown)
  }
  const { kind, code, message, hint } = verdictOf(aws)
  const status = aws.status === undefined ? '' : ` (HTTP ${aws.status})`
  const said = aws.message ? `: ${aws.message}` : ''
  return new TidemarkError(`${message}${status}${said}`, {
    kind,
    code,
    cause: thrown,
    ...(hint !== undefined && { hint }),
    ...(aws.retryAfterMs !== undefined && { retryAfterMs: aws.retryAfterMs }),
  })
}

/** A range that begins behind the end, which an empty object has for every range. */
export function isRangeRefusal(thrown: unknown): boolean {
  return awsError(thrown, 0).status === 416
}

export function isMissing(thrown: unknown): boolean {
  return thrown instanceof TidemarkError && thrown.kind === 'gone' && thrown.code === 'object-missing'
}

export function isReplaced(thrown: unknown): boolean {
  return thrown instanceof TidemarkError && thrown.code === 'object-replaced'
}

function verdictOf(aws: AwsError): Verdict {
  if (isThrottle(aws)) return { kind: 'throttled', code: 'rate-limit', message: 'S3 asked to slow down' }
  if (isSignIn(aws)) {
    const hint = 'Check the access key, the session token and the clock of this machine.'
    return { kind: 'auth', code: 'credentials-refused', message: 'S3 refused the credentials', hint }
  }
  if (aws.name === 'NoSuchBucket') {
    return { kind: 'permanent', code: 'bucket-missing', message: 'There is no such bucket' }
  }
  if (aws.name === 'PermanentRedirect' || aws.name === 'AuthorizationHeaderMalformed') {
    const hint = 'Name the region that the bucket is in.'
    return { kind: 'permanent', code: 'wrong-region', message: 'The bucket is in another region', hint }
  }
  if (aws.status === undefined) {
    const hint = 'Check the network of this machine.'
    return { kind: 'transient', code: 'connection-failed', message: 'The connection to S3 failed', hint }
  }
  if (aws.status >= 500 || aws.status === 408 || aws.status === 409 || aws.status < 400) {
    return { kind: 'transient', code: 'server-error', message: 'S3 had a problem of its own' }
  }
  return { kind: 'permanent', code: 'refused', message: 'S3 refused the call' }
}

/** None of those that it has is ours to take away. */
export function tooManyTags(uri: string, max: number): TidemarkError {
  return new TidemarkError(`${uri} would have more than the ${max} tags that S3 allows.`, {
    kind: 'permanent',
    code: 'too-many-tags',
    hint: 'Take one away, or have the pipeline keep, move or delete what it has stored.',
  })
}
