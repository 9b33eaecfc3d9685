/** What becomes of objects that are stored: whatever is lost on the way, no byte of them is. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { GcsStore } from '../../cloud/gcs/client.ts'
import { FileStore } from '../../cloud/local-files/client.ts'
import type { ObjectStore } from '../../cloud/object-store.ts'
import { S3Store } from '../../cloud/s3/client.ts'
import { newToken } from '../../cloud/token-source.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { askAgain, QUIET_MS } from './dispose.ts'
import { IngestWorld, lines, NAME } from './ingest-world.suite.ts'
import { KeptObjects } from './kept-objects.ts'
import { hostOf, openBytes } from './object-bytes.ts'
import { type PipelineInput, shardRange, streamOf } from './pipeline.ts'
import { disposeJob, foundOf, preparePlacing } from './placing.ts'
import type { ShardRow } from './store/rows.ts'
import { pruneShards } from './store/shards.ts'

let sim: Sim
let number = 0
before(async () => {
  sim = await startSim({ s3: {}, gcs: {} })
})
after(() => sim.close())

type Site = {
  store: ObjectStore
  /** What is read, and where to it is moved. */
  location: string
  to: string
  put(key: string, text: string): void
  close(): void
}

const SITES: Readonly<Record<string, () => Site>> = {
  s3: () => s3Site(false),
  's3 with versions': () => s3Site(true),
  gcs: gcsSite,
  files: fileSite,
}

function s3Site(isVersioned: boolean): Site {
  const [bucket, done] = [`in-${++number}`, `done-${number}`]
  for (const name of [bucket, done]) sim.s3.store.createBucket(name, { isVersioned })
  const { region, accessKeyId, secretAccessKey } = sim.s3.account
  const credentials = { accessKeyId, secretAccessKey }
  const at = { region, endpoint: sim.s3.baseUrl, credentials, forcePathStyle: true }
  return {
    store: new S3Store({ clock: systemClock, ...at }),
    location: `s3://${bucket}/`,
    to: `s3://${done}/2026/`,
    put: (key, text) => void sim.s3.store.put(bucket, key, text),
    close: () => {},
  }
}

function gcsSite(): Site {
  const bucket = `in-${++number}`
  sim.gcs.store.createBucket(bucket)
  const token = newToken(sim.gcs.accessToken)
  return {
    store: new GcsStore({ fetch, clock: systemClock, token, apiUrl: sim.gcs.baseUrl }),
    location: `gs://${bucket}/`,
    to: `gs://${bucket}/done/`,
    put: (key, text) => void sim.gcs.store.put(bucket, key, text),
    close: () => {},
  }
}

function fileSite(): Site {
  const root = mkdtempSync(join(tmpdir(), 'tidemark-dispose-'))
  return {
    store: new FileStore({ root }),
    location: `file://${root}/`,
    to: `file://${root}/done/`,
    put: (key, text) => {
      mkdirSync(dirname(join(root, key)), { recursive: true })
      writeFileSync(join(root, key), text)
      makeOld(join(root, key))
    },
    close: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Nobody has written to it for long. */
function makeOld(path: string): void {
  const at = new Date(systemClock.now() - 2 * QUIET_MS)
  utimesSync(path, at, at)
}

/** More than a move or a deletion makes. */
const CALLS = 24

type Call = { name: string; uri: string }

/** Looks at every call, before and behind it. Throwing is a process that dies there: it is done again from the beginning. */
function watched(
  store: ObjectStore,
  look: (call: Call, when: 'before' | 'behind') => Promise<void>,
): ObjectStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return async (uri: string, ...rest: unknown[]) => {
        await look({ name: String(name), uri }, 'before')
        const answer: unknown = await value.call(target, uri, ...rest)
        await look({ name: String(name), uri }, 'behind')
        return answer
      }
    },
  })
}

const died = (): TidemarkError => new TidemarkError('it died here', { kind: 'throttled', retryAfterMs: 1 })

