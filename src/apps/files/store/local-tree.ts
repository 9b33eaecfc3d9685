/** Writes what a look at the folder found into the local tree, and opens what changed by it. */

import { TidemarkError } from '../../../base/errors.ts'
import type { Tx } from '../../../ledger/contract.ts'
import { isSameStat } from '../local/stat.ts'
import {
  type Digests,
  itemNode,
  type LocalRow,
  type LocalStat,
  localNode,
  type NodeKey,
  nameKey,
} from '../trees.ts'
import type { LocalObservation } from './contract.ts'
import { freeLeftOut, isOpen, openNodes } from './open-nodes.ts'
import { LOCAL_COLUMNS, listParameter, numberListParameter, putLocal, toLocalRow } from './rows.ts'

/**
 * Returns how many nodes were opened, and which ids of new folders are known by another id, because an action has
 * entered them meanwhile. `isUnsure`: that something is missing is no proof that somebody deleted it. `isOtherRoot`: nor
 * is another content one that somebody edited it.
 */
export async function recordLocal(
  tx: Tx,
  pair: string,
  observations: readonly LocalObservation[],
  { isUnsure = false, isOtherRoot = false }: { isUnsure?: boolean; isOtherRoot?: boolean } = {},
): Promise<{ opened: number; otherIds: Map<number, number> }> {
  const opened = new Set<NodeKey>()
  const otherIds = new Map<number, number>()
  const folders = new Set<number>()
  const known = (id: number): number => otherIds.get(id) ?? id
  for (const told of observations) {
    const observation = told.parentId === undefined ? told : { ...told, parentId: known(told.parentId) }
    if (observation.seen === 'missing') {
      const gone = await seeMissing(tx, pair, observation)
      for (const node of gone) opened.add(node)
      if (isUnsure) await forgetAgreed(tx, pair, gone)
    } else if (observation.seen === 'changed') {
      await seeChanged(tx, pair, observation, opened)
      if (isOtherRoot) await doubtAgreed(tx, pair, observation.id)
    } else {
      await checkFolder(tx, pair, observation, folders)
      const id = await seeNew(tx, pair, observation, opened)
      if (id !== observation.id) otherIds.set(observation.id, id)
    }
  }
  await openNodes(tx, pair, opened)
  return { opened: opened.size, otherIds }
}

type Observation<S extends LocalObservation['seen']> = Extract<LocalObservation, { seen: S }>

/** Of a folder that was settled as deleted since it was looked at nothing is known any more. */
async function checkFolder(
  tx: Tx,
  pair: string,
  { parentId, name }: Observation<'new'>,
  folders: Set<number>,
): Promise<void> {
  if (folders.has(parentId)) return
  if (!(await localRow(tx, pair, parentId))) throw outdated({ name })
  folders.add(parentId)
}

async function seeNew(tx: Tx, pair: string, seen: Observation<'new'>, opened: Set<NodeKey>): Promise<number> {
  const there = await localAtName(tx, pair, seen.parentId, seen.name)
  if (there) {
    await seeChanged(tx, pair, { seen: 'changed', id: there.id, ...rowStat(seen) }, opened)
    return there.id
  }
  const row: LocalRow = {
    id: seen.id,
    parentId: seen.parentId,
    name: seen.name,
    type: seen.type,
    ...seen.stat,
    hash: null,
    sha256: null,
    itemId: null,
    isMissing: false,
    unreadable: seen.unreadable ?? null,
  }
  await putLocal(tx, pair, row)
  opened.add(localNode(row))
  for (const itemId of await unlinkedNamesakes(tx, pair, row)) opened.add(itemNode(itemId))
  return seen.id
}

function rowStat({
  stat,
  unreadable,
}: Observation<'new'>): Pick<Observation<'changed'>, 'stat' | 'unreadable'> {
  return { stat, unreadable: unreadable ?? null }
}

