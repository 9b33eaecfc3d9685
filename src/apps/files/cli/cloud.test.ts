import assert from 'node:assert/strict'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { attributesOf, setAttribute } from '../local/attributes.ts'
import { eachFilesHome, type FilesHome } from './files.suite.ts'

let world: FilesHome
eachFilesHome((home) => {
  world = home
})

describe('the trash', () => {
  test('keeps what was replaced or deleted, gives it back, and is emptied only when that is confirmed', async () => {
    world.there.write('a.txt', 'first')
    await world.firstSync()
    world.there.edit('a.txt', 'second')
    await world.sync()
    const [entry] = await world.json<{ entry: string; was: string }[]>('files', 'trash', 'list')
    assert.equal(entry?.was, 'a.txt')
    const taken = await world.run('files', 'trash', 'restore', 'a.txt')
    assert.equal(taken.code, 2)
    assert.match(taken.stderr, /There is something at a\.txt already/)
    const outside = await world.run('files', 'trash', 'restore', 'a.txt', '--to', '../a.txt')
    assert.match(outside.stderr, /leads out of the folder/)
    const back = await world.run('files', 'trash', 'restore', entry!.entry, '--to', 'old/a.txt')
    assert.equal(back.code, 0, back.stderr)
    assert.equal(world.read('old/a.txt'), 'first')
    await world.sync()
    assert.equal(world.thereNow()['old/a.txt'], 'first')
    world.there.delete('a.txt')
    await world.sync()
    const unsure = await world.run('files', 'trash', 'empty')
    assert.deepEqual([unsure.code, /add --yes/.test(unsure.stderr)], [2, true])
    const emptied = await world.run('files', 'trash', 'empty', '--yes')
    assert.equal(emptied.stdout, 'Docs: 1 file deleted for good, 6 B.\n')
    assert.deepEqual(await world.json('files', 'trash', 'list'), [])
  })
})

describe('OneDrive itself', () => {
  test('takes, gives, moves and removes, and the folder follows', async () => {
    await world.firstSync()
    const report = join(world.place, 'report.txt')
    writeFileSync(report, 'report')
    const steps: [args: string[], code: number, said: RegExp][] = [
      [['mkdir', 'a/b'], 2, /no folder a/],
      [['mkdir', 'a/b', '--parents'], 0, /^a\/b is a folder/],
      [['mkdir', 'a/b'], 2, /has a\/b already/],
      [['put', report, 'a/b/'], 0, /^a\/b\/report\.txt is in OneDrive \(6 B\)/],
      [['put', report, 'a/b/report.txt'], 2, /already; it was left alone/],
      [['put', report, 'a/what?.txt'], 2, /does not take names/],
      [['mv', 'a/b/report.txt', 'a'], 0, /^a\/report\.txt is its place/],
      [['mv', 'a/nothing', 'b'], 2, /OneDrive has no a\/nothing/],
      [['rm', 'a'], 2, /not empty/],
      [['rm', 'a/b'], 0, /recycle bin/],
      [['rm', '/'], 2, /whole drive/],
      [['get', 'a', world.place], 2, /not a file/],
      [['get', 'a/report.txt', world.place], 2, /is there already/],
      [['get', 'a/report.txt', join(world.place, 'copy.txt')], 0, /copy\.txt \(6 B\)/],
      [['get', 'a/../../x'], 2, /leads out/],
    ]
    for (const [args, code, said] of steps) {
      const ended = await world.run('files', ...args)
      assert.equal(ended.code, code, `${args.join(' ')}: ${ended.stderr}`)
      assert.match(ended.stdout + ended.stderr, said, args.join(' '))
    }
    assert.equal(world.read('copy.txt', world.place), 'report')
    assert.equal((await world.sync()).code, 0)
    assert.equal(world.read('a/report.txt'), 'report')
  })

  test('replaces a file with what was attached to it, and no folder', async () => {
    world.there.write('run.sh', 'newer')
    await world.firstSync()
    world.write('bin/run.sh', 'older', world.place)
    const place = join(world.place, 'bin/run.sh')
    chmodSync(place, 0o755)
    assert.ok(setAttribute(place, 'user.comment', Buffer.from('mine')))
    const replaced = await world.run('files', 'get', 'run.sh', place, '--force')
    assert.equal(replaced.code, 0, replaced.stderr)
    assert.equal(readFileSync(place, 'utf8'), 'newer')
    assert.equal(statSync(place).mode & 0o777, 0o755)
    assert.equal(attributesOf(place).get('user.comment')?.toString(), 'mine')
    world.write('run.sh/in it', 'kept', world.place)
    const refused = await world.run('files', 'get', 'run.sh', `${world.place}/`, '--force')
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /run\.sh is a folder; it was left alone/)
    assert.equal(world.read('run.sh/in it', world.place), 'kept')
    assert.equal((await world.json<unknown[]>('files', 'trash', 'list')).length, 1)
  })

  test('gets a large file in pieces, which becomes visible only as a whole', async () => {
    await world.firstSync()
    const large = join(world.place, 'large.bin')
    const bytes = Buffer.alloc(11 * 1024 * 1024, 'tidemark')
    writeFileSync(large, bytes)
    const { code, stderr } = await world.run('files', 'put', large, 'large.bin')
    assert.equal(code, 0, stderr)
    assert.deepEqual(world.there.read('large.bin'), bytes)
    const replaced = await world.run('files', 'put', large, 'large.bin', '--force')
    assert.equal(replaced.code, 0, replaced.stderr)
    assert.equal(world.there.item('large.bin').versions.length, 1)
  })

  test('goes on with a large file where it was interrupted, as long as the file is the same', async () => {
    await world.firstSync()
    const large = join(world.place, 'large.bin')
    const bytes = Buffer.alloc(25 * 1024 * 1024, 'tidemark')
    writeFileSync(large, bytes)
    const put = () => world.run('files', 'put', large, 'large.bin')
    const received = () => world.sim.log.bytesOf('graph.session.put').received
    const breakOff = (skip: number) =>
      world.sim.faults.set({ rules: [{ do: 'error', status: 500, methods: ['graph.session.put'], skip }] })
    breakOff(1)
    assert.equal((await put()).code, 1)
    assert.equal(world.there.has('large.bin'), false)
    world.sim.faults.clear()
    const before = received()
    const done = await put()
    assert.equal(done.code, 0, done.stderr)
    assert.match(done.stderr, /^Goes on after 10 MB of 26 MB\.$/m)
    assert.equal(received() - before, bytes.length - 10 * 1024 * 1024)
    assert.deepEqual(world.there.read('large.bin'), bytes)
    assert.deepEqual(readdirSync(join(world.home, 'uploads')), [])

    breakOff(1)
    assert.equal((await world.run('files', 'put', large, 'large.bin', '--force')).code, 1)
    world.sim.faults.clear()
    const other = Buffer.alloc(25 * 1024 * 1024, 'otherwise')
    writeFileSync(large, other)
    const anew = await world.run('files', 'put', large, 'large.bin', '--force')
    assert.deepEqual([anew.code, anew.stderr], [0, ''])
    assert.deepEqual(world.there.read('large.bin'), other)
  })
})

