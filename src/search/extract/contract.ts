/**
 * What extraction takes and gives. A document's bytes become parts of plain text, each with the headings above it and
 * the place where a reader finds it; or the document is skipped, with a code for programs and a reason for people.
 *
 * Text is normalised: NFC, `\n` for line ends, no other control characters, no NUL (PostgreSQL refuses it), no lone
 * surrogates, no invisible marks inside words.
 *
 * Everything that reads a document's bytes runs in a thread of `TextExtractor` (extractor.ts), under these limits.
 */

/** Where a reader finds a text in its document. */
export type Place =
  | { kind: 'page'; page: number }
  | { kind: 'slide'; slide: number }
  /** Each line of the text is one row. `sheet` is missing where a document is a single table. */
  | { kind: 'rows'; first: number; last: number; sheet?: string }
  /** Each line of the text is one line of the document. */
  | { kind: 'lines'; first: number; last: number }
  /** The format has no places that hold for every reader. */
  | { kind: 'none' }

export type TextPart = {
  /** All that stands here, its own heading included. */
  text: string
  /** The path of headings down to this part, outermost first, its own last. */
  headings: string[]
  place: Place
}

export const FORMATS = [
  'text',
  'markdown',
  'html',
  'pdf',
  'docx',
  'xlsx',
  'pptx',
  'odt',
  'ods',
  'odp',
  'csv',
  'code',
  'json',
  'xml',
  'rtf',
] as const
export type Format = (typeof FORMATS)[number]

/**
 * Why a document has no text here: facts of these bytes under these limits, which another try does not change. Only
 * `timeout`, `out-of-memory` and `crashed` may come out otherwise on a quieter machine.
 */
export const SKIP_CODES = [
  'unsupported-type',
  'encrypted',
  'damaged',
  'too-large',
  'too-deep',
  'bomb',
  'timeout',
  'out-of-memory',
  'crashed',
  'empty',
] as const
export type SkipCode = (typeof SKIP_CODES)[number]

export type Skipped = { kind: 'skipped'; code: SkipCode; reason: string }

export type ExtractedText = {
  kind: 'text'
  format: Format
  parts: TextPart[]
  /** What the document calls itself; its name is not this. */
  title?: string
  /** A BCP 47 tag, where the document says one. */
  language?: string
  /** There is more text than the limits let through: what is here is its beginning. */
  isTruncated: boolean
}

export type Extraction = ExtractedText | Skipped

/** The bytes, or the file that holds them, which the thread reads itself. */
export type DocumentSource = { bytes: Uint8Array } | { file: string }

export type ExtractInput = DocumentSource & {
  /** With its extension, which is believed only where the content says nothing. */
  name: string
  mimeType?: string
}

export type ExtractLimits = {
  /** A larger document is `too-large`. */
  inputBytesMax: number
  /** Text beyond this is left out, and the answer says `isTruncated`. */
  charsMax: number
  /** Parts beyond this are left out likewise. */
  partsMax: number
  /** Members of a zip container. */
  zipEntriesMax: number
  /** What one document's members may come to when they are unpacked. */
  inflatedBytesMax: number
  /** How many times larger a member may become: deflate itself reaches 1,032. */
  inflateRatioMax: number
  /** Elements within elements. */
  depthMax: number
  pagesMax: number
  /** After this the thread is ended, and the document is `timeout`. */
  timeMs: number
}

const MB = 1024 * 1024

export const DEFAULT_EXTRACT_LIMITS: ExtractLimits = {
  inputBytesMax: 128 * MB,
  // About 700,000 words: twice what the chunks of one document may hold.
  charsMax: 4_000_000,
  partsMax: 50_000,
  zipEntriesMax: 10_000,
  inflatedBytesMax: 256 * MB,
  inflateRatioMax: 250,
  depthMax: 1_000,
  // In a flat tree finding page n takes n steps.
  pagesMax: 2_000,
  timeMs: 30_000,
}

/** Thrown while a document is read: it is skipped. Only inside the thread. */
export class SkipDocument extends Error {
  readonly code: SkipCode

  constructor(code: SkipCode, reason: string, cause?: unknown) {
    super(reason, { cause })
    this.name = 'SkipDocument'
    this.code = code
  }
}
