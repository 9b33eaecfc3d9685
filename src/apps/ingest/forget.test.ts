/** A pipeline that is removed, added again, or configured anew: nothing is lost unread, and nothing becomes another's. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { UsageError } from '../../base/errors.ts'
import { Accounts } from '../../ledger/accounts.ts'
import { checkForgotten } from './forget.ts'
import { IngestWorld, lines, NAME } from './ingest-world.suite.ts'
import { SERVICE, streamOf } from './pipeline.ts'
import { dropPipeline } from './store/pipelines.ts'

const settings = { [SERVICE]: { queue: { kind: 'inbox' }, location: 's3://bucket/' } }

async function remove(accounts: Accounts): Promise<void> {
  await accounts.remove((await accounts.find(SERVICE, NAME))!.id)
}

async function addAgain(accounts: Accounts): Promise<void> {
  await accounts.add({ service: SERVICE, name: NAME, settings, sealed: new Uint8Array(1) })
}

async function forget({ process }: IngestWorld): Promise<void> {
  await process.engine.enqueue(process.kinds.forget, { pipeline: NAME }, { stream: streamOf(NAME) })
  await process.engine.drained()
}

for (const database of ['sqlite', 'postgres'] as const) {
  const withWorld = (title: string, run: (world: IngestWorld, accounts: Accounts) => Promise<void>): void => {
    test(title, async () => {
      const world = await IngestWorld.open({ database })
      try {
        await run(world, await Accounts.open(world.process.ledger))
      } finally {
        await world.close()
      }
    })
  }

  describe(`a pipeline on ${database}`, () => {
    withWorld(
      'that is forgotten while a message of it waits lets go of the message, and acknowledges nothing unread',
      async (world) => {
        const { engine, ledger, receiver } = world.process
        world.store.put('a.ndjson', lines(2))
        await engine.pause('all')
        world.announce('a.ndjson')
        await receiver.drain(new AbortController().signal)
        assert.equal(receiver.held.size, 1)
        await ledger.transaction((tx) => dropPipeline(tx, NAME))
        await receiver.look()
        assert.deepEqual(world.queue.acknowledged, [])
        assert.equal(receiver.held.size, 0)
      },
    )

    withWorld(
      'that is removed and made anew acknowledges no message of which only the one before it was told',
      async (world) => {
        const { engine, kinds, ledger, receiver } = world.process
        const { sequencer } = world.store.put('a.ndjson', lines(2))
        await engine.pause('all')
        world.announce('a.ndjson')
        await receiver.drain(new AbortController().signal)
        await ledger.transaction((tx) => dropPipeline(tx, NAME))
        await engine.resume('all')
        await world.list()
        assert.equal((await world.seen()).length, 2)
        assert.deepEqual([world.queue.acknowledged, receiver.held.size], [[], 0])
        world.queue.redeliver()
        await world.run()
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        const [shard] = await kinds.tables.shards({ pipeline: NAME, after: '', limit: 1 })
        assert.equal(shard!.sequencer, sequencer)
      },
    )

    withWorld(
      'that is added again just when it begins to be forgotten keeps what it has',
      async (world, accounts) => {
        world.store.put('a.ndjson', lines(3))
        world.announce('a.ndjson')
        await world.run()
        const { kinds } = world.process
        const { index } = kinds
        await remove(accounts)
        kinds.index = async () => {
          if (!(await accounts.find(SERVICE, NAME))) await addAgain(accounts)
          return index()
        }
        await forget(world)
        assert.equal(await world.rows('search_documents'), 3)
        assert.equal(await world.rows('ingest_shards'), 1)
      },
    )

    withWorld(
      'that is removed leaves its name to nobody before its last record is gone',
      async (world, accounts) => {
        world.store.put('a.ndjson', lines(3))
        world.announce('a.ndjson')
        await world.run()
        const place = { accounts, tables: world.process.kinds.tables }
        await checkForgotten(place, NAME)
        await remove(accounts)
        await assert.rejects(
          checkForgotten(place, NAME),
          (error: UsageError) => error.code === 'pipeline-leaving',
        )
        await forget(world)
        assert.equal(await world.rows('search_documents'), 0)
        await checkForgotten(place, NAME)
      },
    )

    withWorld(
      'that is configured anew is there at every moment, and whoever reads with its old store reads on',
      async (world, accounts) => {
        const { pipelines } = world.process.kinds
        await pipelines.store(NAME, 's3://bucket/a')
        let closed = 0
        const seen: string[][] = []
        world.store.close = async () => {
          closed += 1
          seen.push(pipelines.names())
        }
        const { id } = (await accounts.find(SERVICE, NAME))!
        await accounts.setSettings(id, settings)
        const before = pipelines.stamp(NAME)
        await Promise.all([pipelines.reload(), pipelines.reload()])
        assert.notEqual(pipelines.stamp(NAME), before)
        assert.deepEqual([closed, seen], [0, []])
        await remove(accounts)
        await pipelines.reload()
        assert.deepEqual([pipelines.names(), closed], [[], 0])
        await pipelines.close()
        assert.equal(closed, 1)
      },
    )
  })
}
