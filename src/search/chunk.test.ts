import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { assertLinear } from '../base/growth.suite.ts'
import { CHUNK_CHARS_MAX, CHUNK_WORDS_ALONE_MIN, CHUNK_WORDS_MAX, CHUNKS_MAX, chunkParts } from './chunk.ts'
import type { Place, TextPart } from './extract/contract.ts'

const NONE: Place = { kind: 'none' }
const sentence = (words: number, of = 'word'): string => `${Array(words).fill(of).join(' ')}. `
const part = (text: string, more: Partial<TextPart> = {}): TextPart => ({
  text,
  headings: [],
  place: NONE,
  ...more,
})
const lines = (text: string, first = 1): TextPart =>
  part(text, { place: { kind: 'lines', first, last: first + text.split('\n').length - 1 } })
const wordsOf = (text: string): number => text.split(/\s+/).filter(Boolean).length

describe('chunks', () => {
  test('are about two hundred words and end with a sentence', () => {
    const { chunks, isTruncated } = chunkParts([part(sentence(17).repeat(60))])
    assert.equal(isTruncated, false)
    for (const { text } of chunks.slice(0, -1)) {
      assert.ok(text.endsWith('.'), text.slice(-20))
      assert.ok(wordsOf(text) >= 150 && wordsOf(text) <= CHUNK_WORDS_MAX, String(wordsOf(text)))
    }
    assert.deepEqual(
      chunks.map(({ n }) => n),
      chunks.map((_, at) => at),
    )
  })

  test('end with a paragraph rather than with a later sentence', () => {
    const text = `${sentence(70)}\n${sentence(70)}\n\n${sentence(40)}${sentence(150)}`
    const [first, second] = chunkParts([part(text)]).chunks
    assert.equal(wordsOf(first!.text), 140)
    assert.equal(wordsOf(second!.text), 190)
  })

  test('leave a text whole that is hardly longer than one', () => {
    assert.equal(chunkParts([part(sentence(CHUNK_WORDS_MAX))]).chunks.length, 1)
  })

  test('never cross a page, a slide or a sheet', () => {
    const places: Place[] = [
      { kind: 'page', page: 1 },
      { kind: 'page', page: 2 },
      { kind: 'slide', slide: 1 },
      { kind: 'slide', slide: 2 },
      { kind: 'rows', sheet: 'A', first: 1, last: 1 },
      { kind: 'rows', sheet: 'B', first: 2, last: 2 },
    ]
    const { chunks } = chunkParts(places.map((place) => part('a few words', { place })))
    assert.deepEqual(
      chunks.map(({ place }) => place),
      places,
    )
  })

  test('join short sections under the headings that they share', () => {
    const { chunks } = chunkParts([
      part('Manual', { headings: ['Manual'] }),
      part('Start here.', { headings: ['Manual', 'Start'] }),
      part(sentence(CHUNK_WORDS_ALONE_MIN), { headings: ['Manual', 'Use'] }),
      part(sentence(CHUNK_WORDS_ALONE_MIN), { headings: ['Manual', 'Care'] }),
    ])
    assert.deepEqual(
      chunks.map(({ headings }) => headings),
      [['Manual'], ['Manual', 'Care']],
    )
    assert.match(chunks[0]!.text, /^Manual\n\nStart here\.\n\nword/)
  })

  test('say the lines on which they stand', () => {
    const text = Array.from({ length: 100 }, (_, at) => `line ${at + 5} has a few words in it.`)
    const { chunks } = chunkParts([lines(text.join('\n'), 5)])
    assert.ok(chunks.length > 2)
    let next = 5
    for (const { text, place } of chunks) {
      assert.ok(place.kind === 'lines')
      assert.equal(place.first, next)
      assert.ok(text.startsWith(`line ${place.first} `), text.slice(0, 20))
      assert.match(text, new RegExp(`line ${place.last} has a few words in it\\.$`))
      next = place.last + 1
    }
    assert.equal(next, 105)
  })

  test('of a table end with a row', () => {
    const rows = Array.from(
      { length: 60 },
      (_, at) => `Name: N. ${at} | Note: first. second. third. and so on`,
    )
    const place: Place = { kind: 'rows', sheet: 'S', first: 2, last: 61 }
    const { chunks } = chunkParts([part(rows.join('\n'), { place })])
    assert.ok(chunks.length > 1)
    for (const { text } of chunks) assert.ok(text.startsWith('Name:') && text.endsWith('and so on'))
  })

  test('of writing without spaces end with its own full stop', () => {
    const { chunks } = chunkParts([part('春はあけぼの。やうやう白くなりゆく山ぎは。'.repeat(60))])
    assert.ok(chunks.length > 2)
    for (const { text } of chunks) {
      assert.ok(text.endsWith('。'))
      assert.ok(text.length <= CHUNK_WORDS_MAX * 2)
    }
  })

  test('stop at their limit and say so', () => {
    const text = sentence(200).repeat(50)
    const cut = chunkParts([part(text)], { chunksMax: 10 })
    assert.equal(cut.chunks.length, 10)
    assert.equal(cut.isTruncated, true)
    const all = chunkParts([part(text)])
    assert.equal(chunkParts([part(text)], { chunksMax: all.chunks.length }).isTruncated, false)
    assert.deepEqual(cut.chunks, all.chunks.slice(0, 10))
  })

  test('of a line of 100 MB are no more than the limit, and looked at no further', () => {
    const { chunks, isTruncated } = chunkParts([lines('x'.repeat(100_000_000))])
    assert.equal(isTruncated, true)
    assert.equal(chunks.length, CHUNKS_MAX)
    assert.ok(chunks.every(({ text }) => text.length <= CHUNK_CHARS_MAX))
  })

  test('take work in proportion to the text', () => {
    for (const sample of ['word ', 'x', '\n', ' \n', '. ', '。', 'a\n\n']) {
      assertLinear({
        sizeMax: 400_000,
        make: (size) => [lines(sample.repeat(size / sample.length))],
        work: (parts) => chunkParts(parts, { chunksMax: 1_000_000 }),
      })
    }
  })
})

