/** The trees as people walk through them: a folder's children with both sides of each, by pages; and names looked for. */
import type { Tx, Value } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { LeftCode } from '../left-code.ts'
import {
  type BaseRow,
  isAgreedContent,
  type LocalRow,
  localNode,
  type NodeKey,
  nameKey,
  type RemoteRow,
} from '../trees.ts'
import type { ConflictRow } from './contract.ts'
import { IS_HELD } from './guard.ts'
import { localOfItem, localRow } from './local-tree.ts'
import { pathOfNode } from './overview.ts'
import { remoteRows } from './remote-tree.ts'
import {
  BASE_COLUMNS,
  LOCAL_COLUMNS,
  listParameter,
  numberListParameter,
  toBaseRow,
  toConflictRow,
  toLocalRow,
} from './rows.ts'

/** One folder on both sides; null where that side does not have it. */
export type BrowsedFolder = { node: NodeKey; localId: number | null; itemId: string | null; path: string }

/** A node with everything that is known of it. */
export type BrowsedNode = {
  node: NodeKey
  local: LocalRow | undefined
  remote: RemoteRow | undefined
  base: BaseRow | undefined
  /** Undefined: it is in step. */
  open: { planned: boolean; waits: boolean; because: string | null; code: LeftCode | null } | undefined
  /** One that nobody has decided yet. */
  conflictId: number | null
  /** Of a folder: as many below it that nobody has decided yet. */
  conflictsInside: number
}

/** Where a page of children goes on: behind this one. */
export type ChildPlace = { rank: number; key: string; node: string }
export type BrowsedChild = BrowsedNode & { place: ChildPlace }

const ROOT_LOCAL_ID = 1

/** Undefined where there is no such folder on either side. */
export function browsedFolder(
  ledger: Ledger,
  pair: { name: string; rootItemId: string },
  node: NodeKey | undefined,
): Promise<BrowsedFolder | undefined> {
  return ledger.driver.read(async (tx) => {
    if (node === undefined || node === `i:${pair.rootItemId}`) {
      return { node: `i:${pair.rootItemId}`, localId: ROOT_LOCAL_ID, itemId: pair.rootItemId, path: '' }
    }
    const itemId = node.startsWith('i:') ? node.slice(2) : null
    const local =
      itemId === null
        ? await localRow(tx, pair.name, Number(node.slice(2)))
        : await localOfItem(tx, pair.name, itemId)
    const there = local?.itemId ?? itemId
    const remote = there === null ? undefined : (await remoteRows(tx, pair.name, [there])).get(there)
    const localId = local?.type === 'folder' && !local.isMissing ? local.id : null
    const item = remote?.type === 'folder' && !remote.isDeleted ? remote.itemId : null
    if (localId === null && item === null) return undefined
    return { node, localId, itemId: item, path: await pathOfNode(tx, pair.name, node) }
  })
}

/** Nobody's number and nobody's id: that side of the folder is not there. */
const NOBODY = { localId: -1, itemId: '' }

/** Folders first, then by name. What moved or was deleted on one side is where the other side still has it. */
export function browsedChildren(
  ledger: Ledger,
  pair: string,
  folder: BrowsedFolder,
  { after, limit }: { after?: ChildPlace | undefined; limit: number },
): Promise<BrowsedChild[]> {
  const { localId, itemId } = {
    localId: folder.localId ?? NOBODY.localId,
    itemId: folder.itemId ?? NOBODY.itemId,
  }
  const place = after ?? { rank: -1, key: '', node: '' }
  return ledger.driver.read(async (tx) => {
    const rows = await tx.all<{ node: NodeKey; rank: number; name_key: string }>(
      `SELECT node, rank, name_key FROM (
         SELECT CASE WHEN here.item_id IS NULL THEN 'l:' || here.id ELSE 'i:' || here.item_id END AS node,
           CASE WHEN here.type = 'folder' THEN 0 ELSE 1 END AS rank, here.name_key AS name_key
         FROM file_local here WHERE here.drive = ? AND here.parent_id = ? AND here.is_missing = 0
           AND (here.item_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM file_remote pair WHERE pair.drive = here.drive
             AND pair.parent_id = ? AND pair.name_key = here.name_key AND pair.type = here.type AND pair.is_deleted = 0
             AND ${isWithoutLocal('pair')}))
         UNION ALL
         SELECT 'i:' || there.item_id, CASE WHEN there.type = 'folder' THEN 0 ELSE 1 END, there.name_key
         FROM file_remote there WHERE there.drive = ? AND there.parent_id = ? AND there.is_deleted = 0
           AND ${isWithoutLocal('there')}
       ) children
       WHERE rank > ? OR (rank = ? AND (name_key > ? OR (name_key = ? AND node > ?)))
       ORDER BY rank, name_key, node LIMIT ?`,
      [pair, localId, itemId, pair, itemId, place.rank, place.rank, place.key, place.key, place.node, limit],
    )
    const nodes = await browsedRows(
      tx,
      pair,
      rows.map(({ node }) => node),
    )
    return nodes.map((one, at) => {
      const { rank, name_key: key, node } = rows[at]!
      return { ...one, place: { rank: Number(rank), key, node } }
    })
  })
}

