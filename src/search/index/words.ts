/**
 * Words as the index knows them. They are made here and not by the databases, so that both find alike: small letters,
 * Latin ones without their accents, as in the mail archive (й is not и). Scripts that are written without blanks give a
 * word for each character; what is searched for in them is a phrase of those.
 */

export type WordPlace = { word: string; start: number; end: number }

/** What is longer is no word that anybody types: it is known by how it begins. */
export const WORD_CHARS_MAX = 64

/** Ideographs, kana, Thai, Lao, Khmer and Burmese letters stand alone; marks belong to the letter before them. */
const ALONE =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}'
const WORD = new RegExp(`[${ALONE}]\\p{M}*|(?:(?![${ALONE}])[\\p{L}\\p{N}\\p{Co}]\\p{M}*)+`, 'gu')

/** The words of a text and where they stand. */
export function* wordPlaces(text: string): Generator<WordPlace> {
  for (const found of text.matchAll(WORD)) {
    const word = foldWord(found[0])
    if (word !== '') yield { word, start: found.index, end: found.index + found[0].length }
  }
}

export function wordsOf(text: string): string[] {
  if (PLAIN.test(text)) return (text.toLowerCase().match(PLAIN_WORD) ?? []).map(cut)
  return Array.from(wordPlaces(text), ({ word }) => word)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const PLAIN = /^[\x00-\x7f]*$/
const PLAIN_WORD = /[a-z0-9]+/g

function cut(word: string): string {
  return word.length <= WORD_CHARS_MAX
    ? word
    : word
        .slice(0, WORD_CHARS_MAX)
        .toWellFormed()
        .replace(/\ufffd$/u, '')
}

/** Letters of double width and ligatures become plain ones, which may be several words' worth of signs: those go. */
export function foldWord(word: string): string {
  if (PLAIN.test(word)) return cut(word.toLowerCase())
  let folded = ''
  for (const char of word.normalize('NFKC')) {
    if (/\p{M}/u.test(char)) {
      // Behind a Latin letter it is an accent; elsewhere it may be a vowel.
      if (!/[a-z]$/.test(folded)) folded += char
      continue
    }
    if (!/[\p{L}\p{N}\p{Co}]/u.test(char)) continue
    const [base = ''] = char.normalize('NFD')
    folded += /[a-z]/i.test(base)
      ? base.toLowerCase()
      : (SPELLINGS[char] ?? char.toLowerCase().normalize('NFC'))
  }
  return cut(folded)
}

/** Letters that have another spelling without them. */
const SPELLINGS: Record<string, string> = {
  ß: 'ss',
  ẞ: 'ss',
  æ: 'ae',
  Æ: 'ae',
  œ: 'oe',
  Œ: 'oe',
  ø: 'o',
  Ø: 'o',
  ł: 'l',
  Ł: 'l',
  đ: 'd',
  Đ: 'd',
  ς: 'σ',
}
