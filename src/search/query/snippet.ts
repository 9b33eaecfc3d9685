/** What is shown of a hit: a piece of its text around what was found, cut between words, with what was found marked. */
import type { Marked } from '../contract.ts'
import { wordPlaces } from '../index/words.ts'
import type { TextLeaf } from './query.ts'

const SNIPPET_CHARS = 260
/** What stands before the first word that was found. */
const BEFORE_CHARS = 60
/** Of a text that is gone through for words. */
const TEXT_CHARS_MAX = 20_000
const MARKS_MAX = 30

export type Stretch = { start: number; end: number }

/** Where a text has what was looked for; phrases as a whole. In order, and none within another. */
export function stretchesOf(text: string, leaves: readonly TextLeaf[]): (Stretch & { leaf: TextLeaf })[] {
  const places = [...wordPlaces(text.slice(0, TEXT_CHARS_MAX))]
  const found: (Stretch & { leaf: TextLeaf })[] = []
  for (let i = 0; i < places.length && found.length < MARKS_MAX; i++) {
    const leaf = longest(leaves.filter((one) => beginsAt(one, places, i)))
    if (!leaf) continue
    const last = i + leaf.words.length - 1
    found.push({ start: places[i]!.start, end: places[last]!.end, leaf })
    i = last
  }
  return found
}

function longest(leaves: readonly TextLeaf[]): TextLeaf | undefined {
  return leaves.reduce<TextLeaf | undefined>(
    (best, leaf) => (best && best.words.length >= leaf.words.length ? best : leaf),
    undefined,
  )
}

function beginsAt({ words, prefix }: TextLeaf, places: readonly { word: string }[], from: number): boolean {
  return words.every((word, i) => {
    const there = places[from + i]?.word
    if (there === undefined) return false
    return prefix && i === words.length - 1 ? there.startsWith(word) : there === word
  })
}

export function mark(text: string, stretches: readonly Stretch[]): Marked {
  const marked: { text: string; found: boolean }[] = []
  let at = 0
  for (const { start, end } of stretches) {
    if (start > at) marked.push({ text: text.slice(at, start), found: false })
    marked.push({ text: text.slice(start, end), found: true })
    at = end
  }
  if (at < text.length) marked.push({ text: text.slice(at), found: false })
  return marked
}

/** Around the place where most of what was looked for is near together. */
export function snippetOf(text: string, leaves: readonly TextLeaf[]): Marked {
  const stretches = stretchesOf(text, leaves)
  const from = startOf(text, stretches)
  const to = endOf(text, from)
  const shown = text.slice(from, to)
  const within = stretches
    .filter(({ start, end }) => start >= from && end <= to)
    .map(({ start, end }) => ({ start: start - from, end: end - from }))
  const marked = mark(shown, within)
  return [
    ...(from > 0 ? [{ text: '… ', found: false }] : []),
    ...marked.map(({ text: piece, found }) => ({ text: piece.replaceAll(/\s+/g, ' '), found })),
    ...(to < text.length ? [{ text: ' …', found: false }] : []),
  ]
}

function startOf(text: string, stretches: readonly (Stretch & { leaf: TextLeaf })[]): number {
  let best = stretches[0]?.start ?? 0
  let most = 0
  for (const { start } of stretches) {
    const near = stretches.filter(
      (one) => one.start >= start && one.end <= start + SNIPPET_CHARS - BEFORE_CHARS,
    )
    const n = new Set(near.map(({ leaf }) => leaf)).size
    if (n > most) [best, most] = [start, n]
  }
  if (best <= BEFORE_CHARS) return 0
  // From the beginning of a sentence or, failing that, of a word.
  const before = text.slice(best - BEFORE_CHARS, best)
  const sentence = /[.!?\n]\s+(?=\S)(?!.*[.!?\n]\s+\S)/s.exec(before)
  if (sentence) return best - BEFORE_CHARS + sentence.index + sentence[0].length
  const blank = before.search(/\s/)
  return blank === -1 ? best : best - BEFORE_CHARS + blank + 1
}

function endOf(text: string, from: number): number {
  if (text.length - from <= SNIPPET_CHARS) return text.length
  const blank = text.lastIndexOf(' ', from + SNIPPET_CHARS)
  if (blank > from + SNIPPET_CHARS / 2) return blank
  // Half of a pair of surrogates is no character.
  const end = from + SNIPPET_CHARS
  return /[\ud800-\udbff]/.test(text[end - 1]!) ? end - 1 : end
}
