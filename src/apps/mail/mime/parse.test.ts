import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DEPTH_MAX, HEADERS_MAX, PARTS_MAX, TEXT_CHARS_MAX } from './limits.ts'
import { parseMessage } from './parse.ts'
import type { ParsedMessage } from './parsed.ts'

/** Lines with CRLF; one character per byte. */
const mail = (...lines: string[]): ParsedMessage => parseMessage(Buffer.from(lines.join('\r\n'), 'latin1'))

describe('the headers of a message', () => {
  test('are unfolded, decoded, and kept in order', () => {
    const parsed = mail(
      'Received: from a',
      '\tby b',
      'Received: second',
      'X-Gr\xf6sse: no header',
      'SUBJECT: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=',
      ' aus =?utf-8?Q?K=C3=B6ln?=',
      '',
      'text',
    )
    assert.equal(parsed.subject, 'Grüße aus Köln')
    assert.deepEqual(parsed.headers, [
      { name: 'Received', value: 'from a by b' },
      { name: 'Received', value: 'second' },
      { name: 'SUBJECT', value: 'Grüße aus Köln' },
    ])
    assert.deepEqual(parsed.problems, ['a header block has lines that are no header'])
    assert.equal(parsed.text, 'text')
  })

  test('give people, ids and the date', () => {
    const parsed = mail(
      'From: "B, A" <a@b.c>',
      'To: x@y.z,',
      ' =?utf-8?Q?J=C3=B6rg?= <j@k.l>',
      'To: second@y.z',
      'Cc: c@c.c',
      'Bcc: b@b.b',
      'Reply-To: r@r.r',
      'Message-ID:',
      ' <one@host>',
      'In-Reply-To: Your message <two@host> of today',
      'References: <two@host>',
      ' <three@ho st> broken <',
      'Date: Mon, 7 Nov 2022 10:00:00 +0100',
      '',
      '',
    )
    assert.deepEqual(parsed.from, [{ name: 'B, A', address: 'a@b.c' }])
    assert.deepEqual(
      parsed.to.map(({ address }) => address),
      ['x@y.z', 'j@k.l', 'second@y.z'],
    )
    assert.equal(parsed.cc[0]?.address, 'c@c.c')
    assert.equal(parsed.bcc[0]?.address, 'b@b.b')
    assert.equal(parsed.replyTo[0]?.address, 'r@r.r')
    assert.equal(parsed.messageId, '<one@host>')
    assert.equal(parsed.inReplyTo, '<two@host>')
    assert.deepEqual(parsed.references, ['<two@host>', '<three@host>'])
    assert.equal(parsed.headerMs, Date.UTC(2022, 10, 7, 9))
    assert.deepEqual(parsed.problems, [])
  })

  test('may lack everything', () => {
    const parsed = mail('X: y', '', 'text')
    assert.equal(parsed.messageId, null)
    assert.equal(parsed.headerMs, null)
    assert.equal(parsed.subject, '')
    assert.deepEqual(parsed.problems, [])
  })

  test('with a date that is none say so', () => {
    const parsed = mail('Date: the day after\x00tomorrow', '', '')
    assert.equal(parsed.headerMs, null)
    assert.deepEqual(parsed.problems, ['the date "the day after tomorrow" cannot be read'])
  })

  test('with raw bytes are read in the charset of the text', () => {
    const parsed = mail(
      'Subject: \xf0\xd2\xc9\xd7\xc5\xd4',
      'Content-Type: text/plain; charset=koi8-r',
      '',
      '\xf0\xd2',
    )
    assert.equal(parsed.subject, 'Привет')
    assert.equal(parsed.text, 'Пр')
  })

  test('may come after an envelope line, blank lines or a byte order mark', () => {
    assert.equal(mail('From a@b Mon Jan 1 00:00:00 2020', 'Subject: s', '', '').subject, 's')
    assert.equal(mail('', '', 'Subject: s', '', '').subject, 's')
    assert.equal(mail('\xef\xbb\xbfSubject: s', '', '').subject, 's')
  })

  test('may end without a blank line', () => {
    const parsed = mail('Subject: s', 'This is the text already.', 'And more: of it')
    assert.equal(parsed.subject, 's')
    assert.equal(parsed.text, 'This is the text already.\nAnd more: of it')
    assert.equal(mail('Subject: only').subject, 'only')
  })

  test('end their lines with line feeds as well', () => {
    const parsed = parseMessage(Buffer.from('Subject: a\n b\nTo: x@y.z\n\ntext\n'))
    assert.deepEqual([parsed.subject, parsed.to[0]?.address, parsed.text], ['a b', 'x@y.z', 'text'])
  })

  test('beyond the limits are left out, and the text is found all the same', () => {
    const many = mail(...Array.from({ length: HEADERS_MAX + 5 }, (_, place) => `X-${place}: y`), '', 'text')
    assert.equal(many.headers.length, HEADERS_MAX)
    assert.equal(many.text, 'text')
    assert.match(many.problems[0]!, /more than 2000 fields/)
    const long = mail(`X: ${'y'.repeat(2_000_000)}`, 'Subject: beyond', '', 'text')
    assert.equal(long.subject, '')
    assert.equal(long.text, 'text')
    assert.match(long.problems[0]!, /longer than 1 MB/)
    assert.ok(long.headers[0]!.value.length <= 1_000_000)
  })
})

