/**
 * MIME parts as strings of bytes. Payloads of attachments are cut from one pool of noise that is in
 * base64 already: no loop over bytes, however large they are.
 */
import { seededRandom } from '../../base/random.ts'
import { docxMembers } from '../documents/docx.ts'
import { pdf } from '../documents/pdf.ts'
import { zip } from '../documents/zip.ts'
import { mixed, oneOf, streamOf } from './generate-chance.ts'
import { base64Lines, encodedWords, percentEncoded } from './generate-charsets.ts'
import { WORDINGS } from './generate-words.ts'

/** The headers of a part without the final line end, and its body. */
export type Part = { head: string; body: string }

const POOL_LINES = 18_400
const LINE_BYTES = 57
/** 76 characters and the line end. */
const LINE_CHARS = 78
/** Five megabytes in base64. */
export const PAYLOAD_LINES_MAX = 65_000

/** `first` and `last`, in base64, are what a reader of its type understands; between them are lines of noise. */
export type Document = {
  name: string
  type: string
  first: string
  start: number
  lines: number
  last?: string
}

export function part(type: string, body: string, headers: readonly string[] = []): Part {
  return { head: [`Content-Type: ${type}`, ...headers].join('\r\n'), body }
}

export function textPart(subtype: string, text: { body: string; charset: string; encoding: string }): Part {
  return part(`text/${subtype}; charset=${text.charset}`, text.body, [
    `Content-Transfer-Encoding: ${text.encoding}`,
  ])
}

export function multipart(
  subtype: string,
  parts: readonly Part[],
  options: { boundary: string; parameters?: string },
): Part {
  const { boundary, parameters = '' } = options
  let body = ''
  for (const { head, body: inner } of parts) body += `--${boundary}\r\n${head}\r\n\r\n${inner}\r\n`
  return part(`multipart/${subtype}; boundary="${boundary}"${parameters}`, `${body}--${boundary}--\r\n`)
}

/** The same document always gives the same bytes, whoever sends it. */
export function documentPart(document: Document, options: { name?: string; inline?: string } = {}): Part {
  const name = options.name ?? nameParameters(document.name)
  const disposition = options.inline
    ? [`Content-ID: <${options.inline}>`, `Content-Disposition: inline;\r\n ${name}`]
    : [`Content-Disposition: attachment;\r\n ${name}`]
  return part(document.type, payload(document), [...disposition, 'Content-Transfer-Encoding: base64'])
}

/** As most programs write it: quoted when ASCII, in encoded words or RFC 2231 when not. */
export function nameParameters(name: string): string {
  const encoded = encodedWords(name, { charset: 'utf-8', as: 'B' })
  return encoded === name ? `filename="${name}"` : `filename*=${percentEncoded(name, 'utf-8')}`
}

export function payload(document: { first: string; start: number; lines: number; last?: string }): string {
  const pool = noise()
  let left = Math.min(document.lines, PAYLOAD_LINES_MAX)
  let start = document.start % POOL_LINES
  let text = document.first
  while (left > 0) {
    const taken = Math.min(left, POOL_LINES - start)
    text += pool.slice(start * LINE_CHARS, (start + taken) * LINE_CHARS)
    left -= taken
    start = 0
  }
  return text + (document.last ?? '')
}

const EXTENSIONS = [
  ['pdf', 'application/pdf', asPdf],
  ['png', 'image/png', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x01\0\x08\x06\0\0\0'],
  ['jpg', 'image/jpeg', '\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x48\0\x48\0\0'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', asDocx],
  ['zip', 'application/zip', 'PK\x03\x04\x0a\0\0\0'],
  ['mp3', 'audio/mpeg', 'ID3\x03\0\0\0\0'],
] as const

const DOCUMENT_NAMES = [
  'Report',
  'Holiday photo',
  'Offer',
  'Übersicht',
  'Scan',
  'facture réglée',
  'Price list',
  '資料',
]

/** The document of this number: name, type, size and bytes follow from it alone. */
export function numberedDocument(number: number, lines: number): Document {
  const hash = mixed(0xd0c, number)
  const [extension, type, form] = EXTENSIONS[hash % EXTENSIONS.length]!
  const title = `${DOCUMENT_NAMES[(hash >>> 8) % DOCUMENT_NAMES.length]} ${number}`
  const place = {
    start: (hash >>> 4) % POOL_LINES,
    lines: Math.max(1, Math.min(lines, PAYLOAD_LINES_MAX)),
  }
  const ends = typeof form === 'string' ? { first: firstLine(form) } : readable(form, title, number, place)
  return { name: `${title}.${extension}`, type, ...place, ...ends }
}

const SENTENCES = 6

type Readable = { title: string; text: string; noise: Uint8Array; blanks: number }

/** A document that can be read, cut in two where its noise is: whole lines before it, whatever is left behind it. */
function readable(
  form: (content: Readable) => Uint8Array,
  title: string,
  number: number,
  place: { start: number; lines: number },
): Pick<Document, 'first' | 'last'> {
  const noise = Buffer.from(payload({ first: '', ...place }), 'base64')
  const text = sentencesOf(number)
  const made = (blanks: number): { bytes: Buffer; at: number } => {
    const bytes = Buffer.from(form({ title, text, noise, blanks }))
    return { bytes, at: bytes.indexOf(noise) }
  }
  const { bytes, at } = made((LINE_BYTES - (made(0).at % LINE_BYTES)) % LINE_BYTES)
  return {
    first: base64Lines(bytes.toString('latin1', 0, at)),
    last: base64Lines(bytes.toString('latin1', at + noise.length)),
  }
}

function sentencesOf(number: number): string {
  const { sentences, things, places } = WORDINGS.en
  const random = streamOf(0xd0c, number)
  const sentence = (): string =>
    oneOf(random, sentences)
      .replace('{thing}', oneOf(random, things))
      .replace('{place}', oneOf(random, places))
  return Array.from({ length: SENTENCES }, sentence).join(' ')
}

function asPdf({ title, text, noise, blanks }: Readable): Uint8Array {
  return pdf({ title, pages: [text], unseen: { stream: noise, blanks } })
}

function asDocx({ title, text, noise, blanks }: Readable): Uint8Array {
  const picture = `word/media/picture${'-'.repeat(blanks)}.png`
  const blocks = [{ heading: title }, { paragraph: text }]
  return zip([...docxMembers({ title, blocks }), { name: picture, content: noise, isStored: true }])
}

export function firstLine(magic: string): string {
  return base64Lines(magic.padEnd(LINE_BYTES, '\0').slice(0, LINE_BYTES))
}

let pool: string | undefined

function noise(): string {
  if (pool === undefined) {
    const random = seededRandom(0x5eed)
    const words = new Uint32Array(Math.ceil((POOL_LINES * LINE_BYTES) / 4))
    for (let at = 0; at < words.length; at += 1) words[at] = random() * 2 ** 32
    const bytes = Buffer.from(words.buffer, 0, POOL_LINES * LINE_BYTES)
    // Through a Buffer, so that the pool is one flat string that can be cut for nothing.
    pool = Buffer.from(base64Lines(bytes.toString('latin1')), 'latin1').toString('latin1')
  }
  return pool
}
