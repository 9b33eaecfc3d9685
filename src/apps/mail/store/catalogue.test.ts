import assert from 'node:assert/strict'
import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type FetchedMessage, madeId } from '../message.ts'
import { ARCHIVE_FORMAT, ArchiveFile } from './archive-file.ts'
import { folderFor, message, optionsFor } from './archive-fixture.suite.ts'
import { ArchiveReader } from './archive-reader.ts'
import { ArchiveWriter } from './archive-writer.ts'
import { CatalogueWriter } from './catalogue.ts'
import { countShards, searchShards } from './search.ts'
import { createFile } from './shard-file.ts'
import { periodOf } from './shard-router.ts'

const monthMs = (month: number): number => Date.UTC(1970, month, 15)
const idOf = (month: number): string => `m${month}`

type Sides = { folder: string; writer: ArchiveWriter; reader: ArchiveReader; again: () => void }

/** An archive by months; `again` opens it as a new process would. */
function sidesFor(context: TestContext, folder = folderFor(context)): Sides {
  const options = optionsFor(folder, { shardBy: 'month' })
  if (!existsSync(join(folder, 'archive.json'))) writeList(folder, [])
  const open = (): Pick<Sides, 'writer' | 'reader'> => ({
    writer: new ArchiveWriter(options),
    reader: new ArchiveReader({ ...options, asks: 'all' }),
  })
  const sides = { folder, ...open(), again: () => {} }
  const close = (): void => {
    sides.reader.close()
    sides.writer.close()
  }
  sides.again = () => {
    close()
    Object.assign(sides, open())
  }
  context.after(close)
  return sides
}

/** `count` shards with a message each, made by copying: as they are after a clean end. */
function manyShards(context: TestContext, count: number): Sides {
  const folder = folderFor(context)
  const template = sidesFor(context)
  store(template.writer, [message('template', { internalMs: 0 })])
  template.again()
  const names = Array.from({ length: count }, (_, month) => {
    const { name } = periodOf(monthMs(month), 'month')
    const file = join(folder, `${name}.db`)
    copyFileSync(join(template.folder, '1970-m01.db'), file)
    const db = new DatabaseSync(file)
    db.exec('PRAGMA synchronous = OFF')
    db.prepare(`UPDATE meta SET value = ? WHERE key = 'name'`).run(name)
    db.prepare('UPDATE messages SET id = ?, thread_id = ?, message_id = ?, internal_ms = ?').run(
      ...[idOf(month), `thread-${month}`, `<${month}@example.com>`, monthMs(month)],
    )
    db.close()
    return name
  })
  writeList(folder, names)
  return sidesFor(context, folder)
}

function writeList(folder: string, names: readonly string[]): void {
  const shards = names.map((name, month) => {
    const { fromMs, toMs } = periodOf(monthMs(month), 'month')
    return { name, fromMs, toMs, made: month + 1, imports: true }
  })
  const { archiveId, account } = optionsFor(folder)
  const list = { format: ARCHIVE_FORMAT, archiveId, account, made: names.length, shards, attachmentFiles: [] }
  writeFileSync(join(folder, 'archive.json'), JSON.stringify(list))
}

function store(writer: ArchiveWriter, messages: readonly FetchedMessage[]): string[] {
  return writer.store(messages, 1).map((answer) => {
    if ('error' in answer) throw answer.error
    return answer.outcome.status
  })
}

/** How many connections `work` opens. */
function opensOf(shards: { opens: number }, work: () => void): number {
  const before = shards.opens
  work()
  return shards.opens - before
}

