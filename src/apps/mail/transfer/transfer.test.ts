import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { FakeClock } from '../../../base/clock.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { generateMailbox } from '../../../sim/gmail/generate.ts'
import type { FetchedMessage, StoredMessage } from '../message.ts'
import { openArchive } from '../store/archive.ts'
import type { Archive } from '../store/contract.ts'
import { exportMessages } from './export.ts'
import type { ExportFormat } from './formats.ts'
import { type ImportReport, importMessages } from './import.ts'
import { openSource } from './source.ts'
import { targetError } from './target.ts'

const NOW_MS = Date.UTC(2024, 5, 1)
const clock = new FakeClock(NOW_MS)
const LABELS = new Map([['work, plans', 'Label_7']])
const LABEL_NAMES = new Map([['Label_7', 'Work, Plans']])

let home: string
let opened: Archive[]

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-transfer-'))
  opened = []
})

afterEach(async () => {
  for (const archive of opened) await archive.close()
  rmSync(home, { recursive: true, force: true })
})

async function newArchive(name: string): Promise<Archive> {
  const archive = await openArchive({
    folder: join(home, name),
    account: 'ada@example.com',
    archiveId: name,
    shardBy: 'year',
    shardBytesMax: 1e9,
    now: () => NOW_MS,
  })
  opened.push(archive)
  return archive
}

async function importFrom(archive: Archive, path: string, signal?: AbortSignal): Promise<ImportReport> {
  const source = await openSource({ path })
  return await importMessages({ archive, source, clock, labels: LABELS, ...(signal && { signal }) })
}

const exportTo = (archive: Archive, format: ExportFormat, target: string, force = false) =>
  exportMessages({
    archive,
    query: { is: 'all' },
    format,
    target,
    force,
    now: NOW_MS,
    labels: LABELS,
    labelNames: LABEL_NAMES,
  })

async function all(archive: Archive): Promise<StoredMessage[]> {
  const found: StoredMessage[] = []
  let cursor: string | undefined
  do {
    const page = await archive.search(
      { is: 'all' },
      { order: 'date', limit: 100, now: NOW_MS, ...(cursor && { cursor }) },
    )
    found.push(...page.hits.map(({ message }) => message))
    cursor = page.next ?? undefined
  } while (cursor)
  return found
}

const hashes = (messages: readonly { sha256: string }[]): string[] =>
  messages.map(({ sha256 }) => sha256).sort()
const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')

const MESSAGES = 160

let made: readonly FetchedMessage[] | undefined

/** Generated mail of every kind, and lines that an mbox must quote. */
function generated(): readonly FetchedMessage[] {
  made ??= generate()
  return made
}

function generate(): FetchedMessage[] {
  const mailbox = generateMailbox({
    address: 'ada@example.com',
    seed: 3,
    messages: MESSAGES,
    fromMs: Date.UTC(2020, 0),
    toMs: Date.UTC(2022, 0),
    now: () => NOW_MS,
  })
  const messages = mailbox.newest(MESSAGES).map(
    (message, place): FetchedMessage => ({
      id: (0x17274e1a2b3c4000n + BigInt(place)).toString(16),
      threadId: (0x17274e1a2b3c4000n + BigInt(place - (place % 3))).toString(16),
      historyId: '5',
      labelIds: place % 2 === 0 ? ['INBOX', 'Label_7', 'UNREAD'] : ['STARRED', 'DRAFT'],
      internalMs: Math.floor(message.internalMs / 1_000) * 1_000,
      raw: message.raw(),
      source: 'gmail',
    }),
  )
  const odd = [
    'A: b\n\n>From x\nFrom y\n>>From z',
    ' folded: first',
    'From x@y Mon Nov  7 10:00:00 2022\nA: b\n',
    'A: b\r\n\r\n\r\n\r\n',
  ]
  for (const [place, text] of odd.entries()) {
    messages[place] = { ...messages[place]!, raw: Buffer.from(text) }
  }
  return messages
}

