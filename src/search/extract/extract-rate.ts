/** How fast documents are read when nothing else is done with them: what indexing is compared with. */
import type { Clock } from '../../base/clock.ts'
import type { ExtractInput } from './contract.ts'
import type { TextExtractor } from './extractor.ts'

export type ExtractRate = {
  documents: number
  skipped: number
  chunks: number
  chars: number
  ms: number
  documentsPerSecond: number
  chunksPerSecond: number
}

/**
 * Reads all documents, as many at a time as `atATime` (the extractor's threads, or one more to keep them busy). The
 * first document starts the threads, so that one is read before the time begins.
 */
export async function measureExtractRate(input: {
  extractor: TextExtractor
  documents: readonly ExtractInput[]
  atATime: number
  clock: Clock
}): Promise<ExtractRate> {
  const { extractor, documents, atATime, clock } = input
  if (documents[0]) await extractor.extractChunks(documents[0])
  let [next, skipped, chunks, chars] = [0, 0, 0, 0]
  const readSome = async (): Promise<void> => {
    while (next < documents.length) {
      const document = await extractor.extractChunks(documents[next++]!)
      if (document.kind === 'skipped') {
        skipped += 1
        continue
      }
      chunks += document.chunks.length
      for (const { text } of document.chunks) chars += text.length
    }
  }
  const from = clock.monotonicMs()
  await Promise.all(Array.from({ length: atATime }, readSome))
  const ms = clock.monotonicMs() - from
  const perSecond = (count: number): number => (ms === 0 ? 0 : (count * 1_000) / ms)
  return {
    documents: documents.length,
    skipped,
    chunks,
    chars,
    ms,
    documentsPerSecond: perSecond(documents.length),
    chunksPerSecond: perSecond(chunks),
  }
}
