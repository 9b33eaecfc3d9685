/** Small objects that are read together: each is what it would be alone. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { TidemarkError } from '../../base/errors.ts'
import { IngestWorld, lines, NAME } from './ingest-world.suite.ts'
import { streamOf } from './pipeline.ts'

const COUNT = 250

for (const database of ['sqlite', 'postgres'] as const) {
  const withWorld = (title: string, run: (world: IngestWorld) => Promise<void>): void => {
    test(title, async () => {
      const world = await IngestWorld.open({ database })
      try {
        await run(world)
      } finally {
        await world.close()
      }
    })
  }

  describe(`small objects on ${database}`, () => {
    withWorld(
      'are stored by some jobs and not by one each, and every message is acknowledged',
      async (world) => {
        for (let n = 0; n < COUNT; n++) world.store.put(`${n}.ndjson`, lines(2, `object ${n}`))
        for (let n = 0; n < COUNT; n++) world.announce(`${n}.ndjson`)
        await world.run()
        assert.equal((await world.status()).objects.stored, COUNT)
        assert.equal(await world.rows('search_access'), 2 * COUNT)
        assert.equal(world.queue.acknowledged.length, COUNT)
        assert.ok((await world.rows('jobs')) < COUNT / 2, 'far fewer jobs than objects')
        world.queue.resurrect()
        await world.run()
        assert.equal(await world.rows('search_documents'), 2 * COUNT)
        assert.equal((await world.status()).messages.acknowledged, 2 * COUNT)
      },
    )

    withWorld(
      'that are not simple get a job of their own, and the others do not wait for them',
      async (world) => {
        world.store.put('good.ndjson', lines(3, 'good'))
        world.store.put('part.ndjson', `${lines(2, 'part')}\nnot json`)
        world.store.put('large.ndjson', lines(35, 'large'))
        world.store.put('cut.ndjson.gz', gzipSync(lines(5, 'cut')).subarray(0, 20))
        world.store.put('empty.ndjson', '')
        world.store.put('twice.ndjson', lines(2, 'old'))
        const events = [
          'good.ndjson',
          'part.ndjson',
          'large.ndjson',
          'cut.ndjson.gz',
          'empty.ndjson',
          'gone.ndjson',
        ]
        const older = world.event('twice.ndjson')
        world.store.put('twice.ndjson', lines(2, 'new'))
        world.queue.send({
          Records: [...events.map((key) => world.event(key)), older, world.event('twice.ndjson')],
        })
        await world.run()
        const { objects, quarantined } = await world.status()
        assert.deepEqual([objects.stored, objects.skipped, objects.bad, quarantined], [5, 1, 2, 1])
        assert.deepEqual(
          (await world.seen()).filter((title) => !title.startsWith('large')),
          ['good 0', 'good 1', 'good 2', 'new 0', 'new 1', 'part 0', 'part 1'],
        )
        assert.equal((await world.seen()).length, 42)
        assert.deepEqual(world.queue.acknowledged, ['m1'])
      },
    )

    withWorld(
      'of which another has taken one are looked at anew, and none is published twice',
      async (world) => {
        for (let n = 0; n < 10; n++) world.store.put(`${n}.ndjson`, lines(2, `object ${n}`))
        const { ledger } = world.process
        let isStolen = false
        world.store.onBytes = async () => {
          if (isStolen) return
          isStolen = true
          await ledger.transaction((tx) =>
            tx.run(
              `UPDATE ingest_shards SET token = 'thief', updated_at = updated_at + 1 WHERE uri = 's3://bucket/3.ndjson'`,
            ),
          )
        }
        for (let n = 0; n < 10; n++) world.announce(`${n}.ndjson`)
        await world.run()
        assert.equal((await world.status()).objects.stored, 10)
        assert.equal(await world.rows('search_documents'), 20)
        assert.equal((await world.status()).takeovers, 1)
        assert.equal(world.queue.acknowledged.length, 10)
      },
    )

    withWorld(
      'of which one cannot be written are stored without it, and only that one is bad',
      async (world) => {
        const { kinds } = world.process
        const index = kinds.index
        kinds.index = async () => {
          const real = await index()
          return new Proxy(real, {
            get(target, name) {
              const value: unknown = Reflect.get(target, name)
              if (typeof value !== 'function') return value
              return (...args: unknown[]) => {
                if (name === 'append' && JSON.stringify(args[1]).includes('poison'))
                  throw new TidemarkError('it cannot be written', { kind: 'permanent' })
                return value.apply(target, args)
              }
            },
          })
        }
        for (let n = 0; n < 20; n++)
          world.store.put(`${n}.ndjson`, lines(2, n === 7 ? 'poison' : `object ${n}`))
        for (let n = 0; n < 20; n++) world.announce(`${n}.ndjson`)
        await world.run()
        const { objects } = await world.status()
        assert.deepEqual([objects.stored, objects.bad, objects.total], [19, 1, 20])
        assert.equal((await world.seen()).length, 38)
      },
    )

    withWorld('wait without becoming bad while their store is away', async (world) => {
      for (let n = 0; n < 5; n++) world.store.put(`${n}.ndjson`, lines(1, `object ${n}`))
      const { engine, kinds, receiver } = world.process
      await engine.pause('stream', streamOf(NAME))
      for (let n = 0; n < 5; n++) world.announce(`${n}.ndjson`)
      await receiver.drain(new AbortController().signal)
      world.store.failing = new TidemarkError('away', { kind: 'transient' })
      await engine.resume('stream', streamOf(NAME))
      while (!kinds.obstacles.of(NAME)) await new Promise((done) => setImmediate(done))
      world.store.failing = undefined
      await world.settle()
      const { objects } = await world.status()
      assert.deepEqual([objects.stored, objects.bad], [5, 0])
    })
  })
}
