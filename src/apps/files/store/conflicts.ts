/**
 * How conflicts end in rows. A conflict that someone decided is not carried out by moving files about: the base is set
 * to the side that gives way, so that the other side is simply the one that changed, and goes its usual way with all
 * the care of that way.
 */

import type { Tx } from '../../../ledger/contract.ts'
import type { Reason } from '../left-code.ts'
import { isSameStat } from '../local/stat.ts'
import {
  type BaseRow,
  type Digests,
  itemNode,
  type LocalRow,
  type NodeKey,
  type RemoteRow,
} from '../trees.ts'
import type { ConflictRow } from './contract.ts'
import { addConflict, endGone, endStale } from './ends.ts'
import { forgetLocal, localOfItem, localRow } from './local-tree.ts'
import {
  awaitedNode,
  closeNodes,
  freeNode,
  freeWaiting,
  leaveNode,
  openNode,
  waitForNode,
} from './open-nodes.ts'
import { isOther, recordRemoteNow, remoteRows } from './remote-tree.ts'
import { putBase, putLocal } from './rows.ts'

export type Decided = {
  node: NodeKey
  local: LocalRow
  remote: RemoteRow
  /** Undefined where it is on record already. */
  record: Omit<ConflictRow, 'id' | 'resolvedAt'> | undefined
}

/** The local version counts: as if both sides had had what is `there`, and it was edited here since. */
export async function endKeptLocal(
  tx: Tx,
  pair: string,
  { there, ...end }: Decided & { there: Pick<BaseRow, 'hash' | 'sha256'> },
): Promise<boolean> {
  const { remote } = end
  await putBase(tx, pair, {
    itemId: remote.itemId,
    parentId: remote.parentId ?? '',
    name: remote.name,
    type: 'file',
    hash: there.hash,
    sha256: there.sha256,
    size: remote.size,
    remoteHash: remote.hash,
    remoteSize: remote.size,
    eTag: remote.eTag,
    cTag: remote.cTag,
  })
  return endDecided(tx, pair, end)
}

/** OneDrive's version counts: as if both sides had had the local one, and it was edited there since. */
export async function endKeptRemote(
  tx: Tx,
  pair: string,
  { here, ...end }: Decided & { here: Digests },
): Promise<boolean> {
  const { local, remote } = end
  await putBase(tx, pair, {
    itemId: remote.itemId,
    parentId: remote.parentId ?? '',
    name: remote.name,
    type: 'file',
    ...here,
    size: local.size,
    remoteHash: here.hash,
    remoteSize: local.size,
    // No tag that OneDrive has ever given: its content counts as another one.
    eTag: null,
    cTag: null,
  })
  return endDecided(tx, pair, end)
}

/**
 * OneDrive has something else than was just sent to it. That counts as what both sides had, and the file as an edit of
 * it: so it is sent again, though not before the next whole look.
 */
export async function endDoubted(
  tx: Tx,
  pair: string,
  end: { node: NodeKey; local: LocalRow; remote: RemoteRow; because: string },
): Promise<boolean> {
  const { node, local, remote, because } = end
  await recordRemoteNow(tx, pair, [remote])
  await endKeptLocal(tx, pair, {
    node,
    local,
    remote,
    record: undefined,
    there: { hash: remote.hash ?? '', sha256: null },
  })
  const item = itemNode(remote.itemId)
  if (node !== item) await openNode(tx, pair, item)
  const now = await localRow(tx, pair, local.id)
  // What changed since is newer than what was sent.
  if (!now || now.isMissing || !isSameStat(now, local)) return true
  await tx.run(
    `UPDATE file_open SET because = ?, code = NULL, waits_for = node WHERE drive = ? AND node = ?`,
    [because, pair, item],
  )
  // Whoever waited for it.
  return true
}

async function endDecided(tx: Tx, pair: string, { node, local, remote, record }: Decided): Promise<boolean> {
  const now = await localRow(tx, pair, local.id)
  if (now) {
    if (now.itemId === null) await closeNodes(tx, pair, [`l:${now.id}`])
    const { hash, sha256 } = isSameStat(now, local) ? local : now
    await putLocal(tx, pair, { ...now, hash, sha256, itemId: remote.itemId })
  }
  if (record) await addConflict(tx, pair, record)
  await freeNode(tx, pair, node)
  await freeWaiting(tx, pair, [node, `l:${local.id}`])
  return true
}

/**
 * The file has the name and the content of an item that has nothing here: it is that item's from now on, and the one
 * that it had counts as deleted here. Only as long as all of them are what they were.
 */
export async function endHandedOver(
  tx: Tx,
  pair: string,
  { node, local, remote }: { node: NodeKey; local: LocalRow; remote: RemoteRow },
): Promise<boolean> {
  const now = await localRow(tx, pair, local.id)
  const item = (await remoteRows(tx, pair, [remote.itemId])).get(remote.itemId)
  const former = await localOfItem(tx, pair, remote.itemId)
  const isAsKnown = now && isSameFile(now, local) && item && !isOther(item, remote)
  if (!isAsKnown || (former && !former.isMissing)) return endStale(tx, pair, { node })
  if (former) await forgetLocal(tx, pair, former.id)
  await putLocal(tx, pair, { ...now, itemId: remote.itemId, hash: local.hash, sha256: local.sha256 })
  await openNode(tx, pair, itemNode(remote.itemId))
  return endWithout(tx, pair, node)
}

