/**
 * Group commit: outcomes and enqueues that are ready together go into one cycle, which also claims what comes
 * next. While a cycle is in flight, the next one fills up. On PostgreSQL a second one may be under way as soon as it
 * is well filled, and two share what ended together while none was: then this process prepares one batch while the
 * server writes the other. On SQLite, where both would be this thread, there is one at a time (and on libSQL, where the
 * second would wait for the first: two of half the size took a third more of both processors), and while jobs are at
 * work and enough of them wait for a worker, the next one lingers for some times as long as the last one took: the disk
 * is then not asked for every handful of outcomes. Nobody lingers who has something to wait for: an enqueue, alone or
 * with the end of a job, a part of a job's work, workers without jobs.
 *
 * What would wait for a transaction of somebody else, an app's that takes long, is set aside: it is committed by itself
 * when it can be, so that nobody else waits for that.
 *
 * What comes of one job is written in its order, also where nobody waited for its parts: whatever follows a part that is
 * in flight or aside waits until that is answered. Otherwise an older checkpoint could be written over a newer one.
 *
 * When the database is away (disk full, connection lost) nothing is dropped: the batch waits and is tried
 * again, and everything that came meanwhile waits behind it.
 */
import { type CancelTimer, type Clock, sleep } from '../base/clock.ts'
import { asTidemarkError, UsageError } from '../base/errors.ts'
import {
  type ClaimRequest,
  type CycleResult,
  type EnqueueResult,
  LANES,
  type Lane,
  LOCKED_CODE,
  type Settlement,
  type SettleResult,
  type Work,
} from '../ledger/contract.ts'
import { isForeign, outside, refuseInside } from '../ledger/guard.ts'
import type { Ledger } from '../ledger/ledger.ts'

const SETTLE_MAX = 4_096
const WORK_MAX = 1_024
const CLAIM_AGAIN_MS = 500
/** A second cycle at a time pays for its round trips only with a batch of this size. */
export const JOIN_MIN = 256
/** Measured with 10,000 uploads by 8 workers: 1,300 commits took a fifth of the time, 300 of them a twentieth. */
const LINGER_CYCLES = 4
const LINGER_MS_MAX = 25
const LINGER_BELOW = 64
/** Each has a connection; see the writers of the driver. */
const ASIDE_MAX = 2
const OUTAGE_WAIT_MS = [100, 250, 500, 1_000, 2_000, 5_000] as const

type PendingSettle = { settlement: Settlement; done: (result: SettleResult) => void }
type Batch = { settle: PendingSettle[]; work: PendingWork[] }
type PendingWork = { work: Work; resolve: (jobs: EnqueueResult[]) => void; reject: (error: unknown) => void }

export type AboutCycle = { settled: number; ms: number; claim: ClaimRequest | undefined }

export type CommitterOptions = {
  ledger: Ledger
  clock: Clock
  owner: () => number
  /** What to claim along with this cycle. */
  claim: (brings: ReadonlySet<Lane>) => ClaimRequest | undefined
  onCycle: (result: CycleResult, about: AboutCycle) => void
  /** A claim failed, with its cycle or alone. */
  onUnclaimed: (claim: ClaimRequest, error: unknown) => void
  onIdle: () => void
  /** Jobs are at work, and the next ones are here: nobody waits for a commit. */
  mayLinger?: () => boolean
  onOutage: (error: unknown, sinceMs: number) => void
  onRecovered: (outageMs: number) => void
}

export class Committer {
  readonly #options: CommitterOptions
  #settle: PendingSettle[] = []
  #work: PendingWork[] = []
  #wanted = false
  /** Loops that are at work, each with one cycle at a time. */
  #loops = 0
  readonly cyclesMax: number
  /** Cycles that are under way. */
  #cycles = 0
  /** What is set aside, as it came together, and how many of these batches are under way. */
  readonly #aside: Batch[] = []
  #asideRunning = 0
  /** Jobs that have a part in a cycle in flight or aside, and what came of each behind it. */
  readonly #behind = new Map<number, PendingSettle[]>()
  #closed = false
  #idleWaiters: (() => void)[] = []
  /** How long the last cycle took, and when it ended. */
  #cycleMs = 0
  #cycledMs = Number.NEGATIVE_INFINITY
  #endLinger: (() => void) | undefined

  constructor(options: CommitterOptions) {
    this.#options = options
    this.cyclesMax = options.ledger.dialect === 'postgres' ? 2 : 1
  }

