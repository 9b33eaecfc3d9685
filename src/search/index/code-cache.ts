/**
 * Codes of contents, as far as there is room: reading them anew takes three quarters of a search by meaning. What they are
 * never changes (a content is not embedded twice by a model, and its number is not used again), and who may see them is
 * not asked here: only those are looked up that the database has just named as visible.
 * Searches that run side by side take turns: what one reads or gives back is under no other's hands.
 *
 * They lie one behind the other in one piece of memory, in the order in which they were read, which is nearly the order in
 * which they are gone through: each in memory of its own, comparing them took five times as long.
 */
import type { Tx } from '../../ledger/contract.ts'

/** A million chunks of 384 numbers have 48 MB of codes. */
const BYTES_MAX = 96 * 1_024 ** 2
const BYTES_MIN = 64 * 1_024
const BATCH = 2_000

type Place = { from: number; to: number }

export type CodeRow = { content_id: number; codes: Uint8Array }

export type CodesAsked = { modelId: number; contentIds: readonly number[] }

/** Of these contents, all codes by the model; several rows of one content follow each other in the order of chunks. */
export type ReadCodes = (tx: Tx, asked: CodesAsked) => Promise<readonly CodeRow[]>

export class CodeCache {
  readonly #readCodes: ReadCodes
  readonly #bytesMax: number
  readonly #places = new Map<number, Place>()
  #codes = new Uint8Array(0)
  #used = 0
  #modelId = 0
  #turn: Promise<void> = Promise.resolve()

  constructor(readCodes: ReadCodes, bytesMax = BYTES_MAX) {
    this.#readCodes = readCodes
    this.#bytesMax = bytesMax
  }

  /** Calls back for those that have codes by this model, in the order in which they are given. */
  each(
    tx: Tx,
    asked: CodesAsked,
    take: (contentId: number, codes: Uint8Array, place: Place) => void,
  ): Promise<void> {
    const mine = this.#turn.then(() => this.#goThrough(tx, asked, take))
    // Whoever fails tells it to who asked; the next one has its turn all the same.
    this.#turn = mine.catch(() => {})
    return mine
  }

  async #goThrough(
    tx: Tx,
    { modelId, contentIds }: CodesAsked,
    take: (contentId: number, codes: Uint8Array, place: Place) => void,
  ): Promise<void> {
    if (modelId !== this.#modelId) this.#clear(modelId)
    for (let from = 0; from < contentIds.length; from += BATCH) {
      const some = contentIds.slice(from, from + BATCH)
      const missing = some.filter((id) => !this.#places.has(id))
      if (missing.length > 0) await this.#read(tx, missing)
      // On PostgreSQL others wait for this thread.
      else if (from > 0) await new Promise((resolve) => setImmediate(resolve))
      for (const contentId of some) {
        const place = this.#places.get(contentId)
        if (place) take(contentId, this.#codes, place)
      }
      // With more than there is room for, it begins anew: what was just looked at comes again last.
      if (this.#used > this.#bytesMax) this.#clear(modelId)
    }
  }

  async #read(tx: Tx, contentIds: readonly number[]): Promise<void> {
    const rows = await this.#readCodes(tx, { modelId: this.#modelId, contentIds })
    this.#makeRoom(rows.reduce((sum, { codes }) => sum + codes.length, 0))
    for (const { content_id, codes } of rows) {
      this.#codes.set(codes, this.#used)
      const from = this.#places.get(content_id)?.from ?? this.#used
      this.#used += codes.length
      this.#places.set(content_id, { from, to: this.#used })
    }
  }

  #makeRoom(bytes: number): void {
    const needed = this.#used + bytes
    if (needed <= this.#codes.length) return
    const larger = new Uint8Array(Math.max(needed, 2 * this.#codes.length, BYTES_MIN))
    larger.set(this.#codes.subarray(0, this.#used))
    this.#codes = larger
  }

  #clear(modelId: number): void {
    this.#places.clear()
    this.#codes = new Uint8Array(0)
    this.#used = 0
    this.#modelId = modelId
  }
}
