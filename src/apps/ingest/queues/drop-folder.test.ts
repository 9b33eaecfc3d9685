import assert from 'node:assert/strict'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import { FakeClock, systemClock } from '../../../base/clock.ts'
import { FileStore } from '../../../cloud/local-files/client.ts'
import { collect, never } from '../../../cloud/object-store.suite.ts'
import { take, textOf } from '../../../cloud/queue.suite.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import { InboxTables } from '../store/inbox.ts'
import { DropFolder } from './drop-folder.ts'
import { LedgerQueue } from './ledger-queue.ts'

const SETTLE_MS = 2_000

type Site = {
  root: string
  clock: FakeClock
  ledger: Ledger
  inbox: InboxTables
  open(): DropFolder
  /** What was announced since the last time, in the order of paths. */
  announced(): Promise<string[]>
  close(): Promise<void>
}

async function openSite(url?: string): Promise<Site> {
  const parent = mkdtempSync(join(tmpdir(), 'tidemark-drop-'))
  const root = join(parent, 'in')
  mkdirSync(root)
  const clock = new FakeClock()
  const ledger = await openLedger(url ?? `sqlite:${join(parent, 'ledger.db')}`, { clock })
  const inbox = await InboxTables.open(ledger)
  const queue = new LedgerQueue({ inbox, pipeline: 'drops', clock })
  return {
    root,
    clock,
    ledger,
    inbox,
    open: () =>
      new DropFolder({
        folder: root,
        pipeline: 'drops',
        inbox,
        clock,
        settleMs: SETTLE_MS,
        onError: (error) => {
          throw error
        },
      }),
    announced: async () => {
      const messages = await queue.receive({ max: 100, waitMs: 0, signal: never() })
      await queue.acknowledge(messages)
      const uris = messages.map((message) => (JSON.parse(textOf(message)) as { uri: string }).uri)
      return uris.map((uri) => uri.slice(`file://${root}/`.length)).sort()
    },
    close: async () => {
      await ledger.close()
      rmSync(parent, { recursive: true, force: true })
    },
  }
}

async function within(fn: (site: Site) => Promise<void>, url?: string): Promise<void> {
  const site = await openSite(url)
  try {
    await fn(site)
  } finally {
    await site.close()
  }
}

