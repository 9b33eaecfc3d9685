import assert from 'node:assert/strict'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { createRoot, type Root } from './local/root.ts'
import { lookAt, plainStat } from './local/stat.ts'
import { moveToTrash } from './local/trash.ts'
import { listTrash } from './local/trash-bin.ts'
import { FileStore } from './store/file-store.ts'
import { tidyTrash } from './work.ts'

const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 10, 16, 12)

let folder: string
let root: Root
let ledger: Ledger
let store: FileStore

beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-trash-')))
  root = await createRoot(join(folder, 'root'), { markerId: 'm', drive: 'docs', createdAt: '2026' })
  ledger = await openLedger('sqlite::memory:')
  store = await FileStore.open(ledger)
  const row = { name: 'docs', account: 'ann@example.com', driveId: 'd', driveType: 'personal' }
  const place = { rootItemId: 'r', root: root.path, markerId: 'm', machine: 'here', settings: '{}' }
  await store.addFolderPair({ ...row, ...place }, plainStat(root.look))
})
afterEach(async () => {
  await ledger.close()
  rmSync(folder, { recursive: true, force: true })
})

function trash(name: string, atMs: number, bytes = 10): void {
  writeFileSync(join(root.path, name), 'x'.repeat(bytes))
  moveToTrash(root, [name], plainStat(lookAt(join(root.path, name))!), { atMs })
}

const left = (): string[] => [...listTrash(root)].map(({ origin }) => origin.join('/')).sort()

/** A look at the trash, as a sync ends with; by a clock that says this. */
async function look(nowMs: number, trashBytesMax = Number.POSITIVE_INFINITY): Promise<string[]> {
  const files = { store, settings: { trashDays: 30, trashBytesMax } } as never
  await tidyTrash({ files }, { name: 'docs', root: root.path, markerId: 'm' }, nowMs)
  return left()
}

test('a clock that is wrong for a while, in either direction, empties nothing', async () => {
  trash('before', NOW)
  await look(NOW)
  // What is deleted while it is 40 days back bears that date.
  trash('back', NOW - 40 * DAY_MS)
  assert.deepEqual(await look(NOW - 40 * DAY_MS), ['back', 'before'])
  assert.deepEqual(await look(NOW), ['back', 'before'])
})

test('a clock that is wrong at every start of the machine, and right soon after, empties nothing', async () => {
  trash('only copy', NOW)
  await look(NOW)
  for (const wrongMs of [0, NOW - 3 * DAY_MS, NOW + 365 * DAY_MS]) {
    for (let starts = 0; starts < 100; starts++) {
      assert.deepEqual(await look(wrongMs), ['only copy'])
      assert.deepEqual(await look(NOW), ['only copy'])
    }
  }
  // The days that it is there count as ever.
  for (let day = 0; day < 30; day++) assert.deepEqual(await look(NOW + day * DAY_MS), ['only copy'])
  assert.deepEqual(await look(NOW + 30 * DAY_MS), [])
})

test('what was seen to lie there for its time goes, and not what came since', async () => {
  trash('old', NOW)
  for (let day = 0; day < 20; day++) assert.deepEqual(await look(NOW + day * DAY_MS), ['old'])
  trash('young', NOW + 20 * DAY_MS)
  for (let day = 20; day < 30; day++) assert.deepEqual(await look(NOW + day * DAY_MS), ['old', 'young'])
  assert.deepEqual(await look(NOW + 31 * DAY_MS), ['young'])
})

test('what comes to the trash of a day that is long past is as young as it is', async () => {
  trash('old', NOW)
  for (let day = 0; day < 30; day++) await look(NOW + day * DAY_MS)
  trash('late', NOW)
  assert.deepEqual(await look(NOW + 31 * DAY_MS), ['late', 'old'])
})

test('it has no limit of size, but where somebody has set one: then the oldest go', async () => {
  trash('first', NOW, 600)
  await look(NOW)
  trash('second', NOW + DAY_MS, 600)
  assert.deepEqual(await look(NOW + DAY_MS), ['first', 'second'])
  assert.deepEqual(await look(NOW + DAY_MS, 1_000), ['second'])
})

test('it is emptied when somebody says so, and by age only what was seen there for so long', async () => {
  trash('a', NOW)
  await look(NOW)
  const files = { store, settings: { trashDays: 30, trashBytesMax: Number.POSITIVE_INFINITY } } as never
  const pair = { name: 'docs', root: root.path, markerId: 'm' }
  const limits = { bytesMax: Number.POSITIVE_INFINITY }
  await tidyTrash({ files }, pair, NOW + 400 * DAY_MS, { ...limits, keepMs: 7 * DAY_MS })
  assert.deepEqual(left(), ['a'])
  await tidyTrash({ files }, pair, NOW, { ...limits, keepMs: 0 })
  assert.deepEqual(left(), [])
})
