import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, unlinkSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { Action } from '../plan-order.ts'
import { type ActWorld, actWorlds } from './act-world.suite.ts'
import { BEHIND_LINK } from './local-side.ts'

const world = actWorlds()

const requests = (w: ActWorld, name: string): number =>
  Object.values(w.sim.log.counts().requests[name] ?? {}).reduce((sum, count) => sum + count, 0)

describe('a folder that is to be moved into what has come into itself since', () => {
  test('is planned anew here', async () => {
    const w = await world({ files: { 'x/1.txt': 'x/1.txt', 'y/2.txt': 'y/2.txt' } })
    w.there.device.move('/x', '/y/x')
    const action = await w.only('move-local')
    renameSync(w.path('y'), w.path('x/y'))
    // Nobody has seen that yet: a look is to tell.
    const { outcome } = await w.run(action)
    assert.ok(outcome.again)
    await w.look()
    assert.match((await w.run(action)).outcome.skip ?? '', /its new folder is inside of it/)
    await w.sync()
    assert.deepEqual(await w.differences(), [])
  })

  test('is planned anew in OneDrive', async () => {
    const w = await world({ files: { 'x/1.txt': 'x/1.txt', 'y/2.txt': 'y/2.txt' } })
    renameSync(w.path('x'), w.path('y/x'))
    const action = await w.only('move-remote')
    w.there.device.move('/y', '/x/y')
    await assert.rejects(w.run(action))
    await w.hear()
    assert.match((await w.run(action)).outcome.skip ?? '', /its new folder is inside of it/)
    await w.sync()
    assert.deepEqual(await w.differences(), [])
  })
})

describe('a check', () => {
  test('finds that a file that was only touched is the same', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.write('a.txt', 'one', Date.UTC(2030, 1, 1))
    assert.deepEqual(await w.sync(), ['check'])
    assert.deepEqual(await w.differences(), [])
  })

  test('says nothing about a file that changed since it was seen', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.write('a.txt', 'two')
    const action = await w.only('check')
    w.write('a.txt', 'three!')
    assert.match((await w.run(action)).outcome.skip ?? '', /changed here/)
    assert.deepEqual(await w.sync(), ['check', 'upload'])
    assert.equal(w.there.device.read('/a.txt')!.toString(), 'three!')
  })

  test('of a file that is written to without end is given up until the next look', async () => {
    const w = await world({ files: { log: '' } })
    w.write('log', 'line\n')
    let tries = 0
    for (let actions = [await w.only('check')]; actions.length > 0; actions = await w.plan()) {
      w.write('log', 'line\n'.repeat(++tries + 1))
      await w.run(actions[0]!)
      assert.ok(tries < 100, 'it is read again without end')
    }
    const [left] = await w.store.openNodes(w.pair.name, { limit: 1 })
    assert.match(left?.because ?? '', /written to all the time/)
    assert.deepEqual(await w.sync(), ['check', 'upload'])
    assert.deepEqual(await w.differences(), [])
  })

  test('whose end was lost is simply made again', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.write('a.txt', 'two')
    const action = await w.only('check')
    await w.run(action, { isLost: true })
    await w.run(action)
    assert.deepEqual(await w.sync(), ['upload'])
  })
})

