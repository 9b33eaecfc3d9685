/** A simulated OneDrive, a folder, a ledger, and the sync as something that ends and begins again. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLibsql } from '../../scripts/libsql.ts'
import { freshDatabase } from '../../scripts/test-database.ts'
import {
  type FilesSettings,
  type FolderPairSettings,
  folderPairSettings,
  streamOf,
} from '../../src/apps/files/folder-pair.ts'
import { type FileSync, openFileSync } from '../../src/apps/files/index.ts'
import type { OpenFiles } from '../../src/apps/files/runtime.ts'
import type { OpenNode } from '../../src/apps/files/store/contract.ts'
import { addSimulatedPair, strandedNodes } from '../../src/apps/files/store/file-store.suite.ts'
import { FileStore, setFolderPair } from '../../src/apps/files/store/file-store.ts'
import { changeSettings } from '../../src/apps/files/store/filter-change.ts'
import { simulatedSettings } from '../../src/apps/files/sync.suite.ts'
import { tidyTrash } from '../../src/apps/files/work.ts'
import { type Clock, sleep, systemClock } from '../../src/base/clock.ts'
import { systemRandom } from '../../src/base/random.ts'
import { openVault } from '../../src/base/vault.ts'
import { connectOneDrive } from '../../src/cloud/simulated-accounts.suite.ts'
import { createEngine, type Engine } from '../../src/engine/index.ts'
import { Accounts } from '../../src/ledger/accounts.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { SimDrive } from '../../src/sim/onedrive/sim-drive.ts'
import { type Sim, startSim } from '../../src/sim/start.ts'
import { beginChild, type Life } from './child-life.ts'
import { severable } from './severed.ts'

/** Where the ledger is kept. On PostgreSQL, and in a file, several processes can share it. */
export type Database = 'memory' | 'file' | 'postgres' | 'libsql'

export const ACCOUNT = 'ann@example.com'
export const PAIR = 'home'

/** Waiting is most of what a sync does under faults: its time runs faster than ours. */
const SPEED = 100
/** Far more deletions than a history has: the guard against big ones has tests of its own. */
export const DELETES_ALLOWED = 1_000_000
/** By that clock: a machine that is busy must not lose it. */
const LEASE_MS = 3_600_000
const LOOK_MS = 2

export class FastClock implements Clock {
  skewMs = 0
  onStep: () => void = () => {}
  /** The same for all processes of a history: time goes on where the last one was. */
  readonly epochMs: number

  constructor(epochMs: number = systemClock.now()) {
    this.epochMs = epochMs
  }

  now(): number {
    this.onStep()
    return this.epochMs + this.skewMs + (systemClock.now() - this.epochMs) * SPEED
  }

  monotonicMs(): number {
    return systemClock.monotonicMs() * SPEED
  }

  watchLoop(): ReturnType<Clock['watchLoop']> {
    const watch = systemClock.watchLoop()
    return { endMs: () => watch.endMs() * SPEED }
  }

  timer(ms: number, fn: () => void, options?: { keepAlive?: boolean }): () => void {
    return systemClock.timer(ms / SPEED, fn, options)
  }
}

export class OracleWorld {
  readonly sim: Sim
  readonly drive: SimDrive
  readonly ledger: Ledger
  readonly store: FileStore
  readonly root: string
  readonly home: string
  /** Told at every step that the sync takes: a question to the ledger, to OneDrive, or to the clock. */
  onStep: () => void = () => {}
  readonly clock: FastClock
  readonly #place: Place

  private constructor(parts: {
    sim: Sim
    ledger: Ledger
    store: FileStore
    root: string
    home: string
    clock: FastClock
    place: Place
  }) {
    this.clock = parts.clock
    this.#place = parts.place
    this.clock.onStep = () => this.onStep()
    this.sim = parts.sim
    this.drive = parts.sim.onedrive.drive(ACCOUNT)
    this.ledger = parts.ledger
    this.store = parts.store
    this.root = parts.root
    this.home = parts.home
    const { faults } = parts.sim
    const plan = faults.plan.bind(faults)
    faults.plan = (call) => {
      this.onStep()
      return plan(call)
    }
  }

