/**
 * The ledger's words: what a job, a segment, an outcome's work and a cycle look like to whoever uses
 * the ledger. `ledger.ts` keeps the promises; `sqlite/` and `postgres/` run the statements.
 *
 * Invariants that every ledger keeps (contract.suite.ts tests them on each database):
 * - a job's effects and its new state are one transaction; a commit under a lost lease changes nothing
 * - every write to a claimed job is fenced by (job, attempt, owner)
 * - a mark never passes an unsettled segment and never moves backwards
 * - per segment, when it settles: listed = stored + gone + skipped + bad
 */
import type { Clock } from '../base/clock.ts'
import type { ErrorKind } from '../base/errors.ts'
import type { JobState, SegmentState, Settling, Stage } from './states.ts'

export type Lane = 'interactive' | 'bulk'
export const LANES: readonly Lane[] = ['interactive', 'bulk']

/** What happens to a job whose dependency failed or was canceled. */
export type OnDepFailure = 'fail' | 'cancel' | 'run'

/** What enqueueing does when an unsettled job of the kind already has the key. */
export type OnKeyTaken = 'ignore' | 'replace'

export type Value = string | number | bigint | null | Uint8Array
export type Row = Record<string, Value>

/** SQL inside one transaction, with `?` for parameters on both databases. */
export interface Tx {
  readonly dialect: 'sqlite' | 'postgres'
  /** A statement is a round trip to a server. */
  readonly isRemote: boolean
  all<T extends object = Row>(sql: string, params?: readonly Value[]): Promise<T[]>
  get<T extends object = Row>(sql: string, params?: readonly Value[]): Promise<T | undefined>
  /** Returns the number of rows changed. */
  run(sql: string, params?: readonly Value[]): Promise<number>
}

export type Effects = (tx: Tx) => void | Promise<void>

/** `kind`: of the job whose outcome they are; what one of a kind does, others will. */
export type KindEffects = { kind: string; run: (tx: Tx) => Promise<void> }

export type NewJob = {
  kind: string
  /** JSON text. */
  payload: string
  key?: string | null
  onKeyTaken?: OnKeyTaken
  streamId?: number
  /** A segment's id, or the `ref` of one that the same work adds. */
  segment?: number | string | null
  parentId?: number | null
  lane?: Lane
  /** Higher runs first among the jobs of one stream. */
  priority?: number
  runAt?: number | null
  size?: number | null
  /** How many listed items it stands for; 1 if left out, 0 for a job of a segment that is about none (a lister). */
  items?: number
  /** A name by which other jobs of the same work can say `after`. */
  ref?: string
  /** Jobs that must settle first: ids, or refs within the same work. */
  after?: readonly (number | string)[]
  onDepFailure?: OnDepFailure
  badId?: number | null
}

/**
 * `ignored`: another job has the key, and its id is given; of a batch that was split, the batch's, for which its
 * halves stand. `revived`: that job had failed and starts over, in the segment in which it was.
 * Asked for in a segment, the items of an ignored job, and of one revived in another segment, are accounted for
 * elsewhere: the ledger counts them as skipped in the segment asked for, so that its books balance.
 */
export type EnqueueResult = { id: number; outcome: 'added' | 'ignored' | 'replaced' | 'revived' }

export type NewSegment = {
  streamId: number
  /** Positions are numbers that grow along the stream; a segment is [from, to). */
  from: number
  to: number
  /** What the stream's mark becomes once everything up to `to` is settled; `to` itself if left out. */
  mark?: string | null
  label?: string | null
  ref?: string
}

/** [from, at) stays with the segment; [at, to) becomes a new open one. */
export type SegmentSplit = { segmentId: number; at: number; ref?: string; mark?: string | null }

export type SegmentCount = {
  segment: number | string
  listed?: number
  stored?: number
  gone?: number
  skipped?: number
  /** Everything that belongs to the segment is listed: it can settle when its work has. */
  seal?: boolean
}

export type NewBadItem = {
  item: string
  reason: string
  errorKind: ErrorKind
  /** The payload of a job for this item alone, for a retry. */
  payload: string
}