describe('mail that is exported and imported again', () => {
  for (const format of ['mbox', 'eml', 'maildir'] as const) {
    test(`as ${format} is the same to the byte`, async () => {
      const messages = generated()
      const archive = await newArchive('one')
      await archive.store(messages)
      const exported = await exportTo(archive, format, join(home, 'out'))
      assert.deepEqual(
        [exported.messages, exported.failed, exported.unsearched.length],
        [messages.length, 0, 0],
      )
      assert.equal(existsSync(join(home, 'out.partial')), false)

      const other = await newArchive('two')
      const report = await importFrom(other, join(home, 'out'))
      // Without an id, the same bytes are the same message.
      const distinct = new Set(messages.map(({ raw }) => sha256(raw))).size
      const expected = format === 'mbox' ? messages.length : distinct
      assert.deepEqual(
        [report.read, report.added, report.damaged, report.ignored],
        [messages.length, expected, 0, 0],
      )
      const imported = await all(other)
      assert.deepEqual([...new Set(hashes(imported))], [...new Set(hashes(await all(archive)))])
      assert.ok(imported.every(({ source }) => source === 'import'))

      const again = await importFrom(other, join(home, 'out'))
      assert.deepEqual([again.read, again.added, again.known], [messages.length, 0, messages.length])
    })
  }

  test('as mbox keeps ids, threads, labels and times', async () => {
    const messages = generated()
    const archive = await newArchive('one')
    await archive.store(messages)
    await exportTo(archive, 'mbox', join(home, 'out.mbox'))
    const other = await newArchive('two')
    await importFrom(other, join(home, 'out.mbox'))
    const facts = ({ id, threadId, labelIds, internalMs }: StoredMessage) => ({
      id,
      threadId,
      labelIds: labelIds.toSorted(),
      internalMs,
    })
    const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1)
    assert.deepEqual((await all(other)).map(facts).sort(byId), (await all(archive)).map(facts).sort(byId))
  })

  test('as Maildir keeps flags', async () => {
    const archive = await newArchive('one')
    await archive.store(generated().slice(0, 2))
    await exportTo(archive, 'maildir', join(home, 'out'))
    const flags = readdirSync(join(home, 'out/cur')).map((name) => name.split(':2,')[1])
    assert.deepEqual(flags.sort(), ['', 'DFS'])
    const other = await newArchive('two')
    await importFrom(other, join(home, 'out'))
    assert.deepEqual((await all(other)).map(({ labelIds }) => labelIds.join()).sort(), [
      'DRAFT,STARRED',
      'UNREAD',
    ])
  })
})

