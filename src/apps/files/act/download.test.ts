import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { releaseSettled } from '../store/open-nodes.ts'
import { type ActWorld, actWorlds, MIB, noise } from './act-world.suite.ts'

const world = actWorlds()

const partials = (w: ActWorld): string[] => readdirSync(join(w.pair.root, '.tidemark/partial'))

describe('a download', () => {
  test('puts a new file in its place with the time of the item', async () => {
    const w = await world()
    const atMs = Date.UTC(2020, 1, 2, 3, 4, 5, 678)
    w.there.device.write('/a.txt', 'hello', { modifiedMs: atMs })
    const ran = await w.run(await w.only('download'))
    assert.equal(w.read('a.txt'), 'hello')
    assert.equal(w.mtimeMs('a.txt'), atMs)
    assert.ok(ran.outcome.effects)
    await w.assertSettled()
    assert.deepEqual(partials(w), [])
  })

  test('that somebody was faster than with the very same leaves nothing behind', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'the same')
    await w.run(await w.only('download'), { onProgress: () => w.write('a.txt', 'the same') })
    await w.sync()
    assert.deepEqual([w.read('a.txt'), w.trash(), partials(w)], ['the same', [], []])
    assert.deepEqual(await w.differences(), [])
  })

  test('waits for a look where what has its name was renamed from another case a moment ago', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.there.device.delete('/a.txt')
    w.there.device.write('/A.txt', 'another')
    await w.hear()
    const action = (await w.plan()).find(({ verb }) => verb === 'download')!
    renameSync(w.path('a.txt'), w.path('A.txt'))
    const { outcome } = await w.run(action)
    assert.deepEqual([outcome.bad, outcome.again === undefined], [undefined, false])
    await w.store.write((tx) => releaseSettled(tx, 'docs', 1_000))
    await w.sync()
    assert.equal(w.read('A.txt'), 'another')
    assert.deepEqual(await w.differences(), [])
  })

  test('replaces exactly the file that it was decided on, which is in the trash then', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.write('/a.txt', 'two')
    await w.run(await w.only('download'))
    assert.equal(w.read('a.txt'), 'two')
    assert.deepEqual(w.trash(), ['one'])
    assert.deepEqual(await w.sync(), [])
  })

  test('takes no page that something on the way sends instead for a file without a hash', async () => {
    const w = await world({ quirks: { hashMissing: true } })
    for (let n = 0; n < 20; n++) w.there.device.write(`/f${n}.txt`, `content ${n}`)
    await w.hear()
    await w.look()
    const actions = await w.plan()
    assert.equal(actions.length, 20)
    w.sim.faults.set({ rules: [{ do: 'content-type', type: 'text/html', methods: ['graph.download'] }] })
    for (const action of actions) await w.run(action).catch(() => undefined)
    for (let n = 0; n < 20; n++) assert.equal(w.has(`f${n}.txt`), false)
  })

  test('does not replace a file that was edited while it came', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.write('/a.txt', 'two')
    const action = await w.only('download')
    w.write('a.txt', 'edited here')
    const ran = await w.run(action)
    assert.match(ran.outcome.skip ?? '', /changed here/)
    assert.equal(w.read('a.txt'), 'edited here')
    await w.sync()
    const copies = readdirSync(w.pair.root).filter((name) => name.includes('.conflict-'))
    assert.equal(copies.length, 1)
    assert.equal(w.read(copies[0]!), 'edited here')
    assert.equal(w.read('a.txt'), 'two')
    assert.deepEqual(await w.differences(), [])
  })

  test('does not take a name that somebody has taken meanwhile', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'theirs')
    const action = await w.only('download')
    w.write('a.txt', 'ours')
    assert.match((await w.run(action)).outcome.skip ?? '', /something else/)
    assert.equal(w.read('a.txt'), 'ours')
    await w.sync()
    assert.equal(w.read('a.txt'), 'theirs')
    assert.equal((await w.conflicts()).length, 1)
  })

  test('that was in its place before the process died is adopted, without a byte on the wire', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'hello')
    const action = await w.only('download')
    await w.run(action, { isLost: true })
    assert.equal(w.read('a.txt'), 'hello')
    const before = w.sim.log.bytesOf('graph.download').sent
    const ran = await w.run(action)
    assert.equal(ran.outcome.skip, undefined)
    assert.equal(w.sim.log.bytesOf('graph.download').sent, before)
    await w.assertSettled()
  })

  test('that replaced a file before the process died is adopted', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.write('/a.txt', 'two')
    const action = await w.only('download')
    await w.run(action, { isLost: true })
    const ran = await w.run(action)
    assert.equal(ran.outcome.skip, undefined)
    assert.deepEqual(await w.sync(), [])
    assert.deepEqual(w.trash(), ['one'])
  })

  test('goes on where it was stopped, and the bytes on the wire prove it', async () => {
    const w = await world()
    const content = noise(12 * MIB)
    w.there.device.write('/big.bin', content)
    const action = await w.only('download')
    const stop = new AbortController()
    const stopped = w.run(action, {
      signal: stop.signal,
      onProgress: (done) => done >= 5 * MIB && stop.abort(),
    })
    await assert.rejects(stopped, /shutdown/)
    assert.equal(partials(w).length, 1)
    w.sim.log.reset()
    await w.run(action)
    assert.ok(w.sim.log.bytesOf('graph.download').sent <= 7.5 * MIB)
    assert.deepEqual(await w.sync(), [])
    assert.ok(w.bytes('big.bin').equals(content))
    assert.deepEqual(await w.differences(), [])
    assert.deepEqual(partials(w), [])
  })

  test('begins anew where the server ignores that less was wanted', async () => {
    const w = await world({ quirks: { rangeIgnored: true } })
    w.there.device.write('/big.bin', noise(6 * MIB))
    const action = await w.only('download')
    const stop = new AbortController()
    const options = { signal: stop.signal, onProgress: (done: number) => done >= 3 * MIB && stop.abort() }
    await assert.rejects(w.run(action, options), /shutdown/)
    await w.run(action)
    await w.assertSettled()
  })

  test('of a version that was replaced while it came is not put in place', async () => {
    const w = await world()
    w.there.device.write('/a.bin', noise(4 * MIB, 1))
    const action = await w.only('download')
    const stop = new AbortController()
    const options = { signal: stop.signal, onProgress: (done: number) => done >= 2 * MIB && stop.abort() }
    await assert.rejects(w.run(action, options), /shutdown/)
    w.there.device.edit('/a.bin', noise(4 * MIB, 2))
    const ran = await w.run(action)
    assert.match(ran.outcome.skip ?? '', /changed in OneDrive/)
    assert.equal(w.has('a.bin'), false)
    await w.sync()
    assert.deepEqual(await w.differences(), [])
  })

  test('of something that was deleted in OneDrive meanwhile is not needed any more', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'hello')
    const action = await w.only('download')
    w.there.device.delete('/a.txt')
    const { outcome, checkpoint } = await w.run(action)
    assert.match(outcome.note ?? '', /lists it, but does not give it/)
    await w.hear()
    assert.match((await w.run(action, { checkpoint })).outcome.skip ?? '', /not needed any more/)
    assert.deepEqual(await w.sync(), [])
    assert.equal(w.has('a.txt'), false)
    assert.deepEqual(await w.differences(), [])
  })

  test('is verified by size, and by the version, where OneDrive has no hash', async () => {
    const w = await world({ quirks: { hashMissing: true, hashMissingOnEmpty: true } })
    for (let at = 0; at < 9; at++) w.there.device.write(`/${at}.txt`, `file ${at}`)
    w.there.device.write('/empty.txt', '')
    await w.sync()
    for (let at = 0; at < 9; at++) assert.equal(w.read(`${at}.txt`), `file ${at}`)
    assert.equal(w.read('empty.txt'), '')
    assert.deepEqual(await w.differences(), [])
  })

  test('of a picture whose size OneDrive gets wrong is whole', async () => {
    const w = await world({ quirks: { heicSizeWrong: true }, files: { '/photo.heic': noise(1_000) } })
    assert.deepEqual(w.bytes('photo.heic'), w.there.device.read('/photo.heic'))
    assert.deepEqual(await w.sync(), [])
  })

  test('waits, without costing a try, where the disk would get too full', async () => {
    const w = await world({ reserveBytes: Number.MAX_SAFE_INTEGER })
    w.there.device.write('/a.txt', 'hello')
    const ran = await w.run(await w.only('download'))
    assert.ok(ran.outcome.again)
    assert.match(ran.outcome.note ?? '', /disk is too full/)
    const obstacle = w.obstacles.of('docs')
    assert.equal(obstacle?.where, 'disk')
    assert.match(obstacle.error.hint ?? '', /files\.disk_reserve/)
    assert.equal(w.has('a.txt'), false)
  })

  test('waits where the folder has lost its marker, and makes none anew', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'hello')
    const action = await w.only('download')
    unlinkSync(join(w.pair.root, '.tidemark/root.json'))
    const ran = await w.run(action)
    assert.ok(ran.outcome.again)
    assert.equal(w.obstacles.of('docs')?.where, 'folder')
    assert.equal(w.has('a.txt'), false)
  })

  test('never goes through a folder that was replaced by a link', async () => {
    const w = await world({ files: { '/sub/a.txt': 'one' } })
    w.there.device.write('/sub/b.txt', 'two')
    const action = await w.only('download')
    const outside = join(w.pair.root, '..', 'outside')
    mkdirSync(outside)
    renameSync(w.path('sub'), join(w.pair.root, '..', 'moved'))
    symlinkSync(outside, w.path('sub'))
    await w.run(action)
    assert.deepEqual(readdirSync(outside), [])
  })

  test('works where fresh addresses are refused at first', async () => {
    const w = await world({ quirks: { freshDownloadUnauthorized: true }, files: { '/a.txt': 'hello' } })
    assert.equal(w.read('a.txt'), 'hello')
  })

  test('that is damaged on its way is tried again, and the damaged part is gone', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'hello')
    const action = await w.only('download')
    w.sim.faults.set({
      rules: [{ do: 'truncate', share: 0.5, close: false, methods: ['graph.download'], max: 1 }],
    })
    await assert.rejects(w.run(action))
    assert.equal(w.has('a.txt'), false)
    await w.run(action)
    assert.equal(w.read('a.txt'), 'hello')
  })

  test('does not hide a newer version that was heard of while it came', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'one')
    const action = await w.only('download')
    const lost = await w.run(action, { isLost: true })
    w.there.device.edit('/a.txt', 'two')
    await w.hear()
    await w.commit(lost.outcome.effects!)
    await w.sync()
    assert.equal(w.read('a.txt'), 'two')
    assert.deepEqual(await w.differences(), [])
  })
})
