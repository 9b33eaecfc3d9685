/** Somebody who may write in the root replaces one of our own folders by a link to elsewhere. */
import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { isNoFolder } from './folder.ts'
import { partialPath, putInPlace, sweepPartials } from './place.ts'
import { createRoot, type OwnKind, type Root } from './root.ts'
import { lookAt, plainStat } from './stat.ts'
import { moveToTrash } from './trash.ts'
import { listTrash, restore } from './trash-bin.ts'

const DAY = '2026-11-16'
const atMs = Date.parse(`${DAY}T03:15:00Z`)
const homes: string[] = []
afterEach(() => {
  for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true })
})

async function fresh(): Promise<{ root: Root; outside: string }> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-own-')))
  homes.push(home)
  mkdirSync(join(home, 'outside', DAY), { recursive: true })
  writeFileSync(join(home, 'outside', DAY, 'theirs.txt'), 'theirs')
  const root = await createRoot(join(home, 'root'), { markerId: 'm', drive: 'd', createdAt: '2026' })
  writeFileSync(join(root.path, 'a.txt'), 'mine')
  return { root, outside: join(home, 'outside') }
}

/** The root was opened before: what leads to our folders was checked then. */
function linked({ path }: Root, kind: OwnKind, outside: string): void {
  renameSync(join(path, '.tidemark', kind), join(path, '..', kind))
  symlinkSync(outside, join(path, '.tidemark', kind))
}

describe('a folder of our own that became a link', () => {
  test('takes nothing to the trash, and nothing of what it leads to counts as that', async () => {
    const { root, outside } = await fresh()
    linked(root, 'trash', outside)
    const expect = plainStat(lookAt(join(root.path, 'a.txt'))!)
    assert.throws(() => moveToTrash(root, ['a.txt'], expect, { atMs }))
    assert.equal(readFileSync(join(root.path, 'a.txt'), 'utf8'), 'mine')
    assert.deepEqual([...listTrash(root)], [])
    assert.equal(restore(root, { names: [DAY, 'theirs.txt'] }), 'gone')
    assert.deepEqual(readdirSync(join(outside, DAY)), ['theirs.txt'])
  })

  test('also one level below', async () => {
    const { root, outside } = await fresh()
    symlinkSync(join(outside, DAY), join(root.path, '.tidemark/trash', DAY))
    assert.deepEqual([...listTrash(root)], [])
    const expect = plainStat(lookAt(join(root.path, 'a.txt'))!)
    const trashed = moveToTrash(root, ['a.txt'], expect, { atMs })
    // The day is begun anew under another name.
    assert.deepEqual(trashed.outcome === 'done' && trashed.kept.names, [`${DAY}.2`, 'a.txt'])
    assert.deepEqual(readdirSync(join(outside, DAY)), ['theirs.txt'])
  })

  test('takes no download, and nothing is swept behind it', async () => {
    const { root, outside } = await fresh()
    linked(root, 'partial', outside)
    assert.throws(() => partialPath(root, { itemId: 'i', cTag: 'c' }), isNoFolder)
    await assert.rejects(sweepPartials(root, { beforeMs: Number.MAX_SAFE_INTEGER }), isNoFolder)
    assert.ok(existsSync(join(outside, DAY, 'theirs.txt')))
  })

  test('a moment after a download began has no part of it', async () => {
    const { root, outside } = await fresh()
    const partial = partialPath(root, { itemId: 'i', cTag: 'c' })
    if (process.platform === 'linux') linked(root, 'partial', outside)
    writeFileSync(partial, 'downloaded')
    const target = { names: ['b.txt'], expect: 'absent' as const, modifiedMs: null, atMs }
    assert.equal((await putInPlace(root, partial, target)).outcome, 'done')
    assert.equal(readFileSync(join(root.path, 'b.txt'), 'utf8'), 'downloaded')
    assert.deepEqual(readdirSync(outside), [DAY])
  })
})
