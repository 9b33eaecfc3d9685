/** Bytes to text where nothing says for sure how they are written. */
import { isUtf8 } from 'node:buffer'

const PIECE_BYTES = 64 * 1024
const SAMPLE_BYTES = 64 * 1024
/** Text in UTF-16 without a mark has a NUL in about every other byte, binary data anywhere. */
const UTF16_SHARE_MIN = 0.35
const UTF16_SHARE_OTHER_MAX = 0.05
/** Of text in an 8-bit charset; escape sequences of terminals are the most there is. */
const CONTROL_SHARE_MAX = 0.02

const BROKEN_SHARE_MAX = 0.2
const NOT_ASCII = /[\u0080-\uffff]/g

export type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252'

/** How a text is written; undefined where it is no text. */
export function detectEncoding(bytes: Uint8Array): Encoding | undefined {
  const [a, b, c] = bytes
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8'
  if (a === 0xff && b === 0xfe) return 'utf-16le'
  if (a === 0xfe && b === 0xff) return 'utf-16be'
  const sample = bytes.subarray(0, SAMPLE_BYTES)
  const { nulEven, nulOdd, controls } = countControls(sample)
  if (nulEven + nulOdd > 0) return utf16Without(sample.length, { nulEven, nulOdd })
  if (controls > sample.length * CONTROL_SHARE_MAX) return undefined
  return isUtf8(bytes) || isNearlyUtf8(sample) ? 'utf-8' : 'windows-1252'
}

/** A file that was cut, or to which a careless program has added, is still what most of it is. */
function isNearlyUtf8(sample: Uint8Array): boolean {
  const text = new TextDecoder().decode(sample)
  const broken = text.split('\ufffd').length - 1
  const whole = text.length - text.replace(NOT_ASCII, '').length - broken
  return broken > 0 && broken <= whole * BROKEN_SHARE_MAX
}

function utf16Without(
  length: number,
  { nulEven, nulOdd }: { nulEven: number; nulOdd: number },
): Encoding | undefined {
  const half = length / 2
  if (nulOdd > half * UTF16_SHARE_MIN && nulEven <= half * UTF16_SHARE_OTHER_MAX) return 'utf-16le'
  if (nulEven > half * UTF16_SHARE_MIN && nulOdd <= half * UTF16_SHARE_OTHER_MAX) return 'utf-16be'
  return undefined
}

function countControls(sample: Uint8Array): { nulEven: number; nulOdd: number; controls: number } {
  let [nulEven, nulOdd, controls] = [0, 0, 0]
  for (let at = 0; at < sample.length; at++) {
    const byte = sample[at]!
    if (byte === 0) at % 2 === 0 ? nulEven++ : nulOdd++
    else if (byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d && byte !== 0x0c) controls++
  }
  return { nulEven, nulOdd, controls }
}

/** As much of a text as is wanted, from its beginning. */
export function decodeText(
  bytes: Uint8Array,
  options: { charsMax: number; encoding?: Encoding },
): { text: string; isCut: boolean } {
  const encoding = options.encoding ?? detectEncoding(bytes) ?? 'windows-1252'
  // No character takes more than four bytes.
  const wanted = bytes.subarray(0, options.charsMax * 4)
  const text = decoderOf(encoding).decode(wanted)
  const isCut = wanted.length < bytes.length || text.length > options.charsMax
  return { text: text.slice(0, options.charsMax), isCut }
}

/** The whole text, a piece at a time. */
export function* decodePieces(bytes: Uint8Array, label: string): Generator<string> {
  const decoder = decoderOf(label)
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const piece = decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: true })
    if (piece !== '') yield piece
  }
  const rest = decoder.decode()
  if (rest !== '') yield rest
}

export function decoderOf(label: string): TextDecoder {
  try {
    return new TextDecoder(label)
  } catch {
    // A label that nobody knows says nothing.
    return new TextDecoder('windows-1252')
  }
}
