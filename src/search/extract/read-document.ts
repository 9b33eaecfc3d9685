/** From a document's bytes to its text. Runs in the thread: whoever made the document decides how long this takes. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { formatBytes } from '../../base/format.ts'
import {
  type DocumentSource,
  type ExtractInput,
  type Extraction,
  type ExtractLimits,
  type Format,
  SkipDocument,
  type Skipped,
} from './contract.ts'
import { detectFormat } from './detect.ts'
import { OutputFull, TextOutput } from './text-output.ts'

type Reader = (bytes: Uint8Array, output: TextOutput, limits: ExtractLimits) => void | Promise<void>

/** Each is loaded when the first document asks for it. */
const READERS: Record<Format, () => Promise<Reader>> = {
  text: async () => (await import('./plain.ts')).readPlain,
  code: async () => (await import('./plain.ts')).readPlain,
  json: async () => (await import('./plain.ts')).readPlain,
  markdown: async () => (await import('./markdown.ts')).readMarkdown,
  html: async () => (await import('./html.ts')).readHtml,
  xml: async () => (await import('./xml.ts')).readXml,
  csv: async () => (await import('./csv.ts')).readCsv,
  rtf: async () => (await import('./rtf.ts')).readRtf,
  pdf: async () => (await import('./pdf.ts')).readPdf,
  docx: async () => (await import('./docx.ts')).readDocx,
  xlsx: async () => (await import('./xlsx.ts')).readXlsx,
  pptx: async () => (await import('./pptx.ts')).readPptx,
  odt: async () => (await import('./open-document.ts')).readOpenDocument,
  ods: async () => (await import('./open-document.ts')).readOpenDocument,
  odp: async () => (await import('./open-document.ts')).readOpenDocument,
}

/** Throws only where the file itself cannot be had: that is no fault of the document. */
export async function readDocument(input: ExtractInput, limits: ExtractLimits): Promise<Extraction> {
  const bytes = bytesOf(input, limits.inputBytesMax)
  if ('kind' in bytes) return bytes
  try {
    const format = await formatOf(bytes, input, limits)
    const output = new TextOutput(limits)
    const read = await READERS[format]()
    const isTruncated = await fills(output, async () => read(bytes, output, limits))
    if (output.parts.length === 0)
      throw new SkipDocument('empty', EMPTY_REASONS[format] ?? 'there is no text in it')
    const { parts, title, language } = output
    return { kind: 'text', format, parts, title, language, isTruncated }
  } catch (thrown) {
    return skippedBy(thrown)
  }
}

const EMPTY_REASONS: Partial<Record<Format, string>> = {
  pdf: 'its pages have no text, as with scanned pages',
}

async function formatOf(bytes: Uint8Array, input: ExtractInput, limits: ExtractLimits): Promise<Format> {
  const detected = detectFormat(bytes, input.name, input.mimeType)
  if (detected === 'ole') throw skippedContainer(bytes)
  if (detected !== 'zip') return detected
  const [{ ZipReader }, { formatOfContainer }] = await Promise.all([
    import('./zip.ts'),
    import('./office-container.ts'),
  ])
  return await formatOfContainer(new ZipReader(bytes, limits))
}

/** What office programs wrote before 2007, and what newer ones put a document into that has a password. */
function skippedContainer(bytes: Uint8Array): SkipDocument {
  const names = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const isEncrypted = names.includes(Buffer.from('EncryptedPackage', 'utf16le'))
  if (isEncrypted) return new SkipDocument('encrypted', 'it is protected with a password')
  return new SkipDocument(
    'unsupported-type',
    'it is of an office format of before 2007: save it in a newer one to have it read',
  )
}

async function fills(output: TextOutput, read: () => Promise<void>): Promise<boolean> {
  try {
    await read()
    return output.isCut
  } catch (thrown) {
    if (thrown instanceof OutputFull) return true
    throw thrown
  }
}

function skippedBy(thrown: unknown): Extraction {
  if (thrown instanceof SkipDocument) return { kind: 'skipped', code: thrown.code, reason: thrown.message }
  // Whatever a parser says of a document that it cannot read.
  const said = thrown instanceof Error ? thrown.message : String(thrown)
  return { kind: 'skipped', code: 'damaged', reason: `it cannot be read: ${said.slice(0, 200)}` }
}

function bytesOf(source: DocumentSource, bytesMax: number): Uint8Array | Skipped {
  if ('bytes' in source) return tooLarge(source.bytes.length, bytesMax) ?? source.bytes
  const file = openSync(source.file, 'r')
  try {
    const { size } = fstatSync(file)
    const skipped = tooLarge(size, bytesMax)
    if (skipped) return skipped
    const bytes = Buffer.allocUnsafeSlow(size)
    let length = 0
    while (length < size) {
      const read = readSync(file, bytes, length, size - length, length)
      if (read === 0) break
      length += read
    }
    return bytes.subarray(0, length)
  } finally {
    closeSync(file)
  }
}

export function tooLarge(size: number, bytesMax: number): Skipped | undefined {
  if (size <= bytesMax) return undefined
  const reason = `it has ${formatBytes(size)}, and at most ${formatBytes(bytesMax)} are read`
  return { kind: 'skipped', code: 'too-large', reason }
}
