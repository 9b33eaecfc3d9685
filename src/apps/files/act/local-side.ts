/** The local side of a node on the disk: where it is, opened without following links, and what is seen instead. */
import { fstatSync, realpathSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { relative, sep } from 'node:path'
import type { Clock } from '../../../base/clock.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { ActionContext, Ended } from '../action.ts'
import type { FolderPair } from '../folder-pair.ts'
import { holdFolder, inside, isNoFolder, isStillAt, lookInside, READ_FLAGS } from '../local/folder.ts'
import { openRoot, type Root } from '../local/root.ts'
import { errnoOf, isSameStat, isSameThing, type Look, plainStat, toLook } from '../local/stat.ts'
import type { LocalObservation } from '../store/contract.ts'
import { localAtName, recordLocal } from '../store/local-tree.ts'
import { waitForNode } from '../store/open-nodes.ts'
import { type LocalRow, nameKey, type RemoteRow } from '../trees.ts'

type Acting = Pick<ActionContext, 'pair' | 'store' | 'job' | 'node' | 'version'>

/** Who watches the folder has seen it after this time. */
const ABSENT_MS = 3_000
/** So often something may be another one than was seen, from when it was last in step on. Takes some seconds at least. */
const CHANGES_MAX = 50
const WRITTEN_TO = 'it is being written to all the time'

/** Its marker is looked at each time: whatever is not there must not be so because the root is not. */
export function rootOf(pair: Pick<FolderPair, 'root' | 'markerId'>): Root {
  return openRoot(pair.root, pair.markerId)
}

/**
 * For what takes nothing away: looked at some moments ago at most. Whatever is done in it goes by the folder's identity,
 * and a file is read only where it is the one that was seen.
 */
export function recentRootOf(pair: Pick<FolderPair, 'root' | 'markerId'>, clock: Clock): Root {
  const nowMs = clock.monotonicMs()
  const known = recentRoots.get(pair)
  if (known && nowMs - known.atMs < RECENT_MS) return known.root
  const root = rootOf(pair)
  recentRoots.set(pair, { root, atMs: nowMs })
  return root
}

const RECENT_MS = 250
const recentRoots = new WeakMap<object, { root: Root; atMs: number }>()

/** A place, by the names that lead to it. */
export type Place = { folder: LocalRow; names: string[] }

/** Where an item of OneDrive belongs here; undefined where its folder is not here. */
export async function placeOfItem(
  context: Acting,
  root: Root,
  remote: RemoteRow,
): Promise<Place | undefined> {
  const { pair, store } = context
  if (remote.parentId === null) return undefined
  const folder = await store.localOfItem(pair.name, remote.parentId)
  if (!folder || folder.isMissing || folder.type !== 'folder') return undefined
  const names = await folderNames(context, root, folder)
  return names && { folder, names: [...names, remote.name] }
}

/**
 * Of a row, as they are on the disk; undefined where a folder above it is not known. Where links are followed, those
 * above it are; whether it is one itself matters only to who reads it: nothing else is ever done to what it leads to.
 */
export async function localNames(
  { pair, store }: Acting,
  root: Root,
  local: Pick<LocalRow, 'id'>,
  { isRead = false }: { isRead?: boolean } = {},
): Promise<string[] | undefined> {
  const names = await store.localPath(pair.name, local.id)
  if (!names || !pair.settings.follow_symlinks) return names
  const [above, own] = [names.slice(0, -1), names.slice(-1)]
  const real = realNames(root, above, own)
  return isRead && lookInside(root, real)?.type === 'link' ? realNames(root, names, []) : real
}

/**
 * Whether a followed link is on the way to it. Taking it away, or moving it, would take it from where it really is, and
 * then from there in OneDrive, too: so that is left to its owner.
 */
export async function isBehindLink(
  { pair, store }: Acting,
  root: Root,
  local: Pick<LocalRow, 'id'>,
): Promise<boolean> {
  const names = pair.settings.follow_symlinks ? await store.localPath(pair.name, local.id) : undefined
  if (!names) return false
  const real = realNames(root, names.slice(0, -1), names.slice(-1))
  return real.join('/') !== names.join('/')
}

export const BEHIND_LINK = 'a link leads to it here, and it is really elsewhere: take the link away yourself'

/** The folder of a row, as it is on the disk. */
export async function folderNames(
  { pair, store }: Acting,
  root: Root,
  folder: Pick<LocalRow, 'id'>,
): Promise<string[] | undefined> {
  const names = await store.localPath(pair.name, folder.id)
  return names && (pair.settings.follow_symlinks ? realNames(root, names, []) : names)
}

/** Where links are followed: to where they lead, if that is in the root. */
export function realNames(root: Root, led: readonly string[], rest: readonly string[]): string[] {
  try {
    const real = realpathSync(inside(root, led))
    if (real === root.path) return [...rest]
    if (real.startsWith(root.path + sep)) return [...relative(root.path, real).split(sep), ...rest]
  } catch (thrown) {
    if (errnoOf(thrown) === undefined) throw thrown
  }
  return [...led, ...rest]
}

export type Opened = { file: FileHandle; look: Look }

/** For reading; never through a link, and never waiting for a pipe. */
export async function openInside(
  root: Root,
  names: readonly string[],
): Promise<Opened | { unreadable: string } | undefined> {
  let file: FileHandle | undefined
  try {
    const folder = holdFolder(root, names.slice(0, -1))
    try {
      file = await open(folder.at(names.at(-1)!), READ_FLAGS)
    } finally {
      folder.close()
    }
    const look = toLook(fstatSync(file.fd, { bigint: true }))
    if (isStillAt({ root, names }, file.fd)) return { file, look }
    await file.close()
    return undefined
  } catch (thrown) {
    await file?.close()
    const code = errnoOf(thrown)
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP' || isNoFolder(thrown)) return undefined
    if (code === 'EACCES' || code === 'EPERM') return { unreadable: 'it may not be read' }
    throw thrown
  }
}

export type AsSeen = { names: string[]; look: Look }

/** What is at the place of a row, if it is still what the row says; else how the action ends. */
export async function lookAsSeen(
  context: Acting,
  root: Root,
  local: LocalRow,
): Promise<AsSeen | { ended: Ended }> {
  const names = await localNames(context, root, local, { isRead: true })
  if (!names) return { ended: await goneHere(context, 'where it is here is not known') }
  const look = lookInside(root, names)
  if (!look) return { ended: await goneHere(context) }
  const isSame = local.type === 'folder' ? isSameThing(look, local) : isSameStat(look, local)
  if (look.type === local.type && isSame) return { names, look }
  return { ended: await otherHere(context, local, look) }
}

/** The same, and opened. */
export async function openAsSeen(
  context: Acting,
  root: Root,
  local: LocalRow,
): Promise<(Opened & AsSeen) | { ended: Ended }> {
  const seen = await lookAsSeen(context, root, local)
  if ('ended' in seen) return seen
  const opened = await openInside(root, seen.names)
  if (!opened) return { ended: await goneHere(context) }
  if ('unreadable' in opened) return { ended: unreadableHere(context, local, opened.unreadable) }
  if (isSameStat(opened.look, local)) return { ...opened, names: seen.names }
  await opened.file.close()
  return { ended: await otherHere(context, local, opened.look) }
}

export function unreadableHere(context: Acting, { id }: LocalRow, unreadable: string): Ended {
  return seenInstead(context, [{ seen: 'changed', id, unreadable }], unreadable)
}

/**
 * Something else than the row says is at its place. A file to which somebody writes all the time would be planned and
 * read again without end: after some tries it is left alone until the next look, which finds it changed.
 */
export async function otherHere(context: Acting, local: LocalRow, look: Look): Promise<Ended> {
  if (look.type !== local.type) return goneHere(context)
  if (look.type === 'file' && context.version > CHANGES_MAX) return { end: 'left', because: WRITTEN_TO }
  const stat = plainStat(look)
  return seenInstead(context, [{ seen: 'changed', id: local.id, stat }], 'it changed here meanwhile')
}

/**
 * It is not where the rows say: moved or deleted a moment ago, and nobody has seen that yet. What became of it is for a
 * look at the folder to say, which can tell a move from a deletion. It is asked for, and gets the time for it: who
 * watches the folder waits until it is quiet there, which may be long while another program writes.
 */
export async function goneHere(acting: Acting, because = 'it is not where it was'): Promise<Ended> {
  const { pair, job, node, version } = acting
  const nowMs = job.clock.now()
  const kept = asObject(job.checkpoint)
  const sinceMs = typeof kept.absentSinceMs === 'number' ? kept.absentSinceMs : undefined
  if (sinceMs === undefined) await job.save({ ...kept, absentSinceMs: nowMs })
  // A clock that was put back since must not make it wait for as long.
  const leftMs = ABSENT_MS - Math.abs(nowMs - (sinceMs ?? nowMs))
  if (leftMs > 0) return { end: 'wait', because, afterMs: leftMs, soughtIn: await folderBefore(acting) }
  return {
    end: 'done',
    note: `${because}: waits for the next look at the folder`,
    write: (tx) => waitForNode(tx, pair.name, { node, version, waitsFor: node }),
  }
}

/** Where it was, as the rows have it; a look goes on from there to the folder above that is still there. */
async function folderBefore({ pair, store, node }: Acting): Promise<readonly string[]> {
  const own = node.startsWith('i:')
    ? await store.localOfItem(pair.name, node.slice(2))
    : await store.localRow(pair.name, Number(node.slice(2)))
  const item = own ? undefined : (await store.remoteRows(pair.name, [node.slice(2)])).get(node.slice(2))
  const folder = item?.parentId == null ? undefined : await store.localOfItem(pair.name, item.parentId)
  const id = own?.parentId ?? folder?.id
  return (id == null ? undefined : await store.localPath(pair.name, id)) ?? []
}

export function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

export function seenInstead(
  { pair }: Pick<Acting, 'pair'>,
  observations: readonly LocalObservation[],
  because: string,
): Ended {
  return { end: 'stale', because, write: (tx) => recordLocal(tx, pair.name, observations) }
}

/** Something that nobody has seen yet has a name that was thought to be free. */
export async function takenBy(context: Acting, { folder, names }: Place, look: Look): Promise<Ended> {
  const { pair, store } = context
  const name = names.at(-1)!
  const known = (await store.localByInode(pair.name, look)).find(
    (row) =>
      row.parentId === folder.id &&
      row.name !== name &&
      !row.isMissing &&
      nameKey(row.name) === nameKey(name),
  )
  if (known) {
    const other = lookInside(rootOf(context.pair), [...names.slice(0, -1), known.name])
    // It was renamed a moment ago, which nobody has seen yet.
    if (!other || !isSameThing(other, look)) return goneHere(context, 'something else has its name here')
    return { end: 'left', because: `this disk takes ${known.name} and ${name} for the same name` }
  }
  const id = await store.takeLocalIds(pair.name, 1)
  const type = look.type === 'link' ? 'other' : look.type
  const observation = { seen: 'new' as const, id, parentId: folder.id, name, type, stat: plainStat(look) }
  return seenInstead({ pair }, [observation], 'something else has its name here')
}

/** The row at a place, where a scan was faster than the commit: it may have rows below it already. */
export async function rowAt(
  tx: Tx,
  pair: string,
  { folder, names }: Place,
): Promise<{ id: number } | { parentId: number }> {
  const there = await localAtName(tx, pair, folder.id, names.at(-1)!)
  return there && there.itemId === null ? { id: there.id } : { parentId: folder.id }
}
