/** Pushes of the simulated Gmail, over HTTP, to a real server on a real ledger. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { z } from 'zod'
import type { Runtime } from '../../../app/runtime.ts'
import { systemClock } from '../../../base/clock.ts'
import { PushTokens } from '../../../cloud/google/push-token.ts'
import { createEngine, defineJob, type Engine } from '../../../engine/index.ts'
import type { NumberedEvent } from '../../../engine/observe/events.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import { Users } from '../../../ledger/users.ts'
import { type HttpServer, startHttpServer } from '../../../server/http-server.ts'
import { TOKEN } from '../../../server/server.suite.ts'
import { createServer, createServices, type Server } from '../../../server/server.ts'
import { createSigningKey, signJwt } from '../../../sim/google/keys.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { catalog } from '../../catalog.ts'
import { type PushPart, pushRoute } from './webhook.ts'

const ADDRESS = 'owner@example.com'
const EMAIL = 'push@tidemark-sim.iam.gserviceaccount.com'
const AUDIENCE = 'https://tide.example.com/api/assist/push'

const sync = defineJob({
  kind: 'assist.sync',
  payload: z.object({ account: z.string() }),
  key: ({ account }) => account,
  run: async () => {},
})

let sim: Sim
let home: string
let ledger: Ledger
let engine: Engine
let server: Server
let http: HttpServer
let closeServices: () => Promise<void>
let notes: string[]
let arrived: { account: string; historyId: string }[]
let fails: Error | undefined
let keysUrl: string

/** As the app does it: on record before anything is answered. */
const part = (tokens: PushTokens): PushPart => ({
  tokens: () => tokens,
  isKnown: async (account) => account === ADDRESS,
  async arrived({ account, historyId }) {
    if (fails) throw fails
    await engine.enqueue(sync, { account })
    arrived.push({ account, historyId })
  },
})

before(async () => {
  sim = await startSim({ gmail: { accounts: [{ address: ADDRESS, messages: 1 }] } })
})
after(() => sim.close())

beforeEach(async () => {
  notes = []
  arrived = []
  fails = undefined
  keysUrl = sim.gmail.jwksUrl
  home = mkdtempSync(join(tmpdir(), 'tidemark-push-'))
  ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  engine = await createEngine({ ledger, jobs: [sync] })
  engine.events.on((event: NumberedEvent) => void (event.type === 'note' && notes.push(event.code)))
  const tokens = new PushTokens({
    clock: systemClock,
    fetch: (_url, init) => fetch(keysUrl, init),
    keysUrl,
    audience: AUDIENCE,
    email: EMAIL,
  })
  const apps = new Map([['assist', { push: part(tokens) }]])
  const users = await Users.open(ledger)
  const runtime = { role: 'web', home, ledger, users, engine, apps } as unknown as Runtime
  const services = createServices(runtime, { clock: systemClock, catalog })
  closeServices = () => services.closeServices()
  const module = { name: 'assist', routes: [pushRoute] }
  server = createServer({ services, modules: [module], token: TOKEN, checkAnswers: true })
  http = await startHttpServer({ app: server.app, port: 0 })
  Object.assign(sim.gmail.push.settings, { endpoint: `${http.url}/api/assist/push`, audience: AUDIENCE })
  Object.assign(sim.gmail.push.settings, { email: EMAIL, duplicateShare: 0 })
  Object.assign(sim.gmail.push.counts, { sent: 0, dropped: 0, failed: 0, delivered: 0 })
})
afterEach(async () => {
  sim.gmail.push.settings.endpoint = null
  await server.close()
  await http.close()
  await closeServices()
  await engine.stop()
  await ledger.close()
  rmSync(home, { recursive: true, force: true })
})

async function jobs(): Promise<number> {
  return (await ledger.jobs({ kind: 'assist.sync', limit: 100 })).length
}

/** A token of the simulated Google that was really sent, from a push to nobody. */
async function realToken(): Promise<string> {
  const { push } = sim.gmail
  const { createServer: createHttp } = await import('node:http')
  const heard = Promise.withResolvers<string>()
  const ear = createHttp((request, response) => {
    heard.resolve(request.headers.authorization ?? '')
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => ear.listen(0, '127.0.0.1', resolve))
  const { endpoint } = push.settings
  push.settings.endpoint = `http://127.0.0.1:${(ear.address() as { port: number }).port}/`
  push.send(ADDRESS, 1n)
  await push.settled()
  push.settings.endpoint = endpoint
  ear.closeAllConnections()
  await new Promise((resolve) => ear.close(resolve))
  return await heard.promise
}

function bodyOf(data: unknown): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return JSON.stringify({ message: { data: Buffer.from(text).toString('base64'), messageId: '1' } })
}

async function send(
  body: string,
  authorization: string | undefined,
): Promise<{ status: number; answer: unknown; retryAfter: string | null }> {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (authorization !== undefined) headers.authorization = authorization
  const response = await fetch(`${http.url}/api/assist/push`, { method: 'POST', headers, body })
  const retryAfter = response.headers.get('retry-after')
  return { status: response.status, answer: await response.json(), retryAfter }
}

const GOOD = { emailAddress: ADDRESS, historyId: '18446744073709551615' }

