/** Objects of simulated clouds, announced in every envelope in which that is done: from the notification to the search. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { OpenRuntime } from '../../app/runtime.ts'
import { startServer } from '../../cloud/scripted-server.suite.ts'
import { loadConfig } from '../../config/load.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import { ENVELOPES } from '../../sim/s3/announcements.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { catalog } from '../catalog.ts'
import { ingestApp } from './app.ts'
import { addPipeline } from './configure.ts'
import { type PipelineInput, type PipelineSecret, streamOf } from './pipeline.ts'
import { type IngestRuntime, ingestRuntime } from './runtime.ts'
import { type PipelineStatus, pipelineStatus } from './status.ts'

const SUBSCRIPTION = 'projects/p/subscriptions/s'
const TOPIC = 'projects/p/topics/t'
const home = mkdtempSync(join(tmpdir(), 'tidemark-notifications-'))
let sim: Sim
let opened: OpenRuntime & IngestRuntime

before(async () => {
  const notify = ENVELOPES.map((envelope) => ({ queue: envelope, envelope }))
  sim = await startSim({
    s3: { buckets: [{ name: 'logs', notify }] },
    sqs: { queues: [...ENVELOPES, 'dead', { name: 'strange', receivesMax: 2, deadLetter: 'dead' }] },
    gcs: { buckets: [{ name: 'gcs-logs', notify: [{ topic: TOPIC }] }] },
    pubsub: { subscriptions: [{ name: SUBSCRIPTION, topic: TOPIC }], pullWaitMs: 100 },
  })
  const env = { TIDEMARK_SEARCH_EMBEDDING: 'off' }
  const { values: config } = loadConfig({ catalog, env: { ...env, TIDEMARK_HOME: home }, flags: {} })
  opened = ingestRuntime(await openRuntime({ config, home, env, role: 'all', apps: [ingestApp] }))
  await opened.engine.start()
})
after(async () => {
  await opened.close()
  await sim.close()
  rmSync(home, { recursive: true, force: true })
})

async function add(name: string, config: PipelineInput, secret: PipelineSecret): Promise<void> {
  await addPipeline(opened, { name, config: { mapping: { text: ['m'] }, ...config }, secret })
  await opened.ingest.pipelines.reload()
  await opened.engine.streams.open(streamOf(name))
}

function addSqs(name: string): Promise<void> {
  const { account, baseUrl } = sim.sqs
  const { accessKeyId, secretAccessKey, region } = account
  const queue = {
    kind: 'sqs' as const,
    url: `${baseUrl}/${account.accountId}/${name}`,
    endpoint: baseUrl,
    region,
  }
  const store = { endpoint: sim.s3.baseUrl, pathStyle: true, region }
  return add(name, { queue, store, allow: ['s3://logs'] }, { aws: { accessKeyId, secretAccessKey } })
}

async function receive(name: string): Promise<PipelineStatus> {
  const receiver = (await opened.ingest.receivers.of(name))!
  await receiver.drain(new AbortController().signal)
  await opened.engine.drained()
  await receiver.look()
  return pipelineStatus(opened.ingest.tables, name)
}

async function titles(name: string, text = 'type:record'): Promise<string[]> {
  const search = await opened.search.open()
  const { hits } = await search.search({
    text,
    reader: { principals: [streamOf(name)] },
    mode: 'words',
    limit: 100,
    nowMs: opened.ledger.now(),
    signal: new AbortController().signal,
  })
  return hits.map(({ title }) => title.map((part) => part.text).join('')).sort()
}

function outcomes(queue: string): string[] {
  return sim.sqs.queue(queue).messages.map(({ outcome }) => outcome)
}

describe('objects of S3 that are announced', () => {
  test('in any envelope are found once, keys with spaces and signs included, and test events are dropped', async () => {
    sim.s3.store.put('logs', 'day 1/a+b %41.ndjson', '{"m":"the tide came in"}')
    for (const envelope of ENVELOPES) {
      await addSqs(envelope)
      const { objects, messages } = await receive(envelope)
      assert.deepEqual([objects.stored, objects.total], [1, 1], envelope)
      assert.deepEqual(await titles(envelope, 'tide'), ['the tide came in'], envelope)
      assert.equal(messages.dropped, envelope === 'eventbridge' ? 0 : 1, envelope)
      assert.deepEqual(new Set(outcomes(envelope)), new Set(['acknowledged']), envelope)
    }
  })

  test('again within the window, with other bytes, are read; a repetition is dropped', async () => {
    sim.s3.store.put('logs', 'day 1/a+b %41.ndjson', '{"m":"the tide went out"}')
    const queue = sim.sqs.queue('s3')
    queue.send({ body: queue.messages.at(-1)!.body })
    const { objects, messages } = await receive('s3')
    assert.deepEqual(await titles('s3'), ['the tide went out'])
    assert.deepEqual(objects.skippedBy, [{ code: 'replaced', count: 1 }])
    assert.equal(messages.duplicates, 1)
  })

  test('and gone before they are read are registered as missing, and the message is acknowledged then', async () => {
    sim.s3.store.put('logs', 'short.ndjson', '{"m":"nobody saw it"}')
    sim.s3.store.remove('logs', 'short.ndjson')
    const { objects } = await receive('sns')
    assert.deepEqual(objects.badBy, [{ code: 'object-missing', count: 1 }])
    assert.deepEqual(new Set(outcomes('sns')), new Set(['acknowledged']))
  })

  test('in words that nobody understands are shown, and end in the dead-letter queue', async () => {
    await addSqs('strange')
    const queue = sim.sqs.queue('strange')
    queue.send({ body: 'bonjour' })
    for (let delivery = 0; delivery < 3; delivery++) {
      await receive('strange')
      for (const { id } of queue.messages) queue.hide(id, 0)
    }
    const { messages, objects } = await receive('strange')
    assert.deepEqual([messages.acknowledged, objects.total], [0, 0])
    assert.deepEqual(outcomes('strange'), ['dead-lettered'])
    assert.equal(sim.sqs.queue('dead').messages.length, 1)
    const [shown] = await opened.ingest.tables.unparsed('strange', 10)
    assert.deepEqual([shown?.code, Buffer.from(shown!.excerpt).toString()], ['not-json', 'bonjour'])
  })
})

describe('objects of S3 that are announced in an ordered queue', () => {
  test('are read, and acknowledged, also where one of their group is in the hands of another for a while', async () => {
    const queue = sim.sqs.queues.create('ordered.fifo')
    const announce = (key: string, text: string, group: string): void => {
      const { etag } = sim.s3.store.put('logs', key, text)
      const body = JSON.stringify({ uri: `s3://logs/${key}`, version: etag })
      queue.send({ body, group })
    }
    for (let n = 0; n < 3; n++) {
      announce('ordered.ndjson', `{"m":"take ${n} of one key"}`, 'one')
      announce(`other-${n}.ndjson`, `{"m":"other ${n}"}`, 'other')
    }
    await addSqs('ordered.fifo')
    const first = await receive('ordered.fifo')
    assert.deepEqual([first.messages.received, first.messages.acknowledged], [6, 6])
    // While one of its group is in the hands of another, nobody gets the next.
    announce('ordered.ndjson', `{"m":"take 3 of one key"}`, 'one')
    const [held] = await queue.receive({ max: 1, waitMs: 0, by: 'another' }, new AbortController().signal)
    announce('ordered.ndjson', `{"m":"take 4 of one key"}`, 'one')
    assert.equal((await receive('ordered.fifo')).messages.received, 6)
    queue.expireReceipt(held!.id)
    const { messages } = await receive('ordered.fifo')
    assert.deepEqual([messages.received, messages.acknowledged], [8, 8])
    assert.deepEqual(await titles('ordered.fifo'), ['other 0', 'other 1', 'other 2', 'take 4 of one key'])
    assert.deepEqual(new Set(outcomes('ordered.fifo')), new Set(['acknowledged']))
  })
})

describe('objects of Google Cloud Storage', () => {
  test('that Pub/Sub announces are found once, also when they are overwritten', async () => {
    const serviceAccount = { ...sim.gmail.serviceAccount() }
    const queue = { kind: 'pubsub' as const, subscription: SUBSCRIPTION, endpoint: sim.pubsub.baseUrl }
    await add(
      'gcs',
      { queue, allow: ['gs://gcs-logs'], store: { endpoint: sim.gcs.baseUrl } },
      { serviceAccount },
    )
    sim.gcs.store.put('gcs-logs', 'a b+c.ndjson', '{"m":"the first generation"}')
    await receive('gcs')
    assert.deepEqual(await titles('gcs'), ['the first generation'])
    sim.gcs.store.put('gcs-logs', 'a b+c.ndjson', '{"m":"the second generation"}')
    const { objects } = await receive('gcs')
    assert.deepEqual(await titles('gcs', 'generation'), ['the second generation'])
    assert.deepEqual(objects.skippedBy, [{ code: 'replaced', count: 1 }])
    const left = sim.pubsub.topics.subscription(SUBSCRIPTION)!.queue.messages
    assert.deepEqual(new Set(left.map(({ outcome }) => outcome)), new Set(['acknowledged']))
  })
})

describe('a pipeline', () => {
  test('with addresses of https reads from the hosts that are named, and from no others', async () => {
    await add('web', { queue: { kind: 'inbox' }, hosts: ['files.example'] }, {})
    assert.equal((await opened.ingest.pipelines.store('web', 'https://files.example/a')).scheme, 'https')
    const store = await opened.ingest.pipelines.store('web', 'https://other.example/a')
    await assert.rejects(store.head('https://other.example/a', new AbortController().signal))
  })

  test('with addresses of http reads what a message names there, and again when it is another', async () => {
    let text = '{"m":"a wave of the web"}\n'
    const server = await startServer((_, answer) => {
      const etag = `"${text.length}"`
      answer.writeHead(200, { etag, 'content-length': text.length })
      answer.end(text)
    })
    await add('plain-web', { queue: { kind: 'inbox' }, hosts: [server.url] }, {})
    const push = async (): Promise<PipelineStatus> => {
      const body = new TextEncoder().encode(JSON.stringify({ uri: `${server.url}/a.ndjson` }))
      const { ingest, ledger } = opened
      await ledger.transaction((tx) => ingest.inbox.put(tx, 'plain-web', [{ body, attributes: {} }]))
      return receive('plain-web')
    }
    try {
      await push()
      assert.equal((await push()).messages.duplicates, 1)
      assert.deepEqual(await titles('plain-web'), ['a wave of the web'])
      text = '{"m":"another wave of the web"}\n'
      await push()
      assert.deepEqual(await titles('plain-web'), ['another wave of the web'])
    } finally {
      await server.close()
    }
  })

  test('with NATS asks the servers that are named, and says so where nobody answers', async () => {
    const queue = { kind: 'nats' as const, servers: '127.0.0.1:1', stream: 'S', consumer: 'c' }
    await add('nats', { queue }, {})
    await assert.rejects(opened.ingest.receivers.of('nats'), /NATS/)
  })
})
