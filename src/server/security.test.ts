import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../clock.ts'
import { AttemptLimit } from './attempt-limit.ts'
import { checkExposure, isLoopback } from './security.ts'
import { type Core, type CoreOptions, problemOf, startCore, TOKEN, WRITE } from './server.suite.ts'
import { Sessions, sameSecret } from './sessions.ts'

const thing = '{"id":1,"name":"a"}'

async function withCore(options: CoreOptions, run: (core: Core) => Promise<void>): Promise<void> {
  const core = await startCore(options)
  try {
    await run(core)
  } finally {
    await core.close()
  }
}

const get = (core: Core, headers: Record<string, string> = {}, path = '/api/overview') =>
  core.request(path, { headers })
const post = (core: Core, headers: Record<string, string> = {}, path = '/api/things', body = thing) =>
  core.request(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })

async function refused(response: Response, status: number, code: string): Promise<void> {
  const problem = await problemOf(response)
  assert.deepEqual({ status: response.status, code: problem.code }, { status, code })
}

async function signIn(core: Core, headers: Record<string, string> = {}): Promise<string> {
  const response = await post(
    core,
    { ...WRITE, ...headers },
    '/api/sign-in',
    JSON.stringify({ token: TOKEN }),
  )
  assert.equal(response.status, 200)
  return response.headers.get('set-cookie')!
}

describe('without a token', () => {
  test('this machine may look, and needs no sign-in', () =>
    withCore({}, async (core) => {
      assert.equal((await get(core)).status, 200)
      assert.deepEqual(await (await get(core, {}, '/api/session')).json(), {
        required: false,
        signedIn: true,
      })
    }))

  test('a change needs the header that no other page can send', () =>
    withCore({}, async (core) => {
      await refused(await post(core), 403, 'csrf')
      await refused(await post(core, { 'x-tidemark': '0' }), 403, 'csrf')
      await refused(await core.request('/api/things', { method: 'DELETE' }), 403, 'csrf')
      assert.equal((await post(core, WRITE)).status, 202)
    }))

  test('a server that others can reach does not start', () => {
    for (const host of ['0.0.0.0', '::', '192.168.1.5', 'example.com', '']) {
      assert.throws(() => checkExposure({ host }), { code: 'token-needed' }, host)
    }
    for (const host of ['127.0.0.1', '127.8.8.8', '::1', '[::1]', 'LOCALHOST'])
      assert.ok(isLoopback(host), host)
    checkExposure({ host: '0.0.0.0', token: TOKEN })
    // Something that speaks HTTPS stands before it, and hands on requests of the whole world.
    const proxied = { host: '127.0.0.1', allowedHosts: ['mail.example.com'] }
    assert.throws(() => checkExposure(proxied), { code: 'token-needed', message: /mail\.example\.com/ })
    checkExposure({ ...proxied, token: TOKEN })
    checkExposure({ host: '127.0.0.1', allowedHosts: ['localhost'] })
    assert.throws(() => checkExposure({ host: '127.0.0.1', token: 'short' }), { code: 'token-short' })
  })
})

describe('the Host header', () => {
  test('must be a name of this server, on every path', () =>
    withCore({ allowedHosts: ['Tide.Example.com'], token: TOKEN }, async (core) => {
      const paths = ['/api/overview', '/', '/healthz', '/readyz', '/metrics', '/api/session', '/api/events']
      for (const path of paths) {
        for (const host of ['evil.example', 'localhost.evil.example', '192.168.1.5', 'a@localhost', ' ']) {
          await refused(await get(core, { host }, path), 403, 'host-refused')
        }
      }
      const own = [
        'localhost',
        'LOCALHOST:4141',
        '127.0.0.1:1',
        '[::1]:80',
        'tide.example.com:443',
        'localhost.',
      ]
      const authorization = `Bearer ${TOKEN}`
      for (const host of own) assert.equal((await get(core, { host, authorization })).status, 200, host)
    }))

  test('does not help when the address itself names another host', () =>
    withCore({}, async (core) => {
      const response = await core.request('http://evil.example/api/overview', {
        headers: { host: 'localhost' },
      })
      await refused(response, 403, 'host-refused')
    }))

  test('may be any address, but no other name, where the server is reached by address', () =>
    withCore({ host: '0.0.0.0', token: TOKEN }, async (core) => {
      const headers = { authorization: `Bearer ${TOKEN}` }
      assert.equal((await get(core, { ...headers, host: '192.168.1.5:4141' })).status, 200)
      assert.equal((await get(core, { ...headers, host: '[fe80::1]' })).status, 200)
      await refused(await get(core, { ...headers, host: 'evil.example' }), 403, 'host-refused')
    }))
})

