import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { createContext } from '../../../cli/context.ts'
import { Output } from '../../../cli/output/output.ts'
import { ANN, eachFilesHome, FilesHome } from './files.suite.ts'
import type { Asking } from './held-deletes.ts'
import { syncFiles } from './sync.ts'

const BOB = 'bob@example.com'

let world: FilesHome
eachFilesHome((home) => {
  world = home
})

describe('files sync', () => {
  test('merges a folder that is not empty with OneDrive, says so, and deletes nothing', async () => {
    world.there.write('a/from-there.txt', 'there')
    world.there.write('same.txt', 'same')
    world.write('b/from-here.txt', 'here')
    world.write('same.txt', 'same')
    const first = await world.sync(world.root())
    assert.equal(first.code, 0, first.stderr)
    assert.match(first.stdout, /^Docs: done; 3 files, 13 B in step; 1 downloaded, 1 uploaded/)
    assert.match(first.stderr, /is not empty \(2 things at its top\).*are merged\. Nothing is deleted/)
    assert.equal(world.read('a/from-there.txt'), 'there')
    assert.equal(world.thereNow()['b/from-here.txt'], 'here')
    const again = await world.sync()
    assert.deepEqual([again.code, again.stderr], [0, ''])
    assert.equal(again.stdout, 'Docs: done; 3 files, 13 B in step\n')
  })

  test('begins with a part of OneDrive, and with what is private left here, where that is said', async () => {
    world.there.write('Letters/a.txt', 'a')
    world.there.write('Videos/huge.bin', 'huge')
    world.write('Letters/key.pem', 'private')
    const flags = ['--only', 'Letters', '--skip', '*.pem']
    const dry = await world.sync(world.root(), '--dry-run', ...flags)
    assert.match(dry.stdout, /^Docs: would download 1 \(1 B\)\./m)
    const { code, stderr } = await world.sync(world.root(), ...flags)
    assert.ok(code === 0 || code === 3, stderr)
    assert.equal(world.read('Letters/a.txt'), 'a')
    assert.equal(world.has('Videos/huge.bin'), false)
    assert.equal(world.thereNow()['Letters/key.pem'], undefined)
    const { stdout } = await world.run('files', 'set', 'Docs')
    assert.match(stdout, /^ {2}only {7}Letters$/m)
    assert.match(stdout, /^ {2}left out {3}\*\.pem$/m)
    const other = await world.sync('Docs', '--skip', '')
    assert.match(other.stderr, /other things take part/)
    assert.equal(world.thereNow()['Letters/key.pem'], 'private')
    assert.equal((await world.sync('Docs', '--dry-run', '--only', 'Videos')).code, 2)
  })

  test('says that nothing is where only something was to take part, and what may be meant', async () => {
    world.there.write('Letters/a.txt', 'a')
    const { code, stderr } = await world.sync(world.root(), '--only', 'Leters')
    assert.equal(code, 3, stderr)
    assert.match(stderr, /only Leters was to take part, and neither side has it; did you mean Letters\?/)
    const mended = await world.sync('Docs', '--only', 'Letters')
    assert.equal(mended.code, 0, mended.stderr)
    assert.equal(world.read('Letters/a.txt'), 'a')
  })

  test('is set up although connections break meanwhile', async () => {
    world.there.write('a.txt', 'a')
    world.sim.faults.set({ rules: [{ do: 'reset', when: 'before', methods: ['graph.drive.get'], max: 2 }] })
    const { code, stderr } = await world.sync(world.root())
    assert.equal(code, 0, stderr)
    assert.equal(world.read('a.txt'), 'a')
  })

  test('takes what OneDrive says takes part into account at once', async () => {
    world.write('.tidemarkignore', 'build/\n')
    world.write('build/x.txt', 'made here')
    assert.equal((await world.sync(world.root())).code, 0)
    assert.equal(world.thereNow()['build/x.txt'], undefined)
    world.there.write('.tidemarkignore', '# nothing\n')
    assert.equal((await world.sync()).code, 0)
    assert.equal(world.thereNow()['build/x.txt'], 'made here')
  })

  test('begins with the rules of OneDrive, before anything goes by others', async () => {
    world.there.write('.tidemarkignore', 'build/\n')
    world.there.write('build/z.txt', 'made there')
    world.write('build/y.txt', 'made here')
    assert.equal((await world.sync(world.root())).code, 0)
    assert.equal(world.thereNow()['build/y.txt'], undefined)
    assert.equal(world.has('build/z.txt'), false)
    // Also where another file becomes them, and something new is seen by the same sync.
    world.there.write('rules', 'build/\nkeep/\n')
    assert.equal((await world.sync()).code, 0)
    world.there.delete('.tidemarkignore')
    world.there.move('rules', '.tidemarkignore')
    world.write('keep/a.txt', 'new here')
    assert.equal((await world.sync()).code, 0)
    assert.equal(world.thereNow()['keep/a.txt'], undefined)
    // What cannot come holds nothing up.
    world.sim.faults.set({ rules: [{ do: 'error', status: 403, methods: ['graph.content.get'], max: 1 }] })
    world.there.write('.tidemarkignore', '# nothing\n')
    world.write('other.txt', 'other')
    assert.equal((await world.sync()).code, 3)
    assert.equal(world.thereNow()['other.txt'], 'other')
    assert.equal((await world.sync()).code, 0)
    assert.equal(world.thereNow()['build/y.txt'], 'made here')
    assert.equal(world.read('build/z.txt'), 'made there')
    assert.equal(world.thereNow()['keep/a.txt'], 'new here')
  })

  test('brings edits, renames and deletions of each side to the other', async () => {
    for (const name of ['one', 'two', 'three', 'four']) world.there.write(`${name}.txt`, name)
    await world.firstSync()
    world.write('one.txt', 'edited here')
    renameSync(join(world.root(), 'two.txt'), join(world.root(), 'zwei.txt'))
    world.there.edit('three.txt', 'edited there')
    world.there.delete('four.txt')
    const { code, stdout } = await world.sync('Docs')
    assert.equal(code, 0, stdout)
    assert.deepEqual(world.thereNow(), {
      'one.txt': 'edited here',
      'zwei.txt': 'two',
      'three.txt': 'edited there',
    })
    assert.equal(world.read('three.txt'), 'edited there')
    assert.equal(world.has('four.txt'), false)
  })

  test('tells programs one object a line, the last of them a summary', async () => {
    world.there.write('a.txt', 'a')
    const { code, stdout } = await world.sync(world.root(), '--json')
    assert.equal(code, 0)
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const { type, stopped, folders } = lines.at(-1)
    assert.deepEqual([type, stopped, folders.length], ['summary', false, 1])
    assert.equal(folders[0].state, 'in step')
    assert.deepEqual(folders[0].totals, { files: 1, folders: 0, bytes: 1 })
    assert.deepEqual(folders[0].done, { downloaded: 1, uploaded: 0, changed: 0 })
  })

  test('a folder that is not there is refused, and nothing is deleted anywhere', async () => {
    world.there.write('precious.txt', 'kept')
    await world.firstSync()
    renameSync(world.root(), world.root('away'))
    for (const wanted of ['Docs', world.root()]) {
      const { code, stderr } = await world.sync(wanted)
      assert.equal(code, 2)
      assert.match(stderr, /Docs is not there\.\n {2}Bring it back/)
    }
    mkdirSync(world.root())
    const empty = await world.sync('Docs')
    assert.equal(empty.code, 2)
    assert.match(empty.stderr, /has no marker/)
    const status = await world.run('files', 'status')
    assert.equal(status.code, 2)
    assert.match(status.stdout, /^Docs: not in step\n(?:.*\n)* {2}MISSING .*has no marker/)
    assert.deepEqual(world.thereNow(), { 'precious.txt': 'kept' })
  })

  test('one folder that is not there does not keep another from being synced', async () => {
    await world.firstSync()
    const other = await world.sync(world.root('Other'))
    assert.equal(other.code, 0, other.stderr)
    renameSync(world.root(), world.root('away'))
    world.write('new.txt', 'new', world.root('Other'))
    const { code, stdout, stderr } = await world.sync()
    assert.equal(code, 1)
    assert.match(stderr, /Docs is left out of this sync/)
    assert.match(stdout, /^Other: done; .*1 uploaded/m)
  })

  test('a read-only account only downloads, unless something else is asked for, which is refused', async () => {
    await world.close()
    world = await FilesHome.start({ access: 'readonly' })
    world.there.write('a.txt', 'a')
    const refused = await world.sync(world.root(), '--upload-only')
    assert.deepEqual([refused.code, world.has('')], [2, false])
    assert.match(refused.stderr, /may only read/)
    world.write('mine.txt', 'mine')
    await world.firstSync()
    assert.equal(world.read('a.txt'), 'a')
    assert.deepEqual(Object.keys(world.thereNow()), ['a.txt'])
  })

  test('only downloads from then on, and catches up when both ways are on again', async () => {
    world.there.write('a.txt', 'a')
    await world.firstSync('--download-only')
    world.write('mine.txt', 'mine')
    world.there.write('b.txt', 'b')
    const down = await world.sync()
    assert.equal(down.code, 0, down.stderr)
    assert.match(down.stderr, /1 left out, as you wished/)
    assert.deepEqual([world.has('b.txt'), world.there.has('mine.txt')], [true, false])
    const both = await world.sync('--two-way')
    assert.match(both.stderr, /Docs: from now on changes go both ways\./)
    assert.equal(world.there.has('mine.txt'), true)
  })
})

