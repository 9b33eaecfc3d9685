/** Writes what OneDrive tells into the remote tree, and opens what changed by it. */
import type { Tx } from '../../../ledger/contract.ts'
import { itemNode, type NodeKey, nameKey, type RemoteRow } from '../trees.ts'
import { freeLeftOut, openNodes } from './open-nodes.ts'
import { listParameter, putRemote, REMOTE_COLUMNS, toRemoteRow } from './rows.ts'

/** Items in the order in which they came: the last one counts. Returns how many nodes were opened. */
export async function recordRemote(
  tx: Tx,
  pair: string,
  items: readonly RemoteRow[],
  generation: number,
): Promise<number> {
  const last = new Map(items.map((item) => [item.itemId, item]))
  const known = await remoteRows(tx, pair, [...last.keys()])
  const opened = new Set<NodeKey>()
  // What is there first: something may have left a folder before the folder was deleted.
  for (const item of last.values()) {
    if (item.isDeleted) continue
    const before = known.get(item.itemId)
    await putRemote(tx, pair, item, generation)
    // The root is both sides' from the start.
    if (item.parentId === null) continue
    // In work, another tag is news as well: what its action has looked at meanwhile is older.
    const isNews = !before || isOther(before, item)
    const isTouched = !isNews && before.eTag !== item.eTag && (await isInWork(tx, pair, item.itemId))
    if (isNews || isTouched) opened.add(itemNode(item.itemId))
    const isMoved = before && (before.parentId !== item.parentId || before.name !== item.name)
    if (isMoved && item.type === 'folder') await freeLeftOut(tx, pair, { localId: null, itemId: item.itemId })
    if (before?.isDeleted) {
      for (const itemId of await reviveBranch(tx, pair, item.itemId, generation)) opened.add(itemNode(itemId))
    }
  }
  const unknown = [...last.values()].filter((item) => item.isDeleted && !known.has(item.itemId))
  if (unknown.length > 0 && (await isMaking(tx, pair))) {
    for (const item of unknown) await putRemote(tx, pair, { ...item, name: UNKNOWN }, generation)
  }
  for (const item of last.values()) {
    if (!item.isDeleted || known.get(item.itemId)?.parentId == null) continue
    for (const itemId of await deleteBranch(tx, pair, item.itemId, generation)) opened.add(itemNode(itemId))
  }
  await openNodes(tx, pair, opened)
  return opened.size
}

async function isInWork(tx: Tx, pair: string, itemId: string): Promise<boolean> {
  const row = await tx.get(
    `SELECT 1 AS yes FROM file_open WHERE drive = ? AND node = ? AND planned IS NOT NULL`,
    [pair, itemNode(itemId)],
  )
  return row !== undefined
}

/** The name of items of which nothing was ever known but that they are deleted. */
const UNKNOWN = ''

/**
 * Whether something new here is on its way to OneDrive: then an unknown item that is deleted may be the one that is
 * just being made, and whose end is not written down yet. That must be remembered, as it is not told twice.
 */
async function isMaking(tx: Tx, pair: string): Promise<boolean> {
  const row = await tx.get(
    `SELECT 1 AS yes FROM file_open WHERE drive = ? AND node >= 'l:' AND node < 'l;' AND planned IS NOT NULL LIMIT 1`,
    [pair],
  )
  return row !== undefined
}

/**
 * What an action found when it looked at items itself; `action` is left out where it is no look, but what was known
 * before is told again. Always under the number of the latest reading: with an older
 * one, a reading from the start that is under way would take them for deleted.
 */
export async function recordRemoteNow(
  tx: Tx,
  pair: string,
  items: readonly RemoteRow[],
  action?: { node: NodeKey; version: number },
): Promise<number> {
  const row = await tx.get<{ generation: number }>(`SELECT generation FROM file_drives WHERE name = ?`, [
    pair,
  ])
  const now: RemoteRow[] = []
  for (const item of items) {
    const isOld = action !== undefined && (await isOutdated(tx, pair, item, action))
    if (!isOld) now.push(await withFolder(tx, pair, item))
  }
  return recordRemote(tx, pair, now, Number(row?.generation ?? 0))
}

/**
 * OneDrive may have told something newer between the look and its writing, and will not tell it again. So where news
 * of an item has not been planned yet, a look at it is left out: if it was the newer one after all, that is told.
 */
