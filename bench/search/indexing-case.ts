/** How fast documents come into the index, beside the extractor and the embedder alone. */
import { join } from 'node:path'
import type { Row } from '../bench.ts'
import { row } from '../session.ts'
import type { Indexed, IndexOrder } from './indexed-documents.ts'
import type { Session } from './session.ts'

export const INDEXING = 'indexing'
export const READ = `${INDEXING}: read and published`
export const EMBEDDED = `${INDEXING}: embedded`

/** By the time that all processors took, in which other work on the machine does not count. */
export const BY_PROCESSOR = ', by processor time'

const INDEX_MS_MAX = 10 * 60_000

export async function runIndexing(session: Session): Promise<Row[]> {
  const url = `sqlite:${join(session.folder, 'indexing.db')}`
  const order: IndexOrder = {
    do: 'index',
    url,
    documents: session.sizes.indexed,
    rounds: session.sizes.rounds,
  }
  session.say(`${INDEXING}: ${order.rounds} times ${order.documents} documents`)
  const { read, embedded } = await session.processes.order<Indexed>(order, { msMax: INDEX_MS_MAX })
  return [
    row(READ, 'tidemark', read.own, 'documents/s'),
    row(READ, 'limit extractor', read.limit, 'documents/s'),
    row(`${READ}${BY_PROCESSOR}`, 'tidemark', read.ownByProcessor, 'documents/s'),
    row(`${READ}${BY_PROCESSOR}`, 'limit extractor', read.limitByProcessor, 'documents/s'),
    row(EMBEDDED, 'tidemark', embedded.own, 'chunks/s'),
    row(EMBEDDED, 'limit embedder', embedded.limit, 'chunks/s'),
    row(`${EMBEDDED}${BY_PROCESSOR}`, 'tidemark', embedded.ownByProcessor, 'chunks/s'),
    row(`${EMBEDDED}${BY_PROCESSOR}`, 'limit embedder', embedded.limitByProcessor, 'chunks/s'),
  ]
}
