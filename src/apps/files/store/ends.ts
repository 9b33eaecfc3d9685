/** How actions and plans end, in rows. Each returns whether nodes are to be planned (again). */
import { TidemarkError } from '../../../base/errors.ts'
import type { Tx } from '../../../ledger/contract.ts'
import { DIGESTS_OF_NOTHING } from '../content-hash.ts'
import { type Case, type ConflictKind, decide } from '../decide.ts'
import type { Reason } from '../left-code.ts'
import { isTemporaryName } from '../names.ts'
import type { Plan } from '../plan.ts'
import {
  type BaseRow,
  itemNode,
  type LocalRow,
  localNode,
  type NodeKey,
  nameKey,
  type RemoteRow,
  sameSpelling,
} from '../trees.ts'
import type { InStep, SetAside } from './contract.ts'
import { IS_HELD } from './held.ts'
import {
  forgetLocal,
  localAtName,
  localOfItem,
  localRow,
  missBranch,
  seeLocal,
  takeLocalIds,
  tidyFolder,
} from './local-tree.ts'
import {
  closeNode,
  closeNodes,
  freeExchanged,
  freeFolder,
  freeLeftOut,
  freeNode,
  freeUndecided,
  freeWaiting,
  isOpen,
  leaveNode,
  openNode,
  openNodes,
} from './open-nodes.ts'
import { pathOfNode } from './overview.ts'
import { deleteBranch, hearNow, isOther, remoteRow, withFolder } from './remote-tree.ts'
import {
  BASE_COLUMNS,
  baseOf,
  isSameButChanged,
  isSameThing,
  LOCAL_COLUMNS,
  localOf,
  putBase,
  putLocal,
  putRemote,
} from './rows.ts'

/** Both sides have the same now. */
export async function endInStep(tx: Tx, drive: string, end: InStep): Promise<boolean> {
  const { node, version, remote } = end
  const item = itemNode(remote.itemId)
  // It has become the item's node meanwhile, which knows more by now.
  if (node.startsWith('l:') && !(await isOpen(tx, drive, node))) return reopen(tx, drive, item)
  await putKnown(tx, drive, remote, end.now ? end.now.remote : await remoteRow(tx, drive, remote.itemId))
  const local = await placeLocal(tx, drive, end)
  // It is the local side of another item, which has not gone yet: so this one is not here after all.
  if (!local) return endStale(tx, drive, { node })
  const folder = await folderOf(tx, drive, local)
  const isAtPlace = await putAgreed(tx, drive, { local, folder, remote })
  const pair: NodeKey = `l:${local.id}`
  const isChanged = await closeNode(tx, drive, node, version)
  // From now on it is the item's node alone: what was seen or heard meanwhile is looked at again as that.
  const others = [node, pair].filter((other) => other !== item && (isChanged || other !== node))
  if (others.length > 0) await closeNodes(tx, drive, others)
  const isHeard = node !== item && (await isOpen(tx, drive, item))
  const isNews = !isAtPlace || isHeard || (isChanged && node !== item)
  if (isNews) await openNode(tx, drive, item)
  const isGone = await tellGone(tx, drive, { remote, local, folder })
  return (await freeWaiting(tx, drive, [node, pair, item])) || isNews || isChanged || isGone
}

/** Looked at again, if there is something to look at. */
async function reopen(tx: Tx, drive: string, item: NodeKey): Promise<boolean> {
  const known = await remoteRow(tx, drive, item.slice(2))
  if (known) await openNode(tx, drive, item)
  return known !== undefined
}

type Folder = Pick<LocalRow, 'itemId' | 'isMissing'>

async function folderOf(tx: Tx, drive: string, { parentId }: LocalRow): Promise<Folder | undefined> {
  const raw = await tx.get<{ item_id: string | null; is_missing: number }>(
    `SELECT item_id, is_missing FROM file_local WHERE drive = ? AND id = ?`,
    [drive, parentId],
  )
  return raw && { itemId: raw.item_id, isMissing: Number(raw.is_missing) === 1 }
}

/** Its folder was seen to be gone, on either side, while it was brought there: then it is gone with it. */
async function tellGone(
  tx: Tx,
  drive: string,
  { remote, local, folder }: { remote: RemoteRow; local: LocalRow; folder: Folder | undefined },
): Promise<boolean> {
  const now = await withFolder(tx, drive, remote)
  const heard = now.isDeleted ? await hearNow(tx, drive, [now]) : 0
  const { id, parentId, name } = local
  if (parentId === null || (folder && !folder.isMissing)) return heard > 0
  const seen = await seeLocal(tx, drive, [{ seen: 'missing', id, parentId, name }])
  return heard + seen.opened > 0
}

