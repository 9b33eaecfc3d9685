/** How actions and plans end, in rows. Each returns whether nodes are to be planned (again). */

import { TidemarkError } from '../../../base/errors.ts'
import type { Tx } from '../../../ledger/contract.ts'
import { DIGESTS_OF_NOTHING } from '../content-hash.ts'
import { type Case, type ConflictKind, decide } from '../decide.ts'
import type { Reason } from '../left-code.ts'
import { isSameButChanged, isSameThing } from '../local/stat.ts'
import { isTemporaryName } from '../names.ts'
import type { NodeState, Plan } from '../plan.ts'
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
import { IS_HELD } from './guard.ts'
import {
  forgetLocal,
  localAtName,
  localOfItem,
  localRow,
  missBranch,
  recordLocal,
  takeLocalIds,
  tidyFolder,
} from './local-tree.ts'
import {
  awaitedNode,
  closeNode,
  closeNodes,
  freeExchanged,
  freeFolder,
  freeLeftOut,
  freeNode,
  freeWaiting,
  isMoving,
  isOpen,
  leaveNode,
  openNode,
  openNodes,
} from './open-nodes.ts'
import { pathOfNode } from './overview.ts'
import { deleteBranch, isOther, recordRemoteNow, remoteRow, withFolder } from './remote-tree.ts'
import { BASE_COLUMNS, LOCAL_COLUMNS, putBase, putLocal, putRemote, toBaseRow, toLocalRow } from './rows.ts'

/** Both sides have the same now. */
export async function endInStep(tx: Tx, pair: string, end: InStep): Promise<boolean> {
  const { node, version, remote } = end
  const item = itemNode(remote.itemId)
  // It has become the item's node meanwhile, which knows more by now.
  if (node.startsWith('l:') && !(await isOpen(tx, pair, node))) return reopen(tx, pair, item)
  await putKnown(tx, pair, remote, end.now ? end.now.remote : await remoteRow(tx, pair, remote.itemId))
  const local = await placeLocal(tx, pair, end)
  // It is the local side of another item, which has not gone yet: so this one is not here after all.
  if (!local) return endStale(tx, pair, { node })
  const folder = await readFolder(tx, pair, local)
  const isAtPlace = await putAgreed(tx, pair, { local, folder, remote })
  const partner: NodeKey = `l:${local.id}`
  const isChanged = await closeNode(tx, pair, node, version)
  // From now on it is the item's node alone: what was seen or heard meanwhile is looked at again as that.
  const others = [node, partner].filter((other) => other !== item && (isChanged || other !== node))
  if (others.length > 0) await closeNodes(tx, pair, others)
  const isHeard = node !== item && (await isOpen(tx, pair, item))
  const isNews = !isAtPlace || isHeard || (isChanged && node !== item)
  if (isNews) await openNode(tx, pair, item)
  const isGone = await tellGone(tx, pair, { remote, local, folder })
  return (await freeWaiting(tx, pair, [node, partner, item])) || isNews || isChanged || isGone
}

/** Looked at again, if there is something to look at. */
async function reopen(tx: Tx, pair: string, item: NodeKey): Promise<boolean> {
  const known = await remoteRow(tx, pair, item.slice(2))
  if (known) await openNode(tx, pair, item)
  return known !== undefined
}

type Folder = Pick<LocalRow, 'itemId' | 'isMissing'>

async function readFolder(tx: Tx, pair: string, { parentId }: LocalRow): Promise<Folder | undefined> {
  const raw = await tx.get<{ item_id: string | null; is_missing: number }>(
    `SELECT item_id, is_missing FROM file_local WHERE drive = ? AND id = ?`,
    [pair, parentId],
  )
  return raw && { itemId: raw.item_id, isMissing: Number(raw.is_missing) === 1 }
}

