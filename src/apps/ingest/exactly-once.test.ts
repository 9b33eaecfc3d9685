/** What the queue repeats, loses or reorders, and what processes do to each other, changes nothing of what is published. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { IngestWorld, lines, NAME, type WorldOptions } from './ingest-world.suite.ts'
import { streamOf } from './pipeline.ts'

type Run = (world: IngestWorld) => Promise<void>

for (const database of ['sqlite', 'postgres'] as const) {
  const withWorld = (title: string, run: Run, options: WorldOptions = {}): void => {
    test(title, async () => {
      const world = await IngestWorld.open({ ...options, database })
      try {
        await run(world)
      } finally {
        await world.close()
      }
    })
  }

  describe(`a queue on ${database}`, () => {
    withWorld(
      'announces objects, each record is found once, and the message is acknowledged after that',
      async (world) => {
        world.store.put('a.ndjson', lines(25))
        world.announce('a.ndjson')
        await world.process.receiver.drain(new AbortController().signal)
        await world.settle()
        assert.equal((await world.seen()).length, 25)
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        assert.equal((await world.status()).objects.stored, 1)
      },
    )

    withWorld(
      'is read in full: all objects of a notification are read, one that is missing is bad, and only then is it acknowledged',
      async (world) => {
        world.store.put('a.ndjson', lines(3, 'first'))
        world.store.put('c.ndjson', lines(3, 'third'))
        world.announce('a.ndjson', 'b.ndjson', 'c.ndjson')
        await world.run()
        const { objects } = await world.status()
        assert.deepEqual([objects.stored, objects.bad, objects.onTheirWay], [2, 1, 0])
        assert.deepEqual(objects.badBy, [{ code: 'object-missing', count: 1 }])
        assert.equal((await world.seen()).length, 6)
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        const bad = await world.process.ledger.badItems({ stream: streamOf(NAME) })
        assert.equal(bad.length, 1)
      },
    )

    withWorld(
      'that delivers again after all is settled is told that it is done, and nothing is read',
      async (world) => {
        world.store.put('a.ndjson', lines(5))
        world.announce('a.ndjson')
        await world.run()
        const reads = world.store.reads.length
        world.queue.resurrect()
        await world.run()
        assert.equal(world.store.reads.length, reads)
        assert.equal((await world.seen()).length, 5)
        assert.deepEqual(world.queue.acknowledged, ['m1', 'm1'])
        assert.equal((await world.status()).messages.duplicates, 1)
      },
    )

    withWorld('two receivers share one: each object is read once', async (world) => {
      for (let n = 0; n < 20; n++) {
        world.store.put(`${n}.ndjson`, lines(3, `of${n}`))
        world.announce(`${n}.ndjson`)
      }
      const first = world.process
      const second = await world.start()
      const stop = new AbortController().signal
      await Promise.all([first.receiver.drain(stop), second.receiver.drain(stop)])
      world.queue.redeliver()
      await Promise.all([first.receiver.drain(stop), second.receiver.drain(stop)])
      await Promise.all([world.settle(first), world.settle(second)])
      assert.equal((await world.seen()).length, 60)
      assert.equal((await world.status()).objects.stored, 20)
      assert.equal(await world.rows('search_documents'), 60)
    })

    withWorld('an older event of the same object is acknowledged and skipped', async (world) => {
      const old = world.store.put('a.ndjson', lines(2, 'old'))
      const oldEvent = world.event('a.ndjson', old)
      world.store.put('a.ndjson', lines(2, 'new'))
      world.announce('a.ndjson')
      await world.run()
      world.queue.send({ Records: [oldEvent] })
      await world.run()
      assert.deepEqual(await world.seen(), ['new 0', 'new 1'])
      assert.deepEqual((await world.status()).objects.skippedBy, [{ code: 'older', count: 1 }])
      assert.deepEqual(world.queue.acknowledged, ['m1', 'm2'])
    })

    withWorld('test events and deletions are acknowledged and counted as dropped', async (world) => {
      world.queue.send({ Service: 'Amazon S3', Event: 's3:TestEvent', Bucket: 'bucket' })
      world.queue.send({ Records: [{ ...world.event('a.ndjson'), eventName: 'ObjectRemoved:Delete' }] })
      await world.run()
      assert.deepEqual(world.queue.acknowledged, ['m1', 'm2'])
      assert.equal((await world.status()).messages.dropped, 2)
    })

    withWorld(
      'a message that nobody understands is neither acknowledged nor extended, but shown, and not without bounds',
      async (world) => {
        for (let n = 0; n < 8; n++) world.queue.send(`no announcement ${n}`)
        await world.run()
        assert.deepEqual(world.queue.acknowledged, [])
        assert.equal(world.process.receiver.held.size, 0)
        assert.equal((await world.status()).messages.unparsed, 8)
        const shown = await world.process.kinds.tables.unparsed(NAME, 100)
        assert.equal(shown.length, 5)
        assert.equal(shown[0]!.code, 'not-json')
      },
    )

    withWorld(
      'a message that is data itself is published once, also when it comes again',
      async (world) => {
        world.queue.send('{"m":"carried"}')
        await world.run()
        world.queue.resurrect()
        await world.run()
        assert.deepEqual(await world.seen(), ['carried'])
      },
      { config: { carriesData: true } },
    )

    withWorld(
      'a plain address without a version is read again after an overwrite, and not before',
      async (world) => {
        world.store.put('a.ndjson', lines(1, 'one'))
        world.queue.send({ uri: 's3://bucket/a.ndjson' })
        world.queue.send({ uri: 's3://bucket/a.ndjson' })
        await world.run()
        assert.equal((await world.status()).objects.total, 1)
        world.store.put('a.ndjson', lines(1, 'two'))
        world.queue.send({ uri: 's3://bucket/a.ndjson' })
        await world.run()
        assert.deepEqual(await world.seen(), ['two 0'])
      },
    )
  })

  describe(`a process on ${database}`, () => {
    withWorld(
      'that dies after the commit and before the acknowledgement costs one more delivery',
      async (world) => {
        world.store.put('a.ndjson', lines(12))
        world.announce('a.ndjson')
        world.queue.failing.acknowledge = new TidemarkError('away', { kind: 'transient' })
        await world.run()
        assert.deepEqual(world.queue.acknowledged, [])
        await world.process.close()
        await world.start()
        world.queue.failing = {}
        world.queue.redeliver()
        await world.run()
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        assert.equal(await world.rows('search_documents'), 12)
      },
    )

    withWorld(
      'that ends in the middle of an object is followed by one that goes on at the position',
      async (world) => {
        const count = 60
        world.store.put('a.ndjson', lines(count))
        world.announce('a.ndjson')
        const first = world.process
        let hasStopped: Promise<void> | undefined
        world.store.onBytes = (_uri, bytes) => {
          if (bytes > 700 && !hasStopped) hasStopped = first.close()
        }
        await first.receiver.drain(new AbortController().signal)
        while (!hasStopped) await new Promise((resolve) => setImmediate(resolve))
        await hasStopped
        world.store.onBytes = undefined
        await world.start()
        const [shard] = await world.process.kinds.tables.shards({ pipeline: NAME, after: '', limit: 1 })
        const before = shard!.records
        assert.ok(before > 0 && before < count, `${before} records were published before`)
        world.queue.redeliver()
        await world.run()
        assert.equal((await world.seen()).length, count)
        assert.equal(await world.rows('search_documents'), count)
        assert.ok(world.store.reads.at(-1)!.fromByte > 0)
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        assert.equal((await world.status()).takeovers, 1)
      },
    )

    withWorld('whose token was taken publishes nothing more', async (world) => {
      world.store.put('a.ndjson', lines(60))
      world.announce('a.ndjson')
      const { ledger, kinds } = world.process
      let stolen = false
      world.store.onBytes = async (_uri, bytes) => {
        if (bytes < 700 || stolen) return
        stolen = true
        await ledger.transaction(async (tx) => {
          await tx.run(`UPDATE ingest_shards SET token = 'thief', updated_at = updated_at + 1`)
        })
      }
      await world.run()
      const [shard] = await kinds.tables.shards({ pipeline: NAME, after: '', limit: 1 })
      assert.equal(shard!.state, 'stored')
      assert.equal(await world.rows('search_documents'), 60)
      assert.equal((await world.seen()).length, 60)
    })
  })
}
