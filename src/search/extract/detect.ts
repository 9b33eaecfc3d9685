/** What a document is: by its content first, then by its name, then by the type that somebody gave it. */
import { type Format, SkipDocument } from './contract.ts'
import { detectEncoding } from './decode.ts'

export type Detected = Format | 'zip' | 'ole'

/** Mark, from which byte on, and what it is the mark of. */
type Magic = { mark: string; at?: number; what: string }

/** These begin no text. */
const MAGICS: Magic[] = [
  { mark: '\x89PNG\r\n', what: 'a PNG image' },
  { mark: '\xff\xd8\xff', what: 'a JPEG image' },
  { mark: 'GIF87a', what: 'a GIF image' },
  { mark: 'GIF89a', what: 'a GIF image' },
  { mark: 'II*\0', what: 'a TIFF image' },
  { mark: 'MM\0*', what: 'a TIFF image' },
  { mark: 'WEBP', at: 8, what: 'a WebP image' },
  { mark: 'WAVE', at: 8, what: 'a sound' },
  { mark: 'AVI ', at: 8, what: 'a video' },
  { mark: 'ftyphei', at: 4, what: 'a HEIC image' },
  { mark: 'ftypmif', at: 4, what: 'a HEIC image' },
  { mark: 'ftypavif', at: 4, what: 'an AVIF image' },
  { mark: 'ftypM4A', at: 4, what: 'a sound' },
  { mark: 'ftyp', at: 4, what: 'a video' },
  { mark: '\x1a\x45\xdf\xa3', what: 'a video' },
  { mark: 'OggS', what: 'a sound' },
  { mark: 'fLaC', what: 'a sound' },
  { mark: 'ID3', what: 'a sound' },
  { mark: '\xff\xfb', what: 'a sound' },
  { mark: '\xff\xf3', what: 'a sound' },
  { mark: '\x1f\x8b', what: 'a compressed file' },
  { mark: 'BZh', what: 'a compressed file' },
  { mark: '\xfd7zXZ\0', what: 'a compressed file' },
  { mark: '\x28\xb5\x2f\xfd', what: 'a compressed file' },
  { mark: '7z\xbc\xaf\x27\x1c', what: 'an archive' },
  { mark: 'Rar!\x1a\x07', what: 'an archive' },
  { mark: 'ustar', at: 257, what: 'an archive' },
  { mark: '\x7fELF', what: 'a program' },
  { mark: 'MZ', what: 'a program' },
  { mark: '\0asm', what: 'a program' },
  { mark: '\xca\xfe\xba\xbe', what: 'a program' },
  { mark: '\xcf\xfa\xed\xfe', what: 'a program' },
  { mark: 'SQLite format 3\0', what: 'a database' },
  { mark: 'wOF', what: 'a font' },
  { mark: 'OTTO', what: 'a font' },
  { mark: '8BPS', what: 'a Photoshop image' },
  { mark: 'BM', what: 'a bitmap image' },
]

const PDF_MARK_WITHIN_BYTES = 1_024
const SNIFFED_CHARS = 1_024

/** A document of one of these formats, a container to look into, or no document with text, which is skipped. */
export function detectFormat(bytes: Uint8Array, name: string, mimeType: string | undefined): Detected {
  if (bytes.length === 0) throw new SkipDocument('empty', 'it has no content')
  const head = Buffer.from(bytes.subarray(0, SNIFFED_CHARS)).toString('latin1')
  if (head.startsWith('PK\x03\x04') || head.startsWith('PK\x05\x06')) return 'zip'
  if (head.startsWith('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')) return 'ole'
  if (head.slice(0, PDF_MARK_WITHIN_BYTES).includes('%PDF-')) return 'pdf'
  const isText = detectEncoding(bytes) !== undefined
  if (!isText)
    throw new SkipDocument('unsupported-type', `it is ${binaryKind(head)}, which has no text to read`)
  if (/^(?:\xef\xbb\xbf)?\s*\{\\rtf/.test(head)) return 'rtf'
  return textFormat(asciiOf(head), extensionOf(name), mimeType?.split(';')[0]?.trim().toLowerCase())
}

function binaryKind(head: string): string {
  const magic = MAGICS.find(({ mark, at = 0 }) => head.startsWith(mark, at))
  return magic?.what ?? 'a binary file of no known kind'
}

/** UTF-16 read byte by byte, without the empty ones. */
function asciiOf(head: string): string {
  return head.replaceAll('\0', '').replace(/^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)/, '')
}

