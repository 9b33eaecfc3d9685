/**
 * How many documents have a word, for words of many: the server keeps with its statistics which share of the rows has
 * each of the thousand most frequent ones, where counting would go through them all. What is kept decides only how a
 * search goes about it and what a word weighs, never who finds what; it is read again when the index has grown by a tenth.
 */
import type { Tx } from '../../ledger/contract.ts'

/** Rarer words are counted. */
const SHARE_MIN = 0.05
const GROWTH_MAX = 1.1

export class FrequentWords {
  readonly #shares = new Map<string, number>()
  #documents = 0

  /** Of the whole index; by the highest number, which is more where documents were deleted. */
  async documents(tx: Tx): Promise<number> {
    const row = await tx.get<{ n: number | null }>(`SELECT max(id) AS n FROM search_documents`)
    const documents = row?.n ?? 0
    if (documents < this.#documents || documents > this.#documents * GROWTH_MAX) {
      this.#shares.clear()
      this.#documents = documents
    }
    return documents
  }

  /** Undefined for words of fewer, and where the server has no statistics yet. */
  async of(tx: Tx, word: string): Promise<number | undefined> {
    if (this.#documents === 0) await this.documents(tx)
    if (this.#shares.size === 0) await this.#read(tx)
    const share = this.#shares.get(word)
    return share === undefined ? undefined : Math.round(share * this.#documents)
  }

  async #read(tx: Tx): Promise<void> {
    const rows = await tx.all<{ word: string; share: number }>(
      `SELECT e.word, e.share FROM pg_stats s CROSS JOIN LATERAL unnest(
         s.most_common_elems::text::text[], s.most_common_elem_freqs::float8[]) AS e(word, share)
       WHERE s.schemaname = current_schema() AND s.tablename = 'search_words' AND s.attname = 'words'
         AND e.word IS NOT NULL AND e.share >= ?`,
      [SHARE_MIN],
    )
    for (const { word, share } of rows) this.#shares.set(word, share)
  }
}
