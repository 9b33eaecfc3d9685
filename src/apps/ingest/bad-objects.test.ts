/** What is wrong with objects and messages is registered with its reason, and stops nothing else. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { TidemarkError } from '../../base/errors.ts'
import { IngestWorld, lines, NAME, type WorldOptions } from './ingest-world.suite.ts'
import { streamOf } from './pipeline.ts'

type Ending = { state: string; code: string | null; published: number; quarantined: number }

async function endings(world: IngestWorld): Promise<Record<string, Ending>> {
  const rows = await world.process.kinds.tables.shards({ pipeline: NAME, after: '', limit: 100 })
  return Object.fromEntries(
    rows.map(({ uri, state, code, published, quarantined }) => [
      uri.slice('s3://bucket/'.length),
      { state, code, published, quarantined },
    ]),
  )
}

async function withWorld(
  database: 'sqlite' | 'postgres',
  run: (world: IngestWorld) => Promise<void>,
  config: WorldOptions['config'] = {},
) {
  const world = await IngestWorld.open({ database, config })
  try {
    await run(world)
  } finally {
    await world.close()
  }
}

const LINE_BYTES = 100_000_000

describe('a pipeline goes on', () => {
  for (const database of ['sqlite', 'postgres'] as const) {
    test(`past objects that are truncated, in another encoding, empty, missing, denied or change midway, on ${database}`, () =>
      withWorld(database, async (world) => {
        const { store } = world
        const whole = gzipSync(lines(200))
        store.put('truncated.ndjson.gz', whole.subarray(0, whole.length - 60))
        store.put('latin1.ndjson', Buffer.from('{"m":"good"}\n{"m":"gr\xfc\xdfe"}\n{"m":"good"}\n', 'latin1'))
        store.put('empty.ndjson', '')
        store.put('denied.ndjson', lines(1))
        store.denied.add('s3://bucket/denied.ndjson')
        store.put('changes.ndjson', '{"m":"text"}\n{"m":{"now":"an object"},"more":1}\n[1]\n{"m":"text"}\n')
        store.put('good.ndjson', lines(2, 'good'))
        const keys = [
          'truncated.ndjson.gz',
          'latin1.ndjson',
          'empty.ndjson',
          'missing.ndjson',
          'denied.ndjson',
        ]
        for (const key of [...keys, 'changes.ndjson']) world.announce(key)
        world.queue.send('<no envelope that anybody knows/>')
        world.announce('good.ndjson')
        await world.run()
        const all = await endings(world)
        const { published = 0, ...truncated } = all['truncated.ndjson.gz'] ?? {}
        assert.deepEqual(truncated, { state: 'bad', code: 'truncated', quarantined: 0 })
        assert.ok(published > 0 && published < 200, `${published} records came before`)
        const stored = { state: 'stored', code: null, published: 2, quarantined: 1 }
        assert.deepEqual(all['latin1.ndjson'], stored)
        assert.deepEqual(all['empty.ndjson'], { ...stored, published: 0, quarantined: 0 })
        const bad = { state: 'bad', published: 0, quarantined: 0 }
        assert.deepEqual(all['missing.ndjson'], { ...bad, code: 'object-missing' })
        assert.deepEqual(all['denied.ndjson'], { ...bad, code: 'object-denied' })
        assert.deepEqual(all['changes.ndjson'], { ...stored, published: 3 })
        assert.deepEqual(all['good.ndjson'], { ...stored, quarantined: 0 })
        const { messages, objects } = await world.status()
        assert.deepEqual([messages.unparsed, messages.acknowledged, objects.onTheirWay], [1, 7, 0])
        const codes = await world.process.kinds.tables.quarantine({
          pipeline: NAME,
          after: { shard: '', at: -1 },
          limit: 10,
        })
        assert.ok(codes.every(({ reason, line }) => reason !== '' && line !== null))
      }))
  }

  for (const database of ['sqlite', 'postgres'] as const) {
    test(`with an object that was missing when it is announced later, or listed; one that is bad otherwise is not read again, on ${database}`, () =>
      withWorld(database, async (world) => {
        const { store, queue } = world
        const announced = store.put('announced.ndjson', lines(2, 'announced'))
        store.put('listed.ndjson', lines(2, 'listed'))
        store.put('denied.ndjson', lines(1))
        store.denied.add('s3://bucket/denied.ndjson')
        world.announce('announced.ndjson', 'listed.ndjson', 'denied.ndjson')
        const before = new Map(store.objects)
        store.objects.delete('s3://bucket/announced.ndjson')
        store.objects.delete('s3://bucket/listed.ndjson')
        await world.run()
        assert.equal((await world.status()).objects.bad, 3)
        const reads = store.reads.length
        store.objects.set('s3://bucket/announced.ndjson', before.get('s3://bucket/announced.ndjson')!)
        queue.resurrect()
        await world.run()
        assert.equal(store.reads.length, reads, 'the same event again is no news')
        queue.send({ Records: [world.event('announced.ndjson', { ...announced, sequencer: '00ff' })] })
        await world.run()
        assert.deepEqual(await world.seen(), ['announced 0', 'announced 1'])
        store.objects.set('s3://bucket/listed.ndjson', before.get('s3://bucket/listed.ndjson')!)
        await world.list()
        assert.equal((await world.seen()).length, 4)
        assert.equal(store.reads.length, reads + 2)
        const bad = await world.process.ledger.badItems({ stream: streamOf(NAME) })
        assert.deepEqual(
          bad.map(({ item }) => item.split('@')[0]),
          ['s3://bucket/denied.ndjson'],
        )
      }))
  }

  test('past a message that cannot be written: the others of its batch are placed, and it is not acknowledged', () =>
    withWorld('postgres', async (world) => {
      world.store.put('a.ndjson', lines(2))
      world.queue.send('nothing that anybody knows')
      // No text of PostgreSQL has a NUL.
      world.queue.sent[0]!.id = 'm\0'
      world.announce('a.ndjson')
      await world.run()
      assert.equal((await world.seen()).length, 2)
      assert.deepEqual(world.queue.acknowledged, ['m2'])
      assert.equal(world.errors.length, 1)
    }))

  test('past a line of 100 MB, which is in quarantine with its beginning', () =>
    withWorld('sqlite', async (world) => {
      world.store.pieceBytes = 1_000_000
      const [head, tail] = ['{"m":"before"}\n{"m":"', '"}\n{"m":"after"}\n'].map((text) => Buffer.from(text))
      world.store.put('long.ndjson', Buffer.concat([head!, Buffer.alloc(LINE_BYTES, 'x'), tail!]))
      world.announce('long.ndjson')
      await world.run()
      assert.deepEqual(await world.seen(), ['after', 'before'])
      const [row] = await world.process.kinds.tables.quarantine({
        pipeline: NAME,
        after: { shard: '', at: -1 },
        limit: 10,
      })
      assert.equal(row!.line, 2)
      assert.ok(row!.excerpt.length <= 4_096)
      assert.match(Buffer.from(row!.excerpt).toString(), /^\{"m":"xxx/)
    }))

  for (const aheadMs of [300_000, -300_000]) {
    test(`in two processes whose clocks are ${aheadMs / 60_000} minutes apart: each record once, each message acknowledged`, () =>
      withWorld('postgres', async (world) => {
        const first = world.process
        const second = await world.start({ aheadMs })
        for (let n = 0; n < 20; n++) {
          world.store.put(`${n}.ndjson`, lines(3, `of${n}`))
          world.announce(`${n}.ndjson`)
        }
        const { signal } = new AbortController()
        await Promise.all([first.receiver.drain(signal), second.receiver.drain(signal)])
        await Promise.all([world.settle(first), world.settle(second)])
        await Promise.all([first.receiver.look(), second.receiver.look()])
        assert.equal(await world.rows('search_documents'), 60)
        assert.equal(new Set(world.queue.acknowledged).size, 20)
        const { objects } = await world.status()
        assert.deepEqual([objects.stored, objects.total], [20, 20])
      }))
  }
})

/** Which are bad, and which are gone. */
async function unread(world: IngestWorld): Promise<{ bad: string[]; gone: string[] }> {
  const all = Object.entries(await endings(world))
  const of = (state: string) => all.filter(([, one]) => one.state === state).map(([key]) => key)
  return { bad: of('bad').sort(), gone: of('gone').sort() }
}

