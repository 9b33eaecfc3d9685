/**
 * Cuts a document's text into chunks of about 200 words, each with the headings above it and its place. Pure: the
 * same parts give the same chunks, and all chunks' words in order are the parts' words in order.
 *
 * - A chunk lies within one page, slide or sheet, so that a citation leads to one place.
 * - It ends with a paragraph where one ends near, else with a sentence, a line, a word; only a word that is longer
 *   than a chunk is cut, and never inside of a surrogate pair.
 * - Sections that are too short to say much are joined with the next, under the headings that they share.
 * - Chunks do not overlap: their headings carry what an overlap would, and no hit comes twice.
 * - No chunk holds its document's name or title: documents with the same bytes share their chunks, and the title of
 *   one is not for the readers of another. `chunkContext` adds it where that is right.
 */
import type { Place, TextPart } from './extract/contract.ts'

export type Chunk = {
  /** From 0 on, without gaps. */
  n: number
  text: string
  /** The headings above it, outermost first. */
  headings: string[]
  place: Place
}

export type ChunkedText = {
  chunks: Chunk[]
  /** There is more text than `CHUNKS_MAX` chunks hold. */
  isTruncated: boolean
}

/** Words of a chunk. What is no longer than this stays together. */
export const CHUNK_WORDS_MAX = 260
/** A chunk ends at the last good place from here on, up to `CHUNK_WORDS_GOOD_MAX`. */
export const CHUNK_WORDS_GOOD_MIN = 120
export const CHUNK_WORDS_GOOD_MAX = 220
/** A section with fewer words is joined with the next. */
export const CHUNK_WORDS_ALONE_MIN = 80
/** Of a chunk, in characters, whatever its words are. */
export const CHUNK_CHARS_MAX = 2_400
/** Of a document: 400,000 words. */
export const CHUNKS_MAX = 2_000

/** A longer word counts as several: what costs an embedder is letters, not spaces. */
const WORD_CHARS = 12
/** Characters of scripts without spaces: two of them count as a word. */
const WORDS_OF_IDEOGRAPH = 0.5

export type ChunkLimits = { chunksMax?: number }

export function chunkParts(parts: readonly TextPart[], limits: ChunkLimits = {}): ChunkedText {
  const { chunksMax = CHUNKS_MAX } = limits
  const chunks: Chunk[] = []
  let open: OpenChunk | undefined
  for (const part of parts) {
    for (const piece of piecesOf(part)) {
      const joined = open && joinedWith(open, piece)
      if (joined) {
        open = joined
        continue
      }
      if (open) chunks.push(closed(open, chunks.length))
      open = piece
      if (chunks.length === chunksMax) return { chunks, isTruncated: true }
    }
  }
  if (open) chunks.push(closed(open, chunks.length))
  return { chunks, isTruncated: false }
}

type OpenChunk = { text: string; headings: string[]; place: Place; words: number }

function closed({ text, headings, place }: OpenChunk, n: number): Chunk {
  return { n, text, headings, place }
}

/** Two neighbours as one, if one of them is too short to stand alone and both stand in one place. */
function joinedWith(open: OpenChunk, next: OpenChunk): OpenChunk | undefined {
  if (open.words >= CHUNK_WORDS_ALONE_MIN && next.words >= CHUNK_WORDS_ALONE_MIN) return undefined
  const words = open.words + next.words
  if (words > CHUNK_WORDS_GOOD_MAX) return undefined
  const joined = joinedPlace(open.place, next.place)
  if (!joined || open.text.length + next.text.length + joined.between.length > CHUNK_CHARS_MAX)
    return undefined
  return {
    text: open.text + joined.between + next.text,
    headings: sharedPath(open.headings, next.headings),
    place: joined.place,
    words,
  }
}

/** Where lines are counted, the text between keeps their count. */
const LINES_BETWEEN_MAX = 10

function joinedPlace(one: Place, next: Place): { place: Place; between: string } | undefined {
  if ((one.kind === 'lines' && next.kind === 'lines') || (one.kind === 'rows' && next.kind === 'rows')) {
    if (one.kind === 'rows' && next.kind === 'rows' && one.sheet !== next.sheet) return undefined
    const lines = next.first - one.last
    if (lines < 0 || lines > LINES_BETWEEN_MAX) return undefined
    return { place: { ...one, last: next.last }, between: lines === 0 ? ' ' : '\n'.repeat(lines) }
  }
  const isSame =
    (one.kind === 'none' && next.kind === 'none') ||
    (one.kind === 'page' && next.kind === 'page' && one.page === next.page) ||
    (one.kind === 'slide' && next.kind === 'slide' && one.slide === next.slide)
  return isSame ? { place: one, between: '\n\n' } : undefined
}

