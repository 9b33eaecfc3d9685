/** A simulated Gmail, a real archive and an engine on SQLite, with the clean-up's jobs and ways to disturb them. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { z } from 'zod'
import { systemClock } from '../../../base/clock.ts'
import { TidemarkError } from '../../../base/errors.ts'
import { unitsOf } from '../../../cloud/gmail/budgets.ts'
import { GmailClient } from '../../../cloud/gmail/client.ts'
import { pricesOf } from '../../../cloud/gmail/prices.ts'
import { createEngine, type Engine } from '../../../engine/engine.ts'
import { defineJob } from '../../../engine/kinds.ts'
import { openLedger } from '../../../ledger/open.ts'
import type { Mailbox } from '../../../sim/gmail/mailbox.ts'
import { startSim } from '../../../sim/start.ts'
import { type MailAccount, mailChoices, streamOf } from '../account.ts'
import type { FetchedMessage } from '../message.ts'
import type { Obstacles } from '../obstacles.ts'
import { openArchive } from '../store/archive.ts'
import type { Archive } from '../store/contract.ts'
import type { NewRun } from '../store/journal.ts'
import { noteStale } from '../store/stale-labels.ts'
import { MailTables, noteLabels } from '../store/tables.ts'
import { cleanUpJobs } from './jobs.ts'
import type { CleanUpPoint } from './kinds.ts'
import { CleanUpRuns } from './runs.ts'

export const ADDRESS = 'ann@example.com'
const DAY_MS = 86_400_000
export const CUTOFF_MS = Date.UTC(2020, 0, 1)
/** Everything that is synced lies below it. */
export const MARK_S = Date.UTC(2024, 0, 1) / 1000

export type BenchOptions = {
  /** Messages before and after the cutoff, all in the inbox. */
  old: number
  young: number
  markS?: number
  /** Throws once at each of these, in this order. */
  crashAt?: readonly CleanUpPoint[]
  /** Stays there until it is let go. */
  stuckAt?: CleanUpPoint
  scopes?: readonly string[]
  /** Two of the old ones have the same bytes. */
  twins?: boolean
  /** The ledger is there instead of in a file. */
  ledgerUrl?: string
  /** With these, an outage is waited out. */
  obstacles?: Obstacles
  patienceMs?: number
  /** How much later than they arrived their Date headers are. */
  headerLateMs?: number
}

export type Bench = {
  engine: Engine
  runs: CleanUpRuns
  mailbox: Mailbox
  account: MailAccount
  tables: MailTables
  ids: readonly string[]
  oldIds: readonly string[]
  readonly crashes: number
  stuck: Promise<void>
  unstick(): void
  /** Calls that the service took, by name. */
  calls(method: string): number
  /** The next calls of a method work, and their answers get lost. */
  loseAnswers(method: string, times: number): void
  failWith(error: TidemarkError | undefined): void
  setMark(markS: number): Promise<void>
  registerBad(id: string): Promise<void>
  importMessage(): Promise<string>
  /** Up to where the archive knows the history. */
  /** More fetches than there are workers, and none of them ends. */
  keepBusy(): Promise<void>
  setCursor(historyId: string): Promise<void>
  /** Their labels in the archive are not those of the cursor. */
  noteStale(ids: readonly string[]): Promise<void>
  resync(): Promise<void>
  /** Every shard as it was before: put back from a backup. */
  putBackAfter(change: () => Promise<void>): Promise<void>
}

export function wantedRun(change: Partial<NewRun> = {}): NewRun {
  return {
    account: ADDRESS,
    action: 'unlabel',
    label: (change.action ?? 'unlabel') === 'unlabel' ? 'INBOX' : null,
    query: '',
    cutoffMs: CUTOFF_MS,
    messagesMax: null,
    approved: true,
    ...change,
  }
}

export function labelsOf({ mailbox, ids }: Pick<Bench, 'mailbox' | 'ids'>): Map<string, string[] | null> {
  return new Map(
    ids.map((id) => {
      const message = mailbox.get(id)
      return [id, message ? [...message.labelIds].sort() : null]
    }),
  )
}

