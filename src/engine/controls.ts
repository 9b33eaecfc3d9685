/**
 * What holds jobs back in this process: pauses that people set, budgets that are exhausted, and kinds that have
 * as many jobs running as they may. The window asks before a start, a claim asks before it takes.
 */
import type { Pauses } from '../ledger/claim.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { EventStream } from './events.ts'
import type { AnyJobKind, KindRegistry } from './kinds.ts'
import type { Limits } from './limits/limits.ts'

export type ControlsOptions = {
  ledger: Ledger
  kinds: KindRegistry
  events: EventStream
  limits: Limits
  runningOf: (kind: string) => number
  stream: (streamId: number) => string | null
  /** A budget that held jobs back lets them start again. */
  onOpen: () => void
}

type Queue = { kind: string; streamId: number }

export class Controls {
  readonly #options: ControlsOptions
  readonly #watched = new Set<string>()
  #pauses: Pauses = { all: false, streams: new Set(), kinds: new Set() }
  #known = new Map<string, { scope: string; target: string; reason: string }>()

  constructor(options: ControlsOptions) {
    this.#options = options
  }

  get pausedAll(): boolean {
    return this.#pauses.all
  }

  async load(): Promise<void> {
    const { ledger } = this.#options
    this.#pauses = await ledger.loadPauses()
    const now = new Map((await ledger.pauses()).map((row) => [`${row.scope} ${row.target}`, row]))
    for (const [key, row] of now) if (!this.#known.has(key)) this.#tell('paused', row)
    for (const [key, row] of this.#known) if (!now.has(key)) this.#tell('resumed', row)
    this.#known = now
  }

  isPaused(queue: Queue): boolean {
    return this.#pauses.all || this.#pauses.kinds.has(queue.kind) || this.#pauses.streams.has(queue.streamId)
  }

  isOpen(queue: Queue): boolean {
    const kind = this.#options.kinds.get(queue.kind)
    if (kind.concurrency !== undefined && this.#options.runningOf(queue.kind) >= kind.concurrency)
      return false
    return !this.isPaused(queue) && (kind.budget === undefined || this.#budgetOpen(kind, queue))
  }

  /** Counts the job as a worker under its budget; the result ends that. */
  startWorker(queue: Queue): (() => void) | undefined {
    const kind = this.#options.kinds.get(queue.kind)
    return kind.budget === undefined
      ? undefined
      : this.#options.limits.startWorker(this.#budgetName(kind, queue))
  }

  #budgetOpen(kind: AnyJobKind, queue: Queue): boolean {
    const { limits, onOpen } = this.#options
    const name = this.#budgetName(kind, queue)
    if (limits.canStart(name)) return true
    if (!this.#watched.has(name)) {
      this.#watched.add(name)
      limits.onOpen(name, onOpen)
    }
    return false
  }

  #budgetName({ budget }: AnyJobKind, queue: Queue): string {
    return typeof budget === 'function' ? budget(this.#options.stream(queue.streamId)) : budget!
  }

  #tell(what: 'paused' | 'resumed', row: { scope: string; target: string; reason: string }): void {
    this.#options.events.emit({
      type: 'pause',
      what,
      scope: row.scope,
      target: row.target,
      reason: row.reason,
    })
  }
}
