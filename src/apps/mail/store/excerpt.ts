/** The part of a text that shows why it was found: around the first match, with every match in it marked. */
import type { Mark } from './compiled-query.ts'
import { type WordPlace, wordsOf } from './words.ts'

export type ExcerptPiece = { text: string; match: boolean }

const CHARS_MAX = 160
const CHARS_BEFORE = 50
/** Beyond this a text is not looked at: an excerpt is worth some milliseconds, not more. */
const LOOKED_AT_CHARS_MAX = 200_000

/** Null where none of it is found: what matched stands elsewhere, such as in the subject. */
export function excerptOf(text: string, marks: readonly Mark[]): ExcerptPiece[] | null {
  const looked = text.length > LOOKED_AT_CHARS_MAX ? text.slice(0, LOOKED_AT_CHARS_MAX) : text
  const first = firstMatch(looked, marks)
  if (!first) return null
  const start = startBefore(looked, first.start)
  const end = Math.max(first.end, endAfter(looked, start + CHARS_MAX))
  const pieces: ExcerptPiece[] = []
  const add = (from: number, to: number, match: boolean): void => {
    const piece = looked.slice(from, to).replaceAll(/\s+/g, ' ')
    if (piece !== '') pieces.push({ text: piece, match })
  }
  let at = start
  for (const { start: from, end: to } of matchesIn(looked.slice(0, end), marks, start)) {
    if (from < at) continue
    add(at, from, false)
    add(from, to, true)
    at = to
  }
  add(at, end, false)
  if (start > 0) pieces.unshift({ text: '…', match: false })
  if (end < text.length) pieces.push({ text: '…', match: false })
  return merged(pieces)
}

/** The beginning of a text, where nothing is to be marked. */
export function plainExcerpt(text: string): ExcerptPiece[] {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  if (line === '') return []
  const end = endAfter(line, CHARS_MAX)
  return [{ text: end < line.length ? `${line.slice(0, end)}…` : line, match: false }]
}

function firstMatch(text: string, marks: readonly Mark[]): { start: number; end: number } | undefined {
  // Most mail is ASCII, where the place of a word is found twenty times as fast without taking the text apart.
  if (isAscii(text)) {
    const lower = text.toLowerCase()
    const from = Math.min(
      ...marks.map(({ words, prefix }) => wordPosition(lower, words[0]!, prefix || words.length > 1)),
    )
    if (from === Number.POSITIVE_INFINITY) return undefined
    return matchesIn(text, marks, from).next().value ?? undefined
  }
  return matchesIn(text, marks, 0).next().value ?? undefined
}

/** Where a word stands for the first time, perhaps as the beginning of a longer one. */
function wordPosition(lower: string, word: string, mayGoOn: boolean): number {
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + 1)) {
    const before = at > 0 && isWordCode(lower.charCodeAt(at - 1))
    const after = !mayGoOn && isWordCode(lower.charCodeAt(at + word.length))
    if (!before && !after) return at
  }
  return Number.POSITIVE_INFINITY
}

/** Digits and small letters; NaN beyond the end is neither. */
function isWordCode(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 97 && code <= 122)
}

/** In the order of the text. */
function* matchesIn(
  text: string,
  marks: readonly Mark[],
  from: number,
): Generator<{ start: number; end: number }, undefined> {
  const longest = Math.max(1, ...marks.map(({ words }) => words.length))
  /** The last words read, the newest last: as many as the longest phrase has. */
  const window: WordPlace[] = []
  for (const place of wordsOf(text, from)) {
    window.push(place)
    if (window.length > longest) window.shift()
    for (const mark of marks) {
      const places = window.slice(-mark.words.length)
      if (!endsWith(places, mark)) continue
      yield { start: places[0]!.start, end: place.end }
      break
    }
  }
}

function endsWith(places: readonly WordPlace[], { words, prefix }: Mark): boolean {
  if (places.length < words.length) return false
  return words.every((word, index) => {
    const { word: found } = places[index]!
    return prefix && index === words.length - 1 ? found.startsWith(word) : found === word
  })
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
  return /^[\u0000-\u007f]*$/.test(text)
}

/** At the beginning of a word, where one begins near by. */
function startBefore(text: string, match: number): number {
  const wish = Math.max(0, match - CHARS_BEFORE)
  if (wish === 0) return 0
  const blank = text.slice(wish, match).search(/\s/)
  return blank < 0 ? wholeCharacter(text, wish) : wish + blank + 1
}

/** At the end of a word, where one ends near by. */
function endAfter(text: string, wish: number): number {
  if (wish >= text.length) return text.length
  const blank = text.lastIndexOf(' ', wish)
  return blank > wish - CHARS_BEFORE ? blank : wholeCharacter(text, wish)
}

/** Never between the halves of a pair. */
function wholeCharacter(text: string, at: number): number {
  return /[\udc00-\udfff]/.test(text[at] ?? '') ? at - 1 : at
}

function merged(pieces: readonly ExcerptPiece[]): ExcerptPiece[] {
  const out: ExcerptPiece[] = []
  for (const piece of pieces) {
    const last = out.at(-1)
    if (last && last.match === piece.match && !piece.match) last.text += piece.text
    else out.push({ ...piece })
  }
  return out
}