describe('files remove', () => {
  test('ends the sync and nothing else; given again, what is missing on one side comes back', async () => {
    world.there.write('a.txt', 'there')
    world.write('b.txt', 'here')
    await world.firstSync()
    rmSync(join(world.root(), 'a.txt'))
    const { code, stdout, stderr } = await world.run('files', 'remove', 'Docs')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^Docs is not kept in step any more\. .*Docs and OneDrive stay as they are\.\n$/)
    assert.deepEqual(world.thereNow(), { 'a.txt': 'there', 'b.txt': 'here' })
    assert.match((await world.sync()).stderr, /No folder of this machine is kept in step yet/)
    await world.firstSync()
    assert.equal(world.read('a.txt'), 'there')
    assert.deepEqual(world.thereNow(), { 'a.txt': 'there', 'b.txt': 'here' })
  })
})

describe('files sync refuses', () => {
  test('wrong words, before anything is asked or made', async () => {
    await world.firstSync()
    const served = world.sim.log.served
    const refused: [args: string[], said: RegExp][] = [
      [
        ['Dokus'],
        /No folder called Dokus is kept in step; did you mean Docs\?\n.*write its path: tidemark files sync \.\/Dokus/,
      ],
      [[world.root('New'), '--download-only', '--upload-only'], /cannot be used with/],
      [['Docs', '--dry-run', '--watch'], /leave out --watch/],
      [['--name', 'x'], /Which folder is to be set up\?/],
      [['--skip', '*.iso'], /for one folder: which one\?/],
      [[world.root('New'), '--account', 'carl@example.com'], /There is no OneDrive account carl/],
      [[world.root('New'), '--name', '../x'], /cannot be the name/],
      [[world.root('New'), '--name', 'docs'], /There is a folder called docs already/],
      [[join(world.root(), 'inner')], /inner lies in .*, which is kept in step already, as Docs/],
      [[world.place], /has in it .*, which is kept in step already/],
      [[join(world.home, 'inner')], /where Tidemark keeps its data/],
      [['Docs', '--name', 'Other'], /is set up already, as Docs/],
      [['Docs', '--conflicts', 'flip'], /Allowed choices are/],
    ]
    for (const [args, said] of refused) {
      const { code, stderr } = await world.sync(...args)
      assert.equal(code, 2, args.join(' '))
      assert.match(stderr, said, args.join(' '))
    }
    assert.equal(world.sim.log.served, served)
    assert.deepEqual(readdirSync(world.place), ['Docs'])
  })

  test('a folder that another Tidemark has marked', async () => {
    await world.firstSync()
    const other = await FilesHome.start()
    try {
      const { code, stderr } = await other.sync(world.root())
      assert.equal(code, 2)
      assert.match(stderr, /has a marker already/)
    } finally {
      await other.close()
    }
  })

  test('to guess between accounts', async () => {
    await world.close()
    world = await FilesHome.start({ drives: [{ account: ANN }, { account: BOB }] })
    const { code, stderr } = await world.sync(world.root())
    assert.equal(code, 2)
    assert.match(stderr, /several OneDrive accounts.*\n.*ann@example\.com, bob@example\.com/)
    assert.equal((await world.sync(world.root(), '--account', BOB)).code, 0)
  })

  test('a home without any account', async () => {
    const { code, stderr } = await world.run('--home', join(world.home, 'none'), 'files', 'sync')
    assert.equal(code, 2)
    assert.match(stderr, /No OneDrive account is connected/)
  })
})

