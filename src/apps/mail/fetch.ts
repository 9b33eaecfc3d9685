/**
 * Fetches a batch of messages and stores them. What can become of an id: stored, gone, skipped (not wanted by its
 * labels), bad with its reason, or not yet known; while one is not known, the job is tried again, and what is
 * already stored is not fetched again.
 *
 * Of an answer that names the culprit, only that id is tried again. Of a call that fails as a whole while others
 * work, the ids are halved until the culprit is alone: about two calls for each halving.
 */
import { sleep } from '../../base/clock.ts'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { type Outcome, type RunContext, request } from '../../engine/index.ts'
import { ATTEMPTS } from '../../engine/kinds.ts'
import type { MailAccount } from './account.ts'
import { badMessages } from './bad-messages.ts'
import type { BatchPayload, MailKinds } from './jobs.ts'
import type { FetchedMessage } from './message.ts'
import { chunksOf, isWanted } from './plan.ts'
import { noteFetched, noteMark } from './store/missing-messages.ts'
import { forgetStale, noteStale } from './store/stale-labels.ts'
import { noteGone, noteReturned } from './store/tables.ts'

/** Calls in one request to the batch endpoint. */
const GROUP_MAX = 50
const GROUP_MIN = 2
/** A request is worth about this much of the budget: many small ones keep an even pace, and little of one is refused. */
const GROUP_MS = 500
/** What a batch holds back before it is handed on; all workers may hold as much. */
const STORE_BYTES = 1024 * 1024
/** Rounds of trying again what the answers named, before the job as a whole is tried again later. */
const ROUNDS_MAX = 6
/** An id that fails again and again is bad when chance alone, at the rate at which others fail, is this unlikely. */
const CHANCE_MAX = 1e-6
const ROUND_PAUSE_MS = 250
const SINGLE_TRIES = 3
const NARROW_CALLS_MAX = 80
/** The last word about a message: no later change is newer. */
const LAST_HISTORY_ID = '18446744073709551615'

export async function runFetch(kinds: MailKinds, job: RunContext<BatchPayload>): Promise<Outcome> {
  const { payload, clock } = job
  const account = await kinds.accounts.get(payload.account)
  const labels = new Map(
    (await kinds.tables.labels(account.name)).map(({ id, name }) => [name.toLowerCase(), id]),
  )
  const startedMs = clock.monotonicMs()
  const startedAtMs = clock.now()
  const staleNotes = Number((await kinds.tables.findMailbox(account.name))?.stale_notes ?? 0)
  const kept = payload.refresh ? await account.archive.stored(payload.ids) : new Set<string>()
  const run = new FetchRun({ account, job, labels, kept, groupSize: groupSizeOf(kinds, account, job) })
  try {
    await run.all(payload.refresh ? payload.ids : await withoutStored(kinds, account, payload.ids))
  } finally {
    await run.storing()
    kinds.batchSize(account.name).went({ ms: clock.monotonicMs() - startedMs, errors: run.errors })
  }
  await markVanished(kinds, account, run, { startedAtMs, nowMs: clock.now() })
  if (job.segment === null && job.job.badId === null) await mendCured(kinds, account, run)
  const { gone, skipped, bad } = run
  const stored = payload.ids.filter((id) => !gone.has(id) && !skipped.has(id) && !bad.has(id))
  const mark = await account.archive.mark()
  // What is skipped is not stored here: a fetch that began before, with labels of before, may store it still.
  const read = [...run.stored, ...gone]
  return {
    effects: async (tx) => {
      await forgetStale(tx, account.name, { ids: read, upTo: staleNotes })
      await noteFetched(tx, account.name, { stored, gone: [...gone], skipped: [...skipped] })
      await noteMark(tx, account.name, mark)
    },
    stored: stored.length,
    gone: run.gone.size,
    skipped: run.skipped.size,
    bad: [...run.bad].map(([item, error]) => ({ item, reason: error.message, errorKind: error.kind })),
  }
}

/**
 * What was imported from a file is fetched too: only then is it known that the bytes are the cloud's. And what was noted
 * as gone: an attempt that found it there after all may have ended before it could say so.
 */
async function withoutStored(
  { tables }: MailKinds,
  account: MailAccount,
  ids: readonly string[],
): Promise<string[]> {
  const stored = await account.archive.stored(ids, { source: 'gmail' })
  const gone = await tables.gone(account.name, [...stored])
  return ids.filter((id) => !stored.has(id) || gone.has(id))
}

function groupSizeOf(kinds: MailKinds, account: MailAccount, job: RunContext<BatchPayload>): number {
  const budget = job.limits.snapshot().budgets.find(({ name }) => name === account.units)
  const perCall = ((budget?.rate ?? Infinity) * GROUP_MS) / 1000 / kinds.settings.priceOfGet
  return Math.max(GROUP_MIN, Math.min(GROUP_MAX, Math.floor(perCall)))
}

