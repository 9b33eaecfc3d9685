/** What people have lost with other clients, and why it cannot happen here: each with the whole sync, end to end. */
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { OWN_FOLDER } from './names.ts'
import { assertInStep, type FileWorld, withFileWorld } from './sync.suite.ts'

const FILES = Array.from({ length: 12 }, (_, n) => `d${n % 3}/f${n}.txt`)

const BEGUN = { files: Object.fromEntries(FILES.map((name) => [name, `first ${name}`])) }

function thereNames(world: FileWorld): string[] {
  return [...world.thereTree().keys()].filter((name) => !name.endsWith('/')).sort()
}

/** The look fails, again and again, and nothing else happens: the job is there to be seen. */
async function syncInVain(world: FileWorld): Promise<void> {
  await world.engine.enqueue(world.files.kinds.sync, { drive: 'home' }, { stream: 'files:home' })
  await world.until(async () => {
    const jobs = await world.engine.ledger.jobs({ kind: 'files.look', limit: 1 })
    return jobs[0] !== undefined && (jobs[0].attempt > 1 || jobs[0].note !== null || jobs[0].error !== null)
  })
}

test('a folder that is not there deletes nothing in the cloud', () =>
  withFileWorld(BEGUN, async (world) => {
    renameSync(world.root, `${world.root}-unmounted`)
    await syncInVain(world)
    assert.deepEqual(thereNames(world), [...FILES].sort())
    renameSync(`${world.root}-unmounted`, world.root)
  }))

test('an empty folder in the place of the folder deletes nothing in the cloud', () =>
  withFileWorld(BEGUN, async (world) => {
    renameSync(world.root, `${world.root}-unmounted`)
    mkdirSync(world.root)
    await syncInVain(world)
    assert.deepEqual(thereNames(world), [...FILES].sort())
    rmSync(world.root, { recursive: true })
    renameSync(`${world.root}-unmounted`, world.root)
  }))

test('a folder whose marker is gone deletes nothing in the cloud', () =>
  withFileWorld(BEGUN, async (world) => {
    for (const name of FILES) world.remove(name)
    rmSync(join(world.root, OWN_FOLDER), { recursive: true })
    await syncInVain(world)
    assert.deepEqual(thereNames(world), [...FILES].sort())
  }))

test('a download that fails is not taken for a deletion here', () =>
  withFileWorld(BEGUN, async (world) => {
    world.there.device.write('new.txt', 'from elsewhere')
    world.sim.faults.set({
      rules: [{ do: 'error', status: 500, methods: ['graph.download', 'graph.content.get'] }],
    })
    await world.syncStopped(async () => (await world.files.store.openCounts('home')).inWork > 0)
    assert.ok(thereNames(world).includes('new.txt'))
    world.sim.faults.clear()
    await world.sync()
    assert.equal(world.read('new.txt'), 'from elsewhere')
    assertInStep(world)
  }))

test('an edit here is not lost when the file is deleted elsewhere', () =>
  withFileWorld(BEGUN, async (world) => {
    world.write('d0/f0.txt', 'edited here')
    world.there.device.delete('d0/f0.txt')
    await world.sync()
    assert.equal(world.read('d0/f0.txt'), 'edited here')
    assertInStep(world)
  }))

test('an edit elsewhere is not lost when the file is deleted here', () =>
  withFileWorld(BEGUN, async (world) => {
    world.remove('d0/f0.txt')
    world.there.device.write('d0/f0.txt', 'edited there')
    await world.sync()
    assert.equal(world.read('d0/f0.txt'), 'edited there')
    assertInStep(world)
  }))

test('an edit here is not lost when its folder is deleted elsewhere', () =>
  withFileWorld(BEGUN, async (world) => {
    world.write('d0/f0.txt', 'edited here')
    world.write('d0/deep/new.txt', 'new here')
    world.there.device.delete('d0')
    await world.sync()
    assert.equal(world.read('d0/f0.txt'), 'edited here')
    assert.equal(world.read('d0/deep/new.txt'), 'new here')
    assert.ok(!world.has('d0/f3.txt'))
    assertInStep(world)
  }))

test('a folder renamed elsewhere keeps what is in it', () =>
  withFileWorld(BEGUN, async (world) => {
    world.there.device.rename('d0', 'renamed')
    await world.sync()
    assert.equal(world.read('renamed/f0.txt'), 'first d0/f0.txt')
    assert.ok(!world.has('d0'))
    assertInStep(world)
    assert.deepEqual(
      (await world.actions()).filter((action) => /delete|download/.test(action)),
      [],
    )
  }))

test('a rename here to a name that OneDrive does not take leaves the copy there alone', () =>
  withFileWorld(BEGUN, async (world) => {
    world.move('d0/f0.txt', 'd0/what?.txt')
    await world.sync()
    assert.ok(thereNames(world).includes('d0/f0.txt'))
    assert.ok(world.has('d0/what?.txt'))
    const [reported] = await world.files.store.reported('home', { limit: 10 })
    assert.match(reported?.because ?? '', /does not take names with/)
    world.move('d0/what?.txt', 'd0/what.txt')
    await world.sync()
    assertInStep(world)
  }))