const BY_EXTENSION: Record<string, Format> = {
  txt: 'text',
  text: 'text',
  log: 'text',
  rst: 'text',
  adoc: 'text',
  tex: 'text',
  srt: 'text',
  vtt: 'text',
  ics: 'text',
  vcf: 'text',
  md: 'markdown',
  markdown: 'markdown',
  mdx: 'markdown',
  mkd: 'markdown',
  html: 'html',
  htm: 'html',
  xhtml: 'html',
  csv: 'csv',
  tsv: 'csv',
  tab: 'csv',
  json: 'json',
  jsonl: 'json',
  ndjson: 'json',
  geojson: 'json',
  ipynb: 'json',
  xml: 'xml',
  xsd: 'xml',
  xsl: 'xml',
  xslt: 'xml',
  svg: 'xml',
  rss: 'xml',
  atom: 'xml',
  plist: 'xml',
  kml: 'xml',
  gpx: 'xml',
}

const CODE_EXTENSIONS = new Set(
  (
    'ts tsx mts cts js jsx mjs cjs py pyi rb php java kt kts scala groovy c h cc cpp cxx hpp hh m mm cs fs vb go rs ' +
    'swift dart lua pl pm r jl sql sh bash zsh fish ps1 bat cmd css scss sass less vue svelte astro ex exs erl hs ml ' +
    'clj cljs lisp el nim zig v sol proto graphql gql thrift tf hcl nix cmake gradle mk yaml yml toml ini cfg conf ' +
    'env properties diff patch asm s vim d pas awk'
  ).split(' '),
)

const BY_TYPE: Record<string, Format> = {
  'text/markdown': 'markdown',
  'text/x-markdown': 'markdown',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'text/csv': 'csv',
  'text/tab-separated-values': 'csv',
  'application/json': 'json',
  'application/x-ndjson': 'json',
  'application/xml': 'xml',
  'text/xml': 'xml',
  'image/svg+xml': 'xml',
  'application/javascript': 'code',
  'text/javascript': 'code',
  'text/css': 'code',
}

function textFormat(head: string, extension: string, type: string | undefined): Format {
  if (/^\s*(?:<!--[\s\S]{0,500}?-->\s*)?<(?:!doctype html|html)\b/i.test(head)) return 'html'
  const byName = CODE_EXTENSIONS.has(extension) ? 'code' : BY_EXTENSION[extension]
  if (/^\s*<\?xml\b/.test(head)) {
    return /<html\b/i.test(head) || byName === 'html' ? 'html' : 'xml'
  }
  const named = byName ?? formatOfType(type)
  // Something that is called HTML or XML and has no element is read as it stands.
  if ((named === 'html' || named === 'xml') && !/<[a-z!?/]/i.test(head)) return 'text'
  return named ?? 'text'
}

function formatOfType(type: string | undefined): Format | undefined {
  if (type === undefined) return undefined
  if (type.startsWith('text/x-') && type !== 'text/x-markdown') return 'code'
  return BY_TYPE[type] ?? (type.endsWith('+xml') ? 'xml' : type.endsWith('+json') ? 'json' : undefined)
}

export function extensionOf(name: string): string {
  return /\.([a-z0-9]{1,10})$/i.exec(name)?.[1]?.toLowerCase() ?? ''
}
