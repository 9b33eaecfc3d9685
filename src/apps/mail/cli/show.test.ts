import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ESCAPES } from '../../../cli/jobs/jobs.suite.ts'
import { type MailHome, mail, mailHome } from './search.suite.ts'

const AMY = 'amy@example.com'

const RAW = `From: "Carol ${ESCAPES}" <carol@example.com>
To: Amy <amy@example.com>
Message-ID: <plan@example.com>
Subject: =?utf-8?q?The_cost_plan_=1B[2J?=
X-Odd: ${ESCAPES}
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=cut

--cut
Content-Type: multipart/alternative; boundary=alt

--alt
Content-Type: text/plain; charset=utf-8

The text ${ESCAPES}
in two lines
--alt
Content-Type: text/html; charset=utf-8

<p>The <b>HTML</b> ${ESCAPES}</p>
--alt--
--cut
Content-Type: application/pdf
Content-Disposition: attachment; filename="../../etc/passwd"
Content-Transfer-Encoding: base64

aGVsbG8=
--cut
Content-Type: text/csv
Content-Disposition: attachment; filename="numbers.csv"

1,2
--cut--
`

describe('mail show', () => {
  let home: MailHome
  let folder: string
  const message = mail('m1', {
    atMs: Date.UTC(2020, 0, 2, 3, 4, 5),
    raw: RAW,
    labelIds: ['INBOX', 'Label_1'],
  })
  before(async () => {
    home = await mailHome([
      { account: 'aaa@example.com', messages: [] },
      {
        account: AMY,
        labels: [{ id: 'Label_1', name: 'Work' }],
        messages: [
          message,
          mail('m2', { atMs: Date.UTC(2021, 0, 1), raw: 'Subject: plain\n\nonly text', source: 'import' }),
        ],
      },
    ])
    folder = join(home.path, 'saved')
    mkdirSync(folder)
  })
  after(() => home.remove())

  const show = (...args: string[]) => home.run('mail', 'show', ...args)
  const isClean = (text: string): boolean =>
    ['\u001b', '\u0007', '\u202e'].every((char) => !text.includes(char))

  test('the head and the text, with nothing that a terminal would obey', async () => {
    for (const { code, stdout } of [await show('m1'), await home.runOnTerminal(80, 'mail', 'show', 'm1')]) {
      assert.equal(code, 0)
      assert.ok(isClean(stdout))
      assert.match(stdout, /^From: {8}Carol/m)
      assert.match(stdout, /^Subject: {5}The cost plan/m)
      assert.match(stdout, /^Received: {4}2020-01-02T03:04:05\.000Z$/m)
      assert.match(stdout, /^Labels: {6}INBOX, Work$/m)
      assert.match(stdout, /^Attachments: 1: .*\(5 B\), 2: numbers\.csv/m)
      assert.match(stdout, /^The text .*\nin two lines$/m)
    }
  })

  test('a message is found by its Message-ID too', async () => {
    for (const id of ['plan@example.com', '<plan@example.com>']) {
      assert.match((await show(id)).stdout, /^Id: {10}m1 /m)
    }
  })

  test('only the text, only the headers', async () => {
    const text = await show('m1', '--text')
    assert.match(text.stdout, /^The text .*\nin two lines\n/)
    assert.ok(isClean(text.stdout))
    const headers = await show('m1', '--headers')
    assert.match(headers.stdout, /^From: .*carol@example\.com/m)
    assert.match(headers.stdout, /^X-Odd: /m)
    assert.ok(isClean(headers.stdout))
  })

  test('the exact bytes, and the HTML as it came, where no terminal reads them', async () => {
    assert.deepEqual(await home.bytesOf('mail', 'show', 'm1', '--raw'), message.raw)
    const html = (await home.bytesOf('mail', 'show', 'm1', '--html')).toString()
    assert.ok(html.includes(`<p>The <b>HTML</b> ${ESCAPES}</p>`))
    assert.match((await show('m2', '--html')).stderr, /has no HTML/)
  })

  test('a terminal gets bytes only when the user insists', async () => {
    for (const view of ['--raw', '--html']) {
      const refused = await home.runOnTerminal(80, 'mail', 'show', 'm1', view)
      assert.deepEqual([refused.code, refused.stdout], [2, ''])
      assert.match(refused.stderr, /not sent to a terminal[\s\S]*--force/)
      const insisted = await home.runOnTerminal(80, 'mail', 'show', 'm1', view, '--force')
      assert.equal(insisted.code, 0)
      assert.ok(insisted.stdout.includes('\u001b'))
    }
  })

  test('as JSON', async () => {
    type Json = {
      account: string
      id: string
      date: string
      labels: string[]
      text: string
      attachments: unknown[]
    }
    const json = await home.json<Json>('mail', 'show', 'm1')
    assert.equal(json.account, AMY)
    assert.equal(json.date, '2020-01-02T03:04:05.000Z')
    assert.deepEqual(json.labels, ['INBOX', 'Work'])
    assert.match(json.text, /in two lines/)
    assert.equal(json.attachments.length, 2)
    const { raw } = await home.json<{ raw: string }>('mail', 'show', 'm1', '--raw')
    assert.deepEqual(Buffer.from(raw, 'base64'), message.raw)
    const { headers } = await home.json<{ headers: { name: string }[] }>('mail', 'show', 'm1', '--headers')
    assert.equal(headers[0]?.name, 'From')
    const { html } = await home.json<{ html: string | null }>('mail', 'show', 'm2', '--html')
    assert.equal(html, null)
    const onTerminal = await home.runOnTerminal(80, 'mail', 'show', 'm1', '--raw', '--json')
    assert.equal(onTerminal.code, 0)
    assert.ok(isClean(onTerminal.stdout))
  })

  test('attachments are listed and saved, by a name that is only a name', async () => {
    const listed = await show('m1', '--attachments')
    assert.match(listed.stdout, /^NUMBER\tNAME\tTYPE\tSIZE\tSHA256\n1\t.*\tapplication\/pdf\t5 B\t/)
    const saved = await show('m1', '--save-attachment', '1', '--to', folder)
    assert.equal(saved.code, 0, saved.stderr)
    assert.deepEqual(readdirSync(folder), ['passwd'])
    assert.equal(readFileSync(join(folder, 'passwd'), 'utf8'), 'hello')
    const file = join(folder, 'my.csv')
    const named = await home.json<{ file: string; bytes: number }>(
      ...['mail', 'show', 'm1', '--save-attachment', '2', '--to', file],
    )
    assert.equal(named.file, file)
    assert.match(readFileSync(file, 'utf8'), /^1,2/)
  })

  test('nothing is written over, except when told to', async () => {
    const file = join(folder, 'precious')
    writeFileSync(file, 'mine')
    const refused = await show('m1', '--save-attachment', '1', '--to', file)
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /is there already[\s\S]*--force/)
    assert.equal(readFileSync(file, 'utf8'), 'mine')
    assert.equal((await show('m1', '--save-attachment', '1', '--to', file, '--force')).code, 0)
    assert.equal(readFileSync(file, 'utf8'), 'hello')
  })

  test('wrong use ends with 2 and says what to do', async () => {
    const cases: [args: string[], message: RegExp][] = [
      [['nothing'], /None of the archives has a message nothing\.[\s\S]*mail search/],
      [['nothing', '--account', AMY], /The archive of amy@example\.com has no message nothing\./],
      [['no@where'], /has a message no@where/],
      [['m1', '--save-attachment', '3', '--to', 'x'], /no attachment number 3\.[\s\S]*2: numbers\.csv/],
      [['m2', '--save-attachment', '1', '--to', 'x'], /no attachment number 1\.[\s\S]*It has none/],
      [['m1', '--save-attachment', '1'], /Where shall the attachment go/],
      [['m1', '--save-attachment', '0', '--to', 'x'], /whole number from 1/],
      [['m1', '--to', 'x'], /--to belongs to --save-attachment/],
      [['m1', '--save-attachment', '1', '--to', '/no/such/folder/x'], /there is no such folder/],
      [['m1', '--raw', '--text'], /cannot be used with/],
    ]
    for (const [args, expected] of cases) {
      const { code, stderr, stdout } = await show(...args)
      assert.deepEqual([code, stdout], [2, ''], args.join(' '))
      assert.match(stderr, expected)
    }
  })

  test('a message whose part of the archive is missing is not said to be unknown', async () => {
    const own = await mailHome([
      { account: AMY, messages: [mail('x', { atMs: Date.UTC(2020, 0, 1), raw: 'Subject: x\n\nx' })] },
    ])
    try {
      rmSync(join(own.archiveOf(AMY), '2020.db'))
      for (const id of ['x', 'x@example.com']) {
        const { code, stderr } = await own.run('mail', 'show', id)
        assert.equal(code, 1)
        assert.match(stderr, /2020\.db is missing/)
      }
    } finally {
      await own.remove()
    }
  })
})

