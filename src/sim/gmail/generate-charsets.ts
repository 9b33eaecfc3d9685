/**
 * Text into the bytes of old charsets and transfer encodings. Node decodes all of them but encodes
 * only Unicode, so the tables are made by decoding every code once and turning the result around.
 *
 * Bytes are kept as strings with one character per byte: the engine joins and cuts them without copying,
 * and a whole message becomes a Buffer in one step.
 */
const BASE64_LINE_BYTES = 57
const QUOTED_LINE_CHARS_MAX = 76

export type TransferEncoding = '7bit' | '8bit' | 'quoted-printable' | 'base64'

/** The bytes of a text; what the charset lacks becomes a question mark. */
export function bytesIn(text: string, charset: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it asks for what is beyond ASCII
  if (/^[\x00-\x7f]*$/.test(text)) return text
  if (charset === 'utf-8') return Buffer.from(text, 'utf8').toString('latin1')
  if (charset === 'utf-16le') return Buffer.from(text, 'utf16le').toString('latin1')
  if (charset === 'iso-2022-jp') return shiftedJapanese(text)
  const table = tableOf(charset)
  let bytes = ''
  for (const char of text) bytes += char < '\x80' ? char : (table.get(char) ?? '?')
  return bytes
}

/** One character per byte, as a transfer encoding writes it. Pieces that end in a line end may be joined. */
export function transferred(bytes: string, encoding: TransferEncoding): string {
  if (encoding === 'quoted-printable') return quotedPrintable(bytes)
  if (encoding === 'base64') return base64Lines(padded(bytes))
  return bytes
}

export function base64Lines(bytes: string): string {
  const text = Buffer.from(bytes, 'latin1').toString('base64')
  return text.replaceAll(/.{1,76}/g, '$&\r\n')
}

/** Spaces before the line end until whole lines of base64 come out, so that pieces can be joined. */
function padded(bytes: string): string {
  const missing = (BASE64_LINE_BYTES - (bytes.length % BASE64_LINE_BYTES)) % BASE64_LINE_BYTES
  const end = bytes.endsWith('\r\n') ? bytes.length - 2 : bytes.length
  return bytes.slice(0, end) + ' '.repeat(missing) + bytes.slice(end)
}

export function quotedPrintable(bytes: string): string {
  return bytes
    .split('\r\n')
    .map((line) => softLines(quotedChars(line)))
    .join('\r\n')
}

function quotedChars(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the bytes that must be quoted
  return line.replaceAll(/[\x00-\x08\x0a-\x1f=\x7f-\xff]|[ \t]$/g, (char) => `=${hex(char)}`)
}

function softLines(line: string): string {
  const lines: string[] = []
  let rest = line
  while (rest.length > QUOTED_LINE_CHARS_MAX) {
    let cut = QUOTED_LINE_CHARS_MAX - 1
    if (rest[cut - 1] === '=') cut -= 1
    else if (rest[cut - 2] === '=') cut -= 2
    lines.push(`${rest.slice(0, cut)}=`)
    rest = rest.slice(cut)
  }
  return [...lines, rest].join('\r\n')
}

/** A header's text as encoded words of at most 75 characters; plain where it is ASCII. */
export function encodedWords(text: string, options: { charset: string; as: 'B' | 'Q' }): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it asks for what is beyond ASCII
  if (/^[\x00-\x7f]*$/.test(text)) return text
  const words: string[] = []
  let piece = ''
  for (const char of text) {
    if (encodedWord(piece + char, options).length > 75) {
      words.push(encodedWord(piece, options))
      piece = ''
    }
    piece += char
  }
  return [...words, encodedWord(piece, options)].join('\r\n ')
}

function encodedWord(text: string, { charset, as }: { charset: string; as: 'B' | 'Q' }): string {
  const bytes = bytesIn(text, charset)
  if (as === 'B') return `=?${charset}?B?${Buffer.from(bytes, 'latin1').toString('base64')}?=`
  const quoted = bytes.replaceAll(/[^A-Za-z0-9 ]/g, (char) => `=${hex(char)}`).replaceAll(' ', '_')
  return `=?${charset}?Q?${quoted}?=`
}

/** A parameter value as RFC 2231 writes it. */
export function percentEncoded(text: string, charset: string): string {
  return `${charset}''${bytesIn(text, charset).replaceAll(/[^A-Za-z0-9._-]/g, (char) => `%${hex(char)}`)}`
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')
}

const tables = new Map<string, Map<string, string>>()

function tableOf(charset: string): Map<string, string> {
  let table = tables.get(charset)
  if (!table) {
    table = new Map()
    for (const code of codesOf(charset)) addCodes(table, charset, code)
    tables.set(charset, table)
  }
  return table
}

const DOUBLE_BYTE = new Set(['shift_jis', 'gb18030', 'gb2312', 'gbk', 'big5', 'euc-kr', 'euc-jp'])

/** Blocks of codes, each with a line feed behind every code so that one decode can be cut up again. */
function* codesOf(charset: string): Generator<string[]> {
  const byte = String.fromCharCode
  yield Array.from({ length: 128 }, (_, at) => byte(128 + at))
  if (!DOUBLE_BYTE.has(charset)) return
  for (let lead = 0x81; lead <= 0xfe; lead += 1) {
    yield Array.from({ length: 0xff - 0x40 }, (_, at) => byte(lead) + byte(0x40 + at))
  }
}

function addCodes(table: Map<string, string>, charset: string, codes: readonly string[]): void {
  const decoded = new TextDecoder(charset).decode(Buffer.from(`${codes.join('\n')}\n`, 'latin1')).split('\n')
  if (decoded.length !== codes.length + 1) {
    addOneByOne(table, charset, codes)
    return
  }
  for (const [at, code] of codes.entries()) addCode(table, decoded[at]!, code)
}

/** A decoder that takes a line feed for part of a code. */
function addOneByOne(table: Map<string, string>, charset: string, codes: readonly string[]): void {
  const decoder = new TextDecoder(charset)
  for (const code of codes) addCode(table, decoder.decode(Buffer.from(code, 'latin1')), code)
}

function addCode(table: Map<string, string>, char: string, code: string): void {
  if ([...char].length === 1 && char !== '\ufffd' && char >= '\x80' && !table.has(char)) table.set(char, code)
}

/** JIS between escape sequences: the codes of euc-jp without their high bits. */
function shiftedJapanese(text: string): string {
  const table = tableOf('euc-jp')
  let bytes = ''
  let shifted = false
  for (const char of text) {
    const code = char < '\x80' ? undefined : table.get(char)
    if ((code?.length === 2) !== shifted) {
      shifted = !shifted
      bytes += shifted ? '\x1b$B' : '\x1b(B'
    }
    if (code?.length === 2) bytes += String.fromCharCode(code.charCodeAt(0) & 127, code.charCodeAt(1) & 127)
    else bytes += char < '\x80' ? char : '?'
  }
  return shifted ? `${bytes}\x1b(B` : bytes
}