/** Its folder was seen to be gone, on either side, while it was brought there: then it is gone with it. */
async function tellGone(
  tx: Tx,
  pair: string,
  { remote, local, folder }: { remote: RemoteRow; local: LocalRow; folder: Folder | undefined },
): Promise<boolean> {
  const now = await withFolder(tx, pair, remote)
  const heard = now.isDeleted ? await recordRemoteNow(tx, pair, [now]) : 0
  const { id, parentId, name } = local
  if (parentId === null || (folder && !folder.isMissing)) return heard > 0
  const seen = await recordLocal(tx, pair, [{ seen: 'missing', id, parentId, name }])
  return heard + seen.opened > 0
}

/**
 * What is written as it was known says nothing new: under the number of a reading from the start that is under way it
 * would count as named by it, and what was deleted would never be missed.
 */
async function putKnown(
  tx: Tx,
  pair: string,
  remote: RemoteRow,
  before: RemoteRow | undefined,
): Promise<void> {
  if (before && !isOther(before, remote) && before.eTag === remote.eTag) return
  await putRemote(tx, pair, remote, await generationOf(tx, pair))
}

async function generationOf(tx: Tx, pair: string): Promise<number> {
  const row = await tx.get<{ generation: number }>(`SELECT generation FROM file_drives WHERE name = ?`, [
    pair,
  ])
  return Number(row?.generation ?? 0)
}

/**
 * One row for the item, whatever rows there were for it and for its place. Undefined where the very same thing is the
 * local side of another item.
 */
async function placeLocal(tx: Tx, pair: string, end: InStep): Promise<LocalRow | undefined> {
  const { remote, localName, type, stat, hash, sha256 } = end
  const own = 'id' in end.local ? end.local.id : undefined
  const known = end.now ? end.now.local : own === undefined ? undefined : await localRow(tx, pair, own)
  const parentId = known ? known.parentId : 'parentId' in end.local ? end.local.parentId : null
  if (parentId === null) throw lostRow()
  const there = await localAtName(tx, pair, parentId, localName)
  const other = there && there.id !== known?.id ? there : undefined
  const isSame = other !== undefined && other.type === type && isSameThing(other, stat)
  const isOfAnother = isSame && other.itemId !== null && other.itemId !== remote.itemId
  if (isOfAnother) return undefined
  const former = await localOfItem(tx, pair, remote.itemId)
  const taken = isSame && !known ? other.id : undefined
  const id = known?.id ?? taken ?? former?.id ?? (await takeLocalIds(tx, pair, 1))
  if (former && former.id !== id) await dropLocal(tx, pair, former.id)
  if (other && other.id !== id) {
    await recordLocal(tx, pair, [{ seen: 'missing', id: other.id, parentId, name: localName }])
  }
  const row: LocalRow = {
    id,
    parentId,
    name: localName,
    type,
    ...stat,
    hash,
    sha256,
    itemId: remote.itemId,
    isMissing: false,
    unreadable: null,
  }
  await putLocal(tx, pair, row)
  if (former && former.id === id) await tidyFolder(tx, pair, former.parentId)
  return row
}

function lostRow(): TidemarkError {
  return new TidemarkError('The row of the local file is gone, and where it belongs is not said.', {
    kind: 'bug',
  })
}

async function dropLocal(tx: Tx, pair: string, id: number): Promise<void> {
  await closeNodes(tx, pair, [`l:${id}`])
  await forgetLocal(tx, pair, id)
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
  pair: string,
  { local, folder, remote }: { local: LocalRow; folder: Folder | undefined; remote: RemoteRow },
): Promise<boolean> {
  const isAtPlace = folder?.itemId === remote.parentId && sameSpelling(local.name, remote.name)
  const place = isAtPlace ? remote : { parentId: folder?.itemId ?? '', name: local.name }
  await putBase(tx, pair, {
    itemId: remote.itemId,
    parentId: place.parentId ?? '',
    name: place.name,
    type: local.type as 'file' | 'folder',
    ...digestsOfRow(local),
    size: local.size,
    remoteHash: remote.hash,
    remoteSize: remote.size,
    eTag: remote.eTag,
    cTag: remote.cTag,
  })
  return isAtPlace
}

