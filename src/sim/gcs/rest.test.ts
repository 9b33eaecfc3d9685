import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../start.ts'

let sim: Sim
let clock: FakeClock
let number = 0

before(async () => {
  clock = new FakeClock()
  sim = await startSim({ clock, gcs: {} })
})

after(() => sim.close())

beforeEach(() => sim.faults.clear())

type Resource = {
  name: string
  generation: string
  metageneration: string
  size: string
  md5Hash: string
  contentType: string
  metadata?: Record<string, string>
}

function call(
  verb: string,
  path: string,
  options: { body?: string | Buffer; headers?: Record<string, string> } = {},
) {
  const headers = { authorization: `Bearer ${sim.gcs.accessToken}`, ...options.headers }
  const url = path.startsWith('http') ? path : `${sim.gcs.baseUrl}${path}`
  const body = options.body === undefined ? {} : { body: new Uint8Array(Buffer.from(options.body)) }
  return fetch(url, { method: verb, headers, ...body })
}

async function json<Value = Resource>(answer: Promise<Response>): Promise<Value> {
  return (await (await answer).json()) as Value
}

function newBucket(isVersioned = false): string {
  number += 1
  return sim.gcs.store.createBucket(`bucket-${number}`, { isVersioned }).name
}

function insert(bucket: string, name: string, body: string, query = ''): Promise<Response> {
  const path = `/upload/storage/v1/b/${bucket}/o?uploadType=media&name=${encodeURIComponent(name)}${query}`
  return call('POST', path, { body, headers: { 'content-type': 'text/plain' } })
}

function at(bucket: string, name: string): string {
  return `/storage/v1/b/${bucket}/o/${encodeURIComponent(name)}`
}

async function names(bucket: string, query: string): Promise<string[]> {
  const { items = [] } = await json<{ items?: Resource[] }>(call('GET', `/storage/v1/b/${bucket}/o?${query}`))
  return items.map(({ name }) => name)
}