describe('a folder', () => {
  test('is made on the side that has it not, and made again by nobody', async () => {
    const w = await world({
      quirks: { mkdirEmptyBody: true },
      files: { 'ours/deep/': '', '/theirs/deep/': '' },
    })
    assert.ok(w.there.device.has('/ours/deep'))
    assert.ok(statSync(w.path('theirs/deep')).isDirectory())
    await w.assertSettled()
  })

  test('that was made before the process died is recognised on both sides', async () => {
    const w = await world()
    w.there.device.mkdir('/theirs')
    const here = await w.only('mkdir-local')
    await w.run(here, { isLost: true })
    await w.run(here)
    assert.deepEqual(await w.sync(), [])
    mkdirSync(w.path('ours'))
    const there = await w.only('mkdir-remote')
    await w.run(there, { isLost: true })
    assert.match((await w.run(there)).outcome.skip ?? '', /something of that name/)
    assert.deepEqual(await w.sync(), [])
    assert.deepEqual(
      w.there
        .dump()
        .items.map(({ path }) => path.replace(/^\//, ''))
        .sort(),
      ['ours', 'theirs'],
    )
    assert.deepEqual(await w.differences(), [])
  })

  test('that a scan knows with all that is in it keeps its rows when it turns out to be wanted', async () => {
    const w = await world()
    w.there.device.mkdir('/sub')
    const action = await w.only('mkdir-local')
    w.write('sub/inside.txt', 'ours')
    const made = await w.run(action, { isLost: true })
    await w.look()
    await w.commit(made.outcome.effects!)
    await w.sync()
    assert.equal(w.there.device.read('/sub/inside.txt')!.toString(), 'ours')
    assert.deepEqual(await w.differences(), [])
  })

  test('whose name a file has here waits for that file', async () => {
    const w = await world()
    w.there.device.mkdir('/name')
    const action = await w.only('mkdir-local')
    w.write('name', 'a file')
    assert.match((await w.run(action)).outcome.skip ?? '', /something else/)
    assert.equal(w.read('name'), 'a file')
    await w.sync()
    assert.ok(statSync(w.path('name')).isDirectory())
    const copy = readdirSync(w.pair.root).find((name) => name.includes('.conflict-'))
    assert.equal(w.read(copy!), 'a file')
    assert.deepEqual(await w.differences(), [])
  })
})

describe('a folder that is not where it was', () => {
  test('is waited for, and not taken for deleted', async () => {
    const w = await world({ files: { '/sub/a.txt': 'one' } })
    w.there.device.write('/sub/b.txt', 'two')
    const action = await w.only('download')
    renameSync(w.path('sub'), w.path('moved'))
    const first = await w.run(action)
    assert.ok(first.outcome.again)
    w.nowMs += 10_000
    const second = await w.run(action, { checkpoint: first.checkpoint })
    assert.match(second.outcome.note ?? '', /waits for the next look/)
    assert.deepEqual((await w.sync()).sort(), ['download', 'move-remote'])
    assert.equal(w.read('moved/b.txt'), 'two')
    assert.deepEqual(w.there.dump().recycleBin, [])
    assert.deepEqual(await w.differences(), [])
  })
})

describe('links that are followed', () => {
  for (const what of ['deleted', 'moved', 'deleted file by file'] as const) {
    test(`the duplicate that a link makes, ${what} in OneDrive, takes nothing from the real folder on either side`, async () => {
      const w = await world({ settings: { follow_symlinks: true } })
      w.write('Photos/a.jpg', 'one')
      w.write('Photos/b.jpg', 'two')
      symlinkSync('Photos', w.path('Pics'))
      await w.sync()
      assert.equal(w.there.device.read('/Pics/a.jpg')!.toString(), 'one')
      if (what === 'deleted') w.there.device.delete('/Pics')
      else if (what === 'moved') {
        w.there.device.move('/Pics/a.jpg', '/a.jpg')
        w.there.device.move('/Pics/b.jpg', '/b.jpg')
      } else {
        w.there.device.delete('/Pics/a.jpg')
        w.there.device.delete('/Pics/b.jpg')
      }
      await w.sync()
      await w.sync()
      for (const [name, content] of [
        ['a.jpg', 'one'],
        ['b.jpg', 'two'],
      ] as const) {
        assert.equal(w.read(`Photos/${name}`), content)
        assert.equal(w.there.device.read(`/Photos/${name}`)!.toString(), content)
      }
      assert.deepEqual(w.trash(), [])
      const left = await w.store.reported('docs', { limit: 9 })
      assert.ok(left.some(({ because }) => because === BEHIND_LINK))
      // Its owner takes the link away: then nothing is left to be said.
      unlinkSync(w.path('Pics'))
      await w.sync()
      assert.equal(w.read('Photos/a.jpg'), 'one')
      assert.deepEqual(await w.store.reported('docs', { limit: 1 }), [])
      assert.deepEqual(await w.differences(), [])
    })
  }

  test('stay where they are when OneDrive moves the duplicate, and that is said', async () => {
    const w = await world({ settings: { follow_symlinks: true } })
    w.write('Photos/a.jpg', 'one')
    w.write('a.txt', 'text')
    symlinkSync('Photos', w.path('Pics'))
    symlinkSync('a.txt', w.path('b.txt'))
    await w.sync()
    w.there.device.move('/Pics', '/Pictures')
    w.there.device.move('/b.txt', '/Photos/c.txt')
    await w.sync()
    assert.deepEqual(
      [w.read('Photos/a.jpg'), w.read('a.txt'), w.has('Pics'), w.has('b.txt')],
      ['one', 'text', true, true],
    )
    const left = await w.store.reported('docs', { limit: 9 })
    assert.deepEqual(
      left.map(({ because }) => because),
      ['it is a link here: move it yourself', 'it is a link here: move it yourself'],
    )
  })

  test('are read where they lead to, if that is in the root', async () => {
    const w = await world({ settings: { follow_symlinks: true } })
    w.write('real/a.txt', 'one')
    symlinkSync(w.path('real'), w.path('folder-link'))
    symlinkSync(w.path('real/a.txt'), w.path('file-link.txt'))
    await w.sync()
    assert.equal(w.there.device.read('/folder-link/a.txt')!.toString(), 'one')
    assert.equal(w.there.device.read('/file-link.txt')!.toString(), 'one')
    w.there.device.delete('/file-link.txt')
    await w.sync()
    assert.equal(w.read('real/a.txt'), 'one')
    assert.ok(w.has('file-link.txt'))
  })
})

describe('a move', () => {
  test('of a folder with much in it is one call, from here to there', async () => {
    const w = await world()
    for (let at = 0; at < 20; at++) w.write(`old/${at}.txt`, `file ${at}`)
    await w.sync()
    renameSync(w.path('old'), w.path('new'))
    w.sim.log.reset()
    assert.deepEqual(await w.sync(), ['move-remote'])
    assert.equal(requests(w, 'graph.items.patch'), 1)
    assert.equal(requests(w, 'graph.content.put'), 0)
    assert.ok(w.there.device.has('/new/19.txt'))
    assert.deepEqual(await w.differences(), [])
  })

  test('of a folder from there to here moves it with all that is in it', async () => {
    const w = await world()
    for (let at = 0; at < 5; at++) w.there.device.write(`/old/${at}.txt`, `file ${at}`)
    await w.sync()
    const { ino } = statSync(w.path('old/3.txt'))
    w.there.device.move('/old', '/deep/new')
    w.sim.log.reset()
    await w.sync()
    assert.equal(statSync(w.path('deep/new/3.txt')).ino, ino)
    assert.equal(requests(w, 'graph.content.get'), 0)
    assert.deepEqual(await w.differences(), [])
  })

  test('that was done before the process died is recognised on both sides', async () => {
    const w = await world({ files: { 'a.txt': 'one', 'b.txt': 'two' } })
    w.there.device.rename('/a.txt', 'a2.txt')
    const here = await w.only('move-local')
    await w.run(here, { isLost: true })
    assert.equal((await w.run(here)).outcome.skip, undefined)
    // Somebody may have edited it since.
    assert.deepEqual(await w.sync(), ['check'])
    renameSync(w.path('b.txt'), w.path('b2.txt'))
    const there = await w.only('move-remote')
    await w.run(there, { isLost: true })
    assert.equal((await w.run(there)).outcome.skip, undefined)
    assert.deepEqual(await w.sync(), ['check'])
    assert.deepEqual(w.trash(), [])
    assert.deepEqual(await w.differences(), [])
  })

  test('never goes over something that is there', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.rename('/a.txt', 'b.txt')
    const action = await w.only('move-local')
    w.write('b.txt', 'ours')
    assert.match((await w.run(action)).outcome.skip ?? '', /something else/)
    assert.equal(w.read('b.txt'), 'ours')
    await w.sync()
    assert.equal(w.read('b.txt'), 'one')
    const copy = readdirSync(w.pair.root).find((name) => name.includes('.conflict-'))
    assert.equal(w.read(copy!), 'ours')
    assert.deepEqual(await w.differences(), [])
  })

  test('to a name that was taken in OneDrive meanwhile keeps both', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    renameSync(w.path('a.txt'), w.path('b.txt'))
    const action = await w.only('move-remote')
    w.there.device.write('/b.txt', 'theirs')
    assert.match((await w.run(action)).outcome.skip ?? '', /other things there/)
    await w.sync()
    const contents = w.there.dump().items.map(({ path }) => w.there.device.read(path)!.toString())
    assert.deepEqual(contents.sort(), ['one', 'theirs'])
    assert.deepEqual(await w.differences(), [])
  })

  test('of what was edited in OneDrive meanwhile moves it all the same, and then fetches it', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    renameSync(w.path('a.txt'), w.path('b.txt'))
    const action = await w.only('move-remote')
    w.there.device.edit('/a.txt', 'theirs')
    await w.run(action)
    await w.sync()
    assert.equal(w.read('b.txt'), 'theirs')
    assert.equal(w.there.device.has('/a.txt'), false)
    assert.deepEqual(await w.differences(), [])
  })

  test('and an edit at once, in OneDrive, is a move and a download', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.there.device.move('/a.txt', '/sub/b.txt')
    w.there.device.edit('/sub/b.txt', 'two')
    const verbs = await w.sync()
    assert.deepEqual(verbs.sort(), ['download', 'mkdir-local', 'move-local'])
    assert.equal(w.read('sub/b.txt'), 'two')
    assert.deepEqual(await w.differences(), [])
  })

  test('into a folder that was deleted in OneDrive meanwhile is done anew', async () => {
    const w = await world({ files: { 'a.txt': 'one', 'sub/': '' } })
    renameSync(w.path('a.txt'), w.path('sub/a.txt'))
    const action = await w.only('move-remote')
    w.there.device.delete('/sub')
    const { checkpoint } = await w.run(action)
    await w.hear()
    assert.match((await w.run(action, { checkpoint })).outcome.skip ?? '', /does not have it any more/)
    await w.sync()
    assert.equal(w.there.device.read('/sub/a.txt')!.toString(), 'one')
    assert.deepEqual(await w.differences(), [])
  })

  test('of something that was deleted in OneDrive meanwhile keeps what is here', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    renameSync(w.path('a.txt'), w.path('b.txt'))
    const action = await w.only('move-remote')
    w.there.device.delete('/a.txt')
    const { outcome, checkpoint } = await w.run(action)
    assert.match(outcome.note ?? '', /lists it, but does not give it/)
    await w.hear()
    assert.match((await w.run(action, { checkpoint })).outcome.skip ?? '', /not needed any more/)
    await w.sync()
    assert.equal(w.read('b.txt'), 'one')
    assert.equal(w.there.device.read('/b.txt')!.toString(), 'one')
  })

  test('that only changes the case is a move on both sides', async () => {
    const w = await world({ files: { 'Report.txt': 'one', 'other.txt': 'two' } })
    w.there.device.rename('/Report.txt', 'REPORT.txt')
    renameSync(w.path('other.txt'), w.path('Other.txt'))
    assert.deepEqual((await w.sync()).sort(), ['check', 'move-local', 'move-remote'])
    assert.deepEqual(readdirSync(w.pair.root).sort(), ['.tidemark', 'Other.txt', 'REPORT.txt'])
    assert.equal(w.there.device.item('/other.txt').name, 'Other.txt')
    assert.deepEqual(await w.differences(), [])
  })

  for (const side of ['here', 'there'] as const) {
    test(`that exchanges two names ${side} ends with both exchanged`, async () => {
      const w = await world({ files: { 'a.txt': 'was a', 'b.txt': 'was b' } })
      if (side === 'here') {
        renameSync(w.path('a.txt'), w.path('x'))
        renameSync(w.path('b.txt'), w.path('a.txt'))
        renameSync(w.path('x'), w.path('b.txt'))
      } else {
        w.there.device.rename('/a.txt', 'x')
        w.there.device.rename('/b.txt', 'a.txt')
        w.there.device.rename('/x', 'b.txt')
      }
      await w.sync()
      assert.equal(w.read('a.txt'), 'was b')
      assert.equal(w.there.device.read('/a.txt')!.toString(), 'was b')
      assert.equal(w.there.device.read('/b.txt')!.toString(), 'was a')
      assert.deepEqual(readdirSync(w.pair.root).sort(), ['.tidemark', 'a.txt', 'b.txt'])
      assert.deepEqual(await w.differences(), [])
    })
  }

  test('to a name of our own counts as agreed until it is moved on', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    renameSync(w.path('a.txt'), w.path('b.txt'))
    const action: Action = { ...(await w.only('move-remote')), isTemporary: true }
    await w.run(action, { isLost: true })
    await w.run(action)
    assert.match(w.there.dump().items[0]!.name, /^\.tidemark-move-/)
    assert.deepEqual(await w.sync(), ['move-remote', 'check'])
    assert.deepEqual(
      w.there.dump().items.map(({ name }) => name),
      ['b.txt'],
    )
    w.there.device.rename('/b.txt', 'c.txt')
    const here: Action = { ...(await w.only('move-local')), isTemporary: true }
    await w.run(here)
    assert.ok(readdirSync(w.pair.root).some((name) => name.startsWith('.tidemark-move-')))
    assert.deepEqual(await w.sync(), ['move-local'])
    assert.equal(w.read('c.txt'), 'one')
    assert.deepEqual(await w.differences(), [])
  })

  test('of something that is gone from the folder waits for a look, and is then planned anew', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.there.device.rename('/a.txt', 'b.txt')
    const action = await w.only('move-local')
    rmSync(w.path('a.txt'))
    const first = await w.run(action)
    assert.ok(first.outcome.again)
    w.nowMs += 10_000
    const second = await w.run(action, { checkpoint: first.checkpoint })
    assert.match(second.outcome.note ?? '', /waits for the next look/)
    await w.sync()
    assert.equal(w.read('b.txt'), 'one')
    assert.deepEqual(await w.differences(), [])
  })
})

