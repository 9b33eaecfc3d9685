import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import type { FaultRule } from '../../sim/fault-rules.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { collect, failure, never, type StoreSite, testObjectStore } from '../object-store.suite.ts'
import { S3Store } from './client.ts'

const clock = new FakeClock()
let sim: Sim
let number = 0

before(async () => {
  sim = await startSim({ clock, s3: {} })
})
after(() => sim.close())

async function openSite({ isVersioned = false } = {}): Promise<StoreSite & { bucket: string }> {
  sim.faults.clear()
  number += 1
  const bucket = `bucket-${number}`
  sim.s3.store.createBucket(bucket, { isVersioned })
  const { region, accessKeyId, secretAccessKey } = sim.s3.account
  const store = new S3Store({
    clock,
    region,
    endpoint: sim.s3.baseUrl,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
  })
  return {
    bucket,
    store,
    uriOf: (key) => `s3://${bucket}/${key}`,
    put: async (key, bytes) => void sim.s3.store.put(bucket, key, bytes),
    remove: async (key) => void sim.s3.store.remove(bucket, key),
    deny: async (key) => sim.s3.store.refuse(bucket, key, 'denied'),
    breakOff: async (how) =>
      fault({ do: 'truncate', share: 0.4, close: how === 'cut', methods: ['s3.GetObject'] }),
    mend: async () => sim.faults.clear(),
    close: () => store.close(),
  }
}

function fault(rule: FaultRule): void {
  sim.faults.set({ rules: [rule] })
}

for (const isVersioned of [false, true]) {
  testObjectStore({
    name: isVersioned ? 'S3 with versions' : 'S3',
    open: () => openSite({ isVersioned }),
    canBreakOff: true,
    canList: true,
    canMove: true,
    canTag: true,
  })
}

const whole = { version: null, fromByte: 0, signal: never() }

describe('a bucket of S3', () => {
  test('gives an old version to who names its id', async () => {
    const site = await openSite({ isVersioned: true })
    await site.put('a', Buffer.from('one'))
    const { version } = (await site.store.head(site.uriOf('a'), never()))!
    await site.put('a', Buffer.from('two'))
    const body = await site.store.read(site.uriOf('a'), { ...whole, version })
    assert.equal((await collect(body.bytes)).toString(), 'one')
    await site.close()
  })

  test('keeps the versions of what is removed', async () => {
    const site = await openSite({ isVersioned: true })
    await site.put('a', Buffer.from('one'))
    const { version } = (await site.store.head(site.uriOf('a'), never()))!
    await site.store.remove!(site.uriOf('a'), version)
    assert.equal(await site.store.head(site.uriOf('a'), never()), undefined)
    const body = await site.store.read(site.uriOf('a'), { ...whole, version })
    assert.equal((await collect(body.bytes)).toString(), 'one')
    await site.close()
  })

  test('keeps the tags that an object has', async () => {
    const site = await openSite()
    await site.put('a', Buffer.from('one'))
    const { version } = (await site.store.head(site.uriOf('a'), never()))!
    await site.store.tag!(site.uriOf('a'), version, { first: '1' })
    await site.store.tag!(site.uriOf('a'), version, { second: '2' })
    assert.deepEqual({ ...sim.s3.store.bucket(site.bucket).current('a')?.tags }, { first: '1', second: '2' })
    await site.close()
  })

  test('refuses a tag beyond the tenth, and takes none away', async () => {
    const site = await openSite()
    await site.put('a', Buffer.from('one'))
    const { version } = (await site.store.head(site.uriOf('a'), never()))!
    const ten = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`tag${n}`, 'theirs']))
    await site.store.tag!(site.uriOf('a'), version, ten)
    const error = await failure(site.store.tag!(site.uriOf('a'), version, { ingested: 'yes' }))
    assert.deepEqual([error.kind, error.code], ['permanent', 'too-many-tags'])
    assert.deepEqual({ ...sim.s3.store.bucket(site.bucket).current('a')?.tags }, ten)
    await site.store.tag!(site.uriOf('a'), version, { tag3: 'changed' })
    await site.close()
  })

  test('is asked once by each call: whoever calls retries', async () => {
    const site = await openSite()
    await site.put('a', Buffer.from('one'))
    const before = sim.log.served
    fault({ do: 'throttle', status: 503, methods: ['s3.GetObject'] })
    const error = await failure(site.store.read(site.uriOf('a'), whole))
    assert.deepEqual([error.kind, sim.log.served - before], ['throttled', 1])
    await site.close()
  })

  test('that is not there, keys that are wrong and servers that fail are told apart', async () => {
    const site = await openSite()
    await site.put('a', Buffer.from('one'))
    const nowhere = await failure(site.store.read('s3://nowhere/a', whole))
    assert.deepEqual([nowhere.kind, nowhere.code], ['permanent', 'bucket-missing'])
    const list = await failure(
      site.store.list({ prefix: 's3://nowhere/', after: null, max: 1, signal: never() }),
    )
    assert.equal(list.code, 'bucket-missing')
    fault({ do: 'error', status: 500, methods: ['s3.GetObject'] })
    assert.equal((await failure(site.store.read(site.uriOf('a'), whole))).kind, 'transient')
    fault({ do: 'reset', methods: ['s3.GetObject'] })
    assert.equal((await failure(site.store.read(site.uriOf('a'), whole))).kind, 'transient')
    sim.faults.clear()
    const { region } = sim.s3.account
    const credentials = { accessKeyId: 'AKIAWRONG', secretAccessKey: 'x' }
    const stranger = new S3Store({
      clock,
      region,
      endpoint: sim.s3.baseUrl,
      credentials,
      forcePathStyle: true,
    })
    const refused = await failure(stranger.read(site.uriOf('a'), whole))
    assert.deepEqual([refused.kind, refused.code], ['auth', 'credentials-refused'])
    const wrong = await failure(site.store.read('s3://', whole))
    assert.deepEqual([wrong.kind, wrong.code], ['permanent', 'object-address'])
    await stranger.close()
    await site.close()
  })
})
