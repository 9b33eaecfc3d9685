import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../base/clock.ts'
import { isLoopback } from '../base/loopback.ts'
import { AttemptLimit } from './attempt-limit.ts'
import type { WrongSecret } from './refusal-log.ts'
import { type Core, type CoreOptions, problemOf, startCore, TOKEN, WRITE } from './server.suite.ts'
import { Sessions, sameSecret } from './sessions.ts'
import { CODE_MS, makeSignInCode, signInUrl } from './sign-in-code.ts'

const thing = '{"id":1,"name":"a"}'

async function withCore(options: CoreOptions, run: (core: Core) => Promise<void>): Promise<void> {
  const core = await startCore(options)
  try {
    await run(core)
  } finally {
    await core.close()
  }
}

type Headers = Record<string, string>

/** With the token where no other `authorization` is given; an empty one stands for none at all. */
const send = (core: Core, path: string, { headers, ...init }: RequestInit & { headers: Headers }) => {
  const { authorization, ...rest } = headers
  return authorization === ''
    ? core.strange(path, { ...init, headers: rest })
    : core.request(path, { ...init, headers })
}
const get = (core: Core, headers: Headers = {}, path = '/api/overview') => send(core, path, { headers })
const post = (core: Core, headers: Headers = {}, path = '/api/things', body = thing) =>
  send(core, path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
const STRANGE = { authorization: '' }

async function refused(response: Response, status: number, code: string): Promise<void> {
  const problem = await problemOf(response)
  assert.deepEqual({ status: response.status, code: problem.code }, { status, code })
}

const trySignIn = (core: Core, body: object) =>
  post(core, { ...WRITE, ...STRANGE }, '/api/sign-in', JSON.stringify(body))

async function signIn(core: Core, body: object = { token: TOKEN }): Promise<string> {
  const response = await trySignIn(core, body)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('set-cookie'), null)
  const { session } = (await response.json()) as { session: string }
  return `Bearer ${session}`
}

test('a change needs the header that no other page can send', () =>
  withCore({}, async (core) => {
    await refused(await post(core), 403, 'csrf')
    await refused(await post(core, { 'x-tidemark': '0' }), 403, 'csrf')
    await refused(await core.request('/api/things', { method: 'DELETE' }), 403, 'csrf')
    assert.equal((await post(core, WRITE)).status, 202)
  }))

describe('a route that checks for itself who asks', () => {
  const hook = (core: Core, headers: Headers) =>
    send(core, '/api/hook', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    })

  test('is given what was sent as a bearer, and nobody as its user, whatever token it is', () =>
    withCore({}, async (core) => {
      for (const bearer of ['a.b.c', TOKEN]) {
        const answer = await hook(core, { authorization: `Bearer ${bearer}` })
        assert.deepEqual(await answer.json(), { bearer, role: 'member' })
      }
      await refused(await hook(core, STRANGE), 401, 'unsigned')
    }))

  test('is not to be reached from pages elsewhere, nor under names of others, and opens nothing beside it', () =>
    withCore({}, async (core) => {
      const signed = { authorization: 'Bearer a.b.c' }
      await refused(await hook(core, { ...signed, origin: 'https://evil.example' }), 403, 'cross-origin')
      await refused(await hook(core, { ...signed, host: 'evil.example' }), 403, 'host-refused')
      for (const path of ['/api/hook/', '/api/hook/x', '/api/things', '/api/HOOK']) {
        const response = await post(core, { ...signed }, path)
        assert.notEqual(response.status, 200, path)
      }
      const body = 'x'.repeat(1_100_000)
      await refused(
        await send(core, '/api/hook', { method: 'POST', headers: signed, body }),
        413,
        'too-large',
      )
    }))
})

test('a short token keeps the server from starting', async () => {
  await assert.rejects(startCore({ token: 'short' }), { code: 'token-short' })
  for (const host of ['127.0.0.1', '127.8.8.8', '::1', '[::1]', 'LOCALHOST'])
    assert.ok(isLoopback(host), host)
})