/**
 * A message that is deleted while its bytes are on their way could be stored as if it were still there. So whoever
 * learns that it is gone notes that first and looks into the archive second; whoever stores it, the other way round:
 * one of the two sees it. All ids of the batch are looked at, since an earlier attempt may have stored them and ended
 * before it could look. What came after it was noted as gone is there after all.
 */
async function markVanished(
  kinds: MailKinds,
  account: MailAccount,
  run: FetchRun,
  { startedAtMs, nowMs }: { startedAtMs: number; nowMs: number },
): Promise<void> {
  const { name, archive } = account
  const gone = [...run.gone]
  if (gone.length > 0) await run.job.commit({ effects: (tx) => noteGone(tx, name, gone, nowMs) })
  const noted = await kinds.tables.gone(name, run.job.payload.ids)
  if (noted.size === 0) return
  const returned = [...noted]
    .filter(([id, atMs]) => run.stored.has(id) && atMs < startedAtMs)
    .map(([id]) => id)
  for (const id of returned) noted.delete(id)
  // The mark was the last word about them, so that their labels are of before it: known before they count as there.
  if (returned.length > 0) await run.job.commit({ effects: (tx) => noteStale(tx, name, returned) })
  const vanished = await archive.stored([...noted.keys()])
  await archive.apply([
    ...[...vanished].map((id) => ({ id, historyId: LAST_HISTORY_ID, deletedAtMs: nowMs })),
    ...returned.map((id) => ({ id, historyId: '0', restored: true as const })),
  ])
  if (returned.length === 0) return
  await run.job.commit({
    effects: (tx) => noteReturned(tx, name, returned),
    jobs: [request(kinds.fetch, { account: name, ids: returned, refresh: true })],
  })
}

/**
 * What is fetched outside its slice (a comparison or a change named it) and was bad before: a retry of the registry's own
 * settles it where it was counted, and finds it stored.
 */
async function mendCured({ ledger }: MailKinds, account: MailAccount, run: FetchRun): Promise<void> {
  const cured = new Set(run.job.payload.ids.filter((id) => !run.bad.has(id)))
  const rows = (await badMessages(ledger, account.stream)).filter(({ item }) => cured.has(item))
  for (const some of chunksOf(rows, GROUP_MAX)) await ledger.retryBad({ ids: some.map(({ id }) => id) })
}

type FetchRunOptions = {
  account: MailAccount
  job: RunContext<BatchPayload>
  /** Ids by lower-case name. */
  labels: ReadonlyMap<string, string>
  /** Stored already: what their labels are now is stored too, wanted or not. */
  kept: ReadonlySet<string>
  groupSize: number
}

class FetchRun {
  readonly job: RunContext<BatchPayload>
  readonly gone = new Set<string>()
  readonly skipped = new Set<string>()
  readonly stored = new Set<string>()
  readonly bad = new Map<string, TidemarkError>()
  errors = 0
  readonly #failures = new Map<string, number>()
  #answers = 0
  readonly #options: FetchRunOptions
  readonly #stores: Promise<void>[] = []
  #answeredCalls = 0
  #narrowCalls = 0

  constructor(options: FetchRunOptions) {
    this.#options = options
    this.job = options.job
  }

