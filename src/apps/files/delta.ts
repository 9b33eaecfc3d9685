/**
 * Hears what changed in OneDrive, page by page. Each page is written with the link to go on from, in one transaction;
 * so an interrupted reading goes on where it was, and nothing is planned before it has come to its end.
 *
 * When OneDrive cannot tell any more what changed (`resync`), everything is read from the start under a new generation
 * number. What is there already is recognised, and what the whole reading did not name is deleted remotely; decisions
 * then compare with the base as always.
 *
 * Of a folder of somebody else, changes are those of that folder (shared-folder.ts). Where its drive does not tell them,
 * all of it is listed instead, again and again, each time as a reading from the start. Nothing of it counts as deleted
 * before it was looked for itself (absence.ts), and the top after that.
 */
import { z } from 'zod'
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import type { DriveItem } from '../../cloud/onedrive/client.ts'
import { answers } from '../../cloud/onedrive/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import {
  ItemFates,
  judgeDeleted,
  judgeMissed,
  MISSED_TRIES,
  type Missed,
  type MissedSource,
  type Spared,
} from './absence.ts'
import type { FolderPair, FolderPairs } from './folder-pair.ts'
import { checkTop, isShareGone, isWithheld, listBelow, topFolder } from './shared-folder.ts'
import type { FolderPairRow } from './store/contract.ts'
import { type FileStore, setFolderPair } from './store/file-store.ts'
import { freeWithheld, tellWithheld } from './store/open-nodes.ts'
import { deleteMissed, deleteUnlisted, keepListed, recordRemote, rootRow } from './store/remote-tree.ts'
import type { RemoteRow } from './trees.ts'

export const deltaPayload = z.object({
  drive: z.string(),
  /** A plan follows by itself, after both sides were looked at. */
  isPlannedLater: z.literal(true).optional(),
})
export type DeltaPayload = z.infer<typeof deltaPayload>

const PAGE_SIZE = 1_000

export type DeltaDeps = {
  pairs: FolderPairs
  store: FileStore
  planAfter: (pair: string) => Outcome['jobs']
  /** Stops the work on a folder that nobody shares any more. */
  pauseShare: (pair: FolderPair, error: TidemarkError) => Promise<void>
}

export async function runDelta(deps: DeltaDeps, job: RunContext<DeltaPayload>): Promise<Outcome> {
  const pair = await deps.pairs.get(job.payload.drive)
  if (pair.sharedBy === undefined) return hear(deps, job, pair)
  try {
    return await hear(deps, job, pair)
  } catch (thrown) {
    if (job.signal.aborted || !(isWithheld(thrown) || isShareGone(thrown))) throw thrown
    const error = await checkTop(pair, job.signal).then(() => undefined, asTidemarkError)
    if (!error || !isShareGone(error)) throw thrown
    await deps.pauseShare(pair, error)
    return { skip: error.message }
  }
}

