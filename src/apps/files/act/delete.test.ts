import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { recordRemoteNow } from '../store/remote-tree.ts'
import { type ActWorld, actWorlds } from './act-world.suite.ts'

const world = actWorlds()

const binned = (w: ActWorld): string[] => w.there.dump().recycleBin.map(({ name }) => name)

describe('a deletion here', () => {
  test('takes the file to the trash', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.delete('/a.txt')
    await w.run(await w.only('delete-local'))
    assert.equal(w.has('a.txt'), false)
    assert.deepEqual(w.trash(), ['one'])
    await w.assertSettled()
  })

  test('of a file that OneDrive has after all, as it tells before that is written down: the file comes back', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    const row = (await w.store.nodeCase('docs', `i:${w.there.device.item('/a.txt').id}`)).remote!
    await w.store.write((tx) => recordRemoteNow(tx, 'docs', [{ ...row, isDeleted: true }]))
    const [action] = await w.plan()
    const { outcome } = await w.run(action!, { isLost: true })
    assert.equal(w.has('a.txt'), false)
    await w.store.write((tx) => recordRemoteNow(tx, 'docs', [row]))
    await w.commit(outcome.effects!)
    assert.deepEqual(await w.sync(), ['download'])
    assert.deepEqual([w.read('a.txt'), w.trash()], ['one', ['one']])
    assert.deepEqual(await w.differences(), [])
  })

  test('S4: does not take a file whose bytes changed although its size and time did not', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.delete('/a.txt')
    const action = await w.only('delete-local')
    const { atime, mtime } = statSync(w.path('a.txt'))
    writeFileSync(w.path('a.txt'), 'two')
    utimesSync(w.path('a.txt'), atime, mtime)
    const ran = await w.run(action)
    assert.match(ran.outcome.skip ?? '', /edited here/)
    assert.equal(w.read('a.txt'), 'two')
    await w.sync()
    assert.equal(w.there.device.read('/a.txt')!.toString(), 'two')
  })

  test('does not take a file that was edited meanwhile: the edit goes up as new', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.delete('/a.txt')
    const action = await w.only('delete-local')
    w.write('a.txt', 'edited since')
    assert.match((await w.run(action)).outcome.skip ?? '', /edited here/)
    await w.sync()
    assert.equal(w.read('a.txt'), 'edited since')
    assert.equal(w.there.device.read('/a.txt')!.toString(), 'edited since')
    assert.deepEqual(w.trash(), [])
  })

  test('that was done before the process died is done', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.delete('/a.txt')
    const action = await w.only('delete-local')
    await w.run(action, { isLost: true })
    assert.equal((await w.run(action)).outcome.skip, undefined)
    assert.deepEqual(await w.sync(), [])
    assert.deepEqual(w.trash(), ['one'])
  })

  test('of a folder takes all that is in it to the trash, and the empty folders away', async () => {
    const w = await world({ files: { '/sub/deep/a.txt': 'one', '/sub/b.txt': 'two' } })
    w.there.device.delete('/sub')
    await w.sync()
    assert.equal(w.has('sub'), false)
    assert.deepEqual(w.trash().sort(), ['one', 'two'])
    assert.deepEqual(await w.differences(), [])
  })

  test('of a folder into which something came a moment ago keeps that', async () => {
    const w = await world({ files: { '/sub/': '' } })
    w.there.device.delete('/sub')
    const action = await w.only('delete-local')
    w.write('sub/new.txt', 'just saved')
    assert.match((await w.run(action)).outcome.skip ?? '', /something new/)
    await w.sync()
    assert.equal(w.there.device.read('/sub/new.txt')!.toString(), 'just saved')
    assert.deepEqual(await w.differences(), [])
  })

  test('of a folder with files that are left out keeps the folder, and says so', async () => {
    const w = await world({ settings: { filter: { skip: ['*.log'] } }, files: { '/sub/': '' } })
    w.there.device.delete('/sub')
    const action = await w.only('delete-local')
    w.write('sub/debug.log', 'not synced')
    const ran = await w.run(action)
    assert.match(ran.outcome.skip ?? '', /kept: it holds files that are not synced/)
    assert.equal(w.read('sub/debug.log'), 'not synced')
  })

  test('waits while the marker of the folder is missing', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.delete('/a.txt')
    const action = await w.only('delete-local')
    unlinkSync(join(w.pair.root, '.tidemark/root.json'))
    assert.ok((await w.run(action)).outcome.again)
    assert.equal(w.read('a.txt'), 'one')
  })
})

