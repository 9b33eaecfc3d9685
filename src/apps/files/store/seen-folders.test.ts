import assert from 'node:assert/strict'
import { test } from 'node:test'
import { digestOfRows } from '../local/folder-digest.ts'
import type { LocalRow } from '../trees.ts'
import { PAIR, withStore } from './file-store.suite.ts'
import type { FileStore } from './file-store.ts'
import { forgetLocal, missBranch, setLocalHash } from './local-tree.ts'
import { putLocal } from './rows.ts'
import { noteSeen } from './seen-folders.ts'

const STAT = { dev: '1', ino: '10', birthNs: '5', mtimeNs: '1700000000000000001', ctimeNs: '7', size: 3 }

type Tx = Parameters<typeof noteSeen>[0]

function rowOf(id: number, parentId: number, change: Partial<LocalRow> = {}): LocalRow {
  return {
    id,
    parentId,
    name: `n${id}`,
    type: 'file',
    ...STAT,
    ino: String(id),
    hash: 'h',
    itemId: `i${id}`,
    sha256: null,
    isMissing: false,
    unreadable: null,
    ...change,
  }
}

/** Folder 2 has the files 4 and 5 and the folder 6; folder 3 is empty. */
function withFolders(run: (store: FileStore) => Promise<void>): Promise<void> {
  return withStore(async (store) => {
    await store.write(async (tx) => {
      for (const id of [2, 3]) await putLocal(tx, PAIR, rowOf(id, 1, { type: 'folder' }))
      for (const id of [4, 5]) await putLocal(tx, PAIR, rowOf(id, 2))
      await putLocal(tx, PAIR, rowOf(6, 2, { type: 'folder' }))
      await noteSeen(tx, PAIR, [1, 2, 3])
    })
    await run(store)
  })
}

test('what was noted of a folder is the digest of its rows, with the rows of the folders in it', () =>
  withFolders(async (store) => {
    const rows = (await store.localChildren(PAIR, 2)).reverse()
    const folders = rows.filter(({ type }) => type === 'folder')
    assert.deepEqual(await store.seenFolder(PAIR, 2), { digest: digestOfRows(rows), folders })
    assert.equal((await store.seenFolder(PAIR, 1))?.folders.length, 2)
    assert.equal(await store.seenFolder(PAIR, 3), undefined)
    assert.equal(await store.seenFolder('other', 2), undefined)
  }))

test('whatever changes in a folder takes away what was noted of it', async () => {
  const changes: Record<string, (tx: Tx) => Promise<unknown>> = {
    'a new file': (tx) => putLocal(tx, PAIR, rowOf(9, 2)),
    'a name': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { name: 'other' })),
    'a time': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { mtimeNs: '1700000000000000002' })),
    'a size': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { size: 4 })),
    'another file at its place': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { ino: '99' })),
    'another ctime': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { ctimeNs: '8' })),
    'another birth': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { birthNs: '6' })),
    'another disk': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { dev: '2' })),
    'another type': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { type: 'other' })),
    'a file that cannot be read': (tx) => putLocal(tx, PAIR, rowOf(4, 2, { unreadable: 'why' })),
    'a file that left': (tx) => putLocal(tx, PAIR, rowOf(4, 3)),
    'a file that came': (tx) => putLocal(tx, PAIR, rowOf(3, 2, { type: 'folder' })),
    'a missing file': (tx) => missBranch(tx, PAIR, 4),
    'a forgotten file': (tx) => forgetLocal(tx, PAIR, 5),
  }
  for (const [what, change] of Object.entries(changes)) {
    await withFolders(async (store) => {
      await store.write(change)
      assert.equal(await store.seenFolder(PAIR, 2), undefined, what)
    })
  }
})

test('what says nothing about the disk leaves it', () =>
  withFolders(async (store) => {
    const noted = await store.seenFolder(PAIR, 2)
    await store.write(async (tx) => {
      await putLocal(tx, PAIR, rowOf(4, 2, { hash: 'other', itemId: null }))
      await setLocalHash(tx, PAIR, { id: 5, stat: { ...STAT, ino: '5' }, hash: 'new', sha256: 'new' })
      await putLocal(tx, PAIR, rowOf(7, 3))
    })
    assert.deepEqual(await store.seenFolder(PAIR, 2), noted)
  }))

test('a transaction that fails takes nothing away', () =>
  withFolders(async (store) => {
    const failing = store.write(async (tx) => {
      await putLocal(tx, PAIR, rowOf(9, 2))
      throw new Error('no')
    })
    await assert.rejects(failing, /no/)
    assert.ok(await store.seenFolder(PAIR, 2))
  }))

test('nothing is noted of a folder with something that cannot be read', () =>
  withFolders(async (store) => {
    await store.write(async (tx) => {
      await putLocal(tx, PAIR, rowOf(4, 2, { unreadable: 'why' }))
      await noteSeen(tx, PAIR, [2])
    })
    assert.equal(await store.seenFolder(PAIR, 2), undefined)
  }))

test('a folder that is not kept in step any more leaves nothing noted', () =>
  withFolders(async (store) => {
    await store.removeFolderPair(PAIR)
    assert.equal(await store.seenFolder(PAIR, 2), undefined)
  }))
