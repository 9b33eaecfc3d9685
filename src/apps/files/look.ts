/**
 * Looks at the folder, the whole of it or some folders of it, and writes what it saw, batch by batch. Deletions are
 * seen at the very end, after the root was found to be there still; so a look that is interrupted has deleted nothing.
 */

import { z } from 'zod'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { FolderPair, FolderPairs } from './folder-pair.ts'
import { sweepPartials } from './local/place.ts'
import { openRoot, type Root } from './local/root.ts'
import { Scan } from './local/scan.ts'
import type { KnownTree } from './local/scan-options.ts'
import { isSameThing } from './local/stat.ts'
import { forgetOldChangeSeen } from './store/change-seen.ts'
import { type FileStore, setFolderPair } from './store/file-store.ts'
import { keyOfLastLook, reopenExcluded } from './store/filter-change.ts'
import { endForced, forgetOverwrites, freeHeld } from './store/guard.ts'
import { recordLocal } from './store/local-tree.ts'
import { freeAllWaiting, freeUnfound } from './store/open-nodes.ts'
import { noteSeen } from './store/seen-folders.ts'
import { ROOT_ID } from './trees.ts'

export const lookPayload = z.object({
  drive: z.string(),
  /** By their names from the root; everything where it is left out. */
  folders: z.array(z.array(z.string())).optional(),
  /** A plan follows by itself, after both sides were looked at. */
  isPlannedLater: z.literal(true).optional(),
})
export type LookPayload = z.infer<typeof lookPayload>

export const LOOK_KIND = 'files.look'
/** Asks for one. */
export const SYNC_KIND = 'files.sync'
/** What is left of downloads that nobody goes on with. */
const PARTIAL_KEPT_MS = 7 * 86_400_000
const NOTED_ROWS = 5_000

export type LookDeps = { pairs: FolderPairs; store: FileStore; planAfter: (pair: string) => Outcome['jobs'] }

export async function runLook(deps: LookDeps, job: RunContext<LookPayload>): Promise<Outcome> {
  const { store } = deps
  if (!job.payload.folders) await deps.pairs.reload()
  const beganAt = job.clock.now()
  const pair = await deps.pairs.get(job.payload.drive)
  const root = openRoot(pair.root, pair.markerId)
  const { isUnsure, isOtherRoot } = await isOtherGround(store, pair, root)
  const folders = isUnsure ? undefined : job.payload.folders
  const scan = new Scan({
    root,
    tree: knownTreeWithDigests(store, pair.name),
    filter: pair.filter,
    followLinks: pair.settings.follow_symlinks,
    signal: job.signal,
    ...(folders ? { folders } : {}),
  })
  let seen = 0
  for await (const observations of scan.batches()) {
    let otherIds: ReadonlyMap<number, number> = new Map()
    await job.commit({
      effects: async (tx) => {
        otherIds = (await recordLocal(tx, pair.name, observations, { isUnsure, isOtherRoot })).otherIds
      },
    })
    scan.knownAs(otherIds)
    seen += observations.length
    job.progress({ done: scan.report.files, unit: 'items', label: 'files' })
  }
  if (store.canNoteSeen) await noteUnchanged(job, pair.name, scan.unchanged)
  if (!folders) await sweepPartials(root, { beforeMs: job.clock.now() - PARTIAL_KEPT_MS })
  const jobs = deps.planAfter(pair.name)
  const { files, unreadable } = scan.report
  return {
    effects: async (tx) => {
      if (folders) await freeUnfound(tx, pair.name)
      else await endWhole(tx, pair, { beganAt, atMs: job.clock.now() })
    },
    ...(jobs ? { jobs } : {}),
    note: `${files} looked at, ${seen} changed${unreadable.length > 0 ? `, ${unreadable.length} unreadable` : ''}`,
  }
}

/**
 * Since the last whole look, other things take part, a shared folder was not shared for a while, or another folder with
 * the same marker has come (a copy out of a backup). What is missing then may have been deleted while it took no part, or never have been in that copy: it is no
 * proof that somebody wants it deleted in OneDrive, so it comes back from there. And what is other in that folder may
 * be older, so it is no edit. A look at some folders would not see all of it, and becomes a whole one.
 */
async function isOtherGround(
  store: FileStore,
  pair: FolderPair,
  { look }: Root,
): Promise<{ isUnsure: boolean; isOtherRoot: boolean }> {
  const lastKey = keyOfLastLook(await store.folderPair(pair.name))
  const known = (await store.localRow(pair.name, ROOT_ID))!
  // A disk may get another number each time it is mounted.
  const isOtherRoot = !isSameThing(known, { ...look, dev: known.dev })
  return { isOtherRoot, isUnsure: isOtherRoot || (lastKey !== '' && lastKey !== pair.filter.key) }
}

/**
 * What is left out may have changed with the settings; what waits, for another or for a yes, looks again whether it
 * still has to.
 */
async function endWhole(
  tx: Parameters<typeof setFolderPair>[0],
  { name, filter }: FolderPair,
  { beganAt, atMs }: { beganAt: number; atMs: number },
): Promise<void> {
  await reopenExcluded(tx, name, filter.key)
  await freeAllWaiting(tx, name)
  await endForced(tx, name)
  await freeHeld(tx, name)
  await forgetOverwrites(tx, name, atMs)
  await forgetOldChangeSeen(tx, name, { beganAt, atMs })
  await setFolderPair(tx, name, { scannedAt: atMs, filterKey: filter.key })
}

/** A digest takes reading the rows once more: in pieces, so that others can write in between. */
async function noteUnchanged(
  job: RunContext<LookPayload>,
  pair: string,
  folders: Scan['unchanged'],
): Promise<void> {
  for (let at = 0; at < folders.length; ) {
    job.signal.throwIfAborted()
    const ids: number[] = []
    for (let rows = 0; rows < NOTED_ROWS && at < folders.length; at++) {
      rows += folders[at]!.rows
      ids.push(folders[at]!.id)
    }
    await job.commit({ effects: (tx) => noteSeen(tx, pair, ids) })
  }
}

/** It knows of what was noted: for whoever only wants to know what is different. */
export function knownTreeWithDigests(store: FileStore, pair: string): KnownTree {
  return { ...treeOf(store, pair), seen: (folderId) => store.seenFolder(pair, folderId) }
}

export function treeOf(store: FileStore, pair: string): KnownTree {
  return {
    root: async () => (await store.localRow(pair, ROOT_ID))!,
    children: (parentId) => store.localChildren(pair, parentId),
    byInode: (stat) => store.localByInode(pair, stat),
    path: (id) => store.localPath(pair, id),
    at: (names) => store.localAt(pair, names),
    takeIds: (count) => store.takeLocalIds(pair, count),
  }
}