async function isOutdated(
  tx: Tx,
  pair: string,
  look: RemoteRow,
  action: { node: NodeKey; version: number },
): Promise<boolean> {
  const known = await remoteRow(tx, pair, look.itemId)
  if (!known || (!isOther(known, look) && known.eTag === look.eTag)) return false
  // Ids do not come back, but out of the recycle bin, and that is told as well.
  if (known.isDeleted && !look.isDeleted) return true
  const node = itemNode(look.itemId)
  const open = await tx.get<{ version: number; planned: number | null; waits_for: string | null }>(
    `SELECT version, planned, waits_for FROM file_open WHERE drive = ? AND node = ? AND because IS NULL`,
    [pair, node],
  )
  if (!open) return false
  if (node === action.node) return Number(open.version) !== action.version
  return open.planned === null && open.waits_for === null
}

/**
 * What an action has seen in a folder of which OneDrive has told since that it is deleted, is deleted with it: that is
 * not told again.
 */
export async function withFolder(tx: Tx, pair: string, item: RemoteRow): Promise<RemoteRow> {
  if (item.isDeleted || item.parentId === null) return item
  const folder = await tx.get<{ is_deleted: number }>(
    `SELECT is_deleted FROM file_remote WHERE drive = ? AND item_id = ?`,
    [pair, item.parentId],
  )
  return Number(folder?.is_deleted ?? 0) !== 0 ? { ...item, isDeleted: true } : item
}

/** What concerns the sync: not when somebody shared it. */
export function isOther(before: RemoteRow, now: RemoteRow): boolean {
  const isTagged = before.cTag !== null && now.cTag !== null
  return (
    before.isDeleted !== now.isDeleted ||
    before.parentId !== now.parentId ||
    before.name !== now.name ||
    before.type !== now.type ||
    before.size !== now.size ||
    before.hash !== now.hash ||
    (now.type === 'file' && (isTagged ? before.cTag !== now.cTag : before.eTag !== now.eTag))
  )
}

/**
 * `is_deleted`: OneDrive has told so, or it went with a folder above it, of which that was told. The difference counts
 * when something of that folder turns out to be elsewhere: a deletion may be told pages before the move out of it.
 */
const TOLD_DELETED = 1
const DELETED_WITH_FOLDER = 2

/** A folder takes along what is in it: OneDrive need not say so. */
export async function deleteBranch(
  tx: Tx,
  pair: string,
  itemId: string,
  generation: number,
): Promise<string[]> {
  const rows = await tx.all<{ item_id: string }>(
    `WITH RECURSIVE branch(item_id) AS (
       SELECT item_id FROM file_remote WHERE drive = ? AND item_id = ?
       UNION SELECT child.item_id FROM branch JOIN file_remote child
         ON child.drive = ? AND child.parent_id = branch.item_id)
     UPDATE file_remote SET is_deleted = ${DELETED_WITH_FOLDER}, generation = ?
     WHERE drive = ? AND is_deleted = 0 AND item_id IN (SELECT item_id FROM branch) RETURNING item_id`,
    [pair, itemId, pair, generation, pair],
  )
  await tx.run(
    `UPDATE file_remote SET is_deleted = ${TOLD_DELETED} WHERE drive = ? AND item_id = ? AND is_deleted = ${DELETED_WITH_FOLDER}`,
    [pair, itemId],
  )
  return rows.map((row) => row.item_id)
}

/** It is there after all, and with it what was only taken for deleted because of where it had been. */
async function reviveBranch(tx: Tx, pair: string, itemId: string, generation: number): Promise<string[]> {
  const rows = await tx.all<{ item_id: string }>(
    `WITH RECURSIVE branch(item_id) AS (
       SELECT item_id FROM file_remote WHERE drive = ? AND item_id = ?
       UNION SELECT child.item_id FROM branch JOIN file_remote child
         ON child.drive = ? AND child.parent_id = branch.item_id AND child.is_deleted = ${DELETED_WITH_FOLDER})
     UPDATE file_remote SET is_deleted = 0, generation = ?
     WHERE drive = ? AND is_deleted <> 0 AND item_id IN (SELECT item_id FROM branch) RETURNING item_id`,
    [pair, itemId, pair, generation, pair],
  )
  return rows.map((row) => row.item_id)
}

