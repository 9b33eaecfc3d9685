import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { defineTool, type ServerModule } from '../app/module.ts'
import { route } from '../app/route.ts'
import { FakeClock } from '../base/clock.ts'
import { TOKEN_BYTES, tokenText, type User, type UserRole } from '../ledger/users.ts'
import { CLIENTS_MAX, MEMBER_CLIENTS_MAX } from './events-route.ts'
import { createMcpHttp } from './mcp/http.ts'
import { NEWS_MS_MIN } from './member-news.ts'
import { type Core, problemOf, startCore, TOKEN, testModule, WRITE, withToken } from './server.suite.ts'
import { makeSignInCode } from './sign-in-code.ts'

const seesUser = z.object({ id: z.number(), name: z.string(), role: z.string() })

const things: ServerModule = {
  name: 'own',
  routes: [
    route('GET /api/own/who', {
      summary: 'Who asks',
      access: 'member',
      answer: seesUser,
      handle: async ({ user }) => user,
    }),
    route('GET /api/own/who/{name}', {
      summary: 'For admins, beneath an address that is for members',
      params: z.object({ name: z.string() }),
      answer: seesUser,
      handle: async ({ user }) => user,
    }),
  ],
  tools: [
    defineTool({
      name: 'own_who',
      title: 'Who asks',
      description: 'Says who asks.',
      input: z.object({}),
      access: 'read',
      audience: 'member',
      narrower: '',
      run: async (_input, _services, { user }) => [`It is ${user.name}.`],
    }),
    defineTool({
      name: 'own_all',
      title: 'All',
      description: 'For admins.',
      input: z.object({}),
      access: 'read',
      narrower: '',
      run: async () => ['all'],
    }),
  ],
}

type Staff = { core: Core; add: (name: string, role: UserRole) => Promise<{ user: User; token: string }> }

async function withUsers(fn: (staff: Staff) => Promise<void>, clock = new FakeClock()): Promise<void> {
  const core = await startCore({ modules: [testModule(), things], clock })
  let n = 0
  try {
    await fn({
      core,
      async add(name, role) {
        n += 1
        const token = tokenText(new Uint8Array(TOKEN_BYTES).fill(n))
        const user = await core.services.users.add({ name, role })
        await core.services.users.addToken(user.id, { label: 'test', token })
        return { user, token }
      },
    })
  } finally {
    await core.close()
  }
}

function as(core: Core, token: string): (path: string, init?: RequestInit) => Promise<Response> {
  return async (path, init) => core.server.app.request(path, withToken(init, token))
}

async function signIn(core: Core, credentials: object): Promise<string> {
  const response = await core.strange('/api/sign-in', {
    method: 'POST',
    headers: WRITE,
    body: JSON.stringify(credentials),
  })
  assert.equal(response.status, 200)
  return ((await response.json()) as { session: string }).session
}

const NEWS = 'event: news\ndata: {}\n\n'

/** What came so far. */
class LiveText {
  text = ''

  async follow(response: Response): Promise<void> {
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) this.text += part
  }
}

