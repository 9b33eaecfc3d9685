import assert from 'node:assert/strict'
import { createSign } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../start.ts'

let sim: Sim
let clock: FakeClock
let number = 0

type Received = {
  ackId: string
  message: { data: string; attributes: Record<string, string>; messageId: string; orderingKey?: string }
  deliveryAttempt?: number
}

before(async () => {
  clock = new FakeClock()
  sim = await startSim({ clock, pubsub: {} })
})

after(() => sim.close())

beforeEach(() => sim.faults.clear())

async function call(
  verb: string,
  path: string,
  body?: object,
  { token = sim.pubsub.accessToken, signal }: { token?: string; signal?: AbortSignal } = {},
): Promise<{
  status: number
  json: Record<string, unknown> & { error?: { status: string; message: string } }
}> {
  const answer = await fetch(`${sim.pubsub.baseUrl}/v1/${path}`, {
    method: verb,
    headers: { authorization: `Bearer ${token}` },
    ...(body ? { body: JSON.stringify(body) } : {}),
    ...(signal ? { signal } : {}),
  })
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
}

async function newSubscription(more: object = {}): Promise<{ topic: string; subscription: string }> {
  number += 1
  const topic = `projects/p/topics/t${number}`
  const subscription = `projects/p/subscriptions/s${number}`
  assert.equal((await call('PUT', topic)).status, 200)
  assert.equal((await call('PUT', subscription, { topic, ackDeadlineSeconds: 10, ...more })).status, 200)
  return { topic, subscription }
}

async function publish(topic: string, text: string, more: object = {}): Promise<string> {
  const message = { data: Buffer.from(text).toString('base64'), ...more }
  const { json } = await call('POST', `${topic}:publish`, { messages: [message] })
  return (json.messageIds as string[])[0]!
}

async function pull(subscription: string, maxMessages = 10): Promise<Received[]> {
  const { json } = await call('POST', `${subscription}:pull`, { maxMessages, returnImmediately: true })
  return (json.receivedMessages ?? []) as Received[]
}

function modify(subscription: string, ackIds: string[], ackDeadlineSeconds: number) {
  return call('POST', `${subscription}:modifyAckDeadline`, { ackIds, ackDeadlineSeconds })
}