/** Named, although not enough is said of them: so they are there. */
export async function keepListed(
  tx: Tx,
  pair: string,
  ids: readonly string[],
  generation: number,
): Promise<void> {
  if (ids.length === 0) return
  await tx.run(
    `UPDATE file_remote SET generation = ? WHERE drive = ? AND is_deleted = 0 AND item_id IN (${listParameter(tx)})`,
    [generation, pair, JSON.stringify(ids)],
  )
}

/** An enumeration from the start has come to its end: what it did not name is not there. */
export async function deleteUnlisted(tx: Tx, pair: string, generation: number): Promise<number> {
  const rows = await tx.all<{ item_id: string }>(
    `UPDATE file_remote SET is_deleted = 1 WHERE drive = ? AND is_deleted = 0 AND generation < ? AND parent_id IS NOT NULL RETURNING item_id`,
    [pair, generation],
  )
  await openNodes(
    tx,
    pair,
    rows.map((row) => itemNode(row.item_id)),
  )
  return rows.length
}

/** The same of these alone: they were looked for, and are not there. What was met since stays. */
export async function deleteMissed(
  tx: Tx,
  pair: string,
  { ids, generation }: { ids: readonly string[]; generation: number },
): Promise<void> {
  const rows = await tx.all<{ item_id: string }>(
    `UPDATE file_remote SET is_deleted = 1 WHERE drive = ? AND is_deleted = 0 AND generation < ? AND parent_id IS NOT NULL
       AND item_id IN (${listParameter(tx)}) RETURNING item_id`,
    [pair, generation, JSON.stringify(ids)],
  )
  await openNodes(
    tx,
    pair,
    rows.map((row) => itemNode(row.item_id)),
  )
}

/** What an enumeration has not named right in a folder; without `within`, in all folders that it has named. */
export async function unlisted(
  tx: Tx,
  pair: string,
  { generation, limit, within }: { generation: number; limit: number; within?: string | undefined },
): Promise<string[]> {
  const place =
    within !== undefined
      ? 'parent_id = ?'
      : `NOT EXISTS (SELECT 1 FROM file_remote above WHERE above.drive = missed.drive AND above.is_deleted = 0
           AND above.item_id = missed.parent_id AND above.parent_id IS NOT NULL AND above.generation < ?)`
  const rows = await tx.all<{ item_id: string }>(
    `SELECT item_id FROM file_remote missed WHERE drive = ? AND is_deleted = 0 AND generation < ?
       AND parent_id IS NOT NULL AND ${place} ORDER BY item_id LIMIT ?`,
    [pair, generation, within ?? generation, limit],
  )
  return rows.map((row) => row.item_id)
}

export async function remoteRows(
  tx: Tx,
  pair: string,
  ids: readonly string[],
): Promise<Map<string, RemoteRow>> {
  const rows = await tx.all(
    `SELECT ${REMOTE_COLUMNS} FROM file_remote WHERE drive = ? AND item_id IN (${listParameter(tx)})`,
    [pair, JSON.stringify(ids)],
  )
  return new Map(rows.map(toRemoteRow).map((row) => [row.itemId, row]))
}

/** Of one, for actions: a list costs three times as much. */
export async function remoteRow(tx: Tx, pair: string, itemId: string): Promise<RemoteRow | undefined> {
  const raw = await tx.get(`SELECT ${REMOTE_COLUMNS} FROM file_remote WHERE drive = ? AND item_id = ?`, [
    pair,
    itemId,
  ])
  return raw && toRemoteRow(raw)
}

/** The root has neither name nor content of its own. */
export function rootRow(itemId: string): RemoteRow {
  return {
    itemId,
    parentId: null,
    name: '',
    type: 'folder',
    size: 0,
    hash: null,
    eTag: null,
    cTag: null,
    modifiedMs: null,
    isDeleted: false,
  }
}

/** Who is known to have this name in that folder. */
export async function remoteAtName(
  tx: Tx,
  pair: string,
  { parentId, name }: { parentId: string; name: string },
): Promise<RemoteRow | undefined> {
  const raw = await tx.get(
    `SELECT ${REMOTE_COLUMNS} FROM file_remote WHERE drive = ? AND parent_id = ? AND name_key = ? AND is_deleted = 0`,
    [pair, parentId, nameKey(name)],
  )
  return raw && toRemoteRow(raw)
}