describe('another origin', () => {
  test('is refused for reading and for changing', () =>
    withCore({}, async (core) => {
      const origins = [
        'http://evil.example',
        'null',
        'http://localhost:5173',
        'file://',
        'http://localhost.evil',
      ]
      for (const origin of origins) {
        await refused(await get(core, { origin }), 403, 'cross-origin')
        await refused(await post(core, { ...WRITE, origin }), 403, 'cross-origin')
      }
      assert.equal((await post(core, { ...WRITE, origin: 'http://localhost' })).status, 202)
      const proxied = { ...WRITE, origin: 'https://localhost', host: 'localhost:443' }
      assert.equal((await post(core, proxied)).status, 202)
    }))

  test('is refused by Sec-Fetch-Site, but may link to pages', () =>
    withCore({}, async (core) => {
      const visit = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
      for (const site of ['cross-site', 'same-site', 'odd']) {
        await refused(await get(core, { 'sec-fetch-site': site }), 403, 'cross-origin')
        await refused(await get(core, { 'sec-fetch-site': site, ...visit }), 403, 'cross-origin')
        await refused(await get(core, { 'sec-fetch-site': site }, '/'), 403, 'cross-origin')
        const framed = { 'sec-fetch-site': site, ...visit, 'sec-fetch-dest': 'iframe' }
        await refused(await get(core, framed, '/'), 403, 'cross-origin')
        assert.equal((await get(core, { 'sec-fetch-site': site, ...visit }, '/')).status, 404)
      }
      for (const site of ['same-origin', 'none']) {
        assert.equal((await get(core, { 'sec-fetch-site': site })).status, 200)
      }
    }))

  test('gets no permission from a preflight', () =>
    withCore({}, async (core) => {
      const headers = { origin: 'http://evil.example', 'access-control-request-method': 'POST' }
      const response = await core.request('/api/things', { method: 'OPTIONS', headers })
      assert.equal(response.status, 403)
      assert.equal(response.headers.get('access-control-allow-origin'), null)
    }))
})

