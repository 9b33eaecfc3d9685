/** Content that was under a key before and is put there again: A, then B, then A, whoever tells of it, and when. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import type { ObjectVersion } from '../../cloud/object-store.ts'
import { IngestWorld, lines, NAME, type WorldOptions } from './ingest-world.suite.ts'
import { inlineBody } from './object-bytes.ts'
import { streamOf } from './pipeline.ts'
import { objectJob } from './placing.ts'
import type { ShardRow } from './store/rows.ts'
import { replaceShard } from './store/shards.ts'

const KEY = 'a.ndjson'
const TWO = { one: ['one 0', 'one 1'], two: ['two 0', 'two 1'] }

type Put = (word: 'one' | 'two', count?: number) => ObjectVersion

for (const database of ['sqlite', 'postgres'] as const) {
  const withWorld = (
    title: string,
    run: (world: IngestWorld, put: Put) => Promise<void>,
    options: WorldOptions = {},
  ): void => {
    test(title, async () => {
      const world = await IngestWorld.open({ ...options, database })
      const ids = new Map<string, string>()
      // As S3 does it: the same content has the same etag, each time with another sequencer.
      const put: Put = (word, count = 2) => {
        const version = world.store.put(KEY, lines(count, word))
        const content = `${word} ${count}`
        version.id = ids.get(content) ?? version.id
        ids.set(content, version.id)
        return version
      }
      try {
        await run(world, put)
      } finally {
        await world.close()
      }
    })
  }

  const putAndRead = async (world: IngestWorld, put: () => ObjectVersion): Promise<ObjectVersion> => {
    const version = put()
    world.announce(KEY)
    await world.run()
    return version
  }

  const tellAgain = (world: IngestWorld, version: ObjectVersion): Promise<number> => {
    world.queue.send({ Records: [world.event(KEY, version)] })
    return world.process.receiver.drain(new AbortController().signal)
  }

  /** Once, in the middle of the next reading. */
  const whileItIsRead = (world: IngestWorld, run: () => Promise<unknown>): void => {
    world.store.onBytes = async () => {
      world.store.onBytes = undefined
      await run()
    }
  }

  /** Also while other jobs are running. */
  const listed = async ({ process: { engine, kinds } }: IngestWorld): Promise<void> => {
    const generation = async () => (await kinds.tables.pipeline(NAME))?.listed_generation ?? 0
    const before = await generation()
    await engine.enqueue(kinds.list, { pipeline: NAME }, { stream: streamOf(NAME) })
    while ((await generation()) === before) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Whatever else waits. */
  const noneOpen = async ({ process: { kinds } }: IngestWorld): Promise<void> => {
    while ((await kinds.tables.openCount(NAME)) > 0) await new Promise((resolve) => setImmediate(resolve))
  }

  /** In a bucket that keeps versions. */
  const keepReadable = ({ store }: IngestWorld, { id }: ObjectVersion, content: string): void => {
    const read = store.read.bind(store)
    store.read = (uri, options) =>
      options.version?.id === id && store.objects.get(uri)?.version.id !== id
        ? Promise.resolve(inlineBody(Buffer.from(content), options.fromByte, id))
        : read(uri, options)
  }

  const tidy = async (world: IngestWorld): Promise<void> => {
    const { engine, kinds } = world.process
    kinds.settings.windowMs = -1
    await engine.enqueue(kinds.tidy, { pipeline: NAME }, { stream: streamOf(NAME) })
    await world.settle()
  }

  const onlySeen = async (world: IngestWorld, titles: readonly string[]): Promise<void> => {
    assert.deepEqual(await world.seen(), titles)
    assert.equal(await world.rows('search_documents'), titles.length)
  }

  describe(`content that is put back, on ${database},`, () => {
    withWorld(
      'and told while the ledger is asked what became of it before is not acknowledged by that answer',
      async (world, put) => {
        const { engine, kinds, ledger, receiver } = world.process
        await engine.pause('all')
        await tellAgain(world, put('one'))
        const [row] = await kinds.tables.shards({ pipeline: NAME, after: '', limit: 1 })
        await ledger.transaction((tx) => replaceShard(tx, row!, world.clock.now()))
        const states = kinds.tables.states.bind(kinds.tables)
        let taking: Promise<unknown> | undefined
        kinds.tables.states = async (...asked) => {
          const answer = await states(...asked)
          if (taking) return answer
          world.queue.send({ Records: [world.event(KEY, put('one'))] })
          taking = receiver.take(await world.queue.receive({ max: 10 }))
          while (receiver.held.size < 2) await new Promise((resolve) => setImmediate(resolve))
          return answer
        }
        await receiver.look()
        await taking
        assert.deepEqual([world.queue.acknowledged, receiver.held.size], [['m1'], 1])
        await engine.resume('all')
        await world.settle()
        assert.deepEqual(world.queue.acknowledged, ['m1', 'm2'])
        assert.deepEqual(await world.seen(), TWO.one)
      },
    )

    withWorld('is seen again when only a listing tells of it, by one swap, and once', async (world, put) => {
      await putAndRead(world, () => put('one', 40))
      await putAndRead(world, () => put('two'))
      put('one', 40)
      const during: string[][] = []
      world.store.onBytes = async () => {
        during.push(await world.seen())
      }
      await world.list()
      assert.ok(during.length > 3)
      for (const seen of during) assert.deepEqual(seen, TWO.two)
      assert.equal((await world.seen('one')).length, 40)
      assert.equal(await world.rows('search_documents'), 40)
      const reads = world.store.reads.length
      await world.list()
      assert.equal(world.store.reads.length, reads)
      assert.equal((await world.seen('one')).length, 40)
    })

    withWorld(
      'is seen again also when its first announcement comes once more meanwhile',
      async (world, put) => {
        const first = { ...(await putAndRead(world, () => put('one'))) }
        await putAndRead(world, () => put('two'))
        put('one')
        whileItIsRead(world, () => tellAgain(world, first))
        await world.list()
        await onlySeen(world, TWO.one)
      },
    )

    withWorld('is not taken for being back when its first announcement comes again', async (world, put) => {
      const first = { ...(await putAndRead(world, () => put('one'))) }
      await putAndRead(world, () => put('two'))
      const reads = world.store.reads.length
      await tellAgain(world, first)
      await world.settle()
      await onlySeen(world, TWO.two)
      assert.equal(world.store.reads.length, reads)
    })

    for (const path of ['a listing', 'an announcement'] as const) {
      const told = async (world: IngestWorld): Promise<void> => {
        if (path === 'a listing') return listed(world)
        world.announce(KEY)
        await world.process.receiver.drain(new AbortController().signal)
      }

      withWorld(`stays when ${path} tells of it while the other is still read`, async (world, put) => {
        await putAndRead(world, () => put('one'))
        put('two')
        world.announce(KEY)
        whileItIsRead(world, async () => {
          put('one')
          await told(world)
        })
        await world.run()
        await onlySeen(world, TWO.one)
        assert.equal(world.store.reads.length, 2)
      })

      withWorld(`is seen again when ${path} tells of it before it is swept`, async (world, put) => {
        await world.process.engine.pause('kind', 'ingest.sweep')
        for (const word of ['one', 'two'] as const) {
          put(word)
          world.announce(KEY)
          await world.process.receiver.drain(new AbortController().signal)
          await noneOpen(world)
        }
        assert.equal(await world.rows('search_documents'), 4)
        put('one')
        await told(world)
        await noneOpen(world)
        assert.deepEqual(await world.seen(), TWO.one)
        await world.process.engine.resume('kind', 'ingest.sweep')
        await world.settle()
        await onlySeen(world, TWO.one)
      })

      withWorld(`is seen again when ${path} tells of it after its shard was pruned`, async (world, put) => {
        const first = { ...(await putAndRead(world, () => put('one'))) }
        await putAndRead(world, () => put('two'))
        await tidy(world)
        assert.equal(await world.rows('ingest_shards'), 1)
        put('one')
        whileItIsRead(world, () => tellAgain(world, first))
        await told(world)
        await world.settle()
        await onlySeen(world, TWO.one)
      })

      withWorld(
        `and that ${path} has told of stays when the other is announced once more, and is not known any more`,
        async (world, put) => {
          await putAndRead(world, () => put('one'))
          const second = { ...(await putAndRead(world, () => put('two'))) }
          keepReadable(world, second, lines(2, 'two'))
          put('one')
          await told(world)
          await world.settle()
          await tidy(world)
          await tellAgain(world, second)
          await world.settle()
          await onlySeen(world, TWO.one)
        },
      )
    }

    withWorld(
      'while it is read, and after something else was announced, is the newest',
      async (world, put) => {
        await putAndRead(world, () => put('one'))
        put('two')
        world.announce(KEY)
        whileItIsRead(world, async () => {
          for (const word of ['one', 'two'] as const) {
            put(word)
            world.announce(KEY)
            await world.process.receiver.drain(new AbortController().signal)
          }
        })
        await world.run()
        await onlySeen(world, TWO.two)
      },
    )

    withWorld('just after it was found to be replaced is read', async (world, put) => {
      const { store } = world
      put('one')
      world.announce(KEY)
      const second = { ...put('two') }
      keepReadable(world, second, lines(2, 'two'))
      const head = store.head.bind(store)
      store.head = async (uri) => {
        const answer = await head(uri)
        store.head = head
        put('one')
        world.announce(KEY)
        await world.process.receiver.drain(new AbortController().signal)
        return answer
      }
      await world.run()
      assert.deepEqual(await world.seen(), TWO.one)
    })

    /** What runs between the last look of a job and the commit in which it ends, once. */
    const behindLook = <Look extends 'replaced' | 'shard'>(
      { process: { kinds } }: IngestWorld,
      {
        look,
        isLast,
        run,
      }: { look: Look; isLast: (answer: unknown) => boolean; run: () => Promise<unknown> },
    ): void => {
      const { tables } = kinds
      const asked = tables[look].bind(tables) as (...args: unknown[]) => Promise<unknown>
      const hooked = async (...args: unknown[]): Promise<unknown> => {
        const answer = await asked(...args)
        if (!isLast(answer)) return answer
        Object.assign(tables, { [look]: asked })
        await run()
        return answer
      }
      Object.assign(tables, { [look]: hooked })
    }

    withWorld('leaves nothing of what it replaces just as a sweep ends', async (world, put) => {
      await putAndRead(world, () => put('one'))
      let isSwept = false
      behindLook(world, {
        look: 'replaced',
        isLast: (rows) => (rows as unknown[]).length === 0,
        run: async () => {
          put('one')
          world.announce(KEY)
          await world.process.receiver.drain(new AbortController().signal)
          await noneOpen(world)
          isSwept = true
        },
      })
      await putAndRead(world, () => put('two'))
      assert.ok(isSwept)
      await onlySeen(world, TWO.one)
    })

    withWorld('just as a job about it ends is read', async (world, put) => {
      await putAndRead(world, () => put('one'))
      await putAndRead(world, () => put('two'))
      const { engine, kinds } = world.process
      const skipped = (await kinds.tables.shards({ pipeline: NAME, after: '', limit: 10 })).find(
        ({ state }) => state === 'skipped',
      )!
      behindLook(world, {
        look: 'shard',
        isLast: () => true,
        run: async () => {
          put('one')
          await listed(world)
        },
      })
      await engine.write({ jobs: [objectJob(kinds, NAME, { ...skipped, sizeBytes: null })] })
      await world.settle()
      await onlySeen(world, TWO.one)
    })

    withWorld('is seen whole when another version ends between two of its readings', async (world, put) => {
      const { store, process } = world
      const { kinds, ledger } = process
      const uri = `s3://bucket/${KEY}`
      store.denied.add(uri)
      const other = { ...(await putAndRead(world, () => put('two'))) }
      store.denied.delete(uri)
      keepReadable(world, other, lines(2, 'two'))
      put('one', 40)
      const [bad] = await kinds.tables.versions(NAME, uri)
      // Some of its records are there when the first reading fails; before the second one takes it, the other is stored.
      store.onBytes = (_, bytes) => {
        if (bytes < 320) return
        store.onBytes = undefined
        behindLook(world, {
          look: 'shard',
          isLast: (row) => (row as ShardRow).id !== bad!.id && (row as ShardRow).records > 0,
          run: async () => {
            await ledger.retryBad()
            while ((await kinds.tables.shard(NAME, bad!.id))?.state !== 'stored')
              await new Promise((resolve) => setImmediate(resolve))
          },
        })
        throw new TidemarkError('cut off', { kind: 'transient' })
      }
      world.announce(KEY)
      await world.run()
      await onlySeen(world, Array.from({ length: 40 }, (_, at) => `one ${at}`).sort())
    })

    withWorld(
      'adds nothing where versions stand beside each other: it was added the first time',
      async (world, put) => {
        await putAndRead(world, () => put('one'))
        await putAndRead(world, () => put('two'))
        const reads = world.store.reads.length
        await putAndRead(world, () => put('one'))
        await world.list()
        await tidy(world)
        await putAndRead(world, () => put('two'))
        await onlySeen(world, [...TWO.one, ...TWO.two])
        assert.equal(world.store.reads.length, reads)
      },
      { config: { overwrites: 'append' } },
    )
  })
}
