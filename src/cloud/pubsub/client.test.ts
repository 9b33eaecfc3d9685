import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import type { FaultRule } from '../../sim/fault-rules.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { failure } from '../object-store.suite.ts'
import { type QueueFault, type QueueSite, take, testQueue } from '../queue.suite.ts'
import { sendJson, startServer } from '../scripted-server.suite.ts'
import { newToken } from '../token-source.ts'
import { PUBSUB_SCOPE, pubsubTokens } from './auth.ts'
import { PubsubQueue } from './client.ts'

const DEADLINE_MS = 10_000
const clock = new FakeClock()
let sim: Sim
let number = 0

before(async () => {
  sim = await startSim({ clock, pubsub: {} })
})
after(() => sim.close())

async function openSite(): Promise<QueueSite & { name: string }> {
  sim.faults.clear()
  number += 1
  const topic = `projects/p/topics/t${number}`
  const name = `projects/p/subscriptions/s${number}`
  sim.pubsub.topics.subscribe(name, topic)
  const open = (): PubsubQueue =>
    new PubsubQueue({
      fetch,
      clock,
      token: newToken(sim.pubsub.accessToken),
      subscription: name,
      apiUrl: sim.pubsub.baseUrl,
    })
  return {
    name,
    queue: open(),
    other: open(),
    send: async (messages) => {
      for (const { body, attributes = {} } of messages) {
        sim.pubsub.topics.publish(topic, { data: Buffer.from(body).toString('base64'), attributes })
      }
    },
    pass: (share) => clock.advance(share * DEADLINE_MS),
    close: async () => {},
  }
}

const FAULTS: Record<QueueFault, FaultRule> = {
  throttled: { do: 'throttle', status: 429 },
  auth: { do: 'error', status: 401 },
  unavailable: { do: 'error', status: 503 },
  missing: { do: 'error', status: 404 },
}

testQueue({
  name: 'Pub/Sub',
  open: openSite,
  fail: async (_site, fault) => void sim.faults.set({ rules: [FAULTS[fault]] }),
  cannot: { tellDepth: true, tellDeliveries: true },
})

describe('a subscription of Pub/Sub', () => {
  test('is asked for deadlines between 10 and 600 s only', async () => {
    const site = await openSite()
    await site.send([{ body: 'm' }])
    const messages = await take(site.queue, 1)
    const until = (): number => sim.pubsub.subscription(site.name).messages[0]!.visibleAtMs - clock.now()
    await site.queue.extend(messages, 1)
    assert.equal(until(), 10_000)
    await site.queue.extend(messages, 86_400_000)
    assert.equal(until(), 600_000)
    assert.ok(messages[0]!.visibleAtMs <= clock.now() + DEADLINE_MS)
  })

  test('whose deadline has passed is lost, although Pub/Sub says nothing', async () => {
    const site = await openSite()
    await site.send([{ body: 'm' }])
    const messages = await take(site.queue, 1)
    await site.pass(1)
    assert.deepEqual(await site.queue.extend(messages, 60_000), ['lost'])
    assert.deepEqual(await site.queue.acknowledge(messages), ['lost'])
  })

  test('that delivers exactly once says which receipts are lost, and which to send again', async () => {
    let why = 'PERMANENT_FAILURE_INVALID_ACK_ID'
    const server = await startServer((_, answer) => {
      const details = [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'x', metadata: { r2: why } },
      ]
      sendJson(answer, { error: { code: 400, status: 'FAILED_PRECONDITION', message: 'some', details } }, 400)
    })
    const queue = new PubsubQueue({
      fetch,
      clock,
      token: newToken('t'),
      subscription: 's',
      apiUrl: server.url,
    })
    const messages = ['r1', 'r2', 'r3'].map((receipt) => ({
      id: receipt,
      receipt,
      body: Buffer.alloc(0),
      attributes: {},
      deliveries: null,
      sentAtMs: null,
      visibleAtMs: clock.now() + DEADLINE_MS,
    }))
    assert.deepEqual(await queue.extend(messages, 20_000), ['extended', 'lost', 'extended'])
    assert.deepEqual(await queue.acknowledge(messages), ['acknowledged', 'lost', 'acknowledged'])
    why = 'TRANSIENT_FAILURE_OTHER'
    assert.equal((await failure(queue.acknowledge(messages))).kind, 'transient')
    await server.close()
  })

  test('is signed in to by a service account for itself, whose token serves for many calls', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const server = await startServer((_, answer) =>
      sendJson(answer, { access_token: 'made', expires_in: 3600 }),
    )
    const access = { clientEmail: 'robot@p.iam.gserviceaccount.com', privateKey: pem }
    const tokens = pubsubTokens(access, { fetch, clock, tokenUrl: `${server.url}/token` })
    assert.deepEqual([await tokens.access(), await tokens.access()], ['made', 'made'])
    assert.equal(server.requests.length, 1)
    const assertion = new URLSearchParams(server.requests[0]!.body).get('assertion')!
    const claims = JSON.parse(Buffer.from(assertion.split('.')[1]!, 'base64url').toString())
    assert.deepEqual([claims.iss, claims.sub, claims.scope], [access.clientEmail, undefined, PUBSUB_SCOPE])
    await server.close()
  })
})
