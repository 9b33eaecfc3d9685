/**
 * Fetches a batch of messages and stores them. What can become of an id: stored, gone, skipped (not wanted by its
 * labels), bad with its reason, or left: no answer came, or one that says that it may work later.
 *
 * Nothing is asked for twice in one run. What is left when others came is a job of its own: with as many ids in a
 * request as before where the answers named whom they were about, and with a third of that where a request failed
 * without saying because of whom, until whoever is at fault is alone. Where none came, the job as a whole failed: it
 * waits while Gmail is away (obstacles.ts), is narrowed in the same way, or is tried again by the engine; with its
 * last try, what is left is bad. docs/architecture.md has the table of all who try again.
 *
 * A poison message in a batch of 300 costs 3 + 3 + 3 + 2 requests until it is alone, 5 tries, and 2 questions whether
 * other messages come. On a day on which many messages fail that come later, it has more tries (FailureRate).
 */
import { z } from 'zod'
import { badItemsOf } from '../../app/sources.ts'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { type EnqueueOptions, type Outcome, type RunContext, request } from '../../engine/index.ts'
import { ATTEMPTS } from '../../engine/kinds.ts'
import type { MailAccount } from './account.ts'
import type { BatchPayload, MailKinds } from './kinds.ts'
import type { FetchedMessage } from './message.ts'
import { pastObstacles } from './obstacles.ts'
import { chunksOf, type FailureRate, isWanted } from './plan.ts'
import { noteFetched, noteMark } from './store/missing-messages.ts'
import { forgetStale, noteStale } from './store/stale-labels.ts'
import { noteGone, noteReturned } from './store/tables.ts'

/** Calls in one request to the batch endpoint. */
const GROUP_MAX = 50
const GROUP_MIN = 2
/** A request is worth about this much of the budget: many small ones keep an even pace, and little of one is refused. */
const GROUP_MS = 500
/** Three parts isolate one of 50 with the fewest requests: two of the three come, and need not be asked for again. */
const NARROWING = 3
/** A random time below this, before what failed by itself is asked for again. */
const REST_PAUSE_MS = 1_000
const MORE_TRIES_MS = 5_000
/** What a batch holds back before it is handed on; all workers may hold as much. */
const STORE_BYTES = 1024 * 1024
/** The last word about a message: no later change is newer. */
const LAST_HISTORY_ID = '18446744073709551615'

export async function runFetch(kinds: MailKinds, job: RunContext<BatchPayload>): Promise<Outcome> {
  let fetched: Fetched | undefined
  return await pastObstacles(
    kinds,
    job,
    job.payload.account,
    async () => {
      fetched = await fetchBatch(kinds, job)
      const failure = fetched.run.failure
      if (failure) throw failure
      return await settle(kinds, fetched)
    },
    async () => {
      const failure = fetched?.run.failure
      if (!fetched || !failure || failure.kind === 'throttled') return undefined
      if (job.job.failures + 1 >= ATTEMPTS) {
        const extra = extraTries(job)
        if (ATTEMPTS + extra < kinds.failureRate(job.payload.account).tries)
          return onceMore(job, extra, failure)
        fetched.run.blameLeft()
      } else if (fetched.run.narrowedTo === undefined) return undefined
      return await settle(kinds, fetched)
    },
  )
}

/** Where many fail that come later, a good message may fail in all of its tries: it gets more of them. */
function onceMore(job: RunContext<BatchPayload>, extra: number, { message }: TidemarkError): Outcome {
  return {
    again: { afterMs: job.random() * MORE_TRIES_MS },
    checkpoint: { extraTries: extra + 1 },
    note: `tried again, because many messages fail at times: ${message}`,
  }
}

const Extra = z.object({ extraTries: z.number() })

function extraTries(job: RunContext<BatchPayload>): number {
  return Extra.safeParse(job.checkpoint).data?.extraTries ?? 0
}

