/**
 * What an engine does besides running jobs, on timers: waking jobs whose time has come, taking back what dead
 * processes held, stopping stalled jobs, saving progress, firing schedules, watching for trouble, pruning.
 *
 * Pruning and the retry of bad items are jobs themselves, on schedules, so that of all processes one does them.
 */
import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import type { TidemarkError } from '../base/errors.ts'
import { formatDuration } from '../base/format.ts'
import type { SegmentRow } from '../ledger/contract.ts'
import { SIGN_IN } from '../ledger/control.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { isLedgerAway } from './committer.ts'
import type { Dispatcher, Running } from './dispatcher.ts'
import { checkFields, type Fields } from './fields.ts'
import type { GiveBack } from './give-back.ts'
import type { AnyJobKind, JobKind } from './job-kind.ts'
import { BULK_BYTES, defineJob, type KindRegistry, toNewJob } from './kinds.ts'
import type { Lease } from './lease.ts'
import type { Limits } from './limits/limits.ts'
import { type AlertInputs, type AlertThresholds, evaluateAlerts } from './observe/alert-rules.ts'
import { AlertBoard, type AlertSink } from './observe/alerts.ts'
import type { EventStream } from './observe/events.ts'
import { healthInputs } from './observe/health.ts'
import type { EngineStats } from './observe/stats.ts'
import { Scheduler } from './schedule.ts'
import { nextAfter, parseSpec } from './schedule-spec.ts'
import { StallWatch } from './stall.ts'
import type { Streams } from './streams.ts'

const TICK_MS = 1_000
const PROGRESS_MS = 5_000
/** Behind every announcement: one that got lost (a pooler that drops LISTEN, say) costs this much time. */
const POLL_MS = 5_000
const ALERTS_MS = 30_000
/** A stalled handler that ignores its signal for this long is given up. */
const ABANDON_MS = 60_000
const DAY_MS = 86_400_000
const BAD_TRIES_MAX = 10

export type HousekeepingSettings = {
  settledKeptMs: number
  failedKeptMs: number
  pruneEvery: string
  /** What else is kept for a time only; told when it is now. */
  pruneMore: (nowMs: number) => Promise<void>
  retryBadEvery: string
  thresholds: Partial<AlertThresholds>
  sinks: readonly AlertSink[]
  /** How much of their room for metadata apps have used. */
  metadata: () => Promise<NonNullable<AlertInputs['metadata']>>
  /** For how long sources were silent; undefined where none are followed by this process. */
  stale: () => Promise<AlertInputs['stale']>
}

/** The engine that the house belongs to: what is looked after, and what it is told. */
export type KeptEngine = {
  readonly owner: number
  readonly ledger: Ledger
  readonly clock: Clock
  readonly events: EventStream
  readonly stats: EngineStats
  readonly streams: Streams
  readonly kinds: KindRegistry
  readonly limits: Limits
  readonly lease: Lease
  readonly dispatcher: Dispatcher
  readonly giveBack: GiveBack
  wake(): void
  checkDrained(): void
  /** Stops what somebody has canceled. */
  stopRequested(): Promise<void>
}

const DEFAULTS: HousekeepingSettings = {
  settledKeptMs: 7 * DAY_MS,
  failedKeptMs: 30 * DAY_MS,
  pruneEvery: 'every 1h',
  pruneMore: async () => {},
  retryBadEvery: 'every 24h',
  thresholds: {},
  sinks: [],
  metadata: async () => [],
  stale: async () => undefined,
}

const SCHEDULE_FIELDS: Fields<{ stream?: string }> = { stream: true }

export class Housekeeping {
  readonly jobs: readonly AnyJobKind[]
  readonly #engine: KeptEngine
  readonly #settings: HousekeepingSettings
  readonly #stalls: StallWatch
  readonly #stalledSince = new Map<Running, number>()
  #scheduler: Scheduler | undefined
  #alerts: AlertBoard | undefined
  #unlisten = (): void => {}
  #cancelTick = (): void => {}
  #cancelDue = (): void => {}
  #dueAt: number | null = null
  #pollMs = 0
  #progressMs = 0
  #alertsMs = 0
  readonly #broken = new Set<string>()
  #stopped = false
  /** The ledger is away. An outage that the committer told of ends when it says so: a look may work where no write does. */
  #outage: { since: number; detail: string; isCommitter: boolean } | undefined
  #waking = false