function isWithoutLocal(remote: string): string {
  return `NOT EXISTS (SELECT 1 FROM file_local own WHERE own.drive = ${remote}.drive
    AND own.item_id = ${remote}.item_id AND own.is_missing = 0)`
}

export function browsedNode(ledger: Ledger, pair: string, node: NodeKey): Promise<BrowsedNode | undefined> {
  return ledger.driver.read(async (tx) => {
    const [found] = await browsedRows(tx, pair, [node])
    return found && (found.local ?? found.remote) ? found : undefined
  })
}

/** In the order in which they are asked for. */
async function browsedRows(tx: Tx, pair: string, nodes: readonly NodeKey[]): Promise<BrowsedNode[]> {
  const { itemIds, localIds } = splitNodes(nodes)
  const remote = await remoteRows(tx, pair, itemIds)
  const base = await readBases(tx, pair, itemIds)
  const local = await readLocals(tx, pair, { itemIds, localIds })
  const partners = await readPartners(
    tx,
    pair,
    [...remote.values()].filter(({ itemId }) => !local.has(`i:${itemId}`)),
  )
  const rowOf = (node: NodeKey): LocalRow | undefined => local.get(node) ?? partners.get(node)
  const asked = [
    ...new Set([...nodes, ...nodes.flatMap((node) => rowOf(node)).flatMap((row) => keysOf(row))]),
  ]
  const open = await readOpen(tx, pair, asked)
  const conflicts = await conflictsOf(tx, pair, asked)
  const hasFolders = nodes.some((node) => rowOf(node)?.type === 'folder')
  const inside = hasFolders ? await conflictsInside(tx, pair) : undefined
  return nodes.map((node) => {
    const own = rowOf(node)
    const keys = [node, ...keysOf(own)]
    return {
      node,
      local: own,
      remote: remote.get(node.slice(2)),
      base: base.get(node.slice(2)),
      open: keys.map((key) => open.get(key)).find((found) => found !== undefined),
      conflictId: keys.map((key) => conflicts.get(key)).find((id) => id !== undefined) ?? null,
      conflictsInside: (own && inside?.get(own.id)) ?? 0,
    }
  })
}

/** More have never been seen; a search that never ends must end. */
const OPEN_CONFLICTS_MAX = 10_000
const DEPTH_MAX = 1_000

/**
 * How many undecided conflicts are below a folder, by the number of its local row: whoever has to decide has the file
 * here. By the rows above it as they are now, since a conflict keeps the path that it had when it was met.
 */
async function conflictsInside(tx: Tx, pair: string): Promise<Map<number, number>> {
  const open = await tx.all<{ node: NodeKey }>(
    `SELECT node FROM file_conflicts WHERE drive = ? AND state = 'open' ORDER BY id DESC LIMIT ?`,
    [pair, OPEN_CONFLICTS_MAX],
  )
  if (open.length === 0) return new Map()
  const { itemIds, localIds } = splitNodes(open.map(({ node }) => node))
  const files = await readLocals(tx, pair, { itemIds, localIds })
  const rows = await tx.all<{ id: number; n: number }>(
    `WITH RECURSIVE above(parent_id, depth) AS (
       SELECT parent_id, 0 FROM file_local WHERE drive = ? AND id IN (${numberListParameter(tx)})
       UNION ALL SELECT up.parent_id, above.depth + 1 FROM above CROSS JOIN file_local up
         WHERE up.drive = ? AND up.id = above.parent_id AND above.depth < ${DEPTH_MAX})
     SELECT parent_id AS id, count(*) AS n FROM above WHERE parent_id IS NOT NULL GROUP BY parent_id`,
    [pair, JSON.stringify([...new Set([...files.values()].map(({ id }) => id))]), pair],
  )
  return new Map(rows.map(({ id, n }) => [Number(id), Number(n)]))
}