describe('with a token', () => {
  test('nothing is shown without it', () =>
    withCore({ token: TOKEN, mcp: async () => new Response('mcp') }, async (core) => {
      const paths = [
        '/api/overview',
        '/api/nothing',
        '/api/events',
        '/api/openapi.json',
        '/metrics',
        '/%61pi/overview',
      ]
      for (const path of paths) await refused(await get(core, {}, path), 401, 'sign-in')
      await refused(await post(core, WRITE, '/mcp'), 401, 'sign-in')
      assert.equal((await get(core)).headers.get('www-authenticate'), 'Bearer realm="tidemark"')
      assert.deepEqual(await (await get(core, {}, '/api/session')).json(), {
        required: true,
        signedIn: false,
      })
      assert.equal((await get(core, {}, '/healthz')).status, 200)
    }))

  test('who comes back from a sign-in elsewhere needs none: the cookie does not come along', () =>
    withCore({ token: TOKEN }, async (core) => {
      const visit = {
        ...{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
      }
      assert.equal((await get(core, visit, '/oauth/test/callback?code=1')).status, 200)
      await refused(
        await get(core, { 'sec-fetch-site': 'cross-site' }, '/oauth/test/callback'),
        403,
        'cross-origin',
      )
    }))

  test('the bearer of it may do everything, the bearer of another nothing', () =>
    withCore({ token: TOKEN, mcp: async () => new Response('mcp') }, async (core) => {
      const right = { authorization: `Bearer ${TOKEN}` }
      assert.equal((await get(core, right)).status, 200)
      assert.equal((await post(core, { ...right, ...WRITE })).status, 202)
      await refused(await post(core, right), 403, 'csrf')
      assert.equal(await (await post(core, right, '/mcp')).text(), 'mcp')
      await refused(await post(core, { ...right, 'content-type': 'text/plain' }, '/mcp'), 415, 'not-json')
      const wrong = [
        'Bearer x',
        `Bearer ${TOKEN}x`,
        `Basic ${TOKEN}`,
        'Bearer',
        TOKEN,
        `Bearer ${'x'.repeat(5_000)}`,
      ]
      for (const authorization of wrong) await refused(await get(core, { authorization }), 401, 'sign-in')
    }))

  test('signing in gives a cookie that scripts and other sites do not get', () =>
    withCore({ token: TOKEN }, async (core) => {
      const cookie = await signIn(core)
      assert.match(cookie, /^tidemark_session=[\w-]{43}; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Strict$/)
      assert.match(await signIn(core, { 'x-forwarded-proto': 'https' }), /; Secure/)
      const headers = { cookie: cookie.split(';')[0]! }
      assert.equal((await get(core, headers)).status, 200)
      assert.deepEqual(await (await get(core, headers, '/api/session')).json(), {
        required: true,
        signedIn: true,
      })
      await refused(await post(core, { ...headers, ...WRITE }), 403, 'cross-origin')
      assert.equal((await post(core, { ...headers, ...WRITE, origin: 'http://localhost' })).status, 202)
      await refused(await get(core, { cookie: 'tidemark_session=abc' }), 401, 'sign-in')
    }))

  test('signing out ends the session, not only the cookie', () =>
    withCore({ token: TOKEN }, async (core) => {
      const cookie = (await signIn(core)).split(';')[0]!
      const headers = { ...WRITE, cookie, origin: 'http://localhost' }
      const response = await post(core, headers, '/api/sign-out', '')
      assert.match(response.headers.get('set-cookie')!, /Max-Age=0/)
      await refused(await get(core, { cookie }), 401, 'sign-in')
    }))

  test('a cookie is no key to /mcp', () =>
    withCore({ token: TOKEN, mcp: async () => new Response('mcp') }, async (core) => {
      const cookie = (await signIn(core)).split(';')[0]!
      await refused(
        await post(core, { ...WRITE, cookie, origin: 'http://localhost' }, '/mcp'),
        401,
        'sign-in',
      )
    }))

  test('too many tries to sign in must wait, even with the right token', () =>
    withCore({ token: TOKEN }, async (core) => {
      const attempt = (token: string) => post(core, WRITE, '/api/sign-in', JSON.stringify({ token }))
      for (let n = 0; n < 10; n++) await refused(await attempt('wrong'), 401, 'sign-in')
      const response = await attempt(TOKEN)
      assert.ok(Number(response.headers.get('retry-after')) > 0)
      await refused(response, 429, 'too-many-tries')
    }))
})

test('every answer has the security headers', () =>
  withCore({ token: TOKEN }, async (core) => {
    const answers = [
      await get(core),
      await get(core, { host: 'evil.example' }),
      await get(core, {}, '/'),
      await get(core, {}, '/healthz'),
      await get(core, {}, `/${'a'.repeat(9_000)}`),
      await get(core, {}, '/%ff'),
    ]
    for (const { headers, status } of answers) {
      assert.match(
        headers.get('content-security-policy') ?? '',
        /^default-src 'none'; script-src 'self'/,
        `${status}`,
      )
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.equal(headers.get('x-frame-options'), 'DENY')
      assert.equal(headers.get('referrer-policy'), 'no-referrer')
      assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
    }
  }))

describe('sessions', () => {
  test('end after a week of quiet, and after a month in any case', async () => {
    const clock = new FakeClock()
    const sessions = new Sessions(clock)
    const day = 86_400_000
    const [quiet, busy] = [sessions.start(), sessions.start()]
    await clock.advance(6 * day)
    assert.ok(sessions.has(busy))
    await clock.advance(2 * day)
    assert.ok(!sessions.has(quiet))
    for (let n = 0; n < 5; n++) {
      assert.ok(sessions.has(busy))
      await clock.advance(5 * day)
    }
    assert.ok(!sessions.has(busy))
  })

  test('are bounded: the oldest goes first', () => {
    const sessions = new Sessions(new FakeClock())
    const first = sessions.start()
    const second = sessions.start()
    for (let n = 0; n < 999; n++) sessions.start()
    assert.equal(sessions.size, 1_000)
    assert.ok(!sessions.has(first))
    assert.ok(sessions.has(second))
  })

  test('secrets are the same only if they are', () => {
    assert.ok(sameSecret('abc', 'abc'))
    for (const other of ['', 'ab', 'abcd', 'abC']) assert.ok(!sameSecret(other, 'abc'))
  })
})

test('tries are allowed again when the window is over, for each client by itself', async () => {
  const clock = new FakeClock()
  const limit = new AttemptLimit({ clock, max: 2, windowMs: 1_000 })
  assert.deepEqual([limit.take('a'), limit.take('a'), limit.take('a')], [0, 0, 1_000])
  assert.equal(limit.take('b'), 0)
  await clock.advance(600)
  assert.equal(limit.take('a'), 400)
  await clock.advance(400)
  assert.equal(limit.take('a'), 0)
})
