/**
 * When to claim, and how much: with every cycle while there may be work and the window has room.
 *
 * `mayHave` is false only after a claim that was open to all kinds found less than it asked for, with nothing
 * announced since. So an idle engine does not ask the database over and over, and a busy one never forgets to.
 */
import type { Clock } from '../clock.ts'
import { type ClaimRequest, type CycleResult, LANES, type Lane } from '../ledger/contract.ts'
import type { Controls } from './controls.ts'
import type { Window } from './window.ts'

/** The pace is measured over at least this long. */
const PACE_MS = 20

export type ClaimingOptions = { clock: Clock; window: Window; controls: Controls; kinds: ReadonlySet<string> }

export class Claiming {
  readonly #options: ClaimingOptions
  readonly #mayHave: Record<Lane, boolean> = { interactive: true, bulk: true }
  #wakes = 0
  #wakesAtClaim = 0
  /** The last claim passed by jobs that could not start then. */
  #metClosed = false
  #pace = { sinceMs: 0, settled: 0, perSecond: 0 }

  constructor(options: ClaimingOptions) {
    this.#options = options
  }

  /** Something was announced. A claim that is under way says nothing about it. */
  wake(): void {
    this.#wakes += 1
    this.#mayHave.interactive = true
    this.#mayHave.bulk = true
  }

  /** What to claim with a cycle that, if `bringsWork`, itself enqueues jobs. */
  request(owner: number, bringsWork: boolean): ClaimRequest | undefined {
    const { window, controls, kinds } = this.#options
    if (controls.pausedAll) return undefined
    this.#wakesAtClaim = this.#wakes
    const room = window.room()
    for (const lane of LANES) if (!this.#mayHave[lane] && !bringsWork) room[lane] = 0
    if (room.interactive + room.bulk === 0) return undefined
    this.#metClosed = false
    return {
      owner,
      room,
      kinds,
      isClosed: (queue) => {
        const closed = !controls.isOpen(queue)
        if (closed) this.#metClosed = true
        return closed
      },
    }
  }

  /** Takes in what a cycle did; true if it left something ready that should be claimed at once. */
  learn(result: CycleResult, settled: number, claim: ClaimRequest | undefined): boolean {
    this.#measurePace(settled)
    const leftReady = result.becameReady > result.claimed.length
    for (const lane of LANES) {
      if (claim && claim.room[lane] > 0 && this.#wakes === this.#wakesAtClaim) {
        this.#mayHave[lane] = result.backlog[lane] || this.#metClosed
      }
      if (leftReady) this.#mayHave[lane] = true
    }
    return leftReady
  }

  /** Quick to rise, slow to fall: a pause between two bursts should not shrink the window at once. */
  #measurePace(settled: number): void {
    const { clock, window } = this.#options
    const pace = this.#pace
    pace.settled += settled
    const nowMs = clock.monotonicMs()
    const elapsedMs = nowMs - pace.sinceMs
    if (elapsedMs < PACE_MS) return
    const perSecond = (pace.settled * 1_000) / elapsedMs
    this.#pace = {
      sinceMs: nowMs,
      settled: 0,
      perSecond: Math.max(perSecond, pace.perSecond * 0.7 + perSecond * 0.3),
    }
    window.pace(this.#pace.perSecond)
  }
}