function denied(world: IngestWorld, key: string): void {
  world.store.put(key, lines(1, key))
  world.store.denied.add(`s3://bucket/${key}`)
  world.announce(key)
}

describe('a bad object that is in its bucket no more', () => {
  for (const database of ['sqlite', 'postgres'] as const) {
    test(`is gone with its reason after a listing, and bad again when it is put there again, on ${database}`, () =>
      withWorld(database, async (world) => {
        const { store } = world
        const kept = () => world.process.ledger.badItems({ stream: streamOf(NAME) })
        denied(world, 'denied.ndjson')
        const whole = gzipSync(lines(200))
        store.put('cut.ndjson.gz', whole.subarray(0, whole.length - 60))
        world.announce('cut.ndjson.gz', 'missing.ndjson')
        await world.run()
        assert.equal((await kept()).length, 3)
        await world.list()
        assert.deepEqual(await unread(world), {
          bad: ['cut.ndjson.gz', 'denied.ndjson'],
          gone: ['missing.ndjson'],
        })
        const before = store.objects.get('s3://bucket/denied.ndjson')!
        store.objects.delete('s3://bucket/denied.ndjson')
        store.put('cut.ndjson.gz', whole)
        await world.list()
        const { listing, objects } = await world.status()
        assert.deepEqual([listing!.total, listing!.stored, listing!.bad], [1, 1, 0])
        assert.deepEqual([objects.total, objects.stored, objects.bad, objects.gone], [4, 1, 0, 2])
        assert.deepEqual(
          new Set(objects.goneBy.map(({ code, count }) => `${code} ${count}`)),
          new Set(['object-denied 1', 'object-missing 1']),
        )
        assert.deepEqual(objects.skippedBy, [{ code: 'replaced', count: 1 }])
        assert.deepEqual(await kept(), [], 'nothing waits to be tried again')
        assert.equal((await world.seen()).length, 200)
        store.objects.set('s3://bucket/denied.ndjson', before)
        await world.list()
        assert.deepEqual((await unread(world)).bad, ['denied.ndjson'])
        assert.equal((await kept()).length, 1)
        store.denied.clear()
        store.objects.delete('s3://bucket/denied.ndjson')
        await world.list()
        store.objects.set('s3://bucket/denied.ndjson', before)
        await world.list()
        assert.deepEqual(await unread(world), { bad: [], gone: ['missing.ndjson'] })
        assert.deepEqual(await world.seen('type:record denied'), ['denied.ndjson 0'])
      }))
  }

  test('is gone also where versions stand beside each other, and it was overwritten', () =>
    withWorld(
      'sqlite',
      async (world) => {
        denied(world, 'a.ndjson')
        await world.run()
        world.store.denied.clear()
        world.store.put('a.ndjson', lines(2))
        await world.list()
        const { listing, objects } = await world.status()
        assert.deepEqual([listing!.total, listing!.stored, objects.gone, objects.bad], [1, 1, 1, 0])
      },
      { overwrites: 'append' },
    ))

  test('is not gone where its store keeps that version, and is once it does not', () =>
    withWorld(
      'sqlite',
      async (world) => {
        const { store } = world
        denied(world, 'a.ndjson')
        await world.run()
        store.older.push(store.objects.get('s3://bucket/a.ndjson')!)
        store.denied.clear()
        store.put('a.ndjson', lines(2))
        await world.list()
        assert.equal((await world.status()).objects.bad, 1, 'somebody may ask for it again')
        assert.equal(store.open, 0, 'it is asked for, and left')
        store.denied.add('s3://bucket/a.ndjson')
        await world.list()
        assert.equal((await world.status()).objects.bad, 1, 'who may not look knows nothing')
        store.denied.clear()
        store.older.length = 0
        await world.list()
        const { objects } = await world.status()
        assert.deepEqual([objects.gone, objects.bad], [1, 0])
      },
      { overwrites: 'append' },
    ))

  test('is not gone by a listing that fails on its way, nor by one that cannot see where it was', () =>
    withWorld('sqlite', async (world) => {
      const { store } = world
      for (const key of ['a.ndjson', 'folder/b.ndjson', 'z.ndjson']) denied(world, key)
      await world.run()
      const all = ['a.ndjson', 'folder/b.ndjson', 'z.ndjson']
      const list = store.list.bind(store)
      store.objects.clear()
      store.put('0.ndjson', lines(1))
      store.put('1.ndjson', lines(1))
      store.pageMax = 1
      store.list = async (options) => {
        if (options.after === null) return list(options)
        throw new TidemarkError('No more of it is shown.', { kind: 'permanent', code: 'cut' })
      }
      await world.list()
      assert.deepEqual(await unread(world), { bad: all, gone: [] })
      store.list = async (options) => {
        const page = await list(options)
        const hidden = { version: { id: 'folder-1' }, sizeBytes: null, modifiedAtMs: null }
        const more = page.next === null ? [{ uri: 's3://bucket/folder/', ...hidden }] : []
        return { ...page, objects: [...page.objects, ...more] }
      }
      await world.list()
      assert.deepEqual(await unread(world), {
        bad: ['folder/', 'folder/b.ndjson'],
        gone: ['a.ndjson', 'z.ndjson'],
      })
      store.list = list
      await world.list()
      assert.deepEqual(await unread(world), { bad: [], gone: [...all, 'folder/'].sort() })
    }))

  test('is not gone where the listing passes over it, or is of another place', () =>
    withWorld(
      'sqlite',
      async (world) => {
        denied(world, 'in/old.ndjson')
        denied(world, 'other/a.ndjson')
        denied(world, 'in/deleted.ndjson')
        await world.run()
        world.store.objects.delete('s3://bucket/in/deleted.ndjson')
        await world.list()
        const { listing } = await world.status()
        assert.deepEqual(listing!.skippedBy, [{ code: 'before-start', count: 1 }])
        assert.deepEqual(await unread(world), {
          bad: ['in/old.ndjson', 'other/a.ndjson'],
          gone: ['in/deleted.ndjson'],
        })
      },
      { location: 's3://bucket/in/', allow: ['s3://bucket/other/'], startAtMs: 100 },
    ))

  test('is not gone where it came while the listing was under way, behind the page that would have shown it', () =>
    withWorld('sqlite', async (world) => {
      const { store } = world
      for (const key of ['a.ndjson', 'b.ndjson']) store.put(key, lines(1))
      store.pageMax = 1
      const list = store.list.bind(store)
      store.list = async (options) => {
        if (options.after !== null) {
          store.list = list
          denied(world, '0.ndjson')
          await world.process.receiver.drain(new AbortController().signal)
          while ((await world.status()).objects.bad === 0) await sleep(5)
        }
        return list(options)
      }
      await world.list()
      assert.deepEqual(await unread(world), { bad: ['0.ndjson'], gone: [] })
      await world.list()
      const { listing } = await world.status()
      assert.deepEqual([listing!.total, listing!.stored, listing!.bad], [3, 2, 1])
    }))
})
