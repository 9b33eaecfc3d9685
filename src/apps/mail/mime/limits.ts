/**
 * How much of a message is taken apart. What lies beyond a limit is noted as a problem and left as it is:
 * the bytes of a message are kept whole in any case, so a limit costs what can be searched, never the mail.
 */
import type { ParsedMessage } from './parsed.ts'

/** Multiparts and messages within each other. */
export const DEPTH_MAX = 100
export const PARTS_MAX = 1_000
/** Of one header block: the fields kept, and the bytes looked into. */
export const HEADERS_MAX = 2_000
export const HEADER_BYTES_MAX = 1_000_000
/** Text that is indexed and shown. */
export const TEXT_CHARS_MAX = 1_000_000
/** Of one text part, decoded: HTML is several times larger than its text. */
export const TEXT_PART_BYTES_MAX = 4_000_000
export const PROBLEMS_MAX = 20
export const ATTACHMENTS_MAX = 1_000
/** Of one address header. */
export const ADDRESSES_MAX = 10_000
export const REFERENCES_MAX = 1_000
export const MESSAGE_ID_CHARS_MAX = 1_000
/** Of one Content-Type or Content-Disposition, continuations counted each. */
export const PARAMETERS_MAX = 1_000
/** RFC 2046 allows 70; what is in use is longer now and then. */
export const BOUNDARY_CHARS_MAX = 500
export const NAME_CHARS_MAX = 1_000
export const SUBJECT_CHARS_MAX = 10_000
export const SNIPPET_CHARS_MAX = 200

/** What was stumbled over, once each, in the order found. */
export type Problems = { readonly list: ParsedMessage['problems']; add(problem: string): void }

export function collectProblems(): Problems {
  const found = new Set<string>()
  return {
    get list() {
      return [...found]
    },
    add(problem) {
      if (found.size < PROBLEMS_MAX) found.add(problem)
    },
  }
}

const QUOTED_CHARS_MAX = 60

/** A piece of hostile text as part of a problem: one line, short, nothing but what can be printed. */
export function quoted(text: string): string {
  const short = text.length > QUOTED_CHARS_MAX ? `${text.slice(0, QUOTED_CHARS_MAX)}…` : text
  return JSON.stringify(plainLine(short))
}

/** Control characters become spaces; half of a surrogate pair becomes a replacement character. */
export function plainLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ').toWellFormed()
}

/** At most `charsMax`, never ending within a surrogate pair. */
export function clip(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const last = text.charCodeAt(charsMax - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? charsMax - 1 : charsMax)
}
