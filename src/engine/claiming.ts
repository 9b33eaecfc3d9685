/**
 * When to claim, and how much: with every cycle while there may be work and the window has room.
 *
 * `mayHave` is false only after a claim that was open to all kinds found less than it asked for, with nothing
 * announced since. So an idle engine does not ask the database over and over, and a busy one never forgets to.
 */
import type { Clock } from '../base/clock.ts'
import { type ClaimRequest, type CycleResult, LANES, type Lane } from '../ledger/contract.ts'
import { type AboutCycle, JOIN_MIN } from './committer.ts'
import type { Controls } from './controls.ts'
import type { Window } from './window.ts'

/** The pace is measured over at least this long. */
const PACE_MS = 20
/** How much the latest commit counts in the mean of their durations. */
const COMMIT_WEIGHT = 0.3

export type ClaimingOptions = {
  clock: Clock
  window: Window
  controls: Controls
  kinds: ReadonlySet<string>
  /** So many cycles at a time, and so many claims. */
  cyclesMax: number
}

type Pace = { sinceMs: number; settled: number; perSecond: number; commitMs: number }

export class Claiming {
  readonly #options: ClaimingOptions
  readonly #mayHave: Record<Lane, boolean> = { interactive: true, bulk: true }
  /** Claims under way: what they asked for is no longer room for others. */
  readonly #open = new Map<ClaimRequest, { wakes: number; metClosed: boolean }>()
  #wakes = 0
  #pace: Pace | undefined

  constructor(options: ClaimingOptions) {
    this.#options = options
  }

  /** Something was announced. A claim that is under way says nothing about it. */
  wake(): void {
    this.#wakes += 1
    this.#mayHave.interactive = true
    this.#mayHave.bulk = true
  }

  /** What to claim with a cycle that itself brings jobs in these lanes. */
  request(owner: number, brings: ReadonlySet<Lane>): ClaimRequest | undefined {
    const { window, controls, kinds, cyclesMax } = this.#options
    if (controls.pausedAll) return undefined
    const { jobs: room, bytes } = window.room((job) => controls.isOpen(job))
    // All of it in one claim would leave nothing to the next cycle, which then has nothing to do while this one's jobs run.
    const share = Math.max(window.workers, 2 * JOIN_MIN, Math.ceil(window.refill / cyclesMax))
    for (const lane of LANES) {
      for (const other of this.#open.keys()) {
        room[lane] = Math.max(0, room[lane] - other.room[lane])
        bytes[lane] -= other.bytes?.[lane] ?? 0
      }
      if (cyclesMax > 1) room[lane] = Math.min(room[lane], share)
      // The other half is for a claim that begins before this one has ended.
      bytes[lane] = Math.ceil(bytes[lane] / 2)
      if (bytes[lane] <= 0 || (!this.#mayHave[lane] && !brings.has(lane))) room[lane] = 0
    }
    if (room.interactive + room.bulk === 0) return undefined
    const about = { wakes: this.#wakes, metClosed: false }
    const request: ClaimRequest = {
      owner,
      room,
      bytes,
      kinds,
      roomFor: (queue) => {
        const n = controls.roomFor(queue)
        // What was held back may have work waiting: only a claim open to all shows that there is none.
        if (n !== Number.POSITIVE_INFINITY) about.metClosed = true
        return n
      },
    }
    this.#open.set(request, about)
    return request
  }

  /** A claim whose cycle failed. */
  forget(claim: ClaimRequest): void {
    this.#open.delete(claim)
  }

  /** Takes in what a cycle did; true if it left something ready that should be claimed at once. */
  learn(result: CycleResult, { settled, ms, claim }: AboutCycle): boolean {
    this.#measurePace(settled, ms)
    const leftReady = result.becameReady > result.claimed.length
    const about = claim && this.#open.get(claim)
    if (claim) this.#open.delete(claim)
    for (const lane of LANES) {
      if (claim && about && claim.room[lane] > 0 && this.#wakes === about.wakes) {
        this.#mayHave[lane] = result.backlog[lane] || about.metClosed
      }
      if (leftReady) this.#mayHave[lane] = true
    }
    return leftReady
  }

  /** Now and then, for when nothing ends any more: the pace falls without a cycle, too. */
  beat(): void {
    if (this.#pace) this.#measurePace(0, this.#pace.commitMs)
  }

  /** Quick to rise, slow to fall: a pause between two bursts should not shrink the window at once. */
  #measurePace(settled: number, commitMs: number): void {
    const { clock, window } = this.#options
    const nowMs = clock.monotonicMs()
    // A mean that began at nothing would call the first commits short, and take a dozen claims to grow by.
    this.#pace ??= { sinceMs: nowMs - commitMs, settled: 0, perSecond: 0, commitMs }
    const pace = this.#pace
    pace.settled += settled
    pace.commitMs += (commitMs - pace.commitMs) * COMMIT_WEIGHT
    // Nothing is left to start: no more could be settled than was claimed, and what this commit took is the least pace.
    const least = window.isDry && commitMs > 0 ? (settled * 1_000) / commitMs : 0
    if (least > pace.perSecond) {
      pace.perSecond = least
      window.pace(pace)
    }
    const elapsedMs = nowMs - pace.sinceMs
    if (elapsedMs < PACE_MS) return
    const perSecond = (pace.settled * 1_000) / elapsedMs
    this.#pace = {
      sinceMs: nowMs,
      settled: 0,
      commitMs: pace.commitMs,
      perSecond: Math.max(perSecond, pace.perSecond * 0.7 + perSecond * 0.3),
    }
    window.pace(this.#pace)
  }
}