describe('Cloud Storage by its JSON API', () => {
  test('inserts, gets, reads ranges and deletes', async () => {
    assert.equal((await call('POST', '/storage/v1/b?project=p', { body: '{"name":"by-hand"}' })).status, 200)
    const name = 'a dir/ä + b?c.txt'
    const made = await json(insert('by-hand', name, '0123456789'))
    assert.equal(made.name, name)
    assert.equal(made.size, '10')
    assert.equal(made.md5Hash, createHash('md5').update('0123456789').digest('base64'))
    const path = at('by-hand', name)
    assert.equal((await json(call('GET', path))).generation, made.generation)
    const whole = await call('GET', `${path}?alt=media`)
    assert.equal(await whole.text(), '0123456789')
    assert.equal(whole.headers.get('x-goog-generation'), made.generation)
    assert.equal(whole.headers.get('content-type'), 'text/plain')
    const part = await call('GET', `${path}?alt=media`, { headers: { range: 'bytes=3-5' } })
    assert.equal(part.status, 206)
    assert.equal(await part.text(), '345')
    assert.equal(part.headers.get('content-range'), 'bytes 3-5/10')
    assert.equal((await call('GET', `${path}?alt=media`, { headers: { range: 'bytes=10-' } })).status, 416)
    assert.equal((await call('DELETE', path)).status, 204)
    const gone = await call('GET', `${path}?alt=media`)
    assert.equal(gone.status, 404)
    assert.match(await gone.text(), /^No such object: by-hand/)
    assert.equal((await call('GET', path)).status, 404)
    assert.equal((await call('GET', at('nowhere', 'a'))).status, 404)
    const stranger = await call('GET', path, { headers: { authorization: 'Bearer wrong' } })
    assert.equal(stranger.status, 401)
  })

  test('a generation is asked for, and one that was replaced is refused', async () => {
    const bucket = newBucket(true)
    const { generation: first } = await json(insert(bucket, 'a', 'one'))
    const { generation: second } = await json(insert(bucket, 'a', 'two'))
    assert.ok(BigInt(second) > BigInt(first))
    const path = at(bucket, 'a')
    assert.equal(await (await call('GET', `${path}?alt=media&generation=${first}`)).text(), 'one')
    assert.equal((await call('GET', `${path}?alt=media&ifGenerationMatch=${first}`)).status, 412)
    assert.equal((await call('DELETE', `${path}?ifGenerationMatch=${first}`)).status, 412)
    assert.equal((await insert(bucket, 'a', 'x', '&ifGenerationMatch=0')).status, 412)
    assert.equal((await insert(bucket, 'b', 'x', '&ifGenerationMatch=0')).status, 200)
    const plain = newBucket()
    const { generation: old } = await json(insert(plain, 'a', 'one'))
    await insert(plain, 'a', 'two')
    assert.equal((await call('GET', `${at(plain, 'a')}?alt=media&generation=${old}`)).status, 404)
    assert.equal(sim.gcs.store.history(plain).length, 2, 'the truth forgets nothing')
  })

  test('uploads with metadata in one body, and in a session that is interrupted', async () => {
    const bucket = newBucket()
    const body = [
      '--cut',
      'Content-Type: application/json',
      '',
      '{"name":"a","contentType":"text/csv","metadata":{"k":"v"}}',
      '--cut',
      'Content-Type: text/plain',
      '',
      'x,y',
      '--cut--',
    ].join('\r\n')
    const made = await json(
      call('POST', `/upload/storage/v1/b/${bucket}/o?uploadType=multipart`, {
        body,
        headers: { 'content-type': 'multipart/related; boundary=cut' },
      }),
    )
    assert.equal(made.contentType, 'text/csv')
    assert.deepEqual(made.metadata, { k: 'v' })
    assert.equal(made.size, '3')
    const begun = await call('POST', `/upload/storage/v1/b/${bucket}/o?uploadType=resumable&name=big`)
    const session = begun.headers.get('location')!
    const first = await call('PUT', session, { body: 'aaaa', headers: { 'content-range': 'bytes 0-3/*' } })
    assert.equal(first.status, 308)
    const asked = await call('PUT', session, { headers: { 'content-range': 'bytes */6' } })
    assert.equal(asked.headers.get('range'), 'bytes=0-3')
    const last = await json(call('PUT', session, { body: 'bb', headers: { 'content-range': 'bytes 4-5/6' } }))
    assert.equal(last.size, '6')
  })

  test('lists page by page, from a name on', async () => {
    const bucket = newBucket()
    for (const name of ['c', 'a/2', 'b', 'a/1']) sim.gcs.store.put(bucket, name, name)
    assert.deepEqual(await names(bucket, ''), ['a/1', 'a/2', 'b', 'c'])
    assert.deepEqual(await names(bucket, 'prefix=a/'), ['a/1', 'a/2'])
    assert.deepEqual(await names(bucket, 'startOffset=a/2'), ['a/2', 'b', 'c'])
    const page = await json<{ nextPageToken: string }>(call('GET', `/storage/v1/b/${bucket}/o?maxResults=3`))
    assert.deepEqual(await names(bucket, `pageToken=${encodeURIComponent(page.nextPageToken)}`), ['c'])
    const grouped = await json<{ prefixes: string[] }>(call('GET', `/storage/v1/b/${bucket}/o?delimiter=/`))
    assert.deepEqual(grouped.prefixes, ['a/'])
  })

  test('rewrites, copies and patches', async () => {
    const bucket = newBucket()
    const { generation } = await json(insert(bucket, 'a/b', 'body'))
    const to = `rewriteTo/b/${bucket}/o/${encodeURIComponent('c/d')}`
    const rewritten = await json<{ done: boolean; resource: Resource }>(
      call('POST', `${at(bucket, 'a/b')}/${to}?ifSourceGenerationMatch=${generation}`),
    )
    assert.equal(rewritten.done, true)
    assert.equal(rewritten.resource.name, 'c/d')
    const late = await call('POST', `${at(bucket, 'a/b')}/${to}?ifSourceGenerationMatch=1`)
    assert.equal(late.status, 412)
    const copied = await json(call('POST', `${at(bucket, 'a/b')}/copyTo/b/${bucket}/o/e`))
    assert.equal(copied.name, 'e')
    const path = at(bucket, 'c/d')
    const patched = await json(call('PATCH', path, { body: '{"metadata":{"state":"done"}}' }))
    assert.deepEqual(patched.metadata, { state: 'done' })
    assert.equal(patched.metageneration, '2')
    assert.equal((await call('PATCH', `${path}?ifMetagenerationMatch=1`, { body: '{}' })).status, 412)
    assert.equal(await (await call('GET', `${path}?alt=media`)).text(), 'body')
  })
})

