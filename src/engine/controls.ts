/** What holds jobs back in this process: pauses that people set, and budgets that are exhausted. */

import type { Pauses } from '../ledger/claim.ts'
import type { ClaimedJob } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { EventStream } from './events.ts'
import type { KindRegistry } from './kinds.ts'

export type BudgetGate = { canStart(budget: string): boolean }

export class Controls {
  readonly #ledger: Ledger
  readonly #kinds: KindRegistry
  readonly #events: EventStream
  #pauses: Pauses = { all: false, streams: new Set(), kinds: new Set() }
  #known = new Map<string, { scope: string; target: string; reason: string }>()
  #gate: BudgetGate = { canStart: () => true }

  constructor(ledger: Ledger, kinds: KindRegistry, events: EventStream) {
    this.#ledger = ledger
    this.#kinds = kinds
    this.#events = events
  }

  useGate(gate: BudgetGate): void {
    this.#gate = gate
  }

  get pausedAll(): boolean {
    return this.#pauses.all
  }

  async load(): Promise<void> {
    this.#pauses = await this.#ledger.loadPauses()
    const now = new Map((await this.#ledger.pauses()).map((row) => [`${row.scope} ${row.target}`, row]))
    for (const [key, row] of now) if (!this.#known.has(key)) this.#tell('paused', row)
    for (const [key, row] of this.#known) if (!now.has(key)) this.#tell('resumed', row)
    this.#known = now
  }

  isPaused(job: ClaimedJob): boolean {
    return this.#pauses.all || this.#pauses.kinds.has(job.kind) || this.#pauses.streams.has(job.streamId)
  }

  isOpen(job: ClaimedJob): boolean {
    if (this.isPaused(job)) return false
    const budget = this.#kinds.get(job.kind).budget
    return budget === undefined || this.#gate.canStart(budget)
  }

  /** Kinds of which no more should be claimed now: the window would only fill with what cannot start. */
  closedKinds(runningOf: (kind: string) => number): ReadonlySet<string> {
    const closed = new Set<string>()
    for (const name of this.#kinds.names) {
      const { budget, concurrency } = this.#kinds.get(name)
      if (concurrency !== undefined && runningOf(name) >= concurrency) closed.add(name)
      if (budget !== undefined && !this.#gate.canStart(budget)) closed.add(name)
    }
    return closed
  }

  #tell(what: 'paused' | 'resumed', row: { scope: string; target: string; reason: string }): void {
    this.#events.emit({ type: 'pause', what, scope: row.scope, target: row.target, reason: row.reason })
  }
}
