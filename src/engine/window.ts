/**
 * The window: the bounded part of the ledger that this process has claimed. Jobs wait here, run, and leave when
 * their outcome is committed.
 *
 * Invariants:
 * - it never holds more than `max` jobs (10,000), whatever the ledger's size
 * - it is refilled when fewer than half of its target wait, up to 80 % of it
 * - its target follows the pace: what would be worked off during the next ten commits. A slow process leaves the rest
 *   to others; a fast one claims by the thousand, but no further ahead than it can use
 * - within a lane each stream gets its turn, and no more than its share of workers while others wait
 */
import { type ClaimedJob, LANES, type Lane } from '../ledger/contract.ts'
import { laneCapacity, mayStart } from './lanes.ts'

export const WINDOW_MAX = 10_000
const REFILL_BELOW = 0.5
const REFILL_TO = 0.8
/** Enough that no worker waits for a claim. More buys nothing: with 2 s a no-op drain on SQLite ran no faster. */
const HORIZON_COMMITS = 10
const HORIZON_MS_MIN = 50
const HORIZON_MS_MAX = 2_000
/** The least target per worker: enough that none waits for a claim. */
const PER_WORKER = 4
/** Payload text held at most; a window of large batches is shorter. */
const BYTES_MAX = 32 * 1024 * 1024

export type IsOpen = (job: ClaimedJob) => boolean

export class Window {
  readonly #lanes: Record<Lane, LaneQueue> = { interactive: new LaneQueue(), bulk: new LaneQueue() }
  readonly #running: Record<Lane, number> = { interactive: 0, bulk: 0 }
  readonly #waitingOf = new Map<string, Record<Lane, number>>()
  #committing = 0
  #bytes = 0
  #workers: number
  #max: number
  #perSecond = 0
  #commitMs = 0

  constructor(options: { workers: number; max?: number }) {
    this.#workers = options.workers
    this.#max = options.max ?? WINDOW_MAX
  }

  resize(options: { workers?: number; max?: number }): void {
    this.#workers = options.workers ?? this.#workers
    this.#max = options.max ?? this.#max
  }

  get workers(): number {
    return this.#workers
  }

  get running(): Readonly<Record<Lane, number>> {
    return this.#running
  }

  /** Jobs run, and others wait for their workers. */
  get isBusy(): boolean {
    const { interactive, bulk } = this.#lanes
    return this.#running.interactive + this.#running.bulk > 0 && interactive.size + bulk.size > 0
  }

