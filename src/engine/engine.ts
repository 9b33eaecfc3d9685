/**
 * The engine: runs the jobs of a ledger in this process.
 *
 * States: created → started → stopping → stopped. While started it holds one lease (its owner id), renewed by a thread.
 * If that lease is lost (the process was stopped for too long), everything it held belongs to others: running jobs are
 * told to stop, their outcomes are refused by the fence, and it starts over with a new lease.
 *
 * Flow: claim → window → dispatcher → handler → committer (group commit + next claim) → window …
 */
import { type Clock, systemClock } from '../base/clock.ts'
import { asTidemarkError, type TidemarkError, UsageError } from '../base/errors.ts'
import { type Random, systemRandom } from '../base/random.ts'
import type { ClaimedJob, CycleResult, EnqueueResult, Tx } from '../ledger/contract.ts'
import { type PauseScope, SIGN_IN } from '../ledger/control.ts'
import type { CommitPoint } from '../ledger/cycle.ts'
import { refuseInside } from '../ledger/guard.ts'
import { checkWhole } from '../ledger/input-check.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openLedger } from '../ledger/open.ts'
import { SqlBudgetStore } from '../ledger/sql-budgets.ts'
import { Claiming } from './claiming.ts'
import { type AboutCycle, Committer } from './committer.ts'
import { Controls } from './controls.ts'
import { Dispatcher } from './dispatcher.ts'
import { checkFields, type Fields } from './fields.ts'
import { GiveBack } from './give-back.ts'
import { Housekeeping, type HousekeepingSettings } from './housekeeping.ts'
import { type EngineWork, Intake } from './intake.ts'
import type { AnyJobKind, EnqueueOptions, JobKind, JobRequest } from './job-kind.ts'
import { BULK_BYTES, KindRegistry, request } from './kinds.ts'
import { Lease, noSignOfLife } from './lease.ts'
import type { BudgetEvent } from './limits/budget.ts'
import { createLimits, type Limits } from './limits/limits.ts'
import type { BudgetSpec } from './limits/spec.ts'
import type { OffsetMinutes } from './limits/timetable.ts'
import { EventStream } from './observe/events.ts'
import { engineMetrics, type LiveSnapshot, liveSnapshot } from './observe/live.ts'
import type { Metrics } from './observe/metrics.ts'
import { ProgressBoard } from './observe/progress.ts'
import { EngineStats } from './observe/stats.ts'
import { Streams } from './streams.ts'
import { Window } from './window.ts'

export const WORKERS = 16
export const LEASE_MS = 30_000
/** How long handlers get to stop by themselves. */
const STOP_GRACE_MS = 10_000
/** What stop() takes at most, whatever handlers and the database do; then a ledger of its own is closed. */
export const STOP_MS_MAX = 20_000

