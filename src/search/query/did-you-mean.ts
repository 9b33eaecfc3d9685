/**
 * Spelling help from the index's own words: for a word that nothing visible has, the nearest word that something visible
 * has. A word of a document that the reader may not see is never offered.
 */

import { formatSearch } from './format.ts'
import type { Look } from './look.ts'
import type { Query, TextLeaf } from './query.ts'
import { slipsBetween } from './slips.ts'
import { VisibleWords } from './visible-words.ts'

/** Of a query, those words are tried that nothing has. */
const WORDS_MAX = 4
const WORD_CHARS_MIN = 4
const WORD_CHARS_MAX = 24
/** Words of the index that begin alike and are compared; listing one costs up to 30 µs. */
const COMPARED_MAX = 300
/** So many visible ones that are near, of which the nearest is offered. */
const OFFERED_MAX = 8

/** The query with its misspelt words replaced; null where there is nothing to help with. */
export async function didYouMean(look: Look, query: Query): Promise<string | null> {
  const { tx, dialect, access, plan } = look
  const words = new VisibleWords(look)
  const replaced = new Map<TextLeaf, string>()
  for (const leaf of plan.leaves.filter(canBeMisspelt).slice(0, WORDS_MAX)) {
    if ((await dialect.visibleOf(tx, [leaf.words[0]!], access)).length > 0) continue
    const better = await nearestVisible(words, leaf.words[0]!)
    if (better !== null) replaced.set(leaf, better)
  }
  return replaced.size === 0 ? null : formatSearch(withReplaced(query, replaced))
}

function canBeMisspelt({ words, prefix, exact }: TextLeaf): boolean {
  const [word = ''] = words
  return (
    words.length === 1 && !prefix && !exact && word.length >= WORD_CHARS_MIN && word.length <= WORD_CHARS_MAX
  )
}

/** Most slips are not in the first letters, and two swapped ones begin with the second. */
async function nearestVisible(words: VisibleWords, word: string): Promise<string | null> {
  const slipsMax = word.length >= 8 ? 2 : 1
  const slipsOf = (candidate: string): number =>
    Math.abs(candidate.length - word.length) > slipsMax
      ? Number.POSITIVE_INFINITY
      : slipsBetween(word, candidate)
  const isNear = (candidate: string): boolean => candidate !== word && slipsOf(candidate) <= slipsMax
  for (const start of new Set([word.slice(0, 3), `${word[1]}${word[0]}${word[2]}`, word.slice(0, 2)])) {
    const near = await words.beginning({
      start,
      tried: COMPARED_MAX,
      isWanted: isNear,
      enough: OFFERED_MAX,
    })
    near.sort((a, b) => slipsOf(a) - slipsOf(b) || (a < b ? -1 : 1))
    if (near[0] !== undefined) return near[0]
  }
  return null
}

function withReplaced(query: Query, replaced: ReadonlyMap<TextLeaf, string>): Query {
  if (query.is === 'text') {
    const word = replaced.get(query)
    return word === undefined ? query : { ...query, words: [word], typed: word }
  }
  if (query.is === 'and' || query.is === 'or')
    return { is: query.is, of: query.of.map((part) => withReplaced(part, replaced)) }
  return query
}