/**
 * Rows by their keys, and how they are locked: by one function for all rows of a table, which is given keys without
 * repetitions, in their order, and sends what it has to before it waits. What is left out costs nothing but a deadlock now
 * and then, and so does a row that is new.
 */
export type RowLocks = {
  lock: (tx: Tx, keys: readonly string[]) => Promise<void>
  keys: readonly string[]
}

/** Everything that one outcome, or one call to enqueue, writes: all of it or nothing. */
export type Work = {
  effects?: Effects
  /** Rows that the effects change and those of others too: locked before any effects of the transaction run. */
  locks?: RowLocks
  /** Of those that are written together, the effects of enqueues from outside of jobs run in this order. */
  turn?: string
  segments?: readonly NewSegment[]
  splits?: readonly SegmentSplit[]
  counts?: readonly SegmentCount[]
  cursors?: readonly { streamId: number; value: string }[]
  jobs?: readonly NewJob[]
  /** Runs after all of `jobs` have settled. */
  followUp?: NewJob
}

export type ClaimedJob = {
  id: number
  kind: string
  key: string | null
  streamId: number
  segmentId: number | null
  parentId: number | null
  lane: Lane
  priority: number
  payload: string
  /** Of payload and checkpoint, as they are stored. */
  bytes: number
  size: number | null
  items: number
  /** Counts claims, but not those given back before the job started; with id and owner, the fence. */
  attempt: number
  /** Counts failures that cost budget. */
  failures: number
  checkpoint: string | null
  badId: number | null
  createdAt: number
}

/** `code`: a stable name for programs, where the error has one. */
export type JobError = { kind: ErrorKind; code?: string | undefined; message: string }

export type Settlement = {
  job: ClaimedJob
  event: Settling
  /** How many of its items it settled, for the counters; all of them if left out. The others go on in other jobs. */
  items?: number
  work?: Work
  /** The item of a one-item job, or items of a batch, that will not work. */
  bad?: readonly NewBadItem[]
  /** The jobs that take this one's place: its dependents wait for them. `failures` is budget already spent. */
  splitInto?: { halves: readonly NewJob[]; failures: number }
  runAt?: number | null
  error?: JobError
  checkpoint?: string | null
  /** For people; `code` says the same to programs. */
  note?: { text: string; code?: string | undefined }
}

/** `held`: written. `lost`: another owner has it now, nothing was written. `canceled`: someone asked. */
export type SettleResult =
  | { status: 'held'; jobs: EnqueueResult[] }
  | { status: 'lost' }
  | { status: 'canceled' }
  | { status: 'error'; error: unknown }

export type ClaimRequest = {
  owner: number
  room: Readonly<Record<Lane, number>>
  /** Bytes of payloads and checkpoints to take for each lane, and at most one job more; any number if left out. */
  bytes?: Readonly<Record<Lane, number>>
  /** Kinds that this process can run; others are left for processes that know them. */
  kinds: ReadonlySet<string>
  /** How many jobs of a pair to take at most: none while their budget is paused or their workers are all busy. */
  roomFor?: (queue: { kind: string; streamId: number; lane?: Lane }) => number
}

export type Cycle = {
  owner: number
  settle?: readonly Settlement[]
  work?: readonly Work[]
  claim?: ClaimRequest
  locks?: Locks
}

/**
 * What becomes of parts that would wait for a transaction of somebody else, which may take long (PostgreSQL only):
 * - patient: they wait, and all that is written with them
 * - brief: for a moment; then the cycle begins anew, as `apart`
 * - apart: they are not written, and are answered with LOCKED_CODE
 */
export type Locks = 'patient' | 'brief' | 'apart'

/** Of a part that would have to wait for somebody else's transaction. */
export const LOCKED_CODE = 'locked'
/** Of a transaction that the server ended because it took too long by its own statements: all that is in it does. */
export const LONG_CODE = 'transaction-long'