describe('a push', () => {
  test('of a known mailbox puts a sync into the ledger before it is answered', async () => {
    sim.gmail.push.send(ADDRESS, 18_446_744_073_709_551_615n)
    await sim.gmail.push.settled()
    assert.deepEqual(sim.gmail.push.counts, { sent: 1, dropped: 0, failed: 0, delivered: 1 })
    assert.deepEqual(arrived, [{ account: ADDRESS, historyId: '18446744073709551615' }])
    assert.equal(await jobs(), 1)
  })

  test('that comes many times, at once or again, makes one sync', async () => {
    sim.gmail.push.settings.duplicateShare = 1
    for (let n = 1; n <= 25; n++) sim.gmail.push.send(ADDRESS, BigInt(n))
    await sim.gmail.push.settled()
    assert.deepEqual([sim.gmail.push.counts.delivered, arrived.length, await jobs()], [50, 50, 1])
    const token = await realToken()
    assert.equal((await send(bodyOf(GOOD), token)).status, 200)
    assert.equal((await send(bodyOf(GOOD), token)).status, 200)
    assert.equal(await jobs(), 1)
  })

  test('keeps all digits of a history id that came as a number', async () => {
    const text = '{"emailAddress":"Owner@Example.com","historyId":18446744073709551615}'
    assert.deepEqual((await send(bodyOf(text), await realToken())).answer, { known: true })
    assert.deepEqual(arrived, [{ account: ADDRESS, historyId: '18446744073709551615' }])
  })

  test('of an unknown mailbox is answered with 200 and told to the log', async () => {
    sim.gmail.push.send('somebody@example.net', 5n)
    await sim.gmail.push.settled()
    assert.deepEqual([sim.gmail.push.counts.delivered, await jobs(), notes], [1, 0, ['push-unknown']])
  })

  test('that cannot be put into the ledger is not answered with 200: Pub/Sub tells it again', async () => {
    fails = new Error('the disk is full')
    assert.equal((await send(bodyOf(GOOD), await realToken())).status, 500)
    fails = undefined
    assert.equal((await send(bodyOf(GOOD), await realToken())).status, 200)
    assert.equal(await jobs(), 1)
  })

  test('that is not understood is refused with 400, whatever it holds', async () => {
    const token = await realToken()
    const wrapped = [
      bodyOf('no json'),
      bodyOf({ emailAddress: ADDRESS }),
      bodyOf({ ...GOOD, historyId: '-1' }),
      bodyOf({ ...GOOD, historyId: 1.5 }),
      bodyOf({ ...GOOD, historyId: '1'.repeat(21) }),
      bodyOf({ ...GOOD, emailAddress: `${'a'.repeat(400)}@b.c` }),
      bodyOf({ ...GOOD, emailAddress: [ADDRESS] }),
      bodyOf([GOOD]),
    ]
    const bare = [
      '{}',
      '[]',
      'null',
      '{"message":null}',
      '{"message":{"data":""}}',
      '{"message":{"data":"%%%"}}',
      JSON.stringify({ message: { data: 'A'.repeat(20_000) } }),
      '{"message":',
      `${'['.repeat(200)}${']'.repeat(200)}`,
    ]
    for (const body of [...wrapped, ...bare]) {
      assert.equal((await send(body, token)).status, 400, body.slice(0, 100))
    }
    assert.deepEqual([arrived.length, await jobs()], [0, 0])
  })

  test('that is too large is refused before it is read', async () => {
    const { status } = await send(`{"message":"${'x'.repeat(1_100_000)}"}`, await realToken())
    assert.deepEqual([status, arrived.length], [413, 0])
  })
})

describe('a push that Google has not signed for this server', () => {
  const nowS = (): number => Math.floor(Date.now() / 1000)
  const claims = (): Record<string, unknown> => ({
    iss: 'https://accounts.google.com',
    aud: AUDIENCE,
    email: EMAIL,
    email_verified: true,
    iat: nowS(),
    exp: nowS() + 3_600,
  })

  test('is refused with 401 and told to the log, and makes no sync', async () => {
    const real = await realToken()
    const forged = signJwt(createSigningKey('sim-push'), claims())
    const none = `${Buffer.from('{"alg":"none","kid":"sim-push"}').toString('base64url')}.${real.split('.')[1]}.`
    const wrong = [
      undefined,
      'Bearer x',
      'Basic eDp5',
      `Bearer ${TOKEN}`,
      `Bearer ${forged}`,
      `Bearer ${none}`,
    ]
    for (const authorization of wrong) {
      const { status } = await send(bodyOf(GOOD), authorization)
      assert.equal(status, 401, String(authorization))
    }
    // However many there are, they are one line in the log in a minute.
    assert.deepEqual(notes, ['push-refused'])
    assert.deepEqual([arrived.length, await jobs()], [0, 0])
  })

  test('or for another audience or account, is refused', async () => {
    for (const change of [{ audience: 'https://other.example' }, { email: 'other@example.com' }]) {
      const { settings } = sim.gmail.push
      const before = { ...settings }
      Object.assign(settings, change)
      const { status } = await send(bodyOf(GOOD), await realToken())
      Object.assign(settings, { audience: before.audience, email: before.email })
      assert.equal(status, 401, JSON.stringify(change))
    }
  })

  test('is not judged while the keys are out of reach: 503, so that it comes again', async () => {
    const token = await realToken()
    keysUrl = `${http.url}/nothing-here`
    const { status, retryAfter } = await send(bodyOf(GOOD), token)
    assert.deepEqual([status, retryAfter, await jobs()], [503, '5', 0])
  })
})