/** A rename or move was done: the place is agreed, the content is looked at next. */
export async function endMoved(
  tx: Tx,
  pair: string,
  end: { node: NodeKey; local: LocalRow; remote: RemoteRow; basePlace: { parentId: string; name: string } },
): Promise<boolean> {
  await putKnown(tx, pair, end.remote, await remoteRow(tx, pair, end.remote.itemId))
  const before = await localRow(tx, pair, end.local.id)
  await putLocal(tx, pair, end.local)
  if (before) await tidyFolder(tx, pair, before.parentId)
  await tx.run(`UPDATE file_base SET parent_id = ?, name = ? WHERE drive = ? AND item_id = ?`, [
    end.basePlace.parentId,
    end.basePlace.name,
    pair,
    end.remote.itemId,
  ])
  await tellGone(tx, pair, { ...end, folder: await readFolder(tx, pair, end.local) })
  if (before && isTemporaryName(before.name)) await freeExchanged(tx, pair)
  if (end.local.type === 'folder')
    await freeLeftOut(tx, pair, { localId: end.local.id, itemId: end.remote.itemId })
  await freeNode(tx, pair, end.node)
  await freeWaiting(tx, pair, [end.node])
  return true
}

/** It is gone on both sides; `isOnlyHere`: it was deleted here because OneDrive did not have it any more. */
export async function endGone(
  tx: Tx,
  pair: string,
  end: { node: NodeKey; version: number; atMs: number; isOnlyHere?: boolean },
): Promise<boolean> {
  const { node, version, atMs, isOnlyHere = false } = end
  const item = isOnlyHere ? await remoteRow(tx, pair, node.slice(2)) : undefined
  // OneDrive has told since that it has it after all: it comes back.
  const isBack = item !== undefined && !item.isDeleted
  if (isBack) await forgetHere(tx, pair, item.itemId)
  const isFolder = !isBack && (await forgetRows(tx, pair, node))
  if (node.startsWith('i:')) await dismissConflicts(tx, pair, node, atMs)
  const again = await closeNode(tx, pair, node, version)
  return (await freeWaiting(tx, pair, [node])) || again || isFolder
}

async function forgetHere(tx: Tx, pair: string, itemId: string): Promise<void> {
  const local = await localOfItem(tx, pair, itemId)
  const below = local ? await missBranch(tx, pair, local.id) : []
  await openNodes(
    tx,
    pair,
    below.filter((node) => node !== itemNode(itemId)),
  )
  await tx.run(`DELETE FROM file_base WHERE drive = ? AND item_id = ?`, [pair, itemId])
  if (local) await forgetLocal(tx, pair, local.id)
}

/** With it, whatever is known to be in it is gone: that is not told again. True where there is something. */
async function forgetRows(tx: Tx, pair: string, node: NodeKey): Promise<boolean> {
  const item = node.startsWith('i:') ? node.slice(2) : undefined
  const local =
    item === undefined ? await localRow(tx, pair, Number(node.slice(2))) : await localOfItem(tx, pair, item)
  const below = new Set<NodeKey>(local ? await missBranch(tx, pair, local.id) : [])
  if (item !== undefined) {
    const deleted = await deleteBranch(tx, pair, item, await generationOf(tx, pair))
    for (const itemId of deleted) below.add(itemNode(itemId))
  }
  below.delete(node)
  await openNodes(tx, pair, below)
  if (item !== undefined) {
    for (const table of ['file_base', 'file_remote']) {
      await tx.run(`DELETE FROM ${table} WHERE drive = ? AND item_id = ?`, [pair, item])
    }
  }
  if (local) await forgetLocal(tx, pair, local.id)
  return below.size > 0
}

