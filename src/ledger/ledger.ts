/**
 * The ledger: work is rows, and progress is proven. One class for both databases; a driver runs the
 * statements. All writes go through short transactions that also keep the tallies exact.
 */
import { UsageError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'
import { type AlertRow, clearAlert, listAlerts, type NewAlert, raiseAlert } from './alerts.ts'
import { type BadFilter, retryBadItems } from './bad-items.ts'
import { Changes } from './changes.ts'
import { firstTurns, openQueues } from './claim.ts'
import {
  type BadRow,
  type ClaimRequest,
  type Cycle,
  type CycleResult,
  type Driver,
  type EnqueueResult,
  type JobRow,
  LANES,
  type Lane,
  type SegmentRow,
  type StreamRow,
  type Tally,
  type Tx,
  type Work,
  type WorkerInfo,
} from './contract.ts'
import {
  cancelJob,
  listPauses,
  NO_PAUSES,
  type PauseRow,
  type PauseScope,
  type Pauses,
  pause,
  readPauses,
  redoJob,
  resume,
  stopRequests,
  wakeAheadJobs,
  wakeDueJobs,
  wakeStream,
} from './control.ts'
import { type CommitPoint, type CycleContext, runCycle } from './cycle.ts'
import { endDependencies } from './dependencies.ts'
import { applySegments, findStream, openStream } from './frontier.ts'
import { guarded, refuseInside } from './guard.ts'
import {
  countBadItems,
  countFailed,
  type FrontierOptions,
  listHeldJobs,
  readFrontier,
} from './overview-queries.ts'
import {
  countJobs,
  countUnbalanced,
  hasOpenSegments,
  type JobDetail,
  type JobFilter,
  listBadItems,
  listJobs,
  listSegments,
  listStreams,
  readCounters,
  readCountersByStream,
  readTallies,
  type SegmentFilter,
  type StreamCounter,
  type StreamStatus,
  showJob,
  showSegment,
  type Unbalanced,
} from './queries.ts'
import { type PrunePolicy, type PruneStep, pruneRest, pruneStep } from './retention.ts'
import {
  advanceSchedule,
  dropSchedule,
  listSchedules,
  type NewSchedule,
  noteScheduledJob,
  putSchedule,
  type ScheduleRow,
} from './schedules.ts'
import { Semaphore } from './semaphore.ts'
import { type WriteContext, writeWork } from './work.ts'
import {
  extendLease,
  type HeldJob,
  liveWorkers,
  reclaimFromGone,
  registerWorker,
  releaseJobs,
  retireWorker,
  type WorkerRow,
} from './workers.ts'

/** Writers are spread over this many rows per tally; see the table's comment. */
const SLOTS = 64
/** For apps that commit themselves, perhaps only after a while: nobody else is to wait for these rows. */
const APP_SLOTS = { from: 2 * SLOTS, to: 3 * SLOTS }
const DUE_BATCH_MAX = 5_000
/** Until the next look at due jobs that another transaction has locked. */
const DUE_LOCKED_MS = 250

export type LedgerOptions = { random: Random; point?: (name: CommitPoint) => void }

export class Ledger {
  readonly driver: Driver
  readonly #slot: number
  readonly #busySlots = new Set<number>()
  readonly #appTurns = new Semaphore(APP_TRANSACTIONS_MAX)
  readonly #point: (name: CommitPoint) => void
  #pauses: Pauses = NO_PAUSES
  readonly #turns = firstTurns()
  readonly #losses = { n: 0 }
  readonly #late = { groupsLeft: 0 }
  #onToStop: (stop: { id: number; owner: number }) => void = () => {}
  #onUnbalanced: (segment: SegmentRow) => void = () => {}

  constructor(driver: Driver, options: LedgerOptions) {
    this.driver = driver
    this.#slot = Math.floor(options.random() * SLOTS)
    this.#point = options.point ?? (() => {})
  }

  get dialect(): Tx['dialect'] {
    return this.driver.dialect
  }

  now(): number {
    return this.driver.now()
  }

  close(): Promise<void> {
    return this.driver.close()
  }

  /** Told when a write outside a cycle wants a running job stopped. */
  onToStop(fn: (stop: { id: number; owner: number }) => void): void {
    this.#onToStop = fn
  }

  onUnbalanced(fn: (segment: SegmentRow) => void): void {
    this.#onUnbalanced = fn
  }

  // --- Work -----------------------------------------------------------------

  async cycle(cycle: Cycle): Promise<CycleResult> {
    refuseInside('A cycle of the ledger')
    const slot = this.#freeSlot()
    this.#busySlots.add(slot)
    try {
      const { result, changes } = await runCycle({ ...this.#cycleContext(), slot }, cycle)
      for (const segment of changes.unbalanced) this.#onUnbalanced(segment)
      return result
    } finally {
      this.#busySlots.delete(slot)
    }
  }

  /** Writes work that comes from outside any job: all of it or nothing. */
  async write(work: Work): Promise<EnqueueResult[]> {
    const result = await this.cycle({ owner: 0, work: [work] })
    const written = result.work[0]!
    if (written.status === 'error') throw written.error
    return written.jobs
  }

  /** A transaction of the app's own on the ledger's database, with work inside it. */
  async transaction<T>(fn: (tx: AppTx) => Promise<T>): Promise<T> {
    refuseInside('A transaction')
    await this.#appTurns.acquire()
    return this.#write((ctx) => runAppTransaction(ctx, fn)).finally(() => this.#appTurns.release())
  }

  /** Writes inside a transaction that the app itself began and will commit, on its own connection. */
  writeWithin(connection: unknown, work: Work | ((tx: Tx) => Promise<Work>)): Promise<EnqueueResult[]> {
    return this.driver.within(connection, async (tx) => {
      const ctx = { tx, driver: this.driver, changes: new Changes(), now: this.now() }
      const jobs = await writeWork(ctx, typeof work === 'function' ? await work(tx) : work)
      await this.#finish(ctx, (writes) => writes, await this.driver.ownSlot(tx, APP_SLOTS))
      return jobs
    })
  }

  /** Is there something to claim? A look that takes no lock. */
  hasReady(request: Pick<ClaimRequest, 'kinds' | 'roomFor'>): Promise<Record<Lane, boolean>> {
    return this.driver.read(async (tx) => {
      const ready: Record<Lane, boolean> = { interactive: false, bulk: false }
      if (this.#pauses.all) return ready
      const look = { ...this.#cycleContext(), tx }
      for (const lane of LANES) ready[lane] = (await openQueues(look, request, lane, 1)).length > 0
      return ready
    })
  }

  /** Moves jobs whose time has come to ready; returns when the next one will. */
  async wakeDue(): Promise<{ woken: number; nextDueAt: number | null }> {
    const next = (): Promise<number | null> =>
      this.driver.read(async (tx) => {
        const row = await tx.get<{ at: number | null }>(
          `SELECT min(run_at) AS at FROM jobs WHERE state = 'pending' AND wait = 'time'`,
        )
        return row?.at ?? null
      })
    let woken = 0
    let nextDueAt = await next()
    while (nextDueAt !== null && nextDueAt <= this.now()) {
      const batch = await this.#write((ctx) => wakeDueJobs(ctx, DUE_BATCH_MAX))
      // Another transaction has them: it may be waking them itself, or not be done with them for long.
      if (batch === 0) return { woken, nextDueAt: this.now() + DUE_LOCKED_MS }
      woken += batch
      nextDueAt = await next()
    }
    return { woken, nextDueAt }
  }

  /** Jobs of a stream that were put off after a try need not wait any longer: somebody asks for them now. */
  wakeStream(stream: string): Promise<number> {
    return this.#write((ctx) => wakeStream(ctx, stream))
  }

  /** The same for jobs that were put off at a time that is still to come: the clock was put back. */
  wakeAhead = (): Promise<number> => this.#write(wakeAheadJobs)

  // --- Owners ---------------------------------------------------------------

  register(info: WorkerInfo, leaseMs: number): Promise<number> {
    return this.#write((ctx) => registerWorker(ctx, info, leaseMs))
  }

  heartbeat(owner: number, leaseMs: number): Promise<boolean> {
    return this.driver.transaction((tx) => extendLease(tx, owner, this.now(), leaseMs))
  }

  /** `self` is left alone: whether its own lease still holds is for its heartbeat to find out. */
  async reclaim(
    isDead: (worker: WorkerRow) => boolean,
    self = 0,
  ): Promise<{ owners: number[]; jobs: number }> {
    const suspects = await this.driver.read(liveWorkers)
    if (!suspects.some((w) => w.id !== self && (w.lease_until < this.now() || isDead(w))))
      return { owners: [], jobs: 0 }
    return this.#write((ctx) => reclaimFromGone(ctx, isDead, self))
  }

  release(owner: number, jobs: readonly HeldJob[], about = { started: false }): Promise<number> {
    return this.#write((ctx) => releaseJobs(ctx, owner, jobs, about))
  }

  retire = (owner: number): Promise<number> => this.#write((ctx) => retireWorker(ctx, owner))

  workers(): Promise<WorkerRow[]> {
    return this.driver.read(liveWorkers)
  }

  /** Progress of running jobs, fenced like everything else. */
  async noteProgress(
    owner: number,
    progress: readonly { id: number; attempt: number; text: string }[],
  ): Promise<void> {
    if (progress.length === 0) return
    await this.driver.transaction(async (tx) => {
      for (const { id, attempt, text } of progress) {
        await tx.run(
          `UPDATE jobs SET progress = ? WHERE id = ? AND attempt = ? AND owner = ? AND state = 'claimed'`,
          [text, id, attempt, owner],
        )
      }
    })
  }

  // --- Control --------------------------------------------------------------

  cancel(
    id: number,
    note = 'canceled by hand',
  ): Promise<{ outcome: 'canceled' | 'stopping' | 'already'; toStop: Changes['toStop'] }> {
    return this.#write(async (ctx) => ({
      outcome: await cancelJob(ctx, id, note),
      toStop: ctx.changes.toStop,
    }))
  }

  redo(id: number): Promise<number> {
    return this.#write((ctx) => redoJob(ctx, id))
  }

  pause(scope: PauseScope, target = '', reason = 'paused by hand', code?: string): Promise<boolean> {
    return this.#write((ctx) => pause(ctx, { scope, target, code, reason }))
  }

  resume(scope: PauseScope, target = '', code?: string): Promise<boolean> {
    return this.#write((ctx) => resume(ctx, { scope, target, code }))
  }

  pauses = (): Promise<PauseRow[]> => this.driver.read(listPauses)

  /** Claims and `hasReady` go by what was last loaded; the engine loads when it hears of a change. */
  async loadPauses(): Promise<Pauses> {
    this.#pauses = await this.driver.read(readPauses)
    return this.#pauses
  }

  stopRequests(owner: number): Promise<number[]> {
    return this.driver.read((tx) => stopRequests(tx, owner))
  }

  retryBad(filter: BadFilter = {}, lane: Lane = 'bulk'): Promise<number> {
    return retryBadItems((step) => this.#write(step), filter, lane)
  }

  // --- Streams --------------------------------------------------------------

  /** The stream of this name, created on first use; its first segment starts at `origin`. */
  async stream(name: string, origin = 0): Promise<StreamRow> {
    const found = await this.driver.read((tx) => findStream(tx, name))
    return found ?? this.driver.transaction((tx) => openStream(tx, name, { origin, now: this.now() }))
  }

  /** The same within a transaction: it is there only if that commits. */
  streamWithin(tx: Tx, name: string): Promise<StreamRow> {
    return openStream(tx, name, { origin: 0, now: this.now() })
  }

  streamNames(): Promise<{ id: number; name: string }[]> {
    return this.driver.read((tx) => tx.all<{ id: number; name: string }>(`SELECT id, name FROM streams`))
  }

  streams(): Promise<StreamStatus[]> {
    return this.driver.read(listStreams)
  }

  segments(streamId: number, options?: SegmentFilter): Promise<SegmentRow[]> {
    return this.driver.read((tx) => listSegments(tx, streamId, options))
  }

  frontier(streamId: number, options: FrontierOptions): ReturnType<typeof readFrontier> {
    return readFrontier(this.driver, streamId, options)
  }

  segment(id: number): Promise<SegmentRow | undefined> {
    return this.driver.read((tx) => showSegment(tx, id))
  }

  badItems(options?: { stream?: string; after?: number; limit?: number }): Promise<BadRow[]> {
    return this.driver.read((tx) => listBadItems(tx, options))
  }

  badCounts(): ReturnType<typeof countBadItems> {
    return this.driver.read(countBadItems)
  }

  // --- Looking --------------------------------------------------------------

  failedCounts(): ReturnType<typeof countFailed> {
    return this.driver.read(countFailed)
  }

  heldJobs(limit?: number): Promise<JobRow[]> {
    return this.driver.read((tx) => listHeldJobs(tx, limit))
  }

  jobs(filter: JobFilter = {}): ReturnType<typeof listJobs> {
    return this.driver.read((tx) => listJobs(tx, filter))
  }

  job(id: number): Promise<JobDetail | undefined> {
    return this.driver.read((tx) => showJob(tx, id))
  }

  tallies(): Promise<Tally[]> {
    return this.driver.read(readTallies)
  }

  countedTallies(): Promise<Tally[]> {
    return this.driver.read(countJobs)
  }

  counters(options: { sinceMinute: number; streamId?: number }): Promise<Record<string, number>> {
    return this.driver.read((tx) => readCounters(tx, options))
  }

  countersByStream(sinceMinute: number): Promise<StreamCounter[]> {
    return this.driver.read((tx) => readCountersByStream(tx, sinceMinute))
  }

  /** Is anything still being listed, so that more work may come? */
  isListing(): Promise<boolean> {
    return this.driver.read(hasOpenSegments)
  }

  unbalanced(): Promise<Unbalanced[]> {
    return this.driver.read(countUnbalanced)
  }

  // --- House-keeping --------------------------------------------------------

  pruneStep(policy: PrunePolicy, afterId: number): Promise<PruneStep> {
    return this.#write((ctx) => pruneStep(ctx, policy, afterId))
  }

  pruneRest(): Promise<void> {
    return this.driver.transaction((tx) => pruneRest(tx, this.now()))
  }

  putSchedule(schedule: NewSchedule): Promise<void> {
    return this.driver.transaction((tx) => putSchedule(tx, schedule))
  }

  dropSchedule(name: string): Promise<boolean> {
    return this.driver.transaction((tx) => dropSchedule(tx, name))
  }

  schedules(): Promise<ScheduleRow[]> {
    return this.driver.read(listSchedules)
  }

  /** Fires a due entry, if nobody else has: the job and the next time in one transaction. */
  fireSchedule(entry: ScheduleRow, nextAt: number, work: Work): Promise<EnqueueResult | undefined> {
    return this.#write(async ({ tx, changes, now }) => {
      if (!(await advanceSchedule(tx, entry, nextAt, now))) return undefined
      const [job] = await appTx({ tx, driver: this.driver, changes, now }).write(work)
      await noteScheduledJob(tx, entry.name, job!.id)
      return job
    })
  }

  raiseAlert(alert: NewAlert, quietMs: number): Promise<boolean> {
    return this.driver.transaction((tx) => raiseAlert(tx, alert, this.now(), quietMs))
  }

  clearAlert(condition: string, target: string): Promise<boolean> {
    return this.driver.transaction((tx) => clearAlert(tx, condition, target, this.now()))
  }

  alerts(options?: { cleared?: boolean }): Promise<AlertRow[]> {
    return this.driver.read((tx) => listAlerts(tx, options))
  }

  /** Runs an app's schema steps that this database has not seen yet, each once. */
  async migrateApp(app: string, steps: readonly (readonly string[])[]): Promise<void> {
    const seen = await this.driver.read((tx) =>
      tx.get<{ version: number }>(`SELECT version FROM app_schemas WHERE app = ?`, [app]),
    )
    // Whoever only looks does not wait for those who write, nor needs room on the disk.
    if (seen?.version === steps.length) return
    await this.driver.transaction(async (tx) => {
      // The row is there and locked before it is read: of two processes that start together, one migrates.
      await tx.run(`INSERT INTO app_schemas(app, version) VALUES (?, 0) ON CONFLICT (app) DO NOTHING`, [app])
      const row = await tx.get<{ version: number }>(
        `SELECT version FROM app_schemas WHERE app = ?${tx.dialect === 'postgres' ? ' FOR UPDATE' : ''}`,
        [app],
      )
      const version = row!.version
      if (version > steps.length) {
        throw new UsageError(
          `The tables of ${app} have version ${version}; this Tidemark knows versions up to ${steps.length}.`,
          {
            hint: 'Update Tidemark; nothing was changed.',
          },
        )
      }
      for (const step of steps.slice(version)) for (const sql of step) await tx.run(sql)
      await tx.run(`UPDATE app_schemas SET version = ? WHERE app = ?`, [steps.length, app])
    })
  }

  /** Cycles that run side by side would otherwise wait for each other's rows. */
  #freeSlot(): number {
    for (let n = 0; n < SLOTS; n++) {
      const slot = (this.#slot + n) % SLOTS
      if (!this.#busySlots.has(slot)) return slot
    }
    return this.#slot
  }

  #cycleContext(): CycleContext {
    const context = { driver: this.driver, slot: this.#slot, pauses: this.#pauses, turns: this.#turns }
    return { ...context, losses: this.#losses, late: this.#late, point: this.#point }
  }

  /** A write that is not a cycle: consequences, segments, tallies and announcements are taken care of. */
  async #write<T>(fn: (ctx: WriteContext) => Promise<T>): Promise<T> {
    let changes = new Changes()
    const value = await this.driver.transaction(async (tx) => {
      changes = new Changes() // the transaction may be run again
      const ctx = { tx, driver: this.driver, changes, now: this.now() }
      const result = await fn(ctx)
      await this.#finish(ctx, (writes) => this.driver.withCommit(tx, writes))
      return result
    })
    for (const segment of changes.unbalanced) this.#onUnbalanced(segment)
    for (const stop of changes.toStop) this.#onToStop(stop)
    return value
  }

  /** `last`: how to wait for what is written at the end. */
  async #finish(
    ctx: WriteContext,
    last: (writes: Promise<void>) => Promise<void>,
    slot = this.#slot,
  ): Promise<void> {
    const { tx, changes, now } = ctx
    await endDependencies(ctx, changes.ended)
    await applySegments(ctx)
    await last(changes.flush(tx, slot, now))
    if (changes.control) await this.driver.announce(tx, 'control')
    else if (changes.becameReady > 0) await this.driver.announce(tx, 'work')
  }
}

/** A transaction of an app on the ledger's database, with work inside it. */
export type AppTx = Tx & { write(work: Work): Promise<EnqueueResult[]> }

/** However many an app begins at once, what the engine commits does not wait behind all of them. */
export const APP_TRANSACTIONS_MAX = 4

export function appTx(ctx: WriteContext): AppTx {
  const { tx } = ctx
  return {
    dialect: tx.dialect,
    isRemote: tx.isRemote,
    all: (sql, params) => tx.all(sql, params),
    get: (sql, params) => tx.get(sql, params),
    run: (sql, params) => tx.run(sql, params),
    write: (work) => writeWork(ctx, work),
  }
}

export function runAppTransaction<T>(ctx: WriteContext, fn: (tx: AppTx) => Promise<T>): Promise<T> {
  return guarded({ ...ctx, what: 'a transaction on the ledger' }, (guard) =>
    fn({ ...appTx({ ...ctx, tx: guard }), write: (work) => guard.busy(() => writeWork(ctx, work)) }),
  )
}
