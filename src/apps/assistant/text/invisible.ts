/** Characters that nobody sees, and that carry orders to whoever reads bytes. */
import { cleanText } from '../../../search/extract/clean-text.ts'

// biome-ignore-start lint/suspicious/noMisleadingCharacterClass: each of these is meant on its own.
/** Tags (U+E0000…) spell ASCII that no screen shows, and the many variation selectors spell bytes. */
const TAGS = /[\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]/gu
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
/** Zero-width, fillers and blanks that are no space. */
const ZERO_WIDTH =
  /[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u2060-\u2064\u206a-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\u{1d173}-\u{1d17a}]/gu
/** Joiners and the selector of emoji stand between two of what they join; several in a row join nothing. */
const JOINERS = /[\u200c\u200d\ufe0e\ufe0f]+/g
// biome-ignore-end lint/suspicious/noMisleadingCharacterClass: as above.
/** One soft hyphen, mark of order or zero-width space is found in honest mail. */
const HONEST_MAX = 3

/** What tags spell, for people to see. */
export function spelledByTags(text: string): string {
  const spelled = text.match(TAGS) ?? []
  return spelled
    .map((tag) => String.fromCharCode(tag.codePointAt(0)! & 0x7f))
    .join('')
    .replace(/[^\x20-\x7e]/g, '')
}

export type Invisible = 'tag-characters' | 'bidi-characters' | 'zero-width-characters'

/** As `cleanText`, without what cannot be seen, and what kinds of it there were. */
export function withoutInvisible(text: string): { text: string; found: Invisible[] } {
  const found: Invisible[] = []
  let shown = text
  const strip = (pattern: RegExp, kind: Invisible, honestMax: number): void => {
    let count = 0
    shown = shown.replace(pattern, () => {
      count += 1
      return ''
    })
    if (count > honestMax && !found.includes(kind)) found.push(kind)
  }
  strip(TAGS, 'tag-characters', 0)
  strip(BIDI, 'bidi-characters', HONEST_MAX)
  strip(ZERO_WIDTH, 'zero-width-characters', HONEST_MAX)
  let crowds = 0
  shown = shown.replace(JOINERS, (run, at: number) => {
    if (run.length > 2) crowds += 1
    const isBetween = at > 0 && !/[\s\p{P}A-Za-z0-9]/u.test(shown[at - 1]!)
    return run.length <= 2 && isBetween ? run : ''
  })
  if (crowds > 0 && !found.includes('zero-width-characters')) found.push('zero-width-characters')
  return { text: cleanText(shown), found }
}
