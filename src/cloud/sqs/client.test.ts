import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import type { FaultRule } from '../../sim/fault-rules.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { failure } from '../object-store.suite.ts'
import { type QueueFault, type QueueSite, take, testQueue } from '../queue.suite.ts'
import type { Queue } from '../queue.ts'
import { SqsQueue } from './client.ts'

const HOUR_MS = 3_600_000
const VISIBILITY_MS = 60_000
let clock: FakeClock
let sim: Sim
let number = 0

before(async () => {
  clock = new FakeClock()
  sim = await startSim({ clock, sqs: {} })
})
after(() => sim.close())

function openQueue(name: string, credentials?: { accessKeyId: string; secretAccessKey: string }): SqsQueue {
  const { region, accessKeyId, secretAccessKey } = sim.sqs.account
  return new SqsQueue({
    clock,
    region,
    endpoint: sim.sqs.baseUrl,
    credentials: credentials ?? { accessKeyId, secretAccessKey },
    queueUrl: `${sim.sqs.baseUrl}/${sim.sqs.account.accountId}/${name}`,
    visibilityMs: VISIBILITY_MS,
  })
}

async function openSite(): Promise<QueueSite & { name: string }> {
  sim.faults.clear()
  number += 1
  const name = `queue-${number}`
  sim.sqs.queues.create(name)
  const [queue, other] = [openQueue(name), openQueue(name)]
  return {
    name,
    queue,
    other,
    send: async (messages) => {
      for (const { body, attributes = {} } of messages) {
        const typed = Object.entries(attributes).map(([key, value]) => [key, { type: 'String', value }])
        sim.sqs.queue(name).send({ body, attributes: Object.fromEntries(typed) })
      }
    },
    pass: (share) => clock.advance(share * VISIBILITY_MS),
    close: async () => {
      await queue.close()
      await other.close()
    },
  }
}

const FAULTS: Record<QueueFault, FaultRule> = {
  throttled: { do: 'throttle', status: 429 },
  auth: { do: 'error', status: 403, reason: 'InvalidClientTokenId' },
  unavailable: { do: 'error', status: 503 },
  missing: { do: 'error', status: 400, reason: 'QueueDoesNotExist' },
}

testQueue({
  name: 'SQS',
  open: openSite,
  fail: async (_site, fault) => void sim.faults.set({ rules: [FAULTS[fault]] }),
})

function receive(queue: Queue) {
  return queue.receive({ max: 10, waitMs: 0, signal: new AbortController().signal })
}

describe('a queue of SQS', () => {
  test('is asked for no visibility beyond 12 hours from the receipt, and then says that it is lost', async () => {
    const site = await openSite()
    await site.send([{ body: 'm' }])
    const messages = await take(site.queue, 1)
    assert.deepEqual(await site.queue.extend(messages, 100 * HOUR_MS), ['extended'])
    const sent = (): number => sim.sqs.queue(site.name).messages[0]!.visibleAtMs
    const receivedAtMs = clock.now()
    assert.ok(sent() <= receivedAtMs + 12 * HOUR_MS)
    await clock.advance(11.5 * HOUR_MS)
    assert.deepEqual(await site.queue.extend(messages, 2 * HOUR_MS), ['extended'])
    assert.ok(sent() <= receivedAtMs + 12 * HOUR_MS)
    await clock.advance(0.5 * HOUR_MS)
    assert.deepEqual(await site.queue.extend(messages, HOUR_MS), ['lost'])
    await site.close()
  })

  test('never promises a message for longer than SQS holds it', async () => {
    const site = await openSite()
    await site.send([{ body: 'm' }])
    const [message] = await take(site.queue, 1)
    assert.ok(message!.visibleAtMs <= sim.sqs.queue(site.name).messages[0]!.visibleAtMs)
    await site.close()
  })

  test('takes a receipt that it does not know for lost', async () => {
    const site = await openSite()
    await site.send([{ body: 'm' }])
    const [message] = await take(site.queue, 1)
    sim.sqs.queue(site.name).expireReceipt(message!.id)
    assert.deepEqual(await site.queue.extend([message!], 5_000), ['lost'])
    const strange = { ...message!, receipt: 'nobody gave this' }
    assert.deepEqual(await site.queue.acknowledge([strange]), ['lost'])
    await site.close()
  })

  test('is asked once by each call, and tells strangers and lost connections apart', async () => {
    const site = await openSite()
    const before = sim.log.served
    sim.faults.set({ rules: [{ do: 'error', status: 500 }] })
    assert.equal((await failure(receive(site.queue))).kind, 'transient')
    assert.equal(sim.log.served - before, 1)
    sim.faults.set({ rules: [{ do: 'reset' }] })
    assert.deepEqual((await failure(receive(site.queue))).code, 'connection-failed')
    sim.faults.clear()
    const stranger = openQueue(site.name, { accessKeyId: 'AKIAWRONG', secretAccessKey: 'x' })
    assert.equal((await failure(receive(stranger))).kind, 'auth')
    await stranger.close()
    await site.close()
  })
})
