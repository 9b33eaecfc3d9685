/**
 * Jobs that this process has claimed but will not run now: they go back to the ledger, so that they neither fill the
 * window nor wait here while another process could run them.
 *
 * What the database does not take just then stays here, neither waiting nor running, until the next time.
 */
import { type ClaimedJob, LANES } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Claiming } from './claiming.ts'
import type { Controls } from './controls.ts'
import type { Window } from './window.ts'

export type GiveBackOptions = {
  ledger: Ledger
  window: Window
  controls: Controls
  claiming: Claiming
  owner: () => number
}

export class GiveBack {
  readonly #options: GiveBackOptions
  #left: { job: ClaimedJob; started: boolean }[] = []

  constructor(options: GiveBackOptions) {
    this.#options = options
  }

  /** What became of it could not be written. */
  later(job: ClaimedJob, { started }: { started: boolean }): void {
    this.#left.push({ job, started })
  }

  /** The lease is lost, and all of them with it. */
  forget(): void {
    this.#left = []
  }

  waiting(which: (job: ClaimedJob) => boolean): Promise<void> {
    return this.#jobs(this.#options.window.remove(which))
  }

  /** What is held back, and what will not start soon; true if that made room for others. */
  async idle(): Promise<boolean> {
    const { window, controls, claiming } = this.#options
    claiming.beat()
    const wasFull = LANES.some((lane) => window.isFull(lane))
    const held = window.remove(
      (job) => controls.isHeld(job) || (window.isFull(job.lane) && !controls.isOpen(job)),
    )
    const slow = window.trim((kind, lane) => controls.waitingMax(kind, lane))
    await this.#jobs([...held, ...slow])
    return slow.length > 0 || (wasFull && held.length > 0)
  }

  async #jobs(removed: readonly ClaimedJob[]): Promise<void> {
    for (const job of removed) this.#left.push({ job, started: false })
    await this.#release(false)
    await this.#release(true)
  }

  async #release(started: boolean): Promise<void> {
    const { ledger, owner } = this.#options
    const leaving = this.#left.filter((one) => one.started === started)
    if (leaving.length === 0) return
    this.#left = this.#left.filter((one) => one.started !== started)
    const jobs = leaving.map(({ job }) => job)
    try {
      await ledger.release(owner(), jobs, { started })
    } catch (thrown) {
      this.#left.push(...leaving)
      throw thrown
    }
  }
}
