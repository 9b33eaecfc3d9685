import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { z } from 'zod'
import { readCacheOf } from '../app/ledger-read-cache.ts'
import type { ServerModule } from '../app/module.ts'
import { route } from '../app/route.ts'
import { FakeClock } from '../base/clock.ts'
import { disposition } from './app.ts'
import { BODY_BYTES_MAX, depthOf } from './request-input.ts'
import { problemOf, startCore, TOKEN, testModule, WRITE } from './server.suite.ts'
import { createServer } from './server.ts'

const state = { at: 1, value: 1 }
const core = await startCore({ modules: [testModule(state)] })
after(() => core.close())

const post = (path: string, body: string, headers: Record<string, string> = WRITE) =>
  core.request(path, { method: 'POST', headers, body })

describe('a request', () => {
  test('is parsed by its route, with defaults', async () => {
    const response = await core.request('/api/things?state=open&tag=a&tag=b')
    assert.deepEqual(await response.json(), { query: { limit: 50, state: 'open', tag: ['a', 'b'] } })
    assert.equal(response.headers.get('cache-control'), 'private, no-store')
  })

  test('keeps encoded characters of its path together', async () => {
    const names = ['mail:ann@example.com', 'a/b', '100%', 'ü', '%41', 'a b?c#d']
    for (const name of names) {
      const response = await core.request(`/api/things/${encodeURIComponent(name)}`)
      assert.deepEqual(await response.json(), { id: name })
    }
  })

  test('is told which of its fields are wrong', async () => {
    const problem = await problemOf(await core.request('/api/things?limit=9999&state=odd'))
    assert.equal(problem.status, 400)
    assert.equal(problem.code, 'invalid-request')
    assert.deepEqual(
      problem.errors?.map(({ where }) => where),
      ['query.limit', 'query.state'],
    )
  })

  test('with a parameter that is not there is refused, and told which there are', async () => {
    const problem = await problemOf(await core.request('/api/things?sate=open'))
    assert.equal(problem.status, 400)
    assert.match(problem.detail, /sate.*limit, state, tag/)
    assert.equal((await core.request('/api/things?__proto__=1')).status, 400)
  })

  test('to a route that expects names of others is spared them', async () => {
    const response = await core.request('/oauth/test/callback?code=1&authuser=0')
    assert.deepEqual(await response.json(), { query: { code: '1' } })
  })

  test('that gives a parameter twice is refused', async () => {
    assert.match(
      (await problemOf(await core.request('/api/things?limit=1&limit=2'))).detail,
      /more than once/,
    )
  })

  test('that is badly encoded or holds a NUL is refused', async () => {
    for (const path of ['/api/things/%E0%A4%A', '/api/things/a%00b', '/api/things?tag=a%00b', '/%ff']) {
      assert.equal((await problemOf(await core.request(path))).status, 400, path)
    }
  })

  test('with too long an address is refused', async () => {
    assert.equal((await problemOf(await core.request(`/api/things?tag=${'a'.repeat(9_000)}`))).status, 414)
  })
})

describe('a body', () => {
  test('that fits is passed on, with the status of the route', async () => {
    const response = await post('/api/things', '{"id":1,"name":"a"}')
    assert.equal(response.status, 202)
    assert.deepEqual(await response.json(), { id: 1, name: 'a' })
  })

  test('that is not needed can be left out', async () => {
    assert.deepEqual(await (await post('/api/sync', '', { 'x-tidemark': '1' })).json(), {})
  })

  test('that is not JSON, not UTF-8 or of another type is refused', async () => {
    assert.equal((await problemOf(await post('/api/things', '{"id":'))).status, 400)
    assert.equal((await problemOf(await post('/api/things', 'null'))).status, 400)
    assert.equal((await problemOf(await post('/api/things', '{"id":1,"name":"\\ud800"}'))).status, 400)
    assert.equal((await problemOf(await post('/api/things', '{"id":1,"name":"\\u0000"}'))).status, 400)
    const plain = { 'x-tidemark': '1', 'content-type': 'text/plain' }
    assert.equal((await problemOf(await post('/api/things', '{}', plain))).status, 415)
    const broken = { method: 'POST', headers: WRITE, body: new Uint8Array([0x22, 0xff, 0x22]) }
    assert.equal((await problemOf(await core.request('/api/things', broken))).status, 400)
  })

  test('that is too large is refused, whether or not it says so', async () => {
    const text = JSON.stringify({ id: 1, name: 'a'.repeat(BODY_BYTES_MAX) })
    assert.equal((await problemOf(await post('/api/things', text))).status, 413)
    const said = await post('/api/things', '{}', { ...WRITE, 'content-length': '2000000' })
    assert.equal((await problemOf(said)).status, 413)
  })

  test('that is nested too deep is refused before it is built', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    assert.equal((await problemOf(await post('/api/things', deep))).code, 'too-deep')
    assert.equal(depthOf('{"a":["]",{"b":"\\"[["}]}'), 3)
  })
})

