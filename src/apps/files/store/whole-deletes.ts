/**
 * Folders that were deleted here with all that is in them. One call deletes such a folder in OneDrive, where everything
 * that OneDrive is known to have in it is to be deleted as well: a thousand files need not go one by one. What is in it
 * waits for that call, and is forgotten after it.
 */
import type { Tx } from '../../../ledger/contract.ts'
import { isMovedRemotely } from '../decide.ts'
import { isRemoteContentSame, itemNode, type NodeKey, type RemoteRow } from '../trees.ts'
import { pathOfNode } from './overview.ts'
import { remoteRow, remoteRows } from './remote-tree.ts'
import { BASE_COLUMNS, LOCAL_COLUMNS, listParameter, toBaseRow, toLocalRow } from './rows.ts'

export type WholeDelete = {
  itemId: string
  /** Of the folder, for people. */
  path: string
  /** The folder and all that is in it, with their paths, as OneDrive is known to have them. */
  items: { row: RemoteRow; path: string }[]
}

/** No range of text: between `i:` and `i;` PostgreSQL has nothing where it sorts as a language does. */
const isItem = (node: string): string => `substr(${node}, 1, 2) = 'i:'`

/** In memory at once; larger ones go one by one. */
const ITEMS_MAX = 100_000
/** Looked at by one plan. */
const FOLDERS_MAX = 100

/** Folders to be planned that are gone here and where they were in OneDrive; outer ones come for those in them. */
export async function foldersGone(tx: Tx, pair: string): Promise<{ itemId: string; version: number }[]> {
  const rows = await tx.all<{ item_id: string; parent_id: string; version: number }>(
    `SELECT there.item_id AS item_id, there.parent_id AS parent_id, open.version AS version FROM file_open open
     CROSS JOIN file_base base CROSS JOIN file_remote there CROSS JOIN file_local here
     WHERE open.drive = ? AND ${isItem('open.node')} AND open.planned IS NULL
       AND open.because IS NULL AND open.waits_for IS NULL
       AND base.drive = open.drive AND base.item_id = substr(open.node, 3) AND base.type = 'folder'
       AND there.drive = base.drive AND there.item_id = base.item_id AND there.is_deleted = 0
       AND here.drive = base.drive AND here.item_id = base.item_id AND here.is_missing = 1`,
    [pair],
  )
  const ids = new Set(rows.map((row) => row.item_id))
  return rows
    .filter((row) => !ids.has(row.parent_id))
    .slice(0, FOLDERS_MAX)
    .map((row) => ({ itemId: row.item_id, version: Number(row.version) }))
}

/** Undefined: something in it stays, was changed in OneDrive, is in work, or nobody knows. */
export async function wholeDelete(tx: Tx, pair: string, itemId: string): Promise<WholeDelete | undefined> {
  const top = await remoteRow(tx, pair, itemId)
  if (!top || top.isDeleted || top.type !== 'folder') return undefined
  const ids = await idsBelow(tx, pair, itemId)
  if (ids.length > ITEMS_MAX) return undefined
  const all = [itemId, ...ids]
  const list = JSON.stringify(all)
  const bases = await tx.all(
    `SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id IN (${listParameter(tx)})`,
    [pair, list],
  )
  const locals = await tx.all(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND item_id IN (${listParameter(tx)})`,
    [pair, list],
  )
  const rows = await remoteRows(tx, pair, all)
  const base = new Map(bases.map(toBaseRow).map((row) => [row.itemId, row]))
  const local = new Map(locals.map(toLocalRow).map((row) => [row.itemId, row]))
  for (const id of all) {
    const [row, agreed, here] = [rows.get(id), base.get(id), local.get(id)]
    if (!row || !agreed || row.type === 'package' || row.type === 'shortcut' || isMovedRemotely(row, agreed))
      return undefined
    if (row.type === 'file' && !isRemoteContentSame(row, agreed)) return undefined
    if (!here?.isMissing || here.unreadable !== null) return undefined
  }
  if (!(await areFree(tx, pair, all.map(itemNode)))) return undefined
  const path = await pathOfNode(tx, pair, itemNode(itemId))
  const paths = new Map([[itemId, path]])
  const items = all.map((id) => {
    const row = rows.get(id)!
    if (id !== itemId) paths.set(id, `${paths.get(row.parentId!)}/${row.name}`)
    return { row, path: paths.get(id)! }
  })
  return { itemId, path, items }
}

/** Those above before what is in them. */
async function idsBelow(tx: Tx, pair: string, itemId: string): Promise<string[]> {
  const rows = await tx.all<{ item_id: string; depth: number }>(
    `WITH RECURSIVE branch(item_id, depth) AS (
       SELECT item_id, 0 FROM file_remote WHERE drive = ? AND parent_id = ? AND is_deleted = 0
       UNION SELECT child.item_id, branch.depth + 1 FROM branch CROSS JOIN file_remote child
         WHERE child.drive = ? AND child.parent_id = branch.item_id AND child.is_deleted = 0
           AND branch.depth < ${DEPTH_MAX})
     SELECT item_id, depth FROM branch LIMIT ${ITEMS_MAX + 1}`,
    [pair, itemId, pair],
  )
  return rows.sort((one, other) => Number(one.depth) - Number(other.depth)).map((row) => row.item_id)
}

const DEPTH_MAX = 1_000

/** All but the folder itself wait to be planned, or for the folder: nobody acts on one of them, or has left it alone. */
async function areFree(tx: Tx, pair: string, nodes: readonly NodeKey[]): Promise<boolean> {
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM file_open WHERE drive = ? AND node IN (${listParameter(tx)})
       AND (node = ? OR planned IS NULL) AND because IS NULL`,
    [pair, JSON.stringify(nodes), nodes[0]!],
  )
  return Number(row?.n) === nodes.length
}

/** What is in it waits for it. */
export async function waitForWhole(tx: Tx, pair: string, { itemId, items }: WholeDelete): Promise<void> {
  const below = items.slice(1).map(({ row }) => itemNode(row.itemId))
  await tx.run(
    `UPDATE file_open SET waits_for = ? WHERE drive = ? AND planned IS NULL AND node IN (${listParameter(tx)})`,
    [itemNode(itemId), pair, JSON.stringify(below)],
  )
}

/** How many wait for the deletion of a folder that they are in: they are gone with it, and no work of their own. */
export async function waitingForWhole(tx: Tx, pair: string): Promise<number> {
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM file_open above CROSS JOIN file_local here CROSS JOIN file_open inside
     WHERE above.drive = ? AND above.planned IS NOT NULL AND ${isItem('above.node')}
       AND here.drive = above.drive AND here.item_id = substr(above.node, 3)
       AND here.type = 'folder' AND here.is_missing = 1
       AND inside.waits_for = above.node AND inside.drive = above.drive
       AND inside.planned IS NULL AND inside.because IS NULL`,
    [pair],
  )
  return Number(row?.n ?? 0)
}