  static async start(options: { seed: number; database?: Database }): Promise<OracleWorld> {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-oracle-'))
    const type = options.seed % 3 === 0 ? 'business' : 'personal'
    const sim = await startSim({ seed: options.seed, onedrive: { drives: [{ account: ACCOUNT, type }] } })
    const clock = new FastClock()
    const place = await freshPlace(home, options.database ?? 'memory')
    const ledger = await openLedger(place.url, { clock, synchronous: 'NORMAL' })
    const accounts = await Accounts.open(ledger)
    const vault = await openVault({ env: {}, home })
    await connectOneDrive({ accounts, vault, sim }, ACCOUNT)
    const store = await FileStore.open(ledger)
    const drive = sim.onedrive.drive(ACCOUNT)
    const { root } = await addSimulatedPair(store, { name: PAIR, drive, home })
    await store.write((tx) => setFolderPair(tx, PAIR, { forcedDeletes: DELETES_ALLOWED }))
    return new OracleWorld({ sim, ledger, store, root: root.path, home, clock, place })
  }

  /** In this process: fast, and its crash is that of severed.ts. */
  async begin(): Promise<Life> {
    const { driver, sever, isSevered } = severable(this.ledger.driver, () => this.onStep())
    const ledger = new Ledger(driver, { random: systemRandom })
    const { engine, files, close } = await startSync({ ...this.#parts(), ledger })
    let asking = Promise.resolve()
    return {
      sync: () => {
        asking = Promise.all([asking, askForSync(engine, files)]).then(
          () => {},
          () => {},
        )
      },
      settled: async (untilMs) => {
        await asking
        return untilSettled(engine, files, { untilMs, isOver: isSevered })
      },
      crash: sever,
      end: async () => {
        sever()
        const { owner } = engine
        await close()
        await this.ledger.retire(owner)
      },
    }
  }

  /** As a process of its own, on a ledger in a file. */
  beginProcess(settleMsMax: number): Promise<Life> {
    const { skewMs, epochMs } = this.clock
    const { url } = this.#place
    const options = { home: this.home, url, settings: settingsOf(this.sim), skewMs, epochMs, settleMsMax }
    return beginChild(options, () => this.onStep())
  }

  #parts(): SyncParts {
    return { home: this.home, ledger: this.ledger, clock: this.clock, settings: settingsOf(this.sim) }
  }

  /** As `tidemark files set` does it: who syncs takes it up with the next look at the folder. */
  async change(settings: Partial<FolderPairSettings>): Promise<void> {
    const row = await this.store.folderPair(PAIR)
    const changed = { ...folderPairSettings.parse(JSON.parse(row.settings)), ...settings }
    await this.store.write((tx) => changeSettings(tx, row, changed))
  }

  /** As a sync does it at its end, by whatever the clock says. */
  async tidy(): Promise<void> {
    const files = { store: this.store, settings: settingsOf(this.sim) } as OpenFiles
    await tidyTrash({ files }, await this.store.folderPair(PAIR), this.clock.now())
  }

  async close(): Promise<void> {
    await this.ledger.close()
    await this.#place.remove()
    await this.sim.close()
    rmSync(this.home, { recursive: true, force: true })
  }
}

type Place = { url: string; remove(): Promise<void> }

async function freshPlace(home: string, database: Database): Promise<Place> {
  if (database === 'postgres') {
    const { url, drop } = await freshDatabase()
    return { url, remove: drop }
  }
  if (database === 'libsql') {
    const { url, stop } = await startLibsql()
    return { url, remove: stop }
  }
  const url = database === 'memory' ? 'sqlite::memory:' : `sqlite:${join(home, 'ledger.db')}`
  return { url, remove: async () => {} }
}

export type SyncParts = { home: string; ledger: Ledger; clock: Clock; settings: FilesSettings }

export async function startSync({ home, ledger, clock, settings }: SyncParts): Promise<{
  engine: Engine
  files: FileSync
  close: () => Promise<void>
}> {
  const accounts = await Accounts.open(ledger)
  const vault = await openVault({ env: {}, home })
  let engine: Engine | undefined
  const files = await openFileSync({
    ledger,
    accounts,
    vault,
    fetch: globalThis.fetch,
    clock,
    settings,
    engine: () => engine,
  })
  engine = await createEngine({
    ledger,
    jobs: files.jobs,
    budgets: files.budgets(),
    workers: 32,
    clock,
    leaseMs: LEASE_MS,
  })
  const started = engine
  await started.streams.open(streamOf(PAIR))
  await started.start()
  const close = async (): Promise<void> => {
    await started.stop()
    await files.close()
  }
  return { engine: started, files, close }
}

export async function askForSync(engine: Engine, files: FileSync): Promise<void> {
  await engine.enqueue(files.kinds.sync, { drive: PAIR }, { stream: streamOf(PAIR) })
}

/** No job is left, and no node that a plan would take. */
export async function untilSettled(
  engine: Engine,
  { store }: FileSync,
  { untilMs, isOver }: { untilMs: number; isOver: () => boolean },
): Promise<boolean> {
  while (!isOver()) {
    const open = await idleNodes(engine, store).catch(() => undefined)
    if (open) return checkWaits(open)
    if (systemClock.monotonicMs() > untilMs) throw new Error(`not settled: ${await describe(engine, store)}`)
    await sleep(systemClock, LOOK_MS)
  }
  return false
}

/** Nobody is left waiting for something that does not move: a sync would say that it is not finished. */
function checkWaits(open: readonly OpenNode[]): true {
  const stranded = strandedNodes(open)
  if (stranded.length > 0) throw new Error(`nobody is going to wake ${JSON.stringify(stranded)}`)
  return true
}

/** What is open where nothing is left to do. */
async function idleNodes(engine: Engine, store: FileStore): Promise<OpenNode[] | undefined> {
  return (await isIdle(engine, store)) ? store.openNodes(PAIR, { limit: 100_000 }) : undefined
}

async function isIdle(engine: Engine, store: FileStore): Promise<boolean> {
  for (const state of ['pending', 'claimed'] as const) {
    if ((await engine.ledger.jobs({ state, stream: streamOf(PAIR), limit: 1 })).length > 0) return false
  }
  const { unplanned, inWork } = await store.openCounts(PAIR)
  if (unplanned + inWork === 0) return true
  // A look that was given up under faults leaves them for the next one.
  const failed = await engine.ledger.jobs({ state: 'failed', stream: streamOf(PAIR), limit: 1 })
  return failed.length > 0 && inWork === 0
}

async function describe(engine: Engine, store: FileStore): Promise<string> {
  const nodes = await store.openNodes(PAIR, { limit: 10 })
  const jobs = await engine.ledger.jobs({ stream: streamOf(PAIR), limit: 12 })
  const last = jobs.map(({ kind, state, payload, error }) => `${kind} ${state} ${payload} ${error ?? ''}`)
  const unsettled = await engine.ledger.driver.read((tx) =>
    tx.all(`SELECT * FROM jobs WHERE state IN ('pending', 'claimed') ORDER BY id LIMIT 20`),
  )
  return JSON.stringify({ nodes, last, unsettled, now: engine.clock.now() }, undefined, 1)
}

function settingsOf(sim: Sim): FilesSettings {
  const few = { parallelDownloads: 4, parallelUploads: 4, parallelCheckers: 1 }
  return { ...simulatedSettings(sim), ...few, silenceMs: 60_000 }
}