/** It was taken to the trash, since what takes its place has the same content. */
export async function endYielded(
  tx: Tx,
  pair: string,
  { node, version, local, atMs }: { node: NodeKey; version: number; local: LocalRow; atMs: number },
): Promise<boolean> {
  const now = await localRow(tx, pair, local.id)
  // Something else was seen in its place since.
  if (!now || !isSameFile(now, local)) return endStale(tx, pair, { node })
  if (now.itemId === null) return endGone(tx, pair, { node, version, atMs })
  await putLocal(tx, pair, { ...now, isMissing: true })
  return endWithout(tx, pair, node)
}

/** The node has nothing here any more: what that means is decided anew. */
async function endWithout(tx: Tx, pair: string, node: NodeKey): Promise<boolean> {
  if (node.startsWith('l:')) await closeNodes(tx, pair, [node])
  else await freeNode(tx, pair, node)
  await freeWaiting(tx, pair, [node])
  return true
}

function isSameFile(now: LocalRow, known: LocalRow): boolean {
  const isAtPlace = now.parentId === known.parentId && now.name === known.name && now.itemId === known.itemId
  return !now.isMissing && isAtPlace && isSameStat(now, known)
}

/**
 * Nobody has decided: both versions stay as they are, and people are asked. Something new here waits for the item of its
 * name: each is left alone until the other has ended, which people may bring about without a decision.
 */
export async function endOpenConflict(
  tx: Tx,
  pair: string,
  end: Reason & { node: NodeKey; version: number; local: Pick<LocalRow, 'id'> } & {
    record: Omit<ConflictRow, 'id' | 'resolvedAt'>
  },
): Promise<boolean> {
  const { node, record, because, code } = end
  const known = await tx.run(
    `UPDATE file_conflicts SET local_hash = ?, remote_hash = ?, path = ? WHERE drive = ? AND node = ? AND state = 'open'`,
    [record.localHash, record.remoteHash, record.path, pair, node],
  )
  if (known === 0) await addConflict(tx, pair, record)
  const here: NodeKey = `l:${end.local.id}`
  const paired = await tx.run(
    `UPDATE file_open SET because = ?, code = ?
     WHERE drive = ? AND node = ? AND waits_for = ? AND (because IS NULL OR code = 'undecided') AND planned IS NULL`,
    [because, code ?? null, pair, here, node],
  )
  return leaveNode(tx, pair, paired > 0 ? { ...end, until: here } : end)
}

/**
 * Something new here has the name of an item that it is compared with. Where that conflict waits for somebody, both are
 * looked at together: what is here is another one now.
 */
export async function waitForNamesake(
  tx: Tx,
  pair: string,
  end: { node: NodeKey; version: number; waitsFor: NodeKey },
): Promise<boolean> {
  // Whoever writes its end just now is waited for: what it has become is only known then.
  const { state, reason } = await awaitedNode(tx, pair, end)
  if (state !== 'stuck' || reason?.code !== 'undecided') return waitForNode(tx, pair, end)
  await freeNode(tx, pair, end.waitsFor)
  return freeNode(tx, pair, end.node)
}

/**
 * What someone has decided about a conflict of a node; only of these very contents, and only what is still to be carried
 * out: a copy was made by then, also where nobody was asked because only the name was taken.
 */
export async function decidedState(
  tx: Tx,
  pair: string,
  about: { node: NodeKey; localHash: string | null; remoteHash: string | null },
): Promise<'kept-both' | 'kept-local' | 'kept-remote' | undefined> {
  type Newest = Record<'state', string> & Record<'copy_path' | 'local_hash' | 'remote_hash', string | null>
  const row = await tx.get<Newest>(
    `SELECT state, copy_path, local_hash, remote_hash FROM file_conflicts WHERE drive = ? AND node = ?
     ORDER BY id DESC LIMIT 1`,
    [pair, about.node],
  )
  const isSame = row && row.local_hash === about.localHash && row.remote_hash === about.remoteHash
  if (!isSame || row.copy_path !== null || !/^kept-/.test(row.state)) return undefined
  return row.state as 'kept-both' | 'kept-local' | 'kept-remote'
}

/** Someone decided: the node is planned again, and its action does as it was said. */
export async function resolveConflict(
  tx: Tx,
  pair: string,
  { id, state, atMs }: { id: number; state: Exclude<ConflictRow['state'], 'open'>; atMs: number },
): Promise<NodeKey | undefined> {
  const row = await tx.get<{ node: NodeKey }>(
    `UPDATE file_conflicts SET state = ?, resolved_at = ? WHERE drive = ? AND id = ? AND state = 'open' RETURNING node`,
    [state, atMs, pair, id],
  )
  if (!row) return undefined
  await openNode(tx, pair, row.node)
  return row.node
}
