/**
 * A member who wants to know what others have: every route and tool that is open to members is asked, with numbers, names,
 * ids and words of another one's documents, and no answer has anything of them that was not in the question.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ServerModule } from '../../app/module.ts'
import type { OpenRuntime } from '../../app/runtime.ts'
import { catalog } from '../../apps/catalog.ts'
import {
  ANN,
  BOB,
  DATABASES,
  type DriveTestWorld,
  startDriveWorld,
} from '../../apps/drive/drive-world.suite.ts'
import { apps } from '../../apps/registry.ts'
import { OwnSearches } from '../../apps/search/store.ts'
import { systemClock } from '../../base/clock.ts'
import { TOKEN_BYTES, tokenText, type User } from '../../ledger/users.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import { TOKEN, WRITE, withToken } from '../../server/server.suite.ts'
import { createServer, createServices, type Server } from '../../server/server.ts'
import { serverModules } from '../serve/server-modules.ts'

/** Each in one place of what is Bob's alone. */
const SECRETS = [
  'zanzibar',
  'quokka',
  'layoffs',
  'boardroom',
  'passport',
  'walrus',
  'narwhal',
  'yakback',
  'bob@example.com',
]

for (const database of DATABASES)
  describe(`a hostile member, on ${database}`, () => {
    let drives: DriveTestWorld
    let runtime: OpenRuntime
    let services: ReturnType<typeof createServices>
    let server: Server
    let modules: readonly ServerModule[]
    let [ann, bob]: User[] = []
    /** Ids of Bob's documents: of Google and of the index. */
    let files: string[] = []
    let documents: number[] = []
    const tokens = [1, 2].map((n) => tokenText(new Uint8Array(TOKEN_BYTES).fill(n)))

    before(async () => {
      drives = await startDriveWorld({ database })
      const { world } = drives
      const shared = world.create({ name: 'Menu.txt', by: ANN, content: 'soup for everybody' })
      const secret = world.createFolder({ name: 'Layoffs', by: BOB })
      const board = world.addDrive({ name: 'Boardroom', members: [{ email: BOB, role: 'organizer' }] })
      // A copy of what Ann has, too, where she must not see it.
      const copy = world.create({
        name: 'Menu.txt',
        by: BOB,
        parent: secret.id,
        content: 'soup for everybody',
      })
      const title = world.create({ name: 'Zanzibar.txt', by: BOB, content: 'a quokka and soup' })
      const minutes = world.create({ name: 'Minutes.txt', by: BOB, parent: board.id, content: 'quokka' })
      const photo = world.create({ name: 'Passport.png', by: BOB, mimeType: 'image/png', content: 'png' })
      await drives.sync()
      files = [copy, title, minutes, photo].map(({ id }) => id)
      documents = []
      for (const ref of files) {
        const id = await drives.search.find({ source: 'drive', ref }, { principals: [`drive:${BOB}`] })
        documents.push(id!)
      }
      assert.ok(documents.every((id) => id > 0))
      assert.deepEqual(await drives.seen(ANN), [shared.id])

      const config = catalog.parse({ ledger: { url: drives.ledgerUrl }, search: { embedding: 'off' } })
      runtime = await openRuntime({ config, home: drives.home, env: {}, role: 'web', apps })
      services = createServices(runtime, { clock: systemClock, catalog })
      modules = await serverModules()
      server = createServer({ services, modules, checkAnswers: true, token: TOKEN })
      const { users, accounts } = runtime
      ;[ann, bob] = await Promise.all(['ann', 'bob'].map((name) => users.add({ name, role: 'member' })))
      for (const [at, [user, name]] of [[ann!, ANN] as const, [bob!, BOB] as const].entries()) {
        await users.addToken(user.id, {
          label: `${user.name === 'bob' ? 'yakback' : ''}`,
          token: tokens[at]!,
        })
        await accounts.setUser((await accounts.find('drive', name))!.id, user.id)
      }
      const own = new OwnSearches({ ledger: runtime.ledger, search: await runtime.search.open() })
      await own.save(bob!.id, { name: 'Walrus', query: 'walrus' })
      await own.note(bob!.id, 'narwhal')
    })
    after(async () => {
      await server.close()
      await services.closeServices()
      await runtime.close()
      await drives.close()
    })

    const ask = async (path: string, init?: RequestInit, token = tokens[0]!): Promise<Response> =>
      server.app.request(path, withToken(init, token))

    /** Words that the answer has and the question had not. */
    const told = (question: string, answer: string): string[] => {
      const [asked, got] = [question, answer].map((text) => decodeURIComponent(text).toLowerCase())
      return [...SECRETS, ...files].filter((secret) => {
        const word = secret.toLowerCase()
        return got!.includes(word) && !asked!.includes(word)
      })
    }

    /** What is tried in the place of a parameter, by its name. */
    const triedFor = (name: string): (string | number)[] => {
      if (name === 'id') return [bob!.id, ...documents, 1, 999_999]
      if (name === 'q' || name === 'query')
        return [
          'zanzibar',
          'zanzibra',
          'quo*',
          'in:Layoffs',
          'in:lay*',
          '',
          'soup',
          'owner:bob',
          '-soup',
          'to:ann OR quokka',
        ]
      if (name === 'account' || name === 'name' || name === 'mailbox' || name === 'source')
        return [BOB, `drive:${BOB}`]
      if (name === 'service') return ['drive', 'gmail']
      if (name === 'folder') return ['Layoffs', 'Boardroom']
      if (name === 'as') return ['bob', ' BOB ']
      if (name === 'code') return ['unsupported-type']
      return ['1', 'x']
    }

    type Operation = { 'x-members'?: true; parameters?: { name: string; in: string }[] }

    async function* addresses(): AsyncGenerator<string> {
      const document = (await (await ask('/api/openapi.json')).json()) as {
        paths: Record<string, { get?: Operation }>
      }
      for (const [path, { get }] of Object.entries(document.paths)) {
        if (!get?.['x-members'] || path.includes('event')) continue
        const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
        let filled = [path]
        for (const name of names) {
          filled = filled.flatMap((one) =>
            triedFor(name).map((value) => one.replace(`{${name}}`, encodeURIComponent(value))),
          )
        }
        for (const one of filled) {
          yield one
          for (const { name } of (get.parameters ?? []).filter((parameter) => parameter.in === 'query')) {
            for (const value of triedFor(name)) {
              const needsText = name !== 'q' && path.startsWith('/api/search/suggest')
              yield `${one}?${needsText ? 'q=za&' : ''}${name}=${encodeURIComponent(value)}`
            }
          }
        }
      }
    }

    test('learns nothing from any address that is open to members, where the other finds it all', async () => {
      const leaks: string[] = []
      const found = new Set<string>()
      for await (const address of addresses()) {
        const response = await ask(address)
        const text = await response.text()
        assert.ok(response.status < 500, `${address}: ${response.status} ${text}`)
        const words = told(address, text)
        if (words.length > 0) leaks.push(`${address}: ${words.join(', ')}`)
        const bobs = await (await ask(address, undefined, tokens[1])).text()
        for (const word of told(address, bobs)) found.add(word)
      }
      assert.deepEqual(leaks, [])
      assert.deepEqual(
        [...SECRETS, ...files].filter((secret) => !found.has(secret)),
        [],
      )
    })

    test('cannot tell a document of another from one that is not there', async () => {
      for (const id of documents) {
        const [there, missing] = [
          await ask(`/api/search/documents/${id}`),
          await ask('/api/search/documents/999999'),
        ]
        assert.deepEqual(
          [there.status, (await there.text()).replaceAll(`#${id}`, 'N')],
          [missing.status, (await missing.text()).replaceAll('#999999', 'N')],
        )
      }
      for (const path of ['/api/drive/status', '/api/drive/skipped']) {
        const [there, missing] = [
          await ask(`${path}?account=${BOB}`),
          await ask(`${path}?account=eve@example.com`),
        ]
        assert.deepEqual(
          [there.status, (await there.text()).replaceAll(BOB, 'N')],
          [missing.status, (await missing.text()).replaceAll('eve@example.com', 'N')],
        )
      }
      for (const id of [bob!.id, 999_999]) {
        const refused = await ask(`/api/users/${id}/sync-status`)
        assert.deepEqual(
          [refused.status, ((await refused.json()) as { code: string }).code],
          [403, 'admins-only'],
        )
      }
    })

    test('sees one hit of what another has a copy of, and no other place of it', async () => {
      type Answer = {
        total: number
        hits: { id: number; alsoIn: object[]; folders: string[] }[]
        facets: object
      }
      const answer = (await (await ask('/api/search?q=soup')).json()) as Answer
      assert.deepEqual([answer.total, answer.hits.map(({ alsoIn }) => alsoIn)], [1, [[]]])
      assert.deepEqual(told('', JSON.stringify(answer)), [])
      const read = (await (await ask(`/api/search/documents/${answer.hits[0]!.id}`)).json()) as {
        alsoIn: object[]
      }
      assert.deepEqual(read.alsoIn, [])
      const bobs = (await (await ask('/api/search?q=soup', undefined, tokens[1])).json()) as Answer
      assert.equal(bobs.total, 2)
    })

    test('starts nothing of another: no sync, no token, no saved search, and none is forgotten', async () => {
      const tried: [method: string, path: string, body?: object][] = [
        ['POST', `/api/users/${bob!.id}/sync`],
        ['POST', `/api/users/${bob!.id}/tokens`, { label: 'mine' }],
        ['DELETE', `/api/users/${bob!.id}/tokens/1`],
        ['POST', '/api/drive/sync', { account: BOB }],
        ['DELETE', '/api/search/saved/1'],
        ['DELETE', `/api/accounts/drive/${encodeURIComponent(BOB)}`],
      ]
      for (const [method, path, body] of tried) {
        const response = await ask(path, {
          method,
          headers: WRITE,
          ...(body && { body: JSON.stringify(body) }),
        })
        assert.ok([403, 404].includes(response.status), `${method} ${path}: ${response.status}`)
        assert.deepEqual(told(path + JSON.stringify(body ?? {}), await response.text()), [], path)
      }
      const kept = (await (await ask('/api/search/saved', undefined, tokens[1])).json()) as {
        saved: object[]
      }
      assert.equal(kept.saved.length, 1)
    })

    test('learns nothing from the tools of models', async () => {
      const { id, name, role } = ann!
      for (const tool of modules.flatMap(({ tools = [] }) => tools)) {
        if (tool.audience !== 'member') continue
        const asked: object[] = [
          {},
          ...triedFor('q').map((query) => ({ query })),
          ...documents.map((one) => ({ id: one })),
          { account: BOB },
          { pipeline: 'x' },
        ]
        for (const args of asked) {
          const input = tool.input.safeParse(args)
          if (!input.success) continue
          const answer = await Promise.resolve(
            tool.run(input.data as never, services as never, { user: { id, name, role } }),
          ).then(JSON.stringify, String)
          assert.deepEqual(told(JSON.stringify(args), answer), [], `${tool.name} ${JSON.stringify(args)}`)
        }
      }
    })
  })