describe('the Host header', () => {
  test('must be a name of this server, on every path', () =>
    withCore({ allowedHosts: ['Tide.Example.com'], token: TOKEN }, async (core) => {
      const paths = ['/api/overview', '/', '/healthz', '/readyz', '/metrics', '/api/events']
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

describe('who is not known', () => {
  test('is told nothing and may do nothing, also on this machine', () =>
    withCore({ mcp: async () => new Response('mcp') }, async (core) => {
      const paths = ['/api/overview', '/api/nothing', '/api/events', '/api/openapi.json', '/metrics']
      for (const path of [...paths, '/%61pi/overview', '/api', '/mcp']) {
        await refused(await get(core, STRANGE, path), 401, 'sign-in')
      }
      for (const path of ['/mcp', '/api/things', '/api/sign-out', '/api/tickets']) {
        await refused(await post(core, { ...WRITE, ...STRANGE }, path), 401, 'sign-in')
      }
      assert.equal((await get(core, STRANGE)).headers.get('www-authenticate'), 'Bearer realm="tidemark"')
      for (const path of ['/healthz', '/readyz']) {
        const { status, ...rest } = (await (await get(core, STRANGE, path)).json()) as { status: string }
        assert.match(status, /^(?:ok|unavailable)$/)
        assert.deepEqual(rest, {}, path)
      }
    }))

  test('may come back from a sign-in elsewhere: its state is what lets it in', () =>
    withCore({}, async (core) => {
      const visit = {
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
        ...STRANGE,
      }
      assert.equal((await get(core, visit, '/oauth/test/callback?code=1')).status, 200)
      await refused(
        await get(core, { 'sec-fetch-site': 'cross-site' }, '/oauth/test/callback'),
        403,
        'cross-origin',
      )
    }))

  test('a cookie of any kind is no key', () =>
    withCore({}, async (core) => {
      const session = (await signIn(core)).slice('Bearer '.length)
      for (const cookie of [`tidemark_session=${session}`, `session=${session}`, `token=${TOKEN}`]) {
        await refused(await get(core, { ...STRANGE, cookie }), 401, 'sign-in')
        const page = { ...WRITE, ...STRANGE, cookie, origin: 'http://localhost' }
        await refused(await post(core, page), 401, 'sign-in')
      }
    }))

  test('who brings wrong secrets is told of, without them, and not more than once a minute', async () => {
    const told: WrongSecret[] = []
    const clock = new FakeClock()
    const onWrongSecret = (wrong: WrongSecret): number => told.push(wrong)
    await withCore({ clock, onWrongSecret }, async (core) => {
      for (let n = 0; n < 30; n++) await get(core, { authorization: 'Bearer a-wrong-one' })
      await trySignIn(core, { token: 'another-wrong-one' })
      // None at all, or a session that is over, is nobody who guesses.
      await get(core, STRANGE)
      await get(core, { authorization: 'Bearer session-of-yesterday' })
      assert.deepEqual(told, [{ what: 'token', from: 'here', path: '/api/overview', count: 1 }])
      await clock.advance(60_000)
      assert.deepEqual(told[1], { what: 'sign-in', from: 'here', path: '/api/sign-in', count: 30 })
      await clock.advance(600_000)
      assert.equal(told.length, 2)
      assert.ok(!JSON.stringify(told).includes('wrong-one'))
    })
  })
})

describe('the token', () => {
  test('lets its bearer do everything, and the bearer of another nothing', () =>
    withCore({ mcp: async () => new Response('mcp') }, async (core) => {
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

  test('always signs in, however many wrong ones were tried; only those have to wait', () =>
    withCore({}, async (core) => {
      for (let n = 0; n < 10; n++) await refused(await trySignIn(core, { token: 'wrong' }), 401, 'sign-in')
      const response = await trySignIn(core, { token: 'wrong' })
      assert.ok(Number(response.headers.get('retry-after')) > 0)
      await refused(response, 429, 'too-many-tries')
      await signIn(core)
      await signIn(core, { code: makeSignInCode(TOKEN, core.services.clock.now()) })
    }))
})

describe('a session', () => {
  test('is given for the token, and lets a page do what it does', () =>
    withCore({}, async (core) => {
      const authorization = await signIn(core)
      assert.match(authorization, /^Bearer session-[\w-]{43}$/)
      assert.equal((await get(core, { authorization })).status, 200)
      assert.equal((await post(core, { authorization, ...WRITE })).status, 202)
      await refused(await get(core, { authorization: `${authorization}x` }), 401, 'sign-in')
    }))

  test('is over when it is signed out', () =>
    withCore({}, async (core) => {
      const authorization = await signIn(core)
      assert.equal((await post(core, { ...WRITE, authorization }, '/api/sign-out', '')).status, 200)
      await refused(await get(core, { authorization }), 401, 'sign-in')
    }))

  test('is no key to /mcp', () =>
    withCore({ mcp: async () => new Response('mcp') }, async (core) => {
      const authorization = await signIn(core)
      await refused(await post(core, { ...WRITE, authorization }, '/mcp'), 401, 'sign-in')
    }))
})

describe('a code', () => {
  test('signs in once', () =>
    withCore({}, async (core) => {
      const address = new URL(signInUrl('http://127.0.0.1:4180', TOKEN, core.services.clock.now()))
      assert.deepEqual([address.pathname, address.search], ['/sign-in', ''])
      assert.ok(!address.href.includes(TOKEN))
      const code = address.hash.slice(1)
      assert.equal((await get(core, { authorization: await signIn(core, { code }) })).status, 200)
      await refused(await trySignIn(core, { code }), 401, 'sign-in-code')
    }))

  test('is over after a quarter of an hour, and does not outlive the server that may have taken it', async () => {
    const clock = new FakeClock()
    await withCore({ clock }, async (core) => {
      const [old, fresh] = [makeSignInCode(TOKEN, clock.now()), makeSignInCode(TOKEN, clock.now() + 2)]
      await clock.advance(CODE_MS + 1)
      await refused(await trySignIn(core, { code: old }), 401, 'sign-in-code')
      await signIn(core, { code: fresh })
      const early = makeSignInCode(TOKEN, clock.now())
      await clock.advance(1)
      await withCore({ clock }, async (next) => {
        for (const code of [early, fresh]) {
          await refused(await trySignIn(next, { code }), 401, 'sign-in-code')
        }
        await signIn(next, { code: makeSignInCode(TOKEN, clock.now()) })
      })
    })
  })

  test('of another token, of the future, or changed is none', () =>
    withCore({}, async (core) => {
      const nowMs = core.services.clock.now()
      const right = makeSignInCode(TOKEN, nowMs)
      const [time, nonce, signature] = right.split('.')
      const wrong = [
        makeSignInCode('another-token-of-that-length', nowMs),
        makeSignInCode(TOKEN, nowMs + 3_600_000),
        `${(nowMs + 1).toString(36)}.${nonce}.${signature}`,
        `${time}.${nonce}.${'A'.repeat(43)}`,
        ...[TOKEN, '..', `${right}.`],
      ]
      for (const code of wrong) {
        const { status } = await trySignIn(core, { code })
        assert.ok(status === 401 || status === 429, code)
      }
      await refused(await trySignIn(core, { code: right, token: TOKEN }), 400, 'invalid-request')
    }))
})

describe('a ticket', () => {
  const ask = async (core: Core, headers: Headers, path: string): Promise<Response> =>
    post(core, { ...WRITE, ...headers }, '/api/tickets', JSON.stringify({ path }))

  test('lets a browser load one path for a minute, and nothing else', async () => {
    const clock = new FakeClock()
    await withCore({ clock }, async (core) => {
      const authorization = await signIn(core)
      const { href } = (await (await ask(core, { authorization }, '/api/files/a.txt')).json()) as {
        href: string
      }
      assert.match(href, /^\/ticket\/[\w-]{32}$/)
      const frame = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' }
      const loaded = await get(core, { ...STRANGE, ...frame }, href)
      assert.equal(await loaded.text(), 'bytes')
      assert.match(loaded.headers.get('content-disposition') ?? '', /a\.txt/)
      await refused(
        await get(core, { ...STRANGE, 'sec-fetch-site': 'cross-site' }, href),
        403,
        'cross-origin',
      )
      await refused(await get(core, STRANGE, `${href}x`), 404, 'not-found')
      await clock.advance(60_000)
      await refused(await get(core, STRANGE, href), 404, 'not-found')
    })
  })

  test('is over with the session that asked for it, and leads nowhere else', () =>
    withCore({}, async (core) => {
      const authorization = await signIn(core)
      const answer = await ask(core, { authorization }, '/api/files/a.txt')
      const { href } = (await answer.json()) as { href: string }
      await post(core, { ...WRITE, authorization }, '/api/sign-out', '')
      await refused(await get(core, STRANGE, href), 401, 'sign-in')
      for (const path of ['//evil.example/', 'http://evil.example/api/x', '/metrics', '/api/\nx', 'api/x']) {
        await refused(await ask(core, {}, path), 400, 'invalid-request')
      }
    }))
})

test('every answer has the security headers', () =>
  withCore({}, async (core) => {
    const answers = [
      await get(core, STRANGE),
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
    const [quiet, busy] = [sessions.start({ userId: 1 }), sessions.start({ userId: 1 })]
    await clock.advance(6 * day)
    assert.ok(sessions.find(busy))
    await clock.advance(2 * day)
    assert.ok(!sessions.find(quiet))
    for (let n = 0; n < 5; n++) {
      assert.ok(sessions.find(busy))
      await clock.advance(5 * day)
    }
    assert.ok(!sessions.find(busy))
  })

  test('are bounded: the oldest goes first', () => {
    const sessions = new Sessions(new FakeClock())
    const first = sessions.start({ userId: 1 })
    const second = sessions.start({ userId: 1 })
    for (let n = 0; n < 999; n++) sessions.start({ userId: 1 })
    assert.equal(sessions.size, 1_000)
    assert.ok(!sessions.find(first))
    assert.ok(sessions.find(second))
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
