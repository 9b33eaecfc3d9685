import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { afterEach, describe, test } from 'node:test'
import type { Action } from '../plan.ts'
import { type ActWorld, actWorld, type WorldOptions } from './act-world.suite.ts'

const worlds: ActWorld[] = []
async function world(options?: WorldOptions): Promise<ActWorld> {
  const made = await actWorld(options)
  worlds.push(made)
  return made
}
afterEach(async () => {
  for (const one of worlds.splice(0)) await one.close()
})

const requests = (w: ActWorld, name: string): number =>
  Object.values(w.sim.log.counts().requests[name] ?? {}).reduce((sum, count) => sum + count, 0)

describe('a check', () => {
  test('finds that a file that was only touched is the same', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
    w.write('a.txt', 'one', Date.UTC(2030, 1, 1))
    assert.deepEqual(await w.sync(), ['check'])
    assert.deepEqual(await w.differences(), [])
  })

  test('says nothing about a file that changed since it was seen', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
    w.write('a.txt', 'two')
    const action = await w.only('check')
    w.write('a.txt', 'three!')
    assert.match((await w.run(action)).outcome.skip ?? '', /changed here/)
    assert.deepEqual(await w.sync(), ['check', 'upload'])
    assert.equal(w.there.device.read('/a.txt')!.toString(), 'three!')
  })

  test('whose end was lost is simply made again', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
    w.write('a.txt', 'two')
    const action = await w.only('check')
    await w.run(action, { isLost: true })
    await w.run(action)
    assert.deepEqual(await w.sync(), ['upload'])
  })
})

describe('a folder', () => {
  test('is made on the side that has it not, and made again by nobody', async () => {
    const w = await world({ quirks: { mkdirEmptyBody: true } })
    mkdirSync(w.path('ours/deep'), { recursive: true })
    w.there.device.mkdir('/theirs/deep')
    await w.sync()
    assert.ok(w.there.device.has('/ours/deep'))
    assert.ok(statSync(w.path('theirs/deep')).isDirectory())
    assert.deepEqual(await w.sync(), [])
    assert.deepEqual(await w.differences(), [])
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
    const copy = readdirSync(w.drive.root).find((name) => name.includes('.conflict-'))
    assert.equal(w.read(copy!), 'a file')
    assert.deepEqual(await w.differences(), [])
  })
})

