/**
 * How large the jobs of a kind, and of one stream's queue of it, are as far as is known from those that were claimed: as
 * large as the largest of late. Only what is large is remembered.
 */

/** Payload and checkpoint; what is no larger may wait and run wherever there is a place for it. */
export const SMALL_BYTES = 64 * 1024
/** How much the latest job counts once they become smaller. */
const WEIGHT = 0.1
const NAMES_MAX = 10_000

type Queue = { kind: string; streamId: number }

export class PayloadSizes {
  readonly #sizes = new Map<string, number>()

  note(job: Queue & { bytes: number }): void {
    if (job.bytes <= SMALL_BYTES && this.#sizes.size === 0) return
    this.#note(job.kind, job.bytes)
    this.#note(nameOf(job), job.bytes)
  }

  /** 0 for small ones. */
  ofKind(kind: string): number {
    return this.#sizes.get(kind) ?? 0
  }

  ofQueue(queue: Queue): number {
    return this.#sizes.size === 0 ? 0 : (this.#sizes.get(nameOf(queue)) ?? 0)
  }

  #note(name: string, bytes: number): void {
    const before = this.#sizes.get(name) ?? 0
    const size = Math.max(bytes, before + (bytes - before) * WEIGHT)
    if (this.#sizes.size >= NAMES_MAX) this.#sizes.clear()
    if (size > SMALL_BYTES) this.#sizes.set(name, size)
    else this.#sizes.delete(name)
  }
}

/** No name of a kind begins with a number. */
const nameOf = ({ kind, streamId }: Queue): string => `${streamId} ${kind}`
