/** The beginning of a text, in one line. */
import { clip, plainLine, SNIPPET_CHARS_MAX } from './limits.ts'

/** Enough for a snippet in most mail, and in mail that begins with filler. */
const LOOKED_AT_CHARS = [600, 6_000]

/** Mail that wants a short preview fills it up with characters that cannot be seen. */
const INVISIBLE = /\u00ad|\u034f|\u061c|\u180e|\ufeff|[\u200b-\u200f\u202a-\u202e\u2060-\u206f]/g

export function snippetOf(text: string): string {
  let line = ''
  for (const chars of LOOKED_AT_CHARS) {
    line = plainLine(text.slice(0, chars)).replace(INVISIBLE, '').replace(/\s+/g, ' ').trim()
    if (line.length >= SNIPPET_CHARS_MAX || text.length <= chars) break
  }
  return clip(line, SNIPPET_CHARS_MAX)
}
