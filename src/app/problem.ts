/**
 * Every refusal of the server as application/problem+json (RFC 9457): what happened, to what, what to do next.
 * What went wrong inside is told to `onError` and never to the client: neither a stack nor a message that
 * nobody wrote for people.
 */
import { z } from 'zod'
import { asTidemarkError, type ErrorKind, type TidemarkError, UsageError } from '../base/errors.ts'
import { redactText } from '../base/redaction.ts'

export const problemSchema = z.object({
  type: z.string().describe('`about:blank` unless there is a page about it'),
  title: z.string(),
  status: z.number().int(),
  detail: z.string().describe('What happened, to what'),
  hint: z.string().optional().describe('What to do next'),
  code: z.string().optional().describe('A stable name for programs'),
  errors: z
    .array(z.object({ where: z.string(), message: z.string() }))
    .optional()
    .describe('Of a request that was not understood: each field that was wrong'),
})
export type Problem = z.output<typeof problemSchema>

const TITLES: Record<number, string> = {
  400: 'The request is not right',
  401: 'Sign in first',
  403: 'Not allowed',
  404: 'Not found',
  405: 'This method does not work here',
  408: 'The request came too slowly',
  409: 'Not in this state',
  413: 'The request is too large',
  414: 'The address is too long',
  415: 'The request must be JSON',
  422: 'This cannot be done',
  429: 'Too many tries',
  431: 'The headers are too large',
  500: 'Something went wrong inside Tidemark',
  503: 'Not available just now',
}

export function statusTitle(status: number): string {
  return TITLES[status] ?? `Status ${status}`
}

type ProblemOptions = Pick<Problem, 'hint' | 'code' | 'errors'> & {
  headers?: Record<string, string>
  cause?: unknown
}

/** For code that knows best which status an answer has. */
export class ProblemError extends Error {
  readonly problem: Problem
  readonly headers: Record<string, string>

  constructor(status: number, detail: string, options: ProblemOptions = {}) {
    super(detail, { cause: options.cause })
    this.name = 'ProblemError'
    const { headers = {}, hint, code, errors } = options
    this.headers = headers
    this.problem = {
      type: 'about:blank',
      title: statusTitle(status),
      status,
      detail,
      ...(hint === undefined ? {} : { hint }),
      ...(code === undefined ? {} : { code }),
      ...(errors === undefined ? {} : { errors }),
    }
  }
}

export function notFound(detail: string, options: ProblemOptions = {}): ProblemError {
  return new ProblemError(404, detail, { code: 'not-found', ...options })
}

export function conflict(detail: string, options: ProblemOptions = {}): ProblemError {
  return new ProblemError(409, detail, options)
}

/** `auth` is 409 and not 401: an account must be connected again, the client itself is welcome. */
const STATUS_BY_KIND: Record<ErrorKind, number> = {
  transient: 503,
  throttled: 503,
  auth: 409,
  gone: 404,
  permanent: 422,
  bug: 500,
}

/** Names of errors that say more than their kind. */
const STATUS_BY_CODE: readonly [code: RegExp, status: number][] = [
  [/(?:^|-)(?:unknown|absent|gone|not-found|missing)$/, 404],
  [/(?:^|-)(?:exists|running|busy|unfinished|conflict|settled)$/, 409],
]

const RETRY_AFTER_S = 5

/** What a handler threw, as what the client is told. */
export function asProblem(thrown: unknown): ProblemError {
  if (thrown instanceof ProblemError) return thrown
  const error = asTidemarkError(thrown)
  const status = httpStatus(error)
  if (status === 500) {
    return new ProblemError(500, 'This is a mistake in Tidemark, not in the request.', {
      hint: 'The log of the server says more. Trying again may help; if not, please report it.',
      code: 'bug',
      cause: thrown,
    })
  }
  const retryAfterS = error.retryAfterMs === undefined ? RETRY_AFTER_S : Math.ceil(error.retryAfterMs / 1_000)
  return new ProblemError(status, redactText(error.message), {
    ...(error.hint === undefined ? {} : { hint: redactText(error.hint) }),
    ...(error.code === undefined ? {} : { code: error.code }),
    ...(status === 503 ? { headers: { 'retry-after': String(retryAfterS) } } : {}),
    cause: thrown,
  })
}

function httpStatus(error: TidemarkError): number {
  if (error.kind === 'bug') return 500
  if (error instanceof UsageError) {
    const byCode = STATUS_BY_CODE.find(([code]) => code.test(error.code ?? ''))
    return byCode?.[1] ?? 400
  }
  return STATUS_BY_KIND[error.kind]
}

export function problemResponse(error: ProblemError): Response {
  return new Response(JSON.stringify(error.problem), {
    status: error.problem.status,
    headers: {
      'content-type': 'application/problem+json; charset=utf-8',
      'cache-control': 'no-store',
      ...error.headers,
    },
  })
}
