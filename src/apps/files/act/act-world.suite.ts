/**
 * Actions one at a time: a simulated drive, a real folder, a real store. A test says when each side is looked at, what
 * is planned, what happens between a look and an action, and whether the end of an action is written or lost.
 */

import assert from 'node:assert/strict'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach } from 'node:test'
import { systemClock } from '../../../base/clock.ts'
import { createHttpExchange } from '../../../base/http-exchange.ts'
import { seededRandom } from '../../../base/random.ts'
import { OneDriveClient } from '../../../cloud/onedrive/client.ts'
import { freePace } from '../../../cloud/onedrive/scripted-client.suite.ts'
import type { Outcome } from '../../../engine/index.ts'
import { RunContext } from '../../../engine/job-kind.ts'
import type { Effects } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import type { Quirks } from '../../../sim/onedrive/quirks.ts'
import type { SimDrive } from '../../../sim/onedrive/sim-drive.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { type ActionPayload, runAction, type VerbRun } from '../action.ts'
import { toRow } from '../delta.ts'
import { createFilter } from '../filter.ts'
import type { FolderPair } from '../folder-pair.ts'
import { openRoot } from '../local/root.ts'
import { Scan } from '../local/scan.ts'
import { lookAt } from '../local/stat.ts'
import { DiskThreads } from '../local/threads.ts'
import { listTrash } from '../local/trash-bin.ts'
import { treeOf } from '../look.ts'
import type { Action, ActionVerb } from '../plan-order.ts'
import { PlanRequests } from '../plan-requests.ts'
import { planOnce } from '../planning.ts'
import type { ConflictRow } from '../store/contract.ts'
import { writePlan } from '../store/ends.ts'
import { addSimulatedPair } from '../store/file-store.suite.ts'
import { FileStore, setFolderPair } from '../store/file-store.ts'
import { recordLocal } from '../store/local-tree.ts'
import { freeAllWaiting, freeStranded } from '../store/open-nodes.ts'
import { recordRemoteNow } from '../store/remote-tree.ts'
import { type Difference, type VerifyInput, verifyFolderPair } from '../verify.ts'
import { FileObstacles, pastObstacles } from './obstacles.ts'
import { Transfers } from './transfers.ts'
import { verbRuns } from './verbs.ts'

const NAME = 'docs'
const ACCOUNT = 'ann@example.com'
export const MIB = 1024 * 1024
const STEPS_MAX = 60

export type WorldOptions = {
  /** What is in step when it begins, by its path: of a folder with `/` at its end, made in OneDrive with `/` at its start. */
  files?: Record<string, string | Uint8Array>
  quirks?: Partial<Quirks>
  type?: 'personal' | 'business'
  settings?: Record<string, unknown>
  chunkBytes?: number
  reserveBytes?: number
  keepBytesMax?: number
}

export type Ran = { outcome: Outcome; checkpoint: unknown; saves: number }

export type RunOptions = {
  /** The process dies before the end is written. */
  isLost?: boolean
  checkpoint?: unknown
  signal?: AbortSignal
  failures?: number
  /** Called with the bytes done so far. */
  onProgress?: (done: number) => void
}

export class ActWorld {
  readonly sim: Sim
  readonly there: SimDrive
  readonly store: FileStore
  readonly pair: FolderPair
  readonly transfers = new Transfers()
  readonly obstacles = new FileObstacles(systemClock)
  readonly #runs: Record<ActionVerb, VerbRun>
  readonly #close: (() => unknown)[]
  readonly #checks: Pick<VerifyInput, 'ledger' | 'disk'>
  #link: string | undefined
  readonly #attempts = new Map<Action, number>()
  nowMs = systemClock.now()

  constructor(input: {
    sim: Sim
    store: FileStore
    pair: FolderPair
    ledger: Ledger
    disk: DiskThreads
    settings: { chunkBytes: number; reserveBytes: number }
    close: (() => unknown)[]
  }) {
    this.sim = input.sim
    this.there = input.sim.onedrive.drive(ACCOUNT)
    this.store = input.store
    this.pair = input.pair
    this.#close = input.close
    this.#checks = { ledger: input.ledger, disk: input.disk }
    this.#runs = verbRuns({ settings: input.settings, transfers: this.transfers, disk: input.disk })
  }

  path(name: string): string {
    return join(this.pair.root, name)
  }

  write(name: string, content: string | Uint8Array, atMs?: number): void {
    mkdirSync(dirname(this.path(name)), { recursive: true })
    writeFileSync(this.path(name), content)
    if (atMs !== undefined) utimesSync(this.path(name), atMs / 1000, atMs / 1000)
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8')
  }

  bytes(name: string): Buffer {
    return readFileSync(this.path(name))
  }

  has(name: string): boolean {
    return lookAt(this.path(name)) !== undefined
  }

  mtimeMs(name: string): number {
    return Math.round(statSync(this.path(name)).mtimeMs)
  }

