/** Bytes to text in any charset that mail names. Never fails: what is not known is guessed. */
import { isAscii, isUtf8 } from 'node:buffer'

export type DecodedText = {
  text: string /** What was wrong with the charset, in plain words. */
  problem?: string
}

/** Labels in use that the platform does not know; to those that it knows, or to a decoder below. */
const ALIASES = new Map<string, string>([
  ['utf8', 'utf-8'],
  ['utf-8n', 'utf-8'],
  ['utf8mb4', 'utf-8'],
  ['unicode-1-1-utf-7', 'utf-7'],
  ['utf7', 'utf-7'],
  ['csunicode11utf7', 'utf-7'],
  ['cp932', 'shift_jis'],
  ['ms932', 'shift_jis'],
  ['windows-932', 'shift_jis'],
  ['shift-jisx0213', 'shift_jis'],
  ['x-euc-jp', 'euc-jp'],
  ['eucjp', 'euc-jp'],
  ['iso-2022-jp-1', 'iso-2022-jp'],
  ['iso-2022-jp-2', 'iso-2022-jp'],
  ['iso-2022-jp-3', 'iso-2022-jp'],
  ['iso-2022-jp-ms', 'iso-2022-jp'],
  ['cp50220', 'iso-2022-jp'],
  ['cp50221', 'iso-2022-jp'],
  ['cp936', 'gb18030'],
  ['ms936', 'gb18030'],
  ['windows-936', 'gb18030'],
  ['gbk', 'gb18030'],
  ['gb2312', 'gb18030'],
  ['euc-cn', 'gb18030'],
  ['euccn', 'gb18030'],
  ['cp950', 'big5'],
  ['ms950', 'big5'],
  ['cp949', 'euc-kr'],
  ['ms949', 'euc-kr'],
  ['uhc', 'euc-kr'],
  ['euckr', 'euc-kr'],
  ['ks_c_5601', 'euc-kr'],
  ['cp1250', 'windows-1250'],
  ['cp10000', 'macintosh'],
  ['macroman', 'macintosh'],
  ['x-macroman', 'macintosh'],
  ['cp20866', 'koi8-r'],
  ['cp21866', 'koi8-u'],
  ['iso-8859-1-windows-3.1-latin-1', 'windows-1252'],
  ['iso8859', 'windows-1252'],
  ['iso-8859', 'windows-1252'],
  ['latin-1', 'windows-1252'],
  ['latin-2', 'iso-8859-2'],
  ['latin-9', 'iso-8859-15'],
  ['latin9', 'iso-8859-15'],
  ['ansi', 'windows-1252'],
  ['csisolatin1', 'windows-1252'],
])

/** These say nothing: the bytes are looked at. */
const UNSAID = new Set([
  '',
  'x-unknown',
  'unknown',
  'unknown-8bit',
  'default',
  'none',
  'us-ascii',
  'ascii',
  '8bit',
  '7bit',
  'binary',
  'default_charset',
  'x-user-defined',
  'ansi_x3.4-1968',
])

const LABEL_CHARS_MAX = 64

/**
 * The text of `bytes`. `fallback` is the charset for bytes that are no UTF-8 where none, or none that is
 * known, was named: what the rest of the message is in.
 */
export function decodeCharset(bytes: Uint8Array, label: string, fallback = 'windows-1252'): DecodedText {
  const charset = canonicalLabel(label)
  const own = OWN_DECODERS.get(charset)
  if (own) return { text: own(bytes) }
  // Shift states and UTF-16 look like ASCII and are not.
  if (isAscii(bytes) && !charset.startsWith('iso-2022') && !charset.startsWith('utf-16')) {
    return { text: latin1(bytes) }
  }
  if (UNSAID.has(charset)) {
    const problem = charset === 'us-ascii' && !isUtf8(bytes) ? 'says that it is ASCII, but is not' : undefined
    return { text: guess(bytes, fallback), ...(problem && { problem }) }
  }
  const decoder = decoderFor(charset)
  if (!decoder) return { text: guess(bytes, fallback), problem: 'names an unknown charset' }
  if (decoder.encoding === 'utf-8' && !isUtf8(bytes)) {
    const text = decoder.decode(bytes)
    // Not one character beyond ASCII is UTF-8: it is something else under a wrong name.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
    const isOther = !/[^\u0000-\u007f\ufffd]/.test(text)
    return isOther
      ? { text: guess(bytes, fallback), problem: 'says that it is UTF-8, but is not' }
      : { text, problem: 'says that it is UTF-8, but is not throughout' }
  }
  return { text: decoder.decode(bytes) }
}

/** UTF-8 if it can be that, and otherwise the fallback: text in another charset is almost never valid UTF-8. */
function guess(bytes: Uint8Array, fallback: string): string {
  if (isUtf8(bytes)) return decoderFor('utf-8')!.decode(bytes)
  const charset = canonicalLabel(fallback)
  const decoder = charset === 'utf-8' ? null : decoderFor(charset)
  return (decoder ?? decoderFor('windows-1252')!).decode(bytes)
}

function canonicalLabel(label: string): string {
  let charset = label.slice(0, LABEL_CHARS_MAX).trim().toLowerCase().replaceAll('"', '').replaceAll("'", '')
  if (charset.startsWith('x-') && ALIASES.has(charset.slice(2))) charset = charset.slice(2)
  if (/^cp-?125\d$/.test(charset)) charset = `windows-${charset.slice(-4)}`
  if (/^iso_?8859[-_]/.test(charset)) charset = `iso-8859-${charset.slice(charset.search(/[-_]\d+$/) + 1)}`
  return ALIASES.get(charset) ?? charset
}