describe('an error of a handler', () => {
  const statuses: [name: string, status: number][] = [
    ['usage', 400],
    ['unknown', 404],
    ['exists', 409],
    ['gone', 404],
    ['auth', 409],
    ['transient', 503],
    ['permanent', 422],
    ['conflict', 409],
    ['bug', 500],
  ]
  for (const [name, status] of statuses) {
    test(`${name} is answered with ${status}`, async () => {
      assert.equal((await problemOf(await core.request(`/api/errors/${name}`))).status, status)
    })
  }

  test('says what to do next, and when', async () => {
    assert.equal((await problemOf(await core.request('/api/errors/usage'))).hint, 'Ask something else.')
    assert.equal((await core.request('/api/errors/transient')).headers.get('retry-after'), '3')
  })

  test('that is a bug tells the log everything and the client nothing', async () => {
    core.errors.length = 0
    const text = await (await core.request('/api/errors/bug')).text()
    assert.doesNotMatch(text, /function|home|TypeError|at .*\.ts/)
    assert.match(String(core.errors[0]), /x is not a function/)
  })
})

describe('an answer', () => {
  test('has an ETag where it is asked for again and again, and is not sent twice', async () => {
    const first = await core.request('/api/overview')
    const etag = first.headers.get('etag')!
    assert.match(etag, /^W\/"[\w-]{22}"$/)
    const again = await core.request('/api/overview', { headers: { 'if-none-match': `"x", ${etag}` } })
    assert.equal(again.status, 304)
    assert.equal(await again.text(), '')
    state.at += 1
    assert.equal((await core.request('/api/overview', { headers: { 'if-none-match': etag } })).status, 304)
    state.value += 1
    assert.equal((await core.request('/api/overview', { headers: { 'if-none-match': etag } })).status, 200)
  })

  test('to HEAD has no body', async () => {
    const response = await core.request('/api/overview', { method: 'HEAD' })
    assert.equal(response.status, 200)
    assert.ok(response.headers.get('etag'))
    assert.equal(await response.text(), '')
  })

  test('that is bytes is saved under a name that is safe', async () => {
    const response = await core.request(`/api/files/${encodeURIComponent('../a"\r\nb\u202efdp.exe')}`)
    assert.equal(
      response.headers.get('content-disposition'),
      `attachment; filename="_a_bfdp.exe"; filename*=UTF-8''_a_bfdp.exe`,
    )
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
    assert.equal(await response.text(), 'bytes')
    const odd = await core.request('/api/files/odd')
    assert.equal(odd.headers.get('content-type'), 'application/octet-stream')
    assert.equal(disposition('…'), `attachment; filename="_"; filename*=UTF-8''%E2%80%A6`)
    assert.equal(disposition('...'), `attachment; filename="download"; filename*=UTF-8''download`)
  })
})

test('what pages share of the ledger is read anew after a change, and not after what only reads', async () => {
  const clock = new FakeClock()
  let reads = 0
  const look = () =>
    readCacheOf(core.ledger).read('a test', clock, async () => {
      // So much that the next read has to wait for its turn.
      await clock.advance(2_000)
      return ++reads
    })
  assert.equal(await look(), 1)
  assert.equal((await post('/api/plan', '')).status, 200)
  assert.equal(await look(), 1)
  assert.equal((await post('/api/things', '{"id":1,"name":"a"}')).status, 202)
  assert.equal(await look(), 2)
})

describe('a path', () => {
  test('under /api that is not there is a problem, not a page', async () => {
    for (const path of ['/api', '/api/', '/api/nothing', '/api/things/a/b', '/api/../api/x']) {
      assert.equal((await problemOf(await core.request(path))).status, 404, path)
    }
  })

  test('refuses methods that it does not have, and names those it has', async () => {
    const response = await core.request('/api/things', { method: 'DELETE', headers: WRITE })
    assert.equal(response.headers.get('allow'), 'GET, HEAD, POST')
    assert.equal((await problemOf(response)).status, 405)
  })
})

test('a route that is out of place keeps the server from starting', async () => {
  const start = (address: 'GET /elsewhere' | 'POST /api/mail/x') => {
    const one = route(address, { summary: 'x', answer: z.object({}), handle: async () => ({}) })
    const module: ServerModule = { name: 'mail', routes: [one] }
    return createServer({ services: core.services, modules: [module], token: TOKEN })
  }
  assert.throws(() => start('GET /elsewhere'), /must begin with \/api\/mail\//)
  await start('POST /api/mail/x').close()
})
