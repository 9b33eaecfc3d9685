import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { classify } from './errors.ts'

function seen(status: number, reason: string, about: { message?: string; location?: string } = {}) {
  const { message = 'No.', location } = about
  const errors = [{ message, domain: 'global', reason, location }]
  const body = JSON.stringify({ error: { code: status, message, errors } })
  const { kind, code } = classify({ status, body, headers: new Headers(), nowMs: 0 })
  return [kind, code]
}

describe('an error of Drive', () => {
  test('that is about one file is permanent, with the reason of Google as its code', () => {
    for (const reason of [
      'cannotDownloadFile',
      'exportSizeLimitExceeded',
      'teamDriveMembershipRequired',
      'domainPolicy',
    ])
      assert.deepEqual(seen(403, reason), ['permanent', reason])
    assert.deepEqual(seen(403, 'somethingNew'), ['permanent', 'forbidden'])
  })

  test('that asks to slow down is throttled, as 403 and as 429', () => {
    assert.deepEqual(seen(403, 'userRateLimitExceeded'), ['throttled', 'rate-limit'])
    assert.deepEqual(seen(403, 'rateLimitExceeded'), ['throttled', 'rate-limit'])
    assert.deepEqual(seen(429, 'anything'), ['throttled', 'rate-limit'])
  })

  test('that concerns the account is auth', () => {
    assert.deepEqual(seen(401, 'authError'), ['auth', 'token-refused'])
    assert.deepEqual(seen(403, 'accessNotConfigured'), ['auth', 'api-disabled'])
  })

  test('of a page that is not known says so, by the parameter that it names', () => {
    assert.deepEqual(seen(400, 'invalid', { message: 'Invalid Value', location: 'pageToken' }), [
      'permanent',
      'page-token-invalid',
    ])
    assert.deepEqual(seen(400, 'invalid', { message: 'Invalid Value', location: 'q' }), [
      'permanent',
      'refused',
    ])
  })

  test('404 is gone, and only where Google itself wrote it', () => {
    assert.deepEqual(seen(404, 'notFound'), ['gone', 'not-found'])
    const page = { status: 404, body: '<html>nginx</html>', headers: new Headers(), nowMs: 0 }
    assert.equal(classify(page).kind, 'transient')
  })
})
