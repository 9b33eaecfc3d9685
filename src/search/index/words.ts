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
    const word = foldedBefore(found[0])
    if (word !== '') yield { word, start: found.index, end: found.index + found[0].length }
  }
}

/** The same words without their places. Most of most texts is ASCII: only what stands around other signs is read slowly. */
export function wordsOf(text: string): string[] {
  const words: string[] = []
  let done = 0
  for (let at = nextOther(text, 0); at !== -1; at = nextOther(text, done)) {
    let [start, end] = [at, at + 1]
    while (start > done && text.charCodeAt(start - 1) > BLANK) start--
    while (end < text.length && text.charCodeAt(end) > BLANK) end++
    addPlain(words, text.slice(done, start))
    for (const { word } of wordPlaces(text.slice(start, end))) words.push(word)
    done = end
  }
  addPlain(words, text.slice(done))
  return words
}

function nextOther(text: string, from: number): number {
  OTHER.lastIndex = from
  return OTHER.exec(text)?.index ?? -1
}

function addPlain(words: string[], text: string): void {
  for (const word of text.toLowerCase().match(PLAIN_WORD) ?? []) words.push(cut(word))
}

/** No word has it or a control character in it. */
const BLANK = 0x20
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const PLAIN = /^[\x00-\x7f]*$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: all but ASCII
const OTHER = /[^\x00-\x7f]/g
const PLAIN_WORD = /[a-z0-9]+/g

function cut(word: string): string {
  return word.length <= WORD_CHARS_MAX
    ? word
    : word
        .slice(0, WORD_CHARS_MAX)
        .toWellFormed()
        .replace(/\ufffd$/u, '')
}

/** Folding takes several looks at every character, and most words of a text are in it more than once. */
function foldedBefore(word: string): string {
  if (PLAIN.test(word)) return cut(word.toLowerCase())
  let folded = FOLDED.get(word)
  if (folded !== undefined) return folded
  folded = foldWord(word)
  if (FOLDED.size >= FOLDED_MAX) FOLDED.clear()
  if (word.length <= WORD_CHARS_MAX) FOLDED.set(word, folded)
  return folded
}

const FOLDED_MAX = 10_000
const FOLDED = new Map<string, string>()

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