describe('mail stats', () => {
  let home: MailHome
  before(async () => {
    const from = (name: string, size = 0): string =>
      `From: ${name}@example.com\nSubject: s\n\n${'x'.repeat(size)}`
    home = await mailHome([
      {
        account: AMY,
        labels: [{ id: 'Label_1', name: 'Work' }],
        messages: [
          mail('a', { atMs: Date.UTC(2019, 0, 1), raw: from('carol'), labelIds: ['Label_1', 'INBOX'] }),
          mail('b', { atMs: Date.UTC(2020, 0, 1), raw: from('carol', 200_000), labelIds: ['INBOX'] }),
        ],
      },
      {
        account: 'bob@example.com',
        labels: [{ id: 'Label_9', name: 'Work' }],
        messages: [
          mail('c', { atMs: Date.UTC(2020, 5, 1), raw: from('dave', 20_000), labelIds: ['Label_9'] }),
        ],
      },
    ])
  })
  after(() => home.remove())

  type Json = { by: string; rows: { key: string; messages: number; bytes: number }[]; unsearched: unknown[] }
  const counts = async (...args: string[]): Promise<[string, number][]> => {
    const { rows } = await home.json<Json>('mail', 'stats', ...args)
    return rows.map(({ key, messages }) => [key, messages])
  }

  test('sum up all accounts, labels by their names', async () => {
    assert.deepEqual(await counts(), [
      ['2020', 2],
      ['2019', 1],
    ])
    assert.deepEqual(await counts('--by', 'sender'), [
      ['carol@example.com', 2],
      ['dave@example.com', 1],
    ])
    assert.deepEqual(
      new Map(await counts('--by', 'label')),
      new Map([
        ['INBOX', 2],
        ['Work', 2],
      ]),
    )
    assert.deepEqual(await counts('--by', 'size'), [
      ['below 10 kB', 1],
      ['10 kB to 100 kB', 1],
      ['100 kB to 1 MB', 1],
    ])
    assert.deepEqual(await counts('--account', AMY), [
      ['2020', 1],
      ['2019', 1],
    ])
  })

  test('as a table, with what was left out', async () => {
    const { code, stdout, stderr } = await home.run('mail', 'stats', '--by', 'sender', '--limit', '1')
    assert.equal(code, 0)
    assert.match(stdout, /^SENDER\tMESSAGES\tSIZE\ncarol@example\.com\t2\t200 kB\n$/)
    assert.match(stderr, /^1 more/)
    assert.equal((await home.run('mail', 'stats', '--by', 'colour')).code, 2)
  })
})
