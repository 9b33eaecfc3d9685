import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ErrorKind, TidemarkError } from '../../base/errors.ts'
import { type Asked, classify, ResyncError } from './errors.ts'

const NOW_MS = Date.UTC(2026, 5, 1)

type Said = {
  code?: string
  message?: string
  inner?: string
  body?: string
  headers?: Record<string, string>
}

function verdict(status: number, said: Said = {}, asked: Asked = 'graph'): TidemarkError {
  const { code = 'generalException', message = 'Said so.', inner, headers = {} } = said
  const error = { code, message, ...(inner && { innererror: { code: inner, 'request-id': 'x' } }) }
  return classify({
    status,
    body: said.body ?? JSON.stringify({ error }),
    headers: { get: (name) => headers[name] ?? null },
    nowMs: NOW_MS,
    asked,
  })
}

describe('an answer of Graph is', () => {
  const cases: [status: number, said: Said, kind: ErrorKind, code: string][] = [
    [400, { code: 'invalidRequest' }, 'permanent', 'refused'],
    [400, { code: 'invalidRequest', inner: 'invalidRange' }, 'permanent', 'range'],
    [400, { code: 'invalidRequest', inner: 'nameContainsInvalidCharacters' }, 'permanent', 'invalid-name'],
    [400, { message: 'The provided name cannot contain: it is not allowed' }, 'permanent', 'invalid-name'],
    [401, { code: 'InvalidAuthenticationToken' }, 'auth', 'token-refused'],
    [401, { body: '' }, 'auth', 'token-refused'],
    [403, { code: 'accessDenied' }, 'permanent', 'forbidden'],
    [403, { code: 'accessDenied', message: 'Insufficient scope.' }, 'auth', 'scope-missing'],
    [403, { code: 'accessDenied', inner: 'malwareDetected' }, 'permanent', 'malware'],
    [403, { code: 'notAllowed', inner: 'accountSuspended' }, 'auth', 'account-suspended'],
    [403, { code: 'quotaLimitReached' }, 'permanent', 'quota-full'],
    [404, { code: 'itemNotFound' }, 'gone', 'not-found'],
    [408, {}, 'transient', 'server-error'],
    [409, { code: 'nameAlreadyExists' }, 'permanent', 'exists'],
    [409, { code: 'conflict', inner: 'nameAlreadyExists' }, 'permanent', 'exists'],
    [409, { code: 'resourceModified' }, 'transient', 'conflict'],
    [409, { code: 'notAllowed', inner: 'resourceLocked' }, 'transient', 'locked'],
    [410, { code: 'itemNotFound' }, 'gone', 'not-found'],
    [412, { code: 'resourceModified' }, 'permanent', 'precondition-failed'],
    [413, {}, 'permanent', 'too-large'],
    [416, { code: 'invalidRange' }, 'permanent', 'range'],
    [423, { code: 'resourceLocked' }, 'transient', 'locked'],
    [429, { code: 'activityLimitReached' }, 'throttled', 'rate-limit'],
    [429, { body: '<html>' }, 'throttled', 'rate-limit'],
    [500, {}, 'transient', 'server-error'],
    [501, { code: 'notSupported' }, 'permanent', 'not-supported'],
    [502, { body: '<html>' }, 'transient', 'server-error'],
    [503, { code: 'serviceNotAvailable' }, 'transient', 'server-error'],
    [503, { code: 'serviceNotAvailable', headers: { 'retry-after': '9' } }, 'throttled', 'rate-limit'],
    [504, {}, 'transient', 'server-error'],
    [507, { code: 'insufficientStorage' }, 'permanent', 'quota-full'],
    [509, { code: 'bandwidthLimitExceeded' }, 'throttled', 'bandwidth-limit'],
    [308, { body: '' }, 'transient', 'not-onedrive'],
  ]
  for (const [status, said, kind, code] of cases) {
    test(`${status} ${said.inner ?? said.code ?? said.message ?? 'without words'}: ${kind}, ${code}`, () => {
      const error = verdict(status, said)
      assert.deepEqual([error.kind, error.code], [kind, code])
    })
  }
})

