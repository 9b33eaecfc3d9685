import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import type { LocalStat } from '../trees.ts'
import { attributesOf, setAttribute } from './attributes.ts'
import { type HeldFolder, holdFolder } from './folder.ts'
import { makeFolder, moveInside } from './move.ts'
import { freeBytes, partialPath, putInPlace, sweepPartials } from './place.ts'
import { createRoot, type Root } from './root.ts'
import { isSameStat, lookAt, plainStat } from './stat.ts'
import { bringBack, moveToTrash, originalNames, removeEmptyFolder, takeFrom } from './trash.ts'
import { emptyTrash, listTrash, restore, trashDays } from './trash-bin.ts'

const folders: string[] = []
const AT = Date.UTC(2026, 10, 16, 3, 15, 0)
const TIME = { atMs: AT }

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

async function freshRoot(): Promise<Root> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-place-')))
  folders.push(folder)
  const marker = { markerId: 'm1', drive: 'home', createdAt: '2026-11-16T00:00:00Z' }
  return createRoot(join(folder, 'root'), marker)
}

function write(root: Root, path: string, text: string): LocalStat {
  const full = join(root.path, path)
  mkdirSync(join(full, '..'), { recursive: true })
  writeFileSync(full, text)
  return statOf(root, path)
}

const statOf = (root: Root, path: string): LocalStat => plainStat(lookAt(join(root.path, path))!)
const read = (root: Root, path: string): string => readFileSync(join(root.path, path), 'utf8')
const isThere = (root: Root, path: string): boolean => existsSync(join(root.path, path))
const trashed = (root: Root): string[] => [...listTrash(root)].map(({ names }) => names.join('/'))

function download(root: Root, text: string): string {
  const path = partialPath(root, { itemId: 'item', cTag: `${text.length}` })
  writeFileSync(path, text)
  return path
}

/** A held folder in which things happen just before each use of it but the first: after it was looked at. */
function lastMoment(root: Root, ...happenings: (() => unknown)[]): HeldFolder {
  const folder = holdFolder(root, [])
  let uses = 0
  return {
    ...folder,
    at(name) {
      if (uses++ > 0) happenings.shift()?.()
      return folder.at(name)
    },
  }
}

/** A program that edits files as soon as they are there. */
const EDITS_AT_ONCE = `
  const { closeSync, openSync, writeSync } = require('node:fs')
  const { folder, files, done } = require('node:worker_threads').workerData
  for (let at = 0; at < files; ) {
    try {
      const file = openSync(folder + '/f' + at, 'r+')
      writeSync(file, 'edited')
      closeSync(file)
      Atomics.store(done, 0, ++at)
      Atomics.notify(done, 0)
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
    }
  }`