/** An item without a local side at the very place where something new appeared: they are looked at together. */
async function unlinkedNamesakes(tx: Tx, pair: string, { parentId, name }: LocalRow): Promise<string[]> {
  const rows = await tx.all<{ item_id: string }>(
    `SELECT remote.item_id AS item_id FROM file_local parent
     JOIN file_remote remote ON remote.drive = parent.drive AND remote.parent_id = parent.item_id
       AND remote.name_key = ? AND remote.is_deleted = 0
     LEFT JOIN file_base base ON base.drive = remote.drive AND base.item_id = remote.item_id
     WHERE parent.drive = ? AND parent.id = ? AND base.item_id IS NULL`,
    [nameKey(name), pair, parentId],
  )
  return rows.map((row) => row.item_id)
}

async function seeChanged(
  tx: Tx,
  pair: string,
  seen: Observation<'changed'>,
  opened: Set<NodeKey>,
): Promise<void> {
  const before = await localRow(tx, pair, seen.id)
  if (!before) return
  const row = { ...before, isMissing: false }
  if (seen.parentId !== undefined) row.parentId = seen.parentId
  if (seen.name !== undefined) row.name = seen.name
  if (seen.unreadable !== undefined) row.unreadable = seen.unreadable
  // A folder's own time and size say nothing about it.
  const isEdited = seen.stat && before.type !== 'folder' && !isSameContentStat(before, seen.stat)
  if (seen.stat && !isSameStat(before, seen.stat))
    Object.assign(row, seen.stat, isEdited ? { hash: null, sha256: null } : {})
  const there = row.parentId === null ? undefined : await localAtName(tx, pair, row.parentId, row.name)
  if (there && there.id !== row.id) throw outdated(row)
  await putLocal(tx, pair, row)
  if (before.parentId !== row.parentId) await tidyFolder(tx, pair, before.parentId)
  // Also where nobody knew its hash: two empty files agree without one.
  if (isEdited || isOther(before, row)) opened.add(localNode(row))
  const isMoved = before.parentId !== row.parentId || before.name !== row.name
  if (isMoved && row.type === 'folder') await freeLeftOut(tx, pair, { localId: row.id, itemId: null })
}

/** An action has given its place to another since it was looked at. Nobody knows who is there now: look again. */
function outdated({ name }: Pick<LocalRow, 'name'>): TidemarkError {
  return new TidemarkError(`The place of ${name} changed while it was looked at.`, {
    kind: 'transient',
    code: 'look-outdated',
  })
}

/** On another disk, it is the same. Who has set back its time has not set back its ctime; of old rows that is not known. */
function isSameContentStat(before: LocalStat, now: LocalStat): boolean {
  const isUnchanged = before.ctimeNs === now.ctimeNs || before.ctimeNs === '0'
  return isUnchanged && before.size === now.size && before.mtimeNs === now.mtimeNs && before.ino === now.ino
}

function isOther(before: LocalRow, now: LocalRow): boolean {
  return (
    before.isMissing !== now.isMissing ||
    before.parentId !== now.parentId ||
    before.name !== now.name ||
    before.hash !== now.hash ||
    before.unreadable !== now.unreadable
  )
}

/** What OneDrive never knew is simply gone. */
async function seeMissing(
  tx: Tx,
  pair: string,
  { id, parentId, name }: Observation<'missing'>,
): Promise<NodeKey[]> {
  const before = await localRow(tx, pair, id)
  // Moved by one of our own actions since it was looked for.
  if (!before || before.isMissing || before.parentId !== parentId || before.name !== name) return []
  return missBranch(tx, pair, id)
}

/** Until both sides agree again. */
async function doubtAgreed(tx: Tx, pair: string, localId: number): Promise<void> {
  await tx.run(
    `UPDATE file_base SET is_unsure = 1 WHERE drive = ? AND type = 'file' AND item_id = (
       SELECT item_id FROM file_local WHERE drive = ? AND id = ?)`,
    [pair, pair, localId],
  )
}

