/**
 * Codes of contents, as far as there is room: reading them anew takes three quarters of a search by meaning. What they are
 * never changes (a content is not embedded twice by a model, and its number is not used again), and who may see them is
 * not asked here: only those are looked up that the database has just named as visible.
 */
import type { Tx } from '../../ledger/contract.ts'
import { joinBytes } from '../index/vectors.ts'

/** A million chunks of 384 numbers have 48 MB of codes. */
const BYTES_MAX = 96 * 1_024 ** 2
/** What an entry takes besides its codes. */
const ENTRY_BYTES = 120
const BATCH = 2_000

export class CodeCache {
  readonly #codes = new Map<number, Uint32Array>()
  #modelId = 0
  #bytes = 0

  /** Of those that have codes by this model, in the order in which they are given. */
  async *of(
    tx: Tx,
    modelId: number,
    contentIds: readonly number[],
  ): AsyncGenerator<{ contentId: number; codes: Uint32Array }> {
    if (modelId !== this.#modelId) this.#clear(modelId)
    for (let from = 0; from < contentIds.length; from += BATCH) {
      const some = contentIds.slice(from, from + BATCH)
      const read = await readCodes(
        tx,
        modelId,
        some.filter((id) => !this.#codes.has(id)),
      )
      for (const contentId of some) {
        const codes = this.#codes.get(contentId) ?? read.get(contentId)
        if (codes) yield { contentId, codes }
      }
      for (const [contentId, codes] of read) this.#keep(contentId, codes)
    }
  }

  #keep(contentId: number, codes: Uint32Array): void {
    this.#codes.set(contentId, codes)
    this.#bytes += codes.byteLength + ENTRY_BYTES
    for (const [oldest, { byteLength }] of this.#codes) {
      if (this.#bytes <= BYTES_MAX) break
      this.#codes.delete(oldest)
      this.#bytes -= byteLength + ENTRY_BYTES
    }
  }

  #clear(modelId: number): void {
    this.#codes.clear()
    this.#bytes = 0
    this.#modelId = modelId
  }
}

async function readCodes(
  tx: Tx,
  modelId: number,
  contentIds: readonly number[],
): Promise<Map<number, Uint32Array>> {
  if (contentIds.length === 0) return new Map()
  const rows = await tx.all<{ content_id: number; codes: Uint8Array }>(
    `SELECT content_id, codes FROM search_codes
     WHERE model_id = ? AND content_id IN (SELECT value FROM json_each(?)) ORDER BY content_id, part`,
    [modelId, JSON.stringify(contentIds)],
  )
  const parts = new Map<number, Uint8Array[]>()
  for (const { content_id, codes } of rows) {
    const before = parts.get(content_id)
    if (before) before.push(codes)
    else parts.set(content_id, [codes])
  }
  return new Map(Array.from(parts, ([id, some]) => [id, new Uint32Array(joinBytes(some).buffer)]))
}