  trash(): string[] {
    return [...listTrash(openRoot(this.pair.root, this.pair.markerId))].map(({ names }) =>
      readFileSync(join(this.pair.root, '.tidemark/trash', ...names), 'utf8'),
    )
  }

  /** Delta, to its end. */
  async hear(): Promise<void> {
    const { client, driveId } = this.pair
    for (let isDone = false; !isDone; ) {
      const page = await client.delta(driveId, this.#link === undefined ? {} : { link: this.#link })
      const rows = page.items.flatMap((item) => toRow(item, this.pair) ?? [])
      await this.store.write((tx) => recordRemoteNow(tx, NAME, rows))
      this.#link = page.deltaLink ?? page.nextLink
      isDone = page.deltaLink !== undefined
    }
  }

  /** A scan of the whole folder; what waits for one is planned again, unless it is a look on the way. */
  async look({ isFirst = true }: { isFirst?: boolean } = {}): Promise<void> {
    const root = openRoot(this.pair.root, this.pair.markerId)
    const followLinks = this.pair.settings.follow_symlinks
    const scan = new Scan({ root, tree: treeOf(this.store, NAME), filter: this.pair.filter, followLinks })
    for await (const observations of scan.batches()) {
      scan.knownAs((await this.store.write((tx) => recordLocal(tx, NAME, observations))).otherIds)
    }
    if (isFirst) await this.store.write((tx) => freeAllWaiting(tx, NAME))
  }

  /** Plans what is open, also what bookkeeping has left open. */
  async plan(): Promise<Action[]> {
    const actions: Action[] = []
    for (let pass = 0; pass < STEPS_MAX; pass++) {
      const row = await this.store.folderPair(NAME)
      const plan = await planOnce(this.store, this.pair, row)
      if (!plan && (await this.store.write((tx) => freeStranded(tx, NAME))) > 0) continue
      if (!plan) break
      await this.store.write((tx) => writePlan(tx, NAME, { cycle: row.planned + 1, plan, atMs: this.nowMs }))
      actions.push(...plan.actions)
    }
    return actions
  }

  /** Looks at both sides and plans; there must be exactly one action, of this verb. */
  async only(verb: ActionVerb): Promise<Action> {
    await this.hear()
    await this.look()
    const actions = await this.plan()
    if (actions.length !== 1 || actions[0]!.verb !== verb) {
      throw new Error(`Planned were: ${JSON.stringify(actions)}`)
    }
    return actions[0]!
  }

  async run(action: Action, options: RunOptions = {}): Promise<Ran> {
    const { after: _, ...rest } = action
    const payload: ActionPayload = { drive: NAME, ...rest }
    let saves = 0
    const attempt = (this.#attempts.get(action) ?? 0) + 1
    this.#attempts.set(action, attempt)
    const job = new RunContext<ActionPayload>(
      {
        id: 1,
        kind: 'files.test',
        key: null,
        streamId: 1,
        segmentId: null,
        parentId: null,
        size: null,
        lane: 'interactive',
        priority: 0,
        payload: JSON.stringify(payload),
        items: 1,
        attempt,
        failures: options.failures ?? 0,
        badId: null,
        createdAt: 0,
        bytes: 0,
        checkpoint: options.checkpoint == null ? null : JSON.stringify(options.checkpoint),
      },
      payload,
      {
        clock: { ...systemClock, now: () => this.nowMs },
        random: seededRandom(1),
        stream: () => null,
        limits: undefined as never,
        progress: (_context, { done = 0 }) => options.onProgress?.(done),
        commit: async (_context, { effects }) => {
          saves += 1
          if (effects) await this.commit(effects)
          return { status: 'held', jobs: [] } as never
        },
      },
      0,
    )
    options.signal?.addEventListener('abort', () => job.stop('shutdown'))
    const planRequests = new PlanRequests({
      clock: systemClock,
      ask: async () => undefined,
      onError: () => undefined,
    })
    const pairs = { get: async () => this.pair } as never
    try {
      const outcome = await runAction(
        { pairs, store: this.store, planRequests, lookAfter: () => undefined },
        job,
        pastObstacles(this.obstacles, this.#runs[action.verb]),
      )
      if (!options.isLost && outcome.effects) await this.commit(outcome.effects)
      return { outcome, checkpoint: job.checkpoint, saves }
    } catch (thrown) {
      throw Object.assign(thrown as Error, { checkpoint: job.checkpoint })
    } finally {
      planRequests.close()
    }
  }

  async commit(effects: Effects): Promise<void> {
    await this.store.write(async (tx) => {
      await effects(tx)
    })
  }

  /** Until nothing is left to do. */
  async sync(): Promise<ActionVerb[]> {
    const verbs: ActionVerb[] = []
    for (let pass = 0; pass < STEPS_MAX; pass++) {
      await this.hear()
      await this.look({ isFirst: pass === 0 })
      const actions = await this.plan()
      if (actions.length === 0) return verbs
      for (const action of actions) {
        const ran = await this.run(action)
        // What waits for a moment is done after it.
        if (ran.outcome.again) {
          this.nowMs += ran.outcome.again.afterMs ?? 0
          await this.hear()
          await this.run(action, { checkpoint: ran.checkpoint })
        }
        verbs.push(action.verb)
      }
    }
    throw new Error(`It does not end: ${verbs.slice(-10).join(' ')}`)
  }

  conflicts(): Promise<ConflictRow[]> {
    return this.store.conflicts(NAME)
  }

  /** What `files verify` finds. */
  async verify({ deep }: { deep: boolean }): Promise<Difference[]> {
    const { signal } = new AbortController()
    const input = { pair: this.pair, store: this.store, ...this.#checks, deep, signal }
    return (await verifyFolderPair(input)).differences
  }

  /** Nothing open, and both sides have the same names and contents. */
  async differences(): Promise<string[]> {
    const wrong: string[] = []
    const open = await this.store.openNodes(NAME, { limit: 100 })
    for (const { node, because } of open) wrong.push(`open: ${node} ${because ?? ''}`)
    for (const item of this.there.dump().items) {
      const path = item.path.replace(/^\//, '')
      const look = lookAt(this.path(path))
      if (!look) wrong.push(`not here: ${path}`)
      else if (item.kind === 'file' && look.size !== item.size) wrong.push(`other size: ${path}`)
    }
    return wrong
  }

  async begin(files: NonNullable<WorldOptions['files']>): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      const isThere = path.startsWith('/')
      if (!path.endsWith('/')) isThere ? this.there.device.write(path, content) : this.write(path, content)
      else if (isThere) this.there.device.mkdir(path.slice(0, -1))
      else mkdirSync(this.path(path), { recursive: true })
    }
    await this.sync()
  }

  /** Nothing is left to do, and both sides agree. */
  async assertSettled(): Promise<void> {
    assert.deepEqual([await this.sync(), await this.differences()], [[], []])
  }

  async close(): Promise<void> {
    for (const close of this.#close) await close()
  }
}

/** Makes worlds for the tests of a file, and closes them behind each. */
export function actWorlds(): typeof actWorld {
  const worlds: ActWorld[] = []
  afterEach(async () => {
    for (const one of worlds.splice(0)) await one.close()
  })
  return async (options) => {
    const made = await actWorld(options)
    worlds.push(made)
    return made
  }
}

export async function actWorld(options: WorldOptions = {}): Promise<ActWorld> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-act-')))
  const { quirks, type = 'personal', chunkBytes = MIB, reserveBytes = 0, keepBytesMax } = options
  const sim = await startSim({
    onedrive: {
      drives: [
        {
          account: ACCOUNT,
          type,
          ...(quirks ? { quirks } : {}),
          ...(keepBytesMax === undefined ? {} : { keepBytesMax }),
        },
      ],
    },
  })
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`, { synchronous: 'NORMAL' })
  const store = await FileStore.open(ledger)
  const exchange = createHttpExchange()
  const { accessToken } = sim.onedrive.issue(ACCOUNT)
  const client = new OneDriveClient({
    exchange,
    clock: systemClock,
    apiUrl: sim.onedrive.graphUrl,
    pace: freePace,
    timeoutMs: 20_000,
    token: { access: async () => accessToken, refused: () => undefined },
  })
  const drive = sim.onedrive.drive(ACCOUNT)
  const added = { name: NAME, drive, home, settings: options.settings ?? {} }
  const { root, settings } = await addSimulatedPair(store, added)
  await store.write((tx) =>
    setFolderPair(tx, NAME, { scannedAt: 1, heardAt: 1, isEnumerating: false, forcedDeletes: 1_000_000 }),
  )
  const pair: FolderPair = {
    name: NAME,
    stream: `files:${NAME}`,
    account: ACCOUNT,
    driveId: drive.id,
    rootItemId: drive.state.root.id,
    isBusiness: type === 'business',
    root: root.path,
    markerId: root.markerId,
    settings,
    client,
    filter: createFilter(settings.filter, undefined),
  }
  const disk = new DiskThreads({ threads: 1 })
  const close = [
    () => disk.stop(),
    () => exchange.close(),
    () => ledger.close(),
    () => sim.close(),
    () => rmSync(home, { recursive: true, force: true }),
  ]
  const world = new ActWorld({
    sim,
    store,
    ledger,
    pair,
    disk,
    settings: { chunkBytes, reserveBytes },
    close,
  })
  if (options.files) await world.begin(options.files)
  return world
}

/** Bytes that no compression, hash or offset could take for others. */
export function noise(bytes: number, seed = 1): Buffer {
  const random = seededRandom(seed)
  const buffer = Buffer.alloc(bytes)
  for (let at = 0; at + 4 <= bytes; at += 4) buffer.writeUInt32LE(Math.floor(random() * 2 ** 32), at)
  return buffer
}
