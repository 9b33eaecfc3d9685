/** Values with parameters, such as `text/plain; charset=utf-8` (RFC 2045), with continuations (RFC 2231). */
import { decodeCharset } from './charsets.ts'
import { hexAt } from './decode.ts'
import { decodeWords } from './encoded-words.ts'
import { PARAMETERS_MAX } from './limits.ts'

export type ParameterValue = {
  /** Before the first semicolon, in lower case. */
  value: string
  /** By lower-case name; the first of a name counts. */
  parameters: ReadonlyMap<string, string>
}

type Section = { index: number; isEncoded: boolean; text: string }

/** `text` with its raw bytes decoded, as `headerText` gives it. */
export function parseParameters(text: string): ParameterValue {
  const first = text.indexOf(';')
  const value = withoutComment(first === -1 ? text : text.slice(0, first)).toLowerCase()
  const plain = new Map<string, string>()
  const sections = new Map<string, Section[]>()
  let at = first === -1 ? text.length : first + 1
  for (let count = 0; at < text.length && count < PARAMETERS_MAX; count++) {
    const piece = nextParameter(text, at)
    at = piece.end
    if (piece.name === '') continue
    const star = piece.name.indexOf('*')
    if (star > 0) {
      const name = piece.name.slice(0, star)
      const section = sectionOf(piece.name.slice(star), piece.text)
      if (section) sections.set(name, [...(sections.get(name) ?? []), section])
    } else if (!plain.has(piece.name)) plain.set(piece.name, decodeWords(piece.text))
  }
  // The extended form is the better one where a mail has both.
  for (const [name, found] of sections) plain.set(name, joinSections(found))
  return { value, parameters: plain }
}

type Piece = { name: string; text: string; end: number }

/** One `name=value`, from after a semicolon to after the next one. */
function nextParameter(text: string, from: number): Piece {
  let at = from
  while (at < text.length && text[at] !== '=' && text[at] !== ';') at++
  const name = text.slice(from, at).trim().toLowerCase()
  if (text[at] !== '=') return { name: '', text: '', end: at + 1 }
  at++
  while (text[at] === ' ' || text[at] === '\t') at++
  if (text[at] === '"') {
    const quoted = quotedString(text, at)
    const semicolon = text.indexOf(';', quoted.end)
    return { name, text: quoted.text, end: semicolon === -1 ? text.length : semicolon + 1 }
  }
  const semicolon = text.indexOf(';', at)
  const end = semicolon === -1 ? text.length : semicolon
  return { name, text: withoutComment(text.slice(at, end)), end: end + 1 }
}

/** What is between quotes, with escapes resolved. Without a closing quote: up to the next semicolon. */
function quotedString(text: string, open: number): { text: string; end: number } {
  const pieces: string[] = []
  let at = open + 1
  let from = at
  for (; at < text.length; at++) {
    const char = text[at]
    if (char === '"') {
      pieces.push(text.slice(from, at))
      return { text: pieces.join(''), end: at + 1 }
    }
    // Only these need escapes; other backslashes are those of paths that were not escaped.
    if (char === '\\' && (text[at + 1] === '"' || text[at + 1] === '\\')) {
      pieces.push(text.slice(from, at))
      from = ++at
    }
  }
  const semicolon = text.indexOf(';', open)
  const end = semicolon === -1 ? text.length : semicolon
  return { text: text.slice(open + 1, end), end }
}

/** `base64 (really)` is `base64`; but `report (2).pdf` is a name. */
function withoutComment(text: string): string {
  const trimmed = text.trim()
  if (!trimmed.endsWith(')')) return trimmed
  const open = trimmed.indexOf(' (')
  return open > 0 ? trimmed.slice(0, open).trim() : trimmed
}

/** `*`, `*0`, `*0*` … after the name. */
function sectionOf(suffix: string, text: string): Section | null {
  const match = /^\*(?:(\d{1,4})(\*)?)?$/.exec(suffix)
  if (!match) return null
  return {
    index: match[1] === undefined ? -1 : Number(match[1]),
    isEncoded: match[1] === undefined || match[2] !== undefined,
    text,
  }
}

/** The bytes of all sections first, and then the charset that the first one names. */
function joinSections(sections: Section[]): string {
  const whole = sections.find((section) => section.index === -1)
  const ordered = whole ? [whole] : sections.toSorted((a, b) => a.index - b.index)
  let charset = ''
  const bytes = ordered.map((section, place) => {
    let text = section.text
    if (section.isEncoded && place === 0) {
      const first = text.indexOf("'")
      const second = first === -1 ? -1 : text.indexOf("'", first + 1)
      if (second !== -1) {
        charset = text.slice(0, first)
        text = text.slice(second + 1)
      }
    }
    return section.isEncoded ? percentBytes(text) : Buffer.from(text, 'utf8')
  })
  if (ordered.every((section) => !section.isEncoded)) {
    return decodeWords(ordered.map((section) => section.text).join(''))
  }
  return decodeCharset(Buffer.concat(bytes), charset).text
}

const PERCENT = 37

function percentBytes(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const value = bytes[at] === PERCENT ? hexAt(bytes, at + 1) : -1
    bytes[length++] = value >= 0 ? value : bytes[at]!
    if (value >= 0) at += 2
  }
  return bytes.subarray(0, length)
}
