import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { collect, failure, never, pattern, type StoreSite, testObjectStore } from '../object-store.suite.ts'
import { FileStore } from './client.ts'

async function openSite(): Promise<StoreSite & { root: string }> {
  const parent = mkdtempSync(join(tmpdir(), 'tidemark-files-'))
  const root = join(parent, 'in')
  mkdirSync(root)
  return {
    root,
    store: new FileStore({ root }),
    uriOf: (key) => `file://${root}/${key}`,
    put: async (key, bytes) => {
      const path = join(root, key)
      mkdirSync(dirname(path), { recursive: true })
      // As programs do that write safely: another file takes the name.
      writeFileSync(`${parent}/new`, bytes)
      execFileSync('mv', ['--', `${parent}/new`, path])
    },
    remove: async (key) => rmSync(join(root, key)),
    deny: async (key) => {
      // Rights would not keep root out; a link keeps everybody out.
      rmSync(join(root, key))
      symlinkSync('/etc/hostname', join(root, key))
    },
    close: async () => rmSync(parent, { recursive: true, force: true }),
  }
}

testObjectStore({
  name: 'a folder',
  open: openSite,
  canBreakOff: false,
  canList: true,
  canMove: true,
  canTag: false,
})

async function within(fn: (site: StoreSite & { root: string }) => Promise<void>): Promise<void> {
  const site = await openSite()
  try {
    await fn(site)
  } finally {
    await site.close()
  }
}

const read = { version: null, fromByte: 0, signal: never() }

