/** How fast transfers are, from looks at how far they are. */

/** Looks that are closer than this tell nothing. */
const STEP_MS_MIN = 400
/** Of what was measured before, in a new figure. */
const MEMORY = 0.6

type Seen = { atMs: number; doneBytes: number; bytesPerSecond: number | null }

export class TransferRates {
  #seen = new Map<string, Seen>()

  /** `list` is all that runs: what is not in it is forgotten. */
  measure(
    list: readonly { key: string; doneBytes: number }[],
    atMs: number,
  ): ReadonlyMap<string, number | null> {
    const now = new Map<string, Seen>()
    for (const { key, doneBytes } of list) {
      const last = this.#seen.get(key)
      // One that began anew under the same name begins to be watched anew.
      const isOther = last !== undefined && doneBytes < last.doneBytes
      if (!last || isOther) now.set(key, { atMs, doneBytes, bytesPerSecond: null })
      else if (atMs - last.atMs < STEP_MS_MIN) now.set(key, last)
      else now.set(key, { atMs, doneBytes, bytesPerSecond: paceOf(last, { atMs, doneBytes }) })
    }
    this.#seen = now
    return new Map([...now].map(([key, { bytesPerSecond }]) => [key, bytesPerSecond]))
  }
}

function paceOf(last: Seen, now: { atMs: number; doneBytes: number }): number {
  const pace = ((now.doneBytes - last.doneBytes) * 1_000) / (now.atMs - last.atMs)
  if (last.bytesPerSecond === null) return pace
  return last.bytesPerSecond * MEMORY + pace * (1 - MEMORY)
}
