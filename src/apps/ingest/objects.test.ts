/** What becomes of objects: overwrites, listings and their books, what cannot be read, and what is done afterwards. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { Accounts } from '../../ledger/accounts.ts'
import { IngestWorld, lines, NAME, type WorldOptions } from './ingest-world.suite.ts'
import { inlineBody } from './object-bytes.ts'
import { SERVICE, shardId, streamOf } from './pipeline.ts'
import { booksText, isBalanced } from './status.ts'
import { InboxTables } from './store/inbox.ts'
import { beginListing, moveListing, putPipeline } from './store/pipelines.ts'

const DAY_MS = 86_400_000
/** Of objects that are so long that they are not read ahead to their end. */
const LONG = 'x'.repeat(2_000)

for (const database of ['sqlite', 'postgres'] as const) {
  const withWorld = (
    title: string,
    run: (world: IngestWorld) => Promise<void>,
    options: WorldOptions = {},
  ): void => {
    test(title, async () => {
      const world = await IngestWorld.open({ ...options, database })
      try {
        await run(world)
      } finally {
        await world.close()
      }
    })
  }

  describe(`an object that is overwritten, on ${database},`, () => {
    withWorld('shows its old records until all of the new ones are there, and never both', async (world) => {
      world.store.put('a.ndjson', lines(12, 'old'))
      world.announce('a.ndjson')
      await world.run()
      world.store.put('a.ndjson', lines(40, 'new'))
      world.announce('a.ndjson')
      const during: string[][] = []
      world.store.onBytes = async () => {
        during.push(await world.seen())
      }
      await world.run()
      assert.ok(during.length > 3)
      for (const seen of during)
        assert.deepEqual(new Set(seen.map((title) => title.split(' ')[0])), new Set(['old']))
      assert.equal((await world.seen('new')).length, 40)
      assert.equal((await world.seen('old')).length, 0)
      assert.equal(await world.rows('search_documents'), 40)
      assert.equal(await world.rows('search_contents'), 40)
      assert.deepEqual((await world.status()).objects.skippedBy, [{ code: 'replaced', count: 1 }])
    })

    withWorld(
      'keeps the records of all its versions where that is chosen',
      async (world) => {
        world.store.put('a.ndjson', lines(2, 'old'))
        world.announce('a.ndjson')
        await world.run()
        world.store.put('a.ndjson', lines(2, 'new'))
        world.announce('a.ndjson')
        await world.run()
        assert.deepEqual(await world.seen(), ['new 0', 'new 1', 'old 0', 'old 1'])
      },
      { config: { overwrites: 'append' } },
    )

    withWorld(
      'keeps them also where the older one is announced after the newer one',
      async (world) => {
        const older = world.event('a.ndjson', { id: 'etag-older', sequencer: '0000' })
        world.store.put('a.ndjson', lines(2, 'new'))
        world.announce('a.ndjson')
        await world.run()
        const read = world.store.read.bind(world.store)
        world.store.read = async (uri, options) => {
          if (options.version?.id !== 'etag-older') return read(uri, options)
          return inlineBody(Buffer.from(lines(2, 'old')), options.fromByte, 'etag-older')
        }
        world.queue.send({ Records: [older] })
        await world.run()
        assert.deepEqual(await world.seen(), ['new 0', 'new 1', 'old 0', 'old 1'])
      },
      { config: { overwrites: 'append' } },
    )

    withWorld(
      'while it is read without its version id is read by it as soon as a message tells it',
      async (world) => {
        const version = world.store.put('a.ndjson', lines(2, 'old'))
        const event = world.event('a.ndjson') as { s3: { object: object } }
        Object.assign(event.s3.object, { versionId: 'v1' })
        const read = world.store.read.bind(world.store)
        world.store.read = async (uri, options) => {
          if (options.version?.id !== version.id) return read(uri, options)
          if (options.version.versionId === 'v1')
            return inlineBody(Buffer.from(lines(2, 'old')), options.fromByte, version.id)
          world.store.put('a.ndjson', lines(2, 'new'))
          world.queue.send({ Records: [event] })
          await world.process.receiver.drain(new AbortController().signal)
          throw new TidemarkError('it was replaced', { kind: 'gone', code: 'object-replaced' })
        }
        await world.list()
        await world.list()
        assert.deepEqual(await world.seen(), ['new 0', 'new 1', 'old 0', 'old 1'])
      },
      { config: { overwrites: 'append' } },
    )

    withWorld(
      'before it was read is skipped, and what took its place is read although nobody announced it',
      async (world) => {
        world.store.put('a.ndjson', lines(2, 'old'))
        world.announce('a.ndjson')
        world.store.put('a.ndjson', lines(2, 'new'))
        await world.run()
        assert.deepEqual(await world.seen(), ['new 0', 'new 1'])
        assert.deepEqual(world.queue.acknowledged, ['m1'])
      },
    )

    for (const overwrites of ['replace', 'append'] as const) {
      withWorld(
        overwrites === 'replace'
          ? 'while it is read shows nothing of what was read of it, beside what took its place'
          : 'while it is read keeps what was read of it, where its versions stand beside each other',
        async (world) => {
          world.store.pieceBytes = 16_384
          world.store.put('a.ndjson', lines(150, `old ${LONG}`))
          world.announce('a.ndjson')
          const { engine, kinds } = world.process
          const during: number[] = []
          world.store.onBytes = async () => {
            if ((await world.seen()).length === 0) return
            world.store.onBytes = async () => {
              during.push((await world.seen('old')).length)
            }
            world.store.put('a.ndjson', lines(2, 'new'))
            throw new TidemarkError('it was replaced', { kind: 'gone', code: 'object-replaced' })
          }
          await world.run()
          await engine.enqueue(kinds.tidy, { pipeline: NAME }, { stream: streamOf(NAME) })
          await world.settle()
          assert.equal((await world.seen('new')).length, 2)
          const old = (await world.seen('old')).length
          assert.deepEqual(during, [old], 'while what took its place is read')
          assert.equal(old > 0, overwrites === 'append', `${old} old records are seen`)
          assert.equal(await world.rows('search_documents'), 2 + old)
        },
        { config: { overwrites } },
      )
    }

    withWorld('and was bad before is an item for nobody any more', async (world) => {
      world.store.put('a.ndjson', 'not json\n'.repeat(200))
      world.announce('a.ndjson')
      await world.run()
      const { ledger } = world.process
      assert.equal((await ledger.badItems({ stream: streamOf(NAME) })).length, 1)
      world.store.put('a.ndjson', lines(2, 'good'))
      world.announce('a.ndjson')
      await world.run()
      assert.deepEqual(await world.seen(), ['good 0', 'good 1'])
      assert.deepEqual(await ledger.badItems({ stream: streamOf(NAME) }), [])
    })

    withWorld('keeps its order, however its sequencers are written', async (world) => {
      const { id } = world.store.put('a.ndjson', lines(1, 'new'))
      const told = (version: { id: string; sequencer: string }): void => {
        world.queue.send({ Records: [world.event('a.ndjson', version)] })
      }
      for (const sequencer of ['B0', 'a0']) {
        told({ id, sequencer })
        await world.run()
      }
      told({ id: 'etag-between', sequencer: 'A8' })
      await world.run()
      assert.deepEqual((await world.status()).objects.skippedBy, [{ code: 'older', count: 1 }])
      assert.deepEqual(await world.seen(), ['new 0'])
    })

    withWorld('and then put back as it was is read again', async (world) => {
      const first = world.store.put('a.ndjson', lines(2, 'one'))
      world.announce('a.ndjson')
      await world.run()
      world.store.put('a.ndjson', lines(2, 'two'))
      world.announce('a.ndjson')
      await world.run()
      const back = world.store.put('a.ndjson', lines(2, 'one'))
      back.id = first.id
      world.announce('a.ndjson')
      await world.run()
      assert.deepEqual(await world.seen(), ['one 0', 'one 1'])
      assert.equal(await world.rows('search_documents'), 2)
    })
  })

  describe(`a listing, on ${database},`, () => {
    withWorld(
      'finds what nobody announced, and its books add up',
      async (world) => {
        world.store.pageMax = 3
        for (let n = 0; n < 8; n++) world.store.put(`${n}.ndjson`, lines(2, `of${n}`))
        world.store.put('bad.parquet', 'this is no parquet')
        world.announce('3.ndjson')
        await world.run()
        await world.list()
        const status = await world.status()
        assert.equal(booksText(status), 'bucket lists 9 = 8 stored + 0 skipped + 1 bad + 0 on their way')
        assert.equal((await world.seen()).length, 16)
        await world.list()
        assert.equal((await world.seen()).length, 16)
        assert.equal((await world.status()).listing?.total, 9)
        const { tables } = world.process.kinds
        const { objects, records } = await tables.recent(NAME, 0)
        assert.deepEqual([objects, records], [9, 16])
        assert.equal((await tables.recent(NAME, world.clock.now() + 1)).objects, 0)
      },
      { config: { read: { format: 'auto' } } },
    )

    withWorld(
      'skips what was changed before the start, and counts it',
      async (world) => {
        world.store.put('old.ndjson', lines(1))
        world.store.put('new.ndjson', lines(1))
        await world.list()
        const { listing } = await world.status()
        assert.deepEqual([listing?.total, listing?.stored, listing?.skipped], [2, 1, 1])
        assert.deepEqual(listing?.skippedBy, [{ code: 'before-start', count: 1 }])
      },
      { config: { startAtMs: 2 } },
    )

    withWorld('that is made again takes nothing out of the books meanwhile', async (world) => {
      world.store.pageMax = 2
      for (let n = 0; n < 6; n++) world.store.put(`${n}.ndjson`, lines(1, `of${n}`))
      await world.list()
      const during: string[] = []
      const list = world.store.list.bind(world.store)
      world.store.list = async (options) => {
        during.push(booksText(await world.status()))
        return list(options)
      }
      await world.list()
      const books = 'bucket lists 6 = 6 stored + 0 skipped + 0 bad + 0 on their way'
      assert.deepEqual(during, Array(3).fill(`${books} (being listed anew)`))
      assert.equal(booksText(await world.status()), books)
    })

    withWorld('is told with what was announced since, and is on its way', async (world) => {
      world.store.put('a.ndjson', lines(1, 'a'))
      await world.list()
      world.store.put('b.ndjson', lines(1, 'b'))
      world.announce('b.ndjson')
      let during = ''
      world.store.onBytes = async () => {
        during = booksText(await world.status())
      }
      await world.run()
      const books = 'bucket lists 1 = 1 stored + 0 skipped + 0 bad + 0 on their way'
      assert.equal(during, `${books}; 1 announced besides, on their way`)
      assert.equal(booksText(await world.status()), books)
    })

    withWorld('that was begun at another location begins anew', async (world) => {
      for (const key of ['a', 'b', 'c']) world.store.put(`${key}.ndjson`, lines(1, key))
      const { ledger } = world.process
      await ledger.transaction(async (tx) => {
        await putPipeline(tx, NAME)
        await beginListing(tx, NAME, { location: 's3://another/', nowMs: 1 })
        await moveListing(
          tx,
          { pipeline: NAME, generation: 1 },
          { cursor: 's3://bucket/b.ndjson', n: 7, before: 0, leftOut: 0 },
        )
      })
      await world.list()
      assert.equal((await world.status()).listing?.stored, 3)
      assert.equal((await world.process.kinds.tables.pipeline(NAME))?.listed_n, 3)
    })

    withWorld('that is interrupted goes on where it was', async (world) => {
      world.store.pageMax = 2
      for (let n = 0; n < 9; n++) world.store.put(`${n}.ndjson`, lines(1, `of${n}`))
      const first = world.process
      let pages = 0
      const list = world.store.list.bind(world.store)
      world.store.list = async (options) => {
        pages += 1
        if (pages === 3) void first.close()
        return list(options)
      }
      await first.engine.enqueue(first.kinds.list, { pipeline: NAME }, { stream: streamOf(NAME) })
      while (pages < 3) await new Promise((resolve) => setImmediate(resolve))
      const second = await world.start()
      await world.settle(second)
      assert.ok(pages <= 7, `${pages} pages were asked for`)
      assert.equal((await world.status()).listing?.stored, 9)
    })
  })

  describe(`what cannot be read, on ${database},`, () => {
    withWorld(
      'a record is quarantined with its place and reason, stops nothing, and is published when it reads',
      async (world) => {
        world.store.put(
          'a.ndjson',
          `{"m":"one"}\n{"m":${JSON.stringify('long '.repeat(300))}}\nnot json\n{"m":"four"}\n`,
        )
        world.announce('a.ndjson')
        await world.run()
        const { tables, settings } = world.process.kinds
        const page = { pipeline: NAME, after: { shard: '', at: -1 }, limit: 10 }
        const rows = await tables.quarantine(page)
        assert.deepEqual(
          rows.map(({ at, line, code }) => [at, line, code]),
          [
            [1, 2, 'too-long'],
            [2, 3, 'bad-json'],
          ],
        )
        assert.ok(rows.every(({ uri }) => uri.endsWith('/a.ndjson')))
        assert.deepEqual(await world.seen(), ['four', 'one'])
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        settings.limits = { recordBytesMax: 10_000, expansionMax: 1_000 }
        const { engine, kinds } = world.process
        await engine.enqueue(
          kinds.replay,
          { pipeline: NAME, shard: rows[0]!.shard },
          { stream: streamOf(NAME) },
        )
        await engine.enqueue(
          kinds.replay,
          { pipeline: NAME, shard: rows[0]!.shard },
          { stream: streamOf(NAME) },
        )
        await world.settle()
        assert.equal((await world.seen()).length, 3)
        assert.deepEqual(
          (await tables.quarantine(page)).map(({ at }) => at),
          [2],
        )
        assert.equal((await world.status()).quarantined, 1)
      },
      { settings: { limits: { recordBytesMax: 500, expansionMax: 1_000 } } },
    )

    withWorld(
      'a record that leaves quarantine while its object is read is counted once, and seen with the others',
      async (world) => {
        world.store.put('a.ndjson', lines(3, 'old'))
        world.announce('a.ndjson')
        await world.run()
        const { tables, settings } = world.process.kinds
        world.store.pieceBytes = 16_384
        world.store.put('a.ndjson', `{"m":"${'long '.repeat(1_000)}"}\n${lines(150, `new ${LONG}`)}`)
        world.announce('a.ndjson')
        const page = { pipeline: NAME, after: { shard: '', at: -1 }, limit: 10 }
        const { engine, kinds } = world.process
        world.store.onBytes = async () => {
          const [row] = await tables.quarantine(page)
          if (!row) return
          world.store.onBytes = undefined
          settings.limits = { recordBytesMax: 10_000, expansionMax: 1_000 }
          const payload = { pipeline: NAME, shard: row.shard }
          await engine.enqueue(kinds.replay, payload, { stream: streamOf(NAME) })
          while ((await tables.quarantine(page)).length > 0)
            await new Promise((resolve) => setImmediate(resolve))
          assert.equal(
            (await world.seen()).length,
            3,
            'the old ones are seen until all of the new ones are there',
          )
        }
        await world.run()
        const [row] = await tables.shards({ ...page, after: '', state: 'stored' })
        assert.deepEqual([row!.records, row!.published, row!.quarantined], [151, 151, 0])
        assert.equal((await world.seen()).length, 151)
      },
      { settings: { limits: { recordBytesMax: 4_000, expansionMax: 1_000 } } },
    )

    withWorld(
      'an object with too many bad records is bad, and goes on at its position when that is allowed',
      async (world) => {
        world.store.put('a.ndjson', [...Array.from({ length: 120 }, () => 'junk'), '{"m":"last"}'].join('\n'))
        world.announce('a.ndjson')
        await world.run()
        assert.deepEqual((await world.status()).objects.badBy, [{ code: 'too-many-bad', count: 1 }])
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        world.process.kinds.settings.badRecordsMax = 1_000
        await world.process.ledger.retryBad()
        world.process.engine.wake()
        await world.settle()
        assert.deepEqual(await world.seen(), ['last'])
        assert.equal((await world.status()).objects.stored, 1)
        assert.equal((await world.process.ledger.badItems({})).length, 0)
      },
    )

    withWorld('an object whose store is away is waited for, and is not bad', async (world) => {
      world.store.put('a.ndjson', lines(2))
      world.announce('a.ndjson')
      world.store.failing = new TidemarkError('the store is away', { kind: 'transient' })
      await world.process.receiver.drain(new AbortController().signal)
      while (!world.process.kinds.obstacles.of(NAME)) await new Promise((resolve) => setImmediate(resolve))
      assert.equal((await world.status()).objects.onTheirWay, 1)
      assert.deepEqual(world.queue.acknowledged, [])
      world.store.failing = undefined
      await world.settle()
      assert.equal((await world.status()).objects.stored, 1)
    })
  })

  describe(`the books, on ${database},`, () => {
    withWorld('have objects whose names no database keeps, as bad ones that stop nothing', async (world) => {
      // Two that begin alike, and are longer than what an index of PostgreSQL takes, also when it is packed.
      const long = Array.from({ length: 90 }, (_, n) =>
        createHash('sha256').update(`${n}`).digest('base64url'),
      )
      const keys = ['a', 'b\0', 'c\ud800', 'd', `${long.join('')}1`, `${long.join('')}2`]
      for (const key of keys) world.store.put(`${key}.ndjson`, lines(1, key.slice(0, 1)))
      world.store.pageMax = 1
      await world.list()
      const { listing } = await world.status()
      assert.deepEqual([listing!.total, listing!.shown, listing!.stored, listing!.bad], [6, 6, 2, 4])
    })

    withWorld('say so when the listing showed another number than is counted', async (world) => {
      for (const key of ['a', 'b', 'c']) world.store.put(`${key}.ndjson`, lines(1, key))
      await world.list()
      assert.ok(isBalanced(await world.status()))
      await world.process.ledger.transaction((tx) =>
        tx.run(`DELETE FROM ingest_shards WHERE uri LIKE '%/b.ndjson'`),
      )
      const status = await world.status()
      assert.ok(!isBalanced(status))
      assert.match(booksText(status), /bucket lists 2 = 2 stored .*and the listing showed 3/)
      await world.list()
      assert.ok(isBalanced(await world.status()))
    })
  })

  describe(`afterwards, on ${database},`, () => {
    withWorld(
      'an object is tagged only when all of it is proven to be there',
      async (world) => {
        world.store.put('good.ndjson', lines(3))
        world.store.put('part.ndjson', `{"m":"one"}\nnot json`)
        world.announce('good.ndjson', 'part.ndjson')
        await world.run()
        assert.deepEqual(world.store.tagged, ['s3://bucket/good.ndjson'])
        const left = await world.process.kinds.tables.addressed(NAME, ['s3://bucket/part.ndjson'], 1)
        assert.equal(left[0]!.disposed, 'quarantined')
        assert.equal((await world.seen()).length, 4)
      },
      { config: { after: { do: 'tag', tags: { tidemark: 'stored' } } } },
    )

    withWorld(
      'an object whose quarantine is emptied by a replay, in one pass, is tagged then',
      async (world) => {
        const long = JSON.stringify({ m: 'long '.repeat(300) })
        world.store.put('a.ndjson', [lines(2), long, lines(2), long, long, lines(1)].join('\n'))
        world.announce('a.ndjson')
        await world.run()
        assert.deepEqual(world.store.tagged, [])
        const { engine, kinds } = world.process
        const [row] = await kinds.tables.shards({ pipeline: NAME, after: '', limit: 1 })
        assert.equal(row!.quarantined, 3)
        kinds.settings.limits = { recordBytesMax: 10_000, expansionMax: 1_000 }
        const reads = world.store.reads.length
        await engine.pause('all')
        const payload = { pipeline: NAME, shard: row!.id }
        const first = await engine.enqueue(kinds.replay, payload, { stream: streamOf(NAME) })
        const again = await engine.enqueue(kinds.replay, payload, { stream: streamOf(NAME) })
        assert.deepEqual(again.id, first.id)
        await engine.resume('all')
        await world.settle()
        assert.equal(world.store.reads.length, reads + 1)
        assert.equal(await world.rows('ingest_quarantine'), 0)
        assert.equal((await world.seen()).length, 8)
        assert.deepEqual(world.store.tagged, ['s3://bucket/a.ndjson'])
      },
      {
        config: { after: { do: 'tag', tags: { tidemark: 'stored' } } },
        settings: { limits: { recordBytesMax: 500, expansionMax: 1_000 } },
      },
    )

    withWorld(
      'an object of which a record is missing in the index is left alone',
      async (world) => {
        world.store.put('a.ndjson', lines(3))
        world.announce('a.ndjson')
        const { ledger, kinds, engine } = world.process
        await engine.pause('kind', kinds.dispose.kind)
        await world.process.receiver.drain(new AbortController().signal)
        while ((await world.status()).objects.stored === 0)
          await new Promise((resolve) => setImmediate(resolve))
        await ledger.transaction((tx) =>
          tx.run(`DELETE FROM search_documents WHERE ref LIKE '%/000000000001'`),
        )
        await engine.resume('kind', kinds.dispose.kind)
        await world.settle()
        assert.deepEqual(world.store.tagged, [])
      },
      { config: { after: { do: 'tag', tags: { tidemark: 'stored' } } } },
    )

    withWorld(
      'a record is found by its id and by fields that did not fit',
      async (world) => {
        world.store.put('a.ndjson', '{"m":"one","key":"wave17","at":"someday"}\n{"m":"two"}')
        world.announce('a.ndjson')
        await world.run()
        assert.deepEqual(await world.seen('wave17'), ['one'])
        assert.deepEqual(await world.seen('someday'), ['one'])
      },
      { config: { mapping: { text: ['m'], id: 'key', time: 'at' } } },
    )

    withWorld(
      'a shard that was pruned is known by its records when it is announced again',
      async (world) => {
        world.store.put('a.ndjson', lines(3))
        world.store.put('gone.ndjson', lines(0))
        world.announce('a.ndjson')
        world.announce('missing.ndjson')
        await world.run()
        world.clock.aheadMs += 15 * DAY_MS
        const { engine, kinds } = world.process
        await engine.enqueue(kinds.tidy, { pipeline: NAME }, { stream: streamOf(NAME) })
        await world.settle()
        const states = await kinds.tables.shards({ pipeline: NAME, after: '', limit: 10 })
        assert.deepEqual(
          states.map(({ state }) => state),
          ['bad'],
        )
        const reads = world.store.reads.length
        world.queue.resurrect()
        await world.run()
        assert.equal(world.store.reads.length, reads)
        assert.equal((await world.seen()).length, 3)
        assert.deepEqual(new Set(world.queue.acknowledged), new Set(['m1', 'm2']))
        assert.equal((await world.status()).records, 3)
      },
      { config: { location: null, allow: ['s3://bucket/'], overwrites: 'append' } },
    )

    withWorld(
      'a shard that was pruned and is known by its records again is counted once, with all of them',
      async (world) => {
        world.store.put('a.ndjson', lines(3))
        world.announce('a.ndjson')
        await world.run()
        const before = await world.status()
        const { engine, kinds } = world.process
        kinds.settings.windowMs = -1
        await engine.enqueue(kinds.tidy, { pipeline: NAME }, { stream: streamOf(NAME) })
        await world.settle()
        assert.equal((await kinds.tables.shards({ pipeline: NAME, after: '', limit: 10 })).length, 0)
        world.announce('a.ndjson')
        await world.run()
        const [row] = await kinds.tables.shards({ pipeline: NAME, after: '', limit: 10 })
        assert.deepEqual([row?.state, row?.code, row?.records, row?.published], ['stored', 'known', 3, 3])
        const { objects, records } = await world.status()
        assert.deepEqual([objects.total, records], [before.objects.total, before.records])
      },
      { config: { overwrites: 'append' } },
    )

    withWorld(
      'a version that is stored is not pruned where the next one replaces it, also long after',
      async (world) => {
        const long = async (): Promise<void> => {
          world.clock.aheadMs += 15 * DAY_MS
          const { engine, kinds } = world.process
          await engine.enqueue(kinds.tidy, { pipeline: NAME }, { stream: streamOf(NAME) })
          await world.settle()
        }
        world.store.put('a.ndjson', lines(2, 'old'))
        world.announce('a.ndjson')
        await world.run()
        await long()
        world.store.put('a.ndjson', lines(3, 'new'))
        world.announce('a.ndjson')
        await world.run()
        assert.deepEqual(await world.seen(), ['new 0', 'new 1', 'new 2'])
        await long()
        assert.equal(await world.rows('ingest_shards'), 1, 'what was replaced is needed no more')
        world.queue.resurrect()
        await world.run()
        assert.deepEqual(await world.seen(), ['new 0', 'new 1', 'new 2'])
        await long()
        const { objects, records } = await world.status()
        assert.deepEqual([objects.stored, objects.skipped, objects.total, records], [1, 2, 3, 3])
        assert.deepEqual(
          new Set(objects.skippedBy.map(({ code, count }) => `${code} ${count}`)),
          new Set(['replaced 1', 'older 1']),
        )
      },
      { config: { location: null, allow: ['s3://bucket/'] } },
    )

    withWorld(
      'of two versions that are read at once, one is seen, also where the newer one is cut off',
      async (world) => {
        // Both are told of at once; the older one goes on when much of the newer one is published, and ends first.
        const old = { ...world.store.put('a.ndjson', lines(15, 'old')) }
        const oldShard = shardId('s3://bucket/a.ndjson', old.id)
        const { tables } = world.process.kinds
        const newIsBegun = Promise.withResolvers<void>()
        const read = world.store.read.bind(world.store)
        world.store.read = async (uri, options) => {
          if (options.version?.id !== old.id) return read(uri, options)
          await newIsBegun.promise
          return inlineBody(Buffer.from(lines(15, 'old')), options.fromByte, old.id)
        }
        world.store.put('a.ndjson', lines(60, `new ${LONG}`))
        world.queue.send({ Records: [world.event('a.ndjson', old), world.event('a.ndjson')] })
        const seen: string[][] = []
        const look = async (): Promise<void> => {
          seen.push([...new Set((await world.seen()).map((title) => title.split(' ')[0]!))])
        }
        world.store.onBytes = async (_uri, bytes) => {
          if (bytes < 50 * LONG.length) return
          newIsBegun.resolve()
          while ((await tables.shard(NAME, oldShard))?.state === 'open') await look()
          throw new TidemarkError('cut off', { kind: 'permanent', code: 'corrupt' })
        }
        // Whoever is asked knows nothing of versions.
        world.store.head = async () => undefined
        await world.run()
        const words = new Set((await world.seen()).map((title) => title.split(' ')[0]))
        assert.equal(words.size, 1, [...words].join())
      },
    )

    withWorld('of what a listing shows nothing is pruned: it stands in the books', async (world) => {
      world.store.put('a.ndjson', lines(3))
      await world.list()
      world.clock.aheadMs += 15 * DAY_MS
      const { engine, kinds } = world.process
      await engine.enqueue(kinds.tidy, { pipeline: NAME }, { stream: streamOf(NAME) })
      await world.settle()
      assert.equal((await world.status()).listing?.stored, 1)
    })
  })

  describe(`a pipeline that is forgotten, on ${database},`, () => {
    withWorld(
      'leaves nothing: no records, shards, messages of its inbox or files of its folder',
      async (world) => {
        world.store.put('a.ndjson', `${lines(3)}\nnot json`)
        world.announce('a.ndjson')
        world.queue.send('nobody understands this')
        await world.run()
        const { ledger, kinds, engine } = world.process
        const inbox = await InboxTables.open(ledger)
        const message = { body: Buffer.from('{}'), attributes: {} }
        await inbox.announce(NAME, [{ path: 'a', version: '1' }], () => message)
        await inbox.announce('another', [{ path: 'a', version: '1' }], () => message)
        const accounts = await Accounts.open(ledger)
        for (const { id } of await accounts.list(SERVICE)) await accounts.remove(id)
        await engine.enqueue(kinds.forget, { pipeline: NAME }, { stream: streamOf(NAME) })
        await engine.drained()
        const left = { search_documents: 0, ingest_shards: 0, ingest_quarantine: 0, ingest_unparsed: 0 }
        for (const [table, count] of Object.entries({
          ...left,
          ingest_pipelines: 0,
          ingest_inbox: 1,
          ingest_drops: 1,
        }))
          assert.equal(await world.rows(table), count, table)
      },
    )
  })

  describe(`a message that is held, on ${database},`, () => {
    withWorld(
      'is extended while its object is read, and given back near the end of what the service allows',
      async (world) => {
        world.store.put('a.ndjson', lines(1))
        world.announce('a.ndjson')
        const { receiver, engine } = world.process
        await engine.pause('all')
        await receiver.drain(new AbortController().signal)
        assert.equal(receiver.held.size, 1)
        world.clock.aheadMs += 100_000
        await receiver.look()
        assert.deepEqual(world.queue.extended, [])
        world.clock.aheadMs += 60_000
        await receiver.look()
        assert.deepEqual(
          world.queue.extended.map(({ byMs }) => byMs),
          [60_000],
        )
        world.queue.failing.extend = new TidemarkError('away', { kind: 'transient' })
        world.clock.aheadMs += 40_000
        await receiver.look()
        assert.equal(receiver.held.size, 1)
        world.clock.aheadMs += 30_000
        await receiver.look()
        assert.equal(receiver.held.size, 0)
        world.queue.failing = {}
        await engine.resume('all')
        await world.run()
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        assert.equal(await world.rows('search_documents'), 1)
      },
    )

    withWorld(
      'waits in the queue while too many objects are on their way',
      async (world) => {
        const { receiver, engine } = world.process
        await engine.pause('all')
        for (let n = 0; n < 30; n++) {
          world.store.put(`${n}.ndjson`, lines(1, `of${n}`))
          world.announce(`${n}.ndjson`)
        }
        await receiver.drain(new AbortController().signal)
        assert.equal((await world.status()).objects.onTheirWay, 10)
        await engine.resume('all')
        await world.settle()
        await world.run()
        await world.run()
        assert.equal((await world.seen()).length, 30)
      },
      { settings: { onTheirWayMax: 10 } },
    )
  })
}
