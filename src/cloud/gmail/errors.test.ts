import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { ErrorKind } from '../../base/errors.ts'
import { classify, plainText, timedOut, unreachable, wrongContentType } from './errors.ts'

const NOW_MS = Date.UTC(2026, 10, 15, 12)

type Said = { status?: string; message?: string; reason?: string; detail?: string }

function google(code: number, { status, message = 'Said so.', reason, detail }: Said = {}): string {
  const errors = reason ? [{ message, domain: 'global', reason }] : []
  const details = detail ? [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: detail }] : []
  return JSON.stringify({ error: { code, message, errors, status, details } })
}

function classified(status: number, body: string, headers: Record<string, string> = {}) {
  return classify({ status, body, headers: new Headers(headers), nowMs: NOW_MS })
}

describe('Gmail says', () => {
  const quota =
    "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service 'gmail.googleapis.com' for consumer 'project_number:1'."
  const cases: [what: string, status: number, said: Said, kind: ErrorKind, code: string][] = [
    ['403 rateLimitExceeded', 403, { reason: 'rateLimitExceeded' }, 'throttled', 'rate-limit'],
    ['403 userRateLimitExceeded', 403, { reason: 'userRateLimitExceeded' }, 'throttled', 'rate-limit'],
    ['403 quotaExceeded', 403, { reason: 'quotaExceeded' }, 'throttled', 'rate-limit'],
    ['403 with a quota in its words', 403, { message: quota }, 'throttled', 'rate-limit'],
    ['403 RESOURCE_EXHAUSTED', 403, { status: 'RESOURCE_EXHAUSTED' }, 'throttled', 'rate-limit'],
    ['403 dailyLimitExceeded', 403, { reason: 'dailyLimitExceeded' }, 'throttled', 'daily-limit'],
    ['403 in its details', 403, { detail: 'RATE_LIMIT_EXCEEDED' }, 'throttled', 'rate-limit'],
    ['429 RESOURCE_EXHAUSTED', 429, { status: 'RESOURCE_EXHAUSTED' }, 'throttled', 'rate-limit'],
    [
      '429 for too many calls at once',
      429,
      { message: 'Too many concurrent requests for user.', reason: 'rateLimitExceeded' },
      'throttled',
      'concurrency-limit',
    ],
    [
      '429 for bandwidth',
      429,
      {
        message: 'User-rate limit exceeded.  Retry after 2026-11-15T13:00:00.000Z',
        reason: 'rateLimitExceeded',
      },
      'throttled',
      'bandwidth-limit',
    ],
    ['401', 401, { status: 'UNAUTHENTICATED', reason: 'authError' }, 'auth', 'token-refused'],
    ['403 insufficientPermissions', 403, { reason: 'insufficientPermissions' }, 'auth', 'scope-missing'],
    [
      '403 with a scope in its details',
      403,
      { detail: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT' },
      'auth',
      'scope-missing',
    ],
    [
      '403 with a scope in its words',
      403,
      { status: 'PERMISSION_DENIED', message: 'Request had insufficient authentication scopes.' },
      'auth',
      'scope-missing',
    ],
    ['403 domainPolicy', 403, { reason: 'domainPolicy' }, 'auth', 'domain-policy'],
    ['403 accessNotConfigured', 403, { reason: 'accessNotConfigured' }, 'auth', 'api-disabled'],
    ['403 SERVICE_DISABLED', 403, { detail: 'SERVICE_DISABLED' }, 'auth', 'api-disabled'],
    ['403 for a delegation', 403, { message: 'Delegation denied for a@b.c' }, 'auth', 'delegation-denied'],
    ['403 for anything else', 403, { reason: 'forbidden' }, 'permanent', 'forbidden'],
    ['404', 404, { status: 'NOT_FOUND', reason: 'notFound' }, 'gone', 'not-found'],
    [
      '400 invalidArgument',
      400,
      { status: 'INVALID_ARGUMENT', reason: 'invalidArgument' },
      'permanent',
      'refused',
    ],
    ['400 for a page token', 400, { message: 'Invalid pageToken' }, 'permanent', 'page-token-invalid'],
    [
      '400 for an account without mail',
      400,
      { status: 'FAILED_PRECONDITION', message: 'Mail service not enabled', reason: 'failedPrecondition' },
      'permanent',
      'mail-not-enabled',
    ],
    [
      '400 for another precondition',
      400,
      { reason: 'failedPrecondition' },
      'permanent',
      'precondition-failed',
    ],
    ['409 for a name in use', 409, { message: 'Label name exists or conflicts' }, 'permanent', 'exists'],
    ['409 for a race', 409, { status: 'ABORTED', message: 'Aborted.' }, 'transient', 'conflict'],
    ['413', 413, {}, 'permanent', 'too-large'],
    ['500', 500, { reason: 'backendError' }, 'transient', 'server-error'],
    ['503', 503, { status: 'UNAVAILABLE' }, 'transient', 'server-error'],
    ['408', 408, {}, 'transient', 'server-error'],
  ]
  for (const [what, status, said, kind, code] of cases) {
    test(`${what}: ${kind}, ${code}`, () => {
      const error = classified(status, google(status, said))
      assert.deepEqual([error.kind, error.code], [kind, code], error.message)
      if (kind === 'auth') assert.ok(error.hint, 'what can be done about it')
    })
  }
})

describe('an answer that Gmail did not write', () => {
  const page = '<html><body>Blocked</body></html>'
  for (const status of [302, 400, 403, 404, 407, 410, 418]) {
    test(`settles nothing with status ${status}`, () => {
      assert.equal(classified(status, page).kind, 'transient')
      assert.equal(classified(status, '{"error":"nope"}').kind, 'transient')
      assert.equal(classified(status, '{"error":{}}').kind, 'transient')
    })
  }

  test('can still be about a rate', () => {
    assert.equal(classified(429, page).kind, 'throttled')
    assert.equal(classified(403, 'Rate Limit Exceeded').kind, 'throttled')
  })

  test('with status 401 is about the token', () => {
    assert.equal(classified(401, page).kind, 'auth')
  })
})

describe('the wait that Gmail asks for', () => {
  const body = google(429, { reason: 'rateLimitExceeded' })
  const waits: [what: string, body: string, header: string | undefined, retryAfterMs: number | undefined][] =
    [
      ['in seconds', body, '7', 7_000],
      ['as a date', body, new Date(NOW_MS + 90_000).toUTCString(), 90_000],
      ['as a date in the past', body, new Date(NOW_MS - 90_000).toUTCString(), undefined],
      ['as nonsense', body, 'soon', undefined],
      ['not at all', body, undefined, undefined],
      ['in its words', google(429, { message: 'Retry after 2026-11-15T12:10:00.5Z' }), undefined, 600_500],
      [
        'in its words, with more behind',
        google(429, { message: 'x. Retry after 2026-11-15T12:10:00Z (Mail)' }),
        undefined,
        600_000,
      ],
      ['twice: the longer one', google(429, { message: 'Retry after 2026-11-15T12:10:00Z' }), '1', 600_000],
      ['for longer than a day: a day', body, '9999999', 24 * 3_600_000],
    ]
  for (const [what, body, header, retryAfterMs] of waits) {
    test(what, () => {
      const headers: Record<string, string> = header === undefined ? {} : { 'retry-after': header }
      assert.equal(classified(429, body, headers).retryAfterMs, retryAfterMs)
    })
  }
})

describe('the message of an error', () => {
  test('is short and has no control characters, whatever the service says', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 300, max: 599 }),
        fc.string({ unit: 'binary', maxLength: 2_000 }),
        (status, message) => {
          for (const body of [message, google(status, { message })]) {
            const error = classified(status, body)
            assert.ok(error.message.length < 400)
            assert.doesNotMatch(error.message, /\p{Cc}|\p{Bidi_Control}/u)
          }
        },
      ),
    )
  })

  test('holds no token', () => {
    const message = 'Invalid Credentials: Bearer ya29.a0AfH6SMBxxxxxxxxxxxxxxxx'
    assert.doesNotMatch(classified(401, google(401, { message })).message, /a0AfH6/)
    assert.doesNotMatch(plainText('token=1234567890abcdef'), /1234567890/)
  })

  test('does not quote pages', () => {
    assert.doesNotMatch(classified(404, '<p>private</p>').message, /private/)
    assert.match(wrongContentType('text/html; charset=utf-8', 'JSON').message, /JSON, but it was text\/html/)
  })
})

describe('without an answer', () => {
  test('a reset is transient and named', () => {
    const error = unreachable(
      new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) }),
    )
    assert.equal(error.kind, 'transient')
    assert.match(error.message, /ECONNRESET/)
  })

  test('silence is transient and named', () => {
    assert.deepEqual([timedOut(1_500).kind, timedOut(1_500).code], ['transient', 'timeout'])
  })
})
