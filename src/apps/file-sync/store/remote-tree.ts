/** Writes what OneDrive tells into the remote tree, and opens what changed by it. */
import type { Tx } from '../../../ledger/contract.ts'
import { itemNode, type NodeKey, nameKey, type RemoteRow } from '../trees.ts'
import { openNodes } from './open-nodes.ts'
import { listOf, putRemote, REMOTE_COLUMNS, remoteOf } from './rows.ts'

/** Items in the order in which they came: the last one counts. Returns how many nodes were opened. */
export async function hearRemote(
  tx: Tx,
  drive: string,
  items: readonly RemoteRow[],
  generation: number,
): Promise<number> {
  const last = new Map(items.map((item) => [item.itemId, item]))
  const known = await remoteRows(tx, drive, [...last.keys()])
  const opened = new Set<NodeKey>()
  // What is there first: something may have left a folder before the folder was deleted.
  for (const item of last.values()) {
    if (item.isDeleted) continue
    const before = known.get(item.itemId)
    await putRemote(tx, drive, item, generation)
    // The root is both sides' from the start.
    if (item.parentId !== null && (!before || isOther(before, item))) opened.add(itemNode(item.itemId))
  }
  for (const item of last.values()) {
    if (!item.isDeleted || known.get(item.itemId)?.parentId == null) continue
    for (const itemId of await deleteBranch(tx, drive, item.itemId, generation)) opened.add(itemNode(itemId))
  }
  await openNodes(tx, drive, opened)
  return opened.size
}

/**
 * What an action found when it looked at items itself. Always under the number of the latest reading: with an older
 * one, a reading from the start that is under way would take them for deleted.
 */
export async function hearNow(tx: Tx, drive: string, items: readonly RemoteRow[]): Promise<number> {
  const row = await tx.get<{ generation: number }>(`SELECT generation FROM file_drives WHERE name = ?`, [
    drive,
  ])
  return hearRemote(tx, drive, items, Number(row?.generation ?? 0))
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

/** A folder takes along what is in it: OneDrive need not say so. */
async function deleteBranch(tx: Tx, drive: string, itemId: string, generation: number): Promise<string[]> {
  const rows = await tx.all<{ item_id: string }>(
    `WITH RECURSIVE branch(item_id) AS (
       SELECT item_id FROM file_remote WHERE drive = ? AND item_id = ?
       UNION SELECT child.item_id FROM branch JOIN file_remote child
         ON child.drive = ? AND child.parent_id = branch.item_id)
     UPDATE file_remote SET is_deleted = 1, generation = ?
     WHERE drive = ? AND is_deleted = 0 AND item_id IN (SELECT item_id FROM branch) RETURNING item_id`,
    [drive, itemId, drive, generation, drive],
  )
  return rows.map((row) => row.item_id)
}

/** An enumeration from the start has come to its end: what it did not name is not there. */
export async function forgetUnheard(tx: Tx, drive: string, generation: number): Promise<number> {
  const rows = await tx.all<{ item_id: string }>(
    `UPDATE file_remote SET is_deleted = 1 WHERE drive = ? AND is_deleted = 0 AND generation < ? AND parent_id IS NOT NULL RETURNING item_id`,
    [drive, generation],
  )
  await openNodes(
    tx,
    drive,
    rows.map((row) => itemNode(row.item_id)),
  )
  return rows.length
}

export async function remoteRows(
  tx: Tx,
  drive: string,
  ids: readonly string[],
): Promise<Map<string, RemoteRow>> {
  const rows = await tx.all(
    `SELECT ${REMOTE_COLUMNS} FROM file_remote WHERE drive = ? AND item_id IN (${listOf(tx)})`,
    [drive, JSON.stringify(ids)],
  )
  return new Map(rows.map(remoteOf).map((row) => [row.itemId, row]))
}

/** The root has neither name nor content of its own. */
export function rootRow(itemId: string): RemoteRow {
  return {
    ...{ itemId, parentId: null, name: '', type: 'folder', size: 0, hash: null, eTag: null, cTag: null },
    ...{ modifiedMs: null, isDeleted: false },
  }
}

/** Who is known to have this name in that folder. */
export async function remoteAtName(
  tx: Tx,
  drive: string,
  { parentId, name }: { parentId: string; name: string },
): Promise<RemoteRow | undefined> {
  const raw = await tx.get(
    `SELECT ${REMOTE_COLUMNS} FROM file_remote WHERE drive = ? AND parent_id = ? AND name_key = ? AND is_deleted = 0`,
    [drive, parentId, nameKey(name)],
  )
  return raw && remoteOf(raw)
}
