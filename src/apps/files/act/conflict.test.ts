import assert from 'node:assert/strict'
import { readdirSync, renameSync, rmSync } from 'node:fs'
import { describe, test } from 'node:test'
import { createFilter, filterSchema } from '../filter.ts'
import { resolveConflict } from '../store/conflicts.ts'
import type { ConflictRow } from '../store/contract.ts'
import { reopenExcluded } from '../store/filter-change.ts'
import { releaseSettled } from '../store/open-nodes.ts'
import { type ActWorld, actWorlds, type WorldOptions } from './act-world.suite.ts'

const world = actWorlds()

const text = (w: ActWorld, path: string): string => w.there.device.read(path)!.toString()
const states = async (w: ActWorld): Promise<string[]> => (await w.conflicts()).map(({ state }) => state)
const copies = (w: ActWorld): string[] =>
  readdirSync(w.pair.root).filter((name) => name.includes('.conflict-'))

/** Both sides have edited the same file. */
async function editedTwice(options: WorldOptions = {}): Promise<ActWorld> {
  const w = await world(options)
  w.write('a.txt', 'one')
  await w.sync()
  w.write('a.txt', 'ours, edited')
  w.there.device.edit('/a.txt', 'theirs')
  await w.run(await w.only('check'))
  return w
}