/**
 * What is written as it was known says nothing new: under the number of a reading from the start that is under way it
 * would count as named by it, and what was deleted would never be missed.
 */
async function putKnown(
  tx: Tx,
  drive: string,
  remote: RemoteRow,
  before: RemoteRow | undefined,
): Promise<void> {
  if (before && !isOther(before, remote) && before.eTag === remote.eTag) return
  await putRemote(tx, drive, remote, await generationOf(tx, drive))
}

async function generationOf(tx: Tx, drive: string): Promise<number> {
  const row = await tx.get<{ generation: number }>(`SELECT generation FROM file_drives WHERE name = ?`, [
    drive,
  ])
  return Number(row?.generation ?? 0)
}

/**
 * One row for the item, whatever rows there were for it and for its place. Undefined where the very same thing is the
 * local side of another item.
 */
async function placeLocal(tx: Tx, drive: string, end: InStep): Promise<LocalRow | undefined> {
  const { remote, localName, type, stat, hash, sha256 } = end
  const own = 'id' in end.local ? end.local.id : undefined
  const known = end.now ? end.now.local : own === undefined ? undefined : await localRow(tx, drive, own)
  const parentId = known ? known.parentId : 'parentId' in end.local ? end.local.parentId : null
  if (parentId === null) throw lostRow()
  const there = await localAtName(tx, drive, parentId, localName)
  const other = there && there.id !== known?.id ? there : undefined
  const isSame = other !== undefined && other.type === type && isSameThing(other, stat)
  const isOfAnother = isSame && other.itemId !== null && other.itemId !== remote.itemId
  if (isOfAnother) return undefined
  const former = await localOfItem(tx, drive, remote.itemId)
  const taken = isSame && !known ? other.id : undefined
  const id = known?.id ?? taken ?? former?.id ?? (await takeLocalIds(tx, drive, 1))
  if (former && former.id !== id) await dropLocal(tx, drive, former.id)
  if (other && other.id !== id) {
    await seeLocal(tx, drive, [{ seen: 'missing', id: other.id, parentId, name: localName }])
  }
  const row: LocalRow = {
    ...{ id, parentId, name: localName, type, ...stat, hash, sha256, itemId: remote.itemId },
    ...{ isMissing: false, unreadable: null },
  }
  await putLocal(tx, drive, row)
  if (former && former.id === id) await tidyFolder(tx, drive, former.parentId)
  return row
}

function lostRow(): TidemarkError {
  return new TidemarkError('The row of the local file is gone, and where it belongs is not said.', {
    kind: 'bug',
  })
}

async function dropLocal(tx: Tx, drive: string, id: number): Promise<void> {
  await closeNodes(tx, drive, [`l:${id}`])
  await forgetLocal(tx, drive, id)
}

/** Two empty files agree without anyone having hashed them: a base without a hash would look edited ever after. */
function digestsOfRow({ type, size, hash, sha256 }: LocalRow): Pick<BaseRow, 'hash' | 'sha256'> {
  return hash === null && type === 'file' && size === 0 ? DIGESTS_OF_NOTHING : { hash, sha256 }
}

/**
 * The content is agreed on. False where the place is not: the local one then counts as the one that both had, so that
 * the file is moved to where OneDrive has it.
 */
async function putAgreed(
  tx: Tx,
  drive: string,
  { local, folder, remote }: { local: LocalRow; folder: Folder | undefined; remote: RemoteRow },
): Promise<boolean> {
  const isAtPlace = folder?.itemId === remote.parentId && sameSpelling(local.name, remote.name)
  const place = isAtPlace ? remote : { parentId: folder?.itemId ?? '', name: local.name }
  await putBase(tx, drive, {
    ...{ itemId: remote.itemId, parentId: place.parentId ?? '', name: place.name },
    ...{ type: local.type as 'file' | 'folder', ...digestsOfRow(local), size: local.size },
    ...{ remoteHash: remote.hash, remoteSize: remote.size, eTag: remote.eTag, cTag: remote.cTag },
  })
  return isAtPlace
}