export type CycleResult = {
  settled: SettleResult[]
  work: ({ status: 'held'; jobs: EnqueueResult[] } | { status: 'error'; error: unknown })[]
  claimed: ClaimedJob[]
  /** Lanes in which ready jobs stayed behind. */
  backlog: Record<Lane, boolean>
  /** Why nothing was claimed although everything else was written. */
  claimError?: unknown
  /** Jobs that this cycle made ready, claimed here or not. */
  becameReady: number
  /** The earliest `run_at` that this cycle wrote. */
  nextDueAt: number | null
  marks: MarkMove[]
  /** Jobs that lost their place to a replacement and must be stopped. */
  toStop: { id: number; owner: number }[]
}

export type MarkMove = { streamId: number; mark: string; position: number }

export type WorkerInfo = { host: string; pid: number; pidStart: string; name: string }

export type JobRow = {
  id: number
  kind: string
  key: string | null
  stream: string | null
  segment_id: number | null
  parent_id: number | null
  lane: Lane
  priority: number
  state: JobState
  wait: 'deps' | 'time' | null
  run_at: number | null
  deps_left: number
  payload: string
  size: number | null
  items: number
  attempt: number
  failures: number
  owner: number | null
  cancel_requested: number
  checkpoint: string | null
  progress: string | null
  error: string | null
  note: string | null
  /** What the note says, for programs. */
  note_code: string | null
  created_at: number
  /** Or when it was put off after a try. */
  claimed_at: number | null
  settled_at: number | null
}

export type StreamRow = {
  id: number
  name: string
  mark: string | null
  mark_at: number
  tail_at: number
  cursor: string | null
  paused: number
  moved_at: number | null
}

export type SegmentRow = {
  id: number
  stream_id: number
  from_at: number
  to_at: number
  mark: string | null
  label: string | null
  state: SegmentState
  open_jobs: number
  listed: number
  stored: number
  gone: number
  skipped: number
  bad: number
  created_at: number
}

export type BadRow = {
  id: number
  stream_id: number
  stream: string | null
  segment_id: number | null
  kind: string
  item: string
  reason: string
  error_kind: ErrorKind
  payload: string
  first_seen: number
  last_tried: number
  tries: number
}

export type Tally = { kind: string; stage: Stage; n: number }

export type EffectOptions = {
  /** Told whose turn it is, and whose it was when this throws; nothing where that cannot be known. */
  onTurn(index: number | undefined): void
  /** Constraints that wait for COMMIT are looked at behind the last of them as well. */
  looksAhead: boolean
}

