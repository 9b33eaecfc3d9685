/** Contents that OneDrive's hash does not tell from each other: what is made on both sides is compared by its bytes. */
import assert from 'node:assert/strict'
import { readdirSync, utimesSync } from 'node:fs'
import { test } from 'node:test'
import { quickXorHash } from '../../base/quick-xor-hash.ts'
import { decide } from './decide.ts'
import { assertInStep, type FileWorld, PAIR, withFileWorld } from './sync.suite.ts'
import { COMPARED_BYTES_MAX, contentSameness, type LocalRow, type RemoteRow } from './trees.ts'

const record = (letter: string): string => letter.repeat(160)
const ONE = record('a') + record('b')
const OTHER = record('b') + record('a')
const A_TIME_MS = Date.UTC(2024, 4, 1)

function downloads(world: FileWorld): number {
  return Object.values(world.sim.log.counts().requests['graph.download'] ?? {}).reduce((a, b) => a + b, 0)
}

function copies(world: FileWorld): string[] {
  return readdirSync(world.root).filter((name) => name.includes('.conflict-'))
}

test('equal hashes and sizes say that contents are the same only with the time, or where the file is large', () => {
  const here = { size: 320, hash: 'h', mtimeNs: `${A_TIME_MS}000000` }
  const there = { size: 320, hash: 'h', modifiedMs: A_TIME_MS }
  assert.equal(quickXorHash(Buffer.from(ONE)), quickXorHash(Buffer.from(OTHER)))
  assert.equal(contentSameness(here, there), 'same')
  assert.equal(contentSameness(here, { ...there, modifiedMs: A_TIME_MS + 1 }), 'likely')
  assert.equal(contentSameness(here, { ...there, modifiedMs: null }), 'likely')
  assert.equal(contentSameness(here, { ...there, hash: 'other' }), 'other')
  assert.equal(contentSameness(here, { ...there, size: 321 }), 'other')
  assert.equal(contentSameness({ ...here, hash: null }, { ...there, hash: null }), 'other')
  const large = { size: COMPARED_BYTES_MAX + 1 }
  assert.equal(contentSameness({ ...here, ...large }, { ...there, ...large, modifiedMs: 0 }), 'same')
})

test('two new files that only their bytes tell from each other are a conflict, and both are kept', () =>
  withFileWorld({}, async (world) => {
    world.write('a.db', ONE)
    world.there.device.write('a.db', OTHER, { modifiedMs: A_TIME_MS })
    await world.sync()
    assertInStep(world)
    assert.equal(world.read('a.db'), OTHER)
    assert.deepEqual(
      copies(world).map((name) => world.read(name)),
      [ONE],
    )
  }))

test('the same of edits on both sides', () =>
  withFileWorld({ files: { 'a.db': 'before' } }, async (world) => {
    world.write('a.db', ONE)
    world.there.device.edit('a.db', OTHER, { modifiedMs: A_TIME_MS })
    await world.sync()
    assertInStep(world)
    assert.equal(copies(world).length, 1)
  }))

test('what OneDrive has made of that name since it was last asked is compared with what goes there', () =>
  withFileWorld({}, async (world) => {
    await world.sync()
    await world.engine.pause('kind', 'files.upload')
    world.write('a.db', ONE)
    await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).inWork === 1)
    world.there.device.write('a.db', OTHER, { modifiedMs: A_TIME_MS })
    await world.engine.resume('kind', 'files.upload')
    await world.settled()
    assertInStep(world)
    assert.equal(copies(world).length, 1)
  }))

test('a file that is moved to where OneDrive has one that only its bytes tell from it is no hand-over', () =>
  withFileWorld({}, async (world) => {
    world.write('a.db', ONE)
    await world.sync()
    world.move('a.db', 'b.db')
    world.there.device.write('b.db', OTHER, { modifiedMs: A_TIME_MS })
    await world.sync()
    assertInStep(world)
    assert.deepEqual(
      [...world.here().values()].filter((content) => content === ONE || content === OTHER).sort(),
      [ONE, OTHER],
    )
  }))

test('equal files with another time are compared once, and those with the same time are not fetched', () =>
  withFileWorld({}, async (world) => {
    world.write('other-time.txt', 'the same')
    world.there.device.write('other-time.txt', 'the same', { modifiedMs: A_TIME_MS })
    world.write('same-time.txt', 'the same, too')
    utimesSync(world.path('same-time.txt'), A_TIME_MS / 1000, A_TIME_MS / 1000)
    world.there.device.write('same-time.txt', 'the same, too', { modifiedMs: A_TIME_MS })
    await world.sync()
    await world.sync()
    assertInStep(world)
    assert.deepEqual([copies(world), downloads(world)], [[], 1])
    assert.deepEqual(await world.files.store.conflicts(PAIR), [])
  }))

test('where only uploads are on, equal files are in step, and others are left as they are', () =>
  withFileWorld({ choices: { mode: 'upload-only' } }, async (world) => {
    world.write('same.txt', 'the same')
    world.there.device.write('same.txt', 'the same', { modifiedMs: A_TIME_MS })
    world.write('a.db', ONE)
    world.there.device.write('a.db', OTHER, { modifiedMs: A_TIME_MS })
    await world.sync()
    assert.equal(world.read('a.db'), ONE)
    assert.equal(world.there.device.read('a.db')?.toString(), OTHER)
    const left = await world.files.store.reported(PAIR, { limit: 10 })
    assert.deepEqual([...new Set(left.map(({ path }) => path))], ['a.db'])
  }))

test('two files that are likely to be the same are compared, and are no conflict before', () => {
  const place = { name: 'a', size: 3, hash: 'h' }
  const local: LocalRow = {
    ...place,
    id: 7,
    parentId: 1,
    type: 'file',
    sha256: 's',
    itemId: null,
    isMissing: false,
    unreadable: null,
    dev: '1',
    ino: '2',
    birthNs: '3',
    mtimeNs: '4',
    ctimeNs: '5',
  }
  const remote: RemoteRow = {
    ...place,
    itemId: 'X',
    parentId: 'root',
    type: 'file',
    eTag: 'e',
    cTag: 'c',
    modifiedMs: A_TIME_MS,
    isDeleted: false,
  }
  const node = { base: undefined, local, remote, localParentId: 'root' }
  for (const mode of ['two-way', 'download-only', 'upload-only'] as const)
    assert.deepEqual(decide(node, mode), { do: 'conflict', row: 'EF11', conflict: 'create-create' })
})