describe('both sides have edited a file', () => {
  test('keep-both: OneDrive keeps the name, and the copy never conflicts again', async () => {
    const w = await editedTwice()
    await w.run(await w.only('conflict'))
    await w.sync()
    assert.equal(w.read('a.txt'), 'theirs')
    const [copy] = copies(w)
    assert.match(copy!, /^a\.conflict-\d{8}-\d{6}\.txt$/)
    assert.equal(w.read(copy!), 'ours, edited')
    assert.equal(text(w, `/${copy}`), 'ours, edited')
    const [record] = await w.conflicts()
    assert.deepEqual([record!.kind, record!.state, record!.copyPath], ['edit-edit', 'kept-both', copy])
    await w.assertSettled()
  })

  for (const isSeen of [false, true]) {
    test(`keep-both that died after the rename goes on with that name, ${isSeen ? 'also' : 'not yet'} seen by a look`, async () => {
      const w = await editedTwice()
      const action = await w.only('conflict')
      const { checkpoint } = await w.run(action, { isLost: true })
      w.nowMs += 60_000
      if (isSeen) await w.look()
      assert.equal((await w.run(action, { checkpoint })).outcome.skip, undefined)
      assert.deepEqual((await w.sync()).sort(), ['download', 'upload'])
      assert.equal(w.read('a.txt'), 'theirs')
      assert.deepEqual(
        copies(w).map((name) => w.read(name)),
        ['ours, edited'],
      )
      assert.equal((await w.conflicts()).length, 1)
      assert.deepEqual(await w.differences(), [])
    })
  }

  test('keep-both counts up where the name of the copy is taken', async () => {
    const w = await editedTwice()
    const action = await w.only('conflict')
    const stamp = new Date(w.nowMs).toISOString().replaceAll(/[-:]/g, '')
    w.write(`a.conflict-${stamp.slice(0, 8)}-${stamp.slice(9, 15)}.txt`, 'somebody else')
    await w.run(action)
    await w.sync()
    assert.deepEqual(
      copies(w)
        .map((name) => w.read(name))
        .sort(),
      ['ours, edited', 'somebody else'],
    )
  })

  test("keep-local: OneDrive's version is in the trash before it is replaced", async () => {
    const w = await editedTwice({ settings: { conflicts: 'keep-local' } })
    await w.run(await w.only('conflict'))
    assert.deepEqual(w.trash(), ['theirs'])
    assert.equal(text(w, '/a.txt'), 'theirs')
    assert.deepEqual(await w.sync(), ['upload'])
    assert.equal(text(w, '/a.txt'), 'ours, edited')
    assert.deepEqual(copies(w), [])
    assert.equal((await w.conflicts())[0]!.state, 'kept-local')
    assert.deepEqual(await w.differences(), [])
  })

  test('keep-remote: the local version is in the trash when it is replaced', async () => {
    const w = await editedTwice({ settings: { conflicts: 'keep-remote' } })
    await w.run(await w.only('conflict'))
    assert.equal(w.read('a.txt'), 'ours, edited')
    assert.deepEqual(await w.sync(), ['download'])
    assert.equal(w.read('a.txt'), 'theirs')
    assert.deepEqual(w.trash(), ['ours, edited'])
    assert.equal((await w.conflicts())[0]!.state, 'kept-remote')
    assert.deepEqual(await w.differences(), [])
  })

  test('a decision about a version that was edited once more is not carried out on that', async () => {
    const w = await editedTwice({ settings: { conflicts: 'keep-remote' } })
    await w.run(await w.only('conflict'))
    w.write('a.txt', 'ours, edited once more')
    await w.sync()
    assert.equal(w.read('a.txt'), 'theirs')
    assert.deepEqual(w.trash(), ['ours, edited once more'])
    assert.equal((await w.conflicts()).length, 2)
  })

  for (const [state, verbs] of [
    ['kept-local', ['conflict', 'upload']],
    ['kept-remote', ['conflict', 'download']],
    ['kept-both', ['conflict', 'download', 'upload']],
  ] as [Exclude<ConflictRow['state'], 'open'>, string[]][]) {
    test(`manual: both stay until someone says ${state}`, async () => {
      const w = await editedTwice({ settings: { conflicts: 'manual' } })
      await w.run(await w.only('conflict'))
      assert.deepEqual(await w.sync(), [])
      assert.equal(w.read('a.txt'), 'ours, edited')
      assert.equal(text(w, '/a.txt'), 'theirs')
      const [record] = await w.conflicts()
      assert.equal(record!.state, 'open')
      const [open] = await w.store.openNodes('docs', { limit: 10 })
      assert.match(open!.because ?? '', /decide/)
      await w.store.write((tx) => resolveConflict(tx, 'docs', { id: record!.id, state, atMs: 5 }))
      assert.deepEqual((await w.sync()).sort(), verbs)
      assert.equal(text(w, '/a.txt'), state === 'kept-local' ? 'ours, edited' : 'theirs')
      assert.equal(w.read('a.txt'), text(w, '/a.txt'))
      assert.equal(copies(w).length, state === 'kept-both' ? 1 : 0)
      assert.deepEqual(
        (await w.conflicts()).map((one) => one.state),
        [state],
      )
      assert.deepEqual(await w.differences(), [])
    })
  }

  test('manual: what both sides agree on by themselves needs no decision any more', async () => {
    const w = await editedTwice({ settings: { conflicts: 'manual' } })
    await w.run(await w.only('conflict'))
    w.there.device.delete('/a.txt')
    await w.sync()
    assert.equal(text(w, '/a.txt'), 'ours, edited')
    assert.deepEqual(await states(w), ['kept-local', 'dismissed'])
    await w.assertSettled()
  })

  test('manual: who undoes both edits is not asked any more', async () => {
    const w = await editedTwice({ settings: { conflicts: 'manual' } })
    await w.run(await w.only('conflict'))
    w.write('a.txt', 'one')
    w.there.device.edit('/a.txt', 'one')
    await w.sync()
    assert.deepEqual(await states(w), ['dismissed'])
    await w.assertSettled()
  })

  for (const policy of ['keep-both', 'keep-local', 'keep-remote'] as const) {
    test(`manual, and then ${policy}: nothing is left to decide`, async () => {
      const w = await editedTwice({ settings: { conflicts: 'manual' } })
      await w.run(await w.only('conflict'))
      w.pair.settings.conflicts = policy
      await w.store.write((tx) => reopenExcluded(tx, 'docs', 'other settings'))
      await w.sync()
      assert.deepEqual(await states(w), [policy.replace('keep', 'kept'), 'dismissed'])
      await w.assertSettled()
    })
  }
})