export type EngineOptions = {
  /** `sqlite:path`, `postgres://…`, `libsql://…`, or a ledger that is already open. */
  ledger: string | Ledger
  /** Of a libSQL server that asks for one. */
  ledgerToken?: string
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

export async function createEngine(options: EngineOptions): Promise<Engine> {
  checkEngineOptions(options)
  const clock = options.clock ?? systemClock
  const random = options.random ?? systemRandom
  const own = typeof options.ledger === 'string'
  const ledger =
    typeof options.ledger === 'string'
      ? await openLedger(options.ledger, { clock, random, point: options.point, token: options.ledgerToken })
      : options.ledger
  return new Engine(ledger, { ...options, clock, random }, own)
}

export class Engine {
  readonly ledger: Ledger
  readonly events: EventStream
  readonly stats: EngineStats
  readonly streams: Streams
  readonly progress: ProgressBoard
  readonly window: Window
  readonly dispatcher: Dispatcher
  readonly controls: Controls
  readonly limits: Limits
  readonly housekeeping: Housekeeping
  readonly clock: Clock
  readonly kinds: KindRegistry
  readonly #committer: Committer
  readonly lease: Lease
  readonly giveBack: GiveBack
  readonly #ownsLedger: boolean
  readonly #intake: Intake
  readonly #drain: DrainWatch
  readonly #claiming: Claiming
  readonly #isOpen = (job: ClaimedJob): boolean => this.controls.isOpen(job)
  #state: 'created' | 'started' | 'stopping' | 'stopped' = 'created'
  #unlisten: () => Promise<void> = async () => {}
  #metrics: Metrics | undefined
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined

  constructor(
    ledger: Ledger,
    options: EngineOptions & { clock: Clock; random: Random },
    ownsLedger: boolean,
  ) {
    const { clock, random } = options
    this.ledger = ledger
    this.clock = clock
    this.#ownsLedger = ownsLedger
    this.events = new EventStream(clock)
    this.stats = new EngineStats(clock)
    this.streams = new Streams(ledger)
    this.progress = new ProgressBoard(clock)
    this.#intake = new Intake(this.streams, options.bulkBytes ?? BULK_BYTES)
    this.#drain = new DrainWatch(ledger)
    this.window = new Window({ workers: options.workers ?? WORKERS, max: options.window })
    this.lease = new Lease({
      ledger,
      clock,
      name: options.name ?? 'tidemark',
      leaseMs: options.leaseMs ?? LEASE_MS,
      onLost: (owner) => this.#lostLease(owner),
      onTrouble: (error) => this.housekeeping.ledgerDown(noSignOfLife(error)),
    })
    this.#committer = new Committer({
      ledger,
      clock,
      owner: () => this.lease.owner,
      claim: (brings) => (this.#state === 'started' ? this.#claiming.request(this.owner, brings) : undefined),
      onCycle: (result, about) => this.#onCycle(result, about),
      onUnclaimed: (claim, error) => {
        this.#claiming.forget(claim)
        this.housekeeping.onTrouble(error)
      },
      onIdle: () => this.checkDrained(),
      mayLinger: () => this.window.isBusy(this.#isOpen),
      onOutage: (error) =>
        this.housekeeping.ledgerDown(asTidemarkError(error).message, { isCommitter: true }),
      onRecovered: () => {
        this.housekeeping.ledgerUp()
        this.wake()
      },
    })
    this.housekeeping = new Housekeeping(this, options.housekeeping ?? {})
    this.kinds = new KindRegistry([...(options.jobs ?? []), ...this.housekeeping.jobs])
    this.limits = createLimits({
      store: new SqlBudgetStore(ledger.driver),
      clock,
      random,
      owner: () => this.lease.owner,
      onEvent: (event) => this.#onBudget(event),
      offsetMinutes: options.offsetMinutes,
    })
    for (const [budget, spec] of Object.entries(options.budgets ?? {})) this.limits.budget(budget, spec)
    this.controls = new Controls({
      ledger,
      kinds: this.kinds,
      events: this.events,
      limits: this.limits,
      runningOf: (kind, lane) => this.dispatcher.runningOf(kind, lane),
      waitingOf: (kind, lane) => this.window.waitingOf(kind, lane),
      fits: (queue) => this.window.fits(queue),
      sizeOf: (kind) => this.window.sizeOf(kind),
      windowMax: () => this.window.max,
      meanMs: (kind) => this.dispatcher.meanMs(kind),
      onBroken: (kind, error) => this.housekeeping.onBroken(kind, error),
      streams: this.streams,
      onOpen: () => {
        this.dispatcher.pump()
        this.wake()
      },
    })
    this.#claiming = new Claiming({
      clock,
      window: this.window,
      controls: this.controls,
      kinds: this.kinds.names,
      cyclesMax: this.#committer.cyclesMax,
    })
    this.giveBack = new GiveBack({
      ledger,
      window: this.window,
      controls: this.controls,
      claiming: this.#claiming,
      owner: () => this.owner,
    })
    this.dispatcher = new Dispatcher({
      clock,
      now: () => ledger.now(),
      random,
      kinds: this.kinds,
      window: this.window,
      committer: this.#committer,
      events: this.events,
      stats: this.stats,
      isOpen: this.#isOpen,
      startWorker: (job) => this.controls.startWorker(job),
      limits: this.limits,
      stream: (id) => this.streams.name(id),
      toJob: (wanted, parent) => this.#intake.childOf(parent, wanted),
      progress: this.progress,
      onAuth: (job, error) => this.#onAuth(job, error),
      onRoom: () => this.wake(),
      onUnwritable: (job) => this.giveBack.later(job, { started: true }),
    })
    ledger.onToStop((stop) => this.#stopOwn(stop))
    ledger.onUnbalanced((segment) => this.housekeeping.onUnbalanced(segment))
  }

  get owner(): number {
    return this.lease.owner
  }

  get state(): 'created' | 'started' | 'stopping' | 'stopped' {
    return this.#state
  }

  /** Takes a lease, takes back what dead processes of this machine held, and begins to work. */
  start(): Promise<void> {
    if (this.#starting || this.#stopping) return Promise.reject(new UsageError('An engine is started once.'))
    this.#starting = this.#start()
    return this.#starting
  }

  async #start(): Promise<void> {
    await this.streams.load()
    await this.controls.load()
    await this.lease.acquire()
    if (this.#state === 'stopped') return this.lease.release() // nobody waited any longer
    this.#state = 'started'
    this.events.emit({ type: 'engine', what: 'started', owner: this.owner })
    this.#unlisten = await this.ledger.driver.listen((what) => {
      // What was resumed can be claimed only after the pauses are known.
      if (what === 'work') this.wake()
      else this.#inBackground(this.#loadControls().then(() => this.wake()))
    })
    await this.housekeeping.start()
    this.wake()
  }

  /** Stops taking work, tells running jobs to stop, keeps their checkpoints, gives everything back. */
  async stop(): Promise<void> {
    refuseInside('stop()')
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    // A database that is away or frozen may stay so: then we leave, and our lease runs out by itself.
    let cancel = (): void => {}
    const deadline = new Promise<void>((resolve) => {
      cancel = this.clock.timer(STOP_MS_MAX, resolve, { keepAlive: true })
    })
    await this.#stopBefore(deadline)
    cancel()
    this.#state = 'stopped'
    this.#drain.end(false)
    this.events.emit({ type: 'engine', what: 'stopped', owner: this.owner })
    if (this.#ownsLedger) await this.ledger.close()
  }

  async #stopBefore(deadline: Promise<void>): Promise<void> {
    // Whoever started it hears of a failed start; here it only must be over.
    await Promise.race([this.#starting?.catch(() => {}), deadline])
    const wasStarted = this.#state === 'started'
    this.#state = 'stopping'
    if (wasStarted) {
      this.events.emit({ type: 'engine', what: 'stopping', owner: this.owner })
      this.dispatcher.stopAll('shutdown')
      const quiet = this.#told(() => this.housekeeping.stop().then(this.#unlisten))
      await Promise.race([Promise.all([quiet, this.dispatcher.ended(STOP_GRACE_MS)]), deadline])
    }
    await Promise.race([this.#committer.flushed(), deadline])
    this.#committer.close()
    if (wasStarted) await Promise.race([this.#told(() => this.#letGo()), deadline])
  }

  async #letGo(): Promise<void> {
    // Those that are still here have not started; for the rest, retiring cannot tell.
    await this.giveBack.waiting(() => true)
    await this.limits.close()
    await this.lease.release()
  }

  async #told(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (thrown) {
      this.events.emit({ type: 'ledger', what: 'down', detail: asTidemarkError(thrown).message })
    }
  }

  /** New settings while running (SIGHUP): more or fewer workers, a larger or smaller window, other budgets. */
  reload(settings: Pick<EngineOptions, 'workers' | 'window' | 'budgets'>): void {
    checkEngineSize(settings)
    this.window.resize({ workers: settings.workers, max: settings.window })
    for (const [name, spec] of Object.entries(settings.budgets ?? {})) this.limits.budget(name, spec)
    this.dispatcher.pump()
    this.wake()
  }

  /** There may be something to claim: looks at the end of this turn. */
  wake(): void {
    if (this.#state !== 'started') return
    this.#claiming.wake()
    this.#committer.poke()
  }

  // --- Work in --------------------------------------------------------------

  async enqueue<P>(kind: JobKind<P>, payload: NoInfer<P>, more: EnqueueOptions = {}): Promise<EnqueueResult> {
    const [result] = await this.write({ jobs: [request(kind, payload, more)] })
    return result!
  }

  enqueueMany<P>(
    kind: JobKind<P>,
    payloads: readonly NoInfer<P>[],
    options: EnqueueOptions = {},
  ): Promise<EnqueueResult[]> {
    return this.write({ jobs: payloads.map((payload) => request(kind, payload, options)) })
  }

  /** Jobs, segments, counts and effects from outside any job: all of it or nothing. */
  async write(work: EngineWork): Promise<EnqueueResult[]> {
    return this.#committer.write(await this.#intake.toWork(work))
  }

  /**
   * A transaction of the app's own on the ledger's database. Inside it, enqueue with `tx.enqueue`: what goes through
   * the engine is committed by the engine, after this transaction.
   */
  transaction<T>(
    fn: (tx: Tx & { enqueue: (jobs: readonly JobRequest[]) => Promise<EnqueueResult[]> }) => Promise<T>,
  ): Promise<T> {
    return this.ledger
      .transaction((tx) =>
        fn({ ...tx, enqueue: async (jobs) => tx.write(await this.#intake.toWork({ jobs }, tx)) }),
      )
      .finally(() => this.wake())
  }

  /** Enqueues within a transaction that the app began on its own connection (DatabaseSync or a pg client). */
  enqueueWithin(connection: unknown, jobs: readonly JobRequest[]): Promise<EnqueueResult[]> {
    return this.ledger.writeWithin(connection, (tx) => this.#intake.toWork({ jobs }, tx))
  }

  /** Puts (or changes) a schedule: `every 15m`, or `cron 0 3 * * *`. It fires in one process, whichever is there. */
  schedule<P>(
    name: string,
    spec: string,
    kind: JobKind<P>,
    payload: NoInfer<P>,
    options: { stream?: string } = {},
  ): Promise<void> {
    return this.housekeeping.schedule(name, spec, kind, payload, options)
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

  async pause(scope: PauseScope, target = '', reason?: string, code?: string): Promise<void> {
    await this.ledger.pause(scope, target, reason, code)
    await this.#loadControls()
  }

  /** `code`: only where it is paused for that. */
  async resume(scope: PauseScope, target = '', code?: string): Promise<void> {
    await this.ledger.resume(scope, target, code)
    await this.#loadControls()
    this.wake()
  }

  /** True when no job is pending or claimed any more (house-keeping aside), false if the engine stops before. */
  async drained(): Promise<boolean> {
    refuseInside('drained()')
    const drained = this.#drain.wait()
    this.checkDrained()
    return drained
  }

  checkDrained(): void {
    if (this.window.size === 0 && !this.#committer.busy) this.#inBackground(this.#drain.check())
  }

  // --- Looking --------------------------------------------------------------

  /** What runs, what waits, how fast, and when it will be done: of this process, from memory. */
  live(): Promise<LiveSnapshot> {
    return liveSnapshot(this)
  }

  /** For Prometheus. */
  metrics(): Promise<string> {
    this.#metrics ??= engineMetrics(this)
    return this.#metrics.metricsText()
  }

  // --- Inside ---------------------------------------------------------------

  #onCycle(result: CycleResult, about: AboutCycle): void {
    this.stats.commit(about.settled, about.ms)
    this.stats.claim(result.claimed.length)
    const leftReady = this.#claiming.learn(result, about)
    this.housekeeping.due(result.nextDueAt)
    for (const { streamId, mark, position } of result.marks) {
      this.events.emit({
        type: 'mark',
        stream: this.streams.name(streamId) ?? `#${streamId}`,
        mark,
        position,
      })
    }
    for (const stop of result.toStop) this.#stopOwn(stop)
    // Claimed under a lease that was lost meanwhile: others have them.
    if (about.claim?.owner === this.owner) this.window.add(result.claimed)
    // A pause may have come while the claim was under way.
    if (result.claimed.some((job) => this.controls.isPaused(job))) {
      this.#inBackground(this.giveBack.waiting((job) => this.controls.isPaused(job)))
    }
    this.dispatcher.pump()
    // Made ready by this cycle and not claimed by it, or claimed but not able to start: look again, at once.
    if (leftReady || (result.claimed.length > 0 && !this.window.isBusy(this.#isOpen))) this.#committer.poke()
  }

  #stopOwn(stop: { id: number; owner: number }): void {
    if (stop.owner !== this.owner) return
    if (this.dispatcher.stop(stop.id, 'canceled')) return
    // It waits in the window: it has not started, so it has stopped.
    for (const job of this.window.remove((waiting) => waiting.id === stop.id)) {
      this.#committer.settle({ job, event: 'stop' }, ({ status }) => {
        if (status === 'error') this.giveBack.later(job, { started: false })
      })
    }
  }

  /** Also those whose cancel came while their claim was still on its way here. */
  async stopRequested(): Promise<void> {
    for (const id of await this.ledger.stopRequests(this.owner)) this.#stopOwn({ id, owner: this.owner })
  }

  async #loadControls(): Promise<void> {
    await this.controls.load()
    await this.stopRequested()
    await this.giveBack.waiting((job) => this.controls.isPaused(job))
    this.dispatcher.pump()
  }

  #onAuth(job: ClaimedJob, error: TidemarkError): void {
    const stream = this.streams.name(job.streamId)
    if (stream === null) return
    this.#inBackground(this.pause('stream', stream, `sign-in needed: ${error.message}`, SIGN_IN))
    this.housekeeping.onAuth(stream, error)
  }

  #onBudget(event: BudgetEvent): void {
    if (event.type === 'error') {
      this.housekeeping.onTrouble(event.error)
      return
    }
    if (event.type === 'call') {
      this.stats.call(event.name, event.ms, event.ok)
      return
    }
    if (event.type === 'throttle') this.stats.throttled(event.budget)
    this.events.emit({
      type: 'budget',
      what: event.type === 'throttle' ? 'throttled' : 'rate',
      name: event.budget,
      rate: event.type === 'rate' ? event.rate : null,
      pausedUntil: event.type === 'throttle' ? event.pausedUntilMs : null,
    })
  }

  #lostLease(owner: number): void {
    if (this.#state !== 'started') return
    this.giveBack.forget()
    const waiting = this.window.remove(() => true).length
    const running = this.dispatcher.dropAll()
    this.stats.leaseLost(waiting + running)
    this.events.emit({ type: 'lease', what: 'lost', owner, jobs: waiting + running })
    this.#inBackground(this.lease.acquireAgain(() => this.#state === 'started').then(() => this.wake()))
  }

  /** For what nobody waits for: a failure is an event, not an unhandled rejection. */
  #inBackground(promise: Promise<unknown>): void {
    promise.catch((thrown: unknown) => this.housekeeping.onTrouble(thrown))
  }
}

const OPTION_FIELDS: Fields<EngineOptions> = {
  ledger: true,
  ledgerToken: true,
  jobs: true,
  workers: true,
  window: true,
  leaseMs: true,
  bulkBytes: true,
  budgets: true,
  offsetMinutes: true,
  name: true,
  clock: true,
  random: true,
  housekeeping: true,
  point: true,
}

/** Checked before the engine is made: with a wrong setting it would stand still without a word. */
function checkEngineOptions(options: EngineOptions): void {
  checkFields('The options of an engine', options, OPTION_FIELDS)
  checkEngineSize(options)
}

function checkEngineSize(options: Partial<EngineOptions>): void {
  for (const name of ['workers', 'window', 'leaseMs', 'bulkBytes'] as const) {
    const value = options[name]
    if (value !== undefined) checkWhole(`${name} of an engine`, value, 1)
  }
}

const OPEN_STAGES = new Set(['ready', 'deps', 'time', 'claimed'])

/** Waits until the ledger has nothing pending or claimed any more; the engine's own house-keeping aside. */
class DrainWatch {
  readonly #ledger: Ledger
  #waiters: ((drained: boolean) => void)[] = []
  #checking = false

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  wait(): Promise<boolean> {
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  /** To be called whenever this process has run out of work, and now and then for what others do. */
  async check(): Promise<void> {
    if (this.#waiters.length === 0 || this.#checking) return
    this.#checking = true
    try {
      const tallies = await this.#ledger.tallies()
      const open = tallies.some((tally) => OPEN_STAGES.has(tally.stage) && !tally.kind.startsWith('engine.'))
      if (!open) this.end(true)
    } finally {
      this.#checking = false
    }
  }

  end(drained: boolean): void {
    for (const resolve of this.#waiters.splice(0)) resolve(drained)
  }
}
