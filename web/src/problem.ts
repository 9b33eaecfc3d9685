/** A request that did not work, with words for people: what happened, and what to do next. */
export class ApiError extends Error {
  /** 0: the server could not be reached. */
  readonly status: number
  readonly title: string
  readonly hint: string | undefined
  readonly code: string | undefined

  constructor(problem: { status: number; title: string; detail?: string; hint?: string; code?: string }) {
    super(problem.detail || problem.title)
    this.name = 'ApiError'
    this.status = problem.status
    this.title = problem.title
    this.hint = problem.hint
    this.code = problem.code
  }
}

/** From an answer that is not 2xx; whatever its body is, even none. */
export async function apiErrorFrom(response: Response): Promise<ApiError> {
  let body: Record<string, unknown> = {}
  try {
    if (/json/.test(response.headers.get('content-type') ?? '')) {
      const parsed: unknown = await response.json()
      if (parsed !== null && typeof parsed === 'object') body = parsed as Record<string, unknown>
    }
  } catch {
    // Broken off or not JSON: the status alone has to do.
  }
  const text = (name: string): string | undefined => {
    const value = body[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  return new ApiError({
    status: response.status,
    title: text('title') ?? statusTitle(response.status),
    detail: text('detail'),
    hint: text('hint') ?? hintOf(response.status),
    code: text('code'),
  })
}

export function unreachable(cause: unknown): ApiError {
  const error = new ApiError({
    status: 0,
    title: 'Tidemark does not answer',
    detail: 'The server cannot be reached.',
    hint: 'Check that `tidemark serve` is running. This page tries again by itself.',
  })
  error.cause = cause
  return error
}

function statusTitle(status: number): string {
  if (status === 401) return 'Please sign in'
  if (status === 403) return 'This is not allowed here'
  if (status === 404) return 'There is no such thing'
  if (status === 429) return 'Too many requests'
  return status >= 500 ? 'Tidemark could not do that' : 'Tidemark did not accept that'
}

function hintOf(status: number): string | undefined {
  if (status === 429) return 'Wait a moment, then try again.'
  if (status >= 500) return 'Try again; if it stays, look at the log of the server.'
  return undefined
}