  constructor(engine: KeptEngine, settings: Partial<HousekeepingSettings>) {
    this.#engine = engine
    this.#settings = { ...DEFAULTS, ...settings }
    this.#stalls = new StallWatch({ everyMs: TICK_MS, stallMsOf: (kind) => engine.kinds.get(kind).stallMs })
    this.jobs = [this.#pruneJob(), this.#retryBadJob()]
  }

  async start(): Promise<void> {
    const { ledger, clock, events, kinds } = this.#engine
    const alerts = new AlertBoard({ ledger, clock, events, sinks: this.#settings.sinks })
    this.#alerts = alerts
    // At once, not with the next look around: whoever has just signed in is looking.
    this.#unlisten = events.on(
      (event) => {
        if (event.type !== 'pause' || event.what !== 'resumed' || event.scope !== 'stream') return
        if (event.code === SIGN_IN) this.#background(alerts.clear('sign-in', event.target))
      },
      { jobs: false },
    )
    this.#scheduler = new Scheduler({
      ledger,
      clock,
      toJob: (entry) => {
        const kind = kinds.find(entry.kind)
        return (
          kind &&
          toNewJob(
            {
              kind,
              payload: JSON.parse(entry.payload),
              options: { lane: entry.lane, priority: entry.priority },
            },
            entry.stream_id,
            BULK_BYTES,
          )
        )
      },
      onFired: ({ name, job }) => {
        events.emit({ type: 'schedule', name, jobId: job.id })
        this.#engine.wake()
      },
      onError: (error) => this.onTrouble(error),
    })
    await this.schedule('engine.prune', this.#settings.pruneEvery, kinds.get('engine.prune'), {})
    await this.schedule('engine.retry-bad', this.#settings.retryBadEvery, kinds.get('engine.retry-bad'), {})
    this.#scheduler.start()
    await this.#wakeDue()
    this.#armTick()
  }

  /** Puts (or changes) a schedule: `every 15m`, or `cron 0 3 * * *`. It fires in one process, whichever is there. */
  async schedule<P>(
    name: string,
    spec: string,
    kind: JobKind<P>,
    payload: NoInfer<P>,
    options: { stream?: string } = {},
  ): Promise<void> {
    const { ledger, streams } = this.#engine
    checkFields(`The schedule ${name}`, options, SCHEDULE_FIELDS)
    const job = toNewJob(
      { kind, payload, options: {} },
      options.stream === undefined ? 0 : (await streams.open(options.stream)).id,
      BULK_BYTES,
    )
    await ledger.putSchedule({
      name,
      kind: kind.kind,
      payload: job.payload,
      spec,
      stream_id: job.streamId!,
      lane: job.lane!,
      priority: job.priority!,
      next_at: nextAfter(parseSpec(spec), ledger.now()),
    })
    await this.#scheduler?.poke()
  }

  get alerts(): AlertBoard {
    return this.#alerts!
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#unlisten()
    this.#cancelTick()
    this.#cancelDue()
    await this.#scheduler?.stop()
    await this.#alerts?.close()
  }

  /** A job will fall due then: be there. */
  due(at: number | null): void {
    if (at === null || this.#stopped || (this.#dueAt !== null && this.#dueAt <= at)) return
    this.#dueAt = at
    this.#cancelDue()
    this.#cancelDue = this.#engine.clock.timer(at - this.#engine.ledger.now(), () => {
      this.#dueAt = null
      this.#background(this.#wakeDue())
    })
  }

  onUnbalanced(segment: SegmentRow): void {
    this.#background(this.#tellUnbalanced(segment))
  }

  /** At once, not with the next look around: the mark waits. */
  async #tellUnbalanced({ stream_id }: SegmentRow): Promise<void> {
    const { ledger, streams } = this.#engine
    const stream = streams.name(stream_id)
    const unbalanced = (await ledger.unbalanced()).filter((one) => one.stream === stream)
    const { alerts } = evaluateAlerts({ now: ledger.now(), unbalanced })
    for (const alert of alerts) await this.#alerts?.raise(alert)
  }