describe('Pub/Sub by REST', () => {
  test('every subscription gets a message, until it acknowledges it', async () => {
    const { topic, subscription } = await newSubscription()
    const other = `${subscription}-other`
    await call('PUT', other, { topic })
    const id = await publish(topic, 'häl😀lo', { attributes: { kind: 'a' } })
    const [received] = await pull(subscription)
    assert.equal(received?.message.messageId, id)
    assert.equal(Buffer.from(received!.message.data, 'base64').toString(), 'häl😀lo')
    assert.deepEqual(received?.message.attributes, { kind: 'a' })
    assert.equal(received?.deliveryAttempt, undefined, 'only told where there are dead letters')
    assert.equal(
      (await call('POST', `${subscription}:acknowledge`, { ackIds: [received!.ackId] })).status,
      200,
    )
    await clock.advance(3_600_000)
    assert.deepEqual(await pull(subscription), [])
    assert.equal((await pull(other)).length, 1)
    const [truth] = sim.pubsub.subscription(subscription).messages
    assert.equal(truth?.outcome, 'acknowledged')
  })

  test('a deadline that passes, or a deadline of 0, delivers again; an old id does nothing', async () => {
    const { topic, subscription } = await newSubscription()
    await publish(topic, 'a')
    const [first] = await pull(subscription)
    assert.equal((await modify(subscription, [first!.ackId], 600)).status, 200)
    await clock.advance(599_000)
    assert.deepEqual(await pull(subscription), [])
    await clock.advance(1_000)
    const [second] = await pull(subscription)
    assert.equal((await call('POST', `${subscription}:acknowledge`, { ackIds: [first!.ackId] })).status, 200)
    await modify(subscription, [second!.ackId], 0)
    assert.equal((await pull(subscription)).length, 1)
    const tooLong = await modify(subscription, [second!.ackId], 601)
    assert.equal(tooLong.json.error?.status, 'INVALID_ARGUMENT')
    assert.equal((await modify(subscription, ['nonsense'], 10)).status, 400)
  })

  test('a pull waits for a message, for its time, or until the caller goes', async () => {
    const { topic, subscription } = await newSubscription({ ackDeadlineSeconds: 600 })
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    const timers = clock.pendingTimers
    const waiting = async (signal?: AbortSignal) => {
      const answer = call('POST', `${subscription}:pull`, { maxMessages: 1 }, signal ? { signal } : {})
      while (clock.pendingTimers === timers) await turn()
      return { answer }
    }
    const { answer: first } = await waiting()
    await publish(topic, 'a')
    assert.equal(((await first).json.receivedMessages as unknown[]).length, 1)
    const { answer: none } = await waiting()
    await clock.advance(10_000)
    assert.deepEqual((await none).json, {})
    const stop = new AbortController()
    const { answer: gone } = await waiting(stop.signal)
    const rejected = assert.rejects(gone)
    stop.abort()
    await rejected
    while (clock.pendingTimers > timers) await turn()
    await publish(topic, 'b')
    assert.equal((await pull(subscription)).length, 1, 'who has gone got nothing')
  })

  test('dead letters go to their topic with the count of deliveries', async () => {
    const dead = await newSubscription()
    const deadLetterPolicy = { deadLetterTopic: dead.topic, maxDeliveryAttempts: 5 }
    const { topic, subscription } = await newSubscription({ deadLetterPolicy })
    await publish(topic, 'poison')
    for (let attempt = 1; attempt <= 5; attempt++) {
      const [received] = await pull(subscription)
      assert.equal(received?.deliveryAttempt, attempt)
      await modify(subscription, [received!.ackId], 0)
    }
    assert.deepEqual(await pull(subscription), [])
    const [letter] = await pull(dead.subscription)
    assert.equal(letter?.message.attributes.CloudPubSubDeadLetterSourceDeliveryCount, '5')
    assert.equal(sim.pubsub.subscription(subscription).messages[0]?.outcome, 'dead-lettered')
  })

  test('ordered messages of a key wait for the one before', async () => {
    const { topic, subscription } = await newSubscription({ enableMessageOrdering: true })
    for (const text of ['1', '2']) await publish(topic, text, { orderingKey: 'k' })
    const [first] = await pull(subscription, 1)
    assert.deepEqual(await pull(subscription), [])
    await call('POST', `${subscription}:acknowledge`, { ackIds: [first!.ackId] })
    assert.equal((await pull(subscription))[0]?.message.orderingKey, 'k')
  })

  test('tells what is not there, what is there already, and who may not call', async () => {
    const { topic, subscription } = await newSubscription()
    assert.equal((await call('PUT', topic)).json.error?.status, 'ALREADY_EXISTS')
    assert.equal((await call('PUT', subscription, { topic })).status, 409)
    assert.equal((await call('GET', 'projects/p/topics/none')).status, 404)
    assert.equal((await call('POST', 'projects/p/subscriptions/none:pull', { maxMessages: 1 })).status, 404)
    assert.equal((await call('GET', topic, undefined, { token: 'wrong' })).status, 401)
    const { json } = await call('GET', subscription)
    assert.equal(json.ackDeadlineSeconds, 10)
    assert.equal((await call('DELETE', subscription)).status, 200)
    assert.equal((await call('GET', subscription)).status, 404)
    assert.equal((await call('POST', `${topic}:publish`, { messages: [{}] })).status, 400)
  })

  test('a service account signs in for itself', async () => {
    const key = sim.drive.serviceAccount()
    const nowS = Math.floor(clock.now() / 1000)
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = {
      iss: key.client_email,
      aud: key.token_uri,
      iat: nowS,
      exp: nowS + 3600,
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    }
    const signed = `${encode({ alg: 'RS256', typ: 'JWT', kid: key.private_key_id })}.${encode(claims)}`
    const signature = createSign('RSA-SHA256').update(signed).sign(key.private_key, 'base64url')
    const body = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: `${signed}.${signature}`,
    })
    const answer = await fetch(key.token_uri, { method: 'POST', body })
    const { access_token: token } = (await answer.json()) as { access_token: string }
    assert.equal((await call('GET', 'projects/p/topics', undefined, { token })).status, 200)
  })

  test('faults come in the shape of Google, and a receipt can be expired', async () => {
    const { topic, subscription } = await newSubscription()
    const id = await publish(topic, 'a')
    sim.faults.set({ rules: [{ do: 'throttle', service: 'pubsub', max: 1 }] })
    const refused = await call('POST', `${subscription}:pull`, { maxMessages: 1, returnImmediately: true })
    assert.equal(refused.json.error?.status, 'RESOURCE_EXHAUSTED')
    const [received] = await pull(subscription)
    const expired = await fetch(`${sim.controlUrl}/pubsub/expire-receipt`, {
      method: 'POST',
      body: JSON.stringify({ subscription, id }),
    })
    assert.equal(expired.status, 200)
    await call('POST', `${subscription}:acknowledge`, { ackIds: [received!.ackId] })
    assert.equal((await pull(subscription)).length, 1)
  })
})