describe('a download gets its place', () => {
  test('with its time, and the partial file is gone', async () => {
    const root = await freshRoot()
    mkdirSync(join(root.path, 'a'))
    const partial = download(root, 'new')
    const modifiedMs = Date.UTC(2020, 1, 3, 4, 5, 6, 789)
    const placed = await putInPlace(root, partial, {
      names: ['a', 'f'],
      expect: 'absent',
      modifiedMs,
      ...TIME,
    })
    assert.deepEqual(placed, { outcome: 'done', stat: statOf(root, 'a/f') })
    assert.equal(read(root, 'a/f'), 'new')
    assert.equal(Math.round(lstatSync(join(root.path, 'a/f')).mtimeMs), modifiedMs)
    assert.ok(!existsSync(partial))
  })

  test('and an edit in the very next moment is not taken for what was put there', async () => {
    const root = await freshRoot()
    const files = 300
    const done = new Int32Array(new SharedArrayBuffer(4))
    const eager = new Worker(EDITS_AT_ONCE, { eval: true, workerData: { folder: root.path, files, done } })
    try {
      for (let at = 0; at < files; at++) {
        const target = { names: [`f${at}`], expect: 'absent' as const, modifiedMs: AT, ...TIME }
        const placed = await putInPlace(root, download(root, 'new'), target)
        assert.notEqual(Atomics.wait(done, 0, at, 30_000), 'timed-out')
        assert.equal(read(root, `f${at}`), 'edited')
        assert.ok(placed.outcome === 'done' && !isSameStat(placed.stat, statOf(root, `f${at}`)))
      }
    } finally {
      await eager.terminate()
    }
  })

  test('never over something that nobody expected', async () => {
    const root = await freshRoot()
    write(root, 'f', 'theirs')
    mkdirSync(join(root.path, 'd'))
    symlinkSync('nowhere', join(root.path, 'l'))
    const partial = download(root, 'new')
    for (const name of ['f', 'd', 'l']) {
      const target = { names: [name], expect: 'absent' as const, modifiedMs: null, ...TIME }
      assert.deepEqual(await putInPlace(root, partial, target), { outcome: 'taken' }, name)
    }
    assert.equal(read(root, 'f'), 'theirs')
    assert.equal(readFileSync(partial, 'utf8'), 'new')
  })

  test('instead of the version that was expected, which goes to the trash; its mode stays', async () => {
    const root = await freshRoot()
    const path = join(root.path, 'a/run.sh')
    write(root, 'a/run.sh', 'old')
    chmodSync(path, 0o754)
    const expect = statOf(root, 'a/run.sh')
    const target = { names: ['a', 'run.sh'], expect, modifiedMs: null, ...TIME }
    const placed = await putInPlace(root, download(root, 'new'), target)
    assert.equal(placed.outcome, 'done')
    assert.equal(read(root, 'a/run.sh'), 'new')
    assert.equal(lstatSync(path).mode & 0o777, 0o754)
    assert.deepEqual(trashed(root), ['2026-11-16/a/run.sh'])
    assert.equal(read(root, '.tidemark/trash/2026-11-16/a/run.sh'), 'old')
  })

  test('with what people have attached to the version before it, also where nobody may write to it', async () => {
    const root = await freshRoot()
    const path = join(root.path, 'a.pdf')
    write(root, 'a.pdf', 'old')
    const attributes = { 'user.xdg.tags': Buffer.from('tax, 2026'), 'user.empty': Buffer.alloc(0) }
    for (const [name, value] of Object.entries(attributes)) assert.ok(setAttribute(path, name, value), name)
    chmodSync(path, 0o444)
    const target = { names: ['a.pdf'], expect: statOf(root, 'a.pdf'), modifiedMs: null, ...TIME }
    const placed = await putInPlace(root, download(root, 'new'), target)
    assert.equal(placed.outcome, 'done')
    assert.equal(read(root, 'a.pdf'), 'new')
    assert.equal(lstatSync(path).mode & 0o777, 0o444)
    assert.deepEqual(Object.fromEntries(attributesOf(path)), attributes)
    // What was put there is known as it is: no look takes it for an edit.
    assert.ok(placed.outcome === 'done' && isSameStat(placed.stat, statOf(root, 'a.pdf')))
    assert.deepEqual(
      Object.fromEntries(attributesOf(join(root.path, '.tidemark/trash/2026-11-16/a.pdf'))),
      attributes,
    )
  })

  test('not where the file was edited, replaced, deleted or turned into a folder after it was looked at', async () => {
    const changes: Record<string, (root: Root) => void> = {
      edited: (root) => write(root, 'f', 'edited'),
      'edited to the same size': (root) => {
        write(root, 'f', 'OLD')
        utimesSync(join(root.path, 'f'), 1_700_000_000, 1_700_000_001)
      },
      'saved by rename': (root) => {
        write(root, 'g', 'saved')
        renameSync(join(root.path, 'g'), join(root.path, 'f'))
      },
      deleted: (root) => rmSync(join(root.path, 'f')),
      'a folder': (root) => {
        rmSync(join(root.path, 'f'))
        write(root, 'f/inner', 'x')
      },
      'a link': (root) => {
        rmSync(join(root.path, 'f'))
        symlinkSync('elsewhere', join(root.path, 'f'))
      },
    }
    for (const [what, change] of Object.entries(changes)) {
      const root = await freshRoot()
      const expect = write(root, 'f', 'old')
      change(root)
      const before = lookAt(join(root.path, 'f'))
      const partial = download(root, 'new')
      const placed = await putInPlace(root, partial, { names: ['f'], expect, modifiedMs: null, ...TIME })
      assert.deepEqual(placed, { outcome: 'changed' }, what)
      assert.deepEqual(lookAt(join(root.path, 'f')), before, what)
      assert.ok(existsSync(partial), what)
      assert.deepEqual(trashed(root), [], what)
    }
  })

  test('and what a program still writes to the replaced file can be brought back as a copy', async () => {
    const root = await freshRoot()
    const expect = write(root, 'f', 'old')
    const target = { names: ['f'], expect, modifiedMs: null, ...TIME }
    const placed = await putInPlace(root, download(root, 'new'), target)
    assert.ok(placed.outcome === 'done' && placed.kept)
    // The file was open: its writer does not know that it has another name now.
    writeFileSync(join(root.path, '.tidemark/trash', ...placed.kept.names), 'late edit')
    assert.equal(bringBack(root, placed.kept, ['f.conflict']), 'done')
    assert.equal(read(root, 'f.conflict'), 'late edit')
    assert.equal(read(root, 'f'), 'new')
    assert.equal(bringBack(root, placed.kept, ['f.conflict']), 'gone')
  })

  test('and neither mode nor time of what a link leads to is changed, should one take the place of the partial file', async () => {
    const root = await freshRoot()
    const key = join(dirname(root.path), 'key')
    writeFileSync(key, 'private', { mode: 0o600 })
    const expect = write(root, 'open', 'old')
    chmodSync(join(root.path, 'open'), 0o777)
    const before = lookAt(key)
    for (const settled of [{ isSettled: true } as const, {}]) {
      const partial = download(root, 'new content')
      rmSync(partial)
      symlinkSync(key, partial)
      const target = { names: ['open'], expect, modifiedMs: AT, atMs: AT, ...settled }
      await assert.rejects(putInPlace(root, partial, target), { code: 'ELOOP' })
      rmSync(partial)
    }
    assert.deepEqual(lookAt(key), before)
    assert.equal(lstatSync(key).mode & 0o777, 0o600)
    assert.equal(read(root, 'open'), 'old')
  })

  test('never through a link that took the place of its folder', async () => {
    const root = await freshRoot()
    const outside = join(root.path, '..', 'outside')
    mkdirSync(outside)
    symlinkSync(outside, join(root.path, 'a'))
    const target = { names: ['a', 'f'], expect: 'absent' as const, modifiedMs: null, ...TIME }
    await assert.rejects(putInPlace(root, download(root, 'new'), target), { code: 'folder-other' })
    assert.deepEqual(readdirSync(outside), [])
  })

  test('partial files have one name a version, and only old ones are swept', async () => {
    const root = await freshRoot()
    const paths = [
      partialPath(root, { itemId: '../../x', cTag: 'c1' }),
      partialPath(root, { itemId: '../../x', cTag: 'c2' }),
      partialPath(root, { itemId: '../../x', cTag: null }),
      partialPath(root, { itemId: 'y', cTag: 'c1' }),
    ]
    assert.equal(new Set(paths).size, 4)
    for (const path of paths) {
      assert.equal(realpathSync(dirname(path)), join(root.path, '.tidemark/partial'))
      writeFileSync(path, '')
    }
    const { ctimeMs } = lstatSync(paths[0]!)
    // Whole downloads have the time of their content already: they are as new as when they got it.
    for (const path of paths.slice(1)) {
      do utimesSync(path, 1_000, 1_000)
      while (lstatSync(path).ctimeMs <= ctimeMs + 1)
    }
    assert.equal(await sweepPartials(root, { beforeMs: ctimeMs + 1 }), 1)
    assert.deepEqual(
      paths.map((path) => existsSync(path)),
      [false, true, true, true],
    )
    assert.ok(freeBytes(root) > 0)
  })
})