describe('both sides have made a file of the same name', () => {
  test('with the same content: it is no conflict', async () => {
    const w = await world()
    w.write('a.txt', 'the same')
    w.there.device.write('/a.txt', 'the same', { modifiedMs: Date.UTC(2024, 0, 1) })
    // Its bytes are compared: the hash that OneDrive tells is not enough where the times differ.
    assert.deepEqual(await w.sync(), ['check', 'conflict'])
    assert.deepEqual(copies(w), [])
    assert.deepEqual(await w.conflicts(), [])
    assert.deepEqual(await w.differences(), [])
  })

  test('with the same content, of which OneDrive has no hash: it is fetched and compared, and is no conflict', async () => {
    const w = await world({ quirks: { hashMissing: true } })
    for (let at = 0; at < 9; at++) {
      w.write(`${at}.txt`, `the same ${at}`)
      w.there.device.write(`/${at}.txt`, `the same ${at}`)
    }
    const verbs = await w.sync()
    assert.ok(verbs.includes('conflict'), verbs.join(' '))
    assert.deepEqual(await w.conflicts(), [])
    assert.deepEqual(copies(w), [])
    assert.deepEqual(await w.differences(), [])
  })

  for (const policy of ['keep-both', 'keep-local', 'keep-remote'] as const) {
    test(`with other content and ${policy}: both are kept somewhere`, async () => {
      const w = await world({
        settings: { conflicts: policy },
        files: { 'a.txt': 'ours', '/a.txt': 'theirs!' },
      })
      assert.equal(w.read('a.txt'), policy === 'keep-local' ? 'ours' : 'theirs!')
      assert.equal(text(w, '/a.txt'), w.read('a.txt'))
      const others = [...w.trash(), ...copies(w).map((name) => w.read(name))]
      assert.deepEqual(others, [policy === 'keep-local' ? 'theirs!' : 'ours'])
      assert.equal((await w.conflicts()).length, 1)
      await w.assertSettled()
    })
  }

  describe('with other content, and somebody is to decide', () => {
    const madeTwice = (): Promise<ActWorld> =>
      world({ settings: { conflicts: 'manual' }, files: { 'a.txt': 'ours', '/a.txt': 'theirs!' } })

    test('none of them moves or waits for the other, however often they are looked at', async () => {
      const w = await madeTwice()
      assert.deepEqual(await w.sync(), [])
      assert.deepEqual([w.read('a.txt'), text(w, '/a.txt')], ['ours', 'theirs!'])
      assert.deepEqual(await states(w), ['open'])
      const open = await w.store.openCounts('docs')
      assert.deepEqual(open, { unplanned: 0, inWork: 0, waiting: 0, reported: 2 })
      const told = await w.store.reported('docs', { limit: 10 })
      assert.deepEqual(
        told.map(({ path }) => path),
        ['a.txt'],
      )
    })

    for (const [state, here] of [
      ['kept-local', 'ours'],
      ['kept-remote', 'theirs!'],
      ['kept-both', 'theirs!'],
    ] as [Exclude<ConflictRow['state'], 'open'>, string][]) {
      test(`both go on when it is ${state}`, async () => {
        const w = await madeTwice()
        const [record] = await w.conflicts()
        await w.store.write((tx) => resolveConflict(tx, 'docs', { id: record!.id, state, atMs: 5 }))
        await w.sync()
        assert.deepEqual([w.read('a.txt'), text(w, '/a.txt')], [here, here])
        assert.equal(copies(w).length, state === 'kept-both' ? 1 : 0)
        assert.deepEqual(await states(w), [state])
        await w.assertSettled()
      })
    }

    test("who deletes what is here gets OneDrive's, and is not asked any more", async () => {
      const w = await madeTwice()
      rmSync(w.path('a.txt'))
      await w.sync()
      assert.equal(w.read('a.txt'), 'theirs!')
      assert.deepEqual(await states(w), ['dismissed'])
      await w.assertSettled()
    })

    test('who renames what is here has both, and is not asked any more', async () => {
      const w = await madeTwice()
      renameSync(w.path('a.txt'), w.path('b.txt'))
      await w.sync()
      assert.deepEqual([w.read('a.txt'), w.read('b.txt')], ['theirs!', 'ours'])
      assert.deepEqual([text(w, '/a.txt'), text(w, '/b.txt')], ['theirs!', 'ours'])
      assert.deepEqual(await states(w), ['dismissed'])
      await w.assertSettled()
    })

    test('who deletes what OneDrive has keeps what is here', async () => {
      const w = await madeTwice()
      w.there.device.delete('/a.txt')
      await w.sync()
      assert.deepEqual([w.read('a.txt'), text(w, '/a.txt')], ['ours', 'ours'])
      assert.deepEqual(await states(w), ['dismissed'])
      await w.assertSettled()
    })

    test('who renames what OneDrive has, has both, and is not asked any more', async () => {
      const w = await madeTwice()
      w.there.device.rename('/a.txt', 'b.txt')
      await w.sync()
      assert.deepEqual([w.read('a.txt'), w.read('b.txt')], ['ours', 'theirs!'])
      assert.deepEqual(await states(w), ['dismissed'])
      await w.assertSettled()
    })

    for (const side of ['here', 'there', 'on both sides'] as const) {
      test(`who deletes its whole folder ${side} is not asked any more`, async () => {
        const files = { 'sub/a.txt': 'ours', '/sub/a.txt': 'theirs!' }
        const w = await world({ settings: { conflicts: 'manual' }, files })
        assert.deepEqual(await states(w), ['open'])
        if (side !== 'there') rmSync(w.path('sub'), { recursive: true })
        if (side !== 'here') w.there.device.delete('/sub')
        await w.sync()
        assert.deepEqual(await states(w), ['dismissed'])
        await w.assertSettled()
      })
    }

    test('who leaves it out is not asked any more, and is asked again when it takes part', async () => {
      const w = await madeTwice()
      const { filter } = w.pair
      w.pair.filter = createFilter(filterSchema.parse({ skip: ['a.txt'] }), undefined)
      await w.store.write((tx) => reopenExcluded(tx, 'docs', 'other settings'))
      await w.sync()
      assert.deepEqual(await states(w), ['dismissed'])
      w.pair.filter = filter
      await w.store.write((tx) => reopenExcluded(tx, 'docs', 'other settings'))
      await w.sync()
      assert.deepEqual(await states(w), ['open', 'dismissed'])
    })

    test('who only uploads from now on is not asked any more', async () => {
      const w = await madeTwice()
      w.pair.settings.mode = 'upload-only'
      await w.store.write((tx) => reopenExcluded(tx, 'docs', 'other settings'))
      await w.sync()
      assert.deepEqual(await states(w), ['dismissed'])
    })

    test('who writes the same into what is here is not asked any more', async () => {
      const w = await madeTwice()
      w.write('a.txt', 'theirs!')
      await w.sync()
      assert.deepEqual(await states(w), ['dismissed'])
      await w.assertSettled()
    })

    test('who edits what is here is asked about that', async () => {
      const w = await madeTwice()
      const [before] = await w.conflicts()
      w.write('a.txt', 'ours, edited')
      await w.sync()
      const [after] = await w.conflicts()
      assert.deepEqual(await states(w), ['open'])
      assert.notEqual(after!.localHash, before!.localHash)
      assert.deepEqual(await w.sync(), [])
    })
  })
})

