import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseAddresses } from './addresses.ts'
import { decodeQuotedPrintable } from './decode.ts'
import { decodeWords } from './encoded-words.ts'
import { collectProblems, TEXT_CHARS_MAX } from './limits.ts'
import { parseParameters } from './parameters.ts'
import { encodeParcel, packMessage, unpackMessage } from './parcel.ts'
import { PARSER_FAILED, parseMessage } from './parse.ts'
import { htmlToText } from './text.ts'

const BYTES = 10_000_000
/** A header is looked into for 1 MB, and the HTML of a part for 4 MB: more never comes to what reads them. */
const PIECE_BYTES = 4_000_000
/** Linear work takes a fraction of this on a busy machine; work that grows with the square takes hours. */
const BOUND_MS = 6_000

const filled = (piece: string, bytes = BYTES): string => piece.repeat(Math.ceil(bytes / piece.length))

function timed(work: () => void): number {
  const startMs = performance.now()
  work()
  return performance.now() - startMs
}

function assertQuick(work: () => void): void {
  const ms = timed(work)
  assert.ok(ms < BOUND_MS, `took ${Math.round(ms)} ms`)
}

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
      assertQuick(() => parseAddresses(filled(piece, PIECE_BYTES), collectProblems()))
    })
  }

  const words = ['=?', '=?a?q?x', '=?a?b?', '=?utf-8?Q?=C3?= ', '=?a?q??=', '?=', '=?a?q?', '=?=?a?q?x?']
  for (const piece of words) {
    test(`encoded words of ${JSON.stringify(piece)}`, () =>
      assertQuick(() => decodeWords(filled(piece, PIECE_BYTES))))
  }

  const parameters = [';a="', ';', ';a*0*=%', ';a="\\', ';a=b', '=', '"', ';a*1=b', "'"]
  for (const piece of parameters) {
    test(`parameters of ${JSON.stringify(piece)}`, () =>
      assertQuick(() => parseParameters(filled(piece, PIECE_BYTES))))
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
      assertQuick(() => htmlToText(filled(piece, PIECE_BYTES), TEXT_CHARS_MAX))
      assertQuick(() => htmlToText(`${filled(piece, PIECE_BYTES)}>"'-->`, TEXT_CHARS_MAX))
    })
  }

  for (const piece of ['=', '= ', ' ', '=\r', '\n', ' \n', '=4']) {
    test(`quoted-printable of ${JSON.stringify(piece)}`, () => {
      assertQuick(() => decodeQuotedPrintable(Buffer.from(filled(piece))))
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
      const raw = Buffer.from(`Content-Type: multipart/mixed; boundary=b\n\n${filled(piece)}`, 'latin1')
      assertQuick(() => assertKept(raw))
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
      assertQuick(() => assertKept(Buffer.from(filled(piece)))))
  }

  for (const piece of ['A', '=', '*', 'A\n', '\n', 'AAAA====']) {
    test(`an attachment in base64 of ${JSON.stringify(piece)}`, () => {
      const head = 'Content-Type: image/gif\nContent-Transfer-Encoding: base64\n\n'
      assertQuick(() => assertKept(Buffer.from(head + filled(piece))))
    })
  }
})

test('nested messages, all of them large, are not read once per level', () => {
  const raw = Buffer.from(`${'Content-Type: message/rfc822\n\n'.repeat(99)}Subject: x\n\n${filled('text ')}`)
  const parsed = parseMessage(raw)
  assert.equal(parsed.attachments.length, 0)
  assert.ok(parsed.text.startsWith('text text'))
  assertQuick(() => assertKept(raw))
})