describe('a deleted file', () => {
  test('goes to the trash of the day under its path, each time under a name of its own', async () => {
    const root = await freshRoot()
    for (let i = 0; i < 4; i++) {
      const moved = moveToTrash(root, ['a', 'f.txt'], write(root, 'a/f.txt', `${i}`), TIME)
      assert.equal(moved.outcome, 'done')
    }
    const names = ['f.txt', 'f.txt~031500000', 'f.txt~031500000-2', 'f.txt~031500000-3']
    assert.deepEqual(
      trashed(root),
      names.map((name) => `2026-11-16/a/${name}`),
    )
    assert.deepEqual(
      [...listTrash(root)].map(({ origin }) => origin.join('/')),
      Array(4).fill('a/f.txt'),
    )
    assert.ok(!isThere(root, 'a/f.txt'))
  })

  test('and the folder that had its name both find a place in the trash', async () => {
    const root = await freshRoot()
    moveToTrash(root, ['a'], write(root, 'a', 'file'), TIME)
    moveToTrash(root, ['a', 'b'], write(root, 'a/b', 'in a folder'), TIME)
    assert.deepEqual(trashed(root), ['2026-11-16/a', '2026-11-16.2/a/b'])
    assert.deepEqual(originalNames(['2026-11-16.2', 'a', 'b']), ['a', 'b'])
  })

  test('that is not the expected one stays', async () => {
    const root = await freshRoot()
    const expect = write(root, 'f', 'old')
    write(root, 'f', 'edited')
    assert.deepEqual(moveToTrash(root, ['f'], expect, TIME), { outcome: 'changed' })
    rmSync(join(root.path, 'f'))
    assert.deepEqual(moveToTrash(root, ['f'], expect, TIME), { outcome: 'gone' })
    assert.deepEqual(trashed(root), [])
  })

  test('that is edited or replaced in the very moment in which it is taken is put back', async () => {
    const edits: Record<string, (root: Root) => void> = {
      edited: (root) => write(root, 'f', 'edited'),
      'saved by rename': (root) => {
        write(root, 'g', 'edited')
        renameSync(join(root.path, 'g'), join(root.path, 'f'))
      },
    }
    for (const [what, edit] of Object.entries(edits)) {
      const root = await freshRoot()
      const expect = write(root, 'f', 'old')
      const folder = lastMoment(root, () => edit(root))
      const taken = takeFrom(root, folder, 'f', { names: ['f'], expect, ...TIME })
      assert.deepEqual(taken, { outcome: 'changed' }, what)
      assert.equal(read(root, 'f'), 'edited', what)
      assert.deepEqual(trashed(root), [], what)
      folder.close()
    }
  })

  test('whose place is filled before it can be put back stays in the trash', async () => {
    const root = await freshRoot()
    const expect = write(root, 'f', 'old')
    const folder = lastMoment(
      root,
      () => write(root, 'f', 'edited'),
      () => write(root, 'f', 'another'),
    )
    const taken = takeFrom(root, folder, 'f', { names: ['f'], expect, ...TIME })
    assert.ok(taken.outcome === 'changed' && taken.kept)
    assert.equal(read(root, 'f'), 'another')
    assert.equal(read(root, `.tidemark/trash/${taken.kept.names.join('/')}`), 'edited')
    folder.close()
  })

  test('with the longest name there is can go there twice', async () => {
    const root = await freshRoot()
    const name = 'é'.repeat(127)
    for (let i = 0; i < 2; i++)
      assert.equal(moveToTrash(root, [name], write(root, name, 'x'), TIME).outcome, 'done')
    assert.equal(trashed(root).length, 2)
  })

  test('comes back to its place, with the folders on the way, and never over another one', async () => {
    const root = await freshRoot()
    moveToTrash(root, ['a', 'b', 'f'], write(root, 'a/b/f', 'x'), TIME)
    rmSync(join(root.path, 'a'), { recursive: true })
    const [entry] = listTrash(root)
    assert.equal(restore(root, entry!), 'done')
    assert.equal(read(root, 'a/b/f'), 'x')
    assert.equal(restore(root, entry!), 'gone')
    moveToTrash(root, ['a', 'b', 'f'], statOf(root, 'a/b/f'), TIME)
    write(root, 'a/b/f', 'another')
    assert.equal(restore(root, entry!), 'taken')
    assert.equal(restore(root, entry!, ['f restored']), 'done')
    assert.equal(read(root, 'f restored'), 'x')
  })

  test('a folder is deleted only when it is empty, and only itself', async () => {
    const root = await freshRoot()
    write(root, 'a/f', 'x')
    const expect = statOf(root, 'a')
    assert.equal(removeEmptyFolder(root, ['a'], expect), 'not-empty')
    rmSync(join(root.path, 'a/f'))
    mkdirSync(join(root.path, 'b'))
    assert.equal(removeEmptyFolder(root, ['b'], expect), 'changed')
    assert.equal(removeEmptyFolder(root, ['a'], expect), 'done')
    assert.equal(removeEmptyFolder(root, ['a'], expect), 'gone')
  })

  test('the trash loses what is too old, then the oldest of what is too much', async () => {
    const root = await freshRoot()
    const day = 86_400_000
    for (const [days, name] of [
      [40, 'old'],
      [20, 'middle'],
      [1, 'young'],
    ] as const) {
      moveToTrash(root, ['d', name], write(root, `d/${name}`, 'x'.repeat(100)), { atMs: AT - days * day })
    }
    const empty = (bytesMax: number) => {
      const days = trashDays(root).map((one) => ({ ...one, ageMs: AT - Date.parse(one.day) }))
      return emptyTrash(root, { days, keepMs: 30 * day, bytesMax })
    }
    assert.deepEqual(empty(1_000), { files: 1, bytes: 100 })
    assert.deepEqual(empty(1_000), { files: 0, bytes: 0 })
    assert.deepEqual(empty(150), { files: 1, bytes: 100 })
    assert.deepEqual(
      [...listTrash(root)].map(({ origin }) => origin.at(-1)),
      ['young'],
    )
    assert.equal(readdirSync(join(root.path, '.tidemark/trash')).length, 1, 'empty days are gone')
  })
})