/**
 * The local version has another name now and goes on as a new node; the item goes on as one without anything here.
 * A node that only wanted a name that is taken keeps its item.
 */
export async function endSetAside(tx: Tx, pair: string, end: SetAside): Promise<boolean> {
  const row = await localRow(tx, pair, end.localId)
  if (row) {
    const itemId = end.isDetached ? null : row.itemId
    // A look has seen it since: under that name, or wherever somebody has taken it from there. Or it has entered it
    // as something new, because another file has the place that it had.
    const isElsewhere = row.parentId !== end.from.parentId || row.name !== end.from.name
    const isSeen = isElsewhere || (await localAtName(tx, pair, row.parentId!, end.copyName)) !== undefined
    const ctime = end.stat && isSameButChanged(row, end.stat) ? { ctimeNs: end.stat.ctimeNs } : {}
    const copy = { ...row, ...ctime, name: isSeen ? row.name : end.copyName, itemId }
    await putLocal(tx, pair, copy)
    await openNode(tx, pair, localNode(copy))
  }
  if (end.isDetached && end.node.startsWith('i:')) {
    await tx.run(`DELETE FROM file_base WHERE drive = ? AND item_id = ?`, [pair, end.node.slice(2)])
  }
  if (!(await noteDecidedCopy(tx, pair, end.conflict))) await addConflict(tx, pair, end.conflict)
  await freeNode(tx, pair, end.node)
  await freeWaiting(tx, pair, [end.node])
  return true
}

/** Someone decided so: the conflict keeps its number, by which people look at it. */
async function noteDecidedCopy(tx: Tx, pair: string, row: SetAside['conflict']): Promise<boolean> {
  const { node, copyPath, localHash } = row
  const isIts = localHash === null ? '' : 'AND (local_hash = ? OR local_hash IS NULL)'
  const noted = await tx.run(
    `UPDATE file_conflicts SET copy_path = ? WHERE drive = ? AND node = ? AND state = 'kept-both'
     AND copy_path IS NULL ${isIts}`,
    [copyPath, pair, node, ...(localHash === null ? [] : [localHash])],
  )
  return noted > 0
}

/** One that is decided leaves nothing to decide about its node. */
export async function addConflict(tx: Tx, pair: string, row: SetAside['conflict']): Promise<void> {
  if (row.state !== 'open') await dismissConflicts(tx, pair, row.node, row.at)
  await tx.run(
    `INSERT INTO file_conflicts(drive, id, kind, path, node, copy_path, local_hash, remote_hash, at, state)
     SELECT ?, coalesce(max(id), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ? FROM file_conflicts WHERE drive = ?`,
    [
      pair,
      row.kind,
      row.path,
      row.node,
      row.copyPath,
      row.localHash,
      row.remoteHash,
      row.at,
      row.state,
      pair,
    ],
  )
}

/** Nothing is left to decide: both sides agree by themselves, or one of them is gone. */
export async function dismissConflicts(tx: Tx, pair: string, node: NodeKey, atMs: number): Promise<void> {
  await tx.run(
    `UPDATE file_conflicts SET state = 'dismissed', resolved_at = ? WHERE drive = ? AND node = ? AND state = 'open'`,
    [atMs, pair, node],
  )
}

/** Of what is left alone for another reason: a decision would be carried out by nobody, and is asked for again then. */
async function dismissLeft(tx: Tx, pair: string, atMs: number): Promise<void> {
  await tx.run(
    `UPDATE file_conflicts SET state = 'dismissed', resolved_at = ? WHERE drive = ? AND state = 'open'
       AND EXISTS (SELECT 1 FROM file_open WHERE drive = file_conflicts.drive AND node = file_conflicts.node
         AND planned IS NULL AND because IS NOT NULL AND coalesce(code, '') <> 'undecided')`,
    [atMs, pair],
  )
}