async function hear(deps: DeltaDeps, job: RunContext<DeltaPayload>, pair: FolderPair): Promise<Outcome> {
  const { store } = deps
  let row = await store.folderPair(pair.name)
  if (row.link?.startsWith(LISTED)) {
    const isAsked = job.payload.isPlannedLater === true || row.heardAt === null
    // The clock may have been put back.
    if (!isAsked && Math.abs(job.clock.now() - row.heardAt!) < LISTING_MS) {
      await checkTop(pair, job.signal)
      return { skip: 'all of it was listed lately' }
    }
    return listAll(deps, job, pair)
  }
  const links = new Set<string | null>([row.link])
  for (let heard = 0; ; ) {
    job.signal.throwIfAborted()
    const page = await readPage(pair, row, job.signal)
    if (page === 'unsupported') return listAll(deps, job, pair)
    if (page === 'resync') {
      await job.commit({ effects: (tx) => startOver(tx, row) })
      row = await store.folderPair(pair.name)
      continue
    }
    const spared = await sparedOf(deps, pair, { page, signal: job.signal })
    heard += page.items.length
    job.progress({ done: heard, unit: 'items', label: 'changes' })
    const record = (tx: Tx): Promise<void> =>
      recordItems(tx, pair, { items: page.items, generation: row.generation, spared })
    if (page.deltaLink !== undefined) {
      const { deltaLink: link } = page
      const isJudged = row.isEnumerating && pair.sharedBy !== undefined
      // What is missing is known once all that was named is written. Until the end this page is read again.
      if (isJudged) await job.commit({ effects: record })
      const missed = isJudged ? await missedBy(deps, job, { pair, row, isHasty: false }) : undefined
      const effects = async (tx: Tx): Promise<void> => {
        if (!isJudged) await record(tx)
        await endReading(tx, row, { link, atMs: job.clock.now(), missed })
      }
      const jobs = deps.planAfter(pair.name)
      return { effects, ...(jobs ? { jobs } : {}), note: `${heard} changes heard${cutText(missed)}` }
    }
    const write = async (tx: Tx): Promise<void> => {
      await record(tx)
      await setFolderPair(tx, pair.name, { link: page.nextLink ?? null, isReading: true })
    }
    // Pages that lead back to one of before have no end, and nothing may be concluded from them.
    if (links.has(page.nextLink ?? null)) throw answers.damagedAnswer('the changes', 'they lead in circles')
    links.add(page.nextLink ?? null)
    await job.commit({ effects: write })
    row = { ...row, link: page.nextLink ?? null }
  }
}

type Page = { items: DriveItem[]; nextLink: string | undefined; deltaLink: string | undefined }

async function readPage(
  pair: FolderPair,
  row: FolderPairRow,
  signal: AbortSignal,
): Promise<Page | 'resync' | 'unsupported'> {
  try {
    return await pair.client.delta(pair.driveId, {
      ...topFolder(pair),
      ...(row.link === null ? { pageSize: PAGE_SIZE } : { link: row.link }),
      signal,
    })
  } catch (thrown) {
    const { code } = asTidemarkError(thrown)
    if (code === 'resync') return 'resync'
    if (code === 'not-supported' && pair.sharedBy !== undefined) return 'unsupported'
    throw thrown
  }
}

/** What a page says is deleted, and is not: in a folder of somebody else, what is withdrawn may look the same. */
async function sparedOf(
  { store }: DeltaDeps,
  pair: FolderPair,
  { page, signal }: { page: Page; signal: AbortSignal },
): Promise<Spared> {
  const last = new Map(page.items.map((item) => [item.id, item]))
  const deleted = [...last.values()].filter((item) => item.deleted).map(({ id }) => id)
  if (pair.sharedBy === undefined || deleted.length === 0) return NONE_SPARED
  const known = [...(await store.remoteRows(pair.name, deleted))]
  const told = new Map(known.filter(([, row]) => !row.isDeleted && row.parentId !== null))
  const spared = await judgeDeleted(pair, told, signal)
  await checkTop(pair, signal)
  return spared
}

const NONE_SPARED: Spared = { ids: new Set(), withheld: [] }

/** What a reading from the start has not named; fails where the whole folder is not given any more. */
async function missedBy(
  { store }: DeltaDeps,
  { signal }: Pick<RunContext<DeltaPayload>, 'signal'>,
  { pair, row, isHasty }: { pair: FolderPair; row: FolderPairRow; isHasty: boolean },
): Promise<Missed> {
  // First, too: of what is withdrawn as a whole nothing need be looked for.
  await checkTop(pair, signal)
  const { generation } = row
  const fates = new ItemFates(pair, { signal, missingTries: MISSED_TRIES })
  const source: MissedSource = {
    missed: (within, limit) => store.unlisted(pair.name, { generation, limit, within }),
    fate: (itemId) => fates.of(itemId),
  }
  const missed = await judgeMissed(source, { looksMax: MISSED_MAX, signal, isHasty })
  await checkTop(pair, signal)
  return missed
}

function cutText(missed: Missed | undefined): string {
  return missed?.isCut ? ', some that are missing are looked for next time' : ''
}

