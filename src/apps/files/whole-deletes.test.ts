import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { streamOf } from './folder-pair.ts'
import { assertInStep, type FileWorld, PAIR, withFileWorld } from './sync.suite.ts'

const FILES = 12
/** More than a plan takes at once. Most of what is in them is folders, which come without being downloaded. */
const [FOLDERS, FOLDERS_EACH] = [30, 70]

async function fill(world: FileWorld): Promise<void> {
  for (let n = 0; n < FILES; n++) {
    world.write(`d/${n % 3}/${n}.txt`, `number ${n}`)
    world.write(`stays/${n}.txt`, `stays ${n}`)
    world.write(`stays/more/${n}.txt`, `more ${n}`)
  }
  await world.sync()
}

function deletions(world: FileWorld): number {
  const answers = world.sim.log.counts().requests['graph.items.delete'] ?? {}
  return Object.values(answers).reduce((sum, count) => sum + count, 0)
}

/** The deletion is planned; then something happens in OneDrive that nobody has heard of. */
async function meanwhile(world: FileWorld, happens: () => void): Promise<void> {
  rmSync(world.path('d'), { recursive: true })
  await world.engine.pause('kind', 'files.change')
  await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).inWork === 1)
  happens()
  await world.engine.resume('kind', 'files.change')
  await world.settled()
  await world.sync()
}

describe('a folder that is deleted here with all that is in it', () => {
  test('is deleted in OneDrive by one call, and counts as all that it held', () =>
    withFileWorld({}, async (world) => {
      await fill(world)
      rmSync(world.path('d'), { recursive: true })
      await world.sync()
      assertInStep(world)
      assert.equal(deletions(world), 1)
      assert.deepEqual(await world.files.store.openNodes(PAIR, { limit: 10 }), [])
      const { items, files } = await world.files.store.recentDeletes(PAIR, Date.now())
      assert.deepEqual([items, files], [FILES + 4, FILES])
      const streams = await world.engine.ledger.streams()
      assert.equal(streams.find(({ name }) => name === streamOf(PAIR))!.unbalanced, 0)
    }))

  test('is deleted by one call also with a ledger on PostgreSQL that sorts text as a language does', async () => {
    const { url, drop } = await freshDatabase()
    try {
      await withFileWorld({ ledgerUrl: url }, async (world) => {
        await fill(world)
        rmSync(world.path('d'), { recursive: true })
        await world.engine.pause('kind', 'files.change')
        await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).inWork > 0)
        assert.equal(await world.files.store.waitingForWhole(PAIR), FILES + 3)
        await world.engine.resume('kind', 'files.change')
        await world.settled()
        assertInStep(world)
        assert.equal(deletions(world), 1)
      })
    } finally {
      await drop()
    }
  })

  test('is deleted by one call also after a yes to more than one plan looks at, in many folders', () =>
    withFileWorld({}, async (world) => {
      world.write('stays.txt', 'stays')
      for (let n = 0; n < FOLDERS; n++) {
        for (let m = 0; m < FOLDERS_EACH; m++) world.there.device.mkdir(`d/${n}/${m}`)
        world.there.device.write(`d/${n}/file.txt`, `${n}`)
      }
      await world.sync()
      rmSync(world.path('d'), { recursive: true })
      await world.sync()
      assertInStep(world)
      assert.equal(deletions(world), 1)
    }))

  test('counts what is in it as no work of its own while it is being deleted', () =>
    withFileWorld({}, async (world) => {
      await fill(world)
      rmSync(world.path('d'), { recursive: true })
      await world.engine.pause('kind', 'files.change')
      await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).inWork === 1)
      assert.equal(await world.files.store.waitingForWhole(PAIR), FILES + 3)
      await world.engine.resume('kind', 'files.change')
      await world.settled()
      assert.equal(await world.files.store.waitingForWhole(PAIR), 0)
    }))

  test('keeps what came into it in OneDrive a moment before', () =>
    withFileWorld({}, async (world) => {
      await fill(world)
      await meanwhile(world, () => world.there.device.write('d/1/new.txt', 'new there'))
      assertInStep(world)
      assert.equal(world.read('d/1/new.txt'), 'new there')
      assert.equal([...world.here().keys()].filter((path) => path.startsWith('d/')).length, 3)
    }))

  test('keeps what was edited in it in OneDrive a moment before', () =>
    withFileWorld({}, async (world) => {
      await fill(world)
      await meanwhile(world, () => world.there.device.edit('d/1/1.txt', 'edited there'))
      assertInStep(world)
      assert.equal(world.read('d/1/1.txt'), 'edited there')
    }))

  test('goes one by one where something in it was moved elsewhere here', () =>
    withFileWorld({}, async (world) => {
      await fill(world)
      world.move('d/2/2.txt', 'stays/kept.txt')
      rmSync(world.path('d'), { recursive: true })
      await world.sync()
      assertInStep(world)
      assert.equal(world.there.device.read('stays/kept.txt')?.toString(), 'number 2')
    }))
})