describe('an answer that Graph did not write', () => {
  for (const status of [400, 403, 404, 409, 410, 412, 416]) {
    test(`settles nothing, though it says ${status}`, () => {
      const error = verdict(status, { body: '<html><h1>Sign in to the airport</h1></html>' })
      assert.deepEqual([error.kind, error.code], ['transient', 'not-onedrive'])
      assert.doesNotMatch(error.message, /airport/)
    })
  }
})

describe('the address of a transfer', () => {
  const cases: [asked: Asked, status: number, said: Said, kind: ErrorKind, code: string][] = [
    ['session', 404, { body: '<html>' }, 'gone', 'session-gone'],
    ['session', 404, { code: 'itemNotFound' }, 'gone', 'session-gone'],
    ['session', 410, {}, 'gone', 'session-gone'],
    ['session', 401, {}, 'gone', 'session-gone'],
    ['session', 409, { code: 'nameAlreadyExists' }, 'permanent', 'exists'],
    ['session', 412, { code: 'resourceModified' }, 'permanent', 'precondition-failed'],
    ['session', 416, {}, 'permanent', 'range'],
    ['session', 416, { body: '' }, 'permanent', 'range'],
    ['session', 400, { code: 'invalidRequest', inner: 'fragmentOverlap' }, 'permanent', 'range'],
    ['session', 507, { code: 'quotaLimitReached' }, 'permanent', 'quota-full'],
    ['session', 308, { body: '' }, 'transient', 'not-onedrive'],
    ['session', 400, { body: '<html>' }, 'transient', 'not-onedrive'],
    ['download', 401, {}, 'transient', 'download-address'],
    ['download', 403, {}, 'transient', 'download-address'],
    ['download', 404, { code: 'itemNotFound' }, 'transient', 'download-address'],
    ['download', 416, { body: '' }, 'permanent', 'range'],
    ['download', 423, {}, 'transient', 'locked'],
    ['download', 429, {}, 'throttled', 'rate-limit'],
    ['download', 503, {}, 'transient', 'server-error'],
  ]
  for (const [asked, status, said, kind, code] of cases) {
    test(`${asked}: ${status} ${said.inner ?? said.code ?? ''} is ${kind}, ${code}`, () => {
      const error = verdict(status, said, asked)
      assert.deepEqual([error.kind, error.code], [kind, code])
    })
  }

  test('is not quoted by errors about it', () => {
    const message = 'See https://host.example/up?tempauth=key-of-the-file'
    assert.doesNotMatch(verdict(409, { code: 'nameAlreadyExists', message }, 'session').message, /key-of/)
  })
})

describe('a resync', () => {
  test('says where to begin anew, and what to do with differences', () => {
    const location = 'https://graph.microsoft.com/v1.0/drives/1/root/delta?token='
    const apply = verdict(410, { code: 'resyncChangesApplyDifferences', headers: { location } })
    assert.ok(apply instanceof ResyncError)
    assert.deepEqual([apply.kind, apply.code, apply.location], ['gone', 'resync', location])
    assert.equal(apply.differences, 'apply')
    const upload = verdict(410, { code: 'resyncRequired', inner: 'resyncChangesUploadDifferences' })
    assert.ok(upload instanceof ResyncError)
    assert.deepEqual([upload.differences, upload.location], ['upload', undefined])
  })
})

describe('a wait', () => {
  test('comes from seconds or a date, and never lasts more than a day', () => {
    const wait = (value: string): number | undefined =>
      verdict(429, { headers: { 'retry-after': value } }).retryAfterMs
    assert.equal(wait('17'), 17_000)
    assert.equal(wait(new Date(NOW_MS + 5_000).toUTCString()), 5_000)
    assert.equal(wait(new Date(NOW_MS - 5_000).toUTCString()), undefined)
    assert.equal(wait('999999999'), 86_400_000)
    assert.equal(wait('soon'), undefined)
  })
})

test('messages are one line without secrets', () => {
  const { message } = verdict(400, { message: 'Bad\u001b[31m\nrequest Bearer abcdefghijkl' })
  assert.equal(message, 'OneDrive refused the call (HTTP 400): Bad [31m request Bearer [redacted]')
})
