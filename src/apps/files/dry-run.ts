/**
 * What a sync would do, without doing it. All that is known of the folder pair is copied into a ledger of its own, in a
 * temporary file; there both sides are looked at with the very jobs of a sync, and planned with the very plan. Neither
 * side nor what is stored of them is touched: OneDrive is only listened to, the folder only looked at.
 *
 * It tells the first step for each thing: what follows from that is decided when it is done.
 */
import type { Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { createEngine, type Engine } from '../../engine/engine.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { type Disk, isForbidden } from './act/content.ts'
import { realNames } from './act/local-side.ts'
import { isComparison } from './decide.ts'
import { type FilesSettings, type FolderPair, type FolderPairs, requestBudget } from './folder-pair.ts'
import type { Held } from './guard.ts'
import type { Reason } from './left-code.ts'
import { walkUnmarked } from './local/first-look.ts'
import { lookAt, plainStat } from './local/stat.ts'
import { fileBudgets } from './open-folder-pairs.ts'
import type { Action } from './plan-order.ts'
import { planOnce } from './planning.ts'
import { writePlan } from './store/ends.ts'
import { FileStore, type NewFolderPair, setFolderPair } from './store/file-store.ts'
import { copyFolderPair } from './store/folder-pair-copy.ts'
import { recordLocal, setLocalHash } from './store/local-tree.ts'
import { freeAllWaiting, freeNode, freeStranded, releaseSettled } from './store/open-nodes.ts'
import { type SyncKinds, syncKinds } from './sync-kinds.ts'
import type { LocalStat, NodeKey } from './trees.ts'

export type DryStep = Pick<Action, 'verb' | 'row' | 'path' | 'bytes'>

export type DryRun = {
  folder: string
  steps: DryStep[]
  /** Rows that agree by themselves: only noted. */
  agreed: number
  /** What has to wait for one of the steps. */
  waiting: { path: string; because: string }[]
  /** What is left alone, and why. */
  left: { path: string; because: string }[]
  heldDeletes: Held | null
  /** Deletions that would wait for a yes. */
  held: string[]
}

export type DryRunInput = {
  pair: FolderPair
  /** Of a folder that is not set up yet: what would be written down. */
  draft?: NewFolderPair | undefined
  from: Ledger
  scratch: Ledger
  settings: FilesSettings
  clock: Clock
  disk: Disk
  signal: AbortSignal
}

const PASSES_MAX = 10_000
const PAGE = 1_000
/** Of a folder that is not there. */
const NOWHERE: LocalStat = { dev: '0', ino: '0', birthNs: '0', mtimeNs: '0', ctimeNs: '0', size: 0 }

export async function dryRun(input: DryRunInput): Promise<DryRun> {
  const { pair, scratch, draft } = input
  const store = await FileStore.open(scratch)
  if (draft) await store.addFolderPair(draft, NOWHERE)
  else {
    await FileStore.open(input.from)
    await copyFolderPair(input.from, scratch, pair.name)
  }
  await store.write(async (tx) => {
    await releaseSettled(tx, pair.name, Number.MAX_SAFE_INTEGER)
    await freeAllWaiting(tx, pair.name)
  })
  await look(input, store)
  return plan(input, store)
}

/** With an engine that knows no other jobs: it cannot act. */
async function look(input: DryRunInput, store: FileStore): Promise<void> {
  const { pair, scratch, settings, clock, draft, signal } = input
  const kinds = syncKinds({ pairs: only(pair), store, ledger: scratch, kindOf: refuse })
  const engine = await createEngine({
    ledger: scratch,
    clock,
    name: 'dry run',
    jobs: [kinds.delta, kinds.look],
    budgets: fileBudgets([pair.account], settings),
  })
  const stop = (): void => void engine.stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await engine.streams.open(pair.stream)
    if (draft) await seeAll(input, store)
    await engine.start()
    await enqueue(engine, kinds, { pair, isFirst: draft !== undefined })
    const isDone = await engine.drained()
    signal.throwIfAborted()
    const [failed] = await scratch.jobs({ state: 'failed', limit: 1 })
    if (failed || !isDone) throw failure(failed?.error ?? null)
  } finally {
    signal.removeEventListener('abort', stop)
    await engine.stop()
  }
}

async function enqueue(
  engine: Engine,
  kinds: SyncKinds,
  { pair: { name: pair, stream }, isFirst }: { pair: FolderPair; isFirst: boolean },
): Promise<void> {
  await engine.enqueue(kinds.delta, { drive: pair, isPlannedLater: true }, { stream })
  if (!isFirst) await engine.enqueue(kinds.look, { drive: pair, isPlannedLater: true }, { stream })
}

