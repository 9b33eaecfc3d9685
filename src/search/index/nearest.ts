/** What is nearest by meaning, of contents whose codes are at hand: the same on both databases. */
import type { Tx } from '../../ledger/contract.ts'
import type { CodeCache } from './code-cache.ts'
import type { NearChunk, NearestRequest } from './dialect.ts'
import { NearestFew } from './nearest-few.ts'
import { agreement, codeBytes, signTable } from './vectors.ts'

/** Documents and their contents, side by side. */
export type Readable = { docs: readonly number[]; contents: readonly number[] }

export type NearCode = { contentId: number; n: number }

/** By their codes, those that are to be compared exactly. Of each content, the documents that were asked for. */
export async function nearestByCodes(
  tx: Tx,
  { modelId, query, rescored }: NearestRequest,
  { readable: { docs, contents }, cache }: { readable: Readable; cache: CodeCache },
): Promise<{ few: readonly NearCode[]; docIds: ReadonlyMap<number, ReadonlySet<number>> }> {
  const table = signTable(query)
  const nearest = new NearestFew(rescored)
  const step = codeBytes(query.length)
  // Copies of one content have the same codes.
  const contentIds = [...new Set(contents)]
  await cache.each(tx, { modelId, contentIds }, (contentId, codes, { from, to }) => {
    for (let at = from, n = 0; at < to; at += step, n++) {
      nearest.offer(-agreement(table, codes, at), contentId, n)
    }
  })
  const few = nearest.all()
  const docIds = new Map(few.map(({ contentId }) => [contentId, new Set<number>()]))
  for (const [at, contentId] of contents.entries()) docIds.get(contentId)?.add(docs[at]!)
  return { few, docIds }
}

/** The nearest first; of those that are as near, the first of the older contents. */
export function nearestFirst<Chunk extends Omit<NearChunk, 'docIds'>>(chunks: Chunk[]): Chunk[] {
  return chunks.sort((a, b) => b.similarity - a.similarity || a.contentId - b.contentId || a.n - b.n)
}
