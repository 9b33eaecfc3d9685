/**
 * Fires the schedules that stand in the ledger. Every engine process runs one; each due time is fired by
 * exactly one of them, because firing moves the entry's next time in the transaction that enqueues the job,
 * and whoever comes second finds it moved.
 *
 * - Runs that were missed while nobody was there are made up for once: the next time is computed from now.
 * - A run that is still unsettled when the next one is due is not joined by a second: both have the same key.
 * - A next time that is further away than the spec allows was written by a clock that was put back since: it is due.
 * - Entries whose kind this process does not know are left to processes that do.
 * - Entries that other processes write are seen within `REREAD_MS`, or at once after `poke`.
 *
 * States: idle → waiting (a timer is set) ⇄ looking → stopped. At most one look at a time.
 */
import type { CancelTimer, Clock } from '../base/clock.ts'
import { asTidemarkError } from '../base/errors.ts'
import type { EnqueueResult, NewJob } from '../ledger/contract.ts'
import { AHEAD_MS } from '../ledger/control.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ScheduleRow } from '../ledger/schedules.ts'
import { nextAfter, parseSpec } from './schedule-spec.ts'

/** Timers are never longer than this, so that new entries and a clock that was set are noticed. */
export const REREAD_MS = 60_000
/** After an error (the ledger is away, mostly). */
export const RETRY_MS = 5_000

export type FiredSchedule = { name: string; kind: string; dueAt: number; nextAt: number; job: EnqueueResult }

export type SchedulerOptions = {
  ledger: Pick<Ledger, 'now' | 'schedules' | 'fireSchedule'>
  clock: Clock
  /** The job of an entry; undefined if this process does not know its kind. Key and stream are set here. */
  toJob: (entry: ScheduleRow) => NewJob | undefined
  onFired?: (fired: FiredSchedule) => void
  /** Of an entry that can never fire (a spec or payload that no longer parses) it is told once. */
  onError?: (error: unknown, entry: ScheduleRow | undefined) => void
}

type Plan = { job: NewJob; nextAt: number }

export const scheduleKey = (name: string): string => `schedule:${name}`

export class Scheduler {
  readonly #options: SchedulerOptions
  /** The texts of broken entries that were reported: a corrected one is looked at again. */
  readonly #broken = new Map<string, string>()
  #cancelTimer: CancelTimer = () => {}
  #looking: Promise<void> | undefined
  #lookAgain = false
  #state: 'idle' | 'running' | 'stopped' = 'idle'

  constructor(options: SchedulerOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#state !== 'idle') return
    this.#state = 'running'
    void this.poke()
  }

  /** Waits for a firing that is under way. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#cancelTimer()
    await this.#looking
  }

  /** Reads the entries again now; resolves when what was due has been fired. */
  poke(): Promise<void> {
    if (this.#state !== 'running') return Promise.resolve()
    this.#lookAgain = true
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    this.#cancelTimer()
    let waitMs = REREAD_MS
    while (this.#lookAgain && this.#state === 'running') {
      this.#lookAgain = false
      waitMs = await this.#fireDue()
    }
    if (this.#state === 'running') {
      this.#cancelTimer = this.#options.clock.timer(waitMs, () => void this.poke())
    }
  }

  /** Returns how long nothing will be due. */
  async #fireDue(): Promise<number> {
    const { ledger } = this.#options
    try {
      const entries = await ledger.schedules()
      let nextAt = Number.POSITIVE_INFINITY
      for (const entry of entries) {
        if (this.#state !== 'running') break
        nextAt = Math.min(
          nextAt,
          isDue(entry, ledger.now()) ? await this.#fire(entry) : this.#knownTime(entry),
        )
      }
      return Math.min(REREAD_MS, Math.max(0, nextAt - ledger.now()))
    } catch (error) {
      this.#options.onError?.(error, undefined)
      return RETRY_MS
    }
  }

  /** Entries that this process will not fire need no timer. */
  #knownTime(entry: ScheduleRow): number {
    return this.#broken.get(entry.name) === textOf(entry) ? Number.POSITIVE_INFINITY : entry.next_at
  }

  /** Returns when the entry is due next, as far as this process cares. */
  async #fire(entry: ScheduleRow): Promise<number> {
    const plan = this.#plan(entry)
    if (!plan) return Number.POSITIVE_INFINITY
    const job = await this.#enqueue(entry, plan)
    if (job === 'refused') return Number.POSITIVE_INFINITY
    if (!job) {
      // Another process was faster, or the entry was changed: what stands there now is read again.
      this.#lookAgain = true
      return Number.POSITIVE_INFINITY
    }
    this.#options.onFired?.({
      name: entry.name,
      kind: entry.kind,
      dueAt: entry.next_at,
      nextAt: plan.nextAt,
      job,
    })
    return plan.nextAt
  }

  /** One entry that the ledger will not take must not keep the others from being fired. */
  async #enqueue(entry: ScheduleRow, { job, nextAt }: Plan): Promise<EnqueueResult | 'refused' | undefined> {
    try {
      return await this.#options.ledger.fireSchedule(entry, nextAt, { jobs: [job] })
    } catch (error) {
      if (asTidemarkError(error).kind === 'transient') throw error
      this.#options.onError?.(error, entry)
      return 'refused'
    }
  }

  #plan(entry: ScheduleRow): Plan | undefined {
    if (this.#broken.get(entry.name) === textOf(entry)) return undefined
    try {
      const job = this.#options.toJob(entry)
      if (!job) return undefined
      const nextAt = nextAfter(parseSpec(entry.spec), this.#options.ledger.now(), entry.next_at)
      const { stream_id: streamId, lane, priority } = entry
      return {
        job: { ...job, streamId, lane, priority, key: scheduleKey(entry.name), onKeyTaken: 'ignore' },
        nextAt,
      }
    } catch (error) {
      this.#broken.set(entry.name, textOf(entry))
      this.#options.onError?.(error, entry)
      return undefined
    }
  }
}

function isDue({ next_at: nextAt, spec }: ScheduleRow, now: number): boolean {
  if (nextAt <= now) return true
  try {
    // From a little later on: a process whose clock is ahead of ours may have fired what is not due here yet.
    return nextAt > nextAfter(parseSpec(spec), now + AHEAD_MS, nextAt)
  } catch {
    // One that can never fire: that is told when its time comes.
    return false
  }
}

function textOf({ kind, spec, payload }: ScheduleRow): string {
  return JSON.stringify([kind, spec, payload])
}
