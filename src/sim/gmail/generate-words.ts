/**
 * What generated mail talks about, in several languages: mail/wordings.json, written for this purpose. `{thing}` and
 * `{place}` in a sentence are filled from the lists beside it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Language = 'en' | 'de' | 'fr' | 'es' | 'pl' | 'ru' | 'ja' | 'zh' | 'ko' | 'ar'

export type Wording = {
  topics: readonly string[]
  greeting: string
  closing: string
  sentences: readonly string[]
  things: readonly string[]
  places: readonly string[]
  /** As written, and as an address spells it. */
  names: readonly (readonly [name: string, spelled: string])[]
  /** Charsets that mail in this language has used over the years. */
  charsets: readonly string[]
}

export const WORDINGS = JSON.parse(
  readFileSync(join(import.meta.dirname, 'mail/wordings.json'), 'utf8'),
) as Record<Language, Wording>

/** How often each language occurs, of a hundred. */
export const LANGUAGE_SHARES: readonly (readonly [Language, number])[] = [
  ['en', 52],
  ['de', 12],
  ['fr', 8],
  ['es', 7],
  ['ru', 5],
  ['ja', 5],
  ['zh', 4],
  ['pl', 3],
  ['ko', 2],
  ['ar', 2],
]

const SYLLABLES = 'va lo ri mek tan so dri pel un ka zor mi fen ta gul bo'.split(' ')

/** A word that hardly any other text has: 4,096 of them, the low numbers first in use. */
export function codeName(number: number): string {
  const at = (shift: number): string => SYLLABLES[(number >>> shift) & 15]!
  const word = at(0) + at(4) + at(8)
  return word[0]!.toUpperCase() + word.slice(1)
}
