/** Waits until the ledger has nothing pending or claimed any more; the engine's own house-keeping aside. */
import type { Ledger } from '../ledger/ledger.ts'

const OPEN_STAGES = new Set(['ready', 'deps', 'time', 'claimed'])

export class DrainWatch {
  readonly #ledger: Ledger
  #waiters: ((drained: boolean) => void)[] = []
  #checking = false

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  wait(): Promise<boolean> {
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  /** To be called whenever this process has run out of work, and now and then for what others do. */
  async check(): Promise<void> {
    if (this.#waiters.length === 0 || this.#checking) return
    this.#checking = true
    try {
      const tallies = await this.#ledger.tallies()
      const open = tallies.some((tally) => OPEN_STAGES.has(tally.stage) && !tally.kind.startsWith('engine.'))
      if (!open) this.end(true)
    } finally {
      this.#checking = false
    }
  }

  end(drained: boolean): void {
    for (const resolve of this.#waiters.splice(0)) resolve(drained)
  }
}
