import assert from 'node:assert/strict'
import { createPublicKey, createVerify, type webcrypto } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../start.ts'

const ADDRESS = 'owner@example.com'

type Received = {
  authorization: string
  body: { message: { data: string; messageId: string }; subscription: string }
}

let receiver: Server
let endpoint: string
let received: Received[] = []
let statuses: number[] = []
const clock = new FakeClock()
let sim: Sim

before(async () => {
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    received.push({
      authorization: request.headers.authorization ?? '',
      body: JSON.parse(Buffer.concat(chunks).toString()) as Received['body'],
    })
    response.writeHead(statuses.shift() ?? 204).end()
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  endpoint = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/push`
  sim = await startSim({
    clock,
    gmail: { accounts: [{ address: ADDRESS, messages: 3 }], push: { endpoint } },
  })
})
after(async () => {
  await sim.close()
  receiver.closeAllConnections()
  await new Promise((resolve) => receiver.close(resolve))
})
afterEach(() => {
  received = []
  statuses = []
  sim.gmail.push.stop(ADDRESS)
})

async function call(path: string, body: object): Promise<number> {
  const headers = {
    authorization: `Bearer ${sim.gmail.issue(ADDRESS, ['https://mail.google.com/']).accessToken}`,
  }
  const url = `${sim.baseUrl}/gmail/v1/users/me/${path}`
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status
}

const watch = (): Promise<number> => call('watch', { topicName: 'projects/p/topics/t' })
const change = (): void => void sim.gmail.mutations(ADDRESS).arrive({}, () => 0.5)

describe('a watch', () => {
  test('tells of a change, signed with a key of the JWKS', async () => {
    await clock.advance(2_000)
    assert.equal(await watch(), 200)
    change()
    await sim.gmail.push.settled()
    const [push] = received
    const data = JSON.parse(Buffer.from(push!.body.message.data, 'base64url').toString()) as Record<
      string,
      string
    >
    assert.deepEqual(data, { emailAddress: ADDRESS, historyId: String(sim.gmail.mailbox(ADDRESS).historyId) })
    const [head = '', body = '', signature = ''] = push!.authorization.replace('Bearer ', '').split('.')
    const { keys } = (await (await fetch(sim.gmail.jwksUrl)).json()) as {
      keys: (webcrypto.JsonWebKey & { kid: string })[]
    }
    const { kid, alg } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string; alg: string }
    assert.equal(alg, 'RS256')
    const key = createPublicKey({ key: keys.find((one) => one.kid === kid)!, format: 'jwk' })
    const isGood = createVerify('RSA-SHA256')
      .update(`${head}.${body}`)
      .verify(key, Buffer.from(signature, 'base64url'))
    assert.ok(isGood)
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>
    assert.equal(claims.aud, endpoint)
    assert.equal(claims.iss, 'https://accounts.google.com')
    assert.equal(claims.email, sim.gmail.push.settings.email)
    assert.equal(claims.email_verified, true)
    assert.ok(Number(claims.exp) * 1000 > clock.now())
  })

  test('tells once a second at most; the rest is dropped', async () => {
    await clock.advance(2_000)
    await watch()
    const { dropped } = sim.gmail.push.counts
    for (let at = 0; at < 5; at++) change()
    await sim.gmail.push.settled()
    assert.equal(received.length, 1)
    assert.equal(sim.gmail.push.counts.dropped - dropped, 4)
    await clock.advance(1_000)
    change()
    await sim.gmail.push.settled()
    assert.equal(received.length, 2)
  })

  test('nobody is told before it, after stop, or after seven days', async () => {
    await clock.advance(2_000)
    change()
    await watch()
    assert.equal(await call('stop', {}), 204)
    change()
    await watch()
    await clock.advance(7 * 86_400_000 + 1)
    change()
    await sim.gmail.push.settled()
    assert.equal(received.length, 0)
  })

  test('what is not accepted comes again, with the same id', async () => {
    await clock.advance(2_000)
    await watch()
    statuses = [500]
    change()
    while (received.length === 0 || clock.pendingTimers === 0)
      await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(10_000)
    await sim.gmail.push.settled()
    assert.equal(received.length, 2)
    assert.equal(received[0]!.body.message.messageId, received[1]!.body.message.messageId)
  })
})