/** Decoders that were made, by label: only for labels that exist, so there are few of them. */
const decoders = new Map<string, TextDecoder>()

function decoderFor(charset: string): TextDecoder | null {
  let decoder = decoders.get(charset)
  if (decoder) return decoder
  // Not a charset that is known here: the caller guesses.
  if (!PLATFORM_LABELS.has(charset)) return null
  decoder = new TextDecoder(charset)
  decoders.set(charset, decoder)
  return decoder
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

/** Charsets that the platform has given up. */
const OWN_DECODERS = new Map<string, (bytes: Uint8Array) => string>([
  ['utf-7', decodeUtf7],
  ['hz-gb-2312', decodeHz],
  ['iso-2022-kr', decodeIso2022Kr],
])

const PLUS = 43
const MINUS = 45

/** RFC 2152. The bytes between `+` and `-` are UTF-16 in base64. */
export function decodeUtf7(bytes: Uint8Array): string {
  const source = latin1(bytes)
  const pieces: string[] = []
  let at = 0
  while (at < source.length) {
    const plus = source.indexOf('+', at)
    if (plus === -1) break
    pieces.push(source.slice(at, plus))
    let end = plus + 1
    while (end < source.length && isBase64(source.charCodeAt(end))) end++
    if (end === plus + 1) {
      pieces.push('+')
      at = source.charCodeAt(end) === MINUS ? end + 1 : end
      continue
    }
    const units = Buffer.from(source.slice(plus + 1, end), 'base64')
    pieces.push(
      units
        .subarray(0, units.length - (units.length % 2))
        .swap16()
        .toString('utf16le'),
    )
    at = source.charCodeAt(end) === MINUS ? end + 1 : end
  }
  pieces.push(source.slice(at))
  return pieces.join('').toWellFormed()
}

function isBase64(code: number): boolean {
  return (
    (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || (code >= 47 && code <= 57) || code === PLUS
  )
}

/** RFC 1843: `~{` begins two-byte characters, `~}` ends them. */
function decodeHz(bytes: Uint8Array): string {
  const out = Buffer.allocUnsafe(bytes.length)
  let length = 0
  let wide = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    const next = bytes[at + 1]
    if (byte === 0x7e && (next === 0x7b || next === 0x7d || next === 0x7e || next === 0x0a)) {
      at++
      if (next === 0x7e) out[length++] = 0x7e
      else if (next !== 0x0a) wide = next === 0x7b
      continue
    }
    if (byte === 0x0a) wide = false
    out[length++] = wide && byte > 0x20 ? byte | 0x80 : byte
  }
  return decoderFor('gb18030')!.decode(out.subarray(0, length))
}

/** RFC 1557: shift out begins two-byte characters, shift in ends them, after an escape that announces them. */
function decodeIso2022Kr(bytes: Uint8Array): string {
  const out = Buffer.allocUnsafe(bytes.length)
  let length = 0
  let wide = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === 0x1b && bytes[at + 1] === 0x24 && bytes[at + 2] === 0x29 && bytes[at + 3] === 0x43) at += 3
    else if (byte === 0x0e || byte === 0x0f) wide = byte === 0x0e
    else {
      if (byte === 0x0a) wide = false
      out[length++] = wide && byte > 0x20 ? byte | 0x80 : byte
    }
  }
  return decoderFor('euc-kr')!.decode(out.subarray(0, length))
}

/**
 * The labels of charsets that the platform can decode: those of the Encoding Standard, without what it replaces. To ask
 * the platform costs an exception for each label that it does not know, and a mail may name as many as it has words.
 */
export const PLATFORM_LABELS: ReadonlySet<string> = new Set(
  (
    'unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 utf-8 x-unicode20utf8 866 cp866 csibm866 ibm866 ' +
    'csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2 ' +
    'csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3 ' +
    'csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4 ' +
    'csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988 ' +
    'arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e ' +
    'iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987 csisolatingreek ecma-118 ' +
    'elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 ' +
    'sun_eu_greek csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 ' +
    'iso88598 iso_8859-8 iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical csisolatin6 iso-8859-10 ' +
    'iso-ir-157 iso8859-10 iso885910 l6 latin6 iso-8859-13 iso8859-13 iso885913 iso-8859-14 iso8859-14 ' +
    'iso885914 csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9 iso-8859-16 cskoi8r koi koi8 ' +
    'koi8-r koi8_r koi8-ru koi8-u csmacintosh mac macintosh x-mac-roman dos-874 iso-8859-11 iso8859-11 ' +
    'iso885911 tis-620 windows-874 cp1250 windows-1250 x-cp1250 cp1251 windows-1251 x-cp1251 ' +
    'ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 ' +
    'iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252 cp1253 windows-1253 x-cp1253 ' +
    'cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 ' +
    'windows-1254 x-cp1254 cp1255 windows-1255 x-cp1255 cp1256 windows-1256 x-cp1256 cp1257 windows-1257 ' +
    'x-cp1257 cp1258 windows-1258 x-cp1258 x-mac-cyrillic x-mac-ukrainian chinese csgb2312 ' +
    'csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk gb18030 big5 big5-hkscs cn-big5 csbig5 ' +
    'x-x-big5 cseucpkdfmtjapanese euc-jp x-euc-jp csiso2022jp iso-2022-jp csshiftjis ms932 ms_kanji ' +
    'shift-jis shift_jis sjis windows-31j x-sjis cseuckr csksc56011987 euc-kr iso-ir-149 korean ' +
    'ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949 unicodefffe utf-16be csunicode ' +
    'iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16le utf-16 x-user-defined'
  ).split(' '),
)
