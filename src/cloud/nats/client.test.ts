import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers as newHeaders } from '@nats-io/transport-node'
import { FakeClock, systemClock } from '../../base/clock.ts'
import { failure } from '../object-store.suite.ts'
import { type QueueSite, take, testQueue } from '../queue.suite.ts'
import { NatsQueue } from './client.ts'
import { type NatsServer, natsServerProgram, startNatsServer } from './nats-server.suite.ts'
import { CONSUMER, ScriptedJetStream, STREAM } from './scripted-jetstream.suite.ts'

const ACK_WAIT_MS = 30_000

type ScriptedSite = QueueSite & { server: ScriptedJetStream; url: string }

async function openScripted(): Promise<ScriptedSite> {
  const clock = new FakeClock()
  const server = new ScriptedJetStream({ clock, ackWaitMs: ACK_WAIT_MS })
  const url = await server.start()
  const open = () => NatsQueue.open({ clock, servers: [url], stream: STREAM, consumer: CONSUMER })
  const [queue, other] = [await open(), await open()]
  return {
    server,
    url,
    queue,
    other,
    send: async (messages) => {
      for (const { body, attributes } of messages) server.send(body, attributes)
    },
    pass: (share) => clock.advance(share * ACK_WAIT_MS),
    close: async () => {
      await queue.close()
      await other.close()
      await server.close()
    },
  }
}

testQueue({ name: 'a scripted JetStream', open: openScripted })

describe('a consumer of JetStream', () => {
  test('is extended by its own AckWait, whatever was asked for', async () => {
    const site = await openScripted()
    assert.equal(site.queue.limits.extendMsMax, ACK_WAIT_MS)
    await site.send([{ body: 'm' }])
    const messages = await take(site.queue, 1)
    await site.queue.extend(messages, 1)
    await site.queue.extend(messages, 10 * ACK_WAIT_MS)
    await site.queue.acknowledge(messages)
    assert.deepEqual(site.server.told, ['+WPI 1', '+WPI 1', '+ACK 1'])
    await site.close()
  })

  test('that is not there, closed or busy is told apart', async () => {
    const site = await openScripted()
    const { server, url, queue } = site
    const signal = new AbortController().signal
    const receive = () => failure(queue.receive({ max: 1, waitMs: 0, signal }))
    server.status = { status: 409, description: 'Exceeded MaxWaiting' }
    assert.equal((await receive()).kind, 'throttled')
    server.status = { status: 409, description: 'Consumer Deleted' }
    const deleted = await receive()
    assert.deepEqual([deleted.kind, deleted.code], ['permanent', 'queue-missing'])
    server.status = { status: 503, description: '' }
    assert.equal((await receive()).kind, 'transient')
    const options = { clock: new FakeClock(), servers: [url], stream: STREAM, consumer: CONSUMER }
    server.hasConsumer = false
    const missing = await failure(NatsQueue.open(options))
    assert.deepEqual([missing.kind, missing.code], ['permanent', 'queue-missing'])
    server.isClosedToAll = true
    assert.equal((await failure(NatsQueue.open(options))).kind, 'auth')
    await site.close()
    assert.equal((await failure(NatsQueue.open(options))).kind, 'transient')
  })
})

const program = natsServerProgram()
if (program === undefined) {
  console.log('nats-server is not on PATH: the client was tried with the scripted JetStream only.')
} else {
  testRealServer(program)
}

function testRealServer(path: string): void {
  let server: NatsServer
  let number = 0
  before(async () => {
    server = await startNatsServer(path)
  })
  after(() => server.close())

  async function openSite(): Promise<QueueSite> {
    number += 1
    const stream = `stream${number}`
    const nats = await connect({ servers: [server.url] })
    const manager = await jetstreamManager(nats)
    await manager.streams.add({ name: stream, subjects: [`${stream}.>`] })
    await manager.consumers.add(stream, {
      durable_name: CONSUMER,
      ack_policy: AckPolicy.Explicit,
      ack_wait: 2_000 * 1_000_000,
    })
    const open = () =>
      NatsQueue.open({ clock: systemClock, servers: [server.url], stream, consumer: CONSUMER })
    const [queue, other] = [await open(), await open()]
    return {
      queue,
      other,
      send: async (messages) => {
        for (const { body, attributes = {} } of messages) {
          const headers = newHeaders()
          for (const [name, value] of Object.entries(attributes)) headers.set(name, value)
          await jetstream(nats).publish(`${stream}.new`, body, { headers })
        }
      },
      // Its time is its own: the next one to ask waits for it.
      pass: async () => {},
      close: async () => {
        await queue.close()
        await other.close()
        await nats.close()
      },
    }
  }

  testQueue({ name: 'NATS JetStream', open: openSite, cannot: { passInPart: true } })
}
