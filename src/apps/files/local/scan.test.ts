import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { createFilter, type FilterSettings, filterSchema } from '../filter.ts'
import type { LocalObservation } from '../store/contract.ts'
import { ASIDE, type LocalRow } from '../trees.ts'
import { contentProblem, type FileCalls, fileCalls, listFolder, plainReader } from './listing.ts'
import { createRoot, type Root } from './root.ts'
import { Scan } from './scan.ts'
import type { ScanOptions } from './scan-options.ts'
import { lookAt } from './stat.ts'
import { TreeInMemory } from './tree-in-memory.suite.ts'

const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A root with its tree, and short words for what people do in it. */
class TestRoot {
  readonly root: Root
  readonly tree: TreeInMemory
  settings: Partial<FilterSettings> = {}

  constructor(root: Root) {
    this.root = root
    this.tree = new TreeInMemory(root.look)
  }

  path(path: string): string {
    return join(this.root.path, path)
  }

  write(path: string, text: string): void {
    mkdirSync(join(this.path(path), '..'), { recursive: true })
    writeFileSync(this.path(path), text)
  }

  move(from: string, to: string): void {
    mkdirSync(join(this.path(to), '..'), { recursive: true })
    renameSync(this.path(from), this.path(to))
  }

  remove(path: string): void {
    rmSync(this.path(path), { recursive: true })
  }

  scanner(options: Partial<ScanOptions> = {}): Scan {
    const filter = createFilter(filterSchema.parse(this.settings), undefined)
    return new Scan({ root: this.root, tree: this.tree, filter, ...options })
  }

  /** Scans, writes what was seen, and gives it in short. */
  async scan(options: Partial<ScanOptions> = {}): Promise<LocalObservation[]> {
    const all: LocalObservation[] = []
    for await (const batch of this.scanner(options).batches()) {
      assert.ok(batch.length > 0 && batch.length <= 1_000)
      this.tree.see(batch)
      all.push(...batch)
    }
    return all
  }

  /** What a scan would tell, with the ids of new rows counted from here. */
  async told(hasDigests: boolean): Promise<LocalObservation[]> {
    const first = await this.tree.takeIds(0)
    const fromFirst = (id: number): number => (id >= first ? id - first + 1_000_000 : id)
    this.tree.hasDigests = hasDigests
    const all: LocalObservation[] = []
    for await (const batch of this.scanner().batches()) all.push(...batch)
    return all.map((one) => ({
      ...one,
      id: fromFirst(one.id),
      ...(one.parentId !== undefined && { parentId: fromFirst(one.parentId) }),
    }))
  }

  async id(path: string): Promise<number> {
    const row = await this.tree.at(path.split('/'))
    assert.ok(row, `${path} is in the tree`)
    return row.id
  }

  ids<const Paths extends readonly string[]>(...paths: Paths): Promise<{ [at in keyof Paths]: number }> {
    return Promise.all(paths.map((path) => this.id(path))) as Promise<{ [at in keyof Paths]: number }>
  }

  /** Path, type, inode of everything in the tree that is there. */
  async known(): Promise<string[]> {
    const lines: string[] = []
    for (const row of this.tree.rows.values()) {
      if (row.isMissing || row.parentId === null) continue
      const path = await this.tree.path(row.id)
      lines.push(lineOf((path ?? ['?']).join('/'), row))
    }
    return lines.sort()
  }

  onDisk(folder = ''): string[] {
    const lines: string[] = []
    for (const name of readdirSync(this.path(folder))) {
      if (name === '.tidemark') continue
      const path = folder === '' ? name : `${folder}/${name}`
      const look = lookAt(this.path(path))!
      lines.push(lineOf(path, { ...look, type: look.type === 'link' ? 'other' : look.type }))
      if (look.type === 'folder') lines.push(...this.onDisk(path))
    }
    return folder === '' ? lines.sort() : lines
  }

  async assertEqual(): Promise<void> {
    assert.deepEqual(await this.known(), this.onDisk())
  }
}

/** A folder's own time says nothing. */
function lineOf(
  path: string,
  { type, ino, mtimeNs, size }: Pick<LocalRow, 'type' | 'ino' | 'mtimeNs' | 'size'>,
) {
  return type === 'folder' ? `${path} folder ${ino}` : `${path} ${type} ${ino} ${mtimeNs} ${size}`
}

async function testRoot(): Promise<TestRoot> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-scan-')))
  folders.push(folder)
  const root = await createRoot(join(folder, 'root'), {
    markerId: 'm1',
    drive: 'home',
    createdAt: '2026-11-16T00:00:00Z',
  })
  return new TestRoot(root)
}

/** One that has these files and folders (`a/`), each file with its path as its content, and has been looked at. */
async function scanned(...paths: string[]): Promise<TestRoot> {
  const d = await testRoot()
  for (const path of paths) {
    if (path.endsWith('/')) mkdirSync(d.path(path), { recursive: true })
    else d.write(path, path)
  }
  await d.scan()
  return d
}

const seenOf = (observations: readonly LocalObservation[]): string[] =>
  observations.map((one) => `${one.seen} ${'name' in one ? (one.name ?? one.id) : one.id}`).sort()