function splitNodes(nodes: readonly NodeKey[]): { itemIds: string[]; localIds: number[] } {
  return {
    itemIds: nodes.filter((node) => node.startsWith('i:')).map((node) => node.slice(2)),
    localIds: nodes.filter((node) => node.startsWith('l:')).map((node) => Number(node.slice(2))),
  }
}

/** Something new on both sides may be open under either of its names. */
function keysOf(row: LocalRow | undefined): NodeKey[] {
  return row ? [localNode(row), `l:${row.id}`] : []
}

async function readBases(tx: Tx, pair: string, itemIds: readonly string[]): Promise<Map<string, BaseRow>> {
  const rows = await tx.all(
    `SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id IN (${listParameter(tx)})`,
    [pair, JSON.stringify(itemIds)],
  )
  return new Map(rows.map(toBaseRow).map((row) => [row.itemId, row]))
}

async function readLocals(
  tx: Tx,
  pair: string,
  { itemIds, localIds }: { itemIds: readonly string[]; localIds: readonly number[] },
): Promise<Map<string, LocalRow>> {
  const byItem = await tx.all(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND item_id IN (${listParameter(tx)})`,
    [pair, JSON.stringify(itemIds)],
  )
  const byId = await tx.all(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND id IN (${numberListParameter(tx)})`,
    [pair, JSON.stringify(localIds)],
  )
  const found = new Map<string, LocalRow>()
  for (const row of byItem.map(toLocalRow)) found.set(`i:${row.itemId}`, row)
  for (const row of byId.map(toLocalRow)) found.set(`l:${row.id}`, row)
  return found
}

/** What has the same place and name here, and is not known to be the same yet. */
async function readPartners(
  tx: Tx,
  pair: string,
  items: readonly RemoteRow[],
): Promise<Map<string, LocalRow>> {
  const found = new Map<string, LocalRow>()
  const parents = [...new Set(items.flatMap(({ parentId }) => parentId ?? []))]
  if (parents.length === 0) return found
  const rows = await tx.all(
    `SELECT ${LOCAL_COLUMNS.split(', ')
      .map((column) => `here.${column}`)
      .join(', ')}, folder.item_id AS folder_item
     FROM file_local folder JOIN file_local here ON here.drive = folder.drive AND here.parent_id = folder.id
     WHERE folder.drive = ? AND folder.item_id IN (${listParameter(tx)}) AND here.item_id IS NULL AND here.is_missing = 0
       AND here.name_key IN (${listParameter(tx)})`,
    [pair, JSON.stringify(parents), JSON.stringify([...new Set(items.map(({ name }) => nameKey(name)))])],
  )
  const placeKey = (parentId: Value | undefined, name: string): string => `${parentId} ${nameKey(name)}`
  const byPlace = new Map(rows.map((raw) => [placeKey(raw.folder_item, String(raw.name)), toLocalRow(raw)]))
  for (const { itemId, parentId, name, type } of items) {
    const row = byPlace.get(placeKey(parentId, name))
    if (row?.type === type) found.set(`i:${itemId}`, row)
  }
  return found
}

async function readOpen(
  tx: Tx,
  pair: string,
  nodes: readonly NodeKey[],
): Promise<Map<string, NonNullable<BrowsedNode['open']>>> {
  const rows = await tx.all<{
    node: string
    planned: number | null
    waits_for: string | null
    because: string | null
    code: LeftCode | null
  }>(
    `SELECT node, planned, waits_for, because, code FROM file_open WHERE drive = ? AND node IN (${listParameter(tx)})`,
    [pair, JSON.stringify(nodes)],
  )
  return new Map(
    rows.map(({ node, planned, waits_for: waitsFor, because, code }) => [
      node,
      { planned: planned !== null, waits: waitsFor !== null, because, code },
    ]),
  )
}