describe('an exchange of names where not everything takes part', () => {
  const filters = [{ skip_dotfiles: true }, { sync_paths: ['Photos'] }, { skip: ['.*'] }]

  function exchange(w: ActWorld, one: string, other: string): void {
    w.there.device.move(one, '/Photos/between')
    w.there.device.move(other, one)
    w.there.device.move('/Photos/between', other)
  }

  test('leaves no file behind under a name of our own', async () => {
    for (const filter of filters) {
      const w = await world({ settings: { filter }, files: { '/Photos/a': 'one', '/Photos/b': 'two' } })
      exchange(w, '/Photos/a', '/Photos/b')
      await w.sync()
      assert.deepEqual([w.read('Photos/a'), w.read('Photos/b')], ['two', 'one'], JSON.stringify(filter))
      assert.deepEqual(await w.differences(), [])
    }
  })

  test('of folders leaves nothing behind either, nor what changed in them meanwhile', async () => {
    for (const filter of filters) {
      const w = await world({ settings: { filter }, files: { '/Photos/a/x': 'one', '/Photos/b/x': 'two' } })
      exchange(w, '/Photos/a', '/Photos/b')
      await w.hear()
      const [first, ...rest] = await w.plan()
      assert.equal(first?.isTemporary, true)
      await w.run(first!)
      for (const path of ['/Photos/a/x', '/Photos/b/x']) w.there.device.edit(path, `edited ${path}`)
      await w.hear()
      await w.look()
      for (const action of [...rest, ...(await w.plan())]) await w.run(action)
      await w.sync()
      for (const path of ['Photos/a/x', 'Photos/b/x']) assert.equal(w.read(path), `edited /${path}`)
      assert.deepEqual(await w.differences(), [], JSON.stringify(filter))
    }
  })

  test('of folders whose last move is seen by a look, because its process died, leaves no change behind', async () => {
    for (const filter of filters) {
      const w = await world({ settings: { filter }, files: { '/Photos/a/x': 'one', '/Photos/b/x': 'two' } })
      exchange(w, '/Photos/a', '/Photos/b')
      await w.hear()
      for (const action of await w.plan()) await w.run(action)
      for (const path of ['/Photos/a/x', '/Photos/b/x']) w.there.device.edit(path, `edited ${path}`)
      await w.hear()
      const last = await w.plan()
      for (const action of last) await w.run(action, { isLost: action.verb === 'move-local' })
      await w.look()
      for (const action of last) await w.run(action)
      await w.sync()
      for (const path of ['Photos/a/x', 'Photos/b/x']) assert.equal(w.read(path), `edited /${path}`)
      assert.deepEqual(await w.differences(), [], JSON.stringify(filter))
    }
  })
})

