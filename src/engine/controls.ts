/**
 * What holds jobs back in this process: pauses that people set, budgets that are exhausted, and kinds that have
 * as many jobs running as they may. The window asks before a start, a claim asks before it takes.
 */
import { asTidemarkError, type TidemarkError } from '../errors.ts'
import type { Pauses } from '../ledger/claim.ts'
import type { Lane } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { EventStream } from './events.ts'
import type { AnyJobKind, KindRegistry } from './kinds.ts'
import type { Limits } from './limits/limits.ts'
import type { Streams } from './streams.ts'

export type ControlsOptions = {
  ledger: Ledger
  kinds: KindRegistry
  events: EventStream
  limits: Limits
  runningOf: (kind: string, lane?: Lane) => number
  waitingOf: (kind: string, lane?: Lane) => number
  /** How long jobs of this kind take. */
  meanMs: (kind: string) => number | undefined
  /** Something of this kind cannot start here until someone mends it. */
  onBroken: (kind: string, error: TidemarkError) => void
  streams: Pick<Streams, 'name' | 'load'>
  /** A budget that held jobs back lets them start again. */
  onOpen: () => void
}

/** The lane is left out where it does not matter. */
type Queue = { kind: string; streamId: number; lane?: Lane }

/** Jobs of a kind with a budget that are claimed ahead. */
const AHEAD_MAX = 32
/** Quick ones are claimed for so long ahead, so that no worker waits for the next commit. */
const AHEAD_MS = 100
const AHEAD_PER_WORKER = { min: 2, max: 16 }

export class Controls {
  readonly #options: ControlsOptions
  readonly #watched = new Set<string>()
  #pauses: Pauses = { all: false, streams: new Set(), kinds: new Set() }
  readonly #nameless = new Set<number>()
  #learning: Promise<void> | undefined
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
    if (this.#isUnknown(queue)) return false
    const kind = this.#options.kinds.get(queue.kind)
    return this.#hasWorker(kind, queue) && this.#isLet(kind, queue)
  }

  #isLet(kind: AnyJobKind, queue: Queue): boolean {
    return !this.isPaused(queue) && (kind.budget === undefined || this.#budgetOpen(kind, queue))
  }

  /**
   * Of a kind that may run a few jobs at a time, the bulk lane leaves one worker free, since its jobs are long; the
   * other leaves one while bulk jobs wait. So eight uploads of an hour each do not hold up a small one.
   */
  #hasWorker({ kind, concurrency }: AnyJobKind, { lane }: Queue): boolean {
    const { runningOf, waitingOf } = this.#options
    if (concurrency === undefined) return true
    if (runningOf(kind) >= concurrency) return false
    if (lane === undefined || concurrency < 2) return true
    const isKept = lane === 'bulk' || waitingOf(kind, 'bulk') > 0
    return runningOf(kind, lane) < concurrency - (isKept ? 1 : 0)
  }

  /** How many more jobs like this to claim: what cannot start soon would only fill the window. */
  roomFor(queue: Queue): number {
    if (this.#isUnknown(queue)) return 0
    const kind = this.#options.kinds.get(queue.kind)
    if (!this.#isLet(kind, queue)) return 0
    const { budget, concurrency } = kind
    if (concurrency === undefined && budget === undefined) return Number.POSITIVE_INFINITY
    const { runningOf, waitingOf } = this.#options
    const { kind: name, lane } = queue
    const ahead = (concurrency ?? AHEAD_MAX) * this.#aheadPerWorker(name)
    return Math.max(0, ahead - runningOf(name, lane) - waitingOf(name, lane))
  }

  #aheadPerWorker(kind: string): number {
    const { min, max } = AHEAD_PER_WORKER
    const meanMs = this.#options.meanMs(kind)
    if (meanMs === undefined) return min
    return Math.max(min, Math.min(max, Math.ceil(AHEAD_MS / Math.max(1, meanMs))))
  }

  /** Its budget is closed, so that it may not start for a while. */
  isHeld(queue: Queue): boolean {
    if (this.#isUnknown(queue)) return false
    const kind = this.#options.kinds.get(queue.kind)
    return this.isPaused(queue) || (kind.budget !== undefined && !this.#budgetOpen(kind, queue))
  }

  /** Counts the job as a worker under its budget; the result ends that. */
  startWorker(queue: Queue): (() => void) | undefined {
    const kind = this.#options.kinds.get(queue.kind)
    return kind.budget === undefined
      ? undefined
      : this.#options.limits.startWorker(this.#budgetName(kind, queue))
  }

  /** A stream that another process has opened: its jobs wait until its name is known, for what they do goes by it. */
  #isUnknown({ streamId }: Queue): boolean {
    const { streams, onOpen } = this.#options
    if (streamId === 0 || streams.name(streamId) !== null || this.#nameless.has(streamId)) return false
    this.#learning ??= streams
      .load()
      .then(() => {
        // One that nobody has opened has no name to wait for.
        if (streams.name(streamId) === null) this.#nameless.add(streamId)
        onOpen()
      })
      .catch(() => {
        // The database is away, which others have noticed; whoever asks next tries again.
      })
      .finally(() => {
        this.#learning = undefined
      })
    return true
  }

  /** A budget that nobody defined here, or a kind that cannot name its own, holds its jobs back and nothing else. */
  #budgetOpen(kind: AnyJobKind, queue: Queue): boolean {
    const { limits, onBroken, onOpen } = this.#options
    try {
      const name = this.#budgetName(kind, queue)
      if (limits.canStart(name)) return true
      if (!this.#watched.has(name)) {
        this.#watched.add(name)
        limits.onOpen(name, onOpen)
      }
    } catch (thrown) {
      onBroken(kind.kind, asTidemarkError(thrown))
    }
    return false
  }

  #budgetName({ budget }: AnyJobKind, queue: Queue): string {
    return typeof budget === 'function' ? budget(this.#options.streams.name(queue.streamId)) : budget!
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
