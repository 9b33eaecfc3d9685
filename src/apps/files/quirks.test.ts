/** Each oddity of OneDrive, with the whole sync: both sides end in step, and nothing is lost, doubled or redone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PUT_BYTES_MAX } from '../../cloud/onedrive/client.ts'
import { type Quirks, quirkNames } from '../../sim/onedrive/quirks.ts'
import { assertInStep, type FileWorld, withFileWorld } from './sync.suite.ts'

/** Larger than what goes up in one piece. */
const LARGE = Buffer.alloc(PUT_BYTES_MAX + 1, 'tidemark ')

/** Some of everything, in two rounds. */
async function live(world: FileWorld): Promise<void> {
  const { device } = world.there
  for (const name of ['keep.txt', 'edit.txt', 'move.txt', 'drop.txt', 'dir/inside.txt', 'photo.heic']) {
    device.write(`there/${name}`, `${name} from there`)
    world.write(`here/${name}`, `${name} from here`)
  }
  device.write('there/empty', '')
  world.write('here/empty', '')
  world.write('here/large.bin', LARGE)
  device.write('there/large.bin', LARGE)
  device.write('there/100%25 & more.txt', 'an odd name')
  await world.sync()
  device.write('there/edit.txt', 'edited there')
  world.write('here/edit.txt', 'edited here')
  device.move('there/move.txt', 'there/dir/moved.txt')
  world.move('here/move.txt', 'here/new/moved.txt')
  device.delete('there/drop.txt')
  world.remove('here/drop.txt')
  device.delete('there/dir/inside.txt')
  device.mkdir('there/made/below')
  world.write('here/large.bin', Buffer.concat([LARGE, Buffer.from('more')]))
  await world.sync()
}

const VALUES: Partial<Record<keyof Quirks, number>> = { deltaLagMs: 300, changedNotFoundMs: 700 }

/** Where they were seen; the others on personal drives. */
const OF_BUSINESS: ReadonlySet<keyof Quirks> = new Set([
  'cTagMissing',
  'deletedNameMissing',
  'rewritesUploads',
  'rewritesUploadsLater',
  'sessionIfMatchRefused',
  'sessionsLeak',
  'pathMissing',
  'deltaPaths',
])

for (const name of quirkNames) {
  const type = OF_BUSINESS.has(name) ? 'business' : 'personal'
  test(`${name} on a ${type} drive`, () =>
    withFileWorld({ drive: { type } }, async (world) => {
      world.there.setQuirks({ [name]: VALUES[name] ?? true } as Partial<Quirks>)
      await live(world)
      // What OneDrive tells late is heard by a later sync.
      await world.until(async () => {
        await world.sync()
        return isInStep(world)
      })
      if (!name.startsWith('rewrites')) assertInStep(world)
      assert.equal(world.read('there/edit.txt'), 'edited there')
      assert.deepEqual(await world.files.store.conflicts('home'), [])
      const before = (await world.actions()).length
      await world.sync()
      assert.equal((await world.actions()).length, before, 'a sync of nothing did something')
    }))
}

/** Rewritten files differ for good: only their names can be compared. */
function isInStep(world: FileWorld): boolean {
  const names = (tree: Map<string, string>) => [...tree.keys()].sort().join('\n')
  return names(world.here()) === names(world.thereTree())
}
