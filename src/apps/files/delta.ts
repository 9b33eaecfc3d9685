/**
 * Hears what changed in OneDrive, page by page. Each page is written with the link to go on from, in one transaction;
 * so an interrupted reading goes on where it was, and nothing is planned before it has come to its end.
 *
 * When OneDrive cannot tell any more what changed (`resync`), everything is read from the start under a new generation
 * number. What is there already is recognised, and what the whole reading did not name is deleted remotely; decisions
 * then compare with the base as always.
 *
 * Of a folder of somebody else, changes are those of that folder (shared-folder.ts). Where its drive does not tell them,
 * all of it is listed instead, again and again, each time as a reading from the start.
 */
import { z } from 'zod'
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import type { DriveItem } from '../../cloud/onedrive/client.ts'
import { answers } from '../../cloud/onedrive/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { FolderPair, FolderPairs } from './folder-pair.ts'
import { checkTop, isShareGone, isWithheld, listBelow, topFolder } from './shared-folder.ts'
import type { FolderPairRow } from './store/contract.ts'
import { type FileStore, setFolderPair } from './store/file-store.ts'
import { deleteUnlisted, keepListed, recordRemote, rootRow } from './store/remote-tree.ts'
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
    if (!isAsked && job.clock.now() - row.heardAt! < LISTING_MS) {
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
    await checkDeletions(pair, row, { page, signal: job.signal })
    heard += page.items.length
    job.progress({ done: heard, unit: 'items', label: 'changes' })
    const items = page.items.flatMap((item) => toRow(item, pair) ?? [])
    const named = page.items.filter((item) => !toRow(item, pair)).map(({ id }) => id)
    const write = async (tx: Tx): Promise<void> => {
      await recordRemote(tx, pair.name, items, row.generation)
      await keepListed(tx, pair.name, named, row.generation)
      if (page.deltaLink === undefined)
        await setFolderPair(tx, pair.name, { link: page.nextLink ?? null, isReading: true })
      else await endReading(tx, row, { link: page.deltaLink, atMs: job.clock.now() })
    }
    if (page.deltaLink !== undefined) {
      const jobs = deps.planAfter(pair.name)
      return { effects: write, ...(jobs ? { jobs } : {}), note: `${heard} changes heard` }
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

/** Before anything of a shared folder counts as deleted: what is withdrawn may look the same. */
async function checkDeletions(
  pair: FolderPair,
  { isEnumerating }: FolderPairRow,
  { page, signal }: { page: Page; signal: AbortSignal },
): Promise<void> {
  if (pair.sharedBy === undefined) return
  const isEnd = isEnumerating && page.deltaLink !== undefined
  if (isEnd || page.items.some(({ deleted }) => deleted)) await checkTop(pair, signal)
}

/** Instead of a delta link: everything was listed, and when. */
const LISTED = 'listed:'
/** A listing takes a call for each folder: more often only where somebody asks for it. */
const LISTING_MS = 10 * 60_000
const LISTINGS_MAX = 3
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
      const named = items.filter((item) => !toRow(item, pair)).map(({ id }) => id)
      await job.commit({
        effects: async (tx) => {
          const rows = items.flatMap((item) => toRow(item, pair) ?? [])
          await recordRemote(tx, pair.name, rows, row.generation)
          await keepListed(tx, pair.name, named, row.generation)
        },
      })
    }
    await checkTop(pair, job.signal)
    if (await isMoving(store, pair, { row, signal: job.signal })) {
      if (time < LISTINGS_MAX) continue
      throw answers.damagedAnswer('the folder', 'things were moved each time that it was listed')
    }
    const jobs = deps.planAfter(pair.name)
    const atMs = job.clock.now()
    const end = { link: `${LISTED}${new Date(atMs).toISOString()}`, atMs }
    const effects = (tx: Tx): Promise<void> => endReading(tx, row, end)
    return { effects, ...(jobs ? { jobs } : {}), note: `${listed} listed` }
  }
}

/** Whether something that was not met is there all the same: it went to a folder that had been listed already. */
async function isMoving(
  store: FileStore,
  { name, client, driveId }: FolderPair,
  { row, signal }: { row: FolderPairRow; signal: AbortSignal },
): Promise<boolean> {
  for (const itemId of await store.unlisted(name, { generation: row.generation, limit: MISSED_MAX })) {
    const item = await client.item(driveId, itemId, { signal }).catch((thrown: unknown) => {
      if (!isWithheld(thrown)) throw thrown
    })
    if (!item || item.deleted || item.parentId === undefined) continue
    const folder = (await store.remoteRows(name, [item.parentId])).get(item.parentId)
    if (folder && !folder.isDeleted) return true
  }
  return false
}

async function startOver(tx: Tx, { name, generation }: FolderPairRow): Promise<void> {
  await setFolderPair(tx, name, { link: null, generation: generation + 1, isEnumerating: true })
}

/** Only a reading that began at the start names everything that is there. */
async function endReading(tx: Tx, row: FolderPairRow, end: { link: string; atMs: number }): Promise<void> {
  if (row.isEnumerating) await deleteUnlisted(tx, row.name, row.generation)
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
