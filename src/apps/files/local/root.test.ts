import assert from 'node:assert/strict'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { holdFolder, inParentFolder, inside } from './folder.ts'
import { listHeld, plainReader } from './listing.ts'
import { checkRoot, createRoot, openRoot, type Root } from './root.ts'

const folders: string[] = []
const MARKER = { markerId: 'm1', drive: 'home', createdAt: '2026-11-16T00:00:00Z' }

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function fresh(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-root-')))
  folders.push(folder)
  return folder
}

async function freshRoot(): Promise<Root> {
  return createRoot(join(fresh(), 'root'), MARKER)
}

describe('a root', () => {
  test('is made with its marker and folders that are nobody else’s business', async () => {
    const root = await freshRoot()
    assert.deepEqual(JSON.parse(readFileSync(join(root.path, '.tidemark/root.json'), 'utf8')), MARKER)
    for (const name of ['', 'partial', 'trash']) {
      assert.equal(lstatSync(join(root.path, '.tidemark', name)).mode & 0o777, 0o700, name)
    }
    assert.deepEqual(openRoot(root.path, 'm1').look.ino, root.look.ino)
  })

  test('is made of a folder with files in it, and again with the same marker', async () => {
    const folder = fresh()
    writeFileSync(join(folder, 'f'), 'x')
    await createRoot(folder, MARKER)
    await createRoot(folder, MARKER)
    assert.equal(readFileSync(join(folder, 'f'), 'utf8'), 'x')
  })

  test('is not made where another user has made the folder that is to be our own', async (t) => {
    const folder = fresh()
    mkdirSync(join(folder, '.tidemark'), { mode: 0o777 })
    const { uid } = lstatSync(folder)
    t.mock.method(process as { getuid: () => number }, 'getuid', () => uid + 1)
    await assert.rejects(createRoot(folder, MARKER), { code: 'own-folder-other' })
    t.mock.restoreAll()
    assert.equal((await createRoot(folder, MARKER)).path, folder)
  })

  test('is named by its real path', async () => {
    const folder = fresh()
    mkdirSync(join(folder, 'real'))
    symlinkSync('real', join(folder, 'link'))
    assert.equal((await createRoot(join(folder, 'link'), MARKER)).path, join(folder, 'real'))
  })

  test('that belongs to another drive is not taken over', async () => {
    const root = await freshRoot()
    await assert.rejects(createRoot(root.path, { ...MARKER, markerId: 'm2', drive: 'work' }), {
      code: 'marker-foreign',
      message: `The folder ${root.path} is already kept in step with the drive home.`,
    })
    assert.throws(() => openRoot(root.path, 'm2'), { code: 'marker-foreign' })
  })

  test('inside of another root is refused', async () => {
    const root = await freshRoot()
    await assert.rejects(createRoot(join(root.path, 'a/b'), { ...MARKER, markerId: 'm2' }), {
      code: 'root-nested',
    })
  })

  test('that is gone, a file, or a link to elsewhere is missing, and says what to do', async () => {
    const root = await freshRoot()
    const away = `${root.path}-away`
    renameSync(root.path, away)
    const isMissing = (thrown: unknown): boolean => {
      const { code, hint } = thrown as { code: string; hint: string }
      return code === 'root-missing' && /mounted/.test(hint) && !/resync/i.test(hint)
    }
    assert.throws(() => openRoot(root.path, 'm1'), isMissing)
    writeFileSync(root.path, 'a file')
    assert.throws(() => openRoot(root.path, 'm1'), isMissing)
    rmSync(root.path)
    symlinkSync(away, root.path)
    assert.throws(() => openRoot(root.path, 'm1'), isMissing)
  })

  test('without its marker, with half of one, or with a link for its own folder is refused', async () => {
    const root = await freshRoot()
    const marker = join(root.path, '.tidemark/root.json')
    for (const text of ['', '{"markerId":', '{"drive":"home"}']) {
      writeFileSync(marker, text)
      assert.throws(() => openRoot(root.path, 'm1'), { code: 'marker-missing' })
    }
    rmSync(marker)
    assert.throws(() => openRoot(root.path, 'm1'), { code: 'marker-missing' })
    renameSync(join(root.path, '.tidemark'), join(root.path, 'elsewhere'))
    symlinkSync('elsewhere', join(root.path, '.tidemark'))
    assert.throws(() => openRoot(root.path, 'm1'), { code: 'marker-missing' })
  })

  test('that was replaced by one with the same marker is noticed', async () => {
    const root = await freshRoot()
    renameSync(root.path, `${root.path}-old`)
    await createRoot(root.path, MARKER)
    assert.throws(() => checkRoot(root), { code: 'root-missing' })
    assert.throws(() => holdFolder(root, []), { code: 'root-missing' })
  })
})

describe('a place in the root', () => {
  test('never leads out of it, nor into our own folder', async () => {
    const root = await freshRoot()
    for (const names of [['..'], ['a', '..', '..', 'b'], ['.'], [''], ['a/b'], ['a\0b'], ['\ud800']]) {
      assert.throws(() => inside(root, names), { code: 'path-unsafe' }, JSON.stringify(names))
    }
    for (const name of ['.tidemark', '.Tidemark']) {
      assert.throws(() => inside(root, [name, 'x']), { code: 'path-unsafe' })
    }
    assert.equal(inside(root, ['a', '.tidemark']), join(root.path, 'a/.tidemark'))
  })

  test('whose name is too long in bytes is left alone, and does not end the look at the others', async () => {
    const root = await freshRoot()
    const listing = listHeld(root, plainReader, join(root.path, '\u65e5'.repeat(90)))
    assert.match('reason' in listing ? listing.reason : '', /255/)
  })

  test('is not reached through a link or a file', async () => {
    const root = await freshRoot()
    const outside = join(root.path, '..', 'outside')
    mkdirSync(join(outside, 'deep'), { recursive: true })
    symlinkSync(outside, join(root.path, 'link'))
    writeFileSync(join(root.path, 'file'), 'x')
    mkdirSync(join(root.path, 'real'))
    symlinkSync('../real', join(root.path, 'real/inner'))
    for (const names of [['link'], ['link', 'deep'], ['file'], ['real', 'inner']]) {
      assert.throws(() => holdFolder(root, names), { code: 'folder-other' }, names.join('/'))
    }
    assert.throws(() => holdFolder(root, ['none', 'x']), { code: 'folder-missing' })
  })

  test('stays the one that was opened, whatever takes its path', async () => {
    const root = await freshRoot()
    const outside = join(root.path, '..', 'outside')
    mkdirSync(outside)
    mkdirSync(join(root.path, 'a/b'), { recursive: true })
    const folder = holdFolder(root, ['a', 'b'])
    renameSync(join(root.path, 'a'), join(root.path, 'moved'))
    symlinkSync(outside, join(root.path, 'a'))
    mkdirSync(join(outside, 'b'))
    writeFileSync(folder.at('f'), 'x')
    folder.close()
    assert.equal(readFileSync(join(root.path, 'moved/b/f'), 'utf8'), 'x')
    assert.equal(lstatSync(join(outside, 'b/f'), { throwIfNoEntry: false }), undefined)
  })

  test('is let go when the work in it fails', async () => {
    const root = await freshRoot()
    for (let i = 0; i < 50; i++) {
      assert.throws(() =>
        inParentFolder(root, ['f'], () => {
          throw new Error('x')
        }),
      )
      assert.throws(() => holdFolder(root, ['none']))
    }
    assert.throws(() => inParentFolder(root, [], () => 1), { code: 'path-unsafe' })
  })
})