describe('an import', () => {
  const message = (text: string): string =>
    `Received: by x; Mon, 7 Nov 2022 10:00:01 +0000\nDate: Mon, 7 Nov 2022 09:00:00 +0000\nSubject: ${text}\n\n${text}\n`

  test('of files without ids names them by their bytes, and takes the time from their headers or the file', async () => {
    mkdirSync(join(home, 'mail/deep'), { recursive: true })
    writeFileSync(join(home, 'mail/a.eml'), message('a'))
    writeFileSync(join(home, 'mail/deep/b.EML'), 'Date: Sun, 6 Nov 2022 09:00:00 +0000\n\nb')
    writeFileSync(join(home, 'mail/c.eml'), 'Subject: c\n\nc')
    utimesSync(join(home, 'mail/c.eml'), 1_600_000_000, 1_600_000_000)
    writeFileSync(join(home, 'mail/notes.txt'), 'no mail')
    const archive = await newArchive('one')
    const report = await importFrom(archive, join(home, 'mail'))
    assert.deepEqual([report.read, report.added, report.ignored], [3, 3, 1])
    const found = (await all(archive)).map(({ id, threadId, internalMs }) => [
      id === threadId,
      id.slice(0, 7),
      internalMs,
    ])
    assert.deepEqual(found, [
      [true, 'import-', Date.UTC(2022, 10, 7, 10, 0, 1)],
      [true, 'import-', Date.UTC(2022, 10, 6, 9)],
      [true, 'import-', 1_600_000_000_000],
    ])
    const id = `import-${sha256(message('a').replaceAll('\n', '\r\n')).slice(0, 24)}`
    assert.equal(Buffer.from(await archive.raw(id)).toString(), message('a'))
    assert.equal((await archive.prove([id]))[0]?.state, 'imported')
  })

  test('reports what it cannot read, and takes the rest', async () => {
    mkdirSync(join(home, 'mail'))
    writeFileSync(join(home, 'mail/empty.eml'), '')
    symlinkSync(join(home, 'nowhere'), join(home, 'mail/broken.eml'))
    writeFileSync(join(home, 'mail/good.eml'), message('good'))
    writeFileSync(
      join(home, 'mail/bad.mbox'),
      `rubbish\nFrom a@b Mon Nov  7 10:00:00 2022\n${message('in mbox')}`,
    )
    const archive = await newArchive('one')
    const told: string[] = []
    const source = await openSource({ path: join(home, 'mail') })
    const report = await importMessages({
      archive,
      source,
      clock,
      onDamaged: ({ place }) => told.push(place),
    })
    assert.deepEqual([report.added, report.damaged, report.ignored], [2, 2, 1])
    assert.deepEqual(
      report.damagedPlaces
        .map(({ place, reason }) => [place.slice(home.length), reason.split(':')[0]])
        .sort(),
      [
        ['/mail/bad.mbox, byte 0', 'the file does not begin with a "From " line'],
        ['/mail/empty.eml', 'the file is empty'],
      ],
    )
    assert.equal(told.length, 2)
  })

  test('waits for no pipe, reads no device, and goes on past what cannot be opened', async () => {
    mkdirSync(join(home, 'mail'))
    execFileSync('mkfifo', ['pipe.mbox', 'pipe.eml'], { cwd: join(home, 'mail') })
    symlinkSync('/dev/zero', join(home, 'mail/endless.mbox'))
    symlinkSync(join(home, 'nowhere'), join(home, 'mail/broken.mbox'))
    symlinkSync(home, join(home, 'mail/folder.mbox'))
    writeFileSync(join(home, 'mail/good.eml'), message('good'))
    const report = await importFrom(await newArchive('one'), join(home, 'mail'))
    assert.deepEqual([report.added, report.damaged], [1, 0])
    assert.deepEqual(
      report.ignoredPlaces
        .map(({ place, reason }) => [place.slice(home.length + 6), reason.split(':')[0]])
        .sort(),
      [
        ['broken.mbox', 'a link, which is not followed'],
        ['endless.mbox', 'a link, which is not followed'],
        ['folder.mbox', 'a link, which is not followed'],
        ['pipe.eml', 'it is no file that holds mail'],
        ['pipe.mbox', 'it is no file that holds mail'],
      ],
    )
  })

  test('of a Maildir takes flags and subfolders', async () => {
    for (const folder of ['cur', 'new', 'tmp', '.Work.Plans/cur'])
      mkdirSync(join(home, 'Maildir', folder), { recursive: true })
    writeFileSync(join(home, 'Maildir/cur/1.x:2,FS'), message('1'))
    writeFileSync(join(home, 'Maildir/new/2.x'), message('2'))
    writeFileSync(join(home, 'Maildir/tmp/3.x'), message('unfinished'))
    writeFileSync(join(home, 'Maildir/.Work.Plans/cur/4.x:2,ST'), message('4'))
    const archive = await newArchive('one')
    const report = await importFrom(archive, join(home, 'Maildir'))
    assert.equal(report.added, 3)
    const labels = (await all(archive)).map(({ subject, labelIds }) => [subject, labelIds.toSorted().join()])
    assert.deepEqual(labels.sort(), [
      ['1', 'STARRED'],
      ['2', 'UNREAD'],
      ['4', 'TRASH,Work/Plans'],
    ])
  })

  test('that was stopped goes on where it was', async () => {
    const messages = generated()
    const archive = await newArchive('one')
    await archive.store(messages)
    await exportTo(archive, 'mbox', join(home, 'out'))
    const other = await newArchive('two')
    const stop = new AbortController()
    const source = await openSource({ path: join(home, 'out') })
    const stopped = importMessages({
      archive: other,
      source,
      clock,
      signal: stop.signal,
      onProgress: () => stop.abort(new Error('stopped')),
    })
    await assert.rejects(stopped, /stopped/)
    const report = await importFrom(other, join(home, 'out'))
    assert.ok(report.known >= 100 && report.added > 0)
    assert.equal(report.known + report.added, messages.length)
    assert.deepEqual(hashes(await all(other)), hashes(await all(archive)))
  })

  test('leaves alone what came from the cloud', async () => {
    const [first] = generated().slice(10)
    const archive = await newArchive('one')
    await archive.store([first!])
    await exportTo(archive, 'mbox', join(home, 'out'))
    const report = await importFrom(archive, join(home, 'out'))
    assert.deepEqual([report.added, report.known], [0, 1])
    assert.equal((await archive.message(first!.id))?.source, 'gmail')
  })

  test('of files without ids does not bring in again what the archive has from the cloud', async () => {
    const [first] = generated().filter(({ raw }) =>
      /^message-id:/im.test(Buffer.from(raw).toString('latin1')),
    )
    const archive = await newArchive('one')
    await archive.store([first!])
    await exportTo(archive, 'eml', join(home, 'out'))
    const report = await importFrom(archive, join(home, 'out'))
    assert.deepEqual([report.read, report.added, report.known], [1, 0, 1])
    assert.equal((await all(archive)).length, 1)
  })

  test('of a message that lies in several folders has it once, with the labels of all', async () => {
    const raw = 'Subject: twice\nDate: Mon, 7 Nov 2022 09:00:00 +0000\n\nx\n'
    for (const name of ['Inbox', 'Clients', 'Trash']) {
      mkdirSync(join(home, 'tree', name), { recursive: true })
      writeFileSync(join(home, 'tree', name, '1.eml'), raw)
    }
    mkdirSync(join(home, 'later/Plans'), { recursive: true })
    writeFileSync(join(home, 'later/Plans/1.eml'), raw)
    const archive = await newArchive('one')
    const report = await importFrom(archive, join(home, 'tree'))
    assert.deepEqual([report.read, report.added, report.known], [3, 1, 2])
    await importFrom(archive, join(home, 'later'))
    const [message, ...others] = await all(archive)
    assert.deepEqual(others, [])
    for (const label of ['INBOX', 'Clients', 'Plans']) assert.ok(message!.labelIds.includes(label), label)
  })

  test('from something that is no mail is refused', async () => {
    writeFileSync(join(home, 'picture.png'), '\x89PNG\r\n')
    await assert.rejects(openSource({ path: join(home, 'picture.png') }), UsageError)
    await assert.rejects(openSource({ path: join(home, 'nowhere') }), UsageError)
  })
})

