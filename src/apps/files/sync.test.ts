import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { actionView } from './api/history.ts'
import { streamOf } from './folder-pair.ts'
import { fileStatus } from './status.ts'
import { openNode } from './store/open-nodes.ts'
import { assertInStep, withFileWorld } from './sync.suite.ts'
import { itemNode } from './trees.ts'

test('a first sync merges both sides and deletes nothing', () =>
  withFileWorld({}, async (world) => {
    world.there.device.write('there/a.txt', 'from OneDrive')
    world.there.device.write('both.txt', 'the same')
    world.write('here/b/c.txt', 'from here')
    world.write('both.txt', 'the same')
    world.write('empty.txt', '')
    await world.sync()
    assert.equal(world.read('there/a.txt'), 'from OneDrive')
    assert.equal(world.there.device.read('here/b/c.txt')?.toString(), 'from here')
    assertInStep(world)
    assert.deepEqual(await world.files.store.openNodes('home', { limit: 10 }), [])
    // Their bytes were compared, and that is all.
    assert.ok(
      !(await world.actions()).some((action) => /^(?:upload|download|delete\S*) both\.txt/.test(action)),
    )
    assert.deepEqual(await world.files.store.conflicts('home', {}), [])
    const jobs = await world.engine.ledger.jobs({ limit: 1_000 })
    const told = jobs.flatMap((job) => actionView(job) ?? []).filter(({ path }) => path === 'both.txt')
    assert.deepEqual([...new Set(told.map(({ text }) => text))], ['Compared'])
  }))

/** What both sides have made, which somebody is to decide about; and a sync that comes to its end all the same. */
async function madeTwice(ledgerUrl: string): Promise<void> {
  const manual = { ledgerUrl, choices: { conflicts: 'manual' } }
  await withFileWorld({ ...manual, files: { 'a.txt': 'ours', '/a.txt': 'theirs!' } }, async (world) => {
    const status = () => fileStatus({ store: world.files.store, ledger: world.engine.ledger }, 'home')
    const before = (await world.actions()).length
    for (let round = 0; round < 2; round++) {
      await world.sync()
      const { state, text, open } = await status()
      assert.deepEqual([state, text], ['needs you', '1 conflict to decide.'])
      assert.deepEqual([open.unplanned, open.inWork, open.waiting], [0, 0, 0])
    }
    assert.equal((await world.actions()).length, before, 'nothing is done about it meanwhile')
    world.move('a.txt', 'b.txt')
    await world.sync()
    assertInStep(world)
    assert.deepEqual([world.read('a.txt'), world.read('b.txt')], ['theirs!', 'ours'])
    assert.equal((await status()).text, 'In step.')
  })
}

test('a file that both sides have made waits for a person and for nothing else, on SQLite', () =>
  madeTwice('sqlite::memory:'))

test('a file that both sides have made waits for a person and for nothing else, on PostgreSQL', async () => {
  const { url, drop } = await freshDatabase()
  try {
    await madeTwice(url)
  } finally {
    await drop()
  }
})

test('edits, renames and deletions go either way, and a sync of nothing asks one question', () =>
  withFileWorld({}, async (world) => {
    for (const name of [
      'edit-here',
      'edit-there',
      'move-here',
      'move-there',
      'drop-here',
      'drop-there',
      'd/x',
    ]) {
      world.write(name, name)
    }
    await world.sync()
    world.write('edit-here', 'edited here')
    world.there.device.write('edit-there', 'edited there')
    world.move('move-here', 'd/moved-here')
    world.there.device.move('move-there', 'd/moved-there')
    world.remove('drop-here')
    world.there.device.delete('drop-there')
    await world.sync()
    assertInStep(world)
    assert.deepEqual([...world.here().keys()].sort(), [
      'd/',
      'd/moved-here',
      'd/moved-there',
      'd/x',
      'edit-here',
      'edit-there',
    ])
    const before = world.sim.log.served
    await world.sync()
    assert.equal(world.sim.log.served - before, 1)
  }))