/** What was begun with the clock has asked the database, and told. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('members', () => {
  test('are refused every route that is not declared for them, and told so before anything is read', () =>
    withUsers(async ({ core, add }) => {
      const ann = as(core, (await add('ann', 'member')).token)
      const asked: [method: string, path: string][] = [
        ['GET', '/api/things'],
        ['GET', '/api/things/1'],
        ['POST', '/api/things'],
        ['POST', '/api/sync'],
        ['GET', '/api/overview'],
        ['GET', '/api/files/name'],
        ['GET', '/metrics'],
        ['POST', '/api/users/1/sign-in'],
        ['GET', '/api/own/who/ann'],
        ['GET', '/api/nothing'],
        ['PUT', '/api/own/who'],
      ]
      for (const [method, path] of asked) {
        const response = await ann(path, { method, headers: WRITE })
        assert.equal(response.status, 403, `${method} ${path}`)
        if (method !== 'HEAD') assert.equal((await problemOf(response)).code, 'admins-only', path)
      }
    }))

  test('are known to the routes that are for them, and to an address that a browser loads for them', () =>
    withUsers(async ({ core, add }) => {
      const { user, token } = await add('ann', 'member')
      const ann = as(core, token)
      const expected = { id: user.id, name: 'ann', role: 'member' }
      assert.deepEqual(await (await ann('/api/own/who')).json(), expected)
      assert.equal((await ann('/api/openapi.json')).status, 200)
      const ticket = async (path: string): Promise<Response> => {
        const body = JSON.stringify({ path })
        const given = await ann('/api/tickets', { method: 'POST', headers: WRITE, body })
        return core.strange(((await given.json()) as { href: string }).href)
      }
      assert.deepEqual(await (await ticket('/api/own/who')).json(), expected)
      assert.equal((await ticket('/api/files/name')).status, 403)
    }))

  test('are offered the tools that are for them, and no others', () =>
    withUsers(async ({ core, add }) => {
      const { user } = await add('ann', 'member')
      const mcp = createMcpHttp({
        services: core.services,
        modules: [things],
        allowsWriting: () => true,
        onError: (thrown) => assert.fail(String(thrown)),
      })
      const ask = async (by: User, method: string, params: object): Promise<string> => {
        const headers = {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        }
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
        const request = new Request('http://localhost/mcp', { method: 'POST', headers, body })
        return (await mcp.handle(request, by)).text()
      }
      const owner = (await core.services.users.get(1))!
      assert.match(await ask(owner, 'tools/list', {}), /own_all/)
      const offered = await ask(user, 'tools/list', {})
      assert.match(offered, /own_who/)
      assert.doesNotMatch(offered, /own_all/)
      assert.match(await ask(user, 'tools/call', { name: 'own_who', arguments: {} }), /It is ann\./)
      assert.doesNotMatch(await ask(user, 'tools/call', { name: 'own_all', arguments: {} }), /"all"/)
      await mcp.close()
    }))

  test('hear no reasons of the health, as strangers do', () =>
    withUsers(async ({ core, add }) => {
      const ann = as(core, (await add('ann', 'member')).token)
      assert.deepEqual(await (await ann('/healthz')).json(), { status: 'ok' })
    }))
})

describe('users', () => {
  test('with the role of an admin may do what the owner may', () =>
    withUsers(async ({ core, add }) => {
      const eve = as(core, (await add('eve', 'admin')).token)
      assert.equal((await eve('/api/things')).status, 200)
      assert.equal((await eve('/metrics')).status, 200)
    }))

  test('sign in with their own token, or by an address that was made for them', () =>
    withUsers(async ({ core, add }) => {
      const { user, token } = await add('ann', 'member')
      const made = await core.request(`/api/users/${user.id}/sign-in`, { method: 'POST', headers: WRITE })
      const { href } = (await made.json()) as { href: string }
      const [, code] = href.split('#')
      for (const credentials of [{ token }, { code }]) {
        const session = await signIn(core, credentials)
        const seen = await as(core, session)('/api/own/who')
        assert.equal(((await seen.json()) as { name: string }).name, 'ann')
        assert.equal((await as(core, session)('/api/things')).status, 403)
      }
      const again = { method: 'POST', headers: WRITE, body: JSON.stringify({ code }) }
      assert.equal((await core.strange('/api/sign-in', again)).status, 401)
      const [entry] = await core.services.users.audit({ limit: 1 })
      assert.deepEqual([entry?.action, entry?.subject, entry?.userName], ['sign-in-made', 'ann', 'owner'])
    }))

  test('cannot make an address for another user out of their own', () =>
    withUsers(async ({ core, add }) => {
      const { user } = await add('ann', 'member')
      const code = makeSignInCode(TOKEN, core.services.clock.now(), user.id)
      const forged = [code.replace(`.${user.id}.`, '.'), code.replace(`.${user.id}.`, '.1.')]
      for (const one of forged) {
        const body = JSON.stringify({ code: one })
        const response = await core.strange('/api/sign-in', { method: 'POST', headers: WRITE, body })
        assert.equal(response.status, 401)
      }
    }))

  test('who are disabled are out at once: token, sessions, codes and live pages', () =>
    withUsers(async ({ core, add }) => {
      const { user, token } = await add('eve', 'admin')
      const session = await signIn(core, { token })
      const byCode = await signIn(core, {
        code: makeSignInCode(TOKEN, core.services.clock.now(), user.id),
      })
      const late = makeSignInCode(TOKEN, core.services.clock.now(), user.id)
      const live = await as(core, session)('/api/events')
      assert.equal(core.server.events.clients, 1)
      await core.services.users.change(user.id, { state: 'disabled' })
      for (const bearer of [token, session, byCode]) {
        assert.equal((await as(core, bearer)('/api/own/who')).status, 401)
      }
      const body = JSON.stringify({ code: late })
      assert.equal((await core.strange('/api/sign-in', { method: 'POST', headers: WRITE, body })).status, 401)
      await drained(live)
      assert.equal(core.server.events.clients, 0)
    }))

  test('are told live that something of theirs has changed, and nothing of others', async () => {
    const clock = new FakeClock()
    await withUsers(async ({ core, add }) => {
      const { user: ann, token } = await add('ann', 'member')
      const { user: bob, token: bobs } = await add('bob', 'member')
      const [live, other] = [new LiveText(), new LiveText()]
      void live.follow(
        await as(core, token)('/api/events', {
          headers: { 'last-event-id': `${core.services.hub.epoch}-0` },
        }),
      )
      void other.follow(await as(core, bobs)('/api/events'))
      const look = async (): Promise<void> => {
        await clock.advance(NEWS_MS_MIN)
        await settled()
      }
      await look()
      const hello = JSON.stringify({ epoch: core.services.hub.epoch, resumed: false })
      const first = `retry: 2000\nevent: hello\ndata: ${hello}\n\n${NEWS}`
      assert.equal(live.text, first)
      assert.equal(other.text, first)

      core.services.hub.emit('bad', { stream: 'drive:bob', item: 'secret.pdf', reason: 'none' })
      core.services.hub.emit('snapshot', { secret: true })
      await look()
      assert.equal(live.text, first)

      await core.services.accounts.add({
        service: 'drive',
        name: 'bob@example.com',
        settings: {},
        sealed: new Uint8Array(),
        userId: bob.id,
      })
      core.services.hub.emit('mark', { stream: 'drive:bob', mark: 'secret' })
      await look()
      assert.equal(other.text, `${first}${NEWS}`)
      assert.equal(live.text, first)

      await core.services.accounts.add({
        service: 'drive',
        name: 'ann@example.com',
        settings: {},
        sealed: new Uint8Array(),
        userId: ann.id,
      })
      core.services.hub.emit('mark', { stream: 'drive:ann', mark: 'secret' })
      await look()
      assert.equal(live.text, `${first}${NEWS}`)
    }, clock)
  })

  test('have so many live pages, and leave room for others', () =>
    withUsers(async ({ core, add }) => {
      const ann = as(core, (await add('ann', 'member')).token)
      for (let n = 0; n < MEMBER_CLIENTS_MAX; n++) assert.equal((await ann('/api/events')).status, 200)
      assert.equal((await ann('/api/events')).status, 503)
      assert.equal((await core.request('/api/events')).status, 200)
    }))

  test('all together leave half of the live pages to admins', () =>
    withUsers(async ({ core, add }) => {
      const places = CLIENTS_MAX / 2
      for (let at = 0; at < places / MEMBER_CLIENTS_MAX; at++) {
        const one = as(core, (await add(`member${at}`, 'member')).token)
        for (let n = 0; n < MEMBER_CLIENTS_MAX; n++) assert.equal((await one('/api/events')).status, 200)
      }
      const late = as(core, (await add('late', 'member')).token)
      assert.equal((await late('/api/events')).status, 503)
      assert.equal((await core.request('/api/events')).status, 200)
    }))

  test('whose token is revoked lose the sessions that it gave, and those only', () =>
    withUsers(async ({ core, add }) => {
      const { user, token } = await add('ann', 'member')
      const session = await signIn(core, { token })
      const code = makeSignInCode(TOKEN, core.services.clock.now(), user.id)
      const other = await signIn(core, { code })
      const [kept] = await core.services.users.tokens(user.id)
      await core.services.users.revokeToken(user.id, kept!.id)
      assert.equal((await as(core, token)('/api/own/who')).status, 401)
      assert.equal((await as(core, session)('/api/own/who')).status, 401)
      assert.equal((await as(core, other)('/api/own/who')).status, 200)
    }))

  test('of another role have that role with their next request', () =>
    withUsers(async ({ core, add }) => {
      const { user, token } = await add('eve', 'admin')
      await core.services.users.change(user.id, { role: 'member' })
      assert.equal((await as(core, token)('/api/things')).status, 403)
    }))

  test('who cannot be looked up are not let in, and the owner is', () =>
    withUsers(async ({ core, add }) => {
      const { token } = await add('ann', 'member')
      await core.ledger.close()
      const response = await as(core, token)('/api/own/who')
      assert.ok(response.status >= 500, String(response.status))
      assert.equal((await core.request('/api/own/who')).status, 200)
    }))
})

async function drained(response: Response): Promise<void> {
  const reader = response.body!.getReader()
  for (;;) if ((await reader.read()).done) return
}
