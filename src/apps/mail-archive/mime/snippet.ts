/** The beginning of a text, in one line. */
import { clip, plainLine, SNIPPET_CHARS_MAX } from './limits.ts'

/** Enough for a snippet even where half of it is filler. */
const LOOKED_AT_CHARS = 4_000

/** Mail that wants a short preview fills it up with characters that cannot be seen. */
const INVISIBLE = /\u00ad|\u034f|\u061c|\u180e|\ufeff|[\u200b-\u200f\u202a-\u202e\u2060-\u206f]/g

export function snippetOf(text: string): string {
  const line = plainLine(text.slice(0, LOOKED_AT_CHARS)).replace(INVISIBLE, '').replace(/\s+/g, ' ').trim()
  return clip(line, SNIPPET_CHARS_MAX)
}
