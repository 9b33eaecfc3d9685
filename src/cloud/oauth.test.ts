import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, randomBytes, verify } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { FakeClock, systemClock } from '../base/clock.ts'
import type { TidemarkError } from '../base/errors.ts'
import {
  authorizationUrl,
  createPkce,
  exchangeCode,
  type OAuthCalls,
  readRedirect,
  refreshTokens,
  revokeToken,
  serviceAccountTokens,
} from './oauth.ts'

type Asked = { path: string; fields: URLSearchParams; type: string | undefined }
type Answer = { status: number; body: string; headers?: Record<string, string> }

/** Notes what it is asked, and answers what the test has put up. */
const asked: Asked[] = []
let answer: Answer = { status: 200, body: '{}' }
const server = createServer((request, response) => void respond(request, response))
let base = ''
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(() => server.close())

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  asked.push({
    path: request.url ?? '',
    fields: new URLSearchParams(body),
    type: request.headers['content-type'],
  })
  response.writeHead(answer.status, answer.headers)
  response.end(answer.body)
}

const NOW = Date.UTC(2026, 5, 1)
const calls = (): OAuthCalls => ({ fetch, clock: new FakeClock(NOW), tokenUrl: `${base}/token` })
const CLIENT = { clientId: 'client-1', clientSecret: 'client-secret-1' }
const REFRESH = 'refresh-token-very-secret'

function put(status: number, body: unknown, headers?: Record<string, string>): void {
  answer = { status, body: typeof body === 'string' ? body : JSON.stringify(body), headers }
  asked.length = 0
}

async function failure(promise: Promise<unknown>): Promise<TidemarkError> {
  const thrown = await promise.then(
    () => assert.fail('it did not fail'),
    (error: TidemarkError) => error,
  )
  return thrown as TidemarkError
}

describe('the authorization request', () => {
  const pkce = createPkce((n) => randomBytes(n))
  const url = new URL(
    authorizationUrl({
      authUrl: 'https://accounts.example/auth?a=b',
      clientId: 'client-1',
      redirectUri: 'http://127.0.0.1:4711',
      scopes: ['one', 'two'],
      pkce,
      extra: { access_type: 'offline' },
    }),
  )

  test('has the hash of the verifier, never the verifier', () => {
    assert.equal(
      url.searchParams.get('code_challenge'),
      createHash('sha256').update(pkce.verifier).digest('base64url'),
    )
    assert.equal(url.searchParams.get('code_challenge_method'), 'S256')
    assert.ok(!url.href.includes(pkce.verifier))
    assert.match(pkce.verifier, /^[\w-]{43}$/)
  })

  test('says who asks for what, where to go afterwards, and what the service itself needs', () => {
    const { a, client_id, redirect_uri, scope, state, response_type, access_type } = Object.fromEntries(
      url.searchParams,
    )
    assert.deepEqual(
      { a, client_id, redirect_uri, scope, state, response_type, access_type },
      {
        a: 'b',
        client_id: 'client-1',
        redirect_uri: 'http://127.0.0.1:4711',
        scope: 'one two',
        state: pkce.state,
        response_type: 'code',
        access_type: 'offline',
      },
    )
  })

  test('is another one each time', () => {
    const other = createPkce((n) => randomBytes(n))
    assert.notEqual(other.verifier, pkce.verifier)
    assert.notEqual(other.state, pkce.state)
  })
})

describe('a redirect', () => {
  const read = (query: string) => readRedirect(new URLSearchParams(query), 'expected')
  test('brings a code only with the state that was sent', () => {
    assert.deepEqual(read('code=c1&state=expected'), { kind: 'code', code: 'c1' })
    for (const query of [
      'code=c1',
      'code=c1&state=',
      'code=c1&state=other',
      'state=expected',
      'error=x',
      '',
    ]) {
      assert.deepEqual(read(query), { kind: 'strange' }, query)
    }
  })

  test('brings a refusal by its name, and only a name', () => {
    assert.deepEqual(read('error=access_denied&state=expected'), { kind: 'refused', error: 'access_denied' })
    assert.deepEqual(read('error=%1b[2J&state=expected'), { kind: 'refused', error: 'unknown' })
  })
})

