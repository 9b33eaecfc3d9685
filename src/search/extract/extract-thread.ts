/** The thread that reads documents: see extractor.ts. */
import { parentPort } from 'node:worker_threads'
import { chunkParts } from '../chunk.ts'
import type { ThreadAnswer, ThreadRequest } from './extractor.ts'
import { readDocument } from './read-document.ts'

async function answer({ wants, input, limits }: ThreadRequest): Promise<ThreadAnswer> {
  const extraction = await readDocument(input, limits)
  if (extraction.kind === 'skipped' || wants === 'parts') return { done: extraction }
  const { parts, isTruncated, ...rest } = extraction
  const chunked = chunkParts(parts)
  return { done: { ...rest, chunks: chunked.chunks, isTruncated: isTruncated || chunked.isTruncated } }
}

parentPort!.on('message', async (request: ThreadRequest) => {
  try {
    parentPort!.postMessage(await answer(request))
  } catch (thrown) {
    const failed = thrown instanceof Error ? thrown.message : String(thrown)
    parentPort!.postMessage({ failed } satisfies ThreadAnswer)
  }
})