describe('an export', () => {
  test('has only what the query finds', async () => {
    const messages = generated()
    const archive = await newArchive('one')
    await archive.store(messages)
    const report = await exportMessages({
      archive,
      query: { is: 'label', name: 'Work, Plans' },
      format: 'eml',
      target: join(home, 'out'),
      now: NOW_MS,
      labels: LABELS,
    })
    assert.equal(report.messages, messages.filter(({ labelIds }) => labelIds.includes('Label_7')).length)
    assert.equal(globSync('**/*.eml', { cwd: join(home, 'out') }).length, report.messages)
  })

  test('goes on where the bytes of a message cannot be read, and names it', async () => {
    const content = Buffer.alloc(30_000, 7).toString('base64').replace(/.{76}/g, '$&\r\n')
    const head = 'Subject: file\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n'
    const [first, second] = generated()
    const archive = await newArchive('one')
    await archive.store([
      { ...first!, id: '17aa', raw: Buffer.from(head + content) },
      { ...second!, id: '17ab' },
    ])
    await archive.close()
    for (const file of globSync('one/attachments*', { cwd: home })) rmSync(join(home, file))
    const report = await exportTo(await newArchive('one'), 'mbox', join(home, 'out'))
    assert.deepEqual([report.messages, report.failed, report.failures[0]?.id], [1, 1, '17aa'])
  })

  test('overwrites nothing unless it is told to', async () => {
    const archive = await newArchive('one')
    const messages = generated().slice(0, 3)
    await archive.store(messages)
    writeFileSync(join(home, 'file'), 'precious')
    mkdirSync(join(home, 'folder'))
    writeFileSync(join(home, 'folder/file'), 'precious')
    for (const [format, target] of [
      ['mbox', 'file'],
      ['mbox', 'folder'],
      ['eml', 'folder'],
      ['maildir', 'folder'],
      ['eml', 'file'],
      ['mbox', 'no/such/folder'],
      ['mbox', 'file/within'],
    ] as const) {
      await assert.rejects(exportTo(archive, format, join(home, target)), UsageError)
    }
    assert.equal(readFileSync(join(home, 'file'), 'latin1'), 'precious')
    await exportTo(archive, 'mbox', join(home, 'file'), true)
    assert.ok(readFileSync(join(home, 'file'), 'latin1').startsWith('From '))
    for (const format of ['eml', 'maildir'] as const) {
      for (const _ of ['once', 'twice']) await exportTo(archive, format, join(home, 'folder'), true)
    }
    assert.equal(readFileSync(join(home, 'folder/file'), 'latin1'), 'precious')
    assert.equal(readdirSync(join(home, 'folder/cur')).length, 3)
    assert.equal(globSync('folder/*/*.eml', { cwd: home }).length, 3)
  })

  test('follows no link that lies where it writes', async () => {
    const archive = await newArchive('one')
    const [first] = generated()
    await archive.store([{ ...first!, id: '17aa', labelIds: [], internalMs: Date.UTC(2021, 1, 3) }])
    writeFileSync(join(home, 'victim'), 'precious')
    symlinkSync(join(home, 'victim'), join(home, 'out.mbox.partial'))
    await exportTo(archive, 'mbox', join(home, 'out.mbox'))
    assert.equal(lstatSync(join(home, 'out.mbox')).isFile(), true)
    mkdirSync(join(home, 'folder/tmp'), { recursive: true })
    const name = `${Date.UTC(2021, 1, 3) / 1_000}.17aa.tidemark`
    symlinkSync(join(home, 'victim'), join(home, 'folder/tmp', name))
    await exportTo(archive, 'maildir', join(home, 'folder'), true)
    assert.equal(lstatSync(join(home, 'folder/cur', `${name}:2,S`)).isFile(), true)
    assert.equal(readFileSync(join(home, 'victim'), 'latin1'), 'precious')
  })

  test('follows no linked folder in a folder that it adds to', async () => {
    const archive = await newArchive('one')
    await archive.store(generated().slice(0, 3))
    const { internalMs } = generated()[0]!
    mkdirSync(join(home, 'elsewhere'))
    for (const [format, within] of [
      ['eml', String(new Date(internalMs).getUTCFullYear())],
      ['maildir', 'tmp'],
      ['maildir', 'cur'],
    ] as const) {
      const target = join(home, `${format}-${within}`)
      mkdirSync(target)
      symlinkSync(join(home, 'elsewhere'), join(target, within))
      await assert.rejects(exportTo(archive, format, target, true), { code: 'target-linked' })
      assert.deepEqual(readdirSync(join(home, 'elsewhere')), [], `${format} ${within}`)
    }
  })

  test('that cannot be written says what and why', async () => {
    const archive = await newArchive('one')
    await archive.store(generated().slice(0, 3))
    // A folder in the place of the file: nothing can be written there, whoever asks.
    mkdirSync(join(home, 'out.mbox.partial/within'), { recursive: true })
    await assert.rejects(exportTo(archive, 'mbox', join(home, 'out.mbox')), (error) => {
      assert.ok(error instanceof TidemarkError)
      assert.match(error.message, /out\.mbox cannot be written: /)
      return error.code === 'target-unwritten' && error.hint !== undefined
    })
    const full = Object.assign(new Error('no space'), { code: 'ENOSPC', syscall: 'write' })
    assert.match(String(targetError(full, '/x')), /\/x cannot be written: the disk is full\./)
    assert.equal(targetError('other', '/x'), 'other')
  })

  test('clears away an unfinished one of its own, and nobody else’s', async () => {
    const archive = await newArchive('one')
    await archive.store(generated().slice(0, 3))
    mkdirSync(join(home, 'out.partial'))
    writeFileSync(join(home, 'out.partial/precious'), 'x')
    await assert.rejects(exportTo(archive, 'eml', join(home, 'out')), /in the way/)
    writeFileSync(join(home, 'out.partial/.tidemark-export'), 'x')
    await exportTo(archive, 'eml', join(home, 'out'))
    assert.deepEqual(globSync('out/**/precious', { cwd: home }), [])
  })

  test('that is stopped leaves nothing behind', async () => {
    const archive = await newArchive('one')
    await archive.store(generated())
    for (const format of ['mbox', 'eml', 'maildir'] as const) {
      const stop = new AbortController()
      const options = {
        archive,
        query: { is: 'all' },
        format,
        target: join(home, 'out'),
        now: NOW_MS,
      } as const
      const onProgress = (): void => stop.abort(new Error('stopped'))
      await assert.rejects(exportMessages({ ...options, signal: stop.signal, onProgress }), /stopped/)
      assert.deepEqual(readdirSync(home), ['one'])
    }
  })

  test('gives names that are safe and tell what is in the file, and its time', async () => {
    const archive = await newArchive('one')
    const raw = Buffer.from('Subject: ../../etc/passwd\r\n\r\nx')
    const fetched = generated()[5]!
    await archive.store([
      { ...fetched, id: '17aa', raw, internalMs: Date.UTC(2021, 1, 3) },
      { ...fetched, id: '17ab', raw: Buffer.from('A: b\n\n'), internalMs: Date.UTC(2021, 1, 3) },
    ])
    await exportTo(archive, 'eml', join(home, 'out'))
    assert.deepEqual(globSync('**/*.eml', { cwd: join(home, 'out') }).sort(), [
      '2021/2021-02-03 no subject 17ab.eml',
      '2021/2021-02-03 passwd 17aa.eml',
    ])
    assert.equal(statSync(join(home, 'out/2021/2021-02-03 passwd 17aa.eml')).mtimeMs, Date.UTC(2021, 1, 3))
  })
})
