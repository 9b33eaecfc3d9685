/**
 * What holds jobs back in this process: pauses that people set, budgets that are exhausted, and kinds that have
 * as many jobs running as they may. The window asks before a start, a claim asks before it takes.
 */
import { asTidemarkError, type TidemarkError } from '../base/errors.ts'
import type { Lane } from '../ledger/contract.ts'
import { NO_PAUSES, type PauseRow, type Pauses } from '../ledger/control.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { AnyJobKind } from './job-kind.ts'
import type { KindRegistry } from './kinds.ts'
import type { Limits } from './limits/limits.ts'
import type { EventStream } from './observe/events.ts'
import type { Streams } from './streams.ts'
import type { Sized } from './window.ts'

export type ControlsOptions = {
  ledger: Ledger
  kinds: KindRegistry
  events: EventStream
  limits: Limits
  runningOf: (kind: string, lane?: Lane) => number
  waitingOf: (kind: string, lane?: Lane) => number
  /** Whether there is room in memory for it to run; and how large jobs of a kind are, 0 if small. */
  fits: (queue: Sized) => boolean
  sizeOf: (kind: string) => number
  windowMax: () => number
  /** How long jobs of this kind take, or have already taken. */
  meanMs: (kind: string) => number | undefined
  /** Something of this kind cannot start here until someone mends it. */
  onBroken: (kind: string, error: TidemarkError) => void
  streams: Pick<Streams, 'name' | 'load'>
  /** A budget that held jobs back lets them start again. */
  onOpen: () => void
}

/** The lane is left out where it does not matter. */
type Queue = Sized

/** Jobs of a kind with a budget that are claimed ahead. */
const AHEAD_MAX = 32
/** Quick ones are claimed for so long ahead, so that no worker waits for the next commit. */
const AHEAD_MS = 100
const AHEAD_PER_WORKER = { min: 2, max: 16 }
/** Of the window, in each lane. */
const AHEAD_SHARE = 1 / 4
/** Of a kind's workers, while bulk jobs wait; as of the units of a budget (waiters.ts). */
const BULK_SHARE = 1 / 4
/** Of a kind whose jobs are large no more than this waits for those that run. */
const AHEAD_BYTES_MAX = 1024 * 1024

export class Controls {
  readonly #options: ControlsOptions
  readonly #watched = new Set<string>()
  #pauses: Pauses = NO_PAUSES
  readonly #nameless = new Set<number>()
  #learning: Promise<void> | undefined
  #known = new Map<string, PauseRow>()

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
    return this.#options.fits(queue) && this.#hasWorker(kind, queue) && this.#isLet(kind, queue)
  }

  #isLet(kind: AnyJobKind, queue: Queue): boolean {
    return !this.isPaused(queue) && (kind.budget === undefined || this.#budgetOpen(kind, queue))
  }

  /**
   * Of a kind that may run a few jobs at a time, the bulk lane leaves one worker free, since its jobs are long; the
   * other leaves a quarter of them while bulk jobs wait: with one only, a long one that runs would keep the next from
   * beginning for as long as small ones come. So eight uploads of an hour each do not hold up a small one.
   */
  #hasWorker({ kind, concurrency }: AnyJobKind, { lane }: Queue): boolean {
    const { runningOf, waitingOf } = this.#options
    if (concurrency === undefined) return true
    if (runningOf(kind) >= concurrency) return false
    if (lane === undefined || concurrency < 2) return true
    if (lane === 'bulk') return runningOf(kind, lane) < concurrency - 1
    const left = waitingOf(kind, 'bulk') > 0 ? Math.max(1, Math.floor(concurrency * BULK_SHARE)) : 0
    return runningOf(kind, lane) < concurrency - left
  }

  /** How many more jobs like this to claim: what cannot start soon would only fill the window. */
  roomFor(queue: Queue): number {
    if (this.#isUnknown(queue)) return 0
    if (!this.#options.fits(queue) || !this.#isLet(this.#options.kinds.get(queue.kind), queue)) return 0
    const { kind, lane } = queue
    return Math.max(0, this.waitingMax(kind, lane) - this.#options.waitingOf(kind, lane))
  }

  /** How many jobs of a kind may wait here for those that run. The more they turn out to be slow, the fewer. */
  waitingMax(name: string, lane?: Lane): number {
    const { kinds, runningOf } = this.#options
    const { budget, concurrency } = kinds.get(name)
    if (concurrency === undefined && budget === undefined) return Number.POSITIVE_INFINITY
    const wanted = (concurrency ?? AHEAD_MAX) * this.#aheadPerWorker(name) - runningOf(name, lane)
    const startable = concurrency === undefined ? 1 : concurrency - runningOf(name)
    const ahead = Math.max(startable, Math.min(wanted, this.#shareOfWindow()))
    const size = this.#options.sizeOf(name)
    if (size === 0) return Math.max(0, ahead)
    // Large ones would fill the lane while they wait for those that run.
    return Math.max(0, startable, Math.min(ahead, Math.floor(AHEAD_BYTES_MAX / size)))
  }

  /** However many kinds there are: all that wait for a worker of their kind leave most of the window to others. */
  #shareOfWindow(): number {
    return Math.floor(
      (this.#options.windowMax() * AHEAD_SHARE) / Math.max(1, this.#options.kinds.limitedCount),
    )
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

  #tell(what: 'paused' | 'resumed', row: PauseRow): void {
    this.#options.events.emit({
      type: 'pause',
      what,
      scope: row.scope,
      target: row.target,
      code: row.code,
      reason: row.reason,
    })
  }
}