function sharedPath(one: string[], other: string[]): string[] {
  let shared = 0
  while (shared < one.length && shared < other.length && one[shared] === other[shared]) shared += 1
  return one.slice(0, shared)
}

function* piecesOf(part: TextPart): Generator<OpenChunk> {
  const { text, headings, place } = part
  const isCounted = place.kind === 'lines' || place.kind === 'rows'
  let line = isCounted ? place.first : 0
  let from = skipSpace(text, 0)
  line += lineEndsIn(text, 0, from)
  while (from < text.length) {
    const { end, words } = cutFrom(text, from, place.kind === 'rows')
    const piece = text.slice(from, withoutSpace(text, end))
    const last = line + lineEndsIn(piece, 0, piece.length)
    yield { text: piece, headings, words, place: isCounted ? { ...place, first: line, last } : place }
    const next = skipSpace(text, end)
    line = last + lineEndsIn(text, from + piece.length, next)
    from = next
  }
}

type Cut = { end: number; words: number }

/** How far one chunk reaches. Looks at no more characters than a chunk may have, however long the text is. */
function cutFrom(text: string, from: number, isTable: boolean): Cut {
  const to = Math.min(text.length, from + CHUNK_CHARS_MAX)
  const counter = new WordCounter()
  const ends: { paragraph?: Cut; sentence?: Cut; line?: Cut } = {}
  let word: Cut | undefined
  let at = from
  for (; at < to; at++) {
    const code = text.charCodeAt(at)
    counter.add(code)
    if (counter.words > CHUNK_WORDS_MAX) break
    if (!isSpace(code) && !isSentenceEndOfIdeographs(code)) continue
    const isSpaceHere = isSpace(code)
    const end: Cut = { end: isSpaceHere ? at : at + 1, words: counter.words }
    word = end
    if (end.words < CHUNK_WORDS_GOOD_MIN && at - from < CHUNK_CHARS_MAX / 2) continue
    if (end.words > CHUNK_WORDS_GOOD_MAX) continue
    if (code === LINE_FEED) ends.line = end
    if (code === LINE_FEED && isEmptyLineBelow(text, at)) ends.paragraph = end
    if (!isSpaceHere || endsSentence(text, at)) ends.sentence = end
  }
  if (at === text.length) return { end: at, words: counter.words }
  const chosen = isTable
    ? (ends.line ?? ends.sentence ?? word)
    : (ends.paragraph ?? ends.sentence ?? ends.line ?? word)
  return chosen ?? { end: withoutHalfPair(text, at, from), words: counter.words }
}

const LINE_FEED = 0x0a

class WordCounter {
  words = 0
  #run = 0

  add(code: number): void {
    if (isSpace(code)) this.#run = 0
    else if (isIdeograph(code)) {
      this.#run = 0
      this.words += WORDS_OF_IDEOGRAPH
    } else if (this.#run++ % WORD_CHARS === 0) this.words += 1
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0 || code === 0x3000
}

/** Chinese, Japanese kana, and the planes beyond, as seen by their first half; Thai, Lao, Khmer and Burmese. */
function isIdeograph(code: number): boolean {
  return (
    (code >= 0x3040 && code <= 0x9fff) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0x0e00 && code <= 0x0eff) ||
    (code >= 0x1000 && code <= 0x109f) ||
    (code >= 0x1780 && code <= 0x17ff) ||
    (code >= 0xd840 && code <= 0xd8bf)
  )
}

/** 。！？ need no space behind them. */
function isSentenceEndOfIdeographs(code: number): boolean {
  return code === 0x3002 || code === 0xff01 || code === 0xff1f
}

const SENTENCE_END = /[.!?…:;][)\]}"'”’»]{0,3}$/
const LONGEST_SENTENCE_END = 4

/** At a space: whether a sentence ends before it. An abbreviation that looks like one does no harm. */
function endsSentence(text: string, at: number): boolean {
  return SENTENCE_END.test(text.slice(Math.max(0, at - LONGEST_SENTENCE_END), at))
}

function isEmptyLineBelow(text: string, at: number): boolean {
  let next = at + 1
  while (next < text.length && (text.charCodeAt(next) === 0x20 || text.charCodeAt(next) === 0x09)) next += 1
  return text.charCodeAt(next) === LINE_FEED
}

function withoutHalfPair(text: string, at: number, from: number): number {
  const before = text.charCodeAt(at - 1)
  return before >= 0xd800 && before <= 0xdbff && at - 1 > from ? at - 1 : at
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpace(text.charCodeAt(at))) at += 1
  return at
}

/** Goes back over the space before `end`; something else stands further ahead. */
function withoutSpace(text: string, end: number): number {
  let at = end
  while (isSpace(text.charCodeAt(at - 1))) at -= 1
  return at
}

function lineEndsIn(text: string, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; at++) if (text.charCodeAt(at) === LINE_FEED) count += 1
  return count
}
