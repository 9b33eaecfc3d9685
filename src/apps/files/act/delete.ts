/**
 * Deletions, each only of what it was decided on: looked at again just before, and never of something that is not
 * kept elsewhere. Local files go to the trash; OneDrive has its recycle bin.
 */
import { readdirSync } from 'node:fs'
import type { Tx } from '../../../ledger/contract.ts'
import type { ActionContext, Ended, VerbRun } from '../action.ts'
import { toRow } from '../delta.ts'
import { holdFolder, isNoFolder, lookInside } from '../local/folder.ts'
import type { Root } from '../local/root.ts'
import { isAbsence, isSameStat, isSameThing, type Look, plainStat } from '../local/stat.ts'
import { moveToTrash, removeEmptyFolder } from '../local/trash.ts'
import type { LocalObservation } from '../store/contract.ts'
import { endGone } from '../store/ends.ts'
import { countDelete } from '../store/guard.ts'
import { localOfItem, recordLocal, setLocalHash } from '../store/local-tree.ts'
import { openNode } from '../store/open-nodes.ts'
import { isOther } from '../store/remote-tree.ts'
import { putLocal } from '../store/rows.ts'
import { isAgreedContent, type LocalRow, type RemoteRow } from '../trees.ts'
import { type Disk, hashInside } from './content.ts'
import { errorCode, isAsKnown, lookAtItem, notGiven, refusedAgain, staleWith } from './fresh-look.ts'
import {
  BEHIND_LINK,
  folderNames,
  goneHere,
  isBehindLink,
  localNames,
  otherHere,
  rootOf,
  seenInstead,
  unreadableHere,
} from './local-side.ts'

export function deleteLocalRun({ disk }: { disk: Disk }): VerbRun {
  return async (context) => {
    const local = context.case.local!
    const root = rootOf(context.pair)
    const names = await localNames(context, root, local)
    if (!names) return goneHere(context, 'where it is here is not known')
    if (await isBehindLink(context, root, local)) return { end: 'left', because: BEHIND_LINK }
    try {
      return await deleteAt(disk, context, root, { local, names })
    } catch (thrown) {
      if (isNoFolder(thrown)) return goneHere(context, MOVED_ALONG)
      throw thrown
    }
  }
}

const MOVED_ALONG = 'its folder is not where it was'

function deleteAt(
  disk: Disk,
  context: ActionContext,
  root: Root,
  { local, names }: { local: LocalRow; names: string[] },
): Promise<Ended> | Ended {
  const look = lookInside(root, names)
  // Where its folder is not there, it may have been moved along with it a moment ago.
  if (!look) return isFolder(root, names.slice(0, -1)) ? gone(context) : goneHere(context, MOVED_ALONG)
  if (look.type === 'link') return { end: 'left', because: 'it is a link here: delete it yourself' }
  if (look.type !== local.type) return otherHere(context, local, look)
  if (local.type === 'folder') return deleteFolder(context, root, { local, names, look })
  return deleteFile(disk, context, root, { local, names })
}

function gone(context: ActionContext, counts = deleteCounts(context)): Ended {
  const { pair, job, node, version } = context
  const isOnlyHere = job.payload.verb === 'delete-local'
  return {
    end: 'done',
    write: async (tx) => {
      const nowMs = job.clock.now()
      await countDelete(tx, pair.name, { nowMs, ...counts })
      const isBack = await keepBack(tx, context)
      return (await endGone(tx, pair.name, { node, version, isOnlyHere, atMs: nowMs })) || isBack
    },
  }
}

type Counts = { items: number; files: number }

function deleteCounts({ case: { base } }: ActionContext): Counts {
  return { items: 1, files: base?.type === 'file' ? 1 : 0 }
}

