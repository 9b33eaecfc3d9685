/** This process's lease: acquired at start, renewed by a thread, acquired anew after it was lost. */
import type { Heartbeat } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { isDeadHere, processIdentity } from './process-identity.ts'

/** Three beats may be missed before the lease runs out. */
const BEATS_PER_LEASE = 4
const BLOCKED_MAX_MS = 10 * 60_000

export type LeaseOptions = {
  ledger: Ledger
  name: string
  leaseMs: number
  onLost: (owner: number) => void
  onTrouble: (error: unknown) => void
}

export class Lease {
  readonly #options: LeaseOptions
  #owner = 0
  #heartbeat: Heartbeat | undefined

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** 0 until the first lease. */
  get owner(): number {
    return this.#owner
  }

  async acquire(): Promise<void> {
    const { ledger, name, leaseMs, onLost, onTrouble } = this.#options
    await this.#heartbeat?.stop()
    await this.reclaim()
    const self = processIdentity()
    const owner = await ledger.register({ ...self, name }, leaseMs)
    this.#owner = owner
    this.#heartbeat = await ledger.driver.startHeartbeat({
      owner,
      leaseMs,
      everyMs: Math.floor(leaseMs / BEATS_PER_LEASE),
      blockedMaxMs: BLOCKED_MAX_MS,
      onLost: () => {
        if (this.#owner === owner) onLost(owner)
      },
      onError: onTrouble,
    })
  }

  /** Takes back what others left behind: their lease ran out, or their process on this machine is dead. */
  reclaim(): Promise<{ owners: number[]; jobs: number }> {
    const self = processIdentity()
    return this.#options.ledger.reclaim((worker) => worker.id !== this.#owner && isDeadHere(worker, self))
  }

  alive(): void {
    this.#heartbeat?.alive()
  }

  async release(): Promise<void> {
    await this.#heartbeat?.stop()
    await this.#options.ledger.retire(this.#owner)
  }
}
