/**
 * Text that a model may be shown: what a person would see of it and nothing else. Mail hides words in characters that
 * no screen draws; a model would read them.
 */

/**
 * Control characters, marks of direction, tags and everything else that is not drawn. The joiners and the variation
 * selectors that scripts and emoji need stay, and so do tabs and the ends of lines.
 */
const UNSEEN =
  /[[\p{Cc}\p{Default_Ignorable_Code_Point}\u{fff9}-\u{fffb}]--[\t\n\u{200c}\u{200d}\u{fe00}-\u{fe0f}]]/gv
const LINE_ENDS = /\r\n?|[\u0085\u2028\u2029]/g
const BLANK_LINES = /\n{3,}/g

export function plainText(text: string): string {
  return text
    .replaceAll(LINE_ENDS, '\n')
    .replaceAll(UNSEEN, '')
    .replaceAll(BLANK_LINES, '\n\n')
    .toWellFormed()
}

/** For subjects, names and snippets. */
export function oneLine(text: string, charsMax: number): string {
  // What is far behind the end does not matter, and may be megabytes.
  const line = plainText(text.slice(0, charsMax * 4))
    .replaceAll(/\s+/g, ' ')
    .trim()
  return line.length <= charsMax ? line : `${line.slice(0, wholeEnd(line, charsMax - 1))}…`
}

/** The last place at or before `at` that is not inside a character made of two halves. */
export function wholeEnd(text: string, at: number): number {
  const isInside = at > 0 && at < text.length && isHighHalf(text.charCodeAt(at - 1))
  return isInside ? at - 1 : at
}

function isHighHalf(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