/** Writes what was named. */
async function recordItems(
  tx: Tx,
  pair: FolderPair,
  { items, generation, spared }: { items: readonly DriveItem[]; generation: number; spared: Spared },
): Promise<void> {
  const told = items.filter(({ id }) => !spared.ids.has(id))
  const named = told.filter((item) => !toRow(item, pair)).map(({ id }) => id)
  const rows = told.flatMap((item) => toRow(item, pair) ?? [])
  await recordRemote(tx, pair.name, rows, generation)
  await keepListed(tx, pair.name, [...named, ...spared.ids], generation)
  if (pair.sharedBy === undefined) return
  const given = rows.filter(({ isDeleted }) => !isDeleted).map(({ itemId }) => itemId)
  await freeWithheld(tx, pair.name, { given })
  await tellWithheld(tx, pair.name, { itemIds: spared.withheld, because: WITHHELD })
}

const WITHHELD = 'it is not shared with you any more, and stays here as it is'

/** Instead of a delta link: everything was listed, and when. */
const LISTED = 'listed:'
/** A listing takes a call for each folder: more often only where somebody asks for it. */
const LISTING_MS = 10 * 60_000
const LISTINGS_MAX = 3
/** Of what a reading has not named. Each takes a call. */
const MISSED_MAX = 1_000

async function listAll(deps: DeltaDeps, job: RunContext<DeltaPayload>, pair: FolderPair): Promise<Outcome> {
  const { store } = deps
  for (let time = 1; ; time++) {
    const before = await store.folderPair(pair.name)
    await job.commit({ effects: (tx) => startOver(tx, before) })
    const row = await store.folderPair(pair.name)
    let listed = 0
    for await (const items of listBelow(pair, job.signal)) {
      listed += items.length
      job.progress({ done: listed, unit: 'items', label: 'items' })
      await job.commit({
        effects: (tx) => recordItems(tx, pair, { items, generation: row.generation, spared: NONE_SPARED }),
      })
    }
    const isHasty = time < LISTINGS_MAX
    const missed = await missedBy(deps, job, { pair, row, isHasty })
    // What was moved to where was listed already is met the next time. Should it be moved each time, it stays.
    if (missed.isMoving && isHasty) continue
    const jobs = deps.planAfter(pair.name)
    const atMs = job.clock.now()
    const end = { link: `${LISTED}${new Date(atMs).toISOString()}`, atMs, missed }
    const effects = (tx: Tx): Promise<void> => endReading(tx, row, end)
    return { effects, ...(jobs ? { jobs } : {}), note: `${listed} listed${cutText(missed)}` }
  }
}

async function startOver(tx: Tx, { name, generation }: FolderPairRow): Promise<void> {
  await setFolderPair(tx, name, { link: null, generation: generation + 1, isEnumerating: true })
}

/** Only a reading that began at the start names everything that is there. */
async function endReading(
  tx: Tx,
  row: FolderPairRow,
  end: { link: string; atMs: number; missed?: Missed | undefined },
): Promise<void> {
  const { missed } = end
  if (missed) {
    await deleteMissed(tx, row.name, { ids: missed.gone, generation: row.generation })
    await freeWithheld(tx, row.name, { but: missed.withheld })
    await tellWithheld(tx, row.name, { itemIds: missed.withheld, because: WITHHELD })
  } else if (row.isEnumerating) await deleteUnlisted(tx, row.name, row.generation)
  await setFolderPair(tx, row.name, {
    link: end.link,
    heardAt: end.atMs,
    isEnumerating: false,
    isReading: false,
  })
}

/** The root itself is no node. What is not said of something deleted is not needed. */
export function toRow(item: DriveItem, pair: Pick<FolderPair, 'rootItemId'>): RemoteRow | undefined {
  const isRoot = item.type === 'root' || item.id === pair.rootItemId
  if (isRoot) return rootRow(pair.rootItemId)
  if (!item.deleted && (item.name === undefined || item.parentId === undefined)) return undefined
  return {
    itemId: item.id,
    parentId: item.parentId ?? null,
    name: item.name ?? '',
    type: item.type === 'root' ? 'folder' : item.type,
    size: item.type === 'file' ? (item.size ?? 0) : 0,
    hash: item.hash ?? null,
    eTag: item.eTag ?? null,
    cTag: item.cTag ?? null,
    modifiedMs: item.modifiedMs ?? null,
    isDeleted: item.deleted,
  }
}
