import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { TidemarkError } from '../../base/errors.ts'
import { BatchParser, type BatchPart, boundaryOf, buildBatch } from './batch.ts'

type Seen = { key: string | undefined; state: string; status?: number; body?: string }
type Reply = { id: string; status: number; body: string }

const MEGABYTE = 1024 * 1024

/** What Gmail answers a batch with. */
function answerOf(replies: readonly Reply[], { boundary = 'batch_abc', eol = '\r\n' } = {}): Buffer {
  const parts = replies.map(({ id, status, body }) =>
    [
      `--${boundary}`,
      'Content-Type: application/http',
      `Content-ID: <response-${id}>`,
      '',
      `HTTP/1.1 ${status} Said`,
      'Content-Type: application/json; charset=UTF-8',
      'Vary: Origin',
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
      '',
    ].join(eol),
  )
  return Buffer.from(`${parts.join('')}--${boundary}--${eol}`)
}

/** Copies what it sees, since views do not last. */
function note(part: BatchPart): Seen {
  if (part.state !== 'whole') return { key: part.key, state: part.state }
  return { key: part.key, state: part.state, status: part.status, body: part.body.toString('utf8') }
}

function parse(
  chunks: readonly Uint8Array[],
  options: { boundary?: string; partBytesMax?: number } = {},
): Seen[] {
  const parser = new BatchParser({ boundary: 'batch_abc', partBytesMax: MEGABYTE, partsMax: 100, ...options })
  const seen: Seen[] = []
  for (const chunk of chunks) for (const part of parser.push(chunk)) seen.push(note(part))
  parser.end()
  return seen
}

function chunksOf(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  let at = 0
  for (let turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

function seenOf(replies: readonly Reply[]): Seen[] {
  return replies.map(({ id, status, body }) => ({ key: id, state: 'whole', status, body }))
}

const replies = fc.uniqueArray(
  fc.record({
    id: fc.stringMatching(/^[0-9a-f]{1,16}$/),
    status: fc.constantFrom(200, 404, 429, 500),
    body: fc.oneof(
      fc.json(),
      fc.string().map((text) => JSON.stringify({ text, raw: 'QUJD'.repeat(text.length * 50) }, null, 1)),
      // Looks like a delimiter, but has something else behind it.
      fc.constant('{"a":\r\n--batch_abcd\r\n}\r\n--batch_abc-\r\n--batch_ab\r\n'),
    ),
  }),
  { selector: ({ id }) => id, minLength: 1, maxLength: 12 },
)
const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 70_000 })), {
  minLength: 1,
  maxLength: 20,
})