/** Nothing was done, because something is not as it was: planned again. */
export async function endStale(tx: Tx, pair: string, { node }: { node: NodeKey }): Promise<boolean> {
  const freed = await freeNode(tx, pair, node)
  return (await freeWaiting(tx, pair, [node])) || freed
}

/**
 * Left alone with a reason: until something changes, someone asks, or `until` has ended; with the node itself for
 * that, until the next whole look. What waited for it looks again whether it can do without.
 */
export async function endLeft(
  tx: Tx,
  pair: string,
  end: Reason & { node: NodeKey; version: number; until?: NodeKey },
): Promise<boolean> {
  const freed = await freeWaiting(tx, pair, [end.node])
  return (await leaveNode(tx, pair, end)) || freed
}

/** Everything that a plan decided: rows that agree, nodes that wait, and the numbers of those with an action. */
export async function writePlan(
  tx: Tx,
  pair: string,
  { cycle, plan, atMs }: { cycle: number; plan: Plan; atMs: number },
): Promise<void> {
  for (const { node, version } of plan.actions) {
    const marked = await tx.run(
      `UPDATE file_open SET planned = ?, waits_for = NULL WHERE drive = ? AND node = ? AND version = ? AND planned IS NULL`,
      [cycle, pair, node, version],
    )
    if (marked !== 1) throw changedMeanwhile(node)
  }
  for (const one of plan.waiting) await writeWaiting(tx, pair, one)
  for (const one of plan.reported) {
    // It would be left alone for a reason that is over.
    if (isOpenThen(one.was) && one.until !== undefined && !(await isOpen(tx, pair, one.until))) continue
    await leaveNode(tx, pair, one)
    if (one.code === 'folder-left') await freeFolder(tx, pair, one)
  }
  if (plan.waiting.length + plan.reported.length > 0) await dismissLeft(tx, pair, atMs)
  for (const one of plan.bookkeeping) await keepBooks(tx, pair, one, atMs)
  await tx.run(
    `UPDATE file_drives SET planned = ?, held_deletes = CASE WHEN EXISTS (
       SELECT 1 FROM file_open WHERE drive = ? AND ${IS_HELD}) THEN coalesce(?, held_deletes) END WHERE name = ?`,
    [cycle, pair, plan.heldDeletes ? JSON.stringify(plan.heldDeletes) : null, pair],
  )
}

/**
 * It waits for one that moves. One that ended or was left alone since the rows were read (a conflict that somebody is to
 * decide) wakes nobody any more: then it stays to be planned. And where that was so when they were read, planning
 * again would change nothing: it is left alone until that one has ended.
 */
async function writeWaiting(
  tx: Tx,
  pair: string,
  { node, version, waitsFor, because, was }: Plan['waiting'][number],
): Promise<void> {
  const { state } = await awaitedNode(tx, pair, { node, waitsFor })
  if (isMoving(state)) {
    await tx.run(`UPDATE file_open SET waits_for = ? WHERE drive = ? AND node = ? AND version = ?`, [
      waitsFor,
      pair,
      node,
      version,
    ])
  } else if (state === 'circle' || state === was) {
    const code = state === 'stuck' ? ('other-left' as const) : undefined
    await leaveNode(tx, pair, { node, version, because, code, until: waitsFor })
  }
}

function isOpenThen(was: NodeState | undefined): boolean {
  return was !== undefined && was !== 'in step'
}

function changedMeanwhile(node: NodeKey): TidemarkError {
  return new TidemarkError(`${node} changed while it was planned.`, {
    kind: 'transient',
    code: 'plan-outdated',
  })
}