test('what is moved here is not uploaded again', () =>
  withFileWorld(BEGUN, async (world) => {
    const before = world.sim.log.bytesOf('graph.content.put').received
    world.move('d0', 'elsewhere/deep/d0')
    world.move('d1/f1.txt', 'f1-moved.txt')
    await world.sync()
    assertInStep(world)
    assert.equal(world.sim.log.bytesOf('graph.content.put').received, before)
  }))

test('a file that OneDrive rewrites after its upload is not uploaded again and again', () =>
  withFileWorld({ drive: { type: 'business' } }, async (world) => {
    world.there.setQuirks({ rewritesUploads: true })
    world.write('report.docx', 'as written here')
    await world.sync()
    for (let n = 0; n < 3; n++) await world.sync()
    const uploads = (await world.actions()).filter((action) => action === 'upload report.docx')
    assert.equal(uploads.length, 1)
    assert.equal(world.read('report.docx'), 'as written here')
    assert.deepEqual(await world.files.store.conflicts('home'), [])
  }))

test('conflicts do not breed conflicts', () =>
  withFileWorld({ files: { 'a.txt': 'first' } }, async (world) => {
    world.write('a.txt', 'here')
    world.there.device.write('a.txt', 'there')
    for (let n = 0; n < 4; n++) await world.sync()
    assert.equal([...world.here().keys()].length, 2)
    assert.equal((await world.files.store.conflicts('home')).length, 1)
    assertInStep(world)
  }))

test('the same edit on both sides is no conflict', () =>
  withFileWorld({ files: { 'a.txt': 'first' } }, async (world) => {
    world.write('a.txt', 'the same edit')
    world.there.device.write('a.txt', 'the same edit')
    await world.sync()
    assert.deepEqual(await world.files.store.conflicts('home'), [])
    assertInStep(world)
  }))

test('a rename of case alone deletes nothing, whichever side made it', () =>
  withFileWorld(BEGUN, async (world) => {
    world.move('d0/f0.txt', 'd0/F0.TXT')
    world.there.device.rename('d1/f1.txt', 'F1.txt')
    world.there.device.rename('d2', 'D2')
    await world.sync()
    assertInStep(world)
    assert.ok(world.has('d0/F0.TXT') && world.has('d1/F1.txt') && world.has('D2/f2.txt'))
    assert.deepEqual(
      (await world.actions()).filter((action) => /delete/.test(action)),
      [],
    )
  }))

test('when OneDrive forgets what changed, everything goes on, and nothing is deleted or copied', () =>
  withFileWorld(BEGUN, async (world) => {
    world.there.device.write('d0/f0.txt', 'edited there')
    world.there.device.delete('d1/f1.txt')
    world.write('d2/f2.txt', 'edited here')
    world.there.expireDelta()
    await world.sync()
    assertInStep(world)
    assert.equal(world.read('d0/f0.txt'), 'edited there')
    assert.ok(!world.has('d1/f1.txt'))
    assert.deepEqual(await world.files.store.conflicts('home'), [])
    const actions = (await world.actions()).slice(-10)
    assert.ok(actions.filter((action) => /download|upload/.test(action)).length <= FILES.length + 2)
  }))

test('two forms of the same accent are one file', () =>
  withFileWorld({ files: { 'cafe\u0301.txt': 'decomposed' } }, async (world) => {
    assert.equal(thereNames(world).length, 1)
    world.there.device.write(thereNames(world)[0]!, 'edited there')
    await world.sync()
    await world.sync()
    assert.deepEqual([...world.here().values()], ['edited there'])
    assert.equal(thereNames(world).length, 1)
  }))

test('S5: a click that deletes everything is asked about before the other side follows', () =>
  withFileWorld({ isUnanswered: true, ...BEGUN }, async (world) => {
    for (const name of ['d0', 'd1', 'd2']) world.there.device.delete(name)
    await world.sync()
    assert.deepEqual([...world.here().keys()].filter((name) => !name.endsWith('/')).sort(), [...FILES].sort())
    const { heldDeletes } = await world.files.store.folderPair('home')
    assert.deepEqual(JSON.parse(heldDeletes ?? 'null'), { local: FILES.length + 3, remote: 0 })
  }))

test('S6: a download that would fill the disk waits, and nothing is left half-way', () =>
  withFileWorld({ settings: { reserveBytes: 2 ** 60 } }, async (world) => {
    world.there.device.write('big.bin', Buffer.alloc(100_000, 1))
    await world.syncStopped(async () => (await world.files.store.openCounts('home')).inWork > 0)
    assert.ok(!world.has('big.bin'))
  }))