describe('a drop folder', () => {
  test('announces a file once its size and time stay the same, and not before', () =>
    within(async ({ root, clock, open, announced }) => {
      const folder = open()
      writeFileSync(join(root, 'a.csv'), 'one')
      assert.deepEqual(await folder.look(), { files: 1, announced: 0, growing: 1 })
      await clock.advance(SETTLE_MS)
      appendFileSync(join(root, 'a.csv'), ' and more')
      assert.deepEqual(await folder.look(), { files: 1, announced: 0, growing: 1 })
      await clock.advance(SETTLE_MS - 1)
      assert.equal((await folder.look()).announced, 0)
      await clock.advance(1)
      assert.equal((await folder.look()).announced, 1)
      assert.deepEqual(await announced(), ['a.csv'])
      await clock.advance(SETTLE_MS)
      assert.deepEqual(await folder.look(), { files: 1, announced: 0, growing: 0 })
    }))

  test('announces a file once, whatever process looks and however often it is started anew', () =>
    within(async ({ root, clock, open, announced }) => {
      mkdirSync(join(root, 'deep/er'), { recursive: true })
      writeFileSync(join(root, 'deep/er/a b+%.json'), '{}')
      const [first, second] = [open(), open()]
      await Promise.all([first.look(), second.look()])
      await clock.advance(SETTLE_MS)
      const looks = await Promise.all([first.look(), second.look()])
      assert.equal(looks[0].announced + looks[1].announced, 1)
      assert.deepEqual(await announced(), ['deep/er/a b+%.json'])
      const third = open()
      await third.look()
      await clock.advance(SETTLE_MS)
      assert.equal((await third.look()).announced, 0)
    }))

  test('announces what is replaced, and what comes back under the same name', () =>
    within(async ({ root, clock, open, announced }) => {
      const folder = open()
      const settle = async (): Promise<string[]> => {
        await folder.look()
        await clock.advance(SETTLE_MS)
        await folder.look()
        return announced()
      }
      writeFileSync(join(root, 'a'), 'one')
      assert.deepEqual(await settle(), ['a'])
      writeFileSync(join(root, '.new'), 'two')
      renameSync(join(root, '.new'), join(root, 'a'))
      assert.deepEqual(await settle(), ['a'])
      rmSync(join(root, 'a'))
      assert.deepEqual(await settle(), [])
      writeFileSync(join(root, 'a'), 'two')
      assert.deepEqual(await settle(), ['a'])
    }))

  test('leaves unfinished names, hidden ones and links alone', () =>
    within(async ({ root, clock, open, announced }) => {
      mkdirSync(join(root, '.git'))
      for (const name of ['a.part', 'b.tmp', '.c', '.git/d', 'e']) writeFileSync(join(root, name), 'x')
      symlinkSync('/etc', join(root, 'etc'))
      symlinkSync('/etc/hostname', join(root, 'name'))
      const folder = open()
      await folder.look()
      await clock.advance(SETTLE_MS)
      await folder.look()
      assert.deepEqual(await announced(), ['e'])
    }))

  test('announces a version by which the file can be read', () =>
    within(async ({ root, clock, open, inbox }) => {
      writeFileSync(join(root, 'a\nb'), 'hello')
      const folder = open()
      await folder.look()
      await clock.advance(SETTLE_MS)
      await folder.look()
      const [message] = await take(new LedgerQueue({ inbox, pipeline: 'drops', clock }), 1)
      const said = JSON.parse(textOf(message!)) as { uri: string; version: string; size: number }
      assert.equal(said.size, 5)
      const store = new FileStore({ root })
      const options = { version: { id: said.version }, fromByte: 0, signal: never() }
      assert.equal((await collect((await store.read(said.uri, options)).bytes)).toString(), 'hello')
    }))

  test('forgets nothing where the folder cannot be seen', () =>
    within(async ({ root, clock, open, announced }) => {
      writeFileSync(join(root, 'a'), 'one')
      const folder = open()
      await folder.look()
      await clock.advance(SETTLE_MS)
      await folder.look()
      assert.deepEqual(await announced(), ['a'])
      renameSync(root, `${root}-away`)
      assert.equal((await folder.look()).files, 0)
      renameSync(`${root}-away`, root)
      await folder.look()
      await clock.advance(SETTLE_MS)
      assert.equal((await folder.look()).announced, 0)
    }))

  test('announces many files on PostgreSQL, each once', async () => {
    const database = await freshDatabase()
    await within(async ({ root, clock, open, announced }) => {
      const names = Array.from({ length: 250 }, (_, at) => `file-${String(at).padStart(3, '0')}`)
      for (const name of names) writeFileSync(join(root, name), name)
      const [first, second] = [open(), open()]
      await Promise.all([first.look(), second.look()])
      await clock.advance(SETTLE_MS)
      await Promise.all([first.look(), second.look()])
      const all = [...(await announced()), ...(await announced()), ...(await announced())]
      assert.deepEqual(all.sort(), names)
    }, database.url)
    await database.drop()
  })

  test('looks by itself from its start on, and no more after its end', () =>
    within(async ({ root, inbox }) => {
      writeFileSync(join(root, 'there'), 'x')
      const options = { folder: root, pipeline: 'drops', inbox, clock: systemClock, settleMs: 1, scanMs: 20 }
      const errors: unknown[] = []
      const folder = new DropFolder({ ...options, onError: (error) => errors.push(error) })
      const queue = new LedgerQueue({ inbox, pipeline: 'drops', clock: systemClock, pollMs: 20 })
      folder.start()
      assert.match(textOf((await take(queue, 1))[0]!), /there/)
      mkdirSync(join(root, 'new'))
      writeFileSync(join(root, 'new/later'), 'x')
      assert.match(textOf((await take(queue, 1))[0]!), /later/)
      await folder.close()
      assert.deepEqual(errors, [])
    }))
})