async function withWorld(
  site: Site,
  options: {
    after: PipelineInput['after']
    store?: ObjectStore
    location?: string
    database?: 'sqlite' | 'postgres'
  },
  use: (world: IngestWorld) => Promise<void>,
): Promise<void> {
  const config = {
    location: options.location ?? site.location,
    after: options.after,
    queue: { kind: 'inbox' as const },
  }
  const { database = 'sqlite' } = options
  const world = await IngestWorld.open({ config, store: options.store ?? site.store, database })
  try {
    await use(world)
  } finally {
    await world.close()
    site.close()
  }
}

async function rowOf(world: IngestWorld, uri: string): Promise<ShardRow> {
  const [row] = await world.process.kinds.tables.addressed(NAME, [uri], 1)
  assert.ok(row, uri)
  return row
}

/** `store`: unwatched. */
async function textOf(world: IngestWorld, row: ShardRow, store?: ObjectStore): Promise<string> {
  const { kinds } = world.process
  const pipelines = store
    ? Object.assign(Object.create(kinds.pipelines), { store: async () => store })
    : kinds.pipelines
  const open = await openBytes({ ...kinds, pipelines }, row, new AbortController().signal)
  const chunks: Uint8Array[] = []
  for await (const chunk of (await open(0)).bytes) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const heads = ({ store }: Site, uri: string) => store.head(uri, new AbortController().signal)

for (const [name, open] of Object.entries(SITES)) {
  describe(`an object of ${name} that is stored`, () => {
    for (const how of ['move', 'delete'] as const) {
      const after = ({ to }: Site): PipelineInput['after'] =>
        how === 'move' ? { do: 'move', to } : { do: 'delete' }

      test(`is gone after a ${how} that dies at any call, and its bytes are not`, async () => {
        const site = open()
        // The nth of them dies at its nth call, once.
        const keys = Array.from({ length: CALLS }, (_, n) => `in/a b ${n}.ndjson`)
        const textAt = (key: string): string => `${lines(3, key)}\nnot json\n`
        for (const key of keys) site.put(key, textAt(key))
        const calls = keys.map(() => 0)
        const wrong: string[] = []
        const holder: { world?: IngestWorld } = {}
        const store = watched(site.store, async ({ name: call, uri }, when) => {
          if (!holder.world || !['copy', 'remove', 'head', 'read'].includes(call)) return
          const n = Number(/a b (\d+)\.ndjson$/.exec(uri)?.[1])
          if (call === 'remove' && when === 'before') {
            const row = await rowOf(holder.world, uri)
            const isKept =
              row.disposed_to !== null && (await textOf(holder.world, row, site.store)) === textAt(keys[n]!)
            if (!isKept) wrong.push(`${uri} is removed while it is ${row.disposed}`)
          }
          if (calls[n]!++ === n) throw died()
        })
        await withWorld(site, { after: after(site), store }, async (world) => {
          const { engine, kinds } = world.process
          await engine.pause('kind', kinds.dispose.kind)
          await engine.enqueue(kinds.list, { pipeline: NAME }, { stream: streamOf(NAME) })
          while ((await world.status()).objects.stored < CALLS)
            await new Promise((done) => setImmediate(done))
          holder.world = world
          await engine.resume('kind', kinds.dispose.kind)
          await world.settle()
          delete holder.world
          assert.deepEqual(wrong, [])
          assert.ok(Math.min(...calls.map((count, n) => n - count)) < 0, 'some call was not the last')
          assert.ok(calls.at(-1)! < CALLS, `the last of them was not disturbed: ${calls}`)
          for (const key of keys) {
            const row = await rowOf(world, `${site.location}${key}`)
            assert.equal(await heads(site, row.uri), undefined, row.uri)
            assert.equal(row.disposed, how === 'move' ? 'moved' : 'deleted')
            assert.equal(await textOf(world, row), textAt(key))
          }
          await world.list()
          assert.equal((await world.status()).objects.total, CALLS, 'what was moved is not read again')
          assert.equal((await world.seen()).length, 3 * CALLS)
        })
      })

      test(`stays where a ${how} finds it to be another, or may not remove it`, async () => {
        const site = open()
        site.put('a.ndjson', lines(2))
        site.put('b.ndjson', lines(2))
        const [a, b] = [`${site.location}a.ndjson`, `${site.location}b.ndjson`]
        const store = watched(site.store, async ({ name: call, uri }, when) => {
          if (call !== 'remove' || when !== 'before') return
          if (uri === b) throw new TidemarkError('it may not', { kind: 'permanent', code: 'object-denied' })
          // Somebody is faster.
          site.put('a.ndjson', lines(5, 'new'))
        })
        await withWorld(site, { after: after(site), store }, async (world) => {
          await world.list()
          assert.ok(await heads(site, b))
          const left = await rowOf(world, b)
          assert.equal(left.disposed, 'object-denied')
          assert.notEqual(left.disposed_to, null)
          assert.ok(await heads(site, a), 'what nobody has read yet is there')
          assert.equal((await rowOf(world, a)).disposed, 'object-replaced')
        })
      })
    }

    test('is replayed from where it was moved to, or kept', async () => {
      for (const how of ['move', 'delete'] as const) {
        const site = open()
        const long = JSON.stringify({ m: 'long '.repeat(300) })
        site.put('a.ndjson', [lines(2), long, lines(1)].join('\n'))
        const does: PipelineInput['after'] = how === 'move' ? { do: 'move', to: site.to } : { do: 'delete' }
        await withWorld(site, { after: does }, async (world) => {
          const { kinds, engine } = world.process
          kinds.settings.limits = { recordBytesMax: 500, expansionMax: 1_000 }
          await world.list()
          const row = await rowOf(world, `${site.location}a.ndjson`)
          assert.equal(await heads(site, row.uri), undefined)
          assert.equal((await world.seen()).length, 3)
          kinds.settings.limits = { recordBytesMax: 10_000, expansionMax: 1_000 }
          await engine.enqueue(kinds.replay, { pipeline: NAME, shard: row.id }, { stream: streamOf(NAME) })
          await world.settle()
          assert.equal((await world.seen()).length, 4)
        })
      }
    })
  })
}

describe('an object that is moved', () => {
  test('waits while its store is away, and is moved when that is back', async () => {
    const site = s3Site(false)
    site.put('a.ndjson', lines(2))
    let isAway = false
    const store = watched(site.store, async () => {
      if (isAway) throw new TidemarkError('away', { kind: 'transient' })
    })
    await withWorld(site, { after: { do: 'move', to: site.to }, store }, async (world) => {
      const { engine, kinds } = world.process
      await engine.pause('kind', kinds.dispose.kind)
      await engine.enqueue(kinds.list, { pipeline: NAME }, { stream: streamOf(NAME) })
      while ((await world.status()).objects.stored < 1) await new Promise((done) => setImmediate(done))
      isAway = true
      await engine.resume('kind', kinds.dispose.kind)
      while (!kinds.obstacles.of(NAME)) await new Promise((done) => setImmediate(done))
      assert.equal((await rowOf(world, `${site.location}a.ndjson`)).disposed, null)
      isAway = false
      await world.settle()
      assert.equal((await rowOf(world, `${site.location}a.ndjson`)).disposed, 'moved')
    })
  })

  test('takes no place that something else has', async () => {
    const site = s3Site(false)
    site.put('a.ndjson', lines(2))
    const target = site.to.slice('s3://'.length).split('/')
    sim.s3.store.put(target[0]!, '2026/a.ndjson', 'of somebody else')
    await withWorld(site, { after: { do: 'move', to: site.to } }, async (world) => {
      await world.list()
      const row = await rowOf(world, `${site.location}a.ndjson`)
      assert.equal(row.disposed_to, `${site.to}a.ndjson.${row.id.slice(0, 12)}`)
      assert.equal(await textOf(world, row), lines(2))
    })
  })

  test('is moved again when somebody puts the same there once more, told of it by a message or a listing', async () => {
    const site = s3Site(false)
    site.put('a.ndjson', lines(2))
    await withWorld(site, { after: { do: 'move', to: site.to } }, async (world) => {
      await world.list()
      const uri = `${site.location}a.ndjson`
      assert.equal(await heads(site, uri), undefined)
      site.put('a.ndjson', lines(2))
      await world.list()
      assert.equal(await heads(site, uri), undefined, 'found by a listing')
      site.put('a.ndjson', lines(2))
      world.queue.send({ uri })
      await world.run()
      await world.settle()
      assert.equal(await heads(site, uri), undefined, 'announced')
      assert.equal((await rowOf(world, uri)).disposed, 'moved')
      assert.equal((await world.seen()).length, 2, 'nothing is published twice')
    })
  })

  /** What S3 tells of a version. */
  const announce = (
    world: IngestWorld,
    { location }: Site,
    { etag, versionId }: { etag: string; versionId?: string | null },
    sequencer: string,
  ): void => {
    const object = { key: 'a.ndjson', size: 10, eTag: etag, versionId: versionId ?? undefined, sequencer }
    const s3 = { bucket: { name: bucketOf({ location }) }, object }
    const event = { eventSource: 'aws:s3', eventName: 'ObjectCreated:Put', eventVersion: '2.1', s3 }
    world.queue.send({ Records: [event] })
  }
  const bucketOf = ({ location }: Pick<Site, 'location'>): string => location.slice('s3://'.length, -1)
  const put = (site: Site, word: string) => sim.s3.store.put(bucketOf(site), 'a.ndjson', lines(2, word))
  const takeAway = (site: Site) => sim.s3.store.remove(bucketOf(site), 'a.ndjson')

  test('makes way for a newer version that was announced, and that somebody took away before it was read', async () => {
    for (const does of ['move', 'delete'] as const) {
      const site = s3Site(true)
      const after: PipelineInput['after'] = does === 'move' ? { do: does, to: site.to } : { do: does }
      await withWorld(site, { after }, async (world) => {
        announce(world, site, put(site, 'old'), '01')
        await world.run()
        assert.equal((await rowOf(world, `${site.location}a.ndjson`)).disposed_to === null, false)
        const newer = put(site, 'new')
        takeAway(site)
        announce(world, site, newer, '02')
        await world.run()
        assert.deepEqual(await world.seen(), ['new 0', 'new 1'])
      })
    }
  })

  for (const path of ['a listing', 'an announcement'] as const) {
    test(`makes way for a newer version that ${path} told of, and that is gone when its last byte is read`, async () => {
      const site = s3Site(false)
      let isTaken = false
      const store = watched(site.store, async ({ name }, when) => {
        if (isTaken && name === 'read' && when === 'behind') takeAway(site)
      })
      await withWorld(site, { after: { do: 'move', to: site.to }, store }, async (world) => {
        const tell = async (version: { etag: string }, sequencer: string): Promise<void> => {
          if (path === 'a listing') return world.list()
          announce(world, site, version, sequencer)
          await world.run()
        }
        await tell(put(site, 'old'), '01')
        isTaken = true
        await tell(put(site, 'new'), '02')
        assert.deepEqual(await world.seen(), ['new 0', 'new 1'])
      })
    })
  }

  test('stays what is seen when it was put there again, and taken away again, while the other was read', async () => {
    const site = s3Site(true)
    const uri = `${site.location}a.ndjson`
    let again: (() => Promise<void>) | undefined
    const store = watched(site.store, async ({ name }, when) => {
      if (name !== 'read' || when !== 'behind') return
      const run = again
      again = undefined
      await run?.()
    })
    await withWorld(site, { after: { do: 'move', to: site.to }, store }, async (world) => {
      const { engine, kinds } = world.process
      announce(world, site, put(site, 'old'), '01')
      await world.run()
      again = async () => {
        put(site, 'old')
        await engine.enqueue(kinds.list, { pipeline: NAME }, { stream: streamOf(NAME) })
        while (await heads(site, uri)) await new Promise((resolve) => setImmediate(resolve))
      }
      announce(world, site, put(site, 'new'), '02')
      await world.run()
      assert.deepEqual(await world.seen(), ['old 0', 'old 1'])
    })
  })

  for (const database of ['sqlite', 'postgres'] as const) {
    for (const does of ['move', 'delete'] as const) {
      test(`stays what is seen when a ${does} was the only one to see that it was back while the other was read, on ${database}`, async () => {
        const site = s3Site(true)
        const uri = `${site.location}a.ndjson`
        const after: PipelineInput['after'] = does === 'move' ? { do: does, to: site.to } : { do: does }
        let again: (() => Promise<void>) | undefined
        const store = watched(site.store, async ({ name }, when) => {
          if (name !== 'read' || when !== 'behind') return
          const run = again
          again = undefined
          await run?.()
        })
        await withWorld(site, { after, store, database }, async (world) => {
          const { engine, kinds, receiver } = world.process
          await engine.pause('kind', kinds.dispose.kind)
          announce(world, site, put(site, 'old'), '01')
          await receiver.drain(new AbortController().signal)
          while ((await world.status()).objects.stored < 1) await new Promise((done) => setImmediate(done))
          again = async () => {
            put(site, 'old')
            await engine.resume('kind', kinds.dispose.kind)
            while (await heads(site, uri)) await new Promise((resolve) => setImmediate(resolve))
          }
          announce(world, site, put(site, 'new'), '02')
          await world.run()
          assert.deepEqual(await world.seen(), ['old 0', 'old 1'])
        })
      })
    }
  }

  test('stays what is seen when an older version is told of after it was taken away', async () => {
    for (const does of ['move', 'delete'] as const) {
      const site = s3Site(true)
      const uri = `${site.location}a.ndjson`
      const old = put(site, 'old')
      site.put('a.ndjson', lines(2, 'new'))
      const after: PipelineInput['after'] = does === 'move' ? { do: does, to: site.to } : { do: does }
      await withWorld(site, { after }, async (world) => {
        await world.list()
        assert.equal(await heads(site, uri), undefined)
        // What was listed has no sequencer: only the store knew which of them is newer.
        announce(world, site, old, '00FF')
        await world.run()
        assert.deepEqual(await world.seen(), ['new 0', 'new 1'])
      })
    }
  })

  test('is asked for again when what kept it where it is has been mended', async () => {
    const site = s3Site(false)
    site.put('a.ndjson', lines(2))
    let isForbidden = true
    const store = watched(site.store, async (call) => {
      if (isForbidden && call.name === 'copy')
        throw new TidemarkError('no', { kind: 'permanent', code: 'object-denied' })
    })
    await withWorld(site, { after: { do: 'move', to: site.to }, store }, async (world) => {
      const { engine, kinds } = world.process
      const uri = `${site.location}a.ndjson`
      await world.list()
      assert.equal((await rowOf(world, uri)).disposed, 'object-denied')
      isForbidden = false
      await world.list()
      assert.ok(await heads(site, uri), 'nobody has asked')
      const jobs = await askAgain(kinds, NAME)
      assert.equal(jobs.length, 1)
      await engine.write({ jobs })
      await world.settle()
      assert.equal((await rowOf(world, uri)).disposed, 'moved')
      assert.equal(await heads(site, uri), undefined)
      assert.deepEqual(await askAgain(kinds, NAME), [])
    })
  })

  for (const missing of [0, 1]) {
    const title = missing === 0 ? 'when all its records are there' : 'not when one of its records is missing'
    test(`is, after its row was pruned, moved ${title}`, async () => {
      const site = s3Site(false)
      const uri = `${site.location}a.ndjson`
      put(site, 'one')
      let isForbidden = true
      const store = watched(site.store, async ({ name }) => {
        if (isForbidden && name === 'copy')
          throw new TidemarkError('no', { kind: 'permanent', code: 'object-denied' })
      })
      await withWorld(site, { after: { do: 'move', to: site.to }, store }, async (world) => {
        const { ledger, search } = world.process
        await world.list()
        const { id } = await rowOf(world, uri)
        takeAway(site)
        await world.list()
        await ledger.transaction(async (tx) => {
          const beforeMs = world.clock.now() + 1_000
          await pruneShards(tx, { pipeline: NAME, overwrites: 'append', beforeMs, limit: 10 })
          if (missing > 0) await search.removeRange(tx, shardRange(NAME, id), missing)
        })
        assert.equal(await world.rows('ingest_shards'), 0)
        isForbidden = false
        put(site, 'one')
        await world.list()
        const { disposed, code } = await rowOf(world, uri)
        assert.deepEqual([disposed, code], [missing === 0 ? 'moved' : 'not-proven', 'known'])
        assert.equal((await heads(site, uri)) === undefined, missing === 0)
      })
    })
  }

  test('is moved by the next listing where its row was pruned while somebody placed it', async () => {
    const site = s3Site(false)
    const uri = `${site.location}a.ndjson`
    put(site, 'one')
    let isForbidden = true
    const store = watched(site.store, async ({ name }) => {
      if (isForbidden && name === 'copy')
        throw new TidemarkError('no', { kind: 'permanent', code: 'object-denied' })
    })
    await withWorld(site, { after: { do: 'move', to: site.to }, store }, async (world) => {
      const { ledger, engine, kinds } = world.process
      await world.list()
      const { version } = await rowOf(world, uri)
      takeAway(site)
      await world.list()
      isForbidden = false
      put(site, 'one')
      const found = foundOf(uri, { id: version }, { sizeBytes: null, isCurrent: true })
      const { jobs, place } = await preparePlacing(kinds, NAME, [found])
      const beforeMs = world.clock.now() + 1_000
      await ledger.transaction((tx) =>
        pruneShards(tx, { pipeline: NAME, overwrites: 'append', beforeMs, limit: 10 }),
      )
      await engine.write({ jobs, effects: async (tx) => void (await place(tx)) })
      await world.list()
      const { disposed, code } = await rowOf(world, uri)
      assert.deepEqual([disposed, code], ['moved', 'known'])
      assert.equal(await heads(site, uri), undefined)
    })
  })

  test('is moved when it was stored anew while its job found that nothing was to be done', async () => {
    const site = s3Site(false)
    const uri = `${site.location}a.ndjson`
    put(site, 'one')
    let onHead = async (): Promise<void> => {}
    const store = watched(site.store, async ({ name }, when) => {
      if (name === 'head' && when === 'behind') await onHead()
    })
    await withWorld(site, { after: { do: 'move', to: site.to }, store }, async (world) => {
      const { ledger, engine, kinds } = world.process
      await world.list()
      const row = await rowOf(world, uri)
      assert.equal(row.disposed, 'moved')
      // As by whoever reads it once more, whose job for this finds the key taken.
      onHead = async () => {
        onHead = async () => {}
        put(site, 'one')
        await ledger.transaction((tx) => tx.run(`UPDATE ingest_shards SET disposed = NULL`))
      }
      await engine.write({ jobs: [disposeJob(kinds, NAME, row)] })
      await world.settle()
      assert.equal((await rowOf(world, uri)).disposed, 'moved')
      assert.equal(await heads(site, uri), undefined)
    })
  })

  test('is counted, with all that lies there, where objects are moved to below what is listed', async () => {
    const site = s3Site(false)
    site.put('a.ndjson', lines(2))
    site.put('done/of-somebody-else.ndjson', lines(2))
    await withWorld(site, { after: { do: 'move', to: `${site.location}done/` } }, async (world) => {
      await world.list()
      await world.list()
      const { listing, objects } = await world.status()
      assert.deepEqual([listing?.total, listing?.leftOut, objects.total], [0, 2, 1])
    })
  })

  test('is not read again when somebody announces the copy', async () => {
    const site = s3Site(false)
    site.put('a.ndjson', lines(2))
    await withWorld(site, { after: { do: 'move', to: site.to } }, async (world) => {
      await world.list()
      world.queue.send({ uri: `${site.to}a.ndjson` })
      await world.run()
      const { objects, messages } = await world.status()
      assert.deepEqual([objects.total, messages.dropped, world.queue.acknowledged.length], [1, 1, 1])
    })
  })
})

for (const how of ['move', 'delete'] as const) {
  test(`a file that somebody still writes is not taken from them by a ${how}`, async () => {
    const site = fileSite()
    const path = `${site.location.slice('file://'.length)}a.ndjson`
    writeFileSync(path, `${lines(2, 'first')}\n`)
    const does: PipelineInput['after'] = how === 'move' ? { do: 'move', to: site.to } : { do: 'delete' }
    await withWorld(site, { after: does }, async (world) => {
      const { engine, kinds, ledger } = world.process
      const list = () => engine.enqueue(kinds.list, { pipeline: NAME }, { stream: streamOf(NAME) })
      const waiting = async (count: number): Promise<void> => {
        for (;;) {
          const jobs = await ledger.jobs({ state: 'pending', stream: streamOf(NAME), limit: 10 })
          if (jobs.filter(({ run_at: at }) => (at ?? 0) > world.clock.now()).length === count) return
          await new Promise((done) => setImmediate(done))
        }
      }
      await list()
      await waiting(1)
      appendFileSync(path, `${lines(2, 'second')}\n`)
      await list()
      await waiting(2)
      assert.ok(existsSync(path))
      assert.equal((await world.seen()).length, 4)
      world.clock.aheadMs += 2 * QUIET_MS
      engine.wake()
      await world.settle()
      assert.ok(!existsSync(path), 'it goes when it was left alone for long')
      const all = await kinds.tables.addressed(NAME, [`file://${path}`], 10)
      const [row] = all.filter(({ state }) => state === 'stored')
      assert.equal(await textOf(world, row!), `${lines(2, 'first')}\n${lines(2, 'second')}\n`)
    })
  })
}

for (const how of ['move', 'delete'] as const) {
  for (const isReplaced of [false, true]) {
    const what = isReplaced ? 'puts a newer file back that had taken its place' : 'leaves nothing aside'
    test(`a ${how} of a file that dies in the middle of the removal ${what}`, async () => {
      const site = fileSite()
      const root = site.location.slice('file://'.length)
      const path = join(root, 'a.ndjson')
      site.put('a.ndjson', lines(2, 'old'))
      const { store } = site
      const remove = store.remove!.bind(store)
      let hasDied = false
      store.remove = async (uri, version) => {
        if (hasDied) return remove(uri, version)
        hasDied = true
        if (isReplaced) site.put('a.ndjson', lines(3, 'new'))
        const name = createHash('sha256').update(path).digest('hex').slice(0, 16)
        renameSync(path, join(root, `.tidemark-aside-${name}`))
        throw new TidemarkError('died behind the rename', { kind: 'throttled', retryAfterMs: 1 })
      }
      const does: PipelineInput['after'] = how === 'move' ? { do: 'move', to: site.to } : { do: 'delete' }
      await withWorld(site, { after: does }, async (world) => {
        await world.list()
        await world.list()
        assert.deepEqual(
          readdirSync(root).filter((name) => name.startsWith('.')),
          [],
        )
        assert.ok((await world.seen()).length >= (isReplaced ? 3 : 2), 'what was put back is read')
      })
    })
  }
}

describe('an object that is deleted', () => {
  test('has a copy that tells what it is, and is not removed when that is damaged', async () => {
    const site = s3Site(false)
    site.put('a.ndjson', lines(2))
    const holder: { path?: string } = {}
    const store = watched(site.store, async () => {})
    await withWorld(site, { after: { do: 'delete' }, store }, async (world) => {
      const { kept, tables } = world.process.kinds
      const holds = kept.holds.bind(kept)
      kept.holds = async (as, sha256, reading) => {
        holder.path = kept.pathOf(as)
        writeFileSync(holder.path, 'damaged by a disk')
        return holds(as, sha256, reading)
      }
      await world.list()
      const row = await rowOf(world, `${site.location}a.ndjson`)
      assert.ok(await heads(site, row.uri), 'it is still there')
      assert.equal(row.disposed, 'not-kept')
      assert.equal(hostOf(row.disposed_to), 'this-machine')
      const told = JSON.parse(readFileSync(holder.path!.replace(/zst$/, 'json'), 'utf8'))
      assert.deepEqual([told.uri, told.sizeBytes], [row.uri, lines(2).length])
      assert.equal((await tables.shard(NAME, row.id))!.state, 'stored')
    })
  })

  test('stays where its store tells of other bytes than those that came', async () => {
    for (const told of [{ sizeBytes: null }, { sizeBytes: 1 }, { hash: 'md5 AAAAAAAAAAAAAAAAAAAAAA==' }]) {
      const site = gcsSite()
      site.put('a.ndjson', lines(2))
      const asked = site.store.head.bind(site.store)
      site.store.head = async (uri, signal) => {
        const real = await asked(uri, signal)
        return real && { ...real, ...told }
      }
      await withWorld(site, { after: { do: 'delete' } }, async (world) => {
        await world.list()
        const row = await rowOf(world, `${site.location}a.ndjson`)
        assert.deepEqual([row.state, row.disposed], ['stored', 'unable'], JSON.stringify(told))
        assert.ok(await heads(site, row.uri))
      })
    }
  })

  test('is kept with its type, for its owner alone, and read by whatever name the machine has', async () => {
    const site = gcsSite()
    site.put('a.ndjson', lines(2))
    await withWorld(site, { after: { do: 'delete' } }, async (world) => {
      await world.list()
      const { kinds } = world.process
      const row = await rowOf(world, `${site.location}a.ndjson`)
      const path = kinds.kept.pathOf({ pipeline: NAME, shard: row.id })
      const told = JSON.parse(readFileSync(path.replace(/zst$/, 'json'), 'utf8'))
      assert.ok('contentType' in told && 'contentEncoding' in told)
      const modes = [path, path.replace(/zst$/, 'json'), dirname(path), kinds.kept.folder].map(
        (one) => statSync(one).mode & 0o777,
      )
      assert.deepEqual(modes, [0o600, 0o600, 0o700, 0o700])
      kinds.kept = new KeptObjects({ home: world.home, host: 'renamed' })
      assert.equal(await textOf(world, row), lines(2))
    })
  })

  test('reports progress while its copy is written and read back', async () => {
    const kept = new KeptObjects({ home: mkdtempSync(join(tmpdir(), 'tidemark-kept-')), host: 'here' })
    const as = { pipeline: NAME, shard: 'abcdef' }
    let reported = 0
    const onBytes = (): void => {
      reported += 1
    }
    const { signal } = new AbortController()
    const of = { by: '1', uri: 's3://b/a', version: '1', contentType: null, contentEncoding: null }
    const bytes = async function* () {
      yield Buffer.from('a')
      assert.equal(reported, 1)
      yield Buffer.from('b')
    }
    const { sha256 } = await kept.put(as, bytes(), { ...of, nowMs: 0, signal, onBytes })
    const written = reported
    assert.ok(written > 2, 'it was read back')
    assert.ok(await kept.holds(as, sha256, { onBytes, signal }))
    assert.ok(reported > written)
    await assert.rejects(kept.holds(as, sha256, { signal: AbortSignal.abort() }))
    rmSync(dirname(dirname(kept.folder)), { recursive: true, force: true })
  })
})

test('a file is not moved to a folder that is reached by a link: it would be read there as a new one', async () => {
  const site = fileSite()
  const root = site.location.slice('file://'.length)
  mkdirSync(join(root, 'real'))
  symlinkSync(join(root, 'real'), join(root, 'done'))
  site.put('a.ndjson', lines(2))
  await withWorld(site, { after: { do: 'move', to: `${site.location}done/` } }, async (world) => {
    await world.list()
    await world.list()
    assert.equal((await rowOf(world, `${site.location}a.ndjson`)).disposed, 'other-name')
    assert.deepEqual(readdirSync(join(root, 'real')), [])
    assert.ok(existsSync(join(root, 'a.ndjson')))
    assert.equal((await world.seen()).length, 2)
  })
})