  get busy(): boolean {
    if (this.#loops > 0 || this.#wanted || this.#settle.length > 0 || this.#work.length > 0) return true
    return this.#isAsideBusy
  }

  get #isAsideBusy(): boolean {
    return this.#aside.length > 0 || this.#asideRunning > 0
  }

  settle(settlement: Settlement, done: (result: SettleResult) => void): void {
    if (this.#closed) {
      // Nothing is lost: the job's lease ends, and it runs again.
      done({ status: 'lost' })
      return
    }
    const behind = this.#behind.get(settlement.job.id)
    if (behind) {
      behind.push({ settlement, done })
      return
    }
    this.#settle.push({ settlement, done })
    if (!this.#isPatient()) this.#endLinger?.()
    this.poke()
  }

  async write(work: Work): Promise<EnqueueResult[]> {
    refuseInside('The engine')
    if (this.#closed) throw stoppedError()
    return new Promise((resolve, reject) => {
      this.#work.push({ work, resolve, reject })
      this.#endLinger?.()
      this.poke()
    })
  }

  /** Asks for a cycle at the end of this turn of the event loop, even if only to claim. */
  poke(): void {
    this.#wanted = true
    if (this.#closed || this.#loops >= this.cyclesMax) return
    if (this.#loops > 0 && this.#settle.length < JOIN_MIN) return
    this.#loops += 1
    const start = (): void => {
      this.#loop().catch((thrown: unknown) => {
        // Nothing in the loop throws but a bug of ours; then better to end than to go on without commits.
        throw thrown
      })
    }
    outside(() => setImmediate(start))
  }

  /** Resolves when everything handed in so far is committed. */
  flushed(): Promise<void> {
    if (!this.busy) return Promise.resolve()
    this.#endLinger?.()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  /** Ends waiting for a database that is away; what is not committed by then is not, and its callers are told. */
  close(): void {
    this.#closed = true
    this.#endLinger?.()
    for (const { settle, work } of [...this.#aside.splice(0), { settle: this.#settle, work: this.#work }]) {
      for (const { done } of settle.splice(0)) done({ status: 'lost' })
      for (const { reject } of work.splice(0)) reject(stoppedError())
    }
    for (const behind of this.#behind.values())
      for (const { done } of behind.splice(0)) done({ status: 'lost' })
    for (const resolve of this.#idleWaiters.splice(0)) resolve()
  }

  async #loop(): Promise<void> {
    while (this.#wanted && (this.#loops === 1 || this.#settle.length >= JOIN_MIN)) {
      if (this.#isPatient()) await this.#linger()
      this.#wanted = false
      this.#cycles += 1
      await this.#oneCycle()
      this.#cycles -= 1
      if (this.#settle.length > 0 || this.#work.length > 0) this.#wanted = true
      // One turn between cycles: handlers that are ready finish and join the next batch.
      if (this.#wanted) await new Promise((resolve) => setImmediate(resolve))
    }
    this.#loops -= 1
    if (this.#loops > 0) return
    if (this.#wanted && !this.#closed) {
      this.poke()
      return
    }
    this.#idle()
  }

  #idle(): void {
    if (this.busy) return
    for (const resolve of this.#idleWaiters.splice(0)) resolve()
    this.#options.onIdle()
  }

  /** All that waits to be written are ends of jobs, and few of them. */
  #isPatient(): boolean {
    if (this.cyclesMax > 1 || this.#closed || this.#work.length > 0 || this.#idleWaiters.length > 0)
      return false
    if (this.#settle.length >= LINGER_BELOW || !this.#options.mayLinger?.()) return false
    const last = this.#settle.at(-1)
    return last === undefined || !isWaitedFor(last)
  }

  async #linger(): Promise<void> {
    const { clock } = this.#options
    const lingerMs = Math.min(LINGER_MS_MAX, this.#cycleMs * LINGER_CYCLES)
    const ms = this.#cycledMs + lingerMs - clock.monotonicMs()
    if (!(ms > 1) || this.#settle.some(isWaitedFor)) return
    await new Promise<void>((resolve) => {
      let cancel: CancelTimer = () => {}
      this.#endLinger = () => {
        cancel()
        this.#endLinger = undefined
        resolve()
      }
      cancel = clock.timer(ms, this.#endLinger)
    })
  }

  /**
   * Half of what ended together, where nothing else is under way: the other half is the second cycle's. Not of parts,
   * which are written in their order: the second half would wait for the first.
   */
  #share(): number {
    const { length } = this.#settle
    if (this.cyclesMax === 1 || this.#cycles > 1 || length < 2 * JOIN_MIN) return SETTLE_MAX
    if (this.#settle.some(isPart)) return SETTLE_MAX
    return Math.min(SETTLE_MAX, Math.ceil(length / 2))
  }

  /** What the next cycle is to write; what is left of a job behind its parts waits for that. */
  #take(): PendingSettle[] {
    const settle = this.#settle.splice(0, this.#share())
    const parts = settle.filter(isPart)
    for (const { settlement } of parts) this.#behind.set(settlement.job.id, [])
    if (parts.length > 0 && this.#settle.length > 0) {
      this.#settle = this.#settle.filter((pending) => {
        const behind = this.#behind.get(pending.settlement.job.id)
        behind?.push(pending)
        return !behind
      })
    }
    return settle
  }

  /** What came behind these parts has its turn, unless some of its job are `aside`. */
  #follow(settle: readonly PendingSettle[], aside: readonly PendingSettle[] = []): void {
    const waiting = new Set(aside.map(({ settlement }) => settlement.job.id))
    for (const { settlement } of settle.filter(isPart)) {
      const { id } = settlement.job
      const behind = waiting.has(id) ? undefined : this.#behind.get(id)
      if (!behind) continue
      this.#behind.delete(id)
      for (const pending of behind) this.#settle.push(pending)
      if (behind.length > 0) this.poke()
    }
  }

  async #oneCycle(): Promise<void> {
    const settle = this.#take()
    if (this.#settle.length > 0) this.poke()
    const work = this.#work.splice(0, WORK_MAX)
    const { ledger, clock, owner, onCycle } = this.#options
    const claim = this.#options.claim(
      lanesWithNewJobs([
        ...settle.map(({ settlement }) => settlement.work),
        ...work.map((pending) => pending.work),
      ]),
    )
    if (settle.length === 0 && work.length === 0 && !claim) return
    const startedMs = clock.monotonicMs()
    const result = await this.#untilAvailable(() =>
      ledger.cycle({
        owner: owner(),
        settle: settle.map((s) => s.settlement),
        work: work.map((w) => w.work),
        claim,
        locks: this.#isAsideBusy ? 'apart' : 'brief',
      }),
    )
    if ('thrown' in result && isLocked(result.thrown)) {
      this.#setAside({ settle, work })
      if (claim) this.#onUnclaimed(claim, result.thrown)
      return
    }
    if ('thrown' in result) {
      // A single outcome or enqueue that cannot be written: its own fault, told to whoever brought it.
      for (const { done } of settle) done({ status: 'error', error: result.thrown })
      for (const { reject } of work) reject(result.thrown)
      this.#follow(settle)
      if (claim) this.#onUnclaimed(claim, result.thrown)
      return
    }
    const { settled, work: written, claimed, backlog } = result.value
    if (claim && claimed.length === 0 && (backlog.interactive || backlog.bulk)) this.#pokeLater()
    if (claim && result.value.claimError !== undefined)
      this.#options.onUnclaimed(claim, result.value.claimError)
    this.#cycledMs = clock.monotonicMs()
    this.#cycleMs = this.#cycledMs - startedMs
    onCycle(result.value, { settled: settle.length, ms: this.#cycleMs, claim })
    const locked = this.#answer(settle, settled)
    this.#follow(settle, locked)
    this.#setAside({ settle: locked, work: this.#answerWork(work, written) })
  }

  #onUnclaimed(claim: ClaimRequest, error: unknown): void {
    this.#options.onUnclaimed(claim, error)
    this.#pokeLater()
  }

  #setAside(batch: Batch): void {
    if (batch.settle.length === 0 && batch.work.length === 0) return
    this.#aside.push(batch)
    this.#runAside()
  }

  #runAside(): void {
    while (this.#asideRunning < ASIDE_MAX && !this.#closed) {
      const batch = this.#aside.shift()
      if (!batch) return
      this.#asideRunning += 1
      this.#commitAside(batch)
        .finally(() => {
          this.#asideRunning -= 1
          this.#runAside()
          this.#idle()
        })
        .catch((thrown: unknown) => {
          throw thrown // see poke()
        })
    }
  }

  /** Waits for whoever has locked what it needs. */
  async #commitAside({ settle, work }: Batch): Promise<void> {
    const { ledger, clock, owner, onCycle } = this.#options
    const startedMs = clock.monotonicMs()
    const result = await this.#untilAvailable(() =>
      ledger.cycle({
        owner: owner(),
        settle: settle.map((s) => s.settlement),
        work: work.map((w) => w.work),
      }),
    )
    if ('thrown' in result) {
      for (const { done } of settle) done({ status: 'error', error: result.thrown })
      for (const { reject } of work) reject(result.thrown)
      this.#follow(settle)
      return
    }
    const about = { settled: settle.length, ms: clock.monotonicMs() - startedMs, claim: undefined }
    onCycle(result.value, about)
    for (const [at, { done }] of settle.entries()) done(result.value.settled[at]!)
    this.#follow(settle)
    for (const [at, { resolve, reject }] of work.entries()) {
      const written = result.value.work[at]!
      if (written.status === 'held') resolve(written.jobs)
      else reject(written.error)
    }
  }

  /**
   * Those that met an outage while the others were committed one by one wait for the next cycle, in their order. Returns
   * those that met a lock.
   */
  #answer(settle: readonly PendingSettle[], results: readonly SettleResult[]): PendingSettle[] {
    const again: PendingSettle[] = []
    const locked: PendingSettle[] = []
    for (const [index, pending] of settle.entries()) {
      const result = results[index]!
      if (result.status === 'error' && this.#isOutage(result.error)) again.push(pending)
      else if (result.status === 'error' && isLocked(result.error)) locked.push(pending)
      else pending.done(result)
    }
    if (again.length > 0) this.#settle = [...again, ...this.#settle]
    return locked
  }

  #answerWork(work: readonly PendingWork[], results: CycleResult['work']): PendingWork[] {
    const again: PendingWork[] = []
    const locked: PendingWork[] = []
    for (const [index, pending] of work.entries()) {
      const result = results[index]!
      if (result.status === 'held') pending.resolve(result.jobs)
      else if (this.#isOutage(result.error)) again.push(pending)
      else if (isLocked(result.error)) locked.push(pending)
      else pending.reject(result.error)
    }
    if (again.length > 0) this.#work = [...again, ...this.#work]
    return locked
  }

  /** The claim failed, and perhaps nothing else will ask for a cycle. */
  #pokeLater(): void {
    this.#options.clock.timer(CLAIM_AGAIN_MS, () => this.poke())
  }

  #isOutage(thrown: unknown): boolean {
    return isLedgerAway(thrown) && !this.#closed
  }

  async #untilAvailable<T>(fn: () => Promise<T>): Promise<{ value: T } | { thrown: unknown }> {
    const { clock, onOutage, onRecovered } = this.#options
    let outageSinceMs: number | undefined
    for (let tries = 0; ; tries++) {
      try {
        const value = await fn()
        if (outageSinceMs !== undefined) onRecovered(clock.monotonicMs() - outageSinceMs)
        return { value }
      } catch (thrown) {
        if (!this.#isOutage(thrown)) return { thrown }
        outageSinceMs ??= clock.monotonicMs()
        onOutage(thrown, clock.monotonicMs() - outageSinceMs)
        await sleep(clock, OUTAGE_WAIT_MS[Math.min(tries, OUTAGE_WAIT_MS.length - 1)]!)
      }
    }
  }
}

/** Its job goes on after it. */
function isPart({ settlement }: PendingSettle): boolean {
  return settlement.event === 'continue'
}

/** Its job goes on after it, or other jobs begin with it. */
function isWaitedFor(pending: PendingSettle): boolean {
  return isPart(pending) || (pending.settlement.work?.jobs?.length ?? 0) > 0
}

/**
 * The database is away, or damaged, or lets nobody in: no job is to blame, and what was asked of it may work later. Not
 * where it may have been done already.
 */
export function isLedgerAway(thrown: unknown): boolean {
  const { code } = asTidemarkError(thrown)
  return !isForeign(thrown) && code !== 'ledger-in-doubt' && (code?.startsWith('ledger-') ?? false)
}

function isLocked(thrown: unknown): boolean {
  return asTidemarkError(thrown).code === LOCKED_CODE
}

function stoppedError(): UsageError {
  return new UsageError('The engine has stopped: nothing was enqueued.', {
    hint: 'Enqueue before stop(), or use another engine.',
  })
}

/** The lanes in which this work puts jobs that may be ready at once. */
function lanesWithNewJobs(works: readonly (Work | undefined)[]): Set<Lane> {
  const lanes = new Set<Lane>()
  for (const work of works) {
    for (const job of work?.jobs ?? []) lanes.add(job.lane ?? 'interactive')
    if (lanes.size === LANES.length) break
  }
  return lanes
}
