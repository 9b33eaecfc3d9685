import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Mailbox } from './mailbox.ts'
import { parseSearch } from './search.ts'

const NOW = Date.UTC(2026, 4, 15, 12)

type Given = { head: string; body?: string; labels?: string[]; at?: number }

/** A mailbox of named messages, and which of them a query finds. */
function searchable(given: Record<string, Given>): (q: string) => string[] {
  const mailbox = new Mailbox({ address: 'me@example.com', now: () => NOW })
  mailbox.createLabel({ name: 'Work/Big Projects' })
  const names = new Map<string, string>()
  for (const [name, { head, body = '', labels = ['INBOX'], at = NOW }] of Object.entries(given)) {
    const raw = Buffer.from(`${head}\r\n\r\n${body}`)
    names.set(mailbox.insert({ raw, labelIds: labels, internalMs: at }).id, name)
  }
  return (q) =>
    mailbox
      .list({ q })
      .messages.map(({ id }) => names.get(id)!)
      .sort()
}

const second = (ms: number): number => ms / 1000

describe('times', () => {
  const at = Date.UTC(2026, 2, 10, 15, 0, 7)
  const find = searchable({
    before: { head: 'Subject: a', at: at - 1 },
    first: { head: 'Subject: a', at },
    last: { head: 'Subject: a', at: at + 999 },
    after: { head: 'Subject: a', at: at + 1000 },
  })

  test('after: takes its own second, before: does not', () => {
    assert.deepEqual(find(`after:${second(at)} before:${second(at) + 1}`), ['first', 'last'])
    assert.deepEqual(find(`after:${second(at)}`), ['after', 'first', 'last'])
    assert.deepEqual(find(`before:${second(at)}`), ['before'])
    assert.deepEqual(find(`newer:${second(at)} older:${second(at) + 1}`), ['first', 'last'])
  })

  test('times inside OR and under a minus hold too', () => {
    assert.deepEqual(find(`before:${second(at)} OR after:${second(at) + 1}`), ['after', 'before'])
    assert.deepEqual(find(`-after:${second(at)}`), ['before'])
  })

  test('dates mean midnight in California, in winter and in summer', () => {
    const winter = Date.UTC(2026, 0, 10, 8)
    const summer = Date.UTC(2026, 6, 10, 7)
    const day = searchable({
      winterBefore: { head: 'a: b', at: winter - 1 },
      winter: { head: 'a: b', at: winter },
      summerBefore: { head: 'a: b', at: summer - 1 },
      summer: { head: 'a: b', at: summer },
    })
    assert.deepEqual(day('before:2026/01/10'), ['winterBefore'])
    assert.deepEqual(day('after:2026/1/10 before:2026-07-10'), ['summerBefore', 'winter'])
    assert.deepEqual(day('after:7/10/2026'), ['summer'])
  })

  test('newer_than: and older_than: count days, months and years back from now', () => {
    const age = searchable({
      hour: { head: 'a: b', at: NOW - 3_600_000 },
      week: { head: 'a: b', at: NOW - 7 * 86_400_000 },
      winter: { head: 'a: b', at: Date.UTC(2026, 1, 1) },
      old: { head: 'a: b', at: Date.UTC(2020, 1, 1) },
    })
    assert.deepEqual(age('newer_than:2d'), ['hour'])
    assert.deepEqual(age('newer_than:1m'), ['hour', 'week'])
    assert.deepEqual(age('older_than:1m newer_than:1y'), ['winter'])
    assert.deepEqual(age('older_than:2y'), ['old'])
  })

  test('an operand that is no time finds nothing', () => {
    assert.deepEqual(find('after:soon'), [])
    assert.deepEqual(find('after:2026/13/01'), [])
    assert.deepEqual(find('newer_than:2x'), [])
  })
})

describe('places and states', () => {
  const find = searchable({
    inbox: { head: 'a: b', labels: ['INBOX', 'UNREAD', 'IMPORTANT', 'CATEGORY_PROMOTIONS'] },
    starred: { head: 'a: b', labels: ['STARRED', 'CATEGORY_PERSONAL'] },
    sent: { head: 'a: b', labels: ['SENT'] },
    trash: { head: 'a: b', labels: ['TRASH'] },
    spam: { head: 'a: b', labels: ['SPAM', 'UNREAD'] },
    project: { head: 'a: b', labels: ['Label_1'] },
  })
  const cases: [q: string, found: string[]][] = [
    ['', ['inbox', 'project', 'sent', 'starred']],
    ['in:inbox', ['inbox']],
    ['in:sent', ['sent']],
    ['in:trash', ['trash']],
    ['in:spam', ['spam']],
    ['in:anywhere', ['inbox', 'project', 'sent', 'spam', 'starred', 'trash']],
    ['in:drafts', []],
    ['in:archive', ['project', 'starred']],
    ['is:unread', ['inbox']],
    ['is:unread in:anywhere', ['inbox', 'spam']],
    ['is:read', ['project', 'sent', 'starred']],
    ['is:starred', ['starred']],
    ['is:important', ['inbox']],
    ['is:nonsense', []],
    ['label:work-big-projects', ['project']],
    ['label:"Work/Big Projects"', ['project']],
    ['label:inbox', ['inbox']],
    ['label:trash', ['trash']],
    ['label:none-such', []],
    ['has:userlabels', ['project']],
    ['has:nouserlabels', ['inbox', 'sent', 'starred']],
    ['category:promotions', ['inbox']],
    ['category:primary', ['starred']],
    ['-in:inbox', ['project', 'sent', 'starred']],
    ['-in:trash', ['inbox', 'project', 'sent', 'starred']],
    ['{in:inbox in:sent}', ['inbox', 'sent']],
  ]
  for (const [q, found] of cases) {
    test(q || 'no query', () => {
      assert.deepEqual(find(q), found)
    })
  }
})

