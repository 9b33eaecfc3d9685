import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertLinear, assertNearlySame } from '../../../base/growth.suite.ts'
import { parseAddresses } from './addresses.ts'
import { decodeQuotedPrintable } from './decode.ts'
import { decodeWords } from './encoded-words.ts'
import { collectProblems, TEXT_CHARS_MAX } from './limits.ts'
import { parseParameters } from './parameters.ts'
import { encodeParcel, packMessage, unpackMessage } from './parcel.ts'
import { PARSER_FAILED, parseMessage } from './parse.ts'
import { htmlToText } from './text.ts'

const BYTES = 2_000_000
/** A header is looked into for 1 MB, and the HTML of a part for 4 MB: more never comes to what reads them. */
const PIECE_BYTES = 1_000_000
const HTML_BYTES = 4_000_000

const filled = (piece: string, bytes = BYTES): string => piece.repeat(Math.ceil(bytes / piece.length))
const message = (head: string, piece: string) => (bytes: number) =>
  Buffer.from(head + filled(piece, bytes), 'latin1')

function assertKept(raw: Buffer): void {
  const parsed = parseMessage(raw)
  assert.ok(!parsed.problems.some((problem) => problem.startsWith(PARSER_FAILED)), parsed.problems.join())
  assert.ok(parsed.text.length <= TEXT_CHARS_MAX)
  const parcel = packMessage(raw, parsed)
  const contents = new Map(parcel.contents.map(({ sha256, content }) => [sha256, content]))
  assert.ok(raw.equals(unpackMessage(encodeParcel(parcel), (sha256) => contents.get(sha256)!)))
}

describe('megabytes take linear time as', () => {
  const addresses = [
    '(',
    '"',
    '<',
    '(a',
    '\\(',
    '"\\',
    '<a@b ',
    'a:',
    'a b@c:',
    ':',
    ',',
    '"(',
    '("',
    'a@',
    '=?',
    '()',
    '""',
    '<>',
  ]
  for (const piece of addresses) {
    test(`addresses of ${JSON.stringify(piece)}`, () => {
      const make = (bytes: number): string => filled(piece, bytes)
      assertLinear({ sizeMax: PIECE_BYTES, make, work: (text) => parseAddresses(text, collectProblems()) })
    })
  }

  const words = ['=?', '=?a?q?x', '=?a?b?', '=?utf-8?Q?=C3?= ', '=?a?q??=', '?=', '=?a?q?', '=?=?a?q?x?']
  for (const piece of words) {
    test(`encoded words of ${JSON.stringify(piece)}`, () =>
      assertLinear({ sizeMax: PIECE_BYTES, make: (bytes) => filled(piece, bytes), work: decodeWords }))
  }

  const parameters = [';a="', ';', ';a*0*=%', ';a="\\', ';a=b', '=', '"', ';a*1=b', "'"]
  for (const piece of parameters) {
    test(`parameters of ${JSON.stringify(piece)}`, () =>
      assertLinear({ sizeMax: PIECE_BYTES, make: (bytes) => filled(piece, bytes), work: parseParameters }))
  }

  const pieces = [
    '<',
    '<a ',
    '<!--',
    '<a b="',
    "<a b='",
    '<script>',
    '<head>',
    '<p>',
    '&',
    '&#',
    '&amp',
    '<a b=">',
    '</',
    '<pre>',
    '<!',
    ' ',
    '<br>',
    '<a =" =\'',
  ]
  for (const piece of pieces) {
    test(`HTML of ${JSON.stringify(piece)}`, () => {
      for (const end of ['', `>"'-->`]) {
        const make = (bytes: number): string => filled(piece, bytes) + end
        assertLinear({ sizeMax: HTML_BYTES, make, work: (html) => htmlToText(html, TEXT_CHARS_MAX) })
      }
    })
  }

  for (const piece of ['=', '= ', ' ', '=\r', '\n', ' \n', '=4']) {
    test(`quoted-printable of ${JSON.stringify(piece)}`, () => {
      assertLinear({ sizeMax: BYTES, make: message('', piece), work: decodeQuotedPrintable })
    })
  }

  const bodies = [
    '\n--',
    '\n--b',
    '\n--b-',
    '\n--bb',
    '-',
    '\n-',
    '--\n',
    '\r',
    '\n',
    '\n--b\n\n',
    '\n--b\nContent-Type: message/rfc822\n\n',
    '\n--b\nContent-Type: multipart/mixed; boundary=b\n\n',
    '\n--b--',
    '\n--b\nX',
    '\x00',
    '\xff',
  ]
  for (const piece of bodies) {
    test(`a body of ${JSON.stringify(piece)}`, () => {
      const make = message('Content-Type: multipart/mixed; boundary=b\n\n', piece)
      assertLinear({ sizeMax: BYTES, make, work: assertKept })
    })
  }

  const headers = [
    'a',
    'a:',
    '\n ',
    'a:\n',
    'a\n',
    ':\n',
    'Content-Type: message/rfc822\n\n',
    'Content-Type: multipart/mixed; boundary=a\n\n--a\n',
    'Subject: =?\n ',
    'To: (\n',
    'References: <\n',
    'Content-Type: text/plain;\n',
    'From \n',
    '\r',
    ' \n',
    'Date: (((\n',
    'To: "\n,',
    'Message-ID: <a\n >',
  ]
  for (const piece of headers) {
    test(`headers of ${JSON.stringify(piece)}`, () =>
      assertLinear({ sizeMax: BYTES, make: message('', piece), work: assertKept }))
  }

  for (const piece of ['A', '=', '*', 'A\n', '\n', 'AAAA====']) {
    test(`an attachment in base64 of ${JSON.stringify(piece)}`, () => {
      const head = 'Content-Type: image/gif\nContent-Transfer-Encoding: base64\n\n'
      assertLinear({ sizeMax: BYTES, make: message(head, piece), work: assertKept })
    })
  }
})

