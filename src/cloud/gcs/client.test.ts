import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { FakeClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { collect, failure, never, type StoreSite, testObjectStore } from '../object-store.suite.ts'
import { startServer } from '../scripted-server.suite.ts'
import { newToken } from '../token-source.ts'
import { GcsStore } from './client.ts'

const clock = new FakeClock()
let sim: Sim
let number = 0

before(async () => {
  sim = await startSim({ clock, gcs: {} })
})
after(() => sim.close())

async function openSite({ isVersioned = false } = {}): Promise<StoreSite> {
  sim.faults.clear()
  number += 1
  const bucket = `bucket-${number}`
  sim.gcs.store.createBucket(bucket, { isVersioned })
  return {
    store: openStore(sim.gcs.baseUrl),
    uriOf: (key) => `gs://${bucket}/${key}`,
    put: async (key, bytes) => void sim.gcs.store.put(bucket, key, bytes),
    remove: async (key) => void sim.gcs.store.remove(bucket, key),
    deny: async (key) => sim.gcs.store.refuse(bucket, key, 'denied'),
    breakOff: async (how) =>
      void sim.faults.set({
        rules: [{ do: 'truncate', share: 0.4, close: how === 'cut', methods: [DOWNLOAD] }],
      }),
    mend: async () => sim.faults.clear(),
    close: async () => {},
  }
}

const DOWNLOAD = 'gcs.objects.media'

function openStore(apiUrl: string, token = sim.gcs.accessToken): GcsStore {
  return new GcsStore({ fetch, clock, token: newToken(token), apiUrl })
}

testObjectStore({
  name: 'Cloud Storage',
  open: openSite,
  canBreakOff: true,
  canList: true,
  canMove: true,
  canTag: true,
})

const whole = { version: null, fromByte: 0, signal: never() }

describe('a bucket of Cloud Storage', () => {
  test('gives an old generation to who names it', async () => {
    const site = await openSite({ isVersioned: true })
    await site.put('a', Buffer.from('one'))
    const { id } = (await site.store.head(site.uriOf('a'), never()))!.version
    await site.put('a', Buffer.from('two'))
    const body = await site.store.read(site.uriOf('a'), { ...whole, version: { id, versionId: id } })
    assert.equal((await collect(body.bytes)).toString(), 'one')
  })

  test('that is not there, tokens that are wrong and servers that fail are told apart', async () => {
    const site = await openSite()
    await site.put('a', Buffer.from('one'))
    const uri = site.uriOf('a')
    const page = { prefix: 'gs://nowhere/', after: null, max: 1, signal: never() }
    assert.equal((await failure(site.store.list(page))).code, 'bucket-missing')
    assert.equal((await failure(openStore(sim.gcs.baseUrl, 'wrong').read(uri, whole))).kind, 'auth')
    sim.faults.set({ rules: [{ do: 'error', status: 503 }] })
    assert.equal((await failure(site.store.read(uri, whole))).kind, 'transient')
    sim.faults.set({ rules: [{ do: 'throttle', status: 429 }] })
    assert.equal((await failure(site.store.read(uri, whole))).kind, 'throttled')
    sim.faults.set({ rules: [{ do: 'reset' }] })
    assert.equal((await failure(site.store.read(uri, whole))).kind, 'transient')
  })

  test('says nothing about an object by the page of a proxy', async () => {
    const server = await startServer(
      (_, answer) => void answer.writeHead(404, { 'content-type': 'text/html' }).end('<html>Sign in</html>'),
    )
    const error = await failure(openStore(server.url, 't').read('gs://b/a', whole))
    assert.deepEqual([error.kind, error.code], ['transient', 'not-gcs'])
    await server.close()
  })

  test('gives what it keeps packed unpacked, from any byte on', async () => {
    const plain = Buffer.from('hello, hello, hello')
    const encodings: string[] = []
    // Asked for as it is, Cloud Storage unpacks, and gives the whole whatever range was asked for.
    const server = await startServer((request, answer) => {
      // `fetch` adds one of its own to every range.
      encodings.push(...String(request.headers['accept-encoding']).split(', '))
      const stored = { 'x-goog-stored-content-encoding': 'gzip', 'x-goog-generation': '7' }
      answer.writeHead(200, { ...stored, 'x-goog-stored-content-length': String(gzipSync(plain).length) })
      answer.end(plain)
    })
    const store = openStore(server.url, 't')
    for (const fromByte of [0, 7]) {
      const body = await store.read('gs://b/a', { ...whole, fromByte, version: { id: '7' } })
      assert.deepEqual([body.sizeBytes, body.contentEncoding], [null, null])
      assert.equal((await collect(body.bytes)).toString(), plain.toString().slice(fromByte))
    }
    assert.deepEqual([...new Set(encodings)], ['identity'])
    await server.close()
  })
})