/** Without a base it is no deletion: what OneDrive has of it comes here again. */
async function forgetAgreed(tx: Tx, pair: string, nodes: readonly NodeKey[]): Promise<void> {
  const items = nodes.filter((node) => node.startsWith('i:')).map((node) => node.slice(2))
  await tx.run(`DELETE FROM file_base WHERE drive = ? AND item_id IN (${listParameter(tx)})`, [
    pair,
    JSON.stringify(items),
  ])
}

/**
 * A folder takes along what is in it. Returns the nodes that this concerns, which are to be opened. What is in a folder
 * that could not be looked into is as unknown as that: whether it is to be deleted in OneDrive is for a person to say.
 */
export async function missBranch(tx: Tx, pair: string, id: number): Promise<NodeKey[]> {
  const nodes: NodeKey[] = []
  const rows = await branch(tx, pair, id)
  const byId = new Map(rows.map((row) => [row.id, row]))
  for (const row of rows) {
    let unreadable = row.unreadable
    for (
      let above = byId.get(row.parentId!);
      above && unreadable === null;
      above = byId.get(above.parentId!)
    ) {
      unreadable = above.unreadable
    }
    if (row.isMissing && row.unreadable === unreadable) continue
    nodes.push(localNode(row))
    await putLocal(tx, pair, { ...row, name: plainName(row), isMissing: true, unreadable })
  }
  return nodes
}

/** A look gives what it has not found yet a name that no file can have, where another has taken its place. */
function plainName({ id, name }: LocalRow): string {
  const end = `/${id}`
  return name.endsWith(end) ? name.slice(0, -end.length) : name
}

async function branch(tx: Tx, pair: string, id: number): Promise<LocalRow[]> {
  const columns = LOCAL_COLUMNS.split(', ').map((column) => `found.${column}`)
  const rows = await tx.all(
    `WITH RECURSIVE branch(id) AS (
       SELECT id FROM file_local WHERE drive = ? AND id = ?
       UNION SELECT child.id FROM branch JOIN file_local child ON child.drive = ? AND child.parent_id = branch.id)
     SELECT ${columns.join(', ')} FROM branch CROSS JOIN file_local found
     WHERE found.drive = ? AND found.id = branch.id`,
    [pair, id, pair, pair],
  )
  return rows.map(toLocalRow)
}

export async function localRow(tx: Tx, pair: string, id: number): Promise<LocalRow | undefined> {
  const raw = await tx.get(`SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND id = ?`, [pair, id])
  return raw && toLocalRow(raw)
}

export async function localOfItem(tx: Tx, pair: string, itemId: string): Promise<LocalRow | undefined> {
  const raw = await tx.get(`SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND item_id = ?`, [
    pair,
    itemId,
  ])
  return raw && toLocalRow(raw)
}

