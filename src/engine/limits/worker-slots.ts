/**
 * How many workers this process may have running under a budget: slots that the shared row grants (budget-slots.ts).
 * Every exchange with the store says how many are running and wanted, and brings the slots; between two exchanges the
 * slots only become fewer, so that the row never counts fewer than there are.
 */
import type { Draw } from '../../ledger/contract-budgets.ts'

/** After so long without an exchange others may have them: this process was frozen, and its lease ran out. */
const VALID_MS = 10_000
/** Whoever waits for a slot asks after a fiftieth of the time that it has waited, within these bounds. */
const ASK_MS = { min: 200, max: 2_000, share: 1 / 50 }
/** Somebody who still wants a slot says so at least as often as the engine looks for work. */
const WISH_MS = 10_000

type Workers = { owner: () => number; running: () => number; max: () => number }
type Offer = Pick<Draw, 'owner' | 'running' | 'workersWanted' | 'slots' | 'workersMax'>

/** All times are monotonic. */
export class WorkerSlots {
  readonly #workers: Workers
  #slots = 0
  /** They go with the lease under which they were granted. */
  #owner = 0
  #untilMs = 0
  /** What the row may keep for this process: of an exchange that failed nobody knows. */
  #held = 0
  #peak = 0
  /** More work is ready than there are slots: since when, and when that was last said. */
  #wish: { sinceMs: number; saidMs: number } | undefined
  #askedMs = Number.NEGATIVE_INFINITY

  constructor(workers: Workers) {
    this.#workers = workers
  }

  /** Workers that may run here. */
  count(nowMs: number): number {
    const { owner, max } = this.#workers
    return nowMs < this.#untilMs && owner() === this.#owner ? Math.min(this.#slots, max()) : 0
  }

  isUsed(nowMs: number): boolean {
    return this.#wishes(nowMs) || this.#workers.running() > 0
  }

  started(): void {
    this.#peak = Math.max(this.#peak, this.#workers.running())
  }

  ask(nowMs: number): void {
    this.#wish = { sinceMs: this.#wishes(nowMs) ? this.#wish!.sinceMs : nowMs, saidMs: nowMs }
  }

  /** When to turn to the store: at once to free what others may use, every now and then to get more. */
  dueMs(nowMs: number): number | undefined {
    const slots = this.count(nowMs)
    if (this.#held > Math.max(slots, this.#workers.running())) return nowMs
    if (!this.#wishes(nowMs) || slots >= this.#workers.max()) return undefined
    const waitedMs = nowMs - this.#wish!.sinceMs
    return this.#askedMs + Math.min(ASK_MS.max, Math.max(ASK_MS.min, waitedMs * ASK_MS.share))
  }

  /** What the next exchange says; from now on only that counts. */
  offer(nowMs: number, leave: boolean): Offer {
    const { owner, running: runningHere, max } = this.#workers
    const running = runningHere()
    const workersMax = max()
    const wishes = this.#wishes(nowMs)
    const slots = leave ? 0 : this.count(nowMs)
    const used = Math.max(running, this.#peak)
    // Without a lease no jobs run: then these are calls, which wait for no slot and need none.
    const needed = owner() === 0 ? Math.min(used, slots) : used
    const workersWanted = leave ? 0 : wishes ? Math.max(needed, workersMax) : needed
    this.#slots = slots
    this.#held = Math.max(this.#held, workersWanted)
    this.#peak = running
    if (wishes) this.#askedMs = nowMs
    return { owner: owner(), running, workersWanted, slots, workersMax }
  }

  /** The store has answered an offer that was made at `sentMs`. */
  granted(offer: Offer, slots: number, sentMs: number): void {
    this.#slots = slots
    this.#owner = offer.owner
    this.#untilMs = sentMs + VALID_MS
    this.#held = Math.max(offer.slots, offer.running, slots)
    // One is free now: whoever wants more than that will say so.
    if (slots > this.#workers.running()) this.#wish = undefined
  }

  #wishes(nowMs: number): boolean {
    return this.#wish !== undefined && nowMs - this.#wish.saidMs < WISH_MS
  }
}
