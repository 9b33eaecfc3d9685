/** Whether the ledger takes what the engine writes: a full disk under it stops everything, and nothing else would say so. */
import { systemClock } from '../../base/clock.ts'
import type { Engine } from '../../engine/engine.ts'

/** Troubles are told again and again while they last; after this much silence they are over. */
const OVER_MS = 30_000

export type LedgerTrouble = { detail: string; forMs: number }

export class LedgerWatch {
  #since: { detail: string; startedMs: number; lastMs: number } | undefined

  constructor({ events }: Pick<Engine, 'events'>) {
    events.on(
      (event) => {
        if (event.type !== 'ledger') return
        const nowMs = systemClock.monotonicMs()
        const startedMs = this.trouble && this.#since ? this.#since.startedMs : nowMs
        this.#since = event.what === 'up' ? undefined : { detail: event.detail, startedMs, lastMs: nowMs }
      },
      { jobs: false },
    )
  }

  get trouble(): LedgerTrouble | undefined {
    const nowMs = systemClock.monotonicMs()
    if (!this.#since || nowMs - this.#since.lastMs > OVER_MS) return undefined
    return { detail: this.#since.detail, forMs: nowMs - this.#since.startedMs }
  }
}
