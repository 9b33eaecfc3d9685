/** Text as it may be stored and searched, whatever it was taken from. */

/** C0 and C1 controls other than tab and line feed, and every other thing that some reader takes for a line end. */
const SPACES = /[\v\f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/g
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out.
  /[\u0000-\u0008\u000e-\u001f\u007f-\u0084\u0086-\u009f]/g
/**
 * Marks that nobody sees and that split words for a search: soft hyphen, zero-width space, word joiner, byte order
 * mark, the marks and overrides of direction, non-characters. The joiners U+200C and U+200D stay, words need them.
 */
const INVISIBLE = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\uffff]/g
const LONE_SURROGATE = /\p{Surrogate}/gu
/**
 * Marks that stand on one letter. Bringing n of them into order takes n² steps inside of the platform, where no thread
 * can be ended: a megabyte of them takes hours. No writing needs more than a few; 30 is the limit of Unicode's
 * stream-safe text (UAX 15).
 */
const MARKS_TOO_MANY = /(\p{M}{30})\p{M}+/gu
const NEEDS_WORK = /[^\t\n\x20-\x7e]/

/** NFC, `\n` as the only line end, nothing invisible, nothing that a database refuses. Keeps the number of lines. */
export function cleanText(text: string): string {
  if (!NEEDS_WORK.test(text)) return text
  return text
    .replace(/\r\n?/g, '\n')
    .replace(SPACES, ' ')
    .replace(CONTROLS, '')
    .replace(LONE_SURROGATE, '')
    .replace(INVISIBLE, '')
    .replace(MARKS_TOO_MANY, '$1')
    .normalize('NFC')
}

/** Cuts at most at `charsMax`, and never inside of a surrogate pair. */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const last = text.charCodeAt(charsMax - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? charsMax - 1 : charsMax)
}

/** One line of at most `charsMax` characters: for headings, titles and cells. */
export function oneLine(text: string, charsMax: number): string {
  return cutText(cleanText(text).replace(/\s+/g, ' ').trim(), charsMax)
}