describe('people, words and files', () => {
  const find = searchable({
    bob: {
      head: 'From: Bob Stone <bob.stone@example.com>\r\nTo: me@example.com\r\nSubject: Quarterly report for Leeds\r\nMessage-ID: <q1@example.com>',
      body: 'The harvest was early this year.',
    },
    amy: {
      head: 'From: "Amy" <amy@example.org>\r\nTo: bob.stone@example.com\r\nCc: me@example.com\r\nBcc: hidden@example.net\r\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?= from Leeds\r\nList-Id: Readers <readers.example.org>',
      body: 'Quarterly numbers are late; the report follows. Early harvest!',
    },
    file: {
      head: 'From: c@example.com\r\nSubject: Holiday\r\nContent-Type: multipart/mixed; boundary=b',
      body: `--b\r\nContent-Type: text/plain; charset=koi8-r\r\nContent-Transfer-Encoding: base64\r\n\r\n8NLJ18XU\r\n--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename="Plan-of-Leeds.pdf"\r\n\r\n${'x'.repeat(5000)}\r\n--b--\r\n`,
    },
  })
  const cases: [q: string, found: string[]][] = [
    ['from:bob', ['bob']],
    ['from:bob.stone@example.com', ['bob']],
    ['from:(bob stone)', ['bob']],
    ['from:{amy c@example.com}', ['amy', 'file']],
    ['from:ob', []],
    ['to:me', ['bob']],
    ['to:bob', ['amy']],
    ['cc:me', ['amy']],
    ['bcc:hidden', ['amy']],
    ['subject:leeds', ['amy', 'bob']],
    ['subject:GRÜSSE', []],
    ['subject:grüße', ['amy']],
    ['subject:"report for leeds"', ['bob']],
    ['subject:(leeds -grüße)', ['bob']],
    ['harvest', ['amy', 'bob']],
    ['"harvest was early"', ['bob']],
    ['"early harvest"', ['amy']],
    ['harvest early', ['amy', 'bob']],
    ['harvest -quarterly', []],
    ['report -from:amy', ['bob']],
    ['привет', ['file']],
    ['has:attachment', ['file']],
    ['-has:attachment', ['amy', 'bob']],
    ['filename:pdf', ['file']],
    ['filename:"plan-of-leeds.pdf"', ['file']],
    ['filename:doc', []],
    ['larger:4K', ['file']],
    ['larger:1M', []],
    ['size:4000', ['file']],
    ['smaller:4kb', ['amy', 'bob']],
    ['larger:big', []],
    ['rfc822msgid:q1@example.com', ['bob']],
    ['rfc822msgid:<q1@example.com>', ['bob']],
    ['list:readers.example.org', ['amy']],
    ['from:bob OR from:amy', ['amy', 'bob']],
    ['from:bob OR from:amy OR from:c@example.com', ['amy', 'bob', 'file']],
    ['from:bob OR from:amy quarterly early', ['amy', 'bob']],
    ['(from:bob quarterly) OR holiday', ['bob', 'file']],
    ['{(from:bob nothing) holiday}', ['file']],
    ['-{from:bob from:amy}', ['file']],
    ['--from:bob', ['bob']],
    ['unknown:thing', []],
    ['AND harvest AND early', ['amy', 'bob']],
  ]
  for (const [q, found] of cases) {
    test(q, () => {
      assert.deepEqual(find(q), found)
    })
  }
})

describe('the parser', () => {
  test('takes any text without failing or hanging', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '(',
        ')',
        '{',
        '}',
        '"',
        '-',
        '+',
        ':',
        'OR',
        ' ',
        'from:',
        'after:',
        'in:',
        'x',
        '|',
        '\\',
      ),
      fc.string({ maxLength: 5 }),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        parseSearch(pieces.join(''), NOW)
      }),
      { numRuns: 1000 },
    )
  })

  test('refuses what is nested too deeply or too long, and takes many signs', () => {
    assert.throws(() => parseSearch('('.repeat(5000), NOW), /nested/)
    assert.throws(() => parseSearch('x'.repeat(20_000), NOW), /too long/)
    assert.equal(parseSearch(`${'-'.repeat(16_001)}x`, NOW).kind, 'not')
  })

  test('a plain list of times leaves nothing to match', () => {
    const condition = parseSearch('after:1 before:2', NOW)
    assert.deepEqual(condition, {
      kind: 'and',
      terms: [
        { kind: 'time', fromMs: 1000, toMs: Number.POSITIVE_INFINITY },
        { kind: 'time', fromMs: Number.NEGATIVE_INFINITY, toMs: 2000 },
      ],
    })
  })
})