describe('an announcement', () => {
  function published(subscription: string): Record<string, string>[] {
    return sim.pubsub
      .subscription(subscription)
      .messages.map(({ attributes }) =>
        Object.fromEntries(Object.entries(attributes).map(([k, { value }]) => [k, value])),
      )
  }

  test('is set up over the API and tells of new objects, overwrites too, with their generation', async () => {
    const bucket = newBucket()
    const topic = `projects/p/topics/${bucket}`
    const subscription = `projects/p/subscriptions/${bucket}`
    const body = JSON.stringify({
      topic: `//pubsub.googleapis.com/${topic}`,
      event_types: ['OBJECT_FINALIZE', 'OBJECT_DELETE', 'OBJECT_METADATA_UPDATE'],
      payload_format: 'JSON_API_V1',
    })
    const path = `/storage/v1/b/${bucket}/notificationConfigs`
    assert.equal((await call('POST', path, { body })).status, 400, 'there is no such topic yet')
    sim.pubsub.topics.subscribe(subscription, topic)
    assert.equal((await call('POST', path, { body })).status, 200)
    const listed = await json<{ items: object[] }>(call('GET', path))
    assert.equal(listed.items.length, 1)
    const one = await json(insert(bucket, 'a b+ü', '1'))
    const two = await json(insert(bucket, 'a b+ü', '22'))
    await call('PATCH', at(bucket, 'a b+ü'), { body: '{"contentType":"text/csv"}' })
    await call('DELETE', at(bucket, 'a b+ü'))
    const events = published(subscription)
    assert.deepEqual(
      events.map(({ eventType, objectGeneration }) => [eventType, objectGeneration]),
      [
        ['OBJECT_FINALIZE', one.generation],
        ['OBJECT_FINALIZE', two.generation],
        ['OBJECT_DELETE', one.generation],
        ['OBJECT_METADATA_UPDATE', two.generation],
        ['OBJECT_DELETE', two.generation],
      ],
    )
    assert.equal(events[0]?.objectId, 'a b+ü')
    assert.equal(events[0]?.bucketId, bucket)
    assert.equal(events[1]?.overwroteGeneration, one.generation)
    const payload = sim.pubsub.subscription(subscription).messages[1]!.body
    const told = JSON.parse(Buffer.from(payload, 'base64').toString()) as Resource
    assert.equal(told.size, '2')
  })

  test('gets lost or comes twice, as it is asked for', async () => {
    const bucket = newBucket()
    const subscription = 'projects/p/subscriptions/weather'
    sim.pubsub.topics.subscribe(subscription, 'projects/p/topics/weather')
    sim.gcs.store.notify(bucket, { topic: 'projects/p/topics/weather' })
    const set = (faults: object) =>
      fetch(`${sim.controlUrl}/gcs/notices`, { method: 'PUT', body: JSON.stringify(faults) })
    await set({ lose: 1 })
    sim.gcs.store.put(bucket, 'lost', '')
    await set({ lose: 0, duplicate: 1 })
    sim.gcs.store.put(bucket, 'twice', '')
    await set({ duplicate: 0 })
    assert.deepEqual(
      published(subscription).map(({ objectId }) => objectId),
      ['twice', 'twice'],
    )
  })
})

describe('faults', () => {
  test('come in the shape of Google, and objects are missing or denied', async () => {
    const bucket = newBucket()
    await insert(bucket, 'a', 'x')
    const path = `${at(bucket, 'a')}?alt=media`
    sim.faults.set({ rules: [{ do: 'throttle', service: 'gcs', methods: ['gcs.objects.media'], max: 1 }] })
    assert.equal((await call('GET', path)).status, 429)
    sim.faults.set({ rules: [{ do: 'error', status: 503, target: `${bucket}/a` }] })
    assert.equal((await call('GET', path)).status, 503)
    sim.faults.clear()
    sim.gcs.store.refuse(bucket, 'a', 'denied')
    assert.equal((await call('GET', path)).status, 403)
    sim.gcs.store.refuse(bucket, 'a', 'missing')
    assert.equal((await call('GET', path)).status, 404)
    sim.gcs.store.allow(bucket, 'a')
    assert.equal((await call('GET', path)).status, 200)
  })
})