describe('mail that names much takes linear time:', () => {
  const many = (length: number, one: (n: number) => string): string =>
    Array.from({ length }, (_, n) => one(n)).join('')
  const cases: [what: string, sizeMax: number, make: (size: number) => string][] = [
    [
      '55,000 unknown charsets in a subject',
      55_000,
      (size) => `Subject: ${many(size, (n) => `=?x-${n}?Q?=E9?= x `)}\n\n`,
    ],
    [
      '55,000 unknown charsets in addresses',
      55_000,
      (size) => `To: ${many(size, (n) => `=?x-${n}?Q?=E9?= <a@b>,`)}\n\n`,
    ],
    ['15,000 unclosed tags', 15_000, (size) => `Content-Type: text/html\n\n${'<a <b x="'.repeat(size)}`],
    [
      'alternatives of 700,000 words each',
      700_000,
      (size) =>
        [
          'Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n',
          many(size, (n) => `${n.toString(36)} `),
          '\n--b\nContent-Type: text/html\n\n',
          many(size, (n) => `<br>z${n.toString(36)}`),
        ].join(''),
    ],
    [
      '900 alternatives',
      900,
      (size) =>
        `Content-Type: multipart/alternative; boundary=b\n\n${many(
          size,
          (n) => `--b\nContent-Type: text/${n % 2 ? 'html' : 'plain'}\n\n${`word${n} `.repeat(700)}\n`,
        )}`,
    ],
  ]
  for (const [what, sizeMax, make] of cases) {
    test(what, () => assertLinear({ sizeMax, make: (size) => Buffer.from(make(size)), work: assertKept }))
  }
})

test('nested messages, all of them large, are not read once per level', () => {
  const make = (levels: number): Buffer =>
    Buffer.from(`${'Content-Type: message/rfc822\n\n'.repeat(levels)}Subject: x\n\n${filled('text ')}`)
  const parsed = parseMessage(make(99))
  assert.equal(parsed.attachments.length, 0)
  assert.ok(parsed.text.startsWith('text text'))
  assertKept(make(99))
  // Twelve levels against ninety-nine: a text that is read at each of them would cost eight times as much.
  assertNearlySame({ one: make(12), other: make(99), work: parseMessage })
})
