/**
 * The few chunks that are nearest by their codes, found in one pass: what lies beyond the distance at which there are
 * enough is passed over.
 */

type Candidate = { distance: number; contentId: number; n: number }

export class NearestFew {
  readonly #max: number
  #candidates: Candidate[] = []
  /** Those beyond cannot be among the nearest any more. */
  #worst = Number.POSITIVE_INFINITY

  constructor(max: number) {
    this.#max = max
  }

  offer(distance: number, contentId: number, n: number): void {
    if (distance > this.#worst) return
    this.#candidates.push({ distance, contentId, n })
    if (this.#candidates.length >= 4 * this.#max) this.#trim()
  }

  /** The nearest first; of those that are as near, the first of the older contents. */
  all(): readonly Candidate[] {
    this.#trim()
    return this.#candidates
  }

  #trim(): void {
    this.#candidates.sort((a, b) => a.distance - b.distance || a.contentId - b.contentId || a.n - b.n)
    this.#candidates.length = Math.min(this.#candidates.length, this.#max)
    if (this.#candidates.length === this.#max) this.#worst = this.#candidates.at(-1)!.distance
  }
}