/** A rename or move was done: the place is agreed, the content is looked at next. */
export async function endMoved(
  tx: Tx,
  drive: string,
  end: { node: NodeKey; local: LocalRow; remote: RemoteRow; basePlace: { parentId: string; name: string } },
): Promise<boolean> {
  await putKnown(tx, drive, end.remote, await remoteRow(tx, drive, end.remote.itemId))
  const before = await localRow(tx, drive, end.local.id)
  await putLocal(tx, drive, end.local)
  if (before) await tidyFolder(tx, drive, before.parentId)
  await tx.run(`UPDATE file_base SET parent_id = ?, name = ? WHERE drive = ? AND item_id = ?`, [
    ...[end.basePlace.parentId, end.basePlace.name, drive, end.remote.itemId],
  ])
  await tellGone(tx, drive, { ...end, folder: await folderOf(tx, drive, end.local) })
  if (before && isTemporaryName(before.name)) await freeExchanged(tx, drive)
  if (end.local.type === 'folder')
    await freeLeftOut(tx, drive, { localId: end.local.id, itemId: end.remote.itemId })
  await freeNode(tx, drive, end.node)
  await freeWaiting(tx, drive, [end.node])
  return true
}

/** It is gone on both sides; `isOnlyHere`: it was deleted here because OneDrive did not have it any more. */
export async function endGone(
  tx: Tx,
  drive: string,
  { node, version, isOnlyHere = false }: { node: NodeKey; version: number; isOnlyHere?: boolean },
): Promise<boolean> {
  const item = isOnlyHere ? await remoteRow(tx, drive, node.slice(2)) : undefined
  // OneDrive has told since that it has it after all: it comes back.
  const isBack = item !== undefined && !item.isDeleted
  if (isBack) await forgetHere(tx, drive, item.itemId)
  const isFolder = !isBack && (await forgetRows(tx, drive, node))
  const again = await closeNode(tx, drive, node, version)
  return (await freeWaiting(tx, drive, [node])) || again || isFolder
}

async function forgetHere(tx: Tx, drive: string, itemId: string): Promise<void> {
  const local = await localOfItem(tx, drive, itemId)
  const below = local ? await missBranch(tx, drive, local.id) : []
  await openNodes(
    tx,
    drive,
    below.filter((node) => node !== itemNode(itemId)),
  )
  await tx.run(`DELETE FROM file_base WHERE drive = ? AND item_id = ?`, [drive, itemId])
  if (local) await forgetLocal(tx, drive, local.id)
}

/** With it, whatever is known to be in it is gone: that is not told again. True where there is something. */
async function forgetRows(tx: Tx, drive: string, node: NodeKey): Promise<boolean> {
  const item = node.startsWith('i:') ? node.slice(2) : undefined
  const local =
    item === undefined ? await localRow(tx, drive, Number(node.slice(2))) : await localOfItem(tx, drive, item)
  const below = new Set<NodeKey>(local ? await missBranch(tx, drive, local.id) : [])
  if (item !== undefined) {
    const deleted = await deleteBranch(tx, drive, item, await generationOf(tx, drive))
    for (const itemId of deleted) below.add(itemNode(itemId))
  }
  below.delete(node)
  await openNodes(tx, drive, below)
  if (item !== undefined) {
    for (const table of ['file_base', 'file_remote']) {
      await tx.run(`DELETE FROM ${table} WHERE drive = ? AND item_id = ?`, [drive, item])
    }
  }
  if (local) await forgetLocal(tx, drive, local.id)
  return below.size > 0
}

/**
 * The local version has another name now and goes on as a new node; the item goes on as one without anything here.
 * A node that only wanted a name that is taken keeps its item.
 */
export async function endSetAside(tx: Tx, drive: string, end: SetAside): Promise<boolean> {
  const row = await localRow(tx, drive, end.localId)
  if (row) {
    const itemId = end.isDetached ? null : row.itemId
    // A look has seen it since: under that name, or wherever somebody has taken it from there. Or it has entered it
    // as something new, because another file has the place that it had.
    const isElsewhere = row.parentId !== end.from.parentId || row.name !== end.from.name
    const isSeen = isElsewhere || (await localAtName(tx, drive, row.parentId!, end.copyName)) !== undefined
    const ctime = end.stat && isSameButChanged(row, end.stat) ? { ctimeNs: end.stat.ctimeNs } : {}
    const copy = { ...row, ...ctime, name: isSeen ? row.name : end.copyName, itemId }
    await putLocal(tx, drive, copy)
    await openNode(tx, drive, localNode(copy))
  }
  if (end.isDetached && end.node.startsWith('i:')) {
    await tx.run(`DELETE FROM file_base WHERE drive = ? AND item_id = ?`, [drive, end.node.slice(2)])
  }
  if (!(await noteDecidedCopy(tx, drive, end.conflict))) await addConflict(tx, drive, end.conflict)
  await freeNode(tx, drive, end.node)
  await freeWaiting(tx, drive, [end.node])
  return true
}