describe('files sync --dry-run', () => {
  test('of a new folder prints the plan, and makes neither folder, marker nor row', async () => {
    world.there.write('a/there.txt', 'there')
    world.there.write('both.txt', 'same')
    const nowhere = await world.sync(world.root('Nowhere'), '--dry-run')
    assert.equal(nowhere.code, 0, nowhere.stderr)
    assert.deepEqual(readdirSync(world.place), [])
    world.write('here.txt', 'here')
    world.write('both.txt', 'same')
    const before = world.thereNow()
    const { code, stdout } = await world.sync(world.root(), '--dry-run')
    assert.equal(code, 0)
    assert.match(stdout, /^upload\there\.txt\t4 B\tnew here\tEF13$/m)
    assert.match(stdout, /^download\ta\/there\.txt\t5 B\tnew in OneDrive\tEF14$/m)
    assert.match(stdout, /^compare\tboth\.txt\t\tmade on both sides, perhaps the same\tEF11$/m)
    assert.match(stdout, /Docs: would upload 1 \(4 B\), download 1 \(5 B\), do 2 other things\. Nothing was/)
    assert.deepEqual(readdirSync(world.root()).sort(), ['both.txt', 'here.txt'])
    assert.deepEqual(world.thereNow(), before)
    assert.deepEqual(await world.stored(), { rows: [], open: [], local: [], jobs: 0 })
  })

  test('of a known folder tells what a sync then does, and leaves everything as it is', async () => {
    for (const name of ['edit', 'gone', 'both', 'stay']) world.there.write(`${name}.txt`, name)
    await world.firstSync()
    const before = await world.stored()
    world.write('edit.txt', 'edited here')
    world.there.delete('gone.txt')
    world.write('both.txt', 'mine')
    world.there.edit('both.txt', 'theirs')
    const remote = world.thereNow()
    const plan = await world.json<{ type: string; steps: { verb: string; path: string; row: string }[] }>(
      ...['files', 'sync', '--dry-run'],
    )
    assert.equal(plan.type, 'plan')
    assert.deepEqual(plan.steps.map(({ verb, path, row }) => `${verb} ${path} ${row}`).sort(), [
      'conflict both.txt EF5',
      'delete-local gone.txt EF8',
      'upload edit.txt EF3',
    ])
    assert.deepEqual(await world.stored(), before)
    assert.deepEqual(world.thereNow(), remote)
    assert.deepEqual([world.read('both.txt'), world.has('gone.txt')], ['mine', true])
    await world.sync()
    assert.deepEqual([world.read('both.txt'), world.has('gone.txt')], ['theirs', false])
  })
})

