import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { catalog } from '../../apps/catalog.ts'
import { apps } from '../../apps/registry.ts'
import { systemClock } from '../../base/clock.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { TOKEN_BYTES, tokenText, Users } from '../../ledger/users.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import { problemOf, TOKEN, WRITE, withToken } from '../../server/server.suite.ts'
import { createServer, createServices, type Server } from '../../server/server.ts'
import { runHere } from '../jobs/jobs.suite.ts'
import { serverModules } from '../serve/server-modules.ts'

const SEALED = new Uint8Array([1])

type World = {
  server: Server
  annId: number
  ledger: Ledger
  as(token: string): (path: string, init?: RequestInit) => Promise<Response>
  close(): Promise<void>
}

/** Everything that `serve` has, with two members: each has a mailbox. */
async function openWorld(home: string): Promise<World> {
  const config = catalog.parse({})
  const runtime = await openRuntime({ config, home, env: {}, role: 'web', apps })
  const services = createServices(runtime, { clock: systemClock, catalog })
  const modules = await serverModules()
  const server = createServer({ services, modules, checkAnswers: true, token: TOKEN })
  const { users, accounts } = runtime
  const ids: number[] = []
  for (const [at, name] of ['ann', 'bob'].entries()) {
    const { id } = await users.add({ name, role: 'member' })
    await users.addToken(id, { label: '', token: tokenOf(at) })
    await accounts.add({
      service: 'gmail',
      name: `${name}@example.com`,
      settings: {},
      sealed: SEALED,
      userId: id,
    })
    ids.push(id)
  }
  return {
    server,
    annId: ids[0]!,
    ledger: runtime.ledger,
    as: (token) => async (path, init) => server.app.request(path, withToken(init, token)),
    async close() {
      await server.close()
      await services.closeServices()
      await runtime.close()
    },
  }
}

const tokenOf = (n: number): string => tokenText(new Uint8Array(TOKEN_BYTES).fill(n + 1))