describe('a name that OneDrive has given to another one', () => {
  test('is not taken from it: the local file gets another name and keeps its item', async () => {
    const w = await world({ files: { 'a.txt': 'one', 'b.txt': 'two' } })
    const { id } = w.there.device.item('/a.txt')
    // Both want the name c.txt: one of them here, the other in OneDrive.
    renameSync(w.path('a.txt'), w.path('c.txt'))
    w.there.device.rename('/b.txt', 'c.txt')
    await w.sync()
    assert.equal(w.read('c.txt'), 'two')
    assert.equal(copies(w).length, 1)
    assert.equal(w.there.device.item(`/${copies(w)[0]}`).id, id)
    assert.deepEqual(await w.differences(), [])
  })

  for (const hashMissing of [false, true]) {
    test(`with the same content${hashMissing ? ', of which OneDrive has no hash' : ''}: the file is that item's, and its own counts as deleted here`, async () => {
      const w = await world({ quirks: { hashMissing } })
      for (let at = 0; at < 6; at++) w.write(`a${at}.txt`, `before ${at}`)
      await w.sync()
      for (let at = 0; at < 6; at++) {
        renameSync(w.path(`a${at}.txt`), w.path(`b${at}.txt`))
        w.write(`b${at}.txt`, `the same ${at}`)
        w.there.device.write(`/b${at}.txt`, `the same ${at}`)
      }
      const verbs = await w.sync()
      assert.ok(!verbs.includes('download'), verbs.join(' '))
      const names = w.there.dump().items.map(({ path }) => path)
      assert.deepEqual(
        names.sort(),
        [0, 1, 2, 3, 4, 5].map((at) => `b${at}.txt`),
      )
      assert.equal(w.there.dump().recycleBin.length, 6)
      assert.deepEqual([copies(w), await w.conflicts(), await w.differences()], [[], [], []])
    })
  }

  test('with the same content, where somebody edited the item that it had: that comes back under its name', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    renameSync(w.path('a.txt'), w.path('b.txt'))
    w.there.device.write('/b.txt', 'one')
    w.there.device.edit('/a.txt', 'edited there')
    await w.sync()
    assert.deepEqual([w.read('a.txt'), w.read('b.txt')], ['edited there', 'one'])
    assert.deepEqual([copies(w), await w.differences()], [[], []])
  })

  test('with the same content, and a file of its own here: that comes to the name, ours is in the trash', async () => {
    const w = await world({ files: { 'a.txt': 'the same', 'x.txt': 'the same' } })
    const { id } = w.there.device.item('/x.txt')
    renameSync(w.path('a.txt'), w.path('b.txt'))
    w.there.device.rename('/x.txt', 'b.txt')
    await w.sync()
    assert.deepEqual([w.read('b.txt'), w.there.device.item('/b.txt').id], ['the same', id])
    assert.deepEqual([w.has('a.txt'), w.has('x.txt'), w.trash()], [false, false, ['the same']])
    assert.deepEqual([copies(w), await w.conflicts(), await w.differences()], [[], [], []])
  })

  test('with the same content, and a file of its own here that stays where it is: ours is not taken away', async () => {
    const w = await world({ files: { 'a.txt': 'the same', 'b.txt': 'the same' } })
    // OneDrive does not take that name, and so the other one keeps b.txt there.
    renameSync(w.path('b.txt'), w.path('b:.txt'))
    await w.sync()
    renameSync(w.path('a.txt'), w.path('b.txt'))
    await w.sync()
    assert.deepEqual(w.trash(), [])
    assert.deepEqual(
      copies(w).map((name) => [w.read(name), text(w, `/${name}`)]),
      [['the same', 'the same']],
    )
    assert.deepEqual([w.read('b:.txt'), text(w, '/b.txt')], ['the same', 'the same'])
  })

  test('that died after ours was taken to the trash: a look finds it gone, and both are one all the same', async () => {
    const w = await world({ files: { 'x.txt': 'the same' } })
    w.write('b.txt', 'the same')
    w.there.device.rename('/x.txt', 'b.txt')
    await w.run(await w.only('conflict'), { isLost: true })
    assert.equal(w.has('b.txt'), false)
    await w.store.write((tx) => releaseSettled(tx, 'docs', 1_000))
    await w.sync()
    assert.deepEqual([w.read('b.txt'), w.trash(), w.has('x.txt')], ['the same', ['the same'], false])
    assert.deepEqual([copies(w), await w.differences()], [[], []])
  })

  test('with the content of an edit that is still on its way there: one of both is enough', async () => {
    const w = await world({ files: { 'x.txt': 'one' } })
    w.write('x.txt', 'edited')
    w.write('b.txt', 'edited')
    w.there.device.rename('/x.txt', 'b.txt')
    await w.sync()
    assert.deepEqual([w.read('b.txt'), text(w, '/b.txt'), w.has('x.txt')], ['edited', 'edited', false])
    assert.deepEqual([copies(w), await w.differences()], [[], []])
  })

  test('with the content that only OneDrive still has of it: it is no copy of what comes, and is kept', async () => {
    const w = await world({ files: { 'x.txt': 'one' } })
    w.write('x.txt', 'edited')
    w.write('b.txt', 'one')
    w.there.device.rename('/x.txt', 'b.txt')
    await w.sync()
    assert.equal(w.read('b.txt'), 'edited')
    assert.deepEqual(
      copies(w).map((name) => w.read(name)),
      ['one'],
    )
    assert.deepEqual(await w.differences(), [])
  })

  test('a folder here and a file there of the same name: the folder gets another name with all that is in it', async () => {
    const w = await world({ files: { 'name/': '', 'name/inside.txt': 'ours', '/name': 'a file' } })
    assert.equal(w.read('name'), 'a file')
    const [copy] = copies(w)
    assert.equal(w.read(`${copy}/inside.txt`), 'ours')
    assert.equal(text(w, `/${copy}/inside.txt`), 'ours')
    assert.deepEqual(await w.differences(), [])
  })
})