type Fetched = {
  account: MailAccount
  run: FetchRun
  startedAtMs: number
  /** How many notes about stale labels there were before the first message was asked for. */
  staleNotes: number
}

async function fetchBatch(kinds: MailKinds, job: RunContext<BatchPayload>): Promise<Fetched> {
  const { payload, clock } = job
  const account = await kinds.accounts.get(payload.account)
  const labels = new Map(
    (await kinds.tables.labels(account.name)).map(({ id, name }) => [name.toLowerCase(), id]),
  )
  const startedMs = clock.monotonicMs()
  const startedAtMs = clock.now()
  const staleNotes = Number((await kinds.tables.findMailbox(account.name))?.stale_notes ?? 0)
  const kept = payload.refresh ? await account.archive.stored(payload.ids) : new Set<string>()
  const run = new FetchRun({
    account,
    job,
    labels,
    kept,
    groupSize: groupSize(kinds, account, job),
    rate: kinds.failureRate(account.name),
  })
  try {
    await run.ask(payload.refresh ? payload.ids : await withoutStored(kinds, account, payload.ids))
  } finally {
    await run.storing()
    kinds.batchSize(account.name).went({ ms: clock.monotonicMs() - startedMs, errors: run.errors })
  }
  return { account, run, startedAtMs, staleNotes }
}

async function settle(
  kinds: MailKinds,
  { account, run, startedAtMs, staleNotes }: Fetched,
): Promise<Outcome> {
  const { job, gone, skipped, bad, left } = run
  const { payload } = job
  await markVanished(kinds, account, run, { startedAtMs, nowMs: job.clock.now() })
  if (job.segment === null && job.job.badId === null) await mendCured(kinds, account, run)
  const stored = payload.ids.filter(
    (id) => !gone.has(id) && !skipped.has(id) && !bad.has(id) && !left.has(id),
  )
  const mark = await account.archive.mark()
  // What is skipped is not stored here: a fetch that began before, with labels of before, may store it still.
  const read = [...run.stored, ...gone]
  const rest = { ...payload, ids: [...left.keys()], perCall: run.narrowedTo ?? payload.perCall }
  return {
    effects: async (tx) => {
      await forgetStale(tx, account.name, { ids: read, upTo: staleNotes })
      await noteFetched(tx, account.name, { stored, gone: [...gone], skipped: [...skipped] })
      await noteMark(tx, account.name, mark)
      await kinds.indexing?.want(tx, account.name, stored)
    },
    stored: stored.length,
    gone: gone.size,
    skipped: skipped.size,
    bad: [...bad].map(([item, error]) => ({ item, reason: error.message, errorKind: error.kind })),
    jobs: [
      ...(left.size === 0 ? [] : [request(kinds.fetch, rest, restOptions(run))]),
      ...(kinds.indexing && stored.length > 0 ? [kinds.indexing.request(account.name)] : []),
    ],
  }
}