/** Someone decided so: the conflict keeps its number, by which people look at it. */
async function noteDecidedCopy(tx: Tx, drive: string, row: SetAside['conflict']): Promise<boolean> {
  const noted = await tx.run(
    `UPDATE file_conflicts SET copy_path = ? WHERE drive = ? AND node = ? AND state = 'kept-both'
     AND copy_path IS NULL AND (local_hash = ? OR local_hash IS NULL)`,
    [row.copyPath, drive, row.node, row.localHash],
  )
  return noted > 0
}

export async function addConflict(tx: Tx, drive: string, row: SetAside['conflict']): Promise<void> {
  await tx.run(
    `INSERT INTO file_conflicts(drive, id, kind, path, node, copy_path, local_hash, remote_hash, at, state)
     SELECT ?, coalesce(max(id), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ? FROM file_conflicts WHERE drive = ?`,
    [
      ...[
        drive,
        row.kind,
        row.path,
        row.node,
        row.copyPath,
        row.localHash,
        row.remoteHash,
        row.at,
        row.state,
      ],
      drive,
    ],
  )
}

/** Nothing was done, because something is not as it was: planned again. */
export async function endStale(tx: Tx, drive: string, { node }: { node: NodeKey }): Promise<boolean> {
  const freed = await freeNode(tx, drive, node)
  return (await freeWaiting(tx, drive, [node])) || freed
}

/**
 * Left alone with a reason: until something changes, someone asks, or `until` has ended; with the node itself for
 * that, until the next whole look. What waited for it looks again whether it can do without.
 */
export async function endLeft(
  tx: Tx,
  drive: string,
  end: Reason & { node: NodeKey; version: number; until?: NodeKey },
): Promise<boolean> {
  const freed = await freeWaiting(tx, drive, [end.node])
  return (await leaveNode(tx, drive, end)) || freed
}

/** Everything that a plan decided: rows that agree, nodes that wait, and the numbers of those with an action. */
export async function writePlan(
  tx: Tx,
  drive: string,
  { cycle, plan, atMs }: { cycle: number; plan: Plan; atMs: number },
): Promise<void> {
  for (const { node, version } of plan.actions) {
    const marked = await tx.run(
      `UPDATE file_open SET planned = ?, waits_for = NULL WHERE drive = ? AND node = ? AND version = ? AND planned IS NULL`,
      [cycle, drive, node, version],
    )
    if (marked !== 1) throw changedMeanwhile(node)
  }
  for (const { node, version, waitsFor, wasOpen } of plan.waiting) {
    // What it was to wait for has ended since the rows were read, and nobody would wake it: it stays to be planned.
    if (wasOpen && !(await isOpen(tx, drive, waitsFor))) continue
    await tx.run(`UPDATE file_open SET waits_for = ? WHERE drive = ? AND node = ? AND version = ?`, [
      ...[waitsFor, drive, node, version],
    ])
  }
  for (const one of plan.reported) {
    // The same: it would be left alone for a reason that is over.
    if (one.wasOpen && one.until !== undefined && !(await isOpen(tx, drive, one.until))) continue
    await leaveNode(tx, drive, one)
    // What waits for a deletion that is held is deleted with it by the same yes.
    if (one.code !== 'held-delete') await freeUndecided(tx, drive, one.node)
    if (one.code === 'folder-left') await freeFolder(tx, drive, one)
  }
  for (const one of plan.bookkeeping) await keepBooks(tx, drive, one, atMs)
  await tx.run(
    `UPDATE file_drives SET planned = ?, held_deletes = CASE WHEN EXISTS (
       SELECT 1 FROM file_open WHERE drive = ? AND ${IS_HELD}) THEN coalesce(?, held_deletes) END WHERE name = ?`,
    [cycle, drive, plan.heldDeletes ? JSON.stringify(plan.heldDeletes) : null, drive],
  )
}

function changedMeanwhile(node: NodeKey): TidemarkError {
  return new TidemarkError(`${node} changed while it was planned.`, {
    kind: 'transient',
    code: 'plan-outdated',
  })
}

