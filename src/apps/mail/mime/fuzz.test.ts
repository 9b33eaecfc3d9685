import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ADDRESSES_MAX, ATTACHMENTS_MAX, HEADERS_MAX, PROBLEMS_MAX, TEXT_CHARS_MAX } from './limits.ts'
import { encodeParcel, packMessage, unpackMessage } from './parcel.ts'
import { PARSER_FAILED, parseMessage } from './parse.ts'

const CONTENT = Buffer.from(Array.from({ length: 17_000 }, (_, place) => (place * 31 + (place >> 8)) & 255))
const LINED = CONTENT.toString('base64').replace(/.{76}/g, '$&\r\n')

const SAMPLES: readonly string[] = [
  'Subject: =?utf-8?B?w6TDtg==?= =?iso-2022-jp?B?GyRCRnxLXDhsGyhC?=\r\nFrom: "A (B)" <a@b.c>, G: x@y.z;\r\nDate: Mon, 7 Nov 2022 10:00:00 +0100\r\n\r\ntext\r\n',
  `From: a@b.c\r\nContent-Type: multipart/mixed;\r\n boundary="outer"\r\n\r\npreamble\r\n--outer\r\nContent-Type: multipart/alternative; boundary=inner\r\n\r\n--inner\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\ngr=C3=B6=C3=9Fe=\r\nr\r\n--inner\r\nContent-Type: text/html\r\n\r\n<html><head><style>x</style></head><body><p class="a">Hi &amp; ho&nbsp;<br>x</p></body></html>\r\n--inner--\r\n--outer\r\nContent-Type: application/pdf; name*0*=utf-8''%C3%A4; name*1=".pdf"\r\nContent-Transfer-Encoding: base64\r\n\r\n${LINED}\r\n--outer--\r\n`,
  'Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: one\nContent-Type: message/rfc822\n\nSubject: two\n\nx\n--b\nContent-Type: text/plain; charset=utf-7\n\n+AOQ-\n--b--\n',
  'Content-Type: text/html; charset=utf-16\nContent-Transfer-Encoding: base64\n\n//48AHAAPgB4AA==\n',
]

/** Pieces that mean something to some part of the parser. */
const MEANT = [
  '\r\n',
  '\n',
  '--',
  '--outer',
  '--b',
  '=?',
  '?=',
  '"',
  '(',
  ')',
  '<',
  '>',
  ';',
  ':',
  ',',
  '=',
  '\\',
  '\0',
  '\xff',
  '+',
  '*',
  '&#',
  '<!--',
  '</script',
  'Content-Type: ',
  'message/rfc822',
  'boundary=',
  "''",
  '%',
  '~{',
  '\x1b$B',
  '\x0e',
]

type Edit = { kind: 'flip' | 'cut' | 'copy' | 'insert'; at: number; length: number; piece: number }

const edit: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom('flip', 'cut', 'copy', 'insert'),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.integer({ min: 1, max: 200 }),
  piece: fc.nat(),
})

function apply(bytes: Buffer, { kind, at, length, piece }: Edit): Buffer {
  const place = Math.floor(at * bytes.length)
  const before = bytes.subarray(0, place)
  const after = bytes.subarray(place)
  if (kind === 'cut') return Buffer.concat([before, after.subarray(length)])
  if (kind === 'copy') return Buffer.concat([before, after.subarray(0, length), after])
  if (kind === 'insert')
    return Buffer.concat([before, Buffer.from(MEANT[piece % MEANT.length]!, 'latin1'), after])
  const flipped = Buffer.from(bytes)
  if (place < flipped.length) flipped[place] = flipped[place]! ^ (1 << (piece % 8))
  return flipped
}

function check(raw: Uint8Array): void {
  const parsed = parseMessage(raw)
  assert.ok(!parsed.problems.some((problem) => problem.startsWith(PARSER_FAILED)), parsed.problems.join())
  assert.ok(parsed.problems.length <= PROBLEMS_MAX)
  assert.ok(parsed.headers.length <= HEADERS_MAX)
  assert.ok(parsed.attachments.length <= ATTACHMENTS_MAX)
  assert.ok(parsed.text.length <= TEXT_CHARS_MAX && parsed.snippet.length <= 200)
  assert.ok(parsed.from.length + parsed.to.length <= 2 * ADDRESSES_MAX)
  const shown = [
    parsed.subject,
    parsed.snippet,
    ...parsed.problems,
    ...parsed.attachments.map(({ name }) => name),
  ]
  for (const text of shown) assert.match(text, /^[^\p{Cc}\p{Cs}]*$/u)
  assert.ok(parsed.text.isWellFormed())
  for (const { start, end, content } of parsed.attachments) {
    assert.ok(0 <= start && start <= end && end <= raw.length && content.length <= raw.length)
  }
  const parcel = packMessage(raw, parsed)
  const contents = new Map(parcel.contents.map(({ sha256, content }) => [sha256, content]))
  assert.ok(Buffer.from(raw).equals(unpackMessage(encodeParcel(parcel), (sha256) => contents.get(sha256)!)))
}

test('any bytes are parsed within the limits, and come back the same', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 2_000 }), check), { numRuns: 1_000 })
})

test('any meaningful pieces are parsed within the limits, and come back the same', () => {
  const pieces = fc.array(fc.oneof(fc.constantFrom(...MEANT), fc.string({ maxLength: 8 })), { maxLength: 80 })
  fc.assert(
    fc.property(pieces, (some) => check(Buffer.from(some.join(''), 'latin1'))),
    { numRuns: 2_000 },
  )
})

test('damaged mail is parsed within the limits, and comes back the same', () => {
  const damaged = fc.tuple(fc.constantFrom(...SAMPLES), fc.array(edit, { minLength: 1, maxLength: 12 }))
  fc.assert(
    fc.property(damaged, ([sample, edits]) => check(edits.reduce(apply, Buffer.from(sample, 'latin1')))),
    { numRuns: 2_000 },
  )
})

test('the samples themselves have no problems', () => {
  for (const sample of SAMPLES) assert.deepEqual(parseMessage(Buffer.from(sample, 'latin1')).problems, [])
})