  onAuth(stream: string, error: TidemarkError): void {
    this.#raise(
      'sign-in',
      stream,
      'critical',
      `${stream} is paused: ${error.message}. Connect the account again, then resume the stream.`,
    )
  }

  onBroken(kind: string, error: TidemarkError): void {
    // Asked with every claim: what was told is told again by the board, not by each of them.
    if (this.#broken.has(kind)) return
    this.#broken.add(kind)
    this.#raise(
      'broken-kind',
      kind,
      'critical',
      `Jobs of ${kind} cannot start in this process: ${error.message}`,
    )
  }

  /** Something in the background failed; the next tick tries again. */
  onTrouble(thrown: unknown): void {
    if (this.#stopped) return
    const detail = thrown instanceof Error ? thrown.message : String(thrown)
    if (isLedgerAway(thrown)) this.ledgerDown(detail)
    else this.#engine.events.emit({ type: 'ledger', what: 'down', detail })
  }

  #raise(condition: string, target: string, severity: 'warning' | 'critical', text: string): void {
    if (this.#alerts) this.#background(this.#alerts.raise({ condition, target, severity, text }))
  }

  /** The one timer that keeps a process with a started engine alive. */
  #armTick(): void {
    this.#cancelTick = this.#engine.clock.timer(TICK_MS, () => this.#tick(), { keepAlive: true })
  }

  #tick(): void {
    this.#background(
      this.#beat().finally(() => {
        if (!this.#stopped) this.#armTick()
      }),
    )
  }

  async #beat(): Promise<void> {
    const { clock } = this.#engine
    const nowMs = clock.monotonicMs()
    this.#engine.lease.alive()
    this.#stopStalled(nowMs)
    const { owners, jobs } = await this.#engine.lease.reclaim()
    for (const owner of owners) this.#engine.events.emit({ type: 'lease', what: 'reclaimed', owner, jobs })
    if (owners.length > 0) {
      this.#engine.stats.reclaimed(jobs)
      this.#engine.wake()
    }
    await this.#wakeDue()
    if (await this.#engine.giveBack.idle()) this.#engine.wake()
    if (nowMs - this.#pollMs >= POLL_MS) {
      this.#pollMs = nowMs
      const ready = await this.#engine.ledger.hasReady({ kinds: this.#engine.kinds.names })
      if (ready.interactive || ready.bulk) this.#engine.wake()
      await this.#engine.stopRequested()
    }
    if (nowMs - this.#progressMs >= PROGRESS_MS) {
      this.#progressMs = nowMs
      await this.#saveProgress()
    }
    if (nowMs - this.#alertsMs >= ALERTS_MS) {
      this.#alertsMs = nowMs
      if ((await this.#engine.ledger.wakeAhead()) > 0) this.#engine.wake()
      await this.#checkHealth()
    }
    // Where nothing is to be committed, nobody else would notice that the ledger is back.
    if (!this.#outage?.isCommitter) this.ledgerUp()
    this.#engine.checkDrained()
  }

  /** Whoever notices first says so; the others only add to it. */
  ledgerDown(detail: string, { isCommitter } = { isCommitter: false }): void {
    const { clock, events } = this.#engine
    const known = this.#outage
    this.#outage = {
      since: known?.since ?? clock.now(),
      detail,
      isCommitter: isCommitter || (known?.isCommitter ?? false),
    }
    if (!known) events.emit({ type: 'ledger', what: 'down', detail })
  }

  ledgerUp(): void {
    const { clock, events } = this.#engine
    if (!this.#outage) return
    const detail = `away for ${formatDuration(clock.now() - this.#outage.since)}`
    this.#outage = undefined
    events.emit({ type: 'ledger', what: 'up', detail })
  }

  async #checkHealth(): Promise<void> {
    const { ledger, streams, limits, stats } = this.#engine
    const { since = null, detail = '' } = this.#outage ?? {}
    const ledgerState = { downSince: since, detail }
    const inputs = await healthInputs({ ledger, streams, limits, stats, ledgerState })
    const metadata = await this.#settings.metadata()
    const stale = await this.#settings.stale()
    await this.#alerts!.update(
      evaluateAlerts({ ...inputs, metadata, ...(stale && { stale }) }, this.#settings.thresholds),
    )
  }

  async #wakeDue(): Promise<void> {
    if (this.#waking) return
    this.#waking = true
    try {
      const { woken, nextDueAt } = await this.#engine.ledger.wakeDue()
      if (woken > 0) this.#engine.wake()
      this.due(nextDueAt)
    } finally {
      this.#waking = false
    }
  }

  #stopStalled(nowMs: number): void {
    const running = [...this.#engine.dispatcher.running.values()]
    const stalled = this.#stalls.check(
      running.map(({ context, kind }) => ({
        id: context.id,
        kind: kind.kind,
        progressMs: context.lastProgressMs,
      })),
      nowMs,
    )
    for (const { id } of stalled) {
      const run = this.#engine.dispatcher.running.get(id)!
      this.#engine.events.emit({
        type: 'job',
        what: 'stalled',
        id,
        kind: run.kind.kind,
        stream: run.context.stream,
        attempt: run.context.attempt,
      })
      this.#engine.stats.job(run.kind.kind, 'stalled', 0, 0)
      run.context.stop('stalled')
      this.#stalledSince.set(run, nowMs)
    }
    for (const [run, sinceMs] of this.#stalledSince) {
      if (run.ended) this.#stalledSince.delete(run)
      else if (nowMs - sinceMs > ABANDON_MS) this.#engine.dispatcher.abandon(run)
    }
  }

  async #saveProgress(): Promise<void> {
    const changed = [...this.#engine.dispatcher.running.values()].flatMap(({ context }) => {
      const text = context.unsavedProgress()
      return text === undefined ? [] : [{ id: context.id, attempt: context.attempt, text }]
    })
    await this.#engine.ledger.noteProgress(this.#engine.owner, changed)
  }

  #pruneJob(): AnyJobKind {
    return defineJob({
      kind: 'engine.prune',
      payload: z.object({}),
      lane: 'bulk',
      run: async (job) => {
        const deleted = await this.prune(job.signal)
        return { note: `${deleted} jobs pruned` }
      },
    })
  }

  /** Bounded steps, each a transaction of its own, so that nobody waits long behind it. */
  async prune(signal?: AbortSignal): Promise<number> {
    const { ledger } = this.#engine
    const now = ledger.now()
    const policy = {
      settledBefore: now - this.#settings.settledKeptMs,
      failedBefore: now - this.#settings.failedKeptMs,
    }
    let deleted = 0
    for (let next: number | null = 0; next !== null; ) {
      signal?.throwIfAborted()
      const step = await ledger.pruneStep(policy, next)
      deleted += step.deleted
      next = step.nextId
    }
    await ledger.pruneRest()
    await this.#settings.pruneMore(now)
    return deleted
  }

  #retryBadJob(): AnyJobKind {
    return defineJob({
      kind: 'engine.retry-bad',
      payload: z.object({}),
      lane: 'bulk',
      run: async () => {
        const { ledger } = this.#engine
        const n = await ledger.retryBad({ triesMax: BAD_TRIES_MAX, triedBefore: ledger.now() - DAY_MS / 2 })
        this.#engine.wake()
        return { note: `${n} bad items tried again` }
      },
    })
  }

  #background(promise: Promise<unknown>): void {
    promise.catch((thrown: unknown) => this.onTrouble(thrown))
  }
}
