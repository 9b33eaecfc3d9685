/**
 * The headers of a message, read as forgivingly as a mail service must: broken lines are skipped, odd
 * folding is unfolded, raw 8-bit text is taken as UTF-8 or else as Latin-1.
 */

/** Headers beyond this are not looked at. */
const HEADER_CHARS_MAX = 512 * 1024

export type Header = { name: string; value: string }

/** A part's text as bytes (one character per byte), cut at its first empty line. */
export function splitPart(bytes: string): { head: string; body: string } {
  if (/^\r?\n/.test(bytes)) return { head: '', body: bytes.replace(/^\r?\n/, '') }
  const match = /\r?\n\r?\n/.exec(bytes)
  if (!match) return { head: bytes.slice(0, HEADER_CHARS_MAX), body: '' }
  return {
    head: bytes.slice(0, Math.min(match.index, HEADER_CHARS_MAX)),
    body: bytes.slice(match.index + match[0].length),
  }
}

/** Unfolded, undecoded. */
export function headersOf(head: string): Header[] {
  const headers: Header[] = []
  for (const line of head.replaceAll(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon < 1 || /\s/.test(line.slice(0, colon).trimEnd())) continue
    headers.push({ name: line.slice(0, colon).trimEnd().toLowerCase(), value: line.slice(colon + 1).trim() })
  }
  return headers
}

export function headerOf(headers: readonly Header[], name: string): string | undefined {
  return headers.find((header) => header.name === name)?.value
}

/** Text for people: encoded words and raw 8-bit decoded. */
export function decodedHeader(value: string): string {
  if (!value.includes('=?')) return textOfBytes(value)
  return textOfBytes(value.replaceAll(/\?=\s+=\?/g, '?==?')).replaceAll(
    /=\?([^?\s]{1,40})\?([bBqQ])\?([^?]*)\?=/g,
    (whole, charset: string, encoding: string, payload: string) => {
      const bytes =
        encoding.toLowerCase() === 'b'
          ? Buffer.from(payload, 'base64')
          : Buffer.from(decodedQuotedPrintable(payload.replaceAll('_', ' ')), 'latin1')
      return decodedBytes(bytes, charset.split('*')[0]!) ?? whole
    },
  )
}

/** A parameter of a structured header, in any of the ways of RFC 2231, or undefined. */
export function parameterOf(value: string, name: string): string | undefined {
  const pieces = new Map<number, { text: string; encoded: boolean }>()
  const pattern = new RegExp(
    `;\\s*${name}(\\*\\d{1,3})?(\\*)?\\s*=\\s*("(?:[^"\\\\]|\\\\.)*"|[^;\\s]*)`,
    'gi',
  )
  for (const [, position, star, quoted = ''] of value.matchAll(pattern)) {
    const text = quoted.startsWith('"') ? quoted.slice(1, -1).replaceAll(/\\(.)/g, '$1') : quoted
    const at = position ? Number(position.slice(1)) : 0
    if (!pieces.has(at) || star) pieces.set(at, { text, encoded: star !== undefined })
  }
  if (pieces.size === 0) return undefined
  const ordered = [...pieces].sort(([a], [b]) => a - b).map(([, piece]) => piece)
  if (!ordered.some(({ encoded }) => encoded)) return decodedHeader(ordered.map(({ text }) => text).join(''))
  const charset = /^([^']*)'[^']*'/.exec(ordered[0]!.text)
  const bytes = ordered
    .map(({ text, encoded }, at) => {
      const bare = at === 0 && charset ? text.slice(charset[0].length) : text
      return encoded ? bare.replaceAll(/%([0-9a-f]{2})/gi, (_, hex) => byte(hex)) : bare
    })
    .join('')
  return decodedBytes(Buffer.from(bytes, 'latin1'), charset?.[1] || 'utf-8') ?? bytes
}

export function decodedQuotedPrintable(text: string): string {
  return text.replaceAll(/=\r?\n/g, '').replaceAll(/=([0-9a-f]{2})/gi, (_, hex) => byte(hex))
}

/** Undefined when nobody knows the charset. */
export function decodedBytes(bytes: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset.trim() || 'utf-8').decode(bytes)
  } catch {
    return undefined // an unknown charset is an ordinary thing in mail
  }
}

/** Bytes of unknown charset: UTF-8 where they are valid UTF-8, otherwise Latin-1. */
export function textOfBytes(bytes: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it asks for what is beyond ASCII
  if (/^[\x00-\x7f]*$/.test(bytes)) return bytes
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(bytes, 'latin1'))
  } catch {
    return bytes
  }
}

function byte(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}
