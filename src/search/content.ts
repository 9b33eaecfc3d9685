/** From a document's bytes to its content: read once for all documents with the same bytes and the same name. */
import { chunkParts } from './chunk.ts'
import type { IndexWriter, NewDocument } from './contract.ts'
import { cleanText } from './extract/clean-text.ts'
import type { TextExtractor } from './extract/extractor.ts'
import { contentKey } from './index/content-key.ts'

/** `hash`: by which the same bytes are known again, whoever has them, with the name of the hash before it: `sha256:…`.
 * Who has it is shown what was read of others who have it: only a cryptographic hash will do. */
export type ReadBytes =
  | {
      hash: string
      /** Asked for only where the content is not there yet. */
      bytes: () => Promise<Uint8Array>
      name: string
      mimeType: string
    }
  /** Text that somebody has read already. */
  | { hash: string; text: string }

export type ReadContent = Pick<NewDocument, 'content' | 'unread'>

export type ContentPlace = {
  writer: Pick<IndexWriter, 'hasContent'>
  extractor: () => Promise<TextExtractor>
}

export async function readContent(
  { writer, extractor }: ContentPlace,
  { title, ...read }: ReadBytes & { title: string },
  signal: AbortSignal,
): Promise<ReadContent> {
  const key = contentKey(read.hash, title)
  if (await writer.hasContent(key)) return { content: { key } }
  if ('text' in read) {
    const text = cleanText(read.text)
    const { chunks, isTruncated } = chunkParts([{ text, headings: [], place: { kind: 'none' } }])
    return { content: { key, chunks, isTruncated } }
  }
  const { name, mimeType } = read
  const found = await (await extractor()).extractChunks(
    { bytes: await read.bytes(), name, mimeType },
    { signal },
  )
  if (found.kind === 'skipped')
    return { content: undefined, unread: { code: found.code, reason: found.reason } }
  return { content: { key, chunks: found.chunks, isTruncated: found.isTruncated } }
}