describe('a deletion in OneDrive', () => {
  test('takes the item to the recycle bin', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    unlinkSync(w.path('a.txt'))
    await w.run(await w.only('delete-remote'))
    assert.equal(w.there.device.has('/a.txt'), false)
    assert.deepEqual(binned(w), ['a.txt'])
    await w.assertSettled()
  })

  test('that was done before the process died is done', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    unlinkSync(w.path('a.txt'))
    const action = await w.only('delete-remote')
    await w.run(action, { isLost: true })
    assert.equal((await w.run(action)).outcome.skip, undefined)
    assert.deepEqual(await w.sync(), [])
  })

  test('does not take what was edited there meanwhile: it comes back', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    unlinkSync(w.path('a.txt'))
    const action = await w.only('delete-remote')
    w.there.device.edit('/a.txt', 'edited there')
    assert.match((await w.run(action)).outcome.skip ?? '', /changed in OneDrive/)
    await w.sync()
    assert.equal(w.read('a.txt'), 'edited there')
    assert.deepEqual(binned(w), [])
  })

  test('does not happen where the file is here again', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    unlinkSync(w.path('a.txt'))
    const action = await w.only('delete-remote')
    w.write('a.txt', 'saved anew')
    assert.match((await w.run(action)).outcome.skip ?? '', /here again/)
    await w.sync()
    assert.equal(w.there.device.read('/a.txt')!.toString(), 'saved anew')
    assert.deepEqual(binned(w), [])
    assert.equal(w.there.device.item('/a.txt').versions.length, 1)
  })

  test('does not happen while the root or its marker is missing', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    unlinkSync(w.path('a.txt'))
    const action = await w.only('delete-remote')
    const away = `${w.pair.root}-away`
    renameSync(w.pair.root, away)
    assert.ok((await w.run(action)).outcome.again)
    mkdirSync(w.pair.root)
    w.obstacles.over('docs')
    assert.ok((await w.run(action)).outcome.again)
    assert.ok(w.there.device.has('/a.txt'))
    rmSync(w.pair.root, { recursive: true })
    renameSync(away, w.pair.root)
    w.obstacles.over('docs')
    await w.run(action)
    assert.equal(w.there.device.has('/a.txt'), false)
  })

  test('does not happen where the folder of the file is not there, and nobody has seen that', async () => {
    const w = await world({ files: { 'sub/a.txt': 'one' } })
    unlinkSync(w.path('sub/a.txt'))
    const action = await w.only('delete-remote')
    renameSync(w.path('sub'), `${w.pair.root}-sub`)
    assert.match((await w.run(action)).outcome.note ?? '', /folder is not there/)
    assert.ok(w.there.device.has('/sub/a.txt'))
  })

  test('of a folder goes from the inside out', async () => {
    const w = await world({ files: { 'sub/deep/a.txt': 'one', 'sub/b.txt': 'two' } })
    rmSync(w.path('sub'), { recursive: true })
    await w.sync()
    assert.equal(w.there.device.has('/sub'), false)
    assert.deepEqual(await w.differences(), [])
  })

  test('of a folder into which something came a moment ago keeps that', async () => {
    const w = await world({ files: { 'sub/': '' } })
    rmSync(w.path('sub'), { recursive: true })
    const action = await w.only('delete-remote')
    w.there.device.write('/sub/new.txt', 'just saved')
    assert.match((await w.run(action)).outcome.skip ?? '', /something is in it/)
    await w.sync()
    assert.equal(w.read('sub/new.txt'), 'just saved')
    assert.deepEqual(binned(w), [])
    assert.deepEqual(await w.differences(), [])
  })

  test('of a folder that was moved there meanwhile does not happen', async () => {
    const w = await world({ files: { 'sub/': '' } })
    rmSync(w.path('sub'), { recursive: true })
    const action = await w.only('delete-remote')
    w.there.device.rename('/sub', 'kept')
    assert.match((await w.run(action)).outcome.skip ?? '', /changed in OneDrive/)
    await w.sync()
    assert.ok(w.has('kept'))
  })
})

for (const side of ['here', 'in OneDrive']) {
  test(`what a look sees in the place of a file while its deletion ${side} is written down is new, and goes up without another look`, async () => {
    const w = await world({ files: { 'a.txt': 'one', 'd/': '' } })
    for (const name of ['a.txt', 'd']) {
      if (side === 'here') w.there.device.delete(`/${name}`)
      else rmSync(w.path(name), { recursive: true })
    }
    await w.hear()
    await w.look()
    const lost = []
    for (const action of await w.plan()) lost.push(await w.run(action, { isLost: true }))
    assert.deepEqual([w.has('a.txt'), w.has('d'), lost.length], [false, false, 2])
    w.write('a.txt', 'two')
    w.write('d/b.txt', 'three')
    await w.look()
    for (const { outcome } of lost) await w.commit(outcome.effects!)
    for (let pass = 0; pass < 4; pass++) {
      await w.hear()
      for (const action of await w.plan()) await w.run(action)
    }
    assert.deepEqual(await w.differences(), [])
    assert.equal(w.there.device.read('/a.txt')?.toString(), 'two')
    assert.equal(w.there.device.read('/d/b.txt')?.toString(), 'three')
  })
}