async function conflictsOf(tx: Tx, pair: string, nodes: readonly NodeKey[]): Promise<Map<string, number>> {
  const rows = await tx.all<{ node: string; id: number }>(
    `SELECT node, max(id) AS id FROM file_conflicts
     WHERE drive = ? AND state = 'open' AND node IN (${listParameter(tx)}) GROUP BY node`,
    [pair, JSON.stringify(nodes)],
  )
  return new Map(rows.map(({ node, id }) => [node, Number(id)]))
}

export type FoundName = BrowsedNode & { path: string }

/** Whose name holds the text, whatever its case; here first. */
export function namesLike(
  ledger: Ledger,
  pair: string,
  { text, limit }: { text: string; limit: number },
): Promise<FoundName[]> {
  const pattern = `%${nameKey(text).replaceAll(/[\\%_]/g, (sign) => `\\${sign}`)}%`
  return ledger.driver.read(async (tx) => {
    const rows = await tx.all<{ node: NodeKey }>(
      `SELECT node FROM (
         SELECT CASE WHEN item_id IS NULL THEN 'l:' || id ELSE 'i:' || item_id END AS node, name_key AS name_key
         FROM file_local WHERE drive = ? AND is_missing = 0 AND parent_id IS NOT NULL AND name_key LIKE ? ESCAPE '\\'
         UNION
         SELECT 'i:' || item_id, name_key FROM file_remote
         WHERE drive = ? AND is_deleted = 0 AND parent_id IS NOT NULL AND name_key LIKE ? ESCAPE '\\'
       ) found GROUP BY node ORDER BY min(name_key), node LIMIT ?`,
      [pair, pattern, pair, pattern, limit],
    )
    const nodes = await browsedRows(
      tx,
      pair,
      rows.map(({ node }) => node),
    )
    const found: FoundName[] = []
    for (const one of nodes) found.push({ ...one, path: await pathOfNode(tx, pair, one.node) })
    return found
  })
}

export type HeldDelete = {
  node: NodeKey
  path: string
  side: 'here' | 'there'
  type: string
  bytes: number
  /** It is not deleted, but gets another content. */
  isReplaced?: true
}

/** Some of what waits for a yes: what would be deleted or replaced, and on which side. */
export function heldDeletes(ledger: Ledger, pair: string, limit: number): Promise<HeldDelete[]> {
  return ledger.driver.read(async (tx) => {
    const rows = await tx.all<{ node: NodeKey; code: LeftCode }>(
      `SELECT node, code FROM file_open WHERE drive = ? AND ${IS_HELD} ORDER BY node LIMIT ?`,
      [pair, limit],
    )
    const replaced = new Set(rows.filter((row) => row.code === 'held-overwrite').map((row) => row.node))
    const held: HeldDelete[] = []
    for (const { node, local, remote, base } of await browsedRows(
      tx,
      pair,
      rows.map((row) => row.node),
    )) {
      const isReplaced = replaced.has(node)
      const isEditedHere = isReplaced && local && base && !isAgreedContent(local, base)
      const isHere = local !== undefined && !local.isMissing && !isEditedHere
      const row = isHere ? local : remote
      if (!row) continue
      const path = await pathOfNode(tx, pair, node)
      held.push({
        node,
        path,
        side: isHere ? 'here' : 'there',
        type: row.type,
        bytes: row.size,
        ...(isReplaced && { isReplaced }),
      })
    }
    return held
  })
}

/** Newest first. */
export function conflictPage(
  ledger: Ledger,
  pair: string,
  {
    state,
    before,
    limit,
  }: { state?: 'open' | 'settled' | undefined; before?: number | undefined; limit: number },
): Promise<ConflictRow[]> {
  const only = state === undefined ? '' : ` AND state ${state === 'open' ? '=' : '<>'} 'open'`
  return ledger.driver.read(async (tx) => {
    const rows = await tx.all(
      `SELECT * FROM file_conflicts WHERE drive = ? AND id < ?${only} ORDER BY id DESC LIMIT ?`,
      [pair, before ?? Number.MAX_SAFE_INTEGER, limit],
    )
    return rows.map(toConflictRow)
  })
}

export function conflictById(ledger: Ledger, pair: string, id: number): Promise<ConflictRow | undefined> {
  return ledger.driver.read(async (tx) => {
    const raw = await tx.get(`SELECT * FROM file_conflicts WHERE drive = ? AND id = ?`, [pair, id])
    return raw && toConflictRow(raw)
  })
}