describe('a folder of files', () => {
  test('is not left by dots, by links to files or by links to folders', () =>
    within(async ({ root, store }) => {
      const outside = join(dirname(root), 'outside')
      mkdirSync(outside)
      writeFileSync(join(outside, 'secret'), 'x')
      symlinkSync(outside, join(root, 'folder'))
      symlinkSync(join(outside, 'secret'), join(root, 'file'))
      const uris = [
        `file://${root}/../outside/secret`,
        `file://${outside}/secret`,
        `file://${root}-other`,
        `file://${root}/folder/secret`,
        `file://${root}/file`,
        `file://${root}/./x`,
        `file://${root}/x\0y`,
        `file:relative`,
        `file://${root}`,
      ]
      for (const uri of uris) {
        assert.equal((await failure(store.read(uri, read))).code, 'object-denied', uri)
      }
      const page = { after: null, max: 10, signal: never() }
      const { objects } = await store.list({ ...page, prefix: `file://${root}` })
      assert.deepEqual(objects, [])
      const error = await failure(store.list({ ...page, prefix: `file://${root}/folder/` }))
      assert.equal(error.code, 'object-denied')
    }))

  test('gives no end to a file that grows or changes while it is read', () =>
    within(async ({ root, store, put, uriOf }) => {
      await put('a', pattern(600_000))
      const grown = await store.read(uriOf('a'), read)
      const chunks = grown.bytes[Symbol.asyncIterator]()
      await chunks.next()
      appendFileSync(join(root, 'a'), 'more')
      const rest = async (): Promise<void> => {
        while (!(await chunks.next()).done);
      }
      const error = await failure(rest())
      assert.deepEqual([error.kind, error.code], ['gone', 'object-replaced'])
    }))

  test('does not wait for somebody to write to a pipe', () =>
    within(async ({ root, store }) => {
      execFileSync('mkfifo', [join(root, 'pipe')])
      assert.equal((await failure(store.read(`file://${root}/pipe`, read))).code, 'object-denied')
    }))

  test('loses no file to a copy whose target is taken', () =>
    within(async ({ root, store, put, uriOf }) => {
      await put('a', Buffer.from('a'))
      await put('done/a', Buffer.from('other'))
      const { version } = (await store.head(uriOf('a'), never()))!
      const error = await failure(store.copy!(uriOf('a'), version, uriOf('done/a')))
      assert.deepEqual([error.kind, error.code], ['permanent', 'target-exists'])
      assert.deepEqual(
        [readFileSync(join(root, 'a'), 'utf8'), readFileSync(join(root, 'done/a'), 'utf8')],
        ['a', 'other'],
      )
      const outside = await failure(store.copy!(uriOf('a'), version, `file://${root}/../b`))
      assert.equal(outside.code, 'object-denied')
      assert.ok(existsSync(join(root, 'a')))
    }))

  test('removes what a process that died had put aside, and puts back what is another', () =>
    within(async ({ root, store, put, uriOf }) => {
      const [path, aside] = [join(root, 'a'), join(root, `.tidemark-aside-${asideOf(join(root, 'a'))}`)]
      await put('a', Buffer.from('a'))
      const { version } = (await store.head(uriOf('a'), never()))!
      renameSync(path, aside)
      await store.remove!(uriOf('a'), version)
      assert.ok(!existsSync(path) && !existsSync(aside))
      writeFileSync(aside, 'of somebody else')
      assert.equal((await failure(store.remove!(uriOf('a'), version))).code, 'object-replaced')
      assert.equal(readFileSync(path, 'utf8'), 'of somebody else')
      assert.ok(!existsSync(aside))
    }))

  test('goes on with a listing where the page before ended, without reading its folders anew', () =>
    within(async ({ root, store, put, uriOf }) => {
      for (const name of ['a', 'b', 'd', 'x/1', 'x/2']) await put(name, Buffer.from(name))
      const page = (after: string | null) =>
        store.list({ prefix: `file://${root}/`, after, max: 2, signal: never() })
      const first = await page(null)
      await put('c', Buffer.from('c'))
      const second = await page(first.next)
      const third = await page(second.next)
      const uris = [first, second, third].flatMap(({ objects }) => objects.map(({ uri }) => uri))
      assert.deepEqual(uris, ['a', 'b', 'd', 'x/1', 'x/2'].map(uriOf))
      assert.equal(third.next, null)
      const anew = await page(first.next)
      assert.deepEqual(
        anew.objects.map(({ uri }) => uri),
        ['c', 'd'].map(uriOf),
        'a second time it is read anew',
      )
    }))

  test('does not list a folder that is not there as empty', () =>
    within(async ({ root }) => {
      const store = new FileStore({ root: `${root}/unmounted` })
      const listing = store.list({ prefix: `file://${root}/unmounted`, after: null, max: 2, signal: never() })
      assert.equal((await failure(listing)).code, 'folder-missing')
    }))

  test('lists a folder that cannot be read as one object that cannot be read, and all others', () =>
    within(async ({ root, store, put }) => {
      await put('z', Buffer.from('z'))
      // Rights would not keep root out; a path that is too long keeps everybody out.
      const name = 'n'.repeat(240)
      const script = `cd "$1"; for i in $(seq 40); do mkdir ${name} && cd ${name} || break; done 2>/dev/null`
      try {
        execFileSync('sh', ['-c', script, 'sh', root])
        const page = await store.list({ prefix: `file://${root}/`, after: null, max: 10, signal: never() })
        const [deep, other] = page.objects
        assert.equal(page.objects.length, 2)
        assert.match(deep!.uri, /n\/$/)
        assert.equal(other!.uri, `file://${root}/z`)
        assert.equal(
          (await failure(store.read(deep!.uri, { ...read, version: deep!.version }))).code,
          'object-denied',
        )
      } finally {
        execFileSync('rm', ['-rf', join(root, name)])
      }
    }))

  test('lists files and folders whose names are not UTF-8, and says so to whoever reads them', () =>
    within(async ({ root, store }) => {
      for (const last of [0xfe, 0xff]) {
        writeFileSync(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.from([last])]), 'x')
        mkdirSync(Buffer.concat([Buffer.from(`${root}/folder`), Buffer.from([last])]))
      }
      const page = await store.list({ prefix: `file://${root}/`, after: null, max: 10, signal: never() })
      assert.deepEqual(
        page.objects.map(({ uri }) => uri.slice(`file://${root}/`.length)),
        ['bad\uFFFD', 'bad\uFFFD', 'folder\uFFFD/', 'folder\uFFFD/'],
      )
      assert.equal(new Set(page.objects.map(({ version }) => version.id)).size, 4, 'they are told apart')
      for (const { uri, version } of page.objects) {
        const error = await failure(store.read(uri, { ...read, version }))
        assert.deepEqual([error.kind, error.code], ['permanent', 'object-name'])
      }
    }))

  test('lists names that are not UTF-8 and look alike, also where each page is asked for by another process', () =>
    within(async ({ root, put }) => {
      for (const last of [0x80, 0xfe, 0xff]) {
        writeFileSync(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.from([last])]), 'x')
        mkdirSync(Buffer.concat([Buffer.from(`${root}/folder`), Buffer.from([last])]))
      }
      // These are UTF-8, and read like those that are not.
      await put('bad\uFFFD', Buffer.from('x'))
      await put('folder\uFFFD/a', Buffer.from('x'))
      await put('z', Buffer.from('z'))
      const seen: string[] = []
      for (let after: string | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
        const store = new FileStore({ root })
        const page = await store.list({ prefix: `file://${root}/`, after, max: 1, signal: never() })
        seen.push(...page.objects.map(({ uri }) => uri.slice(`file://${root}/`.length)))
        after = page.next
      }
      const [bad, folder] = ['bad\uFFFD', 'folder\uFFFD/']
      assert.deepEqual(seen, [bad, bad, bad, bad, folder, folder, folder, `${folder}a`, 'z'])
    }))

  test('lists no file that is left out', () =>
    within(async ({ root, put }) => {
      await put('a', Buffer.from('a'))
      await put('b.part', Buffer.from('b'))
      const store = new FileStore({ root, leavesOut: (path) => path === 'b.part' })
      const page = await store.list({ prefix: `file://${root}/`, after: null, max: 1, signal: never() })
      assert.deepEqual([page.objects.map(({ uri }) => uri), page.next], [[`file://${root}/a`], null])
      assert.equal((await collect((await store.read(`file://${root}/b.part`, read)).bytes)).toString(), 'b')
    }))
})

function asideOf(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 16)
}