/** As it is sent: its Date header says when it was received. */
function mail(number: number, internalMs: number, lateMs = 0): Buffer {
  const date = new Date(internalMs + lateMs).toUTCString().replace('GMT', '+0000')
  const head = `From: Bob <bob@example.com>\r\nTo: ${ADDRESS}\r\nDate: ${date}\r\nMessage-ID: <m${number}@example.com>\r\n`
  return Buffer.from(`${head}Subject: number${number}\r\n\r\nThe text of message ${number}.\r\n`)
}

/** Crashes, hangs and lost answers, where a test wants them. */
class Disturbance {
  crashes = 0
  failing: TidemarkError | undefined
  readonly calls = new Map<string, number>()
  readonly stuck: Promise<void>
  unstick: () => void = () => {}
  readonly #crashAt: CleanUpPoint[]
  #stuckAt: CleanUpPoint | undefined
  #onStuck: () => void = () => {}
  readonly #losing = new Map<string, number>()

  constructor({ crashAt = [], stuckAt }: BenchOptions) {
    this.#crashAt = [...crashAt]
    this.#stuckAt = stuckAt
    this.stuck = new Promise((resolve) => {
      this.#onStuck = resolve
    })
  }

  lose(method: string, times: number): void {
    this.#losing.set(method, times)
  }