/** As urgent as what it is left of. After a failure that a smaller request does not explain, it waits a moment. */
function restOptions({ job, left, narrowedTo }: FetchRun): EnqueueOptions {
  const { lane, priority } = job.job
  const waitsMs = [...left.values()].map(({ retryAfterMs = 0 }) => retryAfterMs)
  const pauseMs = Math.max(narrowedTo === undefined ? job.random() * REST_PAUSE_MS : 0, ...waitsMs)
  return {
    lane,
    priority,
    ...(job.segment === null ? {} : { segment: job.segment }),
    ...(pauseMs > 0 ? { runAt: job.clock.now() + Math.ceil(pauseMs) } : {}),
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

function groupSize(kinds: MailKinds, account: MailAccount, job: RunContext<BatchPayload>): number {
  const { perCall = GROUP_MAX, ids } = job.payload
  const budget = job.limits.snapshot().budgets.find(({ name }) => name === account.units)
  const paced = ((budget?.rate ?? Infinity) * GROUP_MS) / 1000 / kinds.settings.priceOfGet
  return Math.min(perCall, ids.length, Math.max(GROUP_MIN, Math.min(GROUP_MAX, Math.floor(paced))))
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
  const cured = new Set(run.job.payload.ids.filter((id) => !run.bad.has(id) && !run.left.has(id)))
  const rows = (await badItemsOf(ledger, account.stream)).filter(({ item }) => cured.has(item))
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
  rate: FailureRate
}

class FetchRun {
  readonly job: RunContext<BatchPayload>
  readonly gone = new Set<string>()
  readonly skipped = new Set<string>()
  readonly stored = new Set<string>()
  readonly bad = new Map<string, TidemarkError>()
  readonly left = new Map<string, TidemarkError>()
  /** Requests that failed as a whole. */
  errors = 0
  /** Answers that settled a message. */
  #came = 0
  /** A request failed without saying because of whom. */
  #isUnnamed = false
  readonly #options: FetchRunOptions
  readonly #stores: Promise<void>[] = []

  constructor(options: FetchRunOptions) {
    this.#options = options
    this.job = options.job
  }

  async ask(ids: readonly string[]): Promise<void> {
    for (const group of chunksOf(ids, this.#options.groupSize)) await this.#askGroup(group)
  }

  /** Everything given to the archive is on disk. */
  async storing(): Promise<void> {
    await Promise.all(this.#stores)
  }

  /** Why none of those that were asked for came; that the service asked to slow down comes before all else. */
  get failure(): TidemarkError | undefined {
    if (this.#came > 0) return undefined
    const errors = [...this.left.values()]
    return errors.find(({ kind }) => kind === 'throttled') ?? errors.at(-1)
  }

  /** How many are asked for with one request from now on, where fewer may show who is at fault. */
  get narrowedTo(): number | undefined {
    if (!this.#isUnnamed || this.#options.groupSize === 1) return undefined
    return Math.ceil(this.#options.groupSize / NARROWING)
  }

  blameLeft(): void {
    for (const [id, error] of this.left) this.bad.set(id, error)
    this.left.clear()
  }

  async #askGroup(group: readonly string[]): Promise<void> {
    const open = new Set(group)
    let error = new TidemarkError('no answer came for some messages', { kind: 'transient' })
    try {
      await this.#call(group, open)
    } catch (thrown) {
      error = asTidemarkError(thrown)
      this.errors += 1
      if (this.job.signal.aborted || error.kind === 'auth' || isDisk(error)) throw thrown
      // Those that were answered before it broke are stored; the rest may hold the culprit.
      if (error.kind !== 'throttled') this.#isUnnamed = true
    }
    for (const id of open) this.left.set(id, error)
  }

  async #call(group: readonly string[], open: Set<string>): Promise<void> {
    const { account } = this.#options
    await account.archive.room(this.job.signal)
    let got: FetchedMessage[] = []
    let bytes = 0
    let refused: TidemarkError | undefined
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
          if (!answer.ok) {
            if (answer.error.kind === 'auth') refused = answer.error
            this.#failed(answer.id, answer.error)
            return
          }
          this.#settled(answer.id)
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
    } finally {
      flush()
      const done = this.stored.size + this.gone.size + this.skipped.size + this.bad.size
      this.job.progress({ done, total: this.job.payload.ids.length, unit: 'items' })
    }
    if (refused) throw refused
  }

  #failed(id: string, error: TidemarkError): void {
    if (error.kind === 'gone') this.gone.add(id)
    else if (error.kind === 'permanent') this.bad.set(id, error)
    else {
      this.left.set(id, error)
      if (error.kind !== 'throttled') this.#options.rate.failed(id)
      return
    }
    this.#settled(id)
  }

  #settled(id: string): void {
    this.#came += 1
    this.#options.rate.came(id)
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
}

/** Memory that is all theirs is given back now, and not when garbage is next collected. */
function release({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

function isDisk(error: TidemarkError): boolean {
  return error.code === 'disk-full' || error.code?.startsWith('shard-') === true
}