describe('a folder that is not where it was', () => {
  test('is waited for, and not taken for deleted', async () => {
    const w = await world()
    w.there.device.write('/sub/a.txt', 'one')
    await w.sync()
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
    const w = await world()
    w.write('a.txt', 'one')
    w.write('b.txt', 'two')
    await w.sync()
    w.there.device.rename('/a.txt', 'a2.txt')
    const here = await w.only('move-local')
    await w.run(here, { isLost: true })
    assert.equal((await w.run(here)).outcome.skip, undefined)
    assert.deepEqual(await w.sync(), [])
    renameSync(w.path('b.txt'), w.path('b2.txt'))
    const there = await w.only('move-remote')
    await w.run(there, { isLost: true })
    assert.equal((await w.run(there)).outcome.skip, undefined)
    assert.deepEqual(await w.sync(), [])
    assert.deepEqual(w.trash(), [])
    assert.deepEqual(await w.differences(), [])
  })

  test('never goes over something that is there', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'one')
    await w.sync()
    w.there.device.rename('/a.txt', 'b.txt')
    const action = await w.only('move-local')
    w.write('b.txt', 'ours')
    assert.match((await w.run(action)).outcome.skip ?? '', /something else/)
    assert.equal(w.read('b.txt'), 'ours')
    await w.sync()
    assert.equal(w.read('b.txt'), 'one')
    const copy = readdirSync(w.drive.root).find((name) => name.includes('.conflict-'))
    assert.equal(w.read(copy!), 'ours')
    assert.deepEqual(await w.differences(), [])
  })

  test('to a name that was taken in OneDrive meanwhile keeps both', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
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
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
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
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
    w.there.device.move('/a.txt', '/sub/b.txt')
    w.there.device.edit('/sub/b.txt', 'two')
    const verbs = await w.sync()
    assert.deepEqual(verbs.sort(), ['download', 'mkdir-local', 'move-local'])
    assert.equal(w.read('sub/b.txt'), 'two')
    assert.deepEqual(await w.differences(), [])
  })

  test('into a folder that was deleted in OneDrive meanwhile is done anew', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    mkdirSync(w.path('sub'))
    await w.sync()
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
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
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
    const w = await world()
    w.write('Report.txt', 'one')
    w.write('other.txt', 'two')
    await w.sync()
    w.there.device.rename('/Report.txt', 'REPORT.txt')
    renameSync(w.path('other.txt'), w.path('Other.txt'))
    assert.deepEqual((await w.sync()).sort(), ['move-local', 'move-remote'])
    assert.deepEqual(readdirSync(w.drive.root).sort(), ['.tidemark', 'Other.txt', 'REPORT.txt'])
    assert.equal(w.there.device.item('/other.txt').name, 'Other.txt')
    assert.deepEqual(await w.differences(), [])
  })

  for (const side of ['here', 'there'] as const) {
    test(`that exchanges two names ${side} ends with both exchanged`, async () => {
      const w = await world()
      w.write('a.txt', 'was a')
      w.write('b.txt', 'was b')
      await w.sync()
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
      assert.deepEqual(readdirSync(w.drive.root).sort(), ['.tidemark', 'a.txt', 'b.txt'])
      assert.deepEqual(await w.differences(), [])
    })
  }

  test('to a name of our own counts as agreed until it is moved on', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
    renameSync(w.path('a.txt'), w.path('b.txt'))
    const action: Action = { ...(await w.only('move-remote')), isTemporary: true }
    await w.run(action, { isLost: true })
    await w.run(action)
    assert.match(w.there.dump().items[0]!.name, /^\.tidemark-move-/)
    assert.deepEqual(await w.sync(), ['move-remote'])
    assert.deepEqual(
      w.there.dump().items.map(({ name }) => name),
      ['b.txt'],
    )
    w.there.device.rename('/b.txt', 'c.txt')
    const here: Action = { ...(await w.only('move-local')), isTemporary: true }
    await w.run(here)
    assert.ok(readdirSync(w.drive.root).some((name) => name.startsWith('.tidemark-move-')))
    assert.deepEqual(await w.sync(), ['move-local'])
    assert.equal(w.read('c.txt'), 'one')
    assert.deepEqual(await w.differences(), [])
  })

  test('of something that is gone from the folder waits for a look, and is then planned anew', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    await w.sync()
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
      const w = await world({ settings: { filter } })
      w.there.device.write('/Photos/a', 'one')
      w.there.device.write('/Photos/b', 'two')
      await w.sync()
      exchange(w, '/Photos/a', '/Photos/b')
      await w.sync()
      assert.deepEqual([w.read('Photos/a'), w.read('Photos/b')], ['two', 'one'], JSON.stringify(filter))
      assert.deepEqual(await w.differences(), [])
    }
  })

  test('of folders leaves nothing behind either, nor what changed in them meanwhile', async () => {
    for (const filter of filters) {
      const w = await world({ settings: { filter } })
      w.there.device.write('/Photos/a/x', 'one')
      w.there.device.write('/Photos/b/x', 'two')
      await w.sync()
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
      const w = await world({ settings: { filter } })
      w.there.device.write('/Photos/a/x', 'one')
      w.there.device.write('/Photos/b/x', 'two')
      await w.sync()
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

test('where only uploads are on, a file in a folder that OneDrive has deleted goes up, and the folder with it', async () => {
  const w = await world({ settings: { mode: 'upload-only' } })
  mkdirSync(w.path('d'))
  await w.sync()
  w.there.device.delete('/d')
  assert.deepEqual(await w.sync(), [])
  w.write('d/new.txt', 'new')
  assert.deepEqual(await w.sync(), ['mkdir-remote', 'upload'])
  assert.equal(w.there.device.read('/d/new.txt')?.toString(), 'new')
  assert.deepEqual(await w.differences(), [])
})

test('where only downloads are on, a file in a folder that was deleted here comes, and the folder with it', async () => {
  const w = await world({ settings: { mode: 'download-only' } })
  w.there.device.mkdir('/d')
  await w.sync()
  rmSync(w.path('d'), { recursive: true })
  assert.deepEqual(await w.sync(), [])
  w.there.device.write('/d/new.txt', 'new')
  assert.deepEqual(await w.sync(), ['mkdir-local', 'download'])
  assert.equal(w.read('d/new.txt'), 'new')
  assert.deepEqual(await w.differences(), [])
})