describe('the parts of a message', () => {
  const alternative = (plain: string, html: string): string[] => [
    'Content-Type: multipart/alternative; boundary="a b"',
    '',
    'This is a message with several parts.',
    '--a b',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: quoted-printable',
    '',
    plain,
    '--a b  ',
    'Content-Type: text/html; charset=iso-8859-1',
    '',
    html,
    '--a b--',
    'epilogue',
  ]

  test('give the plain text of alternatives, and the HTML beside it', () => {
    const parsed = mail(
      ...alternative('gr=C3=B6=C3=9Fe=\r\nr h=C3=B6her', '<p>gr\xf6\xdfer &amp; h\xf6her</p>'),
    )
    assert.equal(parsed.text, 'größer höher')
    assert.equal(parsed.html, '<p>größer & höher</p>'.replace('&', '&amp;'))
    assert.equal(parsed.snippet, 'größer höher')
    assert.deepEqual(parsed.attachments, [])
    assert.deepEqual(parsed.problems, [])
  })

  test('are read in the charset that HTML names, where the mail names none', () => {
    const html = Buffer.from('<html><head><meta content="text/html; charset=windows-1251"></head><p>')
    const watermelon = Uint8Array.of(0xe0, 0xf0, 0xe1, 0xf3, 0xe7)
    const read = (type: string): string =>
      parseMessage(Buffer.concat([Buffer.from(`Content-Type: ${type}\r\n\r\n`), html, watermelon])).text
    assert.equal(read('text/html'), 'арбуз')
    assert.equal(read('text/html; charset=koi8-r'), 'ЮПАСГ')
  })

  test('give the HTML made plain where the plain text is empty', () => {
    assert.equal(mail(...alternative(' ', '<p>a<br>b</p>')).text, 'a\nb')
  })

  test('are attachments where they are named, attached, or no text', () => {
    const parsed = mail(
      'Content-Type: multipart/mixed; boundary=outer',
      '',
      '--outer',
      ...alternative('text', '<b>text</b>'),
      '--outer',
      "Content-Type: application/pdf; name*=utf-8''%C3%A4.pdf",
      'Content-Disposition: attachment',
      'Content-Transfer-Encoding: BASE64',
      '',
      'aGVs',
      'bG8=',
      '--outer',
      'Content-Type: image/png',
      'Content-ID: <logo@x>',
      '',
      'PNG',
      '--outer',
      'Content-Type: text/plain; name="../notes.txt"',
      '',
      'notes',
      '--outer',
      'Content-Type: text/calendar; method=REQUEST',
      '',
      'BEGIN:VCALENDAR',
      '--outer--',
    )
    assert.equal(parsed.text, 'text\n\nnotes', 'what has a name and is shown in its place is read as well')
    assert.deepEqual(
      parsed.attachments.map(({ name, type, isInline, encoding, content, contentId }) => [
        name,
        type,
        isInline,
        encoding,
        Buffer.from(content).toString(),
        contentId,
      ]),
      [
        ['ä.pdf', 'application/pdf', false, 'base64', 'hello', null],
        ['', 'image/png', true, '7bit', 'PNG', 'logo@x'],
        ['../notes.txt', 'text/plain', false, '7bit', 'notes', null],
        ['', 'text/calendar', true, '7bit', 'BEGIN:VCALENDAR', null],
      ],
    )
  })

  test('lie where they say they lie', () => {
    const raw = Buffer.from(
      'Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: image/gif\n\nGIF\n\n--b\nContent-Type: image/png\n\n--b--',
    )
    const { attachments } = parseMessage(raw)
    assert.deepEqual(
      attachments.map(({ start, end }) => raw.toString('latin1', start, end)),
      ['GIF\n', ''],
    )
  })

  test('may be messages: their text is found, and the outermost is an attachment with what it has', () => {
    const inner = [
      'Subject: inner',
      'Content-Type: message/rfc822',
      '',
      'Subject: innermost',
      '',
      'deep text',
    ]
    const parsed = mail(
      'Subject: outer',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: message/rfc822; name=forwarded.eml',
      '',
      ...inner,
      '--b--',
    )
    assert.equal(parsed.subject, 'outer')
    assert.equal(parsed.text, 'deep text')
    assert.equal(parsed.attachments.length, 1)
    assert.equal(Buffer.from(parsed.attachments[0]!.content).toString(), inner.join('\r\n'))
  })

  test('of a digest are messages unless they say otherwise', () => {
    const parsed = mail(
      'Content-Type: multipart/digest; boundary=b',
      '',
      '--b',
      '',
      'Subject: one',
      '',
      'first',
      '--b',
      '',
      'Subject: two',
      '',
      'second',
      '--b--',
    )
    assert.equal(parsed.text, 'first\n\nsecond')
    assert.equal(parsed.attachments.length, 2)
  })

  test('may be in multiparts that are not closed, and in some that share a boundary', () => {
    const open = mail('Content-Type: multipart/mixed; boundary=b', '', '--b', '', 'one', '--b', '', 'two')
    assert.equal(open.text, 'one\n\ntwo')
    const shared = mail(
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      '',
      'inner',
      '--b--',
      '--b',
      '',
      'outer',
      '--b--',
    )
    assert.equal(shared.text, 'inner\n\nouter')
  })

  test('without headers and blank lines end at the boundary', () => {
    const parsed = mail(
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      '--b',
      'Content-Type: text/plain',
      '--b',
      '',
      'x',
      '--b--',
    )
    assert.equal(parsed.text, 'x')
  })

  test('are not there where a multipart names no boundary, or has none of it: then it is text', () => {
    const none = mail('Content-Type: multipart/mixed', '', 'just text')
    assert.equal(none.text, 'just text')
    assert.deepEqual(none.problems, ['the part 1 says that it has parts, but names no boundary'])
    const guessed = mail('Content-Type: multipart/mixed', '', '', '--b', '', 'one', '--b', '', 'two', '--b--')
    assert.equal(guessed.text, 'one\n\ntwo')
    assert.equal(mail('Content-Type: multipart/mixed; boundary=b', '', 'just text').text, 'just text')
  })

  test('that are not what they say are problems with the number of the part', () => {
    const parsed = mail(
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: text/plain; charset=klingon',
      '',
      'gr\xf6\xdfe',
      '--b',
      'Content-Type: application/pdf',
      'Content-Transfer-Encoding: base64',
      '',
      '%%%',
      '--b',
      'Content-Type: rubbish',
      'Content-Transfer-Encoding: x-uuencode',
      '',
      'rubbish',
      '--b--',
    )
    assert.equal(parsed.text, 'größe\n\nrubbish')
    assert.deepEqual(parsed.problems, [
      'the part 3 has the content type "rubbish", which is none',
      'the part 1 names an unknown charset: "klingon"',
      'the part 2 says that it is base64, but is not',
      'the part 3 has an unknown transfer encoding',
    ])
  })

  test('beyond the limits are left alone', () => {
    const parts = mail(
      'Content-Type: multipart/mixed; boundary=b',
      ...Array.from({ length: PARTS_MAX + 9 }, () => '\r\n--b\r\nContent-Type: image/gif\r\n\r\n'),
    )
    assert.equal(parts.attachments.length, PARTS_MAX - 1)
    assert.match(parts.problems[0]!, /more than 1000 parts/)
    const deep = mail(
      ...Array.from(
        { length: DEPTH_MAX + 50 },
        (_, place) => `Content-Type: multipart/mixed; boundary=b${place}\r\n\r\n--b${place}`,
      ),
      '',
      'deep',
    )
    assert.equal(deep.text, '')
    assert.match(deep.problems[0]!, /more than 100 deep/)
    const nested = mail(
      ...Array.from({ length: DEPTH_MAX + 50 }, () => 'Content-Type: message/rfc822\r\n'),
      'Subject: x',
      '',
      'deep',
    )
    assert.match(nested.problems[0]!, /more than 100 deep/)
  })
})

describe('text', () => {
  test('has no control characters and no carriage returns', () => {
    assert.equal(mail('X: y', '', 'a\x00b\x07\tc', 'd\x1b[31m').text, 'ab\tc\nd[31m')
  })

  test('is cut at a million characters, which is said', () => {
    const parsed = mail('X: y', '', 'word '.repeat(400_000))
    assert.equal(parsed.text.length, TEXT_CHARS_MAX)
    assert.deepEqual(parsed.problems, [
      'the text is longer than 1,000,000 characters; the rest is not searched',
    ])
  })

  test('of the whole mail may be encoded', () => {
    const parsed = mail(
      'Content-Type: text/html; charset=gb2312',
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from('3c703ed6d0cec43c2f703e', 'hex').toString('base64'),
    )
    assert.equal(parsed.text, '中文')
  })

  test('of delivery reports is found', () => {
    const parsed = mail(
      'Content-Type: multipart/report; boundary=b',
      '',
      '--b',
      '',
      'failed',
      '--b',
      'Content-Type: message/delivery-status',
      '',
      'Final-Recipient: rfc822; a@b.c',
      '--b--',
    )
    assert.equal(parsed.text, 'failed\n\nFinal-Recipient: rfc822; a@b.c')
  })
})