describe('many deletions at once', () => {
  beforeEach(async () => {
    for (let n = 0; n < 12; n++) world.there.write(`many/${n}.txt`, `number ${n}`)
    await world.firstSync()
    rmSync(join(world.root(), 'many'), { recursive: true })
  })

  /** As somebody at a terminal would answer. */
  async function syncAsked(answer: string): Promise<{ code: number; said: string; questions: string[] }> {
    const questions: string[] = []
    let said = ''
    const stream = { write: (text: string | Uint8Array) => (said += String(text)) }
    const context = createContext({ env: world.env, output: new Output(stream, stream) })
    const asking: Asking = {
      isTerminal: true,
      lines: () => ({
        next: async (question) => {
          questions.push(question)
          return answer
        },
        close: () => {},
      }),
    }
    await syncFiles(context, 'Docs', {}, asking)
    return { code: context.exitCode, said, questions }
  }

  test('wait for a yes: without a terminal it says how, with numbers and examples, and ends with 3', async () => {
    const { code, stdout, stderr } = await world.sync()
    assert.equal(code, 3)
    assert.match(stdout, /^Docs: waiting for you/)
    assert.match(stderr, /13 things are gone from .*Docs, and would be deleted in OneDrive/)
    assert.match(stderr, /^ {4}many\/0\.txt$/m)
    assert.match(stderr, /tidemark files sync Docs --force-deletes/)
    assert.equal(Object.keys(world.thereNow()).length, 13)
    const status = await world.run('files', 'status')
    assert.equal(status.code, 3)
    assert.match(status.stdout, /^Docs: needs you\n(?:.*\n)*.*13 at once wait for your yes/)
  })

  test('come back when the folder is begun anew as the hint says', async () => {
    const [, said] = /^ +(tidemark files remove .*)$/m.exec((await world.sync()).stderr)!
    for (const command of said!.split(' && ')) {
      const words = command.split(' ').map((word) => word.replaceAll("'", ''))
      const { code, stderr } = await world.run(...words.slice(1))
      assert.equal(code, 0, stderr)
    }
    assert.equal(world.read('many/0.txt'), world.thereNow()['many/0.txt'])
    assert.equal(Object.keys(world.thereNow()).length, 13)
  })

  test('have no such hint where that would bring over what is left out', async () => {
    world.write('secret.key', 'secret')
    assert.equal((await world.run('files', 'set', 'Docs', '--skip', '*.key')).code, 0)
    // A change of the filter brings back what is missing: it is deleted once more.
    await world.sync()
    rmSync(join(world.root(), 'many'), { recursive: true })
    const { stderr } = await world.sync()
    assert.match(stderr, /If not, put them back\.$/m)
    assert.doesNotMatch(stderr, /files remove/)
    assert.equal(world.there.has('secret.key'), false)
  })

  test('are done once somebody says yes, and the yes does not hold for later ones', async () => {
    const { code, questions } = await syncAsked('y')
    assert.deepEqual(questions, ['Delete these 13? [y/N] '])
    assert.equal(code, 0)
    assert.deepEqual(world.thereNow(), {})
    assert.equal(world.drive.dump().recycleBin.length >= 12, true)
    for (let n = 0; n < 12; n++) world.write(`more/${n}.txt`, `more ${n}`)
    assert.equal((await world.sync()).code, 0)
    rmSync(join(world.root(), 'more'), { recursive: true })
    assert.equal((await world.sync()).code, 3)
  })

  test('are not done when the answer is anything else', async () => {
    const { code } = await syncAsked('')
    assert.equal(code, 3)
    assert.equal(Object.keys(world.thereNow()).length, 13)
  })

  test('are done with --force-deletes', async () => {
    const { code, stderr } = await world.sync('--force-deletes')
    assert.equal(code, 0, stderr)
    assert.deepEqual(world.thereNow(), {})
  })

  test('still wait when something else was planned since', async () => {
    await world.sync()
    world.write('another.txt', 'x')
    const { code, stderr } = await world.sync()
    assert.equal(code, 3)
    assert.match(stderr, /--force-deletes/)
    assert.equal(world.there.has('another.txt'), true)
  })
})

