/** This process's lease: acquired at start, renewed by a thread, acquired anew after it was lost. */
import { type Clock, sleep } from '../base/clock.ts'
import { asTidemarkError } from '../base/errors.ts'
import { isDeadHere, processIdentity } from '../base/process-identity.ts'
import type { Heartbeat } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'

/** Three beats may be missed before the lease runs out. */
const BEATS_PER_LEASE = 4
const ACQUIRE_AGAIN_MS = 500
const BLOCKED_MAX_MS = 10 * 60_000

export type LeaseOptions = {
  ledger: Ledger
  clock: Clock
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
    // Whatever is left of the lease before: nobody else would know that this process gave it up.
    if (this.#owner !== 0) await ledger.retire(this.#owner)
    await this.reclaim()
    const self = processIdentity()
    const owner = await ledger.register({ ...self, name }, leaseMs)
    this.#owner = owner
    let lost = false
    this.#heartbeat = await ledger.driver.startHeartbeat({
      owner,
      leaseMs,
      everyMs: Math.floor(leaseMs / BEATS_PER_LEASE),
      blockedMaxMs: BLOCKED_MAX_MS,
      onLost: () => {
        // The thread says so with every beat until it is stopped.
        if (lost || this.#owner !== owner) return
        lost = true
        onLost(owner)
      },
      onError: onTrouble,
    })
  }

  /** After a loss. The database may be away just now, and without a lease this process would never work again. */
  async acquireAgain(wanted: () => boolean): Promise<void> {
    while (wanted()) {
      try {
        await this.acquire()
        if (!wanted()) await this.release()
        return
      } catch (thrown) {
        this.#options.onTrouble(thrown)
        await sleep(this.#options.clock, ACQUIRE_AGAIN_MS)
      }
    }
  }

  /** Takes back what others left behind: their lease ran out, or their process on this machine is dead. */
  reclaim(): Promise<{ owners: number[]; jobs: number }> {
    const self = processIdentity()
    return this.#options.ledger.reclaim((worker) => isDeadHere(worker, self), this.#owner)
  }

  alive(): void {
    this.#heartbeat?.alive()
  }

  async release(): Promise<void> {
    await this.#heartbeat?.stop()
    await this.#options.ledger.retire(this.#owner)
  }
}

/** The heartbeat has a connection of its own, and says of an error no more than its text. */
export function noSignOfLife(error: unknown): string {
  return `No sign of life could be written to the ledger: ${asTidemarkError(error).message}`
}