export async function localAtName(
  tx: Tx,
  pair: string,
  parentId: number,
  name: string,
): Promise<LocalRow | undefined> {
  const raw = await tx.get(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND parent_id = ? AND name = ? AND is_missing = 0`,
    [pair, parentId, name],
  )
  return raw && toLocalRow(raw)
}

/**
 * Right below a folder, missing ones included. All of them in one text: a look reads every row of the tree, and with
 * objects from the driver that took two to three times as long (of 100,000 rows: 0.12 s against 0.3 s). A text may have
 * 5 MB on a libSQL server: there each has its own.
 */
export async function childRows(tx: Tx, pair: string, parentId: number): Promise<LocalRow[]> {
  if (tx.isRemote && tx.dialect === 'sqlite') {
    const rows = await tx.all<{ row: string }>(
      `SELECT json_array(${LOCAL_COLUMNS}) AS row FROM file_local WHERE drive = ? AND parent_id = ?`,
      [pair, parentId],
    )
    return rows.map(({ row }) => unpacked(JSON.parse(row) as Packed))
  }
  const found = await tx.get<{ rows: string | null }>(
    `SELECT ${PACKED_ROWS[tx.dialect]} AS rows FROM file_local WHERE drive = ? AND parent_id = ?`,
    [pair, parentId],
  )
  return unpackedRows(found?.rows)
}

/** All rows that a statement finds, as one text. */
export const PACKED_ROWS: Readonly<Record<Tx['dialect'], string>> = {
  sqlite: `json_group_array(json_array(${LOCAL_COLUMNS}))`,
  postgres: `CAST(json_agg(json_build_array(${LOCAL_COLUMNS})) AS TEXT)`,
}

export function unpackedRows(packed: string | null | undefined): LocalRow[] {
  return packed == null || packed === '[]' ? [] : (JSON.parse(packed) as Packed[]).map(unpacked)
}

/** In the order of `LOCAL_COLUMNS`. */
type Packed = [
  id: number,
  parentId: number,
  name: string,
  type: LocalRow['type'],
  dev: string,
  ino: string,
  birthNs: string,
  mtimeNs: string,
  size: number,
  hash: string | null,
  itemId: string | null,
  isMissing: number,
  unreadable: string | null,
  ctimeNs: string,
  sha256: string | null,
]

function unpacked(packed: Packed): LocalRow {
  const [id, parentId, name, type, dev, ino, birthNs, mtimeNs, size, ...rest] = packed
  const [hash, itemId, isMissing, unreadable, ctimeNs, sha256] = rest
  const stat = { dev, ino, birthNs, mtimeNs, ctimeNs, size }
  return { id, parentId, name, type, ...stat, hash, sha256, itemId, isMissing: isMissing === 1, unreadable }
}

export async function localRows(
  tx: Tx,
  pair: string,
  ids: readonly number[],
): Promise<Map<number, LocalRow>> {
  if (ids.length === 0) return new Map()
  const rows = await tx.all(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND id IN (${numberListParameter(tx)})`,
    [pair, JSON.stringify(ids)],
  )
  return new Map(rows.map(toLocalRow).map((row) => [row.id, row]))
}

/**
 * Deletes a row. A folder's row stays, as missing and nobody's, as long as there are rows of what was in it: where
 * those were must stay known until they are settled, too.
 */
export async function forgetLocal(tx: Tx, pair: string, id: number): Promise<void> {
  const row = await localRow(tx, pair, id)
  if (!row) return
  const child = await tx.get(`SELECT 1 AS yes FROM file_local WHERE drive = ? AND parent_id = ?`, [pair, id])
  if (child) {
    await putLocal(tx, pair, { ...row, itemId: null, isMissing: true })
    return
  }
  await tx.run(`DELETE FROM file_local WHERE drive = ? AND id = ?`, [pair, id])
  await tidyFolder(tx, pair, row.parentId)
}

/** Something has left it: was it kept for that alone? */
export async function tidyFolder(tx: Tx, pair: string, id: number | null): Promise<void> {
  const folder = id === null ? undefined : await localRow(tx, pair, id)
  if (!folder?.isMissing || folder.itemId !== null) return
  if (!(await isOpen(tx, pair, `l:${folder.id}`))) await forgetLocal(tx, pair, folder.id)
}

/** Ids for rows that are not written yet: the first of `count`. */
export async function takeLocalIds(tx: Tx, pair: string, count: number): Promise<number> {
  const row = await tx.get<{ next: number }>(
    `UPDATE file_drives SET next_local_id = next_local_id + ? WHERE name = ? RETURNING next_local_id AS next`,
    [count, pair],
  )
  return Number(row!.next) - count
}

/** Somebody has looked: the hashes of the content with this stat. False where another stat was seen since. */
export async function setLocalHash(
  tx: Tx,
  pair: string,
  { id, stat, hash, sha256 }: { id: number; stat: LocalStat } & Digests,
): Promise<boolean> {
  const set = await tx.run(
    `UPDATE file_local SET hash = ?, sha256 = ?, unreadable = NULL WHERE drive = ? AND id = ? AND dev = ? AND ino = ?
     AND birth_ns = ? AND mtime_ns = ? AND ctime_ns = ? AND size = ?`,
    [hash, sha256, pair, id, stat.dev, stat.ino, stat.birthNs, stat.mtimeNs, stat.ctimeNs, stat.size],
  )
  return set === 1
}
