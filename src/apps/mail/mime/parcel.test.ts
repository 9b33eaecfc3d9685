import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { TidemarkError } from '../../../base/errors.ts'
import { encodeParcel, PARCEL_BYTES_MIN, type Parcel, packMessage, unpackMessage } from './parcel.ts'
import { parseMessage } from './parse.ts'

const CONTENT = Buffer.from(Array.from({ length: 40_000 }, (_, place) => (place * 31 + (place >> 8)) & 255))

/** Base64 in lines, as mail programs write it. */
function lined(content: Buffer, lineLength: number, lineEnd: string): string {
  const text = content.toString('base64')
  const lines: string[] = []
  for (let at = 0; at < text.length; at += lineLength) lines.push(text.slice(at, at + lineLength))
  return lines.join(lineEnd)
}

function withAttachments(bodies: readonly string[], lineEnd = '\r\n'): Buffer {
  const head = ['Subject: s', 'Content-Type: multipart/mixed; boundary=b', '', '--b', '', 'text']
  const parts = bodies.flatMap((body) => [
    '--b',
    'Content-Type: application/octet-stream; name=a',
    'Content-Transfer-Encoding: base64',
    '',
    body,
  ])
  return Buffer.from([...head, ...parts, '--b--', ''].join(lineEnd), 'latin1')
}

function pack(raw: Uint8Array): Parcel {
  return packMessage(raw, parseMessage(raw))
}

function unpack(parcel: Parcel): Uint8Array {
  const contents = new Map(parcel.contents.map(({ sha256, content }) => [sha256, content]))
  return unpackMessage(encodeParcel(parcel), (sha256) => contents.get(sha256)!)
}

function assertSame(raw: Uint8Array, parcel: Parcel): void {
  assert.ok(Buffer.from(raw).equals(unpack(parcel)))
}

describe('a parcel', () => {
  const regular: readonly [what: string, raw: Buffer, lineLength: number, lineEnd: string][] = [
    ['lines of 76 with CRLF', withAttachments([lined(CONTENT, 76, '\r\n')]), 76, '\r\n'],
    ['lines of 76 with LF', withAttachments([lined(CONTENT, 76, '\n')], '\n'), 76, '\n'],
    ['lines of 60', withAttachments([lined(CONTENT, 60, '\r\n')]), 60, '\r\n'],
    ['lines of 75, which is no multiple of four', withAttachments([lined(CONTENT, 75, '\r\n')]), 75, '\r\n'],
    ['one endless line', withAttachments([CONTENT.toString('base64')]), 0, ''],
    ['blank lines around it', withAttachments([`\r\n${lined(CONTENT, 76, '\r\n')}\r\n\r\n`]), 76, '\r\n'],
    [
      'a last line that is full',
      withAttachments([lined(CONTENT.subarray(0, 57 * 400), 76, '\r\n')]),
      76,
      '\r\n',
    ],
  ]
  for (const [what, raw, lineLength, lineEnd] of regular) {
    test(`has an attachment cut out whose base64 has ${what}`, () => {
      const parcel = pack(raw)
      assert.equal(parcel.cuts.length, 1)
      assert.deepEqual([parcel.cuts[0]!.lineLength, parcel.cuts[0]!.lineEnd], [lineLength, lineEnd])
      assert.ok(parcel.skeleton.length < 600)
      assert.equal(parcel.contents[0]!.sha256, hash('sha256', parcel.contents[0]!.content, 'hex'))
      assert.deepEqual(parcel.attachmentHashes, [parcel.contents[0]!.sha256])
      assertSame(raw, parcel)
    })
  }

  const text = lined(CONTENT, 76, '\r\n')
  const irregular: readonly [what: string, body: string][] = [
    ['a short line in the middle', `${text.slice(0, 76)}\r\n${text.slice(78, 100)}\r\n${text.slice(100)}`],
    ['mixed line ends', text.replace('\r\n', '\n').replace('\r\n', '\n\r')],
    ['a blank at the end of a line', `${text.slice(0, 76)} ${text.slice(76)}`],
    ['no padding', lined(CONTENT.subarray(0, 39_998), 76, '\r\n').replace(/=+$/, '')],
    ['a foreign character', text.replace('A', '*')],
    ['bits behind its end', lined(CONTENT.subarray(0, 39_997), 76, '\r\n').replace(/.==$/, 'x==')],
  ]
  for (const [what, body] of irregular) {
    test(`is whole where base64 has ${what}`, () => {
      const raw = withAttachments([body])
      const parcel = pack(raw)
      assert.deepEqual([parcel.cuts.length, parcel.contents.length], [0, 0])
      assertSame(raw, parcel)
    })
  }

  test('keeps an irregular attachment and cuts out the regular ones beside it', () => {
    const swapped = `${text.slice(0, 76)}\n\r${text.slice(78)}`
    const raw = withAttachments([text, swapped, lined(CONTENT.subarray(1), 64, '\r\n')])
    const parcel = pack(raw)
    assert.deepEqual(
      parcel.cuts.map(({ lineLength }) => lineLength),
      [76, 64],
    )
    assertSame(raw, parcel)
  })

  test('holds one content once, however often the message has it', () => {
    const parcel = pack(withAttachments([text, text, lined(CONTENT, 60, '\r\n')]))
    assert.deepEqual([parcel.cuts.length, parcel.contents.length], [3, 1])
    assert.equal(parcel.attachmentHashes.length, 3)
  })

  test('leaves small attachments where they are', () => {
    const below = withAttachments([lined(CONTENT.subarray(0, PARCEL_BYTES_MIN - 1), 76, '\r\n')])
    const at = withAttachments([lined(CONTENT.subarray(0, PARCEL_BYTES_MIN), 76, '\r\n')])
    assert.equal(pack(below).cuts.length, 0)
    assert.equal(pack(at).cuts.length, 1)
  })

  test('comes back the same for any content, line length and line end', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: PARCEL_BYTES_MIN, max: 25_000 }),
        fc.integer({ min: 1, max: 2_000 }),
        fc.constantFrom('\r\n', '\n'),
        fc.constantFrom('', '\r\n', '\n\n'),
        (bytes, lineLength, lineEnd, tail) => {
          const raw = withAttachments(
            [lined(CONTENT.subarray(0, bytes), lineLength, lineEnd) + tail],
            lineEnd,
          )
          const parcel = pack(raw)
          assert.equal(parcel.cuts.length, 1)
          assertSame(raw, parcel)
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('a parcel that is damaged', () => {
  const encoded = Buffer.from(encodeParcel(pack(withAttachments([lined(CONTENT, 76, '\r\n')]))))
  const isDamaged = (error: unknown): boolean =>
    error instanceof TidemarkError && error.code === 'parcel-damaged'

  test('is refused: wrong version, cut short, wrong content', () => {
    assert.throws(() => unpackMessage(Buffer.from([9, 0]), () => CONTENT), isDamaged)
    assert.throws(() => unpackMessage(Buffer.alloc(0), () => CONTENT), isDamaged)
    assert.throws(() => unpackMessage(encoded.subarray(0, 20), () => CONTENT), isDamaged)
    assert.throws(() => unpackMessage(encoded, () => CONTENT.subarray(1)), isDamaged)
  })

  test('never brings more than an error of its own', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.boolean(), (bytes, versioned) => {
        const damaged = versioned ? Buffer.concat([Uint8Array.of(1), bytes]) : bytes
        try {
          unpackMessage(damaged, () => CONTENT)
        } catch (error) {
          assert.ok(isDamaged(error), String(error))
        }
      }),
      { numRuns: 500 },
    )
  })
})