describe('the whole API', () => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-users-'))
  let world: World
  before(async () => {
    world = await openWorld(home)
  })
  after(async () => {
    await world.close()
    rmSync(home, { recursive: true, force: true })
  })

  test('is refused to a member but for what is declared for members', async () => {
    const ann = world.as(tokenOf(0))
    const document = (await (await ann('/api/openapi.json')).json()) as {
      paths: Record<string, Record<string, { 'x-members'?: true; security?: unknown[] }>>
    }
    const wrong: string[] = []
    let refused = 0
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, { 'x-members': isForMembers, security }] of Object.entries(methods)) {
        // Open to everybody, or to who signs what it sends: neither asks who is signed in.
        if (security?.length === 0 || security?.some((one) => 'signed' in (one as object))) continue
        const address = path.replaceAll(/\{id\}/g, String(world.annId)).replaceAll(/\{\w+\}/g, '999')
        const response = await ann(address, {
          method: method.toUpperCase(),
          headers: WRITE,
          body: bodyOf(method),
        })
        const isRefused = response.status === 403 && (await problemOf(response)).code === 'admins-only'
        if (isRefused) refused += 1
        if (isRefused === (isForMembers === true)) wrong.push(`${method} ${path}: ${response.status}`)
        if (!response.bodyUsed) await response.body?.cancel()
      }
    }
    assert.deepEqual(wrong, [])
    assert.ok(refused > 50, `${refused} refused`)
  })

  test('tells a member of their own accounts, tokens and progress, and of nobody else’s', async () => {
    const [ann, bob] = [world.as(tokenOf(0)), world.as(tokenOf(1))]
    const text = await (await ann('/api/accounts')).text()
    assert.match(text, /ann@example\.com/)
    assert.doesNotMatch(text, /bob@example\.com/)
    assert.equal((await ann(`/api/users/${world.annId}/sync-status`)).status, 200)
    for (const path of ['sync-status', 'tokens']) {
      assert.equal((await bob(`/api/users/${world.annId}/${path}`)).status, 403)
    }
    const gone = await bob('/api/accounts/gmail/ann%40example.com', { method: 'DELETE', headers: WRITE })
    assert.equal(gone.status, 404)
    assert.doesNotMatch(await gone.text(), /There are: .*ann@example\.com/)
  })

  test('adds, changes and removes users for admins, and writes that down', async () => {
    const owner = world.as(TOKEN)
    const send = (method: string, path: string, body: object = {}): Promise<Response> =>
      owner(path, { method, headers: WRITE, body: JSON.stringify(body) })
    const { id } = (await (await send('POST', '/api/users', { name: 'Eve' })).json()) as { id: number }
    assert.equal((await send('POST', '/api/users', { name: 'eve' })).status, 409)
    const made = (await (await send('POST', `/api/users/${id}/tokens`, { label: 'x' })).json()) as {
      token: string
    }
    assert.equal((await world.as(made.token)('/api/me')).status, 200)
    assert.equal((await send('PUT', `/api/users/${id}`, { state: 'disabled' })).status, 200)
    assert.equal((await world.as(made.token)('/api/me')).status, 401)
    const given = await send('PUT', `/api/users/${id}/accounts/gmail/bob%40example.com`)
    assert.equal(given.status, 200)
    assert.equal((await send('DELETE', `/api/users/${id}`)).status, 409)
    const { items } = (await (await owner('/api/users')).json()) as {
      items: { name: string; accounts: object[] }[]
    }
    assert.equal(items.find(({ name }) => name === 'eve')?.accounts.length, 1)
    const noted = (await (await owner('/api/audit?limit=2')).json()) as { items: { action: string }[] }
    assert.deepEqual(
      noted.items.map(({ action }) => action),
      ['user-changed', 'user-changed'],
    )
  })

  test('keeps nothing of a removed user: neither tokens nor what they searched for, whoever removes them', async () => {
    const owner = world.as(TOKEN)
    const kept = async (): Promise<number[]> =>
      Promise.all(
        ['search_saved', 'search_recent', 'user_tokens'].map(async (table) => {
          const sql = `SELECT count(*) AS n FROM ${table} WHERE user_id > 3`
          return Number((await world.ledger.driver.read((tx) => tx.get<{ n: number }>(sql)))!.n)
        }),
      )
    const onLedger = (sql: string): Promise<number> => world.ledger.driver.transaction((tx) => tx.run(sql))
    await owner('/api/search/saved')
    const before = await kept()
    for (const name of ['zoe', 'zac']) {
      const send = (as: typeof owner, method: string, path: string, body: object = {}): Promise<Response> =>
        as(path, { method, headers: WRITE, body: JSON.stringify(body) })
      const { id } = (await (await send(owner, 'POST', '/api/users', { name })).json()) as { id: number }
      const made = await send(owner, 'POST', `/api/users/${id}/tokens`)
      const own = world.as(((await made.json()) as { token: string }).token)
      assert.equal((await send(own, 'POST', '/api/search/saved', { name: 'a', query: 'b' })).status, 200)
      assert.equal((await send(own, 'POST', '/api/search/recent', { text: 'b' })).status, 200)
      const full = await kept()
      assert.notDeepEqual(full, before)
      const remove = async (): Promise<boolean> =>
        name === 'zoe'
          ? (await send(owner, 'DELETE', `/api/users/${id}`)).status === 200
          : (await runHere(['users', 'remove', name], { TIDEMARK_HOME: home })).code === 0
      await onLedger(
        `CREATE TRIGGER fails BEFORE DELETE ON search_recent BEGIN SELECT RAISE(ABORT, 'no'); END`,
      )
      assert.equal(await remove(), false)
      assert.deepEqual(await kept(), full, 'where not all can be forgotten, nothing is')
      await onLedger('DROP TRIGGER fails')
      assert.equal(await remove(), true)
      assert.deepEqual(await kept(), before)
    }
  })

  test('says how far a user is, and that a sync is begun', async () => {
    const ann = world.as(tokenOf(0))
    const status = (await (await ann(`/api/users/${world.annId}/sync-status`)).json()) as { text: string }
    assert.equal(status.text, 'Sync stalled, will recover by itself')
    const begun = await ann(`/api/users/${world.annId}/sync`, { method: 'POST', headers: WRITE })
    assert.match(((await begun.json()) as { text: string }).text, /^Sync started\. No engine is running/)
  })
})

function bodyOf(method: string): string | null {
  return method === 'get' ? null : '{}'
}

test('the command line adds users, makes tokens, and prints an address for each', async () => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-users-'))
  const run = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runHere(['--home', home, ...args], {})
    assert.equal(code, 0, stderr)
    return stdout
  }
  try {
    assert.match(await run('users', 'add', 'ann@example.com'), /ann@example\.com is added, as a member/)
    const token = (await run('users', 'token', 'add', 'ann@example.com', '--label', 'laptop')).trim()
    const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
    const users = await Users.open(ledger)
    assert.equal((await users.byToken(token))?.name, 'ann@example.com')
    await ledger.close()
    assert.match(await run('users', 'token', 'list', 'ann@example.com'), /laptop/)
    assert.match(await run('users', 'sign-in', 'ann@example.com'), /\/sign-in#\w+\.[\w-]+\.2\.[\w-]+$/m)
    assert.match(await run('users', 'list'), /owner\s+admin[\s\S]*ann@example\.com\s+member/)
    assert.match(await run('users', 'audit'), /token-made/)
    await run('users', 'remove', 'ann@example.com')
    const { code, stderr } = await runHere(['--home', home, 'users', 'remove', 'owne'], {})
    assert.equal(code, 2)
    assert.match(stderr, /There is no user owne/)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