describe('a OneDrive that is full', () => {
  test('keeps uploads waiting and nothing else; the sync ends and says so, and later goes on by itself', async () => {
    world.there.write('theirs.txt', 'from there')
    await world.firstSync()
    world.drive.state.quotaBytes = world.drive.state.usedBytes + 5
    world.write('large.txt', 'x'.repeat(1_000))
    world.write('small.txt', 'tiny')
    world.there.edit('theirs.txt', 'edited')
    const full = await world.sync()
    assert.equal(full.code, 1)
    assert.match(
      full.stderr,
      /The uploads of Docs cannot go on: The OneDrive is full\n {2}Delete something there, /,
    )
    assert.equal(world.read('theirs.txt'), 'edited')
    assert.deepEqual([world.there.has('small.txt'), world.there.has('large.txt')], [true, false])
    const status = await world.run('files', 'status')
    assert.equal(status.code, 3)
    assert.match(status.stdout, /^Docs: needs you$/m)
    assert.match(
      status.stdout,
      /^ {2}left to do 1 change\n {2}waiting {4}The OneDrive is full\n +Delete something/m,
    )
    world.drive.state.quotaBytes = 1_000_000
    const done = await world.sync()
    assert.equal(done.code, 0, done.stderr)
    assert.equal(world.there.has('large.txt'), true)
  })
})

test('a OneDrive that is out of reach is waited for as long as files.patience_minutes says', async () => {
  await world.firstSync()
  world.write('a.txt', 'a')
  const methods = ['graph.content.put', 'graph.items.get']
  world.sim.faults.set({ rules: [{ do: 'error', status: 500, methods }] })
  Object.assign(world.env, { TIDEMARK_FILES_PATIENCE_MINUTES: '0', TIDEMARK_MAIL_PATIENCE_MINUTES: '1440' })
  const { code, stderr } = await world.sync()
  assert.equal(code, 1)
  assert.match(stderr, /^Docs cannot go on: OneDrive had a problem of its own/m)
  world.sim.faults.clear()
  assert.equal((await world.sync()).code, 0)
})