  readonly point = async (name: CleanUpPoint): Promise<void> => {
    if (this.failing) throw this.failing
    if (this.#crashAt[0] === name) {
      this.#crashAt.shift()
      this.crashes += 1
      throw new TidemarkError(`a crash when ${name}`, { kind: 'transient' })
    }
    if (this.#stuckAt !== name) return
    this.#stuckAt = undefined
    const free = new Promise<void>((resolve) => {
      this.unstick = resolve
    })
    this.#onStuck()
    await free
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const method = /\/messages\/(batch\w+)/.exec(String(input))?.[1] ?? ''
    const response = await globalThis.fetch(input, init)
    this.calls.set(method, (this.calls.get(method) ?? 0) + 1)
    const losing = this.#losing.get(method) ?? 0
    if (losing === 0) return response
    this.#losing.set(method, losing - 1)
    await response.arrayBuffer()
    throw new TypeError('fetch failed')
  }
}

/** Of a fetch that goes on until the engine stops. */
export const ENDLESS = 'endless'

/** Stands for a fetch that gave a message up. */
const hopeless = defineJob({
  kind: 'mail.fetch',
  payload: z.object({ ids: z.array(z.string()) }),
  items: { of: ({ ids }) => ids, only: (_payload, ids) => ({ ids: [...ids] }) },
  lane: 'bulk',
  priority: 1,
  run: async ({ payload, signal }) => {
    if (payload.ids[0] === ENDLESS) await once(signal, 'abort')
    throw new TidemarkError('cannot be fetched', { kind: 'permanent' })
  },
})

export async function cleanUpBench(t: TestContext, options: BenchOptions): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-clean-up-'))
  const sim = await startSim({ gmail: { accounts: [{ address: ADDRESS, messages: 0 }] } })
  const mailbox = sim.gmail.mailbox(ADDRESS)
  const { ids, oldIds } = fill(mailbox, options)
  const disturbance = new Disturbance(options)
  const token = options.scopes
    ? sim.gmail.issue(ADDRESS, options.scopes).accessToken
    : sim.gmail.accounts[0]!.accessToken
  const account = await openAccount({ folder, apiUrl: sim.baseUrl, token, fetch: disturbance.fetch })
  const accounts = {
    names: () => [ADDRESS],
    connected: () => [ADDRESS],
    addLocal: async () => account,
    get: async () => account,
    budget: () => unitsOf(ADDRESS),
    reload: async () => {},
    close: async () => {},
  }
  const ledger = await openLedger(options.ledgerUrl ?? `sqlite:${join(folder, 'ledger.db')}`)
  const tables = await MailTables.open(ledger)
  await tables.mailbox(ADDRESS, () => 'archive-1')
  const { obstacles, patienceMs } = options
  const deps = { accounts, clock: systemClock, ...(obstacles ? { obstacles } : {}) }
  const jobs = [hopeless, ...cleanUpJobs({ ...deps, ledger, point: disturbance.point })]
  // Tried again at once: the delay is this share of a second.
  const engine = await createEngine({
    ledger,
    jobs,
    random: () => 0.001,
    budgets: { [unitsOf(ADDRESS)]: { rate: 1_000_000 } },
  })
  t.after(async () => {
    disturbance.unstick()
    await engine.stop()
    await ledger.close()
    await account.archive.close()
    await sim.close()
    rmSync(folder, { recursive: true, force: true })
  })
  await engine.start()
  await settle(engine, options.markS ?? MARK_S)
  const setCursor = async (historyId: string): Promise<void> => {
    await engine.transaction((tx) =>
      tx.run('UPDATE streams SET cursor = ? WHERE name = ?', [historyId, account.stream]),
    )
  }
  const resync = async (): Promise<void> => {
    const { historyId } = await account.client.profile()
    await storeAll(account.archive, mailbox)
    await setCursor(historyId)
    const labels = await account.client.labels()
    await engine.transaction((tx) => noteLabels(tx, ADDRESS, labels))
  }
  await resync()
  return {
    engine,
    mailbox,
    account,
    tables,
    ids,
    oldIds,
    resync,
    runs: new CleanUpRuns(engine, { ...deps, ...(patienceMs === undefined ? {} : { patienceMs }) }),
    get crashes() {
      return disturbance.crashes
    },
    stuck: disturbance.stuck,
    unstick: () => disturbance.unstick(),
    calls: (method) => disturbance.calls.get(method.replace('messages.', '')) ?? 0,
    loseAnswers: (method, times) => disturbance.lose(method.replace('messages.', ''), times),
    failWith: (error) => {
      disturbance.failing = error
    },
    setMark: async (markS) => {
      await engine.transaction((tx) =>
        tx.run('UPDATE streams SET mark_at = ? WHERE name = ?', [markS, account.stream]),
      )
    },
    registerBad: async (id) => {
      await engine.enqueue(hopeless, { ids: [id] }, { stream: account.stream })
      await engine.drained()
    },
    keepBusy: async () => {
      await engine.enqueueMany(
        hopeless,
        Array.from({ length: 100 }, () => ({ ids: [ENDLESS] })),
        { stream: account.stream },
      )
    },
    setCursor,
    putBackAfter: (change) => putBackAfter(account, folder, change),
    noteStale: (some) => engine.transaction((tx) => noteStale(tx, ADDRESS, some)),
    importMessage: async () => {
      const id = 'import-1'
      const about = { threadId: id, historyId: '0', labelIds: ['INBOX'], internalMs: CUTOFF_MS - DAY_MS }
      await account.archive.store([{ id, ...about, raw: mail(5_000, about.internalMs), source: 'import' }])
      return id
    },
  }
}

function fill(mailbox: Mailbox, options: BenchOptions): { ids: string[]; oldIds: string[] } {
  const insert = (number: number, internalMs: number): string =>
    mailbox.insert({
      raw: mail(number, internalMs, options.headerLateMs),
      labelIds: ['INBOX', 'UNREAD'],
      internalMs,
    }).id
  const oldIds = Array.from({ length: options.old }, (_, n) => {
    const number = options.twins && n === 1 ? 0 : n
    return insert(number, CUTOFF_MS - (options.old - number) * 30 * DAY_MS)
  })
  const young = Array.from({ length: options.young }, (_, n) =>
    insert(1_000 + n, CUTOFF_MS + (n + 1) * DAY_MS),
  )
  return { ids: [...oldIds, ...young], oldIds }
}

async function openAccount(input: {
  folder: string
  apiUrl: string
  token: string
  fetch: typeof globalThis.fetch
}): Promise<MailAccount> {
  const client = new GmailClient({
    fetch: input.fetch,
    clock: systemClock,
    apiUrl: input.apiUrl,
    token: { access: async () => input.token, refused: () => {} },
    pace: (call, fn) => fn(call.signal),
    prices: pricesOf('current'),
  })
  return {
    name: ADDRESS,
    stream: streamOf(ADDRESS),
    units: unitsOf(ADDRESS),
    choices: mailChoices.parse({}),
    client,
    archive: await openIn(input.folder),
  }
}

