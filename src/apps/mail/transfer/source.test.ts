import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openSource } from './source.ts'

let home: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-source-'))
})

afterEach(() => rmSync(home, { recursive: true, force: true }))

function put(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), content)
}

const message = (text: string): string =>
  `Received: by x; Mon, 7 Nov 2022 10:00:01 +0000\nDate: Mon, 7 Nov 2022 09:00:00 +0000\nSubject: ${text}\n\n${text}\n`
const mbox = (...texts: string[]): string =>
  texts.map((text) => `From - Mon Nov  7 10:00:00 2022\n${message(text)}\n`).join('')

/** Messages as `subject: labels`, and what was not read. */
async function readAll(folder: string) {
  const raws = new Map<string, string>()
  const messages: string[] = []
  const damaged: { place: string; reason: string }[] = []
  const ignored: { place: string; reason: string }[] = []
  const reasons: Record<string, number> = {}
  for await (const item of (await openSource({ path: join(home, folder) })).items()) {
    if (item.type === 'damaged') damaged.push({ place: item.place, reason: item.reason })
    else if (item.type === 'ignored') {
      ignored.push({ place: item.place, reason: item.reason })
      reasons[item.reason] = (reasons[item.reason] ?? 0) + 1
    } else {
      const text = Buffer.from(item.raw).toString()
      const subject = /^Subject: (.{0,20})/m.exec(text)?.[1] ?? ''
      raws.set(subject, text)
      messages.push(`${subject}: ${[...item.labelNames, ...item.labelIds].sort().join()}`)
    }
  }
  return { raws, messages: messages.sort(), damaged, ignored, reasons }
}

test('an import of a Thunderbird profile goes by content, takes folders as labels and passes over its indexes', async () => {
  const mork = '// <!-- <mdb:mork:z v="1.4"/> -->\n'
  put('tb/x1.default/prefs.js', 'user_pref("a", 1);\n')
  put('tb/x1.default/global-messages-db.sqlite', 'SQLite format 3\0')
  put('tb/x1.default/Mail/Local Folders/Archive', mbox('old'))
  put('tb/x1.default/Mail/Local Folders/Archive.msf', mork)
  put('tb/x1.default/Mail/Local Folders/Archive.sbd/2019', mbox('a', 'b'))
  put('tb/x1.default/Mail/Local Folders/Trash', '')
  put('tb/x1.default/ImapMail/imap.example.com/INBOX', mbox('in'))
  const report = await readAll('tb')
  assert.deepEqual(report.messages, ['a: Archive/2019', 'b: Archive/2019', 'in: INBOX', 'old: Archive'])
  assert.deepEqual(
    [report.damaged, report.reasons],
    [[], { 'no mail': 1, 'a database': 1, "Thunderbird's index of a folder": 1, empty: 1 }],
  )
  assert.deepEqual(
    report.ignored.find(({ reason }) => reason.startsWith('Thunderbird'))?.place,
    join(home, 'tb/x1.default/Mail/Local Folders/Archive.msf'),
  )
})

test('an import of Apple Mail reads .mbox folders and .emlx to the byte', async () => {
  const text = message('apple')
  const emlx = (content: string): string =>
    `${Buffer.byteLength(content)}      \n${content}<?xml version="1.0"?><plist><dict/></plist>\n`
  const data = 'V10/0F0E0D0C-0B0A-4908-8706-050403020100/Work.mbox/11111111-2222-4333-8444-555555555555/Data'
  put(`apple/${data}/1/Messages/17.emlx`, emlx(text))
  put(
    `apple/${data}/Messages/18.partial.emlx`,
    '99999\nSubject: cut\nDate: Mon, 7 Nov 2022 09:00:00 +0000\n\n',
  )
  put('apple/Old.mbox/mbox', mbox('older'))
  put('apple/Old.mbox/table_of_contents', '\0\0\0')
  const report = await readAll('apple')
  assert.deepEqual(report.messages, ['apple: Work', 'older: Old'])
  assert.deepEqual(
    report.damaged.map(({ reason }) => reason),
    ['it is shorter than its first line says'],
  )
  assert.equal(report.raws.get('apple'), text)
})

test('an import of messages under any name takes mail, nested Maildirs and .gz, and leaves notes and programs alone', async () => {
  put('any/cur/mail', message('maildir'))
  put('any/Clients/new/1.x', message('nested'))
  put('any/Clients/tmp/2.x', message('unfinished'))
  put('any/letters/one.txt', message('named .txt'))
  put('any/letters/two.eml.gz', gzipSync(message('packed')))
  put('any/letters/box.gz', gzipSync(mbox('p1', 'p2')))
  put('any/notes.txt', 'Note: buy milk\nDate: today\n\nand bread\n')
  put('any/config.yaml', 'from: here\nsteps:\n - to: there\n')
  put('any/take.zip', 'PK\u0003\u0004rest')
  const report = await readAll('any')
  assert.deepEqual(report.messages, [
    'maildir: UNREAD',
    'named .txt: letters',
    'nested: Clients,UNREAD',
    'p1: letters/box',
    'p2: letters/box',
    'packed: letters',
  ])
  assert.deepEqual(report.reasons, {
    'no mail': 2,
    'a zip file: unpack it first': 1,
    'mail that was never finished': 1,
  })
})

test('an import takes mail as servers and other programs keep it: packed, with encoded names, without dates between', async () => {
  put('kept/cur/1667815201.M1P2.host,S=300:2,FS', gzipSync(message('packed in a Maildir')))
  put('kept/cur/2.x;2,S', message('without colons'))
  put('kept/.Entw&APw-rfe.R&D-plans/cur/3.x:2,S', message('in a draft folder'))
  put('kept/letter.eml', gzipSync(message('packed, named .eml')))
  put('kept/._letter.eml', '\u0000\u0005\u0016\u0007\u0000\u0002\u0000\u0000Mac OS X')
  put('kept/marked.txt', `\ufeff${message('with a mark')}`)
  put('kept/ImapMail/imap.example.com/Inbox', `From \r\n${message('new style')}\r\n`)
  const report = await readAll('kept')
  assert.deepEqual(report.messages, [
    'in a draft folder: Entwürfe/R&D-plans',
    'new style: Inbox',
    'packed in a Maildir: STARRED',
    'packed, named .eml: ',
    'with a mark: ',
    'without colons: ',
  ])
  assert.deepEqual([report.damaged, report.reasons], [[], { 'what a Mac keeps beside a file': 1 }])
})

test('an import refuses a file that becomes too large when it is unpacked, and one that is cut off', async () => {
  const bomb = Buffer.concat([Buffer.from(mbox('bait')), Buffer.alloc(40_000_000, 'x')])
  put('packed/bomb.mbox.gz', gzipSync(bomb))
  put('packed/cut.eml.gz', gzipSync(message('cut')).subarray(0, 40))
  put('packed/good.eml.gz', gzipSync(message('good')))
  const report = await readAll('packed')
  assert.deepEqual(report.messages, ['good: '])
  assert.equal(report.damaged.length, 2)
  assert.ok(report.damaged.some(({ reason }) => /200 times as large/.test(reason)))
})

test('an import ends in a tree that is too deep, and in a file that is one line', async () => {
  put(`deep/${'d/'.repeat(50)}far.eml`, message('far'))
  put('deep/line.eml', `Subject: ${'x'.repeat(3_000_000)}`)
  put('deep/line', 'y'.repeat(3_000_000))
  const report = await readAll('deep')
  assert.deepEqual([report.messages.length, report.ignored.length, report.damaged.length], [1, 1, 1])
  assert.match(report.damaged[0]!.reason, /more than 40 deep/)
})
