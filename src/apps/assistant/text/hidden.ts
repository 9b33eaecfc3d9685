/** How a mail hides text from its reader, in words for that reader. */
import type { VisibleMessage } from '../contract.ts'
import type { Invisible } from './invisible.ts'
import type { HiddenBy } from './style.ts'

const WAYS: Readonly<Record<HiddenBy | Invisible | 'too-deep', string>> = {
  'display-none': 'not displayed',
  visibility: 'not visible',
  opacity: 'transparent or faded',
  'tiny-font': 'too small to read',
  'same-colour': 'in the colour of its background',
  'off-screen': 'off the screen',
  clipped: 'cut away',
  'zero-size': 'without a size',
  attribute: 'marked as hidden',
  'far-below': 'far below the end',
  'tag-characters': 'in characters that are not shown',
  'bidi-characters': 'with its order turned around',
  'zero-width-characters': 'between characters of no width',
  'too-deep': 'nested too deep to read',
}

/** Without what was only too long. */
export function hiddenWays(hidden: VisibleMessage['hidden']): { code: string; text: string }[] {
  return hidden.flatMap((code) => {
    const text = WAYS[code as keyof typeof WAYS]
    return text === undefined ? [] : [{ code, text }]
  })
}

/** A sentence for the history of a conversation; '' where nothing is hidden. */
export function hiddenNote({ hidden }: Pick<VisibleMessage, 'hidden'>): string {
  const ways = hiddenWays(hidden).map(({ text }) => text)
  return ways.length === 0
    ? ''
    : `The mail hides text from its reader (${ways.join(', ')}); no model was given it.`
}