function openIn(folder: string): Promise<Archive> {
  return openArchive({
    folder: join(folder, 'archive'),
    account: ADDRESS,
    archiveId: 'test-archive',
    shardBy: 'year',
    shardBytesMax: 1e9,
    now: () => systemClock.now(),
  })
}

async function putBackAfter(
  account: MailAccount,
  folder: string,
  change: () => Promise<void>,
): Promise<void> {
  const files = (await account.archive.shards()).map(({ file }) => file)
  await account.archive.close()
  for (const file of files) copyFileSync(file, `${file}-copy`)
  account.archive = await openIn(folder)
  await change()
  await account.archive.close()
  for (const file of files) copyFileSync(`${file}-copy`, file)
  account.archive = await openIn(folder)
}

/** As a sync leaves it: everything before the mark is settled. */
async function settle(engine: Engine, markS: number): Promise<void> {
  const stream = await engine.streams.open(streamOf(ADDRESS))
  await engine.write({
    segments: [{ streamId: stream.id, from: 0, to: markS, ref: 'all' }],
    counts: [{ segment: 'all', seal: true }],
  })
}

async function storeAll(archive: Archive, mailbox: Mailbox): Promise<void> {
  const messages = [...mailbox.dump()].flatMap(({ id, deleted }): FetchedMessage[] => {
    const message = deleted ? undefined : mailbox.get(id)
    if (!message) return []
    const { threadId, historyId, internalMs, labelIds } = message
    const raw = new Uint8Array(message.raw())
    return [
      {
        id,
        threadId,
        historyId: String(historyId),
        labelIds: [...labelIds],
        internalMs,
        raw,
        source: 'gmail',
      },
    ]
  })
  await archive.store(messages)
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** A run from its start to its end. */
export async function ran(bench: Bench, change: Partial<NewRun> = {}) {
  return finished(bench, (await bench.runs.start(wantedRun(change))).id)
}

/** An undo to its end. */
export async function undone(bench: Bench, { id }: { id: number }, options: { keepDates?: boolean } = {}) {
  await bench.runs.undo(id, options)
  const end = await bench.runs.wait(id, { undo: true })
  assert.equal(end.end, 'done')
  return end.run
}

/** Runs to the end, whatever is needed: with approval, and past failures. */
export async function finished(bench: Bench, id: number) {
  const end = await bench.runs.wait(id)
  assert.equal(end.end, 'done', JSON.stringify(end))
  return end.run
}

/** What the mailbox holds, by content: ids change when something is inserted again. */
export function contentsOf({ mailbox }: Bench): string[] {
  return [...mailbox.dump()]
    .filter(({ deleted }) => !deleted)
    .map((message) => `${message.sha256()} ${message.internalMs} ${[...message.labels].sort().join()}`)
    .sort()
}

/** Changes one stored message's bytes behind the archive's back. */
export async function tamper(bench: Bench, id: string): Promise<void> {
  const raw = '(SELECT raw FROM bodies b JOIN messages m USING (pos) WHERE m.id <> $id LIMIT 1)'
  await behindItsBack(
    bench,
    id,
    `UPDATE bodies SET raw = ${raw} WHERE pos = (SELECT pos FROM messages WHERE id = $id)`,
  )
}

/** Its labels are no list any more. */
export async function damageLabels(bench: Bench, id: string): Promise<void> {
  await behindItsBack(bench, id, `UPDATE messages SET labels = '["INB' WHERE id = $id`)
}

async function behindItsBack({ account }: Bench, id: string, sql: string): Promise<void> {
  const { shard } = (await account.archive.message(id))!
  const info = (await account.archive.shards()).find(({ name }) => name === shard)!
  const db = new DatabaseSync(info.file)
  try {
    db.exec('PRAGMA busy_timeout = 5000')
    const changed = db.prepare(sql).run({ id })
    assert.equal(changed.changes, 1)
  } finally {
    db.close()
  }
}
