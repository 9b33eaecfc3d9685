/** What happens to a shard between the look at it and the transaction that places it anew. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IngestWorld, lines, NAME, type Process } from './ingest-world.suite.ts'
import { shardRange } from './pipeline.ts'
import { foundOf, preparePlacing } from './placing.ts'
import { lockVersions, noteRemoved, pruneShards, replaceShard } from './store/shards.ts'

const URI = 's3://bucket/a.ndjson'
const LATER = '00ff'

/** An object that is stored, and a second process on the same ledger. */
async function withStored(
  database: 'sqlite' | 'postgres',
  run: (world: IngestWorld, about: { id: string; first: Process; second: Process }) => Promise<void>,
): Promise<void> {
  const world = await IngestWorld.open({ database })
  try {
    const { id } = world.store.put('a.ndjson', lines(2))
    world.announce('a.ndjson')
    await world.run()
    const first = world.process
    await run(world, { id, first, second: await world.start() })
  } finally {
    await world.close()
  }
}

async function untilSomebodyWaits({ ledger }: Process): Promise<void> {
  for (;;) {
    const waiting = await ledger.driver.read((tx) =>
      tx.get<{ n: number }>(
        `SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      ),
    )
    if (Number(waiting!.n) > 0) return
  }
}

test('an announcement that waits for the transaction which replaces its object is planned by what that has left', () =>
  withStored('postgres', async (world, { id, first, second }) => {
    const found = foundOf(URI, { id, sequencer: LATER }, { sizeBytes: null, isCurrent: false })
    const prepared = await preparePlacing(second.kinds, NAME, [found])
    assert.equal(prepared.jobs.length, 1, 'who reads it then')
    const replaced = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    const replacing = first.ledger.transaction(async (tx) => {
      const [row] = await lockVersions(tx, { pipeline: NAME, uri: URI })
      await replaceShard(tx, row!, world.clock.now())
      replaced.resolve()
      await released.promise
    })
    await replaced.promise
    const placing = second.ledger.transaction((tx) => prepared.place(tx))
    await untilSomebodyWaits(first)
    released.resolve()
    await replacing
    assert.deepEqual(await placing, [{ id: found.id, act: 'reopen', state: 'open' }])
    assert.equal((await first.kinds.tables.shard(NAME, found.id))?.state, 'open')
  }))

for (const database of ['sqlite', 'postgres'] as const) {
  test(`a shard that is pruned before it is placed is known by its records, on ${database}`, () =>
    withStored(database, async (world, { id }) => {
      const { kinds, ledger } = world.process
      const found = foundOf(URI, { id }, { sizeBytes: null, isCurrent: true })
      const prepared = await preparePlacing(kinds, NAME, [found])
      const beforeMs = world.clock.now() + 1_000
      const pruned = await ledger.transaction((tx) =>
        pruneShards(tx, { pipeline: NAME, overwrites: 'append', beforeMs, limit: 10 }),
      )
      assert.equal(pruned, 1)
      const placed = await ledger.transaction((tx) => prepared.place(tx))
      assert.deepEqual([placed, prepared.jobs], [[{ id: found.id, act: 'insert', state: 'stored' }], []])
    }))

  test(`a shard that was replaced, and is swept and pruned before it is placed anew, is read again, on ${database}`, () =>
    withStored(database, async (world, { id }) => {
      const { kinds, ledger, search } = world.process
      const found = foundOf(URI, { id }, { sizeBytes: null, isCurrent: true })
      await ledger.transaction(async (tx) => {
        const [row] = await lockVersions(tx, { pipeline: NAME, uri: URI })
        await replaceShard(tx, row!, world.clock.now())
      })
      const prepared = await preparePlacing(kinds, NAME, [found])
      const beforeMs = world.clock.now() + 1_000
      await ledger.transaction(async (tx) => {
        await search.removeRange(tx, shardRange(NAME, found.id), 10)
        await noteRemoved(tx, { pipeline: NAME, id: found.id }, 'all')
        await pruneShards(tx, { pipeline: NAME, overwrites: 'replace', beforeMs, limit: 10 })
      })
      const placed = await ledger.transaction((tx) => prepared.place(tx))
      assert.deepEqual(placed, [{ id: found.id, act: 'insert', state: 'open' }])
      assert.equal(prepared.jobs.length, 1)
    }))
}