  get waiting(): Record<Lane, number> {
    return { interactive: this.#lanes.interactive.size, bulk: this.#lanes.bulk.size }
  }

  /** Everything this process holds: waiting, running, and finished but not yet committed. */
  get size(): number {
    return (
      this.#lanes.interactive.size +
      this.#lanes.bulk.size +
      this.#running.interactive +
      this.#running.bulk +
      this.#committing
    )
  }

  get target(): number {
    const horizonMs = Math.min(HORIZON_MS_MAX, Math.max(HORIZON_MS_MIN, this.#commitMs * HORIZON_COMMITS))
    const ahead = Math.ceil((this.#perSecond * horizonMs) / 1_000)
    return Math.min(this.#max, Math.max(this.#workers * PER_WORKER, ahead))
  }

  /** The measured pace decides how far ahead to claim. */
  pace({ perSecond, commitMs }: { perSecond: number; commitMs: number }): void {
    this.#perSecond = perSecond
    this.#commitMs = commitMs
  }

  /** How many to claim for each lane now; 0 while enough wait. Lanes share the window in halves. */
  room(): Record<Lane, number> {
    const room: Record<Lane, number> = { interactive: 0, bulk: 0 }
    let free =
      Math.min(this.#max, this.target + this.#running.interactive + this.#running.bulk + this.#committing) -
      this.size
    if (this.#bytes > BYTES_MAX) free = 0
    for (const lane of LANES) {
      const target = Math.ceil(this.target / 2)
      const waiting = this.#lanes[lane].size
      if (waiting > target * REFILL_BELOW) continue
      room[lane] = Math.max(0, Math.min(free, Math.ceil(target * REFILL_TO) - waiting))
      free -= room[lane]
    }
    return room
  }

  waitingOf(kind: string, lane?: Lane): number {
    const waiting = this.#waitingOf.get(kind)
    if (!waiting) return 0
    return lane ? waiting[lane] : waiting.interactive + waiting.bulk
  }

  #count({ kind, lane }: ClaimedJob, n: number): void {
    const waiting = this.#waitingOf.get(kind) ?? { interactive: 0, bulk: 0 }
    waiting[lane] += n
    this.#waitingOf.set(kind, waiting)
  }

  add(jobs: readonly ClaimedJob[]): void {
    for (const job of jobs) {
      this.#count(job, 1)
      this.#lanes[job.lane].push(job)
      this.#bytes += job.payload.length
    }
  }

  /** The next job that may start, interactive first, or undefined. It counts as running from here on. */
  next(isOpen: IsOpen): ClaimedJob | undefined {
    const load = { running: this.#running, waiting: this.waiting }
    for (const lane of LANES) {
      if (load.waiting[lane] === 0 || !mayStart(lane, this.#workers, load)) continue
      const job = this.#lanes[lane].take(isOpen, laneCapacity(lane, this.#workers, load))
      if (!job) continue
      this.#running[lane] += 1
      this.#count(job, -1)
      return job
    }
    return undefined
  }

  /** The handler is done: its worker is free; the job stays in the window until it is committed. */
  finished(job: ClaimedJob): void {
    this.#running[job.lane] -= 1
    this.#committing += 1
    this.#lanes[job.lane].ended(job.streamId)
  }

  committed(job: ClaimedJob): void {
    this.#committing -= 1
    this.#bytes -= job.payload.length
  }

  /** Removes waiting jobs, to give them back. */
  remove(which: (job: ClaimedJob) => boolean): ClaimedJob[] {
    const removed = LANES.flatMap((lane) => this.#lanes[lane].remove(which))
    for (const job of removed) {
      this.#bytes -= job.payload.length
      this.#count(job, -1)
    }
    return removed
  }
}

/** The waiting jobs of one lane, by stream; each stream's by kind, each kind's by priority. */
class LaneQueue {
  readonly #streams = new Map<number, StreamQueue>()
  /** Streams that have waiting jobs, in the order of their turns. */
  #ring: StreamQueue[] = []
  #turn = 0
  size = 0

  push(job: ClaimedJob): void {
    let stream = this.#streams.get(job.streamId)
    if (!stream) {
      stream = new StreamQueue()
      this.#streams.set(job.streamId, stream)
    }
    if (stream.size === 0) this.#ring.push(stream)
    stream.push(job)
    this.size += 1
  }

  take(isOpen: IsOpen, capacity: number): ClaimedJob | undefined {
    const share = Math.ceil(capacity / Math.max(1, this.#streams.size))
    let spare: { stream: StreamQueue; at: number; job: ClaimedJob } | undefined
    for (let i = 0; i < this.#ring.length; i++) {
      const at = (this.#turn + i) % this.#ring.length
      const stream = this.#ring[at]!
      if (spare && stream.running >= share) continue
      const job = stream.peek(isOpen)
      if (!job) continue
      if (stream.running < share) return this.#start(stream, at, job)
      spare = { stream, at, job } // beyond its share only if no other stream can use the worker
    }
    return spare && this.#start(spare.stream, spare.at, spare.job)
  }

  #start(stream: StreamQueue, at: number, job: ClaimedJob): ClaimedJob {
    stream.drop(job)
    stream.running += 1
    this.size -= 1
    if (stream.size === 0) {
      this.#ring.splice(at, 1)
      this.#turn = at
    } else this.#turn = at + 1
    if (this.#turn >= this.#ring.length) this.#turn = 0
    return job
  }

  ended(streamId: number): void {
    const stream = this.#streams.get(streamId)!
    stream.running -= 1
    if (stream.running === 0 && stream.size === 0) this.#streams.delete(streamId)
  }

  remove(which: (job: ClaimedJob) => boolean): ClaimedJob[] {
    const removed: ClaimedJob[] = []
    for (const [id, stream] of this.#streams) {
      removed.push(...stream.remove(which))
      if (stream.size === 0 && stream.running === 0) this.#streams.delete(id)
    }
    this.#ring = this.#ring.filter((stream) => stream.size > 0)
    this.#turn = 0
    this.size -= removed.length
    return removed
  }
}

class StreamQueue {
  readonly #kinds = new Map<string, PriorityQueue>()
  size = 0
  running = 0

  push(job: ClaimedJob): void {
    let queue = this.#kinds.get(job.kind)
    if (!queue) {
      queue = new PriorityQueue()
      this.#kinds.set(job.kind, queue)
    }
    queue.push(job)
    this.size += 1
  }

  /** The first job of all kinds that are open: highest priority, then oldest. */
  peek(isOpen: IsOpen): ClaimedJob | undefined {
    let best: ClaimedJob | undefined
    for (const queue of this.#kinds.values()) {
      const job = queue.peek()
      if (!job || !isOpen(job)) continue
      if (!best || job.priority > best.priority || (job.priority === best.priority && job.id < best.id))
        best = job
    }
    return best
  }

  drop(job: ClaimedJob): void {
    this.#kinds.get(job.kind)!.shift()
    this.size -= 1
  }

  remove(which: (job: ClaimedJob) => boolean): ClaimedJob[] {
    const removed = [...this.#kinds.values()].flatMap((queue) => queue.remove(which))
    this.size -= removed.length
    return removed
  }
}

/** A list per priority, first in first out. Real kinds use a handful of priorities. */
class PriorityQueue {
  #levels: { priority: number; jobs: ClaimedJob[]; head: number }[] = []

  push(job: ClaimedJob): void {
    let at = 0
    while (at < this.#levels.length && this.#levels[at]!.priority > job.priority) at++
    const level = this.#levels[at]
    if (level?.priority === job.priority) level.jobs.push(job)
    else this.#levels.splice(at, 0, { priority: job.priority, jobs: [job], head: 0 })
  }

  peek(): ClaimedJob | undefined {
    const level = this.#levels[0]
    return level?.jobs[level.head]
  }

  shift(): void {
    const level = this.#levels[0]!
    level.head += 1
    if (level.head === level.jobs.length) this.#levels.shift()
    else if (level.head > 1_024 && level.head * 2 > level.jobs.length) {
      level.jobs = level.jobs.slice(level.head)
      level.head = 0
    }
  }

  remove(which: (job: ClaimedJob) => boolean): ClaimedJob[] {
    const removed: ClaimedJob[] = []
    const kept: ClaimedJob[] = []
    for (const level of this.#levels)
      for (const job of level.jobs.slice(level.head)) (which(job) ? removed : kept).push(job)
    this.#levels = []
    for (const job of kept) this.push(job)
    return removed
  }
}