describe('whatever the text', () => {
  const place = fc.oneof(
    fc.constant<Place>(NONE),
    fc.record({ kind: fc.constant('page' as const), page: fc.integer({ min: 1, max: 3 }) }),
    fc.record({
      kind: fc.constant('lines' as const),
      first: fc.integer({ min: 1, max: 9 }),
      last: fc.constant(99),
    }),
  )
  const word = fc.oneof(
    { weight: 20, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 2_000, max: 6_000 }).map((length) => '😀x'.repeat(length / 3)),
    },
  )
  const gap = fc.constantFrom(' ', ' ', ' ', '. ', '\n', '\n\n', '。', '\t', ' \n ')
  const text = fc
    .array(fc.tuple(word, gap), { maxLength: 900, size: 'max' })
    .map((pairs) => pairs.flat().join(''))
  const part = fc.record({
    text,
    headings: fc.array(fc.constantFrom('A', 'B', 'C'), { maxLength: 3 }),
    place,
  })
  const letters = (texts: string[]): string => texts.join('').replace(/[\t-\r \u00a0\u3000]+/g, '')

  test('nothing is lost, nothing comes twice, and no chunk is empty or too long', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
        const { chunks, isTruncated } = chunkParts(parts)
        assert.equal(isTruncated, false)
        assert.equal(letters(chunks.map(({ text }) => text)), letters(parts.map(({ text }) => text)))
        for (const { text } of chunks) {
          assert.ok(text.length > 0 && text.length <= CHUNK_CHARS_MAX)
          if (parts.every((one) => one.text.isWellFormed())) assert.ok(text.isWellFormed())
        }
        assert.equal(JSON.stringify(chunkParts(structuredClone(parts)).chunks), JSON.stringify(chunks))
      }),
      { numRuns: 60 },
    )
  })
})
