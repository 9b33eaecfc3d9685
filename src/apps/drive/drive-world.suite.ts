/** A Drive index in this process: a simulated Google Drive, an engine on a ledger of its own, and a real index. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import { openVault } from '../../base/vault.ts'
import { DRIVE_SCOPE } from '../../cloud/drive/auth.ts'
import { createEngine, type Engine } from '../../engine/index.ts'
import { Accounts, accountKey } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import type { Embedder } from '../../search/embed/embedder.ts'
import { TextExtractor } from '../../search/extract/extractor.ts'
import { openSearch, type Search } from '../../search/search.ts'
import { type Sim, type SimOptions, startSim } from '../../sim/start.ts'
import { SERVICE, streamOf } from './account.ts'
import { driveKinds, jobsOf } from './jobs.ts'
import type { DriveKinds } from './kinds.ts'
import { driveBudgets, openDriveAccounts } from './open-accounts.ts'
import type { DriveSettings } from './settings.ts'
import { type DriveStatus, driveStatus } from './status.ts'
import { wantListing } from './store/feeds.ts'
import { DOMAIN } from './store/schema.ts'
import { DriveTables } from './store/tables.ts'

export const ANN = 'ann@example.com'
export const BOB = 'bob@example.com'
export const CAT = 'cat@example.com'

/** The machine's clock, which can be put forward. */
export class ShiftedClock implements Clock {
  aheadMs = 0
  now = (): number => systemClock.now() + this.aheadMs
  monotonicMs = (): number => systemClock.monotonicMs()
  watchLoop = (): ReturnType<Clock['watchLoop']> => systemClock.watchLoop()
  timer: Clock['timer'] = (ms, fn, options) => systemClock.timer(ms, fn, options)
}

export const DATABASES = ['sqlite', 'postgres'] as const

export type DriveWorldOptions = {
  users?: readonly string[]
  /** Those that are connected; all of them if left out. */
  connected?: readonly string[]
  drive?: SimOptions['drive']
  sim?: Partial<SimOptions>
  ledgerUrl?: string
  /** A new one of this kind, which goes with the world. SQLite if left out, and where `ledgerUrl` says nothing else. */
  database?: (typeof DATABASES)[number]
  settings?: Partial<DriveSettings>
  embedder?: Embedder
}

export class DriveTestWorld {
  readonly sim: Sim
  readonly clock: ShiftedClock
  readonly home: string
  readonly settings: DriveSettings
  ledger!: Ledger
  engine!: Engine
  kinds!: DriveKinds
  tables!: DriveTables
  search!: Search
  accounts!: Accounts
  readonly ledgerUrl: string
  onClose: () => Promise<void> = async () => {}
  readonly #embedder: Embedder | undefined
  #extractor: TextExtractor | undefined

  constructor(sim: Sim, clock: ShiftedClock, options: DriveWorldOptions) {
    this.sim = sim
    this.clock = clock
    this.home = mkdtempSync(join(tmpdir(), 'tidemark-drive-'))
    this.ledgerUrl = options.ledgerUrl ?? `sqlite:${join(this.home, 'ledger.db')}`
    this.#embedder = options.embedder
    this.settings = {
      apiUrl: sim.baseUrl,
      tokenUrl: sim.drive.tokenUrl,
      unitsPerMinute: 1e9,
      workersMax: 8,
      folderCheckMs: 0,
      relistMs: 1e12,
      documentBytesMax: 10e6,
      ...options.settings,
    }
  }

  get drive(): Sim['drive'] {
    return this.sim.drive
  }

  get world(): Sim['drive']['world'] {
    return this.sim.drive.world
  }

