import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { TidemarkError } from '../../base/errors.ts'
import { decodeBase64Url, rawMessageOf } from './raw-message.ts'

describe('the bytes of a message', () => {
  test('come out of base64url and of base64, padded or not', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 20_000 }), (bytes) => {
        const padded = Buffer.from(bytes).toString('base64')
        for (const text of [Buffer.from(bytes).toString('base64url'), padded, padded.replaceAll('=', '')]) {
          const decoded = decodeBase64Url(text)
          assert.ok(decoded && Buffer.compare(decoded, bytes) === 0)
          assert.equal(decoded.buffer.byteLength, decoded.length)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('are refused with a foreign character in any place', () => {
    const foreign = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 3 })
      .filter((text) => !/[\w+/=-]/.test(text))
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 90 }),
        fc.nat(),
        foreign,
        fc.boolean(),
        (bytes, at, text, put) => {
          const good = Buffer.from(bytes).toString('base64url')
          const place = at % good.length
          const bad = good.slice(0, place) + text + good.slice(put ? place : place + text.length)
          assert.equal(decodeBase64Url(bad), undefined)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('are refused with padding in the middle, and with a character too many', () => {
    for (const text of ['QUJD=QUJD', 'QUI=QUJD', 'QUJDQ', '=QUJD', 'QUJD===', 'QUJD====']) {
      assert.equal(decodeBase64Url(text), undefined, text)
    }
  })
})

describe('a message', () => {
  const FIELDS = {
    threadId: 't',
    labelIds: ['INBOX'],
    historyId: '7',
    internalDate: '1700000000000',
    sizeEstimate: 3,
  }
  const nasty = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('"raw":"QUJD"', '{"raw": "QUJD"}', '\\', '"', 'raw', '\\"raw\\":'),
  )

  test('is the same however its JSON is written', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 300 }),
        nasty,
        fc.shuffledSubarray(['raw', 'snippet', 'id', 'payload', 'rest'], { minLength: 5 }),
        fc.constantFrom(undefined, 2),
        fc.constantFrom('base64', 'base64url' as const),
        fc.boolean(),
        (bytes, snippet, order, indent, alphabet, escapes) => {
          const all: Record<string, unknown> = {
            raw: Buffer.from(bytes).toString(alphabet),
            snippet,
            id: 'a',
            payload: { raw: 'QUJD', [snippet]: snippet },
            rest: 1,
          }
          const object = { ...Object.fromEntries(order.map((key) => [key, all[key]])), ...FIELDS }
          const json = JSON.stringify(object, null, indent)
          const text = escapes ? json.replaceAll('=', '\\u003d').replaceAll('/', '\\/') : json
          const message = rawMessageOf(Buffer.from(text), 'a')
          assert.deepEqual(message, {
            id: 'a',
            snippet: JSON.parse(Buffer.from(text).toString()).snippet,
            threadId: 't',
            labelIds: ['INBOX'],
            historyId: '7',
            internalMs: 1_700_000_000_000,
            sizeEstimate: 3,
            raw: bytes,
          })
        },
      ),
      { numRuns: 500 },
    )
  })

  test('is damaged, and nothing else, where its bytes are missing or something else', () => {
    const bodies = [
      '',
      'null',
      '[]',
      '{"id":"a","raw":"QUJD"',
      JSON.stringify({ id: 'a', ...FIELDS }),
      JSON.stringify({ id: 'a', ...FIELDS, raw: null, snippet: 'abcd' }),
      JSON.stringify({ id: 'a', ...FIELDS, raw: ['QUJD'] }),
      JSON.stringify({ id: 'a', ...FIELDS, raw: '.' }),
      JSON.stringify({ id: 'a', ...FIELDS, raw: '' }),
      JSON.stringify({ id: 'a', ...FIELDS, payload: { raw: 'QUJD' } }),
      JSON.stringify({ id: 'a', ...FIELDS, payload: { raw: 'QUJD' }, raw: '.' }),
      JSON.stringify({ id: 'b', ...FIELDS, raw: 'QUJD' }),
    ]
    for (const body of bodies) {
      assert.throws(
        () => rawMessageOf(Buffer.from(body), 'a'),
        (error) => error instanceof TidemarkError && error.code === 'damaged-answer',
        body,
      )
    }
  })
})
