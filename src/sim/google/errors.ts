/** Errors as the APIs of Google word them. */
import { TidemarkError } from '../../base/errors.ts'
import type { Refusal } from '../faults.ts'
import type { QuotaRefusal } from '../quota.ts'
import { jsonAnswer, type SimAnswer } from '../server.ts'

export type GoogleFault = {
  status: number
  message: string
  reason: string
  domain?: string
  location?: string
  locationType?: string
  details?: readonly unknown[]
  headers?: Record<string, string>
}

const STATUS_NAMES: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'INVALID_ARGUMENT',
  409: 'ALREADY_EXISTS',
  412: 'FAILED_PRECONDITION',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

const SERVER_MESSAGES: Record<number, { message: string; reason: string }> = {
  500: { message: 'Internal error encountered.', reason: 'backendError' },
  502: { message: 'Bad Gateway', reason: 'badGateway' },
  503: { message: 'The service is currently unavailable.', reason: 'backendError' },
  504: { message: 'Deadline exceeded.', reason: 'backendError' },
}

export class GoogleError extends Error {
  readonly fault: GoogleFault

  constructor(fault: GoogleFault) {
    super(fault.message)
    this.fault = fault
  }
}

export function faultAnswer(fault: GoogleFault): SimAnswer {
  const { status, message, reason, domain = 'global', location, locationType, details } = fault
  const first = { message, domain, reason, ...(location ? { location, locationType } : {}) }
  const error = {
    code: status,
    message,
    errors: [first],
    status: STATUS_NAMES[status] ?? 'UNKNOWN',
    ...(details ? { details } : {}),
  }
  return jsonAnswer({ error }, status, fault.headers)
}

/** What a handler threw as an answer; what is no known fault is a mistake of the simulator and goes on. */
export function thrownAnswer(thrown: unknown): SimAnswer {
  if (thrown instanceof GoogleError) return faultAnswer(thrown.fault)
  if (thrown instanceof TidemarkError) {
    if (thrown.code === 'sim-not-found') return faultAnswer(notFoundFault)
    if (thrown.code === 'sim-invalid') return faultAnswer(invalidFault(thrown.message))
    if (thrown.code === 'sim-conflict') {
      return faultAnswer({ status: 409, message: thrown.message, reason: 'aborted' })
    }
  }
  throw thrown
}

export const notFoundFault: GoogleFault = {
  status: 404,
  message: 'Requested entity was not found.',
  reason: 'notFound',
}

export function notFound(): GoogleError {
  return new GoogleError(notFoundFault)
}

export function invalidFault(message: string): GoogleFault {
  return { status: 400, message, reason: 'invalidArgument' }
}

export function invalid(message: string): GoogleError {
  return new GoogleError(invalidFault(message))
}

export const unauthenticatedFault: GoogleFault = {
  status: 401,
  message:
    'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.',
  reason: 'authError',
  location: 'Authorization',
  locationType: 'header',
  headers: { 'www-authenticate': 'Bearer realm="https://accounts.google.com/", error="invalid_token"' },
}

export const missingTokenFault: GoogleFault = {
  status: 401,
  message:
    'Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.',
  reason: 'required',
  location: 'Authorization',
  locationType: 'header',
  headers: { 'www-authenticate': 'Bearer realm="https://accounts.google.com/"' },
}

/** `service` is the API's host, here and below. */
export function scopeFault(service: string): GoogleFault {
  const bearer = 'Bearer realm="https://accounts.google.com/", error="insufficient_scope"'
  return {
    status: 403,
    message: 'Request had insufficient authentication scopes.',
    reason: 'insufficientPermissions',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT',
        domain: 'googleapis.com',
        metadata: { service },
      },
    ],
    headers: { 'www-authenticate': bearer },
  }
}

export function delegationFault(address: string): GoogleFault {
  return { status: 403, message: `Delegation denied for ${address}`, reason: 'forbidden' }
}

export const concurrencyFault: GoogleFault = {
  status: 429,
  message: 'Too many concurrent requests for user.',
  reason: 'rateLimitExceeded',
}

export function quotaFault(
  service: string,
  { shape, retryAfterSeconds, retryAtMs }: QuotaRefusal,
): GoogleFault {
  const headers: Record<string, string> =
    retryAfterSeconds === null ? {} : { 'retry-after': String(Math.ceil(retryAfterSeconds)) }
  if (shape === 'user403') {
    const at = new Date(retryAtMs).toISOString()
    const message = `User-rate limit exceeded.  Retry after ${at}`
    return { status: 403, message, reason: 'userRateLimitExceeded', domain: 'usageLimits', headers }
  }
  const message = `Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service '${service}' for consumer 'project_number:000000000000'.`
  const status = shape === 'rate403' ? 403 : 429
  return {
    status,
    message,
    reason: 'rateLimitExceeded',
    domain: 'usageLimits',
    details: [quotaDetail(service)],
    headers,
  }
}

function quotaDetail(service: string): object {
  return {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: 'RATE_LIMIT_EXCEEDED',
    domain: 'googleapis.com',
    metadata: { service, quota_metric: `${service}/default` },
  }
}

/** What a fault rule asked for, in Google's words. */
export function refusalAnswer({ status, reason, message, retryAfterSeconds }: Refusal): SimAnswer {
  const headers: Record<string, string> =
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterSeconds)) }
  if (status === 401) return faultAnswer(unauthenticatedFault)
  const isThrottle = status === 429 || (status === 403 && reason !== undefined && /ratelimit/i.test(reason))
  if (isThrottle) {
    const text =
      message ??
      (status === 403 ? 'User Rate Limit Exceeded' : 'Resource has been exhausted (e.g. check quota).')
    return faultAnswer({
      status,
      message: text,
      reason: reason ?? 'rateLimitExceeded',
      domain: 'usageLimits',
      headers,
    })
  }
  const known = SERVER_MESSAGES[status] ?? { message: 'Bad Request', reason: 'badRequest' }
  return faultAnswer({
    status,
    message: message ?? known.message,
    reason: reason ?? known.reason,
    headers,
  })
}
