/**
 * The window: the bounded part of the ledger that this process has claimed. Jobs wait here, run, and leave when
 * their outcome is committed.
 *
 * Invariants:
 * - it never holds more than `max` jobs (10,000), and of payloads and checkpoints, in each lane, 16 MiB that wait and
 *   16 MiB that run: whatever the ledger's size. The last job of a claim may exceed the first; one large job at a time
 *   runs beside the second, so that none waits for ever while others come and go; and small ones always run
 * - it is refilled when fewer than half of its target wait that could start, up to 80 % of it: what cannot start now
 *   keeps out nothing that can
 * - what it will not work off soon goes back: it was claimed at another pace
 * - its target follows the pace: what would be worked off during the next ten commits. A slow process leaves the rest
 *   to others; a fast one claims by the thousand, but no further ahead than it can use
 * - within a lane each stream gets its turn, and no more than its share of workers while others wait
 */
import { type ClaimedJob, LANES, type Lane } from '../ledger/contract.ts'
import { PayloadSizes, SMALL_BYTES } from './payload-sizes.ts'

export const WINDOW_MAX = 10_000
const REFILL_BELOW = 0.5
const REFILL_TO = 0.8
/** Enough that no worker waits for a claim. More buys nothing: with 2 s a no-op drain on SQLite ran no faster. */
const HORIZON_COMMITS = 10
const HORIZON_MS_MIN = 50
const HORIZON_MS_MAX = 2_000
/** The least target per worker: enough that none waits for a claim. */
const PER_WORKER = 4
/** Payloads and checkpoints that wait in a lane at most, and the same again that run; of large ones there are fewer. */
export const LANE_BYTES_MAX = 16 * 1024 * 1024
/** What waits for longer than this at the present pace goes back, so that others may have it. */
const KEPT_MS_MAX = 10_000

export type IsOpen = (job: ClaimedJob) => boolean
/** A job, or a queue of which only the jobs so far are known. */
export type Sized = { kind: string; streamId: number; lane?: Lane; bytes?: number }
export type Room = { jobs: Record<Lane, number>; bytes: Record<Lane, number> }

export class Window {
  readonly #lanes: Record<Lane, LaneQueue> = { interactive: new LaneQueue(), bulk: new LaneQueue() }
  readonly #running: Record<Lane, number> = { interactive: 0, bulk: 0 }
  readonly #waitingOf = new Map<string, Record<Lane, number>>()
  readonly #committing: Record<Lane, number> = { interactive: 0, bulk: 0 }
  readonly #waitingBytes: Record<Lane, number> = { interactive: 0, bulk: 0 }
  /** Of what runs or is about to be committed; apart from it, the large job that found no room there. */
  readonly #startedBytes: Record<Lane, number> = { interactive: 0, bulk: 0 }
  readonly #beside: Record<Lane, ClaimedJob | undefined> = { interactive: undefined, bulk: undefined }
  readonly #sizes = new PayloadSizes()
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

  get max(): number {
    return this.#max
  }

  get running(): Readonly<Record<Lane, number>> {
    return this.#running
  }