/** Connections that each look-up opens in an archive of so many shards, by a process that just began. */
function lookUps(context: TestContext, count: number): Record<string, number> {
  const sides = manyShards(context, count)
  sides.writer.check()
  sides.again()
  const { reader, writer } = sides
  const last = count - 1
  const opens = {
    message: opensOf(reader.shards, () => assert.equal(reader.message(idOf(0))?.id, idOf(0))),
    absent: opensOf(reader.shards, () => assert.deepEqual(reader.stored({ ids: ['x', 'y', 'z'] }), [])),
    thread: opensOf(reader.shards, () => assert.equal(reader.thread(`thread-${last}`).length, 1)),
    messageId: opensOf(reader.shards, () => {
      const { hits } = searchShards(reader.shards, { is: 'message-id', value: '3@example.com' })
      assert.deepEqual(
        hits.map(({ message: { id } }) => id),
        [idOf(3)],
      )
    }),
    imports: opensOf(writer.reader, () => {
      const again = message(idOf(2), { internalMs: monthMs(5), source: 'import' })
      const fresh = message('new', { internalMs: monthMs(7), source: 'import' })
      assert.deepEqual(store(writer, [again, fresh]), ['kept', 'added'])
    }),
    changes: opensOf(writer.reader, () => {
      const change = { id: idOf(4), historyId: '200', addLabelIds: ['X'] }
      assert.equal(writer.apply([change], () => true).changed, 1)
    }),
  }
  assert.equal(
    opensOf(reader.shards, () =>
      assert.equal(countShards(reader.shards, { is: 'all' }).messages, count + 1),
    ) <= count,
    true,
  )
  assert.equal(
    opensOf(reader.shards, () => countShards(reader.shards, { is: 'all' })),
    0,
    'shards that were asked a moment ago are opened again',
  )
  return opens
}

test('look-ups by id, thread and Message-ID, imports and changes open no more of 300 shards than of 20', (context) => {
  const few = lookUps(context, 20)
  assert.ok(
    Object.values(few).every((opens) => opens <= 3),
    JSON.stringify(few),
  )
  assert.deepEqual(lookUps(context, 300), few)
})

test('a key that was noted and never stored, as after a crash in between, is in no answer and does no harm', (context) => {
  const { folder, writer, reader } = sidesFor(context)
  store(writer, [message('a', { internalMs: monthMs(0) })])
  const archive = new ArchiveFile(optionsFor(folder))
  const catalogue = new CatalogueWriter(archive)
  catalogue.note(archive.read().shards[0]!, [{ id: 'b', threadId: 'b', messageId: '<b>' }])
  catalogue.close()
  assert.deepEqual(reader.stored({ ids: ['a', 'b'] }), ['a'])
  assert.deepEqual(store(writer, [message('b', { internalMs: monthMs(3) })]), ['added'])
  assert.deepEqual(reader.stored({ ids: ['a', 'b'] }).sort(), ['a', 'b'])
  assert.deepEqual(writer.check().dropped, [])
})

test('a shard that a crash left ahead of the catalogue is brought into it, and no id comes in twice', (context) => {
  const sides = sidesFor(context)
  store(sides.writer, [message('a', { internalMs: monthMs(0) })])
  sides.again()
  // As if the catalogue's last commits were lost in a power cut.
  const db = new DatabaseSync(join(sides.folder, '1970-m01.db'))
  db.exec(`UPDATE messages SET id = 'b'`)
  db.exec(`UPDATE meta SET value = value + 1 WHERE key = 'generation'`)
  db.close()
  assert.deepEqual(sides.reader.stored({ ids: ['b'] }), ['b'])
  const [status] = store(sides.writer, [message('b', { internalMs: monthMs(5), source: 'import' })])
  assert.equal(status, 'kept')
})