describe('the parser of batch answers', () => {
  test('finds the same parts however the answer is cut into chunks', () => {
    fc.assert(
      fc.property(replies, sizes, fc.constantFrom('\r\n', '\n'), (replies, sizes, eol) => {
        const expected = seenOf(replies)
        const seen = parse(chunksOf(answerOf(replies, { eol }), sizes))
        assert.deepEqual(seen, expected)
      }),
      { numRuns: 300 },
    )
  })

  test('reads an answer byte by byte without searching it again and again', () => {
    const body = JSON.stringify({ raw: 'A'.repeat(300_000) })
    const bytes = answerOf([{ id: 'a', status: 200, body }])
    let searched = 0
    const indexOf = Buffer.prototype.indexOf
    Buffer.prototype.indexOf = function (this: Buffer, ...args: Parameters<typeof indexOf>) {
      if (typeof args[1] === 'number') searched += this.length - args[1]
      return indexOf.apply(this, args)
    } as typeof indexOf
    try {
      assert.equal(parse(chunksOf(bytes, [1])).length, 1)
    } finally {
      Buffer.prototype.indexOf = indexOf
    }
    assert.ok(searched < bytes.length * 30, `${searched} bytes were searched in ${bytes.length}`)
  })

  test('yields a part as soon as the delimiter behind it is there', () => {
    const bytes = answerOf(['a', 'b'].map((id) => ({ id, status: 200, body: '{}' })))
    const second = bytes.indexOf('--batch_abc', 5) + '--batch_abc\r\n'.length
    const parser = new BatchParser({ boundary: 'batch_abc', partBytesMax: 1_000, partsMax: 2 })
    assert.deepEqual(
      [...parser.push(bytes.subarray(0, second))].map(note),
      seenOf([{ id: 'a', status: 200, body: '{}' }]),
    )
  })

  test('survives any bytes: parts or a transient TidemarkError, and nothing else', () => {
    const pieces = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc
        .constantFrom(
          '\r\n',
          '\n',
          '--batch_abc',
          '\r\n--batch_abc\r\n',
          '\n--batch_abc--',
          'HTTP/1.1 200 OK',
          'Content-ID: <response-a>',
          '\r\n\r\n',
          '{"id":"a"}',
        )
        .map((text) => Buffer.from(text)),
    )
    fc.assert(
      fc.property(
        fc.array(pieces, { maxLength: 40 }),
        sizes,
        fc.integer({ min: 20, max: 400 }),
        (list, sizes, max) => {
          const bytes = Buffer.concat(list)
          const whole = attempt(() => parse([bytes], { partBytesMax: max }))
          const cut = attempt(() => parse(chunksOf(bytes, sizes), { partBytesMax: max }))
          assert.deepEqual(cut.failed, whole.failed)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('gives up a part that is too large by its id, and goes on with the next', () => {
    const large = { id: 'large', status: 200, body: `{"raw":"${'A'.repeat(50_000)}"}` }
    const small = { id: 'small', status: 200, body: '{}' }
    for (const size of [7, 900, 1_000_000]) {
      const seen = parse(chunksOf(answerOf([small, large, { ...small, id: 'last' }]), [size]), {
        partBytesMax: 10_000,
      })
      assert.deepEqual(seen, [
        ...seenOf([small]),
        { key: 'large', state: 'too-large' },
        ...seenOf([{ ...small, id: 'last' }]),
      ])
    }
  })

  test('calls a part without an HTTP answer damaged, and goes on with the next', () => {
    const bytes = Buffer.from(
      '--batch_abc\r\nContent-ID: <response-a>\r\n\r\nnonsense\r\n--batch_abc\r\nContent-ID: <response-b>\r\n\r\nHTTP/1.1 204 No Content\r\n--batch_abc--',
    )
    assert.deepEqual(parse([bytes]), [
      { key: 'a', state: 'damaged' },
      { key: 'b', state: 'whole', status: 204, body: '' },
    ])
  })

  test('does not take an id without the prefix response-', () => {
    const bytes = Buffer.from(
      '--batch_abc\r\nContent-ID: <a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}\r\n--batch_abc--',
    )
    assert.deepEqual(parse([bytes]), [{ key: undefined, state: 'whole', status: 200, body: '{}' }])
  })

  test('says when an answer ended too early, has no parts, or has too many', () => {
    const bytes = answerOf([{ id: 'a', status: 200, body: '{}' }])
    const codeOf = (run: () => unknown): string | undefined => attempt(run as () => Seen[]).failed
    assert.equal(
      codeOf(() => parse([bytes.subarray(0, bytes.length - 6)])),
      'cut-short',
    )
    assert.equal(
      codeOf(() => parse([Buffer.from('<html>')])),
      'damaged-answer',
    )
    assert.equal(
      codeOf(() => parse(chunksOf(Buffer.alloc(100_000, 'x'), [1_000]))),
      'damaged-answer',
    )
    const flood = answerOf(Array.from({ length: 101 }, (_, n) => ({ id: `${n}`, status: 200, body: '' })))
    assert.equal(
      codeOf(() => parse([flood])),
      'damaged-answer',
    )
  })
})

describe('a batch', () => {
  test('carries each call with its key', () => {
    const { body, contentType } = buildBatch([
      { key: 'a', path: '/gmail/v1/users/me/messages/a?format=raw' },
      { key: 'b', path: '/gmail/v1/users/me/messages/b?format=raw' },
    ])
    const boundary = boundaryOf(contentType)
    assert.equal(body.split(`--${boundary}\r\n`).length, 3)
    assert.match(
      body,
      /Content-ID: <b>\r\n\r\nGET \/gmail\/v1\/users\/me\/messages\/b\?format=raw HTTP\/1\.1\r\n\r\n/,
    )
    assert.ok(body.endsWith(`--${boundary}--\r\n`))
  })

  test('names its boundary with and without quotes', () => {
    assert.equal(boundaryOf('multipart/mixed; boundary=batch_x-1'), 'batch_x-1')
    assert.equal(boundaryOf('multipart/mixed; charset=UTF-8; boundary="a b=c"'), 'a b=c')
  })

  test('is not one without a boundary, or of another type', () => {
    for (const type of [
      null,
      '',
      'text/html',
      'multipart/mixed',
      `multipart/mixed; boundary=${'x'.repeat(300)}`,
    ]) {
      assert.throws(
        () => boundaryOf(type),
        (error) => error instanceof TidemarkError && error.code === 'wrong-content-type',
      )
    }
  })
})

/** Anything but a transient TidemarkError is thrown on. */
function attempt(run: () => Seen[]): { seen: Seen[]; failed?: string } {
  try {
    return { seen: run() }
  } catch (error) {
    if (!(error instanceof TidemarkError) || error.kind !== 'transient') throw error
    return { seen: [], failed: error.code ?? 'none' }
  }
}