/** A look has seen something in its place since, and would not tell it again: that is something new. */
async function keepBack(tx: Tx, { pair, node, case: { local: known } }: ActionContext): Promise<boolean> {
  const now = await localOfItem(tx, pair.name, node.slice(2))
  if (!now || now.isMissing) return false
  const isSame = now.type === 'folder' ? isSameThing : isSameStat
  if (known && !known.isMissing && known.id === now.id && isSame(now, known)) return false
  await putLocal(tx, pair.name, { ...now, itemId: null })
  await openNode(tx, pair.name, `l:${now.id}`)
  return true
}

/** S4: what is deleted is, byte for byte as far as hashes tell, what both sides agreed on. */
async function deleteFile(
  disk: Disk,
  context: ActionContext,
  root: Root,
  { local, names }: { local: LocalRow; names: string[] },
): Promise<Ended> {
  const { pair, job } = context
  const hashed = await hashInside(disk, root, names, job)
  if (hashed === 'unreadable') return unreadableHere(context, local, 'it may not be read')
  if (hashed !== 'changed' && !isAgreedContent(hashed, context.case.base!)) {
    const { hash, sha256, stat } = hashed
    return {
      end: 'stale',
      because: 'it was edited here, and is kept',
      write: async (tx) => {
        await recordLocal(tx, pair.name, [{ seen: 'changed', id: local.id, stat }])
        await setLocalHash(tx, pair.name, { id: local.id, stat, hash, sha256 })
      },
    }
  }
  if (hashed !== 'changed') {
    const taken = moveToTrash(root, names, hashed.stat, { atMs: job.clock.now() })
    if (taken.outcome !== 'changed') return gone(context)
  }
  const now = lookInside(root, names)
  return now ? otherHere(context, local, now) : goneHere(context)
}

function deleteFolder(
  context: ActionContext,
  root: Root,
  { local, names, look }: { local: LocalRow; names: string[]; look: Look },
): Promise<Ended> | Ended {
  if (!isSameThing(look, local)) return otherHere(context, local, look)
  const outcome = removeEmptyFolder(root, names, local)
  if (outcome === 'done' || outcome === 'gone') return gone(context)
  if (outcome === 'changed') return { end: 'stale', because: 'another folder is in its place' }
  return notEmpty(context, root, { local, names })
}

/** What is in it and takes part in the sync is news; what does not, keeps the folder. */
async function notEmpty(
  context: ActionContext,
  root: Root,
  { local, names }: { local: LocalRow; names: string[] },
): Promise<Ended> {
  const { pair, store } = context
  const known = new Set<string>()
  for (const row of await store.localChildren(pair.name, local.id)) if (!row.isMissing) known.add(row.name)
  const news: { name: string; look: Look }[] = []
  for (const name of namesIn(root, names)) {
    if (known.has(name)) continue
    const look = lookInside(root, [...names, name])
    if (!look || !isTakingPart(context, [...names, name], look)) continue
    news.push({ name, look })
  }
  if (known.size === 0 && news.length === 0) {
    return { end: 'left', because: 'kept: it holds files that are not synced' }
  }
  if (news.length === 0) return { end: 'stale', because: 'something is in it' }
  const first = await store.takeLocalIds(pair.name, news.length)
  const observations = news.map(({ name, look }, index): LocalObservation => {
    const type = look.type === 'link' ? 'other' : look.type
    return { seen: 'new', id: first + index, parentId: local.id, name, type, stat: plainStat(look) }
  })
  return seenInstead(context, observations, 'something new is in it')
}

function namesIn(root: Root, names: readonly string[]): string[] {
  const folder = holdFolder(root, names)
  try {
    return readdirSync(folder.at('.'))
  } finally {
    folder.close()
  }
}

function isTakingPart({ pair }: ActionContext, names: readonly string[], look: Look): boolean {
  const type = look.type === 'folder' ? 'folder' : 'file'
  return pair.filter.excluded(names.join('/').normalize('NFC'), { type, size: look.size }) === undefined
}