  async all(ids: readonly string[]): Promise<void> {
    let todo = [...ids]
    const suspects: string[][] = []
    let last: TidemarkError | undefined
    for (let round = 0; round < ROUNDS_MAX && todo.length > 0; round++) {
      if (round > 0) await this.#pause(round)
      const again: string[] = []
      for (const group of chunksOf(todo, this.#options.groupSize)) {
        const result = await this.#try(group)
        again.push(...result.again)
        last = result.error ?? last
        if (result.failedWhole) suspects.push(result.failedWhole)
      }
      todo = again.filter((id) => !this.#isAtFault(id, last))
    }
    for (const group of suspects) await this.#narrow(group)
    if (todo.length > 0) this.#giveUp(todo, last)
  }

  /** Everything given to the archive is on disk. */
  async storing(): Promise<void> {
    await Promise.all(this.#stores)
  }

  /** `again`: ids whose answers failed. `failedWhole`: ids of a call that failed without saying because of whom. */
  async #try(group: string[]): Promise<{ again: string[]; failedWhole?: string[]; error?: TidemarkError }> {
    const failed = new Map<string, TidemarkError>()
    const open = new Set(group)
    try {
      await this.#call(group, open, failed)
    } catch (thrown) {
      const error = asTidemarkError(thrown)
      this.errors += 1
      if (this.job.signal.aborted || error.kind === 'auth' || isDisk(error)) throw thrown
      if (error.kind === 'throttled') return { again: [...open, ...failed.keys()], error }
      // Those that were answered before it broke are stored; the rest may hold the culprit.
      return { again: [...failed.keys()], failedWhole: [...open], error }
    }
    let error: TidemarkError | undefined
    // Whoever is left without an answer is not stored.
    const again: string[] = [...open]
    for (const [id, reason] of failed) {
      if (reason.kind === 'auth') throw reason
      if (reason.kind === 'permanent') this.bad.set(id, reason)
      else again.push(id)
      error = reason
    }
    return error ? { again, error } : { again }
  }

  async #call(group: string[], open: Set<string>, failed: Map<string, TidemarkError>): Promise<void> {
    const { account } = this.#options
    await account.archive.room(this.job.signal)
    let got: FetchedMessage[] = []
    let bytes = 0
    const flush = (): void => {
      if (got.length > 0) this.#store(got)
      got = []
      bytes = 0
    }
    try {
      await account.client.getRaw(group, {
        signal: this.job.signal,
        onAnswer: async (answer) => {
          open.delete(answer.id)
          this.#answers += 1
          if (!answer.ok) {
            if (answer.error.kind === 'gone') this.gone.add(answer.id)
            else this.#failed(answer.id, answer.error, failed)
            return
          }
          if (!this.#isWanted(answer.message)) {
            this.skipped.add(answer.id)
            return
          }
          const { id, threadId, historyId, labelIds, internalMs, raw } = answer.message
          got.push({ id, threadId, historyId, labelIds, internalMs, raw, source: 'gmail' })
          bytes += raw.byteLength
          if (bytes < STORE_BYTES) return
          flush()
          await account.archive.room(this.job.signal)
        },
      })
      this.#answeredCalls += 1
    } finally {
      flush()
      this.job.progress({ done: this.#done, total: this.job.payload.ids.length, unit: 'items' })
    }
  }

  #failed(id: string, error: TidemarkError, failed: Map<string, TidemarkError>): void {
    failed.set(id, error)
    if (error.kind === 'throttled') return
    this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1)
  }

  /** Is it the message, or the service on a bad day? Where others fail too, more failures are needed to tell. */
  #isAtFault(id: string, error: TidemarkError | undefined): boolean {
    const own = this.#failures.get(id) ?? 0
    if (own === 0 || !error || error.kind === 'throttled') return false
    const all = [...this.#failures.values()].reduce((sum, n) => sum + n, 0)
    const chance = (all - own + 1) / (this.#answers - own + 1)
    if (chance ** own > CHANCE_MAX) return false
    this.bad.set(id, error)
    return true
  }

  get #done(): number {
    return this.stored.size + this.gone.size + this.skipped.size + this.bad.size
  }

  #store(messages: FetchedMessage[]): void {
    const { archive } = this.#options.account
    const store = archive.store(messages).then(() => {
      for (const { id, raw } of messages) {
        this.stored.add(id)
        release(raw)
      }
    })
    // Waited for at the end; until then nobody looks, and an early failure must not count as unhandled.
    store.catch(() => {})
    this.#stores.push(store)
  }

  #isWanted({ id, labelIds }: { id: string; labelIds: readonly string[] }): boolean {
    const { account, labels, kept } = this.#options
    return kept.has(id) || isWanted(labelIds, account.choices, (name) => labels.get(name.toLowerCase()))
  }

  /** Halves a group that fails as a whole, until whoever is at fault is alone. */
  async #narrow(group: string[]): Promise<void> {
    if (group.length === 0) return
    if (group.length === 1) return this.#single(group[0]!)
    const middle = Math.ceil(group.length / 2)
    const failing: string[][] = []
    let last: TidemarkError | undefined
    for (const half of [group.slice(0, middle), group.slice(middle)]) {
      this.#narrowCalls += 1
      const { again, failedWhole, error } = await this.#try(half)
      last = error ?? last
      if (again.length > 0) failing.push(again)
      if (failedWhole && failedWhole.length > 0) failing.push(failedWhole)
    }
    // Nothing works, or too much does not: that is an outage and not somebody's fault.
    if (failing.length > 0 && (this.#answeredCalls === 0 || this.#narrowCalls > NARROW_CALLS_MAX)) throw last
    for (const part of failing) await this.#narrow(part)
  }

  async #single(id: string): Promise<void> {
    let last: TidemarkError | undefined
    for (let round = 1; round <= SINGLE_TRIES; round++) {
      await this.#pause(round)
      const { again, failedWhole, error } = await this.#try([id])
      if (again.length === 0 && !failedWhole?.length) return
      last = error
    }
    if (this.#answeredCalls === 0 || last?.kind === 'throttled') throw last
    this.bad.set(id, last!)
  }

  /** Tried again as a job, later; with its last try, those whose answers were named as failing are bad. */
  #giveUp(ids: readonly string[], last: TidemarkError | undefined): void {
    const error = last ?? new TidemarkError('no answer came for some messages', { kind: 'transient' })
    const isLastTry = this.job.job.failures + 1 >= ATTEMPTS
    if (error.kind === 'throttled' || !isLastTry || this.#answeredCalls === 0) throw error
    for (const id of ids) this.bad.set(id, error)
  }

  async #pause(round: number): Promise<void> {
    const ms = this.job.random() * ROUND_PAUSE_MS * 2 ** round
    await sleep(this.job.clock, ms, this.job.signal)
  }
}

/** Memory that is all theirs is given back now, and not when garbage is next collected. */
function release({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

function isDisk(error: TidemarkError): boolean {
  return error.code === 'disk-full' || error.code?.startsWith('shard-') === true
}
