/** Transfer encodings: bytes as they travelled to bytes as they were meant. Never fails. */

export type DecodedBytes = {
  content: Buffer /** In plain words, to follow the name of the part. */
  problem?: string
}

/** `encoded` as it lies in the message; what is not encoded comes back without a copy. */
export function decodeTransfer(encoded: Buffer, encoding: string): DecodedBytes {
  switch (encoding) {
    case 'base64':
      return decodeBase64(encoded)
    case 'quoted-printable':
      return { content: decodeQuotedPrintable(encoded) }
    case '':
    case '7bit':
    case '8bit':
    case 'binary':
      return { content: encoded }
    default:
      return { content: encoded, problem: 'has an unknown transfer encoding' }
  }
}

/** Whitespace may be anywhere; the end may lack its padding. All else is skipped, and said to be wrong. */
export function decodeBase64(encoded: Buffer): DecodedBytes {
  const source = encoded.toString('latin1')
  try {
    const content = Uint8Array.fromBase64(source)
    return { content: Buffer.from(content.buffer, content.byteOffset, content.byteLength) }
  } catch {
    // Not base64 as it should be: then as much of it as there is.
    return salvageBase64(encoded)
  }
}

const LF = 10
const CR = 13
const SPACE = 32
const TAB = 9
const PAD = 61
const SKIPPED = 255

const VALUES = new Uint8Array(256).fill(SKIPPED)
for (const [value, letter] of [
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
].entries()) {
  VALUES[letter.charCodeAt(0)] = value
}
VALUES[45] = 62 // The URL alphabet's - and _
VALUES[95] = 63

/** A share of foreign bytes above which something is no base64 at all. */
const FOREIGN_SHARE_MAX = 0.05

/** Padding ends a group and not the content: pieces that were encoded one by one are often joined. */
function salvageBase64(encoded: Buffer): DecodedBytes {
  const out = Buffer.allocUnsafe(Math.ceil(encoded.length / 4) * 3)
  let length = 0
  let chars = 0
  let group = 0
  let foreign = 0
  for (let at = 0; at < encoded.length; at++) {
    const byte = encoded[at]!
    const value = VALUES[byte]!
    if (value === SKIPPED) {
      if (byte === PAD && chars % 4 >= 2) chars = 0
      else if (byte !== LF && byte !== CR) foreign++
      continue
    }
    group = ((group << 6) | value) & 0xffffff
    const place = chars++ % 4
    if (place > 0) out[length++] = (group >> (6 - place * 2)) & 0xff
  }
  if (foreign > encoded.length * FOREIGN_SHARE_MAX) {
    return { content: encoded, problem: 'says that it is base64, but is not' }
  }
  return { content: out.subarray(0, length), problem: 'says that it is base64, but is not throughout' }
}

/** RFC 2045, section 6.7. A `=` that begins nothing stays as it is. */
export function decodeQuotedPrintable(encoded: Buffer): Buffer {
  const out = Buffer.allocUnsafe(encoded.length)
  const end = encoded.length
  let length = 0
  /** Up to here the output is not blanks at the end of a line, which transport may have added. */
  let solid = 0
  let at = 0
  while (at < end) {
    const byte = encoded[at]!
    // Nearly all of it. Asked first, the whole takes half of the time.
    if (byte > PAD || (byte > SPACE && byte < PAD)) {
      out[length++] = byte
      solid = length
      at++
      continue
    }
    if (byte === PAD) {
      const value = hexAt(encoded, at + 1)
      if (value >= 0) {
        out[length++] = value
        solid = length
        at += 3
        continue
      }
      const after = softBreakEnd(encoded, at + 1)
      if (after > 0) {
        solid = length
        at = after
        continue
      }
      out[length++] = byte
      solid = length
    } else if (byte === LF || (byte === CR && encoded[at + 1] === LF)) {
      length = solid
      if (byte === CR) {
        out[length++] = CR
        at++
      }
      out[length++] = LF
      solid = length
    } else {
      out[length++] = byte
      if (byte !== SPACE && byte !== TAB) solid = length
    }
    at++
  }
  return out.subarray(0, length)
}

const SOFT_BREAK_BLANKS_MAX = 100

/** Past a soft line break, whose `=` stands before `from`; 0 where there is none. */
function softBreakEnd(encoded: Buffer, from: number): number {
  const stop = Math.min(encoded.length, from + SOFT_BREAK_BLANKS_MAX)
  let at = from
  while (at < stop && (encoded[at] === SPACE || encoded[at] === TAB)) at++
  if (at >= encoded.length) return at
  if (encoded[at] === LF) return at + 1
  return encoded[at] === CR && encoded[at + 1] === LF ? at + 2 : 0
}

/** The value of two hex digits, or −1. */
export function hexAt(bytes: Uint8Array, at: number): number {
  const high = hexDigit(bytes[at])
  const low = hexDigit(bytes[at + 1])
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1
  if (byte >= 48 && byte <= 57) return byte - 48
  if (byte >= 65 && byte <= 70) return byte - 55
  if (byte >= 97 && byte <= 102) return byte - 87
  return -1
}
