import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { seededRandom } from '../../base/random.ts'
import { generateWorld } from './generate.ts'
import { kinds } from './generate-kinds.ts'
import { isFolder, isNative } from './item.ts'
import { exportFormats, exportItem } from './native.ts'
import { whoSees } from './oracle.ts'
import { DriveWorld } from './world.ts'

const USERS = ['ann@example.com', 'bob@example.com', 'cy@example.com']

function worldOf(seed: number, options: Partial<Parameters<typeof generateWorld>[1]> = {}): DriveWorld {
  const world = new DriveWorld({ clock: new FakeClock(), random: seededRandom(seed) })
  const team = { name: 'Team', members: [{ email: USERS[0]!, role: 'organizer' as const }] }
  const all = { users: USERS, documents: 600, drives: [team], ...options }
  generateWorld(world, all, { random: seededRandom(seed), nowMs: Date.UTC(2026, 10, 1) })
  return world
}

function filesOf(world: DriveWorld) {
  return [...world.items.values()].filter((item) => !isFolder(item))
}

test('the same seed makes the same world, down to its bytes, and another seed another one', () => {
  const digest = (world: DriveWorld) =>
    filesOf(world).map(({ id, name, owner, content }) => [id, name, owner, content!.digests.sha256])
  assert.deepEqual(digest(worldOf(3)), digest(worldOf(3)))
  assert.notDeepEqual(digest(worldOf(3)), digest(worldOf(4)))
})

test('a world has all kinds of documents, in folders in folders, seen differently by each user', () => {
  const world = worldOf(3, { documents: 3_000 })
  const files = filesOf(world)
  assert.equal(files.length, 3_000)
  const types = new Set(files.map(({ mimeType }) => mimeType))
  assert.deepEqual([...types].sort(), [...new Set(kinds.mixed.map(({ mimeType }) => mimeType))].sort())
  assert.ok(files.some(({ parent }) => parent?.parent?.parent?.parent))
  const seen = whoSees(world, 0)
  const counts = USERS.map((address) => seen[address]!.find.length)
  assert.ok(
    counts.every((count) => count > 100 && count < 3_000),
    counts.join(),
  )
  assert.ok(USERS.some((address) => seen[address]!.read.length > seen[address]!.find.length))
})

test('documents that all users share are seen by each of them', () => {
  const seen = whoSees(worldOf(3, { sharing: 'all', kinds: 'text', documents: 50, drives: [] }), 0)
  for (const address of USERS) assert.equal(seen[address]!.find.length, 50)
})

test('every kind is written whole, and every native one in every format that it has', () => {
  const world = worldOf(5, { documents: 1_000, kinds: 'readable' })
  const samples = new Map(filesOf(world).map((item) => [item.mimeType, item]))
  for (const item of samples.values()) {
    assert.ok(item.content!.digests.size > 20, item.name)
    if (!isNative(item)) continue
    for (const to of exportFormats(item.mimeType))
      assert.ok(exportItem(item, to, { withComments: true }).length > 20, to)
  }
})
