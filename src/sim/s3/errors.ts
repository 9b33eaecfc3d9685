/** Errors as S3 sends them. */
import type { Refusal } from '../faults.ts'
import type { SimAnswer } from '../server.ts'
import { xmlAnswer } from './xml.ts'

export class S3Error extends Error {
  readonly code: string
  readonly status: number
  readonly fields: Readonly<Record<string, string>>

  constructor(code: string, message: string, status: number, fields: Readonly<Record<string, string>> = {}) {
    super(message)
    this.code = code
    this.status = status
    this.fields = fields
  }
}

export function errorAnswer(
  { code, message, status, fields }: S3Error,
  headers: Record<string, string> = {},
): SimAnswer {
  const about = {
    Code: code,
    Message: message,
    ...fields,
    RequestId: 'TIDEMARKSIM00001',
    HostId: 'tidemark-sim',
  }
  return xmlAnswer('Error', about, {
    status,
    headers: { 'x-amz-request-id': 'TIDEMARKSIM00001', ...headers },
  })
}

const REFUSALS: Record<number, readonly [code: string, message: string]> = {
  400: ['BadRequest', 'Bad Request'],
  401: ['AccessDenied', 'Access Denied'],
  403: ['AccessDenied', 'Access Denied'],
  404: ['NoSuchKey', 'The specified key does not exist.'],
  500: ['InternalError', 'We encountered an internal error. Please try again.'],
  503: ['ServiceUnavailable', 'Service is unable to handle request.'],
}

/** What a fault rule asked for. Too many requests are 503 here, whatever the rule said. */
export function s3Refusal({ status, reason, message, retryAfterSeconds }: Refusal): SimAnswer {
  const headers: Record<string, string> =
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterSeconds)) }
  const isThrottle = status === 429 || reason === 'rateLimitExceeded'
  if (isThrottle)
    return errorAnswer(new S3Error('SlowDown', message ?? 'Please reduce your request rate.', 503), headers)
  const [code, words] = REFUSALS[status] ?? REFUSALS[status >= 500 ? 500 : 400]!
  return errorAnswer(new S3Error(reason ?? code, message ?? words, status), headers)
}

export function noSuchKey(key: string): S3Error {
  return new S3Error('NoSuchKey', 'The specified key does not exist.', 404, { Key: key })
}

export function noSuchBucket(bucket: string): S3Error {
  return new S3Error('NoSuchBucket', 'The specified bucket does not exist', 404, { BucketName: bucket })
}

export function accessDenied(): S3Error {
  return new S3Error('AccessDenied', 'Access Denied', 403)
}

export function preconditionFailed(condition: string): S3Error {
  const message = 'At least one of the pre-conditions you specified did not hold'
  return new S3Error('PreconditionFailed', message, 412, { Condition: condition })
}

export function invalidArgument(message: string): S3Error {
  return new S3Error('InvalidArgument', message, 400)
}
