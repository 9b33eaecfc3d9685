/**
 * How announcements of objects get lost, come twice, late, or in another order on their way to a queue. Shares are
 * drawn from the seed, always as many for each notice, so that one setting does not change what another does.
 */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'

export type NoticeFaults = {
  /** Shares of all notices, from 0 to 1. */
  lose: number
  duplicate: number
  /** Sent behind the next one, or after a second of the clock. */
  reorder: number
  /** Sent up to `delayMsMax` later. */
  delay: number
  delayMsMax: number
}

const share = z.number().min(0).max(1).optional()
export const noticeFaultsInput = z.strictObject({
  lose: share,
  duplicate: share,
  reorder: share,
  delay: share,
  delayMsMax: z.number().min(0).optional(),
})

export type NoticeCounts = {
  made: number
  lost: number
  duplicated: number
  reordered: number
  delayed: number
}

const REORDER_MS = 1_000

export class Notices {
  readonly faults: NoticeFaults = { lose: 0, duplicate: 0, reorder: 0, delay: 0, delayMsMax: 5_000 }
  readonly counts: NoticeCounts = { made: 0, lost: 0, duplicated: 0, reordered: 0, delayed: 0 }
  readonly #clock: Clock
  readonly #random: Random
  readonly #late = new Set<() => void>()
  #overtaken: (() => void)[] = []

  constructor(options: { clock: Clock; random: Random }) {
    this.#clock = options.clock
    this.#random = options.random
  }

  /** `send` is called as often as the notice arrives. */
  deliver(send: () => void): void {
    const { faults, counts } = this
    const [lost, twice, behind, late, part] = Array.from({ length: 5 }, () => this.#random()) as Draws
    counts.made += 1
    if (lost < faults.lose) {
      counts.lost += 1
      return
    }
    const copies = twice < faults.duplicate ? 2 : 1
    if (copies === 2) counts.duplicated += 1
    const sendAll = (): void => {
      for (let copy = 0; copy < copies; copy++) send()
    }
    if (late < faults.delay) {
      counts.delayed += 1
      this.#later(part * faults.delayMsMax, sendAll)
    } else if (behind < faults.reorder) {
      counts.reordered += 1
      this.#overtaken.push(this.#later(REORDER_MS, sendAll))
    } else {
      sendAll()
      for (const sendOvertaken of this.#overtaken.splice(0)) sendOvertaken()
    }
  }

  /** What is on its way arrives now. */
  flush(): void {
    this.#overtaken = []
    for (const sendNow of [...this.#late]) sendNow()
  }

  /** Sends once: when it is time, or when what is returned is called. */
  #later(ms: number, send: () => void): () => void {
    const sendOnce = (): void => {
      if (!this.#late.delete(sendOnce)) return
      cancel()
      send()
    }
    const cancel = this.#clock.timer(ms, sendOnce)
    this.#late.add(sendOnce)
    return sendOnce
  }

  /** Nothing is sent any more. */
  close(): void {
    this.#late.clear()
    this.#overtaken = []
  }
}

type Draws = [number, number, number, number, number]