for (const [what, harm] of [
  ['lost', (file: string) => rmSync(file)],
  ['damaged', (file: string) => writeFileSync(file, 'no database at all')],
  ['cut off', (file: string) => writeFileSync(file, '')],
] as const) {
  test(`a catalogue that is ${what} is made anew: everything is found, and no id comes in twice`, (context) => {
    const sides = sidesFor(context)
    store(sides.writer, [message('a', { internalMs: monthMs(0) }), message('b', { internalMs: monthMs(1) })])
    sides.reader.close()
    sides.writer.close()
    const file = join(sides.folder, 'catalogue.db')
    for (const end of ['-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
    harm(file)
    const reopened = sidesFor(context, sides.folder)
    assert.equal(reopened.reader.message('a')?.id, 'a')
    const [status] = store(reopened.writer, [message('a', { internalMs: monthMs(9), source: 'import' })])
    assert.equal(status, 'kept')
    reopened.again()
    assert.equal(
      opensOf(reopened.reader.shards, () => assert.deepEqual(reopened.reader.stored({ ids: ['x'] }), [])),
      0,
    )
  })
}

test('a shard of an earlier version, which did not count its transactions, is taken into the catalogue', (context) => {
  const sides = manyShards(context, 3)
  for (const name of ['1970-m01', '1970-m02', '1970-m03']) {
    const db = new DatabaseSync(join(sides.folder, `${name}.db`))
    db.exec(`DELETE FROM meta WHERE key = 'generation'`)
    db.close()
  }
  assert.equal(sides.reader.message(idOf(1))?.id, idOf(1), 'found without a catalogue')
  sides.writer.check()
  sides.again()
  assert.equal(
    opensOf(sides.reader.shards, () => assert.equal(sides.reader.message(idOf(1))?.id, idOf(1))),
    1,
  )
})

test('a shard that is older than what was stored in it names the ids that it lost until they are taken down', (context) => {
  const sides = sidesFor(context)
  const file = join(sides.folder, '1970-m01.db')
  store(sides.writer, [message('a', { internalMs: monthMs(0) })])
  sides.again()
  copyFileSync(file, `${file}.copy`)
  const later = [message('b', { internalMs: monthMs(0) }), message('c', { internalMs: monthMs(0) })]
  store(sides.writer, later)
  sides.reader.close()
  sides.writer.close()
  copyFileSync(`${file}.copy`, file)
  const reopened = sidesFor(context, sides.folder)
  // What is written before anybody looked does not hide it.
  store(reopened.writer, [message('d', { internalMs: monthMs(0) })])
  const { fromMs } = periodOf(monthMs(0), 'month')
  const dropped = ['b', 'c'].map((id) => ({ id, shard: '1970-m01', fromMs }))
  assert.deepEqual(reopened.writer.check().dropped, dropped)
  reopened.again()
  assert.deepEqual(reopened.writer.check().dropped, dropped, 'until they are taken down')
  assert.deepEqual(reopened.reader.stored({ ids: ['a', 'b', 'c', 'd'] }).sort(), ['a', 'd'])
  reopened.writer.takenDown(['b', 'c'])
  assert.deepEqual(reopened.writer.check().dropped, [])
})

test('an imported id whose message is there under the cloud’s is not named as lost', (context) => {
  const sides = sidesFor(context)
  const file = join(sides.folder, '1970-m01.db')
  const { raw } = message('a')
  const made = madeId(raw)
  store(sides.writer, [message(made, { raw, internalMs: monthMs(0), source: 'import' })])
  assert.deepEqual(store(sides.writer, [message('a', { raw, internalMs: monthMs(0) })]), ['updated'])
  sides.again()
  copyFileSync(file, `${file}.copy`)
  store(sides.writer, [message('b', { internalMs: monthMs(0) })])
  sides.reader.close()
  sides.writer.close()
  copyFileSync(`${file}.copy`, file)
  const reopened = sidesFor(context, sides.folder)
  assert.deepEqual(
    reopened.writer.check().dropped.map(({ id }) => id),
    ['b'],
  )
})

test('a new file that takes the place of a crashed one keeps what it has', (context) => {
  const sides = sidesFor(context)
  const { archiveId, account } = optionsFor(sides.folder)
  // Made, and not yet listed, when the process ended.
  createFile(join(sides.folder, '1970-m01.db'), { kind: 'shard', name: '1970-m01', archiveId, account }, 1)
  assert.deepEqual(store(sides.writer, [message('a', { internalMs: monthMs(0) })]), ['added'])
  assert.equal(sides.reader.message('a')?.id, 'a')
})
