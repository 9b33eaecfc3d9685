/** How many columns of a terminal a text takes. Control characters are escaped before. */

/** East Asian wide and full-width characters, and those shown as pictures. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u

const INVISIBLE = /^[\p{Mark}\p{Default_Ignorable_Code_Point}]+$/u

const PLAIN = /^[\u0020-\u007e\u00a0-\u02ff]*$/

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += characterWidth(segment)
  return width
}

/** The text, or its start with `…`, in at most `width` columns. */
export function truncate(text: string, width: number): string {
  if (textWidth(text) <= width) return text
  let kept = ''
  let left = width - 1
  for (const { segment } of segmenter.segment(text)) {
    left -= characterWidth(segment)
    if (left < 0) break
    kept += segment
  }
  return width > 0 ? `${kept}…` : ''
}

function characterWidth(character: string): number {
  if (INVISIBLE.test(character)) return 0
  return WIDE.test(character) || character.includes('\ufe0f') ? 2 : 1
}