export const deleteRemoteRun: VerbRun = async (context) => {
  const { pair, job } = context
  const remote = context.case.remote!
  const back = await lookForIt(context, rootOf(pair))
  if (back) return back
  let counts = deleteCounts(context)
  try {
    if (job.payload.isWhole) {
      const whole = await wholeFolderTag(context, remote)
      if ('end' in whole) return whole
      counts = whole.counts
      await pair.client.remove(pair.driveId, remote.itemId, { ifMatch: whole.tag, signal: job.signal })
    } else if (remote.type === 'folder') {
      const tag = await emptyFolderTag(context, remote)
      if (typeof tag !== 'string') return tag
      await pair.client.remove(pair.driveId, remote.itemId, { ifMatch: tag, signal: job.signal })
    } else {
      const ifMatch = remote.eTag ?? remote.cTag ?? undefined
      if (ifMatch === undefined) return { end: 'left', because: 'OneDrive does not say which version it has' }
      await pair.client.remove(pair.driveId, remote.itemId, { ifMatch, signal: job.signal })
    }
    return gone(context, counts)
  } catch (thrown) {
    const code = errorCode(thrown)
    if (code !== 'not-found' && code !== 'precondition-failed') throw thrown
    const now = await lookAtItem(context, remote.itemId)
    // Deleted by a try that was interrupted, or by somebody: delta tells, and then it is forgotten.
    if (!now || (code === 'not-found' && isAsKnown(now, remote))) return notGiven(context, [remote.itemId])
    if (isAsKnown(now, remote) && remote.type === 'file') throw refusedAgain(thrown)
    return staleWith(context, [now], 'it changed in OneDrive meanwhile')
  }
}

/** How it ends if the file is not really gone: nothing is concluded from what is not known. */
async function lookForIt(context: ActionContext, root: Root): Promise<Ended | undefined> {
  const { pair, store } = context
  const { local, base } = context.case
  const unknown = (): Promise<Ended> => goneHere(context, 'where it was here is not known')
  const folder =
    local === undefined
      ? await store.localOfItem(pair.name, base!.parentId)
      : await store.localRow(pair.name, local.parentId ?? 0)
  const above = folder && (await folderNames(context, root, folder))
  if (!above) return unknown()
  const name = local?.name ?? base!.name
  if (!(await isWayKnown(context, root, folder))) return goneHere(context, 'its folder is not there')
  const look = lookInside(root, [...above, name])
  if (!look) return undefined
  const other = (await store.localChildren(pair.name, folder.id)).find(
    (row) => row.name === name && !row.isMissing,
  )
  // Another thing of that name, which is known: it is really gone.
  if (other && other.id !== local?.id) return undefined
  if (!local) return unknown()
  const isBack = look.type === local.type
  // What cannot be synced says nothing of what was there: the next look keeps that.
  if (!isBack) return isSyncable(look) ? undefined : goneHere(context, 'something else is in its place')
  return seenInstead(context, [{ seen: 'changed', id: local.id, stat: plainStat(look) }], 'it is here again')
}

/** Folders that are known to be gone may be gone; any other must be there. */
async function isWayKnown(context: ActionContext, root: Root, from: LocalRow): Promise<boolean> {
  const { pair, store } = context
  for (let row: LocalRow | undefined = from; row; ) {
    const names = await folderNames(context, root, row)
    if (!row.isMissing) return names !== undefined && isFolder(root, names)
    const look = names && lookInside(root, names)
    if (look && !isSyncable(look)) return false
    row = row.parentId === null ? undefined : await store.localRow(pair.name, row.parentId)
  }
  return false
}

function isSyncable({ type }: Look): boolean {
  return type === 'file' || type === 'folder'
}

function isFolder(root: Root, names: readonly string[]): boolean {
  try {
    holdFolder(root, names).close()
    return true
  } catch (thrown) {
    if (isNoFolder(thrown) || isAbsence(thrown)) return false
    throw thrown
  }
}

/**
 * Deleting a folder deletes all that is in it, also what came a moment ago. So it is looked into; and where the folder
 * has a tag that changes with what is in it, it is deleted only with the tag that it had before that look.
 */