  /** Jobs run, and others could start if there were more workers. */
  isBusy(isOpen: IsOpen): boolean {
    if (this.#running.interactive + this.#running.bulk === 0) return false
    return LANES.some((lane) => this.#lanes[lane].startable(isOpen, 0) > 0)
  }

  /** All that was claimed has run. */
  get isDry(): boolean {
    return LANES.every((lane) => this.#running[lane] === 0 && this.#lanes[lane].size === 0)
  }

  get waiting(): Record<Lane, number> {
    return { interactive: this.#lanes.interactive.size, bulk: this.#lanes.bulk.size }
  }

  /** Everything this process holds: waiting, running, and finished but not yet committed. */
  get size(): number {
    return this.#countOf('interactive') + this.#countOf('bulk')
  }

  /** Of payloads and checkpoints. */
  get bytes(): number {
    const bytesOf = (lane: Lane): number =>
      this.#waitingBytes[lane] + this.#startedBytes[lane] + (this.#beside[lane]?.bytes ?? 0)
    return LANES.reduce((sum, lane) => sum + bytesOf(lane), 0)
  }

  /** Whether a job of this size, or like those of the queue so far, may run beside those that do. */
  fits(queue: Sized): boolean {
    const { lane, bytes = this.#sizes.ofQueue(queue) } = queue
    return lane === undefined || this.#hasRoom(lane, bytes) || this.#beside[lane] === undefined
  }

  #hasRoom(lane: Lane, bytes: number): boolean {
    return bytes <= SMALL_BYTES || this.#startedBytes[lane] + bytes <= LANE_BYTES_MAX
  }

  /** How large jobs of this kind have lately been; 0 if small. */
  sizeOf(kind: string): number {
    return this.#sizes.ofKind(kind)
  }

  #countOf(lane: Lane): number {
    return this.#lanes[lane].size + this.#running[lane] + this.#committing[lane]
  }

  /** Nothing more can come in, whatever waits. */
  isFull(lane: Lane): boolean {
    return this.size >= this.#max || this.#waitingBytes[lane] >= LANE_BYTES_MAX
  }

  get target(): number {
    const horizonMs = Math.min(HORIZON_MS_MAX, Math.max(HORIZON_MS_MIN, this.#commitMs * HORIZON_COMMITS))
    const ahead = Math.ceil((this.#perSecond * horizonMs) / 1_000)
    return Math.min(this.#max, Math.max(this.#workers * PER_WORKER, ahead))
  }

  /** Up to so many of a lane. */
  get refill(): number {
    return Math.ceil(Math.ceil(this.target / 2) * REFILL_TO)
  }

  /** The measured pace decides how far ahead to claim. */
  pace({ perSecond, commitMs }: { perSecond: number; commitMs: number }): void {
    this.#perSecond = perSecond
    this.#commitMs = commitMs
  }

  /** How much to claim for each lane now; nothing while enough wait that could start. Lanes share it in halves. */
  room(isOpen: IsOpen): Room {
    const room: Room = { jobs: { interactive: 0, bulk: 0 }, bytes: { interactive: 0, bulk: 0 } }
    const target = Math.ceil(this.target / 2)
    let free = this.#max - this.size
    for (const lane of LANES) {
      const bytes = Math.max(0, LANE_BYTES_MAX - this.#waitingBytes[lane])
      const waiting = this.#lanes[lane].startable(isOpen, target * REFILL_BELOW)
      if (bytes === 0 || waiting > target * REFILL_BELOW) continue
      room.bytes[lane] = bytes
      // Twice as many as would fit if they were like those that wait: the database need not look at more.
      const { size } = this.#lanes[lane]
      const fit = Math.ceil((2 * bytes * size) / Math.max(1, this.#waitingBytes[lane])) || this.#max
      const wanted = Math.min(Math.max(fit, this.#workers), this.refill - waiting)
      room.jobs[lane] = Math.max(0, Math.min(free, wanted))
      free -= room.jobs[lane]
    }
    return room
  }

  /**
   * Removes what will not start soon, to give it back: of each kind all but `keepOf` many, of each lane what would wait
   * for too long. The last of each queue go.
   */
  trim(keepOf: (kind: string, lane: Lane) => number): ClaimedJob[] {
    const soon = Math.max(Math.ceil(this.target / 2), (this.#perSecond * KEPT_MS_MAX) / 1_000)
    const removed = LANES.flatMap((lane) => {
      const { size } = this.#lanes[lane]
      return this.#lanes[lane].trim((kind) =>
        Math.min(soon / size, keepOf(kind, lane) / this.waitingOf(kind, lane)),
      )
    })
    return this.#removed(removed)
  }

  waitingOf(kind: string, lane?: Lane): number {
    const waiting = this.#waitingOf.get(kind)
    if (!waiting) return 0
    return lane ? waiting[lane] : waiting.interactive + waiting.bulk
  }

  #count({ kind, lane }: ClaimedJob, n: number): void {
    const waiting = this.#waitingOf.get(kind)
    if (waiting) waiting[lane] += n
    else this.#waitingOf.set(kind, { interactive: 0, bulk: 0, [lane]: n })
  }

  add(jobs: readonly ClaimedJob[]): void {
    for (const job of jobs) {
      this.#count(job, 1)
      this.#lanes[job.lane].push(job)
      this.#waitingBytes[job.lane] += job.bytes
      this.#sizes.note(job)
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
      this.#waitingBytes[lane] -= job.bytes
      if (this.#hasRoom(lane, job.bytes) || this.#beside[lane]) this.#startedBytes[lane] += job.bytes
      else this.#beside[lane] = job
      return job
    }
    return undefined
  }

  /** The handler is done: its worker is free; the job stays in the window until it is committed. */
  finished(job: ClaimedJob): void {
    this.#running[job.lane] -= 1
    this.#committing[job.lane] += 1
    this.#lanes[job.lane].ended(job.streamId)
  }

  committed(job: ClaimedJob): void {
    const { lane, bytes } = job
    this.#committing[lane] -= 1
    if (this.#beside[lane] === job) this.#beside[lane] = undefined
    else this.#startedBytes[lane] -= bytes
  }

  /** Removes waiting jobs, to give them back. */
  remove(which: (job: ClaimedJob) => boolean): ClaimedJob[] {
    return this.#removed(LANES.flatMap((lane) => this.#lanes[lane].remove(which)))
  }

  #removed(jobs: ClaimedJob[]): ClaimedJob[] {
    for (const job of jobs) {
      this.#waitingBytes[job.lane] -= job.bytes
      this.#count(job, -1)
    }
    return jobs
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

  /** Jobs of queues that are open; counted until there are more than `enough`. */
  startable(isOpen: IsOpen, enough: number): number {
    let n = 0
    for (const stream of this.#ring) {
      n += stream.startable(isOpen)
      if (n > enough) break
    }
    return n
  }

  remove(which: (job: ClaimedJob) => boolean): ClaimedJob[] {
    return this.#remove((queue) => queue.remove(which))
  }

  /** Of the jobs of a kind the first part stays. */
  trim(partOf: (kind: string) => number): ClaimedJob[] {
    return this.#remove((queue, kind) => queue.cut(Math.ceil(queue.size * Math.min(1, partOf(kind)))))
  }

  #remove(from: (queue: PriorityQueue, kind: string) => ClaimedJob[]): ClaimedJob[] {
    const removed: ClaimedJob[] = []
    for (const [id, stream] of this.#streams) {
      for (const job of stream.remove(from)) removed.push(job)
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

  startable(isOpen: IsOpen): number {
    let n = 0
    for (const queue of this.#kinds.values()) {
      const job = queue.peek()
      if (job && isOpen(job)) n += queue.size
    }
    return n
  }

  drop(job: ClaimedJob): void {
    this.#kinds.get(job.kind)!.shift()
    this.size -= 1
  }

  remove(from: (queue: PriorityQueue, kind: string) => ClaimedJob[]): ClaimedJob[] {
    const removed = [...this.#kinds].flatMap(([kind, queue]) => from(queue, kind))
    this.size -= removed.length
    return removed
  }
}

/** A list per priority, first in first out. Real kinds use a handful of priorities. */
class PriorityQueue {
  #levels: { priority: number; jobs: ClaimedJob[]; head: number }[] = []
  size = 0

  push(job: ClaimedJob): void {
    this.size += 1
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
    this.size -= 1
    level.head += 1
    if (level.head === level.jobs.length) this.#levels.shift()
    else if (level.head > 1_024 && level.head * 2 > level.jobs.length) {
      level.jobs = level.jobs.slice(level.head)
      level.head = 0
    }
  }

  /** All but the first `keep`. */
  cut(keep: number): ClaimedJob[] {
    if (keep >= this.size) return []
    let at = 0
    return this.remove(() => at++ >= keep)
  }

  remove(which: (job: ClaimedJob) => boolean): ClaimedJob[] {
    const removed: ClaimedJob[] = []
    const kept: ClaimedJob[] = []
    for (const level of this.#levels)
      for (const job of level.jobs.slice(level.head)) (which(job) ? removed : kept).push(job)
    this.#levels = []
    this.size = 0
    for (const job of kept) this.push(job)
    return removed
  }
}

/**
 * Lanes: workers are divided so that neither lane can starve the other.
 *
 * Each lane has reserved workers (max(2, total/8)), the rest are shared with interactive first. A lane with
 * nothing to do lends its reserved workers, all but one: a lent worker comes back only when its job ends, and
 * a ten-minute upload must not make the first interactive job wait. See docs/adr/0004-lanes.md.
 */
export const RESERVED_MIN = 2
const RESERVED_SHARE = 8

export function reservedWorkers(total: number): number {
  const wanted = Math.max(RESERVED_MIN, Math.floor(total / RESERVED_SHARE))
  // A handful of workers cannot be reserved twice over; one stays shared.
  return Math.max(0, Math.min(wanted, Math.floor((total - 1) / 2)))
}

export type LaneLoad = { running: Readonly<Record<Lane, number>>; waiting: Readonly<Record<Lane, number>> }

export const otherLane = (lane: Lane): Lane => (lane === 'interactive' ? 'bulk' : 'interactive')

/** How many jobs the lane may run at once, given what the other lane needs kept free. */
export function laneCapacity(lane: Lane, total: number, load: LaneLoad): number {
  const other = otherLane(lane)
  const reserved = reservedWorkers(total)
  const keep = load.waiting[other] > 0 ? reserved : Math.min(reserved, 1)
  return total - Math.max(keep, load.running[other])
}

export function mayStart(lane: Lane, total: number, load: LaneLoad): boolean {
  return load.running[lane] < laneCapacity(lane, total, load)
}