describe('what an interrupted exchange of names has left, and whose item is gone', () => {
  const names = (w: ActWorld): string[] => readdirSync(w.pair.root).filter((name) => name !== '.tidemark')
  const LEFT = '.tidemark-move-7-d.txt'

  test('goes to the trash where another file has its name and content', async () => {
    for (const name of [LEFT, '.tidemark-move-7-d.conflict-20260101-000000.txt']) {
      const w = await world({ files: { 'd.txt': 'the same', [name]: 'the same' } })
      assert.deepEqual([names(w), w.trash(), await w.conflicts()], [['d.txt'], ['the same'], []])
      await w.assertSettled()
    }
  })

  test('becomes a conflict copy where that has other content, and where nobody has its name', async () => {
    const others: Record<string, string>[] = [{ 'd.txt': 'another' }, {}]
    for (const other of others) {
      const w = await world({ files: { ...other, [LEFT]: 'kept' } })
      const [copy] = names(w).filter((name) => name !== 'd.txt')
      assert.match(copy!, /^d\.conflict-[\d-]+\.txt$/)
      assert.deepEqual([w.read(copy!), w.trash()], ['kept', []])
      await w.assertSettled()
    }
  })
})

test('a name of our own that both sides have is exchanged for a better one, whoever has the same content', async () => {
  const w = await world({ files: { 'd.txt': 'the same', 'e.txt': 'the same' } })
  const { id } = w.there.device.item('/e.txt')
  renameSync(w.path('e.txt'), w.path('.tidemark-move-7-d.txt'))
  w.there.device.rename('/e.txt', '.tidemark-move-7-d.txt')
  await w.sync()
  const [copy] = readdirSync(w.pair.root).filter((name) => name !== '.tidemark' && name !== 'd.txt')
  assert.match(copy!, /^d\.conflict-[\d-]+\.txt$/)
  assert.deepEqual([w.read(copy!), w.there.device.item(`/${copy}`).id], ['the same', id])
  assert.deepEqual([w.trash(), w.there.dump().recycleBin], [[], []])
  await w.assertSettled()
  w.write(copy!, 'edited')
  await w.sync()
  assert.equal(w.there.device.read(`/${copy}`)!.toString(), 'edited')
  assert.deepEqual([w.trash(), w.there.dump().recycleBin], [[], []])
})

