/**
 * In how many documents a word stands, for words of many documents: the index counts them anew each time it is asked,
 * which takes 3 ms for a word of 90,000 documents. What is kept decides only how a search goes about it and what a word
 * weighs, never who finds what; it is counted again when the index has grown by a tenth.
 */
import type { Tx } from '../../ledger/contract.ts'

/** Words of fewer documents are counted faster than they are kept. */
const KEPT_DOCUMENTS_MIN = 1_000
const WORDS_MAX = 5_000
const GROWTH_MAX = 1.1

export class WordCounts {
  readonly #counts = new Map<string, number>()
  #documents = 0

  /** Of the whole index; by the highest number, which is more where documents were deleted. */
  async documents(tx: Tx): Promise<number> {
    const row = await tx.get<{ n: number | null }>(`SELECT max(id) AS n FROM search_documents`)
    const documents = row?.n ?? 0
    if (documents < this.#documents || documents > this.#documents * GROWTH_MAX) {
      this.#counts.clear()
      this.#documents = documents
    }
    return documents
  }

  async of(tx: Tx, word: string): Promise<number> {
    const kept = this.#counts.get(word)
    if (kept !== undefined) return kept
    const row = await tx.get<{ n: number }>(`SELECT doc AS n FROM search_vocabulary WHERE term = ?`, [word])
    const n = row?.n ?? 0
    if (n >= KEPT_DOCUMENTS_MIN) {
      if (this.#counts.size >= WORDS_MAX) this.#counts.clear()
      this.#counts.set(word, n)
    }
    return n
  }
}
