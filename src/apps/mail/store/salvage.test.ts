import assert from 'node:assert/strict'
import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openArchive } from './archive.ts'
import {
  archiveFor,
  folderFor,
  message,
  messageWithFile,
  noise,
  optionsFor,
} from './archive-fixture.suite.ts'

const PAGE_BYTES = 4_096
const MESSAGES = 120
const internalMs = Date.UTC(2020, 5, 1)

/** Large enough for its bytes to lie on pages of their own. */
const bodyOf = (n: number): string => Buffer.from(noise(6_000, n + 1)).toString('base64')

const messages = Array.from({ length: MESSAGES }, (_, n) =>
  message(`m${n}`, { body: bodyOf(n), internalMs: internalMs + n * 1_000, historyId: String(100 + n) }),
)

function overwritePage(file: string, page: number): void {
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, Buffer.alloc(PAGE_BYTES, 'junk'), 0, PAGE_BYTES, page * PAGE_BYTES)
  closeSync(descriptor)
}

test('of a damaged file that was set aside, all but what the damage hit is taken over, once', async (context) => {
  const folder = folderFor(context)
  const before = await openArchive(optionsFor(folder))
  await before.store(messages)
  await before.apply([{ id: 'm3', historyId: '900', deletedAtMs: 5_000 }])
  await before.close()
  const file = join(folder, '2020.db')
  const pages = statSync(file).size / PAGE_BYTES
  for (const share of [0.15, 0.3, 0.45, 0.6, 0.75, 0.9]) overwritePage(file, Math.floor(pages * share))

  const archive = await archiveFor(context, { folder })
  const { movedTo } = await archive.setAside('2020')
  assert.ok(movedTo)
  assert.equal((await archive.stored(messages.map(({ id }) => id))).size, 0)
  const [found] = await archive.salvage()
  assert.equal(found!.file, movedTo)
  assert.ok(found!.saved >= MESSAGES - 30 && found!.saved < MESSAGES, `saved ${found!.saved}`)
  assert.equal(found!.saved + found!.lost, MESSAGES)
  const stored = [...(await archive.stored(messages.map(({ id }) => id)))]
  assert.equal(stored.length, found!.saved)
  assert.ok((await archive.prove(stored)).every(({ state }) => state === 'proven'))
  const deleted = await archive.message('m3')
  assert.deepEqual([deleted?.deletedAtMs, deleted?.historyId], [5_000, '900'])

  assert.deepEqual(
    (await archive.salvage()).map(({ saved }) => saved),
    [0],
  )
})

test('contents of attachments are taken over before the messages that need them', async (context) => {
  const folder = folderFor(context)
  const before = await openArchive(optionsFor(folder))
  const withFile = messageWithFile('f1', noise(200_000), { internalMs })
  await before.store([withFile])
  await before.setAside('attachments-1')
  await before.setAside('2020')
  assert.equal(await before.message('f1'), null)
  assert.deepEqual((await before.salvage()).map(({ saved, lost }) => [saved, lost]).at(-1), [1, 0])
  assert.deepEqual(Buffer.from(await before.raw('f1')), Buffer.from(withFile.raw))
  await before.close()
})

test('a file that cannot be opened, or is of another archive, is left alone', async (context) => {
  const folder = folderFor(context)
  const first = await openArchive(optionsFor(folder))
  await first.store(messages.slice(0, 3))
  await first.close()
  overwritePage(join(folder, '2020.db'), 0)
  const archive = await archiveFor(context, { folder })
  await archive.setAside('2020')
  assert.deepEqual(
    (await archive.salvage()).map(({ saved, lost }) => [saved, lost]),
    [[0, 0]],
  )
})