  /** Opens everything on the same ledger, as a process that starts. */
  async open(): Promise<void> {
    const { clock, settings } = this
    this.ledger = await openLedger(this.ledgerUrl, { clock })
    this.accounts = await Accounts.open(this.ledger)
    this.tables = await DriveTables.open(this.ledger)
    this.search = openSearch({ ledger: this.ledger, ...(this.#embedder && { embedder: this.#embedder }) })
    const vault = await openVault({ env: {}, home: this.home })
    let engine: Engine | undefined
    const accounts = await openDriveAccounts({
      accounts: this.accounts,
      vault,
      settings,
      clock,
      fetch: globalThis.fetch,
      limits: () => engine?.limits,
    })
    const extractor = new TextExtractor({ clock })
    this.#extractor = extractor
    this.kinds = driveKinds({
      accounts,
      clock,
      settings,
      tables: this.tables,
      index: async () => {
        await this.search.prepare()
        return this.search
      },
      extractor: async () => extractor,
    })
    const budgets = driveBudgets(accounts.names(), settings)
    engine = await createEngine({ ledger: this.ledger, jobs: jobsOf(this.kinds), budgets, clock })
    this.engine = engine
    await engine.start()
  }

  async connect(address: string): Promise<void> {
    const vault = await openVault({ env: {}, home: this.home })
    const { refreshToken } = this.drive.issue(address, [DRIVE_SCOPE])
    const { clientId, clientSecret } = this.drive
    const secret = {
      kind: 'oauth',
      clientId,
      clientSecret,
      refreshToken,
      scopes: [DRIVE_SCOPE],
      obtainedAtMs: this.clock.now(),
    }
    const row = { service: SERVICE, name: address }
    const sealed = vault.seal(accountKey(row), JSON.stringify(secret))
    await this.accounts.add({ ...row, settings: {}, sealed })
    await this.kinds.accounts.reload()
  }

  get names(): readonly string[] {
    return this.kinds.accounts.names()
  }

  /** As `tidemark drive sync`: begins, waits, follows, waits. */
  async sync(...names: string[]): Promise<void> {
    const wanted = names.length > 0 ? names : this.names
    for (let round = 0; round < 2; round++) {
      for (const account of wanted) {
        const stream = streamOf(account)
        await this.engine.streams.open(stream)
        await this.engine.enqueue(this.kinds.sync, { account }, { stream })
      }
      await this.engine.drained()
    }
  }

  /** The same, with everything listed anew. */
  async relist(...names: string[]): Promise<void> {
    await this.ledger.transaction(async (tx) => {
      for (const account of names.length > 0 ? names : this.names) await wantListing(tx, account)
    })
    await this.sync(...names)
  }

  /** What everybody of the domain may find is told to nobody: it is listed as often as folders are compared. */
  async wantDomain(): Promise<void> {
    await this.ledger.transaction(async (tx) => {
      for (const account of this.names) await wantListing(tx, account, DOMAIN)
    })
  }

  /** Ids of what a person finds in the index. */
  async seen(address: string): Promise<string[]> {
    const refs: string[] = []
    for (let page = 0; page < 1_000; page++) {
      const more = await this.search.refs({
        source: SERVICE,
        principal: streamOf(address),
        after: refs.at(-1) ?? '',
        limit: 500,
      })
      refs.push(...more)
      if (more.length < 500) break
    }
    const found: string[] = []
    for (const ref of refs) {
      // What has expired is still a row, and found by nobody.
      const id = await this.search.find({ source: SERVICE, ref }, { principals: [streamOf(address)] })
      if (id !== undefined) found.push(ref)
    }
    return found.sort()
  }

  /** Ids of what Drive itself lets a person find. */
  truth(address: string): string[] {
    return [...(this.drive.whoSees()[address]?.find ?? [])].sort()
  }

  async found(address: string, text: string): Promise<string[]> {
    const answer = await this.search.search({
      text,
      reader: { principals: [streamOf(address)] },
      mode: 'words',
      limit: 50,
      nowMs: this.clock.now(),
      signal: new AbortController().signal,
    })
    return answer.hits.map(({ title }) => title.map((piece) => piece.text).join('')).sort()
  }

  async status(address: string): Promise<DriveStatus> {
    return (await driveStatus(this.ledger, this.tables, [address]))[0]!
  }

  async stop(): Promise<void> {
    await this.engine.stop()
    await this.#extractor?.close()
    await this.ledger.close()
  }

  async close(): Promise<void> {
    await this.stop()
    await this.onClose()
    await this.sim.close()
    rmSync(this.home, { recursive: true, force: true })
  }
}

export async function startDriveWorld(options: DriveWorldOptions = {}): Promise<DriveTestWorld> {
  const { users = [ANN, BOB], database } = options
  const own = database === 'postgres' ? await freshDatabase() : undefined
  const clock = new ShiftedClock()
  const sim = await startSim({
    clock,
    ...options.sim,
    drive: { users: [...users], documents: 0, quota: { unitsPerMinute: null }, ...options.drive },
  })
  const world = new DriveTestWorld(sim, clock, { ...options, ...(own && { ledgerUrl: own.url }) })
  world.onClose = async () => own?.drop()
  await world.open()
  for (const user of options.connected ?? users) await world.connect(user)
  return world
}