async function keepBooks(
  tx: Tx,
  pair: string,
  { node, version, decision }: Plan['bookkeeping'][number],
  atMs: number,
): Promise<void> {
  const open = await tx.get(`SELECT 1 AS yes FROM file_open WHERE drive = ? AND node = ? AND version = ?`, [
    pair,
    node,
    version,
  ])
  if (!open) throw changedMeanwhile(node)
  if (decision.do === 'forget') await endGone(tx, pair, { node, version, atMs })
  else if (decision.do === 'adopt') await adopt(tx, pair, { node, version, atMs })
  else await detach(tx, pair, { node, atMs, conflict: decision.conflict })
}

async function adopt(
  tx: Tx,
  pair: string,
  { node, version, atMs }: { node: NodeKey; version: number; atMs: number },
): Promise<void> {
  const { remote, local, base } = await nodeRows(tx, pair, node)
  // Something new here has a version of its own: so it is decided again on the rows as they are now.
  const folder = local && (await readFolder(tx, pair, local))
  const now = decide({ base, local, remote, localParentId: folder?.itemId ?? undefined }, 'two-way')
  // Another one of the same plan has left it something else to be compared with: it stays open, and is planned again.
  if (!remote || !local || now.do !== 'adopt') return
  await putLocal(tx, pair, { ...local, itemId: remote.itemId })
  const isAtPlace = await putAgreed(tx, pair, { local, folder, remote })
  if (isAtPlace) await closeNode(tx, pair, node, version)
  await dismissConflicts(tx, pair, node, atMs)
  await closeNodes(tx, pair, [`l:${local.id}`])
  await freeWaiting(tx, pair, [node, `l:${local.id}`])
}

async function nodeRows(
  tx: Tx,
  pair: string,
  node: NodeKey,
): Promise<Pick<Case, 'base' | 'local' | 'remote'>> {
  const itemId = node.slice(2)
  const remote = await remoteRow(tx, pair, itemId)
  const local = (await localOfItem(tx, pair, itemId)) ?? (remote && (await findPartner(tx, pair, remote)))
  return { remote, local, base: await baseRow(tx, pair, itemId) }
}

async function baseRow(tx: Tx, pair: string, itemId: string): Promise<BaseRow | undefined> {
  const raw = await tx.get(`SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id = ?`, [
    pair,
    itemId,
  ])
  return raw && toBaseRow(raw)
}

/** Something new here at the very place where an item has nothing here: they are one node. */
export async function findPartner(tx: Tx, pair: string, remote: RemoteRow): Promise<LocalRow | undefined> {
  if (remote.isDeleted || remote.parentId === null) return undefined
  const folder = await localOfItem(tx, pair, remote.parentId)
  if (!folder) return undefined
  const rows = await tx.all(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND parent_id = ? AND name_key = ? AND is_missing = 0`,
    [pair, folder.id, nameKey(remote.name)],
  )
  return bestPair(rows.map(toLocalRow), remote)
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
  pair: string,
  { node, atMs, conflict }: { node: NodeKey; atMs: number; conflict: ConflictKind | undefined },
): Promise<void> {
  const itemId = node.slice(2)
  const local = await localOfItem(tx, pair, itemId)
  const base = await baseRow(tx, pair, itemId)
  const path = local && conflict ? await pathOfNode(tx, pair, `l:${local.id}`) : ''
  if (local) {
    await putLocal(tx, pair, { ...local, itemId: null })
    await openNode(tx, pair, `l:${local.id}`)
  }
  await tx.run(`DELETE FROM file_base WHERE drive = ? AND item_id = ?`, [pair, itemId])
  await tx.run(`DELETE FROM file_remote WHERE drive = ? AND item_id = ? AND is_deleted <> 0`, [pair, itemId])
  await closeNodes(tx, pair, [node])
  await freeWaiting(tx, pair, [node])
  await dismissConflicts(tx, pair, node, atMs)
  if (!conflict || !local) return
  await addConflict(tx, pair, {
    kind: conflict,
    path,
    node,
    copyPath: null,
    at: atMs,
    state: 'kept-local',
    localHash: local.hash,
    remoteHash: base?.remoteHash ?? null,
  })
}