async function keepBooks(
  tx: Tx,
  drive: string,
  { node, version, decision }: Plan['bookkeeping'][number],
  atMs: number,
): Promise<void> {
  const open = await tx.get(`SELECT 1 AS yes FROM file_open WHERE drive = ? AND node = ? AND version = ?`, [
    ...[drive, node, version],
  ])
  if (!open) throw changedMeanwhile(node)
  if (decision.do === 'forget') await endGone(tx, drive, { node, version })
  else if (decision.do === 'adopt') await adopt(tx, drive, { node, version })
  else await detach(tx, drive, { node, atMs, conflict: decision.conflict })
}

async function adopt(
  tx: Tx,
  drive: string,
  { node, version }: { node: NodeKey; version: number },
): Promise<void> {
  const { remote, local, base } = await rowsOf(tx, drive, node)
  // Something new here has a version of its own: so it is decided again on the rows as they are now.
  const folder = local && (await folderOf(tx, drive, local))
  const now = decide({ base, local, remote, localParentId: folder?.itemId ?? undefined }, 'two-way')
  // Another one of the same plan has left it something else to be compared with: it stays open, and is planned again.
  if (!remote || !local || now.do !== 'adopt') return
  await putLocal(tx, drive, { ...local, itemId: remote.itemId })
  const isAtPlace = await putAgreed(tx, drive, { local, folder, remote })
  if (isAtPlace) await closeNode(tx, drive, node, version)
  await closeNodes(tx, drive, [`l:${local.id}`])
  await freeWaiting(tx, drive, [node, `l:${local.id}`])
}

async function rowsOf(
  tx: Tx,
  drive: string,
  node: NodeKey,
): Promise<Pick<Case, 'base' | 'local' | 'remote'>> {
  const itemId = node.slice(2)
  const remote = await remoteRow(tx, drive, itemId)
  const local = (await localOfItem(tx, drive, itemId)) ?? (remote && (await pairOf(tx, drive, remote)))
  return { remote, local, base: await baseRow(tx, drive, itemId) }
}

async function baseRow(tx: Tx, drive: string, itemId: string): Promise<BaseRow | undefined> {
  const raw = await tx.get(`SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id = ?`, [
    drive,
    itemId,
  ])
  return raw && baseOf(raw)
}

/** Something new here at the very place where an item has nothing here: they are one node. */
export async function pairOf(tx: Tx, drive: string, remote: RemoteRow): Promise<LocalRow | undefined> {
  if (remote.isDeleted || remote.parentId === null) return undefined
  const folder = await localOfItem(tx, drive, remote.parentId)
  if (!folder) return undefined
  const rows = await tx.all(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND parent_id = ? AND name_key = ? AND is_missing = 0`,
    [drive, folder.id, nameKey(remote.name)],
  )
  return bestPair(rows.map(localOf), remote)
}

/** Of those with its name in any case, the one that is spelled the same comes first. */
export function bestPair(rows: readonly LocalRow[], { name, type }: RemoteRow): LocalRow | undefined {
  const fitting = rows.filter((row) => row.itemId === null && row.type === type)
  fitting.sort((one, other) => one.id - other.id)
  return fitting.find((row) => sameSpelling(row.name, name)) ?? fitting[0]
}

/** OneDrive has deleted it, and something here stays: it becomes new here. */
async function detach(
  tx: Tx,
  drive: string,
  { node, atMs, conflict }: { node: NodeKey; atMs: number; conflict: ConflictKind | undefined },
): Promise<void> {
  const itemId = node.slice(2)
  const local = await localOfItem(tx, drive, itemId)
  const base = await baseRow(tx, drive, itemId)
  const path = local && conflict ? await pathOfNode(tx, drive, `l:${local.id}`) : ''
  if (local) {
    await putLocal(tx, drive, { ...local, itemId: null })
    await openNode(tx, drive, `l:${local.id}`)
  }
  await tx.run(`DELETE FROM file_base WHERE drive = ? AND item_id = ?`, [drive, itemId])
  await tx.run(`DELETE FROM file_remote WHERE drive = ? AND item_id = ? AND is_deleted = 1`, [drive, itemId])
  await tx.run(`DELETE FROM file_open WHERE drive = ? AND node = ?`, [drive, node])
  await freeWaiting(tx, drive, [node])
  if (!conflict || !local) return
  await addConflict(tx, drive, {
    ...{ kind: conflict, path, node, copyPath: null, at: atMs, state: 'kept-local' },
    ...{ localHash: local.hash, remoteHash: base?.remoteHash ?? null },
  })
}