describe('tokens', () => {
  test('come for a code with its verifier, and say when they end and what they allow', async () => {
    put(200, {
      access_token: 'at',
      refresh_token: 'rt',
      expires_in: 3599,
      scope: 'one two',
      token_type: 'Bearer',
    })
    const redirectUri = 'http://127.0.0.1:1'
    const tokens = await exchangeCode(calls(), { ...CLIENT, code: 'c1', verifier: 'v1', redirectUri })
    assert.deepEqual(tokens, {
      accessToken: 'at',
      refreshToken: 'rt',
      expiresAtMs: NOW + 3_599_000,
      scopes: ['one', 'two'],
    })
    assert.equal(asked[0]?.type, 'application/x-www-form-urlencoded')
    assert.equal(asked[0]?.path, '/token')
    assert.deepEqual(Object.fromEntries(asked[0]!.fields), {
      grant_type: 'authorization_code',
      code: 'c1',
      code_verifier: 'v1',
      redirect_uri: redirectUri,
      client_id: 'client-1',
      client_secret: 'client-secret-1',
    })
  })

  test('come for a refresh token; a client without a secret sends none', async () => {
    put(200, { access_token: 'at' })
    const tokens = await refreshTokens(calls(), { clientId: 'client-1', refreshToken: REFRESH })
    assert.deepEqual(tokens, { accessToken: 'at', expiresAtMs: NOW + 3_600_000 })
    assert.deepEqual(Object.fromEntries(asked[0]!.fields), {
      grant_type: 'refresh_token',
      refresh_token: REFRESH,
      client_id: 'client-1',
    })
  })

  test('come for an assertion that the service account’s key has signed for one user', async () => {
    put(200, { access_token: 'at', expires_in: 3600 })
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    const account = {
      clientEmail: 'robot@p.example',
      privateKey: pem,
      subject: 'ann@example.com',
      scopes: ['one', 'two'],
    }
    await serviceAccountTokens(calls(), account)
    assert.equal(asked[0]?.fields.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer')
    const [head, claims, signature] = asked[0]!.fields.get('assertion')!.split('.')
    const decode = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())
    assert.deepEqual(decode(head!), { alg: 'RS256', typ: 'JWT' })
    assert.deepEqual(decode(claims!), {
      iss: 'robot@p.example',
      sub: 'ann@example.com',
      scope: 'one two',
      aud: `${base}/token`,
      iat: NOW / 1000,
      exp: NOW / 1000 + 3600,
    })
    assert.ok(
      verify('sha256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature!, 'base64url')),
    )
  })

  test('are not asked for with a key that is none', async () => {
    put(200, {})
    const account = { clientEmail: 'robot', privateKey: 'PEM of a secret', subject: 'a', scopes: ['one'] }
    const error = await failure(serviceAccountTokens(calls(), account))
    assert.deepEqual([error.kind, error.code], ['auth', 'service-account-key'])
    assert.ok(!error.message.includes('secret'))
    assert.equal(asked.length, 0)
  })
})

describe('a refusal', () => {
  const refusals: [status: number, body: unknown, kind: string, code: string, hint: RegExp | undefined][] = [
    [
      400,
      { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' },
      'auth',
      'invalid_grant',
      /7 days/,
    ],
    [400, { error: 'invalid_grant', error_subtype: 'invalid_rapt' }, 'auth', 'invalid_grant', /organisation/],
    [401, { error: 'invalid_client' }, 'auth', 'invalid_client', /client_id and client_secret/],
    [
      400,
      { error: 'invalid_request', error_description: 'client_secret is missing.' },
      'auth',
      'invalid_request',
      /client_secret/,
    ],
    [400, { error: 'redirect_uri_mismatch' }, 'auth', 'redirect_uri_mismatch', /Desktop app/],
    [400, { error: 'admin_policy_enforced' }, 'auth', 'admin_policy_enforced', /administrator/],
    [400, { error: 'something_new' }, 'permanent', 'something_new', undefined],
    [500, { error: 'invalid_grant' }, 'transient', 'oauth-unavailable', undefined],
    [503, '<html>', 'transient', 'oauth-unavailable', undefined],
    [403, '<html>', 'transient', 'oauth-answer', undefined],
    [302, '', 'transient', 'oauth-answer', undefined],
    [404, 'no such page', 'permanent', 'oauth-answer', /addresses/],
    [200, '<html>portal</html>', 'transient', 'oauth-answer', undefined],
    [200, { access_token: '' }, 'transient', 'oauth-answer', undefined],
    [200, { access_token: 'a\r\nhost: b' }, 'transient', 'oauth-answer', undefined],
    [200, { access_token: 'x', token_type: 'mac' }, 'transient', 'oauth-answer', undefined],
  ]
  for (const [status, body, kind, code, hint] of refusals) {
    test(`${status} ${typeof body === 'string' ? body : JSON.stringify(body)} is ${kind}`, async () => {
      put(status, body, { location: `${base}/elsewhere` })
      const error = await failure(refreshTokens(calls(), { ...CLIENT, refreshToken: REFRESH }))
      assert.deepEqual([error.kind, error.code], [kind, code])
      if (hint) assert.match(error.hint ?? '', hint)
      assert.equal(asked.length, 1, 'no redirect is followed')
    })
  }

  test('of a service account names the delegation and the clock', async () => {
    put(400, { error: 'invalid_grant' })
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    const account = { clientEmail: 'r', privateKey: pem, subject: 's', scopes: ['one'] }
    assert.match(
      (await failure(serviceAccountTokens(calls(), account))).hint ?? '',
      /clock is right.*delegation/i,
    )
    put(401, { error: 'unauthorized_client' })
    assert.match((await failure(serviceAccountTokens(calls(), account))).hint ?? '', /Domain-wide delegation/)
  })

  test('by 429 or 503 says how long to wait, in seconds or as a date', async () => {
    put(429, '', { 'retry-after': '7' })
    const error = await failure(refreshTokens(calls(), { ...CLIENT, refreshToken: REFRESH }))
    assert.deepEqual([error.kind, error.retryAfterMs], ['throttled', 7_000])
    put(503, '', { 'retry-after': new Date(NOW + 5_000).toUTCString() })
    assert.equal(
      (await failure(refreshTokens(calls(), { ...CLIENT, refreshToken: REFRESH }))).retryAfterMs,
      5_000,
    )
  })

  test('that quotes what was sent is not repeated', async () => {
    for (const secret of [REFRESH, CLIENT.clientSecret]) {
      put(400, { error: 'invalid_grant', error_description: `no such token: ${secret}` })
      const error = await failure(refreshTokens(calls(), { ...CLIENT, refreshToken: REFRESH }))
      assert.ok(!JSON.stringify([error.message, error.hint, error.stack]).includes(secret))
    }
  })

  test('of endless length is cut', async () => {
    put(400, { error: 'invalid_grant', error_description: 'x'.repeat(20_000) })
    const error = await failure(refreshTokens(calls(), { ...CLIENT, refreshToken: REFRESH }))
    assert.ok(error.message.length < 400)
    put(200, 'y'.repeat(2_000_000))
    assert.equal(
      (await failure(refreshTokens(calls(), { ...CLIENT, refreshToken: REFRESH }))).kind,
      'transient',
    )
  })
})

describe('a service that cannot be reached', () => {
  test('is transient, with what the network said', async () => {
    const tokenUrl = 'http://127.0.0.1:1/token'
    const error = await failure(refreshTokens({ ...calls(), tokenUrl }, { ...CLIENT, refreshToken: REFRESH }))
    assert.deepEqual([error.kind, error.code], ['transient', 'oauth-unreachable'])
    assert.match(error.message, /127\.0\.0\.1:1 cannot be reached/)
  })

  test('is given up after a time limit', async () => {
    const clock = new FakeClock()
    const never = (_: string, init: RequestInit): Promise<Response> =>
      new Promise((_resolve, reject) =>
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      )
    const ended = failure(
      refreshTokens({ fetch: never, clock, tokenUrl: base }, { ...CLIENT, refreshToken: REFRESH }),
    )
    await clock.advance(30_000)
    const error = await ended
    assert.equal(error.kind, 'transient')
    assert.match(error.message, /did not answer in time/)
    assert.equal(clock.pendingTimers, 0)
  })

  test('is left at once when the caller gives up, with the caller’s reason', async () => {
    const signal = AbortSignal.abort(new Error('enough'))
    const ended = refreshTokens(
      { fetch, clock: systemClock, tokenUrl: `${base}/token`, signal },
      { ...CLIENT, refreshToken: REFRESH },
    )
    await assert.rejects(ended, /enough/)
  })
})

describe('giving a token back', () => {
  const revoke = (): Promise<void> =>
    revokeToken({ fetch, clock: new FakeClock(NOW), revokeUrl: `${base}/revoke` }, REFRESH)

  test('sends it in the body, not in the address', async () => {
    put(200, '{}')
    await revoke()
    assert.deepEqual([asked[0]?.path, asked[0]?.fields.get('token')], ['/revoke', REFRESH])
  })

  test('succeeds when the service does not know it any more, and fails when the service has a problem', async () => {
    put(400, { error: 'invalid_token' })
    await revoke()
    put(503, '')
    assert.equal((await failure(revoke())).kind, 'transient')
  })
})
