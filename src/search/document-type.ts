/** What a document is, by its MIME type and its name, for `type:` and for the pictures beside hits. */
import type { DocumentType } from './contract.ts'

/** By extension: where a source tells no MIME type, and where it tells one that says nothing. */
const MIME_TYPES: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  bmp: 'image/bmp',
  csv: 'text/csv',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  eml: 'message/rfc822',
  gif: 'image/gif',
  gz: 'application/gzip',
  heic: 'image/heic',
  htm: 'text/html',
  html: 'text/html',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  m4a: 'audio/mp4',
  markdown: 'text/markdown',
  md: 'text/markdown',
  mov: 'video/quicktime',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  odp: 'application/vnd.oasis.opendocument.presentation',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odt: 'application/vnd.oasis.opendocument.text',
  pdf: 'application/pdf',
  png: 'image/png',
  ppt: 'application/vnd.ms-powerpoint',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  rtf: 'application/rtf',
  svg: 'image/svg+xml',
  tar: 'application/x-tar',
  tsv: 'text/tab-separated-values',
  txt: 'text/plain',
  wav: 'audio/wav',
  webp: 'image/webp',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
  zip: 'application/zip',
}

const CODE_EXTENSIONS = new Set(
  'bash c cc clj cpp cs css dart ex go h hpp hs java jl js jsx kt lua mjs php pl ps1 py r rb rs scala sh sql swift toml ts tsx vue yaml yml zig'.split(
    ' ',
  ),
)

const TYPES: readonly (readonly [RegExp, DocumentType])[] = [
  [/^application\/vnd\.google-apps\.document$|wordprocessingml|msword|opendocument\.text$|rtf$/, 'document'],
  [
    /^application\/vnd\.google-apps\.spreadsheet$|spreadsheetml|ms-excel|opendocument\.spreadsheet$|csv$|tab-separated/,
    'sheet',
  ],
  [
    /^application\/vnd\.google-apps\.presentation$|presentationml|ms-powerpoint|opendocument\.presentation$/,
    'slides',
  ],
  [/^application\/pdf$/, 'pdf'],
  [/^message\/rfc822$/, 'mail'],
  [/^image\/|^application\/vnd\.google-apps\.drawing$/, 'image'],
  [/^(?:audio|video)\//, 'media'],
  [/zip|x-tar|x-7z|x-rar|compressed/, 'archive'],
  [
    /javascript|typescript|x-python|x-sh|x-c|x-java|application\/(?:json|xml|x-yaml|toml)|text\/(?:css|xml)/,
    'code',
  ],
  [/^text\//, 'text'],
]

export function mimeTypeOf(name: string): string {
  const extension = extensionOf(name)
  return MIME_TYPES[extension] ?? (CODE_EXTENSIONS.has(extension) ? 'text/plain' : 'application/octet-stream')
}

export function documentType(mimeType: string, name: string): DocumentType {
  const plain = mimeType.toLowerCase().split(';')[0]!.trim()
  if (CODE_EXTENSIONS.has(extensionOf(name)) && !/^(?:image|audio|video)\//.test(plain)) return 'code'
  return typeOf(plain) ?? typeOf(mimeTypeOf(name)) ?? 'other'
}

function typeOf(mimeType: string): DocumentType | undefined {
  return TYPES.find(([pattern]) => pattern.test(mimeType))?.[1]
}

function extensionOf(name: string): string {
  const at = name.lastIndexOf('.')
  return at <= 0 ? '' : name.slice(at + 1).toLowerCase()
}
