/**
 * The engine: runs the jobs of a ledger in this process.
 *
 * States: created → started → stopping → stopped. While started it holds one lease (its owner id), renewed by
 * a thread. If that lease is lost (the process was stopped for too long), everything it held belongs
 * to others: running jobs are told to stop, their outcomes are refused by the fence, and it starts over with
 * a new lease.
 *
 * Flow: claim → window → dispatcher → handler → committer (group commit + next claim) → window …
 */
import { type Clock, systemClock } from '../clock.ts'
import { asTidemarkError, type TidemarkError, UsageError } from '../errors.ts'
import {
  type ClaimedJob,
  type ClaimRequest,
  type CycleResult,
  type EnqueueResult,
  LANES,
  type Lane,
  type NewJob,
  type NewSegment,
  type SegmentCount,
  type Tx,
  type Work,
} from '../ledger/contract.ts'
import type { CommitPoint } from '../ledger/cycle.ts'
import type { AppTx, Ledger } from '../ledger/ledger.ts'
import { openLedger } from '../ledger/open.ts'
import { SqlBudgetStore } from '../ledger/sql-budgets.ts'
import { type Random, systemRandom } from '../random.ts'
import { Committer } from './committer.ts'
import { Controls } from './controls.ts'
import { Dispatcher } from './dispatcher.ts'
import { EventStream } from './events.ts'
import { SIGN_IN_REASON } from './health.ts'
import { Housekeeping, type HousekeepingSettings } from './housekeeping.ts'
import {
  type AnyJobKind,
  BULK_BYTES,
  type EnqueueOptions,
  type JobKind,
  type JobRequest,
  KindRegistry,
  request,
  toNewJob,
} from './kinds.ts'
import { Lease } from './lease.ts'
import {
  type BudgetEvent,
  type BudgetSpec,
  createLimits,
  type Limits,
  type OffsetMinutes,
} from './limits/index.ts'
import { EngineStats } from './stats.ts'
import { Streams } from './streams.ts'
import { Window } from './window.ts'

export const WORKERS = 16
export const LEASE_MS = 30_000
/** How long handlers get to stop by themselves. */
const STOP_GRACE_MS = 10_000
/** The pace is measured over at least this long. */
const PACE_MS = 20

export type EngineOptions = {
  /** `sqlite:path`, `postgres://…`, or a ledger that is already open. */
  ledger: string | Ledger
  jobs?: readonly AnyJobKind[]
  workers?: number
  window?: number
  leaseMs?: number
  bulkBytes?: number
  /** Budgets that kinds name; more can be defined later with `engine.limits.budget`. */
  budgets?: Readonly<Record<string, BudgetSpec>>
  /** Local time for bandwidth timetables; UTC if left out. */
  offsetMinutes?: OffsetMinutes
  name?: string
  clock?: Clock
  random?: Random
  housekeeping?: Partial<HousekeepingSettings>
  point?: (name: CommitPoint) => void
}

export type EngineWork = {
  effects?: (tx: Tx) => void | Promise<void>
  segments?: readonly NewSegment[]
  counts?: readonly SegmentCount[]
  cursors?: readonly { streamId: number; value: string }[]
  jobs?: readonly JobRequest[]
  followUp?: JobRequest
}

export async function createEngine(options: EngineOptions): Promise<Engine> {
  const clock = options.clock ?? systemClock
  const random = options.random ?? systemRandom
  const own = typeof options.ledger === 'string'
  const ledger =
    typeof options.ledger === 'string'
      ? await openLedger(options.ledger, { clock, random, point: options.point })
      : options.ledger
  return new Engine(ledger, { ...options, clock, random }, own)
}