test('edited on both sides, both versions are kept', () =>
  withFileWorld({ files: { 'a.txt': 'first' } }, async (world) => {
    world.write('a.txt', 'edited here')
    world.there.device.write('a.txt', 'edited there')
    await world.sync()
    assertInStep(world)
    assert.equal(world.read('a.txt'), 'edited there')
    assert.deepEqual([...world.here().values()].sort(), ['edited here', 'edited there'])
    const [conflict] = await world.files.store.conflicts('home')
    assert.equal(conflict?.kind, 'edit-edit')
  }))

test('two empty files that agree without a hash are edited here, and that is uploaded', () =>
  withFileWorld({}, async (world) => {
    world.there.setQuirks({ hashMissingOnEmpty: true })
    world.there.device.write('notes.txt', '')
    world.write('notes.txt', '')
    await world.sync()
    world.write('notes.txt', 'the first words')
    await world.sync()
    assertInStep(world)
    assert.equal(world.there.device.read('notes.txt')?.toString(), 'the first words')
  }))

test('a folder of many files that is moved is one call', () =>
  withFileWorld({}, async (world) => {
    for (let n = 0; n < 50; n++) world.write(`old/f${n}`, String(n))
    await world.sync()
    world.move('old', 'new')
    const before = world.sim.log.served
    await world.sync()
    assertInStep(world)
    assert.ok(world.sim.log.served - before <= 2, `${world.sim.log.served - before} calls`)
  }))

test('of a folder in which nothing changed a digest is kept, until something does, whoever changes it', () =>
  withFileWorld({}, async (world) => {
    const { store } = world.files
    for (let n = 0; n < 20; n++) world.write(`d/f${n}`, String(n))
    world.there.device.write('d/far.txt', 'far', { modifiedMs: Date.UTC(9999, 0, 1) })
    await world.sync()
    const { id } = (await store.localAt('home', ['d']))!
    const isNoted = async (): Promise<boolean> => (await store.seenFolder('home', id)) !== undefined
    assert.equal(await isNoted(), false)
    const changes = [
      () => world.write('d/f1', 'edited here'),
      () => world.there.device.write('d/f2', 'edited there'),
      () => world.there.device.delete('d/f3'),
      () => world.move('d/f4', 'd/g4'),
      () => world.there.device.move('d/f5', 'f5'),
      () => world.write('d/new', 'new here'),
      () => world.there.device.write('d/newer', 'new there'),
    ]
    for (const change of changes) {
      await world.sync()
      assert.equal(await isNoted(), true, `before ${change}`)
      change()
      await world.sync()
      assert.equal(await isNoted(), false, `after ${change}`)
      assertInStep(world)
    }
  }))

test('files of the years 1901 and 9999 come with a time, and are not read again with each look', () =>
  withFileWorld({}, async (world) => {
    world.there.device.write('far.txt', 'far', { modifiedMs: Date.UTC(9999, 0, 1) })
    world.there.device.write('past.txt', 'past', { modifiedMs: Date.UTC(1901, 11, 31) })
    for (let count = 0; count < 3; count++) await world.sync()
    assertInStep(world)
    assert.deepEqual((await world.actions()).sort(), ['download far.txt', 'download past.txt'])
    assert.ok(statSync(world.path('past.txt')).mtimeMs < 0)
  }))

test('a plan that has an action for all that is open wakes who waits for something that does not move, too', () =>
  withFileWorld({ files: { 'a.txt': 'one', 'b.txt': 'two' } }, async (world) => {
    const { store, kinds } = world.files
    const stranded = itemNode(world.there.device.item('/b.txt').id)
    await store.write(async (tx) => {
      await openNode(tx, 'home', stranded)
      await tx.run(`UPDATE file_open SET waits_for = 'i:nobody' WHERE node = ?`, [stranded])
    })
    world.there.device.edit('/a.txt', 'edited')
    await world.engine.enqueue(kinds.delta, { drive: 'home' }, { stream: streamOf('home') })
    await world.settled()
    assert.equal(world.read('a.txt'), 'edited')
    assert.deepEqual(await store.openNodes('home', { limit: 10 }), [])
  }))
