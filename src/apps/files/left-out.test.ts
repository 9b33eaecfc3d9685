import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { folderPairSettings, streamOf } from './folder-pair.ts'
import { changeSettings } from './store/filter-change.ts'
import { assertInStep, type FileWorld, PAIR, withFileWorld } from './sync.suite.ts'
import { ASIDE, unreadableText } from './trees.ts'

const STAYS = Array.from({ length: 12 }, (_, n) => `stays/${n}`)

async function reasons(world: FileWorld): Promise<(string | null)[]> {
  const open = await world.files.store.openNodes(PAIR, { limit: 100 })
  return open.map(({ because }) => because)
}

describe('a file that grows beyond the largest size', () => {
  const options = { choices: { filter: { size_mb_max: 1 } }, isUnanswered: true }
  const LARGE = 'x'.repeat(2 * 1024 * 1024)

  async function grown(world: FileWorld): Promise<void> {
    for (const name of ['log.txt', 'b.txt', 'c.txt']) world.write(name, name)
    await world.sync()
    world.write('log.txt', LARGE)
    await world.sync()
  }

  test('is told as left alone, and goes on when it is smaller again', () =>
    withFileWorld(options, async (world) => {
      await grown(world)
      assert.deepEqual(await reasons(world), ['left out: it is larger than 1 MB'])
      await world.sync()
      assert.deepEqual(await reasons(world), ['left out: it is larger than 1 MB'])
      assert.equal(world.there.device.read('log.txt')?.toString(), 'log.txt')
      world.write('log.txt', 'rotated')
      await world.sync()
      assertInStep(world)
      assert.deepEqual(await reasons(world), [])
    }))

  test('goes up when larger ones take part', () =>
    withFileWorld(options, async (world) => {
      await grown(world)
      const { store, pairs } = world.files
      const row = await store.folderPair(PAIR)
      await store.write((tx) => changeSettings(tx, row, folderPairSettings.parse({})))
      await pairs.reload()
      await world.sync()
      assertInStep(world)
      assert.deepEqual(await reasons(world), [])
    }))

  test('and is deleted then is deleted in OneDrive after a yes', () =>
    withFileWorld(options, async (world) => {
      await grown(world)
      world.remove('log.txt')
      await world.sync()
      assert.ok(world.there.device.has('log.txt'), 'OneDrive has what was never replaced by the larger one')
      await world.sayYes()
      await world.settled()
      assertInStep(world)
    }))
})

describe('what passes through a name that is left out', () => {
  test('on the other device comes back with what was saved meanwhile', () =>
    withFileWorld({ files: { 'sheet.xlsx': 'first', 'other.txt': 'stays' } }, async (world) => {
      world.there.device.move('sheet.xlsx', 'sheet.tmp')
      await world.sync()
      world.there.device.write('sheet.tmp', 'edited there')
      await world.sync()
      world.there.device.move('sheet.tmp', 'sheet.xlsx')
      await world.sync()
      assertInStep(world)
      assert.equal(world.read('sheet.xlsx'), 'edited there')
      assert.deepEqual(await reasons(world), [])
    }))

  test('with an edit here comes back with both', () =>
    withFileWorld({ files: { 'sheet.xlsx': 'first', 'other.txt': 'stays' } }, async (world) => {
      world.there.device.move('sheet.xlsx', 'sheet.tmp')
      await world.sync()
      world.write(world.has('sheet.tmp') ? 'sheet.tmp' : 'sheet.xlsx', 'edited here')
      await world.sync()
      world.there.device.move('sheet.tmp', 'sheet.xlsx')
      world.there.device.write('sheet.xlsx', 'edited there')
      await world.sync()
      assertInStep(world)
      assert.deepEqual([...world.here().values()].sort(), ['edited here', 'edited there', 'stays'])
    }))

  test('as a folder comes back with all that happened in it on either side', () =>
    withFileWorld({ files: ['work/a.txt', 'work/b.txt', 'work/deep/c.txt', 'other.txt'] }, async (world) => {
      world.there.device.move('work', 'work.tmp')
      await world.sync()
      world.there.device.write('work.tmp/a.txt', 'edited there')
      world.there.device.write('work.tmp/deep/new.txt', 'new there')
      await world.sync()
      const here = world.has('work.tmp') ? 'work.tmp' : 'work'
      world.write(`${here}/deep/c.txt`, 'edited here')
      world.write(`${here}/mine.txt`, 'new here')
      await world.sync()
      world.there.device.move('work.tmp', 'work')
      await world.sync()
      assertInStep(world)
      assert.deepEqual(Object.fromEntries(world.here()), {
        'other.txt': 'other.txt',
        'work/': '',
        'work/a.txt': 'edited there',
        'work/b.txt': 'work/b.txt',
        'work/deep/': '',
        'work/deep/c.txt': 'edited here',
        'work/deep/new.txt': 'new there',
        'work/mine.txt': 'new here',
      })
      assert.deepEqual(await reasons(world), [])
    }))

  test('here comes back with what was saved meanwhile on either side', () =>
    withFileWorld({ files: ['sheet.xlsx', 'work/a.txt', 'work/b.txt', 'other.txt'] }, async (world) => {
      world.move('sheet.xlsx', 'sheet.tmp')
      world.move('work', 'work.tmp')
      await world.sync()
      assert.equal(world.there.device.read('sheet.xlsx')?.toString(), 'sheet.xlsx')
      assert.equal(world.there.device.read('work/b.txt')?.toString(), 'work/b.txt')
      world.there.device.write('work/a.txt', 'edited there')
      world.write('work.tmp/b.txt', 'edited here')
      world.write('sheet.tmp', 'edited here as well')
      await world.sync()
      world.move('sheet.tmp', 'sheet.xlsx')
      world.move('work.tmp', 'work')
      await world.sync()
      assertInStep(world)
      assert.equal(world.read('sheet.xlsx'), 'edited here as well')
      assert.equal(world.read('work/a.txt'), 'edited there')
      assert.equal(world.read('work/b.txt'), 'edited here')
    }))

  test('is made there in a folder of such a name, and comes when the folder has another', () =>
    withFileWorld({ files: { 'other.txt': 'stays' } }, async (world) => {
      world.there.device.write('new.tmp/a/b.txt', 'made there')
      await world.sync()
      assert.ok(!world.has('new.tmp'))
      world.there.device.move('new.tmp', 'new')
      await world.sync()
      assertInStep(world)
      assert.equal(world.read('new/a/b.txt'), 'made there')
    }))
})

