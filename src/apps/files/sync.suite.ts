/** A file sync in this process: a simulated OneDrive, a real folder, an engine on a ledger of its own. */

import assert from 'node:assert/strict'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sleep, systemClock } from '../../base/clock.ts'
import { openVault } from '../../base/vault.ts'
import { connectOneDrive } from '../../cloud/simulated-accounts.suite.ts'
import { createEngine, type Engine } from '../../engine/index.ts'
import { Accounts } from '../../ledger/accounts.ts'
import { openLedger } from '../../ledger/open.ts'
import type { SimDriveInput } from '../../sim/onedrive/onedrive.ts'
import type { SimDrive } from '../../sim/onedrive/sim-drive.ts'
import { type Sim, type SimOptions, startSim } from '../../sim/start.ts'
import { type FilesSettings, streamOf } from './folder-pair.ts'
import { type FileSync, openFileSync } from './index.ts'
import { OWN_FOLDER } from './names.ts'
import { addSimulatedPair, strandedNodes } from './store/file-store.suite.ts'
import { sayYes } from './store/guard.ts'

export const ACCOUNT = 'ann@example.com'
export const PAIR = 'home'

const SETTLE_MS_MAX = 240_000

export type FileWorldOptions = {
  /** What is in step when it begins: contents by path (with `/` before it, made in OneDrive), or paths as contents. */
  files?: Record<string, string> | readonly string[]
  sim?: Partial<SimOptions>
  drive?: Partial<SimDriveInput>
  settings?: Partial<FilesSettings>
  choices?: Record<string, unknown>
  /** Deletions that wait for a yes are left waiting; else somebody says it whenever they do. */
  isUnanswered?: boolean
  ledgerUrl?: string
}

export class FileWorld {
  readonly sim: Sim
  readonly there: SimDrive
  readonly engine: Engine
  readonly files: FileSync
  readonly root: string
  readonly #close: () => Promise<void>
  readonly #isAnswered: boolean

  constructor(parts: {
    sim: Sim
    engine: Engine
    files: FileSync
    root: string
    isAnswered: boolean
    close: () => Promise<void>
  }) {
    this.sim = parts.sim
    this.there = parts.sim.onedrive.drive(ACCOUNT)
    this.engine = parts.engine
    this.files = parts.files
    this.root = parts.root
    this.#isAnswered = parts.isAnswered
    this.#close = parts.close
  }

  path(name: string): string {
    return join(this.root, name)
  }

  write(name: string, content: string | Uint8Array): void {
    mkdirSync(dirname(this.path(name)), { recursive: true })
    writeFileSync(this.path(name), content)
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8')
  }

  has(name: string): boolean {
    return existsSync(this.path(name))
  }

  move(from: string, to: string): void {
    mkdirSync(dirname(this.path(to)), { recursive: true })
    renameSync(this.path(from), this.path(to))
  }

  remove(name: string): void {
    rmSync(this.path(name), { recursive: true })
  }

  /** Path → content, folders with a slash at their end. */
  here(): Map<string, string> {
    return readTree(this.root)
  }