describe('an exchange of names that was interrupted, and then raced by somebody', () => {
  type Interrupted = { w: ActWorld; left: string; item: string; jobs: Action[] }

  /** The process dies when one of both has its name for a moment, before or after that is written. */
  async function interrupted(isLost: boolean): Promise<Interrupted> {
    const w = await world({ files: { '/Photos/a/x': 'one', '/Photos/b/x': 'two' } })
    w.there.device.move('/Photos/a', '/Photos/between')
    w.there.device.move('/Photos/b', '/Photos/a')
    w.there.device.move('/Photos/between', '/Photos/b')
    await w.hear()
    const [first, ...rest] = await w.plan()
    assert.equal(first?.isTemporary, true)
    await w.run(first!, { isLost })
    const left = readdirSync(w.pair.root).find((name) => name.startsWith('.tidemark-move-'))!
    const item = w.read(`${left}/x`) === 'one' ? '/Photos/b' : '/Photos/a'
    return { w, left, item, jobs: isLost ? [first!, ...rest] : rest }
  }

  /** The next process looks, and does what was left: OneDrive never has such a name. */
  async function goOn({ w, jobs }: Interrupted): Promise<void> {
    let left: [Action, unknown][] = jobs.map((action) => [action, undefined])
    for (let round = 0; round < 8; round++) {
      await w.look()
      await w.hear()
      const planned = await w.plan()
      if (round > 0 && left.length + planned.length === 0) break
      const again: typeof left = []
      for (const [action, checkpoint] of [...left, ...planned.map((one) => [one, undefined] as const)]) {
        const ran = await w.run(action, { checkpoint })
        if (ran.outcome.again) again.push([action, ran.checkpoint])
        const names = w.there.dump().items.map(({ name }) => name)
        assert.ok(!names.some((name) => name.startsWith('.tidemark-move-')), `${action.verb}: ${names}`)
      }
      left = again
      w.nowMs += 10_000
    }
    assert.deepEqual(await w.differences(), [])
    assert.ok(!readdirSync(w.pair.root).some((name) => name.startsWith('.tidemark-move-')))
  }

  function contents(w: ActWorld): string[] {
    const { items } = w.there.dump()
    return items
      .flatMap(({ path, kind }) => (kind === 'file' ? [String(w.there.device.read(path))] : []))
      .sort()
  }

  for (const isLost of [true, false]) {
    const when = isLost ? 'before that is written' : 'after that is written'
    test(`goes on where nobody did anything (${when})`, async () => {
      const before = await interrupted(isLost)
      const { w } = before
      await goOn(before)
      assert.deepEqual([w.read('Photos/a/x'), w.read('Photos/b/x')], ['two', 'one'])
    })

    test(`keeps what was saved in a folder that OneDrive deletes meanwhile (${when})`, async () => {
      const before = await interrupted(isLost)
      const { w, left, item } = before
      w.write(`${left}/new`, 'saved meanwhile')
      w.there.device.delete(item)
      await goOn(before)
      assert.ok(contents(w).includes('saved meanwhile'))
    })

    test(`keeps what another program puts in its place (${when})`, async () => {
      const before = await interrupted(isLost)
      const { w, left } = before
      rmSync(w.path(left), { recursive: true })
      w.write(left, 'a file of its name')
      await goOn(before)
      assert.ok(contents(w).includes('a file of its name'))
    })
  }
})

test('where only uploads are on, a file in a folder that OneDrive has deleted goes up, and the folder with it', async () => {
  const w = await world({ settings: { mode: 'upload-only' }, files: { 'd/': '' } })
  w.there.device.delete('/d')
  assert.deepEqual(await w.sync(), [])
  w.write('d/new.txt', 'new')
  assert.deepEqual(await w.sync(), ['mkdir-remote', 'upload'])
  assert.equal(w.there.device.read('/d/new.txt')?.toString(), 'new')
  assert.deepEqual(await w.differences(), [])
})

test('where only downloads are on, a file in a folder that was deleted here comes, and the folder with it', async () => {
  const w = await world({ settings: { mode: 'download-only' }, files: { '/d/': '' } })
  rmSync(w.path('d'), { recursive: true })
  assert.deepEqual(await w.sync(), [])
  w.there.device.write('/d/new.txt', 'new')
  assert.deepEqual(await w.sync(), ['mkdir-local', 'download'])
  assert.equal(w.read('d/new.txt'), 'new')
  assert.deepEqual(await w.differences(), [])
})