/** Asked of the database by both ledgers; the statements differ, the meaning does not. */
export interface Driver {
  readonly dialect: 'sqlite' | 'postgres'
  /** The file it is kept in, if it is one. */
  readonly file: string | null
  /** For durations; see now(). */
  readonly clock: Clock
  /** How long a transaction may wait for something else than its statements; see guard.ts. */
  readonly idleMsMax?: number
  /** How many outcomes with effects one transaction may have, as far as they would take too long; any number if left out. */
  readonly effectsMax?: number
  /** Of payloads and checkpoints, in one claim of a lane. */
  readonly claimBytesMax?: number
  /** Milliseconds since the epoch, by the clock that all processes on this ledger share. */
  now(): number
  /**
   * `fn` may run again (after a deadlock), so what it adds up must start anew each time. Refused inside a function that
   * a transaction waits for (guard.ts): it would wait for that.
   */
  transaction<T>(fn: (tx: Tx) => Promise<T>, options?: { locks?: 'brief' }): Promise<T>
  /** Whether statements from here on wait for what others have locked for a moment only, or as long as it takes. */
  waitForLocks(tx: Tx, how: 'briefly' | 'patiently'): void
  /** Which of these jobs others have locked. Those that are not among them are locked by this transaction from now on. */
  lockedJobs(tx: Tx, ids: readonly number[]): Promise<Set<number>>
  /**
   * A part of a transaction that can be undone: if `fn` throws, or leaves the transaction unfit to be committed, nothing
   * of it is left, and the error says why. Throws if the whole transaction is lost with it.
   */
  savepoint(tx: Tx, fn: () => Promise<void>): Promise<{ error: unknown } | undefined>
  /** Throws if what was written so far can no longer be committed, although nobody said so. */
  assertFit(tx: Tx): void
  /** Waits for what a transaction writes last: on PostgreSQL with COMMIT, which fails if one of these writes does. */
  withCommit(tx: Tx, writes: Promise<void>): Promise<void>
  /** Reads outside a transaction; never waits for a writer. */
  read<T>(fn: (tx: Tx) => Promise<T>): Promise<T>
  /** Reads that belong together: all its statements see the database as it was at the first of them. */
  snapshot<T>(fn: (tx: Tx) => Promise<T>): Promise<T>
  /** An app's own connection (DatabaseSync, a pg client, a Transaction of @libsql/client), inside a transaction the app has begun. */
  within<T>(connection: unknown, fn: (tx: Tx) => Promise<T>): Promise<T>
  /** One of these slots that no other transaction writes to before this one, which may take long, has ended. */
  ownSlot(tx: Tx, slots: { from: number; to: number }): Promise<number>
  /** Ids in the order of the rows; null where the row's key is already taken. */
  insertJobs(tx: Tx, rows: readonly InsertRow[]): Promise<(number | null)[]>
  /** Those that are there already are left as they are; jobs that this transaction has inserted have none yet. */
  insertEdges(tx: Tx, edges: readonly Edge[], of: EdgesOf): Promise<void>
  /** Fenced: claimed → done for all that this owner still holds and nobody cancels; returns their ids. */
  settleDone(tx: Tx, owner: number, jobs: readonly ClaimedJob[], now: number): Promise<Set<number>>
  /**
   * Effects of several parts, as if one after the other. None of them may go on after a statement of it has failed.
   */
  runEffects(tx: Tx, list: readonly KindEffects[], options: EffectOptions): Promise<void>
  /** The (stream, kind) pairs with ready jobs in a lane, found by skipping along the ready index; in order. */
  readyQueues(tx: Tx, lane: Lane, page: { fromStream: number; max: number }): Promise<ReadyQueue[]>
  /** Of each share the first jobs until they have its bytes, the last of them whole; all together until `bytesMax`. */
  take(tx: Tx, lane: Lane, shares: readonly ClaimShare[], taking: Taking): Promise<ClaimedJob[]>
  /** Tells other processes, when the transaction commits, that there is something new. */
  announce(tx: Tx, what: Announcement): Promise<void>
  /** Calls back when another process wrote something; returns how to stop listening. */
  listen(fn: (what: Announcement | 'anything') => void): Promise<() => Promise<void>>
  /** Extends the lease from a thread of its own; `onLost` fires when the owner was declared gone. */
  startHeartbeat(options: HeartbeatOptions): Promise<Heartbeat>
  close(): Promise<void>
}

/** What waits: jobs that this transaction has just inserted, each edge once, or any. */
export type EdgesOf = 'new jobs' | 'any jobs'
export type Announcement = 'work' | 'control'
export type ReadyQueue = { streamId: number; kind: string; priority: number }
export type ClaimShare = {
  streamId: number
  kind: string
  n: number
  bytesMax: number
  priorityMin: number
}
export type Taking = { owner: number; now: number; bytesMax: number }
export type HeartbeatOptions = {
  owner: number
  leaseMs: number
  everyMs: number
  /** Beyond this without a sign of life from the main thread, the lease is left to expire. */
  blockedMaxMs: number
  onLost: () => void
  onError: (error: unknown) => void
}
export type Heartbeat = { alive(): void; stop(): Promise<void> }

/** A job that waits for another. */
export type Edge = { depId: number; jobId: number; onFailure: OnDepFailure; met: 0 | 1 }

export type InsertRow = {
  kind: string
  key: string | null
  streamId: number
  segmentId: number | null
  parentId: number | null
  lane: Lane
  priority: number
  wait: 'deps' | 'time' | null
  runAt: number | null
  depsLeft: number
  payload: string
  size: number | null
  items: number
  badId: number | null
  createdAt: number
}