async function emptyFolderTag(context: ActionContext, remote: RemoteRow): Promise<string | Ended> {
  const { pair, job } = context
  const tag = await folderTag(context, remote)
  if (typeof tag !== 'string') return tag
  const children: RemoteRow[] = []
  for await (const child of pair.client.children(pair.driveId, remote.itemId, { signal: job.signal })) {
    const row = toRow(child, pair)
    if (row) children.push(row)
    if (children.length >= CHILDREN_MAX) break
  }
  return children.length > 0 ? staleWith(context, children, 'something is in it in OneDrive') : tag
}

/** As it is now, where it was known to be. */
async function folderTag(context: ActionContext, remote: RemoteRow): Promise<string | Ended> {
  const now = await lookAtItem(context, remote.itemId)
  if (!now) return notGiven(context, [remote.itemId])
  const isMoved = now.parentId !== remote.parentId || now.name !== remote.name
  if (isMoved || now.type !== 'folder') return staleWith(context, [now], 'it changed in OneDrive meanwhile')
  const tag = now.cTag ?? now.eTag
  return tag ?? { end: 'left', because: 'OneDrive does not say which version it has' }
}

/** Enough to know that it is not empty; delta tells the rest. */
const CHILDREN_MAX = 1_000

/**
 * With all that is in it: every folder is listed, and each thing in it must be one that was seen, as it was seen. What
 * is not is news, and then they go one by one.
 *
 * The listing is what keeps something that somebody saved there in the last minute: delta lags so far behind, and no
 * other answer tells it. The tags of a folder change with what is in it on some drives only, its size and number of
 * children miss an edit of the same length. So it costs one call for each folder, and for each 200 things in it: 1,005
 * calls for 20,000 files in 1,000 folders, 101 where they are all in one.
 */
async function wholeFolderTag(
  context: ActionContext,
  remote: RemoteRow,
): Promise<{ tag: string; counts: Counts } | Ended> {
  const { pair, store } = context
  const tag = await folderTag(context, remote)
  if (typeof tag !== 'string') return tag
  const whole = await store.wholeDelete(pair.name, remote.itemId)
  if (!whole) return { end: 'stale', because: 'something in it is to stay' }
  const known = new Map(whole.items.map(({ row }) => [row.itemId, row]))
  const folders = [remote.itemId]
  while (folders.length > 0) {
    const some = folders.splice(0, LISTED_AT_ONCE)
    const listed = (await Promise.all(some.map((folder) => readChildren(context, folder)))).flat()
    const news = listed.filter((row) => {
      const before = known.get(row.itemId)
      return !before || isOther(before, row)
    })
    if (news.length > 0) return isHeardOf(context, news)
    for (const { type, itemId } of listed) if (type === 'folder') folders.push(itemId)
  }
  const files = whole.items.filter(({ row }) => row.type === 'file').length
  return { tag, counts: { items: whole.items.length, files } }
}

const LISTED_AT_ONCE = 8
const LAG_MS = 5_000

async function readChildren({ pair, job }: ActionContext, itemId: string): Promise<RemoteRow[]> {
  const rows: RemoteRow[] = []
  for await (const child of pair.client.children(pair.driveId, itemId, { signal: job.signal })) {
    const row = toRow(child, pair)
    if (row) rows.push(row)
  }
  return rows
}

/** What OneDrive has told to be deleted, and still lists, is no news: it is waited for. */
async function isHeardOf(context: ActionContext, news: readonly RemoteRow[]): Promise<Ended> {
  const { pair, store } = context
  const some = news.slice(0, CHILDREN_MAX)
  const known = await store.remoteRows(
    pair.name,
    some.map(({ itemId }) => itemId),
  )
  if (some.every(({ itemId }) => known.get(itemId)?.isDeleted))
    return { end: 'wait', because: 'OneDrive lists what it has deleted', afterMs: LAG_MS, isHeardFirst: true }
  return staleWith(context, some, 'something else is in it in OneDrive')
}