describe('a move', () => {
  const move = (root: Root, from: string, to: string, expect = statOf(root, from)) =>
    moveInside(root, { from: from.split('/'), to: to.split('/'), expect, ...TIME })

  test('of a file or a folder keeps what it is', async () => {
    const root = await freshRoot()
    const file = write(root, 'a/f', 'x')
    mkdirSync(join(root.path, 'b'))
    const moved = move(root, 'a/f', 'b/g')
    assert.deepEqual(moved, { outcome: 'done', stat: { ...file, ctimeNs: statOf(root, 'b/g').ctimeNs } })
    assert.equal(read(root, 'b/g'), 'x')
    assert.ok(!isThere(root, 'a/f'))
    assert.equal(move(root, 'b', 'a/b').outcome, 'done')
    assert.equal(read(root, 'a/b/g'), 'x')
    assert.deepEqual(trashed(root), [])
  })

  test('never goes over something else, and not where it is not what was expected', async () => {
    const root = await freshRoot()
    write(root, 'f', 'mine')
    write(root, 'g', 'theirs')
    write(root, 'd/x', 'x')
    write(root, 'e/y', 'y')
    assert.deepEqual(move(root, 'f', 'g'), { outcome: 'taken' })
    assert.deepEqual(move(root, 'd', 'e'), { outcome: 'taken' })
    assert.deepEqual(move(root, 'd', 'f'), { outcome: 'taken' })
    assert.deepEqual(move(root, 'f', 'h', statOf(root, 'g')), { outcome: 'changed' })
    assert.deepEqual(move(root, 'none', 'h', statOf(root, 'g')), { outcome: 'gone' })
    assert.deepEqual([read(root, 'f'), read(root, 'g'), read(root, 'd/x')], ['mine', 'theirs', 'x'])
  })

  test('that was done before, or half done, is done', async () => {
    const root = await freshRoot()
    const expect = write(root, 'f', 'x')
    linkSync(join(root.path, 'f'), join(root.path, 'g'))
    assert.equal(move(root, 'f', 'g', expect).outcome, 'done')
    assert.ok(!isThere(root, 'f'))
    assert.equal(move(root, 'f', 'g', expect).outcome, 'done')
    assert.equal(read(root, 'g'), 'x')
    assert.deepEqual(trashed(root), [])
  })

  test('of case alone is one', async () => {
    const root = await freshRoot()
    write(root, 'Report', 'x')
    assert.equal(move(root, 'Report', 'report').outcome, 'done')
    assert.deepEqual(readdirSync(root.path).sort(), ['.tidemark', 'report'])
  })

  test('a new folder is made, found, or has its name taken', async () => {
    const root = await freshRoot()
    assert.equal(makeFolder(root, ['a']).outcome, 'done')
    assert.equal(makeFolder(root, ['a']).outcome, 'there')
    write(root, 'f', 'x')
    assert.equal(makeFolder(root, ['f']).outcome, 'taken')
    assert.throws(() => makeFolder(root, ['none', 'b']), { code: 'folder-missing' })
  })
})