function failure(error: string | null): TidemarkError {
  let message = 'The dry run could not look at both sides.'
  try {
    message = (JSON.parse(error ?? '') as { message?: string }).message ?? message
  } catch {
    // Then it is told without a reason.
  }
  return new TidemarkError(message, { kind: 'transient', code: 'dry-run' })
}

/** A folder without a marker: nobody keeps it, so everything in it is new. */
async function seeAll({ pair, clock }: DryRunInput, store: FileStore): Promise<void> {
  const takeIds = (count: number): Promise<number> => store.takeLocalIds(pair.name, count)
  for await (const observations of walkUnmarked({ path: pair.root, filter: pair.filter, takeIds })) {
    await store.write((tx) => recordLocal(tx, pair.name, observations))
  }
  await store.write((tx) =>
    setFolderPair(tx, pair.name, { scannedAt: clock.now(), filterKey: pair.filter.key }),
  )
}

async function plan(input: DryRunInput, store: FileStore): Promise<DryRun> {
  const { pair, clock, signal } = input
  const { name } = pair
  const found: DryRun = {
    folder: name,
    steps: [],
    agreed: 0,
    waiting: [],
    left: [],
    heldDeletes: null,
    held: [],
  }
  const reasons = new Map<NodeKey, Reason>()
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    signal.throwIfAborted()
    const row = await store.folderPair(name)
    const planned = await planOnce(store, pair, row, clock.now())
    if (!planned && (await store.write((tx) => freeStranded(tx, name))) > 0) continue
    if (!planned) break
    const cycle = row.planned + 1
    for (const { node, because } of planned.waiting) reasons.set(node, { because })
    for (const { node, because, code } of planned.reported) reasons.set(node, { because, code })
    found.agreed += planned.bookkeeping.length
    found.heldDeletes = planned.heldDeletes ?? found.heldDeletes
    await store.write((tx) => writePlan(tx, name, { cycle, plan: planned, atMs: clock.now() }))
    for (const action of planned.actions) {
      if (action.verb === 'check' && (await hashed(input, store, action))) continue
      const { verb, row: because, path, bytes } = action
      // Told as what happens first: only if the bytes differ it is a conflict.
      const isCompared = verb === 'conflict' && isComparison({ do: 'conflict', row: because })
      found.steps.push({ verb: isCompared ? 'check' : verb, row: because, path, bytes })
    }
  }
  await addOpen(found, store, reasons)
  return found
}

/** What still waits or is left alone in the end; some of it came about by what was planned after it. */
async function addOpen(
  found: DryRun,
  store: FileStore,
  reasons: ReadonlyMap<NodeKey, Reason>,
): Promise<void> {
  for (let after = ''; ; ) {
    const page = await store.openNodes(found.folder, { after, limit: PAGE })
    for (const { node, waitsFor, because: known } of page) {
      const reason = reasons.get(node)
      if (reason === undefined || (waitsFor === null && known === null)) continue
      const path = await store.pathOfNode(found.folder, node)
      const { because, code } = reason
      if (code === 'held-delete' || code === 'held-overwrite') found.held.push(path)
      else (waitsFor === null ? found.left : found.waiting).push({ path, because })
    }
    const last = page.at(-1)
    if (!last || page.length < PAGE) return
    after = last.node
  }
}

/** Content that nobody has looked at is looked at now, so that what is decided is what a sync would decide. */
async function hashed(
  { pair, disk, signal }: DryRunInput,
  store: FileStore,
  { node }: Action,
): Promise<boolean> {
  const { local } = await store.nodeCase(pair.name, node)
  const names = local && (await store.localPath(pair.name, local.id))
  if (!local || !names) return false
  const stat = plainStat(local)
  const look = lookAt(pair.root)
  if (!look) return false
  const root = { path: pair.root, pair: pair.name, markerId: pair.markerId, look }
  const real = pair.settings.follow_symlinks ? realNames(root, names, []) : names
  try {
    const found = await disk.hash({ root, names: real }, stat, signal)
    if (found.outcome !== 'done') return false
    return await store.write(async (tx) => {
      const isSet = await setLocalHash(tx, pair.name, { id: local.id, stat, ...found })
      return isSet && (await freeNode(tx, pair.name, node))
    })
  } catch (thrown) {
    if (isForbidden(thrown)) return false
    throw thrown
  }
}

function only(pair: FolderPair): FolderPairs {
  return {
    names: () => [pair.name],
    accounts: () => [pair.account],
    get: async () => pair,
    budget: () => requestBudget(pair.account),
    reload: async () => {},
    close: async () => {},
  }
}

function refuse(): never {
  throw new TidemarkError('A dry run does nothing.', { kind: 'bug' })
}