export class Engine {
  readonly ledger: Ledger
  readonly events: EventStream
  readonly stats: EngineStats
  readonly streams: Streams
  readonly window: Window
  readonly dispatcher: Dispatcher
  readonly controls: Controls
  readonly limits: Limits
  readonly housekeeping: Housekeeping
  readonly clock: Clock
  readonly kinds: KindRegistry
  readonly #committer: Committer
  readonly lease: Lease
  readonly #ownsLedger: boolean
  readonly #bulkBytes: number
  readonly #mayHave: Record<Lane, boolean> = { interactive: true, bulk: true }
  /** A claim that found nothing says nothing about what came while it was under way. */
  #wakes = 0
  #wakesAtClaim = 0
  #state: 'created' | 'started' | 'stopping' | 'stopped' = 'created'
  /** The last claim passed by jobs that could not start then. */
  #metClosed = false
  #unlisten: () => Promise<void> = async () => {}
  #drainWaiters: (() => void)[] = []
  #checkingDrain = false
  #pace = { sinceMs: 0, settled: 0, perSecond: 0 }

  constructor(
    ledger: Ledger,
    options: EngineOptions & { clock: Clock; random: Random },
    ownsLedger: boolean,
  ) {
    const { clock, random } = options
    this.ledger = ledger
    this.clock = clock
    this.#ownsLedger = ownsLedger
    this.#bulkBytes = options.bulkBytes ?? BULK_BYTES
    this.events = new EventStream(clock)
    this.stats = new EngineStats(clock)
    this.streams = new Streams(ledger)
    this.window = new Window({ workers: options.workers ?? WORKERS, max: options.window })
    this.lease = new Lease({
      ledger,
      name: options.name ?? 'tidemark',
      leaseMs: options.leaseMs ?? LEASE_MS,
      onLost: (owner) => this.#lostLease(owner),
      onTrouble: (error) =>
        this.events.emit({ type: 'ledger', what: 'down', detail: `heartbeat: ${String(error)}` }),
    })
    this.#committer = new Committer({
      ledger,
      clock,
      owner: () => this.lease.owner,
      claim: (has) => this.#claim(has),
      onCycle: (result, about) => this.#onCycle(result, about),
      onIdle: () => this.checkDrained(),
      onOutage: (error, sinceMs) => {
        const detail = asTidemarkError(error).message
        this.housekeeping.ledgerDown(clock.now() - sinceMs, detail)
        if (sinceMs === 0) this.events.emit({ type: 'ledger', what: 'down', detail })
      },
      onRecovered: (outageMs) => {
        this.housekeeping.ledgerDown(null)
        this.events.emit({ type: 'ledger', what: 'up', detail: `away for ${Math.round(outageMs)} ms` })
        this.wake()
      },
    })
    this.housekeeping = new Housekeeping(this, options.housekeeping ?? {})
    this.kinds = new KindRegistry([...(options.jobs ?? []), ...this.housekeeping.jobs])
    this.limits = createLimits({
      store: new SqlBudgetStore(ledger.driver),
      clock,
      random,
      onEvent: (event) => this.#onBudget(event),
      offsetMinutes: options.offsetMinutes,
    })
    for (const [budget, spec] of Object.entries(options.budgets ?? {})) this.limits.budget(budget, spec)
    this.controls = new Controls({
      ledger,
      kinds: this.kinds,
      events: this.events,
      limits: this.limits,
      runningOf: (kind) => this.dispatcher.runningOf(kind),
      stream: (id) => this.streams.name(id),
      onOpen: () => {
        this.dispatcher.pump()
        this.wake()
      },
    })
    this.dispatcher = new Dispatcher({
      clock,
      random,
      kinds: this.kinds,
      window: this.window,
      committer: this.#committer,
      events: this.events,
      stats: this.stats,
      isOpen: (job) => this.controls.isOpen(job),
      startWorker: (job) => this.controls.startWorker(job),
      limits: this.limits,
      stream: (id) => this.streams.name(id),
      toJob: (wanted, parent) => this.#toJob(wanted, parent),
      onAuth: (job, error) => this.#onAuth(job, error),
      onUnwritable: (job) => {
        this.#inBackground(ledger.release(this.owner, [job.id]))
      },
    })
    ledger.onUnbalanced((segment) => this.housekeeping.onUnbalanced(segment))
  }

  get owner(): number {
    return this.lease.owner
  }

  get state(): 'created' | 'started' | 'stopping' | 'stopped' {
    return this.#state
  }

  /** Takes a lease, takes back what dead processes of this machine held, and begins to work. */
  async start(): Promise<void> {
    if (this.#state !== 'created') throw new UsageError('An engine is started once.')
    await this.streams.load()
    await this.controls.load()
    await this.lease.acquire()
    this.#state = 'started'
    this.events.emit({ type: 'engine', what: 'started', owner: this.owner })
    this.#unlisten = await this.ledger.driver.listen((what) => {
      if (what !== 'work') this.#inBackground(this.#loadControls())
      this.wake()
    })
    await this.housekeeping.start()
    this.wake()
  }

  /** Stops taking work, tells running jobs to stop, keeps their checkpoints, gives everything back. */
  async stop(): Promise<void> {
    if (this.#state === 'stopped') return
    const wasStarted = this.#state === 'started'
    this.#state = 'stopping'
    if (wasStarted) {
      this.events.emit({ type: 'engine', what: 'stopping', owner: this.owner })
      this.dispatcher.stopAll('shutdown')
      await this.housekeeping.stop()
      await this.#unlisten()
      await this.#untilHandlersEnd()
      await this.#committer.flushed()
      await this.limits.close()
      await this.lease.release()
    }
    this.#committer.close()
    this.#state = 'stopped'
    this.events.emit({ type: 'engine', what: 'stopped', owner: this.owner })
    if (this.#ownsLedger) await this.ledger.close()
  }

  /** New settings while running (SIGHUP): more or fewer workers, a larger or smaller window, other budgets. */
  reload(settings: Pick<EngineOptions, 'workers' | 'window' | 'budgets'>): void {
    this.window.resize({ workers: settings.workers, max: settings.window })
    for (const [name, spec] of Object.entries(settings.budgets ?? {})) this.limits.budget(name, spec)
    this.dispatcher.pump()
    this.wake()
  }

  /** There may be something to claim: looks at the end of this turn. */
  wake(): void {
    if (this.#state !== 'started') return
    this.#wakes += 1
    this.#mayHave.interactive = true
    this.#mayHave.bulk = true
    this.#committer.poke()
  }

  // --- Work in --------------------------------------------------------------

  async enqueue<P>(kind: JobKind<P>, payload: P, options: EnqueueOptions = {}): Promise<EnqueueResult> {
    const [result] = await this.write({ jobs: [request(kind, payload, options)] })
    return result!
  }

  enqueueMany<P>(
    kind: JobKind<P>,
    payloads: readonly P[],
    options: EnqueueOptions = {},
  ): Promise<EnqueueResult[]> {
    return this.write({ jobs: payloads.map((payload) => request(kind, payload, options)) })
  }

  /** Jobs, segments, counts and effects from outside any job: all of it or nothing. */
  async write(work: EngineWork): Promise<EnqueueResult[]> {
    return this.#committer.write(await this.#toWork(work))
  }

  /** A transaction of the app's own on the ledger's database. */
  transaction<T>(
    fn: (tx: Tx & { enqueue: (jobs: readonly JobRequest[]) => Promise<EnqueueResult[]> }) => Promise<T>,
  ): Promise<T> {
    return this.ledger
      .transaction((tx: AppTx) =>
        fn({ ...tx, enqueue: async (jobs) => tx.write(await this.#toWork({ jobs })) }),
      )
      .finally(() => this.wake())
  }

  /** Enqueues within a transaction that the app began on its own connection (DatabaseSync or a pg client). */
  async enqueueWithin(connection: unknown, jobs: readonly JobRequest[]): Promise<EnqueueResult[]> {
    return this.ledger.writeWithin(connection, await this.#toWork({ jobs }))
  }

  // --- Control --------------------------------------------------------------

  async cancel(id: number): Promise<'canceled' | 'stopping' | 'already'> {
    const { outcome, toStop } = await this.ledger.cancel(id)
    for (const stop of toStop) this.#stopOwn(stop)
    return outcome
  }

  async retry(id: number): Promise<number> {
    const redone = await this.ledger.redo(id)
    this.wake()
    return redone
  }

  async pause(scope: 'all' | 'stream' | 'kind', target = '', reason?: string): Promise<void> {
    await this.ledger.pause(scope, target, reason)
    await this.#loadControls()
  }

  async resume(scope: 'all' | 'stream' | 'kind', target = ''): Promise<void> {
    await this.ledger.resume(scope, target)
    await this.#loadControls()
    this.wake()
  }

  /** Resolves when no job is pending or claimed any more (the engine's own house-keeping aside). */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#drainWaiters.push(resolve)
      this.checkDrained()
    })
  }

  checkDrained(): void {
    if (
      this.#drainWaiters.length === 0 ||
      this.#checkingDrain ||
      this.window.size > 0 ||
      this.#committer.busy
    )
      return
    this.#checkingDrain = true
    this.#inBackground(
      this.ledger
        .tallies()
        .then((tallies) => {
          const open = tallies.some((t) => OPEN_STAGES.has(t.stage) && !t.kind.startsWith('engine.'))
          if (!open) for (const resolve of this.#drainWaiters.splice(0)) resolve()
        })
        .finally(() => {
          this.#checkingDrain = false
        }),
    )
  }

  // --- Inside ---------------------------------------------------------------

  #claim(has: { work: boolean }): ClaimRequest | undefined {
    if (this.#state !== 'started' || this.controls.pausedAll) return undefined
    this.#wakesAtClaim = this.#wakes
    const room = this.window.room()
    for (const lane of LANES) if (!this.#mayHave[lane] && !has.work) room[lane] = 0
    if (room.interactive + room.bulk === 0) return undefined
    this.#metClosed = false
    return {
      owner: this.owner,
      room,
      kinds: this.kinds.names,
      isClosed: (queue) => {
        const closed = !this.controls.isOpen(queue)
        if (closed) this.#metClosed = true
        return closed
      },
    }
  }

  #onCycle(
    result: CycleResult,
    { settled, ms, claim }: { settled: number; ms: number; claim: ClaimRequest | undefined },
  ): void {
    this.stats.commit(settled, ms)
    this.stats.claim(result.claimed.length)
    this.#measurePace(settled)
    for (const lane of LANES) {
      // A kind that was closed may have work waiting: only a claim open to all kinds shows that there is none.
      if (claim && claim.room[lane] > 0 && this.#wakes === this.#wakesAtClaim)
        this.#mayHave[lane] = result.backlog[lane] || this.#metClosed
      if (result.becameReady > result.claimed.length) this.#mayHave[lane] = true
    }
    this.housekeeping.due(result.nextDueAt)
    for (const move of result.marks) {
      this.events.emit({
        type: 'mark',
        stream: this.streams.name(move.streamId) ?? `#${move.streamId}`,
        mark: move.mark,
        position: move.position,
      })
    }
    for (const stop of result.toStop) this.#stopOwn(stop)
    if (result.claimed.length > 0) this.window.add(result.claimed)
    this.dispatcher.pump()
    // Made ready by this very cycle and not claimed by it: look again, without waiting for anything else to end.
    if (result.becameReady > result.claimed.length) this.#committer.poke()
  }

  /** Quick to rise, slow to fall: a pause between two bursts should not shrink the window at once. */
  #measurePace(settled: number): void {
    const pace = this.#pace
    pace.settled += settled
    const nowMs = this.clock.monotonicMs()
    const elapsedMs = nowMs - pace.sinceMs
    if (elapsedMs < PACE_MS) return
    const perSecond = (pace.settled * 1_000) / elapsedMs
    this.#pace = {
      sinceMs: nowMs,
      settled: 0,
      perSecond: Math.max(perSecond, pace.perSecond * 0.7 + perSecond * 0.3),
    }
    this.window.pace(this.#pace.perSecond)
  }

  #stopOwn(stop: { id: number; owner: number }): void {
    if (stop.owner !== this.owner) return
    if (this.dispatcher.stop(stop.id, 'canceled')) return
    // It waits in the window: it has not started, so it has stopped.
    for (const job of this.window.remove((waiting) => waiting.id === stop.id)) {
      this.#committer.settle({ job, event: 'stop' }, () => {})
    }
  }

  async #loadControls(): Promise<void> {
    await this.controls.load()
    for (const id of await this.ledger.stopRequests(this.owner)) this.#stopOwn({ id, owner: this.owner })
    await this.giveBack((job) => this.controls.isPaused(job))
    this.dispatcher.pump()
  }

  /** Returns waiting jobs that cannot start for now, so that they do not fill the window. */
  async giveBack(which: (job: ClaimedJob) => boolean): Promise<void> {
    const jobs = this.window.remove(which)
    if (jobs.length > 0)
      await this.ledger.release(
        this.owner,
        jobs.map((job) => job.id),
      )
  }

  #onAuth(job: ClaimedJob, error: TidemarkError): void {
    const stream = this.streams.name(job.streamId)
    if (stream === null) return
    this.#inBackground(this.pause('stream', stream, `${SIGN_IN_REASON}: ${error.message}`))
    this.housekeeping.onAuth(stream, error)
  }

  #onBudget(event: BudgetEvent): void {
    switch (event.type) {
      case 'throttle': {
        this.stats.throttled(event.budget)
        const rate = this.limits.snapshot().budgets.find((budget) => budget.name === event.budget)?.rate ?? 0
        this.events.emit({
          type: 'budget',
          what: 'throttled',
          name: event.budget,
          rate,
          pausedUntil: event.pausedUntilMs,
        })
        return
      }
      case 'rate':
        this.events.emit({
          type: 'budget',
          what: 'rate',
          name: event.budget,
          rate: event.rate,
          pausedUntil: null,
        })
        return
      case 'error':
        this.housekeeping.onTrouble(event.error)
    }
  }

  #lostLease(owner: number): void {
    if (this.#state !== 'started') return
    const waiting = this.window.remove(() => true).length
    const running = this.dispatcher.dropAll()
    this.stats.leaseLost(waiting + running)
    this.events.emit({ type: 'lease', what: 'lost', owner, jobs: waiting + running })
    this.#inBackground(this.lease.acquire().then(() => this.wake()))
  }

  async #untilHandlersEnd(): Promise<void> {
    const untilMs = this.clock.monotonicMs() + STOP_GRACE_MS
    while (this.dispatcher.running.size > 0 && this.clock.monotonicMs() < untilMs) {
      await new Promise((resolve) => this.clock.timer(5, () => resolve(undefined), { keepAlive: true }))
    }
  }

  #toJob(wanted: JobRequest, parent: ClaimedJob): NewJob {
    const streamId =
      wanted.options.stream === undefined ? parent.streamId : this.streams.id(wanted.options.stream)
    return toNewJob(wanted, streamId, this.#bulkBytes)
  }

  async #toWork(work: EngineWork): Promise<Work> {
    const toJob = async (wanted: JobRequest): Promise<NewJob> => {
      const name = wanted.options.stream
      return toNewJob(
        wanted,
        name === undefined ? 0 : (this.streams.known(name) ?? (await this.streams.open(name)).id),
        this.#bulkBytes,
      )
    }
    const jobs: NewJob[] = []
    for (const wanted of work.jobs ?? [])
      jobs.push(
        wanted.options.stream === undefined ? toNewJob(wanted, 0, this.#bulkBytes) : await toJob(wanted),
      )
    return {
      effects: work.effects,
      segments: work.segments,
      counts: work.counts,
      cursors: work.cursors,
      jobs: jobs.length > 0 ? jobs : undefined,
      followUp: work.followUp && (await toJob(work.followUp)),
    }
  }

  /** For what nobody waits for: a failure is an event, not an unhandled rejection. */
  #inBackground(promise: Promise<unknown>): void {
    promise.catch((thrown: unknown) => this.housekeeping.onTrouble(thrown))
  }
}

const OPEN_STAGES = new Set(['ready', 'deps', 'time', 'claimed'])
