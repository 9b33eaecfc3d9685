/**
 * Hears what changed in OneDrive, page by page. Each page is written with the link to go on from, in one transaction;
 * so an interrupted reading goes on where it was, and nothing is planned before it has come to its end.
 *
 * When OneDrive cannot tell any more what changed (`resync`), everything is read from the start under a new generation
 * number. What is there already is recognised, and what the whole reading did not name is deleted remotely; decisions
 * then compare with the base as always.
 */
import { z } from 'zod'
import { asTidemarkError } from '../../base/errors.ts'
import type { DriveItem } from '../../cloud/onedrive/client.ts'
import { answers } from '../../cloud/onedrive/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { FolderPair, FolderPairs } from './folder-pair.ts'
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
}

export async function runDelta(deps: DeltaDeps, job: RunContext<DeltaPayload>): Promise<Outcome> {
  const { store } = deps
  const pair = await deps.pairs.get(job.payload.drive)
  let row = await store.folderPair(pair.name)
  const links = new Set<string | null>([row.link])
  for (let heard = 0; ; ) {
    job.signal.throwIfAborted()
    const page = await readPage(pair, row, job.signal)
    if (page === 'resync') {
      await job.commit({ effects: (tx) => startOver(tx, row) })
      row = await store.folderPair(pair.name)
      continue
    }
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

async function readPage(pair: FolderPair, row: FolderPairRow, signal: AbortSignal): Promise<Page | 'resync'> {
  try {
    return await pair.client.delta(pair.driveId, {
      ...(row.link === null ? { pageSize: PAGE_SIZE } : { link: row.link }),
      signal,
    })
  } catch (thrown) {
    if (asTidemarkError(thrown).code === 'resync') return 'resync'
    throw thrown
  }
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