describe('files ls and stat', () => {
  test('show both sides as last seen, and say what they do not know', async () => {
    world.there.write('dir/a.txt', 'abc')
    await world.firstSync()
    const { stdout } = await world.run('files', 'ls')
    assert.equal(stdout, 'NAME\tHERE\tTHERE\tSTATE\tWHAT\ndir/\tyes\tyes\tin step\t\n')
    const inside = await world.run('files', 'ls', '/dir/')
    assert.match(inside.stdout, /^a\.txt\t3 B\t3 B\tin step\t$/m)
    const stat = await world.json<{ state: string; agreed: { size: number }; localHash: string }>(
      ...['files', 'stat', 'DIR/A.TXT'],
    )
    assert.deepEqual([stat.state, stat.agreed.size], ['in-step', 3])
    assert.match(stat.localHash, /=$/)
    const unknown = await world.run('files', 'stat', 'dir/b.txt')
    assert.equal(unknown.code, 2)
    assert.match(unknown.stderr, /Neither side has dir\/b\.txt, as last seen; did you mean a\.txt\?/)
  })
})

describe('a folder', () => {
  test('moves nothing while it is paused, and catches up', async () => {
    await world.firstSync()
    assert.equal((await world.run('files', 'pause', '--reason', 'on a train')).code, 0)
    world.write('a.txt', 'a')
    const paused = await world.sync()
    assert.equal(paused.code, 1)
    assert.match(paused.stderr, /Docs is paused: on a train\n {2}Go on with: tidemark files resume Docs/)
    assert.equal(world.there.has('a.txt'), false)
    const resumed = await world.run('files', 'resume')
    assert.match(resumed.stdout, /^Docs goes on\.$/m)
    assert.equal((await world.sync()).code, 0)
    assert.equal(world.there.has('a.txt'), true)
  })

  test('that is removed stays as it is on both sides, and can be added again under its name', async () => {
    world.there.write('a.txt', 'a')
    await world.firstSync()
    const removed = await world.run('files', 'remove', 'Docs')
    assert.equal(removed.code, 0, removed.stderr)
    assert.deepEqual([world.read('a.txt'), world.thereNow()], ['a', { 'a.txt': 'a' }])
    assert.match((await world.run('files', 'status')).stderr, /No folder of this machine/)
    const again = await world.sync(world.root(), '--name', 'Docs')
    assert.equal(again.code, 0, again.stderr)
    assert.match(again.stdout, /^Docs: done; 1 file, 1 B in step$/m)
    world.write('b.txt', 'b')
    assert.equal((await world.sync()).code, 0)
    assert.equal(world.there.has('b.txt'), true)
  })

  test('must be named where there are several', async () => {
    await world.firstSync()
    await world.sync(world.root('Other'), '--name', 'other one')
    const { code, stderr } = await world.run('files', 'ls')
    assert.equal(code, 2)
    assert.match(stderr, /There are: Docs, other one/)
    assert.equal((await world.run('files', 'ls', '--folder', 'other one')).code, 0)
    assert.equal((await world.run('files', 'ls', '--folder', world.root('Other'))).code, 0)
  })
})