  /** The same of OneDrive. */
  thereTree(): Map<string, string> {
    const tree = new Map<string, string>()
    for (const item of this.there.dump().items) {
      if (item.path === '' || item.path === '/') continue
      const path = item.path.replace(/^\//, '')
      if (item.kind === 'folder') tree.set(`${path}/`, '')
      else tree.set(path, this.there.device.read(path)?.toString() ?? '')
    }
    return tree
  }

  async begin(files: NonNullable<FileWorldOptions['files']>): Promise<void> {
    const isPaths = Array.isArray(files)
    for (const [key, content] of Object.entries(files)) {
      const path = isPaths ? content : key
      if (path.startsWith('/')) this.there.device.write(path, content)
      else this.write(path, content)
    }
    await this.sync()
  }

  /** A look at both sides, and everything that follows from it. */
  async sync(): Promise<void> {
    await this.engine.enqueue(this.files.kinds.sync, { drive: PAIR }, { stream: streamOf(PAIR) })
    await this.settled()
  }

  /** Nothing is left to do: no job, and no node that a plan would take. */
  async settled(): Promise<void> {
    const until = systemClock.monotonicMs() + SETTLE_MS_MAX
    for (;;) {
      await this.engine.drained()
      const open = await this.files.store.openCounts(PAIR)
      if (open.unplanned + open.inWork === 0 && !(this.#isAnswered && (await this.sayYes()))) {
        const nodes = await this.files.store.openNodes(PAIR, { limit: 100_000 })
        return assert.deepEqual(strandedNodes(nodes), [], 'nobody waits for something that does not move')
      }
      if (systemClock.monotonicMs() > until) {
        const nodes = await this.files.store.openNodes(PAIR, { limit: 10 })
        throw new Error(`not settled: ${JSON.stringify({ open, nodes })}`)
      }
      await sleep(systemClock, 10)
    }
  }

  /** To deletions that wait for it; false where none does. */
  async sayYes(): Promise<boolean> {
    const { store, kinds } = this.files
    if ((await store.folderPair(PAIR)).heldDeletes === null) return false
    const held = await store.heldAhead(PAIR)
    await store.write((tx) => sayYes(tx, PAIR, held!))
    await this.engine.enqueue(kinds.plan, { drive: PAIR }, { stream: streamOf(PAIR) })
    return true
  }

  /** Begins a sync and goes on as soon as something is so: it is not going to settle. */
  async syncStopped(isSo: () => Promise<boolean>): Promise<void> {
    await this.engine.enqueue(this.files.kinds.sync, { drive: PAIR }, { stream: streamOf(PAIR) })
    await this.until(isSo)
  }

  async until(isSo: () => Promise<boolean>): Promise<void> {
    const until = systemClock.monotonicMs() + SETTLE_MS_MAX
    while (!(await isSo())) {
      if (systemClock.monotonicMs() > until) throw new Error('it never came to that')
      await sleep(systemClock, 10)
    }
  }

  /** Kinds of what was done, oldest first: `download a.txt`. */
  async actions(): Promise<string[]> {
    const jobs = await this.engine.ledger.jobs({ stream: streamOf(PAIR), limit: 1_000 })
    return jobs
      .filter(({ kind, state }) => /^files\.(check|download|upload|change)$/.test(kind) && state === 'done')
      .map(({ payload }) => JSON.parse(payload) as { verb: string; path: string })
      .map(({ verb, path }) => `${verb} ${path}`)
      .reverse()
  }

  close(): Promise<void> {
    return this.#close()
  }
}

export async function withFileWorld(
  options: FileWorldOptions,
  run: (world: FileWorld) => Promise<void>,
): Promise<void> {
  const world = await startFileWorld(options)
  try {
    if (options.files) await world.begin(options.files)
    await run(world)
  } finally {
    await world.close()
  }
}

export function assertInStep(world: FileWorld): void {
  const sorted = (tree: Map<string, string>) => [...tree].sort(([a], [b]) => (a < b ? -1 : 1))
  assert.deepEqual(sorted(world.here()), sorted(world.thereTree()))
}

export function readTree(root: string, folder = ''): Map<string, string> {
  const tree = new Map<string, string>()
  for (const name of readdirSync(join(root, folder)).sort()) {
    if (folder === '' && name === OWN_FOLDER) continue
    const path = folder === '' ? name : `${folder}/${name}`
    if (lstatSync(join(root, path)).isDirectory()) {
      tree.set(`${path}/`, '')
      for (const [below, content] of readTree(root, path)) tree.set(below, content)
    } else tree.set(path, readFileSync(join(root, path), 'utf8'))
  }
  return tree
}

export async function startFileWorld(options: FileWorldOptions = {}): Promise<FileWorld> {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-files-'))
  const sim = await startSim({
    ...options.sim,
    onedrive: { drives: [{ account: ACCOUNT, ...options.drive }], ...options.sim?.onedrive },
  })
  const ledger = await openLedger(options.ledgerUrl ?? 'sqlite::memory:')
  const accounts = await Accounts.open(ledger)
  const vault = await openVault({ env: {}, home })
  await connectOneDrive({ accounts, vault, sim }, ACCOUNT)
  let engine: Engine | undefined
  const files = await openFileSync({
    ledger,
    accounts,
    vault,
    fetch: globalThis.fetch,
    clock: systemClock,
    engine: () => engine,
    settings: { ...simulatedSettings(sim), ...options.settings },
  })
  engine = await createEngine({ ledger, jobs: files.jobs, budgets: files.budgets(), workers: 32 })
  const drive = sim.onedrive.drive(ACCOUNT)
  const settings = options.choices ?? {}
  const { root } = await addSimulatedPair(files.store, { name: PAIR, drive, home, settings })
  await files.pairs.reload()
  await engine.streams.open(streamOf(PAIR))
  await engine.start()
  const started = engine
  return new FileWorld({
    sim,
    engine: started,
    files,
    root: root.path,
    isAnswered: options.isUnanswered !== true,
    close: async () => {
      await started.stop()
      await files.close()
      await ledger.close()
      await sim.close()
      rmSync(home, { recursive: true, force: true })
    },
  })
}

export function simulatedSettings(sim: Sim): FilesSettings {
  return {
    apiUrl: sim.onedrive.graphUrl,
    authUrl: sim.onedrive.authUrl,
    tokenUrl: sim.onedrive.tokenUrl,
    deviceUrl: sim.onedrive.deviceUrl,
    requestsPerSecondStart: 10_000,
    requestsPerSecondMax: 10_000,
    parallelDownloads: 8,
    parallelUploads: 8,
    parallelCheckers: 8,
    chunkBytes: 320 * 1024 * 4,
    reserveBytes: 0,
    trashDays: 30,
    trashBytesMax: Number.POSITIVE_INFINITY,
    pollMs: 60_000,
    scanMs: 3_600_000,
    debounceMs: 20,
    bandwidth: {},
    silenceMs: 1_000,
  }
}