test('a folder that is deleted in OneDrive under a name that is left out leaves nothing waiting', () =>
  withFileWorld({ files: ['work/a.txt', 'work/sub/b.txt', 'other.txt'] }, async (world) => {
    world.there.device.move('work', 'work.tmp')
    await world.sync()
    world.there.device.delete('work.tmp')
    await world.sync()
    assert.deepEqual(await world.files.store.openCounts(PAIR), {
      unplanned: 0,
      inWork: 0,
      waiting: 0,
      reported: 4,
    })
    assert.equal(world.read('work.tmp/sub/b.txt'), 'work/sub/b.txt')
  }))

describe('what has a name here that takes no part', () => {
  /** No text has these bytes. */
  const illegible = (world: FileWorld, name: string): Buffer =>
    Buffer.concat([Buffer.from(`${world.path(name)}-`), Buffer.from([0xff, 0xfe])])

  test('is not deleted in OneDrive, and what happened to it is there when it has a name again', () =>
    withFileWorld({ isUnanswered: true, files: [...STAYS, 'a.txt', 'b.txt', 'd/x.txt'] }, async (world) => {
      const before = world.thereTree()
      world.move('a.txt', 'a.tmp')
      renameSync(world.path('b.txt'), illegible(world, 'b'))
      renameSync(world.path('d'), illegible(world, 'd'))
      await world.sync()
      await world.sync()
      assert.deepEqual(world.thereTree(), before)
      assert.deepEqual((await reasons(world)).sort(), [
        'it has a name here that is left out',
        'it has a name here that is not valid text',
        'it has a name here that is not valid text',
      ])
      writeFileSync(illegible(world, 'b'), 'edited here')
      world.move('a.tmp', 'a.txt')
      renameSync(illegible(world, 'b'), world.path('b.txt'))
      renameSync(illegible(world, 'd'), world.path('d'))
      await world.sync()
      assertInStep(world)
      assert.equal(world.there.device.read('b.txt')?.toString(), 'edited here')
      assert.deepEqual(await reasons(world), [])
    }))

  test('is in a folder that is left out, and is not deleted in OneDrive, but is moved when it takes part again', () =>
    withFileWorld(
      { isUnanswered: true, files: [...STAYS, 'a.txt', 'd/x.txt', 'stays/deep/y.txt'] },
      async (world) => {
        const before = world.thereTree()
        world.move('a.txt', 'old.tmp/2025/a.txt')
        world.move('d', 'old.tmp/d')
        world.move('stays/deep', 'stays/older.tmp/deep')
        await world.sync()
        await world.sync()
        assert.deepEqual(world.thereTree(), before)
        const moved = 'it is in a folder here that is left out'
        assert.deepEqual(await reasons(world), [moved, moved, moved])
        world.move('old.tmp/2025/a.txt', 'stays/a.txt')
        world.move('old.tmp/d', 'd')
        world.move('stays/older.tmp/deep', 'deep')
        rmSync(world.path('old.tmp'), { recursive: true })
        rmSync(world.path('stays/older.tmp'), { recursive: true })
        await world.sync()
        assertInStep(world)
        assert.ok(world.there.device.has('stays/a.txt') && world.there.device.has('deep/y.txt'))
      },
    ))

  test('is in a folder whose name is not valid text, and is not deleted in OneDrive, but is moved when it comes back', () =>
    withFileWorld(
      { isUnanswered: true, files: [...STAYS, 'a.txt', 'b.txt', 'd/x.txt', 'stays/y.txt'] },
      async (world) => {
        const before = world.thereTree()
        const within = (folder: Buffer, name: string): Buffer =>
          Buffer.concat([folder, Buffer.from(`/${name}`)])
        const folders = [
          illegible(world, 'old'),
          illegible(world, 'stays/old'),
          illegible(world, 'c.tmp/old'),
        ]
        const [old, staysOld, leftOutOld] = folders as [Buffer, Buffer, Buffer]
        const deep = within(old, '2025')
        for (const folder of [...folders, deep]) mkdirSync(folder, { recursive: true })
        const moves: [from: string, hidden: Buffer, to: string][] = [
          ['a.txt', within(deep, 'a.txt'), 'stays/a.txt'],
          ['d', within(old, 'd'), 'e'],
          ['stays/y.txt', within(staysOld, 'y.txt'), 'y.txt'],
          ['b.txt', within(leftOutOld, 'b.txt'), 'stays/b.txt'],
        ]
        for (const [from, hidden] of moves) renameSync(world.path(from), hidden)
        await world.sync()
        await world.sync()
        assert.deepEqual(world.thereTree(), before)
        const moved = 'it is in a folder here that is left out'
        assert.deepEqual(await reasons(world), [moved, moved, moved, moved])
        for (const [, hidden, to] of moves) renameSync(hidden, world.path(to))
        for (const folder of [old, staysOld]) rmSync(folder, { recursive: true })
        rmSync(world.path('c.tmp'), { recursive: true })
        await world.sync()
        assertInStep(world)
        for (const name of ['stays/a.txt', 'e/x.txt', 'y.txt', 'stays/b.txt'])
          assert.ok(world.there.device.has(name), name)
      },
    ))

  test('is in a folder that is left out, and is not deleted in OneDrive with the folder that it was in', () =>
    withFileWorld(
      { isUnanswered: true, files: [...STAYS, 'docs/f.txt', 'docs/g.txt', 'a/b/f.txt'] },
      async (world) => {
        const before = world.thereTree()
        world.move('docs/f.txt', 'old.tmp/f.txt')
        world.move('a/b/f.txt', 'old.tmp/deep/f.txt')
        for (const name of ['docs', 'a']) world.remove(name)
        await world.sync()
        await world.sync()
        assert.deepEqual(world.thereTree(), before)
        assert.deepEqual(await reasons(world), [unreadableText(ASIDE.emptied), unreadableText(ASIDE.emptied)])
        world.move('old.tmp/f.txt', 'docs/f.txt')
        world.move('old.tmp/deep/f.txt', 'a/b/f.txt')
        world.write('docs/g.txt', 'docs/g.txt')
        world.remove('old.tmp')
        await world.sync()
        assertInStep(world)
        assert.deepEqual(await reasons(world), [])
      },
    ))

  test('is in a folder that is left out elsewhere, and a look at where it was deletes nothing in OneDrive', () =>
    withFileWorld(
      { isUnanswered: true, files: [...STAYS, 'docs/f.txt', 'docs/sub/g.txt', 'proj/x.txt'] },
      async (world) => {
        const before = world.thereTree()
        world.move('docs/f.txt', 'proj/old.tmp/f.txt')
        world.move('docs/sub/g.txt', 'proj/old.tmp/g.txt')
        world.remove('docs/sub')
        const look = { drive: PAIR, folders: [['docs']] }
        await world.engine.enqueue(world.files.kinds.look, look, { stream: streamOf(PAIR) })
        await world.settled()
        assert.deepEqual(world.thereTree(), before)
        assert.deepEqual(
          (await reasons(world)).sort(),
          [unreadableText(ASIDE.moved), unreadableText(ASIDE.emptied)].sort(),
        )
      },
    ))

  test('is moved elsewhere in the same step, and is not deleted in OneDrive either', () =>
    withFileWorld({ isUnanswered: true }, async (world) => {
      for (let n = 0; n < 12; n++) world.write(`stays/${n}`, `${n}`)
      world.write('a.txt', 'a')
      await world.sync()
      renameSync(world.path('a.txt'), illegible(world, 'stays/a'))
      await world.sync()
      assert.ok(world.there.device.has('a.txt'))
      assert.equal(readdirSync(world.path('stays')).length, 13)
      renameSync(illegible(world, 'stays/a'), world.path('stays/a.txt'))
      await world.sync()
      assertInStep(world)
      assert.ok(world.there.device.has('stays/a.txt'))
    }))
})
