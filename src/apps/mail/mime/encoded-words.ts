/** Header values as text: raw bytes of any charset, and encoded words (RFC 2047). Linear, whatever comes. */
import { decodeCharset } from './charsets.ts'
import { hexAt } from './decode.ts'

/**
 * A value of one character per byte, as text. Bytes beyond ASCII are UTF-8, or else in `charset`, which is
 * that of the message's text. Encoded words stay as they are.
 */
export function headerText(value: string, charset?: string): string {
  if (!/[\u0080-\u00ff]/.test(value)) return value
  return decodeCharset(Buffer.from(value, 'latin1'), '', charset).text
}

type EncodedWord = { charset: string; bytes: Buffer; start: number; end: number }

/** Text with its encoded words decoded. Neighbours of one charset are joined first: they may share a character. */
export function decodeWords(text: string): string {
  if (!text.includes('=?')) return text
  const pieces: string[] = []
  const find = wordFinder(text)
  let run: EncodedWord[] = []
  let at = 0
  const flush = (): void => {
    if (run.length === 0) return
    pieces.push(decodeCharset(Buffer.concat(run.map((word) => word.bytes)), run[0]!.charset).text)
    run = []
  }
  for (let word = find(0); word; word = find(word.end)) {
    const between = text.slice(at, word.start)
    // Blanks between encoded words belong to neither.
    const joined = run.length > 0 && between.trim() === ''
    if (!joined) {
      flush()
      pieces.push(between)
    } else if (run[0]!.charset !== word.charset) flush()
    run.push(word)
    at = word.end
  }
  flush()
  pieces.push(text.slice(at))
  return pieces.join('')
}

const CHARSET_CHARS_MAX = 64

/** Answers with the next encoded word at or after a place; places must not go back. */
function wordFinder(text: string): (from: number) => EncodedWord | null {
  /** The next `?=` is here: looked for again only when passed, so that all searches together read the text once. */
  let closeAt = 0
  return (from) => {
    let start = text.indexOf('=?', from)
    while (start !== -1) {
      const opened = openingAt(text, start)
      if (opened) {
        if (closeAt < opened.textStart) closeAt = text.indexOf('?=', opened.textStart)
        if (closeAt === -1) closeAt = text.length
        if (closeAt === text.length) return null
        // One that has no end, before one that has: the padding of `YQ==?=` is not another opening.
        const nextStart = text.indexOf('=?', opened.textStart)
        if (nextStart !== -1 && nextStart < closeAt - 1) {
          start = nextStart
          continue
        }
        const encoded = text.slice(opened.textStart, closeAt)
        const bytes = opened.isBase64 ? base64Bytes(encoded) : quotedBytes(encoded)
        return { charset: opened.charset, bytes, start, end: closeAt + 2 }
      }
      start = text.indexOf('=?', start + 2)
    }
    return null
  }
}

type Opening = { charset: string; isBase64: boolean; textStart: number }

/** `=?charset?B?` or `=?charset*language?Q?` */
function openingAt(text: string, start: number): Opening | null {
  const stop = Math.min(text.length, start + 2 + CHARSET_CHARS_MAX)
  let at = start + 2
  while (at < stop && text.charCodeAt(at) > 32 && text.charCodeAt(at) < 127 && text[at] !== '?') at++
  if (at === start + 2 || text[at] !== '?' || text[at + 2] !== '?') return null
  const encoding = text[at + 1]
  const isBase64 = encoding === 'B' || encoding === 'b'
  if (!isBase64 && encoding !== 'Q' && encoding !== 'q') return null
  const label = text.slice(start + 2, at).toLowerCase()
  const language = label.indexOf('*')
  return { charset: language > 0 ? label.slice(0, language) : label, isBase64, textStart: at + 3 }
}

function base64Bytes(encoded: string): Buffer {
  return Buffer.from(encoded, 'base64')
}

const EQUALS = 61
const UNDERSCORE = 95
const SPACE = 32

/** The Q encoding: quoted-printable with `_` for a blank. */
function quotedBytes(encoded: string): Buffer {
  // Raw characters beyond ASCII do not belong here; as UTF-8 they survive in most cases.
  const bytes = Buffer.from(encoded, 'utf8')
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at]!
    if (byte === UNDERSCORE) byte = SPACE
    else if (byte === EQUALS) {
      const value = hexAt(bytes, at + 1)
      if (value >= 0) {
        byte = value
        at += 2
      }
    }
    bytes[length++] = byte
  }
  return bytes.subarray(0, length)
}