describe('a scan of everything', () => {
  test('finds files and folders of any depth, and nothing the second time', async () => {
    const d = await testRoot()
    d.write('a.txt', 'a')
    d.write('docs/deep/b.txt', 'b')
    d.write('docs/empty.txt', '')
    mkdirSync(d.path('void'))
    const seen = await d.scan()
    assert.equal(seen.length, 6)
    assert.ok(seen.every(({ seen }) => seen === 'new'))
    await d.assertEqual()
    assert.deepEqual(await d.scan(), [])
  })

  test('tells an edit by the same row', async () => {
    const d = await scanned('a.txt')
    const id = await d.id('a.txt')
    d.write('a.txt', 'longer')
    assert.deepEqual(await d.scan(), [{ seen: 'changed', id, stat: statOnly(d.path('a.txt')) }])
  })

  test('an editor that saves by renaming keeps the row of the path', async () => {
    const d = await scanned('a.txt')
    const id = await d.id('a.txt')
    d.write('new', 'b')
    renameSync(d.path('a.txt'), d.path('a.txt.bak'))
    renameSync(d.path('new'), d.path('a.txt'))
    assert.deepEqual(seenOf(await d.scan()), [`changed ${id}`, 'new a.txt.bak'])
    assert.equal(await d.id('a.txt'), id)
    await d.assertEqual()
  })

  test('an editor that keeps its backup in another folder keeps the row of the path', async () => {
    for (const [backup, name] of [
      ['0-first/a.bak', 'read before'],
      ['z-last/a.bak', 'read after'],
    ] as const) {
      const d = await scanned('m/a.txt')
      const id = await d.id('m/a.txt')
      d.move('m/a.txt', backup)
      d.write('m/a.txt', 'b')
      await d.scan()
      assert.equal(await d.id('m/a.txt'), id, name)
      await d.assertEqual()
    }
  })

  test('a moved file keeps its row, whichever folder is read first', async () => {
    for (const [from, to] of [
      ['a/f', 'b/g'],
      ['b/f', 'a/g'],
      ['f', 'new/f'],
      ['a/b/f', 'f'],
    ] as const) {
      const d = await testRoot()
      d.write(from, 'x')
      mkdirSync(d.path('b'), { recursive: true })
      await d.scan()
      const id = await d.id(from)
      d.move(from, to)
      const seen = await d.scan()
      assert.equal(await d.id(to), id)
      assert.ok(!seen.some((one) => one.seen === 'missing'))
      await d.assertEqual()
    }
  })

  test('a moved folder is one observation, whatever it holds', async () => {
    const d = await testRoot()
    for (let i = 0; i < 30; i++) d.write(`a/deep/${i}.txt`, 'x')
    mkdirSync(d.path('b'))
    await d.scan()
    const [id, parentId] = await d.ids('a/deep', 'b')
    d.move('a/deep', 'b/deeper')
    const seen = await d.scan()
    assert.equal(seen.length, 1)
    assert.deepEqual([seen[0]!.seen, 'id' in seen[0]! && seen[0].id], ['changed', id])
    assert.equal((await d.tree.at(['b', 'deeper']))?.parentId, parentId)
    await d.assertEqual()
  })

  test('a moved folder whose files changed and left tells those as well', async () => {
    const d = await testRoot()
    for (const name of ['keep', 'edit', 'leave']) d.write(`a/${name}`, name)
    await d.scan()
    const ids = await d.ids('a', 'a/keep', 'a/edit', 'a/leave')
    d.move('a', 'z')
    d.write('z/edit', 'edited')
    d.move('z/leave', '0/left')
    await d.scan()
    assert.deepEqual(await d.ids('z', 'z/keep', 'z/edit', '0/left'), ids)
    await d.assertEqual()
  })

  test('two folders that swap their names keep their rows', async () => {
    const d = await scanned('a/in-a', 'b/in-b')
    const [a, b] = await d.ids('a', 'b')
    d.move('a', 'tmp')
    d.move('b', 'a')
    d.move('tmp', 'b')
    const seen = await d.scan()
    assert.equal(await d.id('b'), a)
    assert.equal(await d.id('a'), b)
    assert.ok(seen.length <= 3, 'one of them needs a name in between')
    await d.assertEqual()
  })

  test('folders that go round in a circle across other folders keep their rows', async () => {
    const d = await testRoot()
    for (const path of ['x/a', 'y/b', 'z/c']) d.write(`${path}/f`, path)
    await d.scan()
    const ids = await d.ids('x/a', 'y/b', 'z/c')
    d.move('x/a', 'tmp')
    d.move('z/c', 'x/a')
    d.move('y/b', 'z/c')
    d.move('tmp', 'y/b')
    await d.scan()
    assert.deepEqual(await d.ids('y/b', 'z/c', 'x/a'), ids)
    await d.assertEqual()
    assert.deepEqual(await d.scan(), [])
  })

  test('a folder that changes places with the one above it keeps its row', async () => {
    const d = await scanned('a/b/f')
    const [a, b] = await d.ids('a', 'a/b')
    d.move('a/b', 'b')
    d.move('a', 'b/a')
    await d.scan()
    assert.deepEqual(await d.ids('b', 'b/a'), [b, a])
    await d.assertEqual()
  })

  test('a folder that moved away and was made anew is told as moved, and the new one as new', async () => {
    const d = await scanned('a/f')
    const id = await d.id('a')
    d.move('a', 'z/old')
    d.write('a/g', 'y')
    await d.scan()
    assert.equal(await d.id('z/old'), id)
    await d.assertEqual()
  })

  test('a folder that was replaced by an equal one goes on with its row and those of its files', async () => {
    const d = await scanned('a/f')
    const ids = await d.ids('a', 'a/f')
    d.write('copy/f', 'a/f')
    d.remove('a')
    d.move('copy', 'a')
    await d.scan()
    assert.deepEqual(await d.ids('a', 'a/f'), ids)
    await d.assertEqual()
  })

  test('a folder that takes the place of a deleted one keeps its own row', async () => {
    const d = await scanned('a/f', 'b/g')
    const [a, b] = await d.ids('a', 'b')
    d.remove('a')
    d.move('b', 'a')
    const seen = await d.scan()
    assert.equal(await d.id('a'), b)
    assert.ok(d.tree.rows.get(a)!.isMissing)
    assert.equal(seen.at(-1)?.seen, 'missing')
    await d.assertEqual()
  })

  test('a row that had to make room in a scan that stopped is missing in the next, whatever the filter', async () => {
    const d = await testRoot()
    d.settings = { skip: ['a/*'] }
    d.write('a/f', 'x')
    d.write('b/g', 'y')
    await d.scan()
    const [a, b] = await d.ids('a', 'b')
    d.remove('a')
    d.move('b', 'a')
    for await (const batch of d.scanner({ batchMax: 1 }).batches()) {
      d.tree.see(batch)
      break
    }
    assert.match(d.tree.rows.get(a)!.name, /\//)
    d.write(`a/${a}`, 'of the same path as that name')
    d.settings = {}
    await d.scan()
    assert.equal(await d.id('a'), b)
    assert.ok(d.tree.rows.get(a)!.isMissing)
    await d.assertEqual()
  })

  test('a hard link is a file of its own', async () => {
    const d = await scanned('a/f')
    const id = await d.id('a/f')
    linkSync(d.path('a/f'), d.path('a/second'))
    linkSync(d.path('a/f'), d.path('0'))
    // The links have changed its ctime, and so it is read once more.
    assert.deepEqual(seenOf(await d.scan()), [`changed ${id}`, 'new 0', 'new second'])
    assert.equal(await d.id('a/f'), id)
    await d.assertEqual()
    assert.deepEqual(await d.scan(), [])
  })

  test('a file that becomes a folder, and back, is a missing and a new one', async () => {
    const d = await scanned('a', 'b/f')
    d.remove('a')
    d.write('a/inner', 'y')
    d.remove('b')
    d.write('b', 'z')
    assert.deepEqual(seenOf(await d.scan()), ['missing a', 'missing b', 'new a', 'new b', 'new inner'])
    await d.assertEqual()
  })

  test('a file that moves into the folder that took its name keeps its row', async () => {
    const d = await scanned('notes')
    const id = await d.id('notes')
    d.move('notes', 'tmp')
    d.move('tmp', 'notes/today')
    await d.scan()
    assert.equal(await d.id('notes/today'), id)
    await d.assertEqual()
  })

  test('a rename of case alone, or of the form of an accent, keeps the row', async () => {
    const d = await scanned('Report.txt', 'Caf\u00e9/f')
    const ids = await d.ids('Report.txt', 'Caf\u00e9')
    d.move('Report.txt', 'report.txt')
    d.move('Caf\u00e9', 'Cafe\u0301')
    const seen = await d.scan()
    assert.deepEqual(seenOf(seen), ['changed Cafe\u0301', 'changed report.txt'])
    assert.deepEqual(await d.ids('report.txt', 'Cafe\u0301'), ids)
  })

  test('names with a newline, quotes or a leading dash are names', async () => {
    const d = await testRoot()
    for (const name of ['two\nlines', '"quoted"', '-rf', 'a\\b', '$(x)', '\u202egpj.exe']) d.write(name, 'x')
    await d.scan()
    await d.assertEqual()
  })

  test('a name that is no text is reported, and nothing else', async () => {
    const d = await testRoot()
    d.write('ok', 'x')
    d.write('really \ufffd', 'x')
    writeFileSync(Buffer.concat([Buffer.from(`${d.root.path}/bad-`), Buffer.from([0xff, 0xfe])]), 'x')
    const scan = d.scanner()
    for await (const batch of scan.batches()) d.tree.see(batch)
    assert.deepEqual(
      seenOf([...d.tree.rows.values()].map((row) => ({ ...row, seen: 'missing' as const, parentId: 0 }))),
      ['missing ', 'missing ok', 'missing really \ufffd'],
    )
    assert.deepEqual(scan.report.unreadable, [
      { path: 'bad-\ufffd\ufffd', reason: 'its name is not valid text' },
    ])
  })

  test('a folder of thousands of files is told in batches, and all of it goes missing in as many', async () => {
    // Two full batches, and a part.
    const FILES = 2_500
    const d = await testRoot()
    mkdirSync(d.path('big'))
    for (let i = 0; i < FILES; i++) writeFileSync(d.path(`big/${i}`), '')
    assert.equal((await d.scan()).length, FILES + 1)
    assert.deepEqual(await d.scan(), [])
    for (const name of readdirSync(d.path('big'))) unlinkSync(d.path(`big/${name}`))
    const seen = await d.scan()
    assert.equal(seen.length, FILES)
    assert.ok(seen.every((one) => one.seen === 'missing'))
    await d.assertEqual()
  })

  test('special files and links are `other`; links out of the root are never followed', async () => {
    const d = await testRoot()
    writeFileSync(join(d.root.path, '..', 'outside'), 'secret')
    d.write('in/f', 'x')
    symlinkSync('../outside', d.path('out'))
    symlinkSync('in', d.path('to-in'))
    symlinkSync('nowhere', d.path('dangling'))
    for (const followLinks of [false, true]) {
      await d.scan({ followLinks })
      assert.equal((await d.tree.at(['out']))?.type, 'other')
      assert.equal((await d.tree.at(['dangling']))?.type, 'other')
      assert.equal((await d.tree.at(['to-in']))?.type, followLinks ? 'folder' : 'other')
    }
    assert.equal((await d.tree.at(['to-in', 'f']))?.type, 'file')
    assert.deepEqual(await d.scan({ followLinks: true }), [])
  })

  test('followed links that lead in a circle end', async () => {
    const d = await testRoot()
    d.write('a/f', 'x')
    d.write('b/f', 'x')
    symlinkSync('..', d.path('a/up'))
    symlinkSync('.', d.path('a/self'))
    symlinkSync('../b', d.path('a/to-b'))
    symlinkSync('../a', d.path('b/to-a'))
    symlinkSync('.tidemark', d.path('own'))
    await d.scan({ followLinks: true })
    assert.equal((await d.tree.at(['a', 'up']))?.type, 'other')
    assert.equal((await d.tree.at(['a', 'self']))?.type, 'other')
    assert.equal((await d.tree.at(['own']))?.type, 'other')
    assert.equal((await d.tree.at(['a', 'to-b', 'to-a']))?.type, 'other')
    assert.equal((await d.tree.at(['a', 'to-b', 'f']))?.type, 'file')
    assert.deepEqual(await d.scan({ followLinks: true }), [])
  })
})

describe('something that cannot be synced in the place of a known thing', () => {
  const hide = {
    link: (path: string) => symlinkSync('/nowhere', path),
    pipe: (path: string) => void execFileSync('mkfifo', [path]),
  }
  for (const [what, put] of Object.entries(hide)) {
    test(`a ${what} leaves it unknown, with all that it holds, until it is back`, async () => {
      const d = await scanned('photos/deep/a.jpg', 'letter')
      const ids = await d.ids('photos', 'letter')
      renameSync(d.path('photos'), `${d.root.path}-photos`)
      renameSync(d.path('letter'), `${d.root.path}-letter`)
      put(d.path('photos'))
      put(d.path('letter'))
      assert.deepEqual(
        (await d.scan()).map((one) => [one.seen, one.id]).sort(),
        ids.map((id) => ['changed', id]).sort(),
      )
      for (const id of ids) assert.match(d.tree.rows.get(id)!.unreadable!, /^aside-/)
      assert.ok([...d.tree.rows.values()].every((row) => !row.isMissing))
      assert.deepEqual(await d.scan(), [])
      for (const name of ['photos', 'letter']) {
        unlinkSync(d.path(name))
        renameSync(`${d.root.path}-${name}`, d.path(name))
      }
      await d.scan()
      assert.ok([...d.tree.rows.values()].every((row) => row.unreadable === null && !row.isMissing))
      await d.assertEqual()
    })
  }

  test('a folder that was moved within the root and left a link behind is moved, in one look or in two', async () => {
    for (const isOneLook of [true, false]) {
      const d = await scanned('photos/a.jpg', 'archive/')
      const ids = await d.ids('photos', 'photos/a.jpg')
      renameSync(d.path('photos'), d.path('archive/photos'))
      symlinkSync('archive/photos', d.path('photos'))
      if (!isOneLook) {
        await d.scan({ folders: [[]] })
        assert.match(d.tree.rows.get(ids[0]!)!.unreadable!, /^aside-/)
      }
      await d.scan()
      await d.scan()
      assert.deepEqual(await d.ids('archive/photos', 'archive/photos/a.jpg'), ids)
      await d.assertEqual()
    }
  })

  test('links that are not followed any more leave what they led to unknown', async () => {
    const d = await testRoot()
    d.write('real/a', 'x')
    symlinkSync('real', d.path('linked'))
    symlinkSync('real/a', d.path('file'))
    await d.scan({ followLinks: true })
    await d.scan()
    for (const name of ['linked', 'file'])
      assert.match((await d.tree.at([name]))!.unreadable!, /^aside-link$/)
    assert.ok([...d.tree.rows.values()].every((row) => !row.isMissing))
    await d.scan({ followLinks: true })
    assert.ok([...d.tree.rows.values()].every((row) => row.unreadable === null && !row.isMissing))
  })

  test('a name that is left out, or that is no text, leaves what was renamed to it unknown', async () => {
    const d = await scanned('a', 'b', 'c/f')
    const ids = await d.ids('a', 'b', 'c')
    d.move('a', 'a.tmp')
    const bad = Buffer.concat([Buffer.from(`${d.root.path}/bad-`), Buffer.from([0xff])])
    renameSync(d.path('b'), bad)
    d.move('c', '~c')
    await d.scan()
    const reasons = ids.map((id) => d.tree.rows.get(id)!.unreadable)
    assert.deepEqual(reasons, [ASIDE.renamed, ASIDE.illegible, ASIDE.renamed])
    assert.ok([...d.tree.rows.values()].every((row) => !row.isMissing))
    assert.deepEqual(await d.scan(), [])
    assert.deepEqual(await d.scan({ folders: [[]] }), [])
    d.move('a.tmp', 'a')
    renameSync(bad, d.path('b2'))
    d.move('~c', 'c2')
    await d.scan()
    assert.deepEqual(await d.ids('a', 'b2', 'c2'), ids)
    await d.assertEqual()
  })

  test('a folder is not missing while something of it, however deep, is in a folder that is left out', async () => {
    const d = await testRoot()
    d.settings = { skip: ['node_modules'] }
    for (const name of ['docs/f', 'docs/g', 'a/b/c/f', 'a/b/moves/x', 'gone/f']) d.write(name, name)
    await d.scan()
    const [docs, a, gone, moves] = await d.ids('docs', 'a', 'gone', 'a/b/moves')
    d.move('docs/f', 'node_modules/f')
    d.move('a/b/c/f', 'node_modules/deep/f')
    d.move('a/b/moves', 'moved')
    for (const name of ['docs', 'a', 'gone']) d.remove(name)
    await d.scan()
    assert.deepEqual(
      [docs, a, gone].map((id) => d.tree.rows.get(id)).map((row) => row!.isMissing || row!.unreadable),
      [ASIDE.emptied, ASIDE.emptied, true],
    )
    assert.equal(await d.id('moved'), moves)
    assert.deepEqual(await d.scan(), [])
    assert.deepEqual(await d.scan({ folders: [[]] }), [])
    const f = await d.id('docs/f')
    d.move('node_modules/f', 'f')
    d.remove('node_modules')
    await d.scan()
    assert.equal(await d.id('f'), f)
    await d.assertEqual()
  })

  test('a folder whose place another has taken is missing for a reason while something of it is left out', async () => {
    const d = await scanned('a/f', 'b/f', 'c/f', 'other/x')
    const ids = await d.ids('a', 'b', 'c')
    d.move('a/f', 'old.tmp/a')
    d.move('b', 'old.tmp/b')
    for (const name of ['a', 'c']) d.remove(name)
    d.move('other/x', 'a')
    d.move('other', 'b')
    d.write('c', 'a file')
    await d.scan()
    const rows = ids.map((id) => d.tree.rows.get(id)!)
    assert.deepEqual(
      rows.map(({ isMissing, unreadable }) => [isMissing, unreadable]),
      [
        [true, ASIDE.emptied],
        [true, ASIDE.moved],
        [true, null],
      ],
    )
    assert.deepEqual(await d.scan(), [])
  })

  test('what is not found before too many names were looked at is missing for a reason', async () => {
    const d = await testRoot()
    for (const name of ['f', 'docs/g', 'stays']) d.write(name, name)
    for (let n = 0; n < 20; n++) d.write(`old.tmp/${n}/x`, 'x')
    await d.scan()
    const ids = await d.ids('f', 'docs')
    d.move('f', 'old.tmp/0/f')
    d.move('docs/g', 'old.tmp/0/g')
    d.remove('docs')
    await d.scan({ leftOutNamesMax: 25 })
    for (const id of ids) {
      const { isMissing, unreadable } = d.tree.rows.get(id)!
      assert.ok(isMissing)
      assert.match(unreadable ?? '', /too many names/)
    }
    d.remove('stays')
    const stays = await d.id('stays')
    await d.scan({ leftOutNamesMax: 1_000 })
    assert.deepEqual([d.tree.rows.get(stays)!.isMissing, d.tree.rows.get(stays)!.unreadable], [true, null])
  })

  test('what is not found while a folder that is left out cannot be read is missing for a reason', async () => {
    const d = await scanned('f', 'stays', 'old.tmp/x', 'later')
    const [f, later] = await d.ids('f', 'later')
    d.move('f', 'old.tmp/f')
    const reader = failing(d, { 'old.tmp': { call: 'names', code: 'EACCES' } })
    await d.scan({ reader })
    assert.ok(d.tree.rows.get(f)!.isMissing)
    assert.match(d.tree.rows.get(f)!.unreadable ?? '', /cannot be read: old\.tmp$/)
    d.remove('later')
    await d.scan()
    assert.deepEqual([d.tree.rows.get(later)!.isMissing, d.tree.rows.get(later)!.unreadable], [true, null])
  })

  test('a search in folders that are left out lets others have their turn, and ends when it is told to', async () => {
    const d = await scanned('f')
    for (let n = 0; n < 6_000; n++) d.write(`old.tmp/${n % 60}/${n}`, '')
    d.remove('f')
    const stop = new AbortController()
    let lists = 0
    const reader = {
      ...plainReader,
      list: (...args: Parameters<typeof plainReader.list>) => {
        lists += 1
        if (lists === 5) setImmediate(() => stop.abort())
        return plainReader.list(...args)
      },
    }
    await assert.rejects(d.scan({ reader, signal: stop.signal }), { name: 'AbortError' })
    assert.ok(lists < 40, `${lists} folders`)
  })

  test('something that is left out, or cannot be read, does not make another type of thing missing', async () => {
    const d = await scanned('build', 'notes/n')
    const ids = await d.ids('build', 'notes')
    d.settings = { skip: ['build/'] }
    d.remove('build')
    d.write('build/out', 'x')
    d.remove('notes')
    d.write('notes', 'for somebody else')
    await d.scan({ reader: failing(d, { notes: { call: 'access', code: 'EACCES' } }) })
    const reasons = ids.map((id) => d.tree.rows.get(id)!.unreadable)
    assert.equal(reasons[0], ASIDE.leftOut)
    assert.match(reasons[1]!, /may not read/)
    assert.ok([...d.tree.rows.values()].every((row) => !row.isMissing))
  })
})

function statOnly(path: string) {
  const { type: _, ...stat } = lookAt(path)!
  return stat
}

/** A reader whose calls fail for some paths. */
function failing(d: TestRoot, fails: Record<string, { call: keyof FileCalls; code: string }>) {
  const wrap =
    <Value>(call: keyof FileCalls, real: (path: string) => Value) =>
    (path: string): Value => {
      const fail = fails[path.slice(d.root.path.length + 1)]
      if (fail?.call === call) throw Object.assign(new Error(fail.code), { code: fail.code })
      return real(path)
    }
  const calls: FileCalls = {
    names: wrap('names', fileCalls.names),
    rawNames: wrap('rawNames', fileCalls.rawNames),
    lstat: wrap('lstat', fileCalls.lstat),
    access: wrap('access', fileCalls.access),
  }
  return {
    list: (path: string) => listFolder(path, calls),
    contentProblem: (path: string) => contentProblem(path, calls),
  }
}

describe('unknown is not absent', () => {
  test('a folder that cannot be read is told, and nothing in it is missing; then it is as before', async () => {
    const d = await scanned('a/f', 'a/deep/g', 'b')
    const id = await d.id('a')
    d.remove('b')
    const reader = failing(d, { a: { call: 'names', code: 'EACCES' } })
    const seen = await d.scan({ reader })
    assert.deepEqual(seenOf(seen), [`changed ${id}`, 'missing b'])
    assert.match(d.tree.rows.get(id)!.unreadable!, /may not read/)
    assert.deepEqual(await d.scan({ reader }), [], 'told once')
    assert.deepEqual(await d.scan(), [{ seen: 'changed', id, unreadable: null }])
    await d.assertEqual()
  })

  test('a name that cannot be looked at, or a file whose content cannot be read, is told and kept', async () => {
    const d = await scanned('a', 'b')
    const [a, b] = await d.ids('a', 'b')
    d.write('b', 'changed')
    d.write('c', 'new')
    const reader = failing(d, {
      a: { call: 'lstat', code: 'EIO' },
      b: { call: 'access', code: 'EACCES' },
      c: { call: 'access', code: 'EACCES' },
    })
    await d.scan({ reader })
    assert.match(d.tree.rows.get(a)!.unreadable!, /the disk/)
    assert.match(d.tree.rows.get(b)!.unreadable!, /may not read/)
    assert.match((await d.tree.at(['c']))!.unreadable!, /may not read/)
    assert.deepEqual(await d.scan({ reader }), [])
    assert.equal((await d.scan()).length, 3)
    assert.ok([...d.tree.rows.values()].every((row) => row.unreadable === null && !row.isMissing))
  })

  test('what a filter leaves out is neither missing nor entered', async () => {
    const d = await scanned('a/f', 'logs/l', 'draft')
    d.settings = { skip: ['logs', 'draft', 'late/'] }
    d.write('logs/m', 'x')
    d.write('late/n', 'x')
    d.remove('draft')
    assert.deepEqual(await d.scan(), [])
    d.settings = {}
    assert.deepEqual(seenOf(await d.scan()), ['missing draft', 'new late', 'new m', 'new n'])
  })

  test('unfinished files and our own folder are never seen', async () => {
    const d = await testRoot()
    for (const name of ['a.partial', 'b.tmp', '~lock', '.c.swp', '.tidemark/trash/x']) d.write(name, 'x')
    assert.deepEqual(await d.scan(), [])
  })

  test('a marker that vanishes during the scan keeps everything from going missing', async () => {
    const d = await testRoot()
    for (let i = 0; i < 3; i++) d.write(`f${i}`, 'x')
    d.write('sub/g', 'x')
    await d.scan()
    for (let i = 0; i < 3; i++) d.remove(`f${i}`)
    const reader = {
      ...plainReader,
      list(path: string) {
        if (path.endsWith('sub')) unlinkSync(d.path('.tidemark/root.json'))
        return listFolder(path)
      },
    }
    await assert.rejects(d.scan({ reader }), { code: 'marker-missing' })
    assert.ok([...d.tree.rows.values()].every((row) => !row.isMissing))
  })

  test('a root that is gone or another one is refused before anything is looked at', async () => {
    const d = await scanned('f')
    renameSync(d.root.path, `${d.root.path}-away`)
    await assert.rejects(d.scan(), { code: 'root-missing' })
    mkdirSync(d.root.path)
    await assert.rejects(d.scan(), { code: 'marker-missing' })
  })

  test('a folder that is replaced while it is read concludes nothing', async () => {
    const d = await scanned('a/f')
    const reader = {
      ...plainReader,
      list(path: string) {
        if (path.endsWith('/a')) {
          d.move('a', 'b')
          mkdirSync(d.path('a'))
        }
        return listFolder(path)
      },
    }
    assert.deepEqual(await d.scan({ reader }), [])
    await d.scan()
    await d.assertEqual()
    assert.ok(![...d.tree.rows.values()].some((row) => row.name === 'f' && row.isMissing))
  })

  test('a file that is back when the scan ends is not missing', async () => {
    const d = await scanned('a', 'z/f')
    d.remove('a')
    const reader = {
      ...plainReader,
      list(path: string) {
        if (path.endsWith('/z')) d.write('a', 'again')
        return listFolder(path)
      },
    }
    assert.deepEqual(await d.scan({ reader }), [])
    assert.equal((await d.scan()).length, 1)
  })

  test('another disk that is mounted over a folder leaves what is known of it alone', async () => {
    const d = await scanned('m/f')
    const id = await d.id('m')
    const calls: FileCalls = {
      ...fileCalls,
      lstat(path) {
        const stats = fileCalls.lstat(path)
        if (stats && String(path).endsWith('/m')) Object.assign(stats, { dev: stats.dev + 1n, ino: 2n })
        return stats
      },
    }
    const reader = { ...plainReader, list: (path: string) => listFolder(path, calls) }
    const seen = await d.scan({ reader })
    assert.deepEqual(seenOf(seen), [`changed ${id}`])
    assert.match(d.tree.rows.get(id)!.unreadable!, /another disk/)
    assert.deepEqual(await d.scan(), [{ seen: 'changed', id, unreadable: null }])
  })

  test('an allowed disk that is not mounted any more leaves what is known of it alone', async () => {
    const d = await testRoot()
    d.write('m/f', 'x')
    const calls: FileCalls = {
      ...fileCalls,
      lstat(path) {
        const stats = fileCalls.lstat(path)
        if (stats && path.includes('/m')) Object.assign(stats, { dev: stats.dev + 1n, ino: stats.ino + 999n })
        return stats
      },
    }
    const reader = { ...plainReader, list: (path: string) => listFolder(path, calls) }
    await d.scan({ reader, crossMounts: true })
    const id = await d.id('m')
    d.remove('m/f')
    const seen = await d.scan({ crossMounts: true })
    assert.deepEqual(seenOf(seen), [`changed ${id}`])
    assert.match(d.tree.rows.get(id)!.unreadable!, /not there/)
  })

  test('a disk that got another number is not a reason to believe in moves', async () => {
    const d = await scanned('a/f', 'b/g')
    for (const { id, ino, birthNs, mtimeNs, ctimeNs, size } of [...d.tree.rows.values()]) {
      d.tree.see([{ seen: 'changed', id, stat: { dev: '12345', ino, birthNs, mtimeNs, ctimeNs, size } }])
    }
    const before = await d.ids('a', 'a/f', 'b', 'b/g')
    const seen = await d.scan()
    assert.ok(seen.every((one) => one.seen === 'changed' && one.name === undefined))
    assert.deepEqual(await d.ids('a', 'a/f', 'b', 'b/g'), before)
    assert.deepEqual(await d.scan(), [])
  })
})

describe('a look at some folders', () => {
  test('sees what is in them, goes into new folders, and into no others', async () => {
    const d = await scanned('a/f', 'b/g', 'a/sub/h')
    d.write('a/new/deep/i', 'x')
    d.write('a/f', 'edited')
    d.write('a/sub/h', 'edited')
    d.remove('b/g')
    const id = await d.id('a/f')
    assert.deepEqual(seenOf(await d.scan({ folders: [['a']] })), [
      `changed ${id}`,
      'new deep',
      'new i',
      'new new',
    ])
    assert.equal((await d.scan({ folders: [['a', 'sub'], ['b']] })).length, 2)
    await d.assertEqual()
  })

  test('of a folder that is gone or not known yet begins at the nearest that is known', async () => {
    const d = await scanned('a/b/c/f')
    d.remove('a/b')
    d.write('a/x/y/z/f', 'x')
    assert.deepEqual(
      seenOf(
        await d.scan({
          folders: [
            ['a', 'b', 'c'],
            ['a', 'x', 'y', 'z'],
          ],
        }),
      ),
      ['missing b', 'new f', 'new x', 'new y', 'new z'],
    )
    await d.assertEqual()
  })

  test('what was moved into a folder that is left out, wherever that is, is not missing', async () => {
    const d = await testRoot()
    d.settings = { skip: ['node_modules'] }
    for (const name of ['docs/f', 'docs/g', 'docs/h', 'docs/sub/i', 'proj/deep/x']) d.write(name, name)
    await d.scan()
    const ids = await d.ids('docs/f', 'docs/g', 'docs/sub', 'docs/h')
    d.move('docs/f', 'proj/deep/node_modules/f')
    d.move('docs/g', 'proj/g.tmp')
    d.move('docs/sub/i', 'proj/node_modules/i')
    for (const name of ['docs/sub', 'docs/h']) d.remove(name)
    await d.scan({ folders: [['docs']] })
    const rows = ids.map((id) => d.tree.rows.get(id)!)
    assert.deepEqual(
      rows.map((row) => row.isMissing || row.unreadable),
      [ASIDE.moved, ASIDE.renamed, ASIDE.emptied, true],
    )
    assert.deepEqual(await d.scan({ folders: [['docs']] }), [])
    assert.deepEqual(await d.scan(), [])
  })

  test('a move between two of them is a move', async () => {
    const d = await scanned('a/sub/f', 'b/')
    const id = await d.id('a/sub')
    d.move('a/sub', 'b/sub')
    const seen = await d.scan({ folders: [['a'], ['b']] })
    assert.equal(seen.length, 1)
    assert.equal(await d.id('b/sub'), id)
  })

  test('what a look called missing and a later one finds elsewhere has its row again, with all it holds', async () => {
    const d = await scanned('a/sub/deep/f', 'b/')
    const ids = await d.ids('a/sub', 'a/sub/deep/f')
    d.move('a/sub', 'b/sub')
    await d.scan({ folders: [['a']] })
    await d.scan({ folders: [['b']] })
    assert.deepEqual(await d.ids('b/sub', 'b/sub/deep/f'), ids)
    await d.assertEqual()
  })

  test('does not go through a link, even if it leads to the very folder that is known', async () => {
    const d = await scanned('a/sub/f')
    renameSync(d.path('a'), join(d.root.path, '..', 'a'))
    symlinkSync(join(d.root.path, '..', 'a'), d.path('a'))
    d.write('../a/sub/g', 'outside')
    const seen = await d.scan({ folders: [['a', 'sub']] })
    assert.deepEqual(seenOf(seen), [`changed ${await d.id('a')}`])
    assert.equal((await d.tree.at(['a']))?.unreadable, ASIDE.link)
  })
})

describe('a folder with a digest', () => {
  async function digested(): Promise<TestRoot> {
    const d = await testRoot()
    for (const name of ['a', 'b', 'c']) d.write(`x/${name}`, name)
    d.write('x/deep/f', 'f')
    d.write('top', 'top')
    await d.scan()
    d.tree.hasDigests = true
    return d
  }

  test('is not read from the tree where nothing changed, and what is in it is looked at', async () => {
    const d = await digested()
    const asked: number[] = []
    const children = d.tree.children.bind(d.tree)
    d.tree.children = (id) => {
      asked.push(id)
      return children(id)
    }
    assert.deepEqual(await d.scan(), [])
    assert.deepEqual(asked, [])
    d.write('x/deep/f', 'other')
    assert.deepEqual(seenOf(await d.scan()), [`changed ${await d.id('x/deep/f')}`])
    assert.deepEqual(asked, await d.ids('x/deep'))
  })

  test('tells every change of what is in it', async () => {
    const changes: ((d: TestRoot) => void)[] = [
      (d) => d.write('x/a', 'longer'),
      (d) => utimesSync(d.path('x/a'), 1, 1),
      (d) => d.write('x/new', ''),
      (d) => d.remove('x/b'),
      (d) => d.move('x/b', 'x/B'),
      (d) => d.move('x/b', 'top2'),
      (d) => d.move('top', 'x/top'),
      (d) => {
        d.move('x/a', 'x/t')
        d.move('x/b', 'x/a')
        d.move('x/t', 'x/b')
      },
      (d) => {
        d.remove('x/a')
        mkdirSync(d.path('x/a'))
      },
      (d) => symlinkSync('b', d.path('x/link')),
      (d) => d.move('x/deep', 'x/deeper'),
    ]
    for (const change of changes) {
      const d = await digested()
      change(d)
      assert.deepEqual(await d.told(true), await d.told(false), change.toString())
      assert.ok((await d.scan()).length > 0, change.toString())
      await d.assertEqual()
    }
  })

  test('is read anew where links are followed from now on', async () => {
    const d = await digested()
    symlinkSync('b', d.path('x/link'))
    await d.scan()
    assert.deepEqual(await d.scan(), [])
    assert.ok((await d.scan({ followLinks: true })).length > 0)
  })

  test('in which a folder takes no part any more is not looked into', async () => {
    const d = await digested()
    d.settings = { skip: ['deep/'] }
    d.write('x/deep/g', 'g')
    assert.deepEqual(await d.scan(), [])
  })
})

describe('any history', () => {
  type Step = { do: 'write' | 'mkdir' | 'move' | 'remove' | 'link' | 'swap'; a: number; b: number }
  const NAMES = ['a', 'b', 'c', 'A']
  const step = fc.record({
    do: fc.constantFrom<Step['do']>('write', 'mkdir', 'move', 'move', 'remove', 'link', 'swap'),
    a: fc.nat(1_000),
    b: fc.nat(1_000),
  })

  /** Places up to three names deep. */
  function placeOf(number: number): string {
    const depth = 1 + (number % 3)
    const at = (level: number): string =>
      NAMES[Math.floor(number / 3 / NAMES.length ** level) % NAMES.length]!
    return Array.from({ length: depth }, (_, level) => at(level)).join('/')
  }

  /** What cannot be done on this disk is not done. */
  function tryStep(d: TestRoot, { do: verb, a, b }: Step, count: number): void {
    const [one, other] = [d.path(placeOf(a)), d.path(placeOf(b))]
    try {
      if (verb === 'write') writeFileSync(one, `${count}`)
      else if (verb === 'mkdir') mkdirSync(one, { recursive: true })
      else if (verb === 'move') renameSync(one, other)
      else if (verb === 'remove') rmSync(one, { recursive: true })
      else if (verb === 'link') linkSync(one, other)
      else {
        renameSync(one, d.path('swap'))
        try {
          renameSync(other, one)
        } finally {
          renameSync(d.path('swap'), lstatSync(other, { throwIfNoEntry: false }) ? one : other)
        }
      }
    } catch {
      // such as a move into itself
    }
  }

  test('on the disk is in the tree after a scan, with and without digests, and a second one finds nothing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { maxLength: 12 }), { maxLength: 4 }), async (rounds) => {
        const d = await testRoot()
        for (const name of NAMES) mkdirSync(d.path(name), { recursive: true })
        d.write('a/b/f', 'x')
        d.write('b/c/f', 'x')
        d.write('c/a', 'x')
        await d.scan()
        let count = 0
        for (const steps of rounds) {
          for (const one of steps) tryStep(d, one, count++)
          assert.deepEqual(await d.told(true), await d.told(false))
          await d.scan()
          await d.assertEqual()
          assert.deepEqual(await d.scan(), [])
        }
        rmSync(join(d.root.path, '..'), { recursive: true })
      }),
      { numRuns: 60 },
    )
  })

  test('and any scan that stops half-way leaves a tree that the next scan sets right', async () => {
    const history = fc.record({
      steps: fc.array(step, { maxLength: 15 }),
      batches: fc.nat(8),
      batchMax: fc.integer({ min: 1, max: 3 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(history, { maxLength: 3 }), async (rounds) => {
        const d = await testRoot()
        for (const place of ['a/b/c', 'b/c/a', 'c/a/b', 'A/a']) d.write(`${place}/f`, place)
        await d.scan()
        let count = 0
        for (const { steps, batches, batchMax } of rounds) {
          for (const one of steps) tryStep(d, one, count++)
          d.tree.hasDigests = batches % 2 === 0
          let written = 0
          for await (const batch of d.scanner({ batchMax }).batches()) {
            if (written++ === batches) break
            d.tree.see(batch)
          }
        }
        await d.scan()
        await d.assertEqual()
        assert.deepEqual(await d.scan(), [])
        rmSync(join(d.root.path, '..'), { recursive: true })
      }),
      { numRuns: 80 },
    )
  })

  test('of moves of folders alone keeps every row', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(1_000), fc.nat(1_000)), { maxLength: 15 }), async (moves) => {
        const d = await testRoot()
        for (const place of ['a/b/c', 'b/c/a', 'c/a/b', 'A/a', 'b/b/b'])
          d.write(`${place}/file-${place[0]}`, place)
        await d.scan()
        const before = new Map([...d.tree.rows.values()].map(({ ino, id }) => [ino, id]))
        for (const [a, b] of moves) {
          // Into a free place: a folder that is replaced goes away, and its number with it.
          if (lstatSync(d.path(placeOf(b)), { throwIfNoEntry: false })) tryStep(d, { do: 'swap', a, b }, 0)
          else tryStep(d, { do: 'move', a, b }, 0)
        }
        await d.scan()
        for (const row of d.tree.rows.values()) assert.equal(row.id, before.get(row.ino), row.name)
        await d.assertEqual()
        rmSync(join(d.root.path, '..'), { recursive: true })
      }),
      { numRuns: 40 },
    )
  })
})

test('an unchanged tree costs a small multiple of a bare loop of lstat', async () => {
  const d = await testRoot()
  for (let folder = 0; folder < 40; folder++) {
    mkdirSync(d.path(`${folder}`))
    for (let file = 0; file < 100; file++) writeFileSync(d.path(`${folder}/${file}`), '')
  }
  await d.scan()
  const cpuOf = async (run: () => Promise<unknown>): Promise<number> => {
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  const bare = async (): Promise<void> => {
    for (let folder = 0; folder < 40; folder++) {
      for (const name of readdirSync(d.path(`${folder}`))) {
        lstatSync(d.path(`${folder}/${name}`), { bigint: true })
      }
    }
  }
  let ratioMin = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const bareUs = await cpuOf(bare)
    const scanUs = await cpuOf(() => d.scan())
    ratioMin = Math.min(ratioMin, scanUs / bareUs)
  }
  assert.ok(ratioMin < 5, `${ratioMin.toFixed(1)} times a bare loop`)
})
