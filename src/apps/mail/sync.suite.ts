/** A sync in this process: a simulated Gmail, an engine on a ledger of its own, and a real archive. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineIndexing } from '../../app/documents.ts'
import { systemClock } from '../../base/clock.ts'
import { openVault } from '../../base/vault.ts'
import { gmailBudgets } from '../../cloud/gmail/budgets.ts'
import { connectGmail } from '../../cloud/simulated-accounts.suite.ts'
import { createEngine, type Engine } from '../../engine/index.ts'
import { Accounts } from '../../ledger/accounts.ts'
import { openLedger } from '../../ledger/open.ts'
import { TextExtractor } from '../../search/extract/extractor.ts'
import { openSearch, type Search } from '../../search/search.ts'
import { WantedDocuments } from '../../search/wanted.ts'
import { type Sim, type SimOptions, startSim } from '../../sim/start.ts'
import { type MailAccount, type MailAccounts, streamOf } from './account.ts'
import { mailOffer } from './documents.ts'
import { jobsOf, mailKinds } from './jobs.ts'
import type { MailKinds } from './kinds.ts'
import { openMailAccounts } from './open-accounts.ts'
import type { MailSettings } from './settings.ts'
import { MailTables } from './store/tables.ts'

export const ADDRESS = 'ann@example.com'
/** Every month is listed for itself, and every year is a file, and most tests need no more than one. */
const YEARS = 1

export type SyncWorld = {
  sim: Sim
  engine: Engine
  search: Search
  kinds: MailKinds
  tables: MailTables
  accounts: MailAccounts
  account: MailAccount
  /** Plans, lists, fetches and follows, until nothing is left to do. */
  sync(): Promise<void>
  /** One round of the history. */
  follow(): Promise<void>
  status(): Promise<{
    listed: number
    stored: number
    gone: number
    skipped: number
    bad: number
    mark_at: number
  }>
  close(): Promise<void>
}

export type SyncOptions = Partial<MailSettings> & {
  sim?: Partial<SimOptions>
  messages: number
  choices?: Record<string, unknown>
  ledgerUrl?: string
  /** Whether mail is read into the index of its ledger. */
  isIndexed?: boolean
}

export async function startSync(options: SyncOptions): Promise<SyncWorld> {
  const {
    sim: simOptions,
    messages,
    choices = { spam: true, trash: true },
    ledgerUrl,
    isIndexed,
    ...own
  } = options
  const home = mkdtempSync(join(tmpdir(), 'tidemark-sync-'))
  const sim = await startSim({
    ...simOptions,
    gmail: {
      quota: { unitsPerMinute: null },
      accounts: [{ address: ADDRESS, messages, years: YEARS }],
      ...simOptions?.gmail,
    },
  })
  const settings: MailSettings = {
    folder: join(home, 'mail'),
    apiUrl: sim.baseUrl,
    tokenUrl: sim.gmail.tokenUrl,
    unitsPerMinute: 1e8,
    priceOfGet: 20,
    requestsPerSecond: { start: 5_000, max: 5_000 },
    workers: { start: 8, max: 8 },
    slice: 'auto',
    sliceByLabel: undefined,
    batch: 300,
    sinceMs: undefined,
    shardBy: 'year',
    shardBytesMax: 4e9,
    metadataBytesMax: 1e9,
    ...own,
  }
  const ledger = await openLedger(ledgerUrl ?? `sqlite:${join(home, 'ledger.db')}`)
  const rows = await Accounts.open(ledger)
  const tables = await MailTables.open(ledger)
  const vault = await openVault({ env: {}, home })
  await connectGmail({ accounts: rows, vault, sim }, ADDRESS, { settings: choices })
  let engine: Engine | undefined
  const accounts = await openMailAccounts({
    accounts: rows,
    ledger,
    tables,
    vault,
    settings,
    fetch: globalThis.fetch,
    clock: systemClock,
    newArchiveId: () => 'archive-1',
    limits: () => engine?.limits,
  })
  const search = openSearch({ ledger })
  const extractor = new TextExtractor({ clock: systemClock })
  const indexing = isIndexed
    ? defineIndexing({
        offer: mailOffer({ accounts, tables }),
        wanted: await WantedDocuments.open(ledger),
        search: { open: async () => search, extractor: async () => extractor },
      })
    : undefined
  const kinds = mailKinds({ accounts, tables, ledger, clock: systemClock, settings, indexing })
  engine = await createEngine({ ledger, jobs: jobsOf(kinds), budgets: gmailBudgets([ADDRESS], settings) })
  const running = engine
  await running.start()
  const stream = streamOf(ADDRESS)
  const enqueue = async (kind: MailKinds['plan']): Promise<void> => {
    await running.enqueue(kind, { account: ADDRESS }, { stream })
    await running.drained()
  }
  return {
    sim,
    engine,
    search,
    kinds,
    tables,
    accounts,
    account: await accounts.get(ADDRESS),
    async sync() {
      await enqueue(kinds.plan)
      await enqueue(kinds.history)
    },
    follow: () => enqueue(kinds.history),
    status: async () => (await ledger.streams()).find(({ name }) => name === stream)!,
    async close() {
      await running.stop()
      await extractor.close()
      await search.close()
      await accounts.close()
      await ledger.close()
      await sim.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}
