import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { eachFilesHome, type FilesHome } from './files.suite.ts'

let world: FilesHome
eachFilesHome((home) => {
  world = home
})

describe('conflicts', () => {
  beforeEach(() => {
    world.there.write('c.txt', 'base')
  })

  function clash(): void {
    world.write('c.txt', 'mine')
    world.there.edit('c.txt', 'theirs')
  }

  test('keep both versions and are listed', async () => {
    await world.firstSync()
    clash()
    const { code } = await world.sync()
    assert.equal(code, 0)
    const none = await world.run('files', 'conflicts')
    assert.deepEqual([none.stdout, none.stderr], ['', 'No conflict waits for you.\n'])
    const [row] = await world.json<{ path: string; state: string; copyPath: string }[]>(
      ...['files', 'conflicts', '--all'],
    )
    assert.deepEqual([row?.path, row?.state], ['c.txt', 'kept-both'])
    assert.equal(world.read('c.txt'), 'theirs')
    assert.equal(world.thereNow()[row!.copyPath], 'mine')
    const settled = await world.run('files', 'resolve', '1', '--keep', 'local')
    assert.equal(settled.code, 2)
    assert.match(settled.stderr, /settled already/)
  })

  const versions: [keep: string, counts: string][] = [
    ['local', 'mine'],
    ['remote', 'theirs'],
  ]
  for (const [keep, counts] of versions) {
    test(`wait for a decision where that is wished, and ${keep} counts when somebody says so`, async () => {
      await world.firstSync('--conflicts', 'manual')
      clash()
      const waiting = await world.sync()
      assert.equal(waiting.code, 3)
      assert.match(waiting.stderr, /1 conflict to decide/)
      assert.deepEqual([world.read('c.txt'), world.thereNow()['c.txt']], ['mine', 'theirs'])
      const overall = await world.run('status')
      assert.equal(overall.code, 3)
      assert.match(overall.stdout, /: 1 conflict to decide\. Everything else is settled\.$/m)
      const listed = await world.run('files', 'ls')
      assert.match(listed.stdout, /^c\.txt\t4 B\t6 B\tconflict\t/m)
      const decided = await world.run('files', 'resolve', '1', '--keep', keep)
      assert.equal(decided.code, 0, decided.stderr)
      assert.equal((await world.sync()).code, 0)
      assert.deepEqual([world.read('c.txt'), world.thereNow()['c.txt']], [counts, counts])
    })
  }

  test('of a file that both sides have made wait for a decision, and for nothing else', async () => {
    await world.firstSync('--conflicts', 'manual')
    world.write('new.txt', 'mine')
    world.there.write('new.txt', 'theirs!')
    const waiting = await world.sync()
    assert.equal(waiting.code, 3)
    assert.doesNotMatch(waiting.stderr, /not finished|on the way/)
    const overall = await world.run('status')
    assert.match(overall.stdout, /: 1 conflict to decide\. Everything else is settled\.$/m)
    assert.equal((await world.run('files', 'resolve', '1', '--keep', 'remote')).code, 0)
    assert.equal((await world.sync()).code, 0)
    assert.deepEqual([world.read('new.txt'), world.thereNow()['new.txt']], ['theirs!', 'theirs!'])
  })

  test('are resolved only by what there is', async () => {
    await world.firstSync()
    const refused: [args: string[], said: RegExp][] = [
      [['7', '--keep', 'local'], /Docs has no conflict 7/],
      [['x', '--keep', 'local'], /"x" is not the number of a conflict/],
      [['1', '--keep', 'mine'], /Allowed choices are local, remote, both/],
      [['1'], /required option '--keep/],
    ]
    for (const [args, said] of refused) {
      const { code, stderr } = await world.run('files', 'resolve', ...args)
      assert.equal(code, 2)
      assert.match(stderr, said)
    }
  })
})

describe('what is left out', () => {
  test('stays on both sides, is no trouble, and comes along once it is wanted again', async () => {
    for (const name of ['big.iso', 'a.txt', 'b.txt']) world.there.write(name, name)
    await world.firstSync()
    const set = await world.run('files', 'set', 'Docs', '--skip', '*.iso', '--skip', 'build/')
    assert.equal(set.code, 0, set.stderr)
    assert.match(set.stdout, /left out {3}\*\.iso, build\//)
    world.write('build/out.o', 'o')
    world.there.delete('big.iso')
    const { code, stderr } = await world.sync()
    assert.equal(code, 0, stderr)
    assert.deepEqual([world.has('big.iso'), world.there.has('build')], [true, false])
    await world.run('files', 'set', 'Docs', '--skip', '')
    assert.equal((await world.sync()).code, 0)
    assert.deepEqual([world.has('big.iso'), world.there.has('build/out.o')], [false, true])
  })

  test('by its name is trouble: it stays, and the status names it', async () => {
    await world.firstSync()
    world.write('what?.txt', 'x')
    symlinkSync('/etc', join(world.root(), 'link'))
    const { code, stderr } = await world.sync()
    assert.equal(code, 3)
    assert.match(stderr, /1 left alone: OneDrive does not take names with the character \?/)
    const { stdout } = await world.run('files', 'status', '--all')
    assert.match(stdout, /^ {4}what\?\.txt: OneDrive does not take/m)
    assert.equal(world.has('what?.txt'), true)
  })
})
