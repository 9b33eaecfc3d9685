import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { eachFilesHome, type FilesHome } from './files.suite.ts'

let world: FilesHome
eachFilesHome((home) => {
  world = home
})

describe('files verify', () => {
  beforeEach(async () => {
    for (const name of ['a', 'b', 'c']) world.there.write(`dir/${name}.txt`, `text of ${name}`)
    await world.firstSync()
  })

  test('says that everything agrees where it does, also when OneDrive is read to the bottom', async () => {
    for (const flags of [[], ['--deep']]) {
      const { code, stdout } = await world.run('files', 'verify', ...flags)
      assert.equal(code, 0)
      assert.equal(stdout, 'Docs: 3 files read (27 B), 4 items of OneDrive compared; everything agrees.\n')
    }
  })

  /** With the size and the time that it had. */
  function editUnseen(): void {
    const path = join(world.root(), 'dir', 'b.txt')
    const mark = join(world.place, 'mark')
    execFileSync('touch', ['-r', path, mark])
    writeFileSync(path, 'TEXT of b')
    execFileSync('touch', ['-r', mark, path])
  }

  test('finds an edit that keeps size and time, which the next sync uploads', async () => {
    editUnseen()
    const { code, stdout, stderr } = await world.run('files', 'verify')
    assert.equal(code, 3)
    assert.match(stdout, /^Docs: here: dir\/b\.txt: it was changed here since it was synced/m)
    assert.doesNotMatch(stderr, /--force/)
    assert.equal((await world.sync()).code, 0)
    assert.equal(world.thereNow()['dir/b.txt'], 'TEXT of b')
    assert.equal((await world.run('files', 'verify', '--deep')).code, 0)
  })

  test('finds content that was damaged without a trace, and its advice loses neither version', async () => {
    editUnseen()
    // As if the file system had not told of it either.
    const { ctimeNs } = statSync(join(world.root(), 'dir', 'b.txt'), { bigint: true })
    await world.inLedger((tx) =>
      tx.run(`UPDATE file_local SET ctime_ns = ? WHERE name = 'b.txt'`, [String(ctimeNs)]),
    )
    const { code, stdout, stderr } = await world.run('files', 'verify')
    assert.equal(code, 3)
    assert.match(stdout, /^Docs: here: dir\/b\.txt: its content is not what was synced/m)
    const [, command = ''] = /compare: tidemark (.*)$/m.exec(stderr) ?? []
    const [name, ...words] = command.split(' ').reverse()
    const fetched = await world.run(...words.reverse(), join(world.place, name!))
    assert.equal(fetched.code, 0, fetched.stderr)
    assert.equal(world.read('b.txt.from-onedrive', world.place), 'text of b')
    assert.equal(world.read('dir/b.txt'), 'TEXT of b')
    // Who decides for OneDrive's version has the other one in the trash.
    const replaced = await world.run('files', 'get', 'dir/b.txt', join(world.root(), 'dir/'), '--force')
    assert.equal(replaced.code, 0, replaced.stderr)
    assert.match(replaced.stderr, /in the trash of Docs: .*b\.txt/)
    assert.equal(world.read('dir/b.txt'), 'text of b')
    const [entry] = await world.json<{ entry: string; was: string }[]>('files', 'trash', 'list')
    assert.equal(entry?.was, 'dir/b.txt')
    assert.equal(world.read(`.tidemark/trash/${entry.entry}`), 'TEXT of b')
    assert.equal((await world.sync()).code, 0)
    assert.equal((await world.run('files', 'verify')).code, 0)
  })

  test('tells every difference on either side, and changes nothing', async () => {
    world.write('dir/a.txt', 'longer text of a')
    unlinkSync(join(world.root(), 'dir', 'b.txt'))
    world.write('new-here.txt', 'x')
    world.there.edit('dir/c.txt', 'other')
    world.there.write('new-there.txt', 'y')
    const before = await world.stored()
    const [report] = await world.json<{ differences: { path: string; side: string; what: string }[] }[]>(
      ...['files', 'verify'],
    )
    assert.deepEqual(report!.differences.map(({ path, side, what }) => `${side} ${path} ${what}`).sort(), [
      ...['here dir/a.txt changed', 'here dir/b.txt missing', 'here new-here.txt new'],
      ...['there dir/c.txt changed', 'there new-there.txt new'],
    ])
    assert.deepEqual(await world.stored(), before)
  })
})
