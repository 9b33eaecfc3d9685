/** What people look at, and what a check compares: a folder on both sides, the base page by page, reasons by count. */
import type { Tx } from '../../../ledger/contract.ts'
import { HELD_DELETE } from '../plan.ts'
import type { BaseRow, LocalRow, NodeKey, RemoteRow } from '../trees.ts'
import type { OpenNode } from './contract.ts'
import { pathOfNode } from './overview.ts'
import {
  BASE_COLUMNS,
  baseOf,
  LOCAL_COLUMNS,
  listOf,
  localOf,
  numbersOf,
  REMOTE_COLUMNS,
  remoteOf,
} from './rows.ts'

/** A folder, on either side or both. */
export type FolderPlace = { localId: number | null; itemId: string | null }

export type FolderRows = {
  /** What is there now. */
  locals: LocalRow[]
  remotes: RemoteRow[]
}

export async function folderRows(
  tx: Tx,
  drive: string,
  { localId, itemId }: FolderPlace,
): Promise<FolderRows> {
  const locals =
    localId === null
      ? []
      : await tx.all(
          `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND parent_id = ? AND is_missing = 0`,
          [drive, localId],
        )
  const remotes =
    itemId === null
      ? []
      : await tx.all(
          `SELECT ${REMOTE_COLUMNS} FROM file_remote WHERE drive = ? AND parent_id = ? AND is_deleted = 0`,
          [drive, itemId],
        )
  return { locals: locals.map(localOf), remotes: remotes.map(remoteOf) }
}

export async function openOf(
  tx: Tx,
  drive: string,
  nodes: readonly NodeKey[],
): Promise<Map<NodeKey, OpenNode>> {
  const rows = await tx.all(`SELECT * FROM file_open WHERE drive = ? AND node IN (${listOf(tx)})`, [
    ...[drive, JSON.stringify(nodes)],
  ])
  return new Map(
    rows.map((raw) => {
      const node = raw.node as NodeKey
      return [
        node,
        {
          ...{ node, version: Number(raw.version), because: raw.because as string | null },
          planned: raw.planned === null ? null : Number(raw.planned),
          waitsFor: raw.waits_for as NodeKey | null,
        },
      ]
    }),
  )
}

/** Nodes with a conflict that nobody has decided. */
export async function openConflictNodes(tx: Tx, drive: string): Promise<Set<NodeKey>> {
  const rows = await tx.all<{ node: NodeKey }>(
    `SELECT node FROM file_conflicts WHERE drive = ? AND state = 'open'`,
    [drive],
  )
  return new Set(rows.map(({ node }) => node))
}

export type LeftAlone = { because: string; count: number }

/** Reasons why things are left alone, the most frequent first. */
export async function leftAlone(tx: Tx, drive: string, limit: number): Promise<LeftAlone[]> {
  const rows = await tx.all<{ because: string; n: number }>(
    `SELECT because, count(*) AS n FROM file_open WHERE drive = ? AND because IS NOT NULL AND planned IS NULL
     GROUP BY because ORDER BY count(*) DESC, because LIMIT ?`,
    [drive, limit],
  )
  return rows.map(({ because, n }) => ({ because, count: Number(n) }))
}

/** Some of what waits for a yes, with its path. */
export async function heldPaths(tx: Tx, drive: string, limit: number): Promise<string[]> {
  const rows = await tx.all<{ node: NodeKey }>(
    `SELECT node FROM file_open WHERE drive = ? AND because = ? ORDER BY node LIMIT ?`,
    [drive, HELD_DELETE, limit],
  )
  const paths: string[] = []
  for (const { node } of rows) paths.push(await pathOfNode(tx, drive, node))
  return paths.sort()
}

/** What both sides agreed on, with its local row where there is one. */
export type AgreedRow = { base: BaseRow; local: LocalRow | undefined }

/** In the order of item ids, which is the cursor. */
export async function agreedPage(
  tx: Tx,
  drive: string,
  { after, limit }: { after: string; limit: number },
): Promise<AgreedRow[]> {
  const bases = await tx.all(
    `SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id > ? ORDER BY item_id LIMIT ?`,
    [drive, after, limit],
  )
  const ids = bases.map((raw) => String(raw.item_id))
  const locals = await tx.all(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND item_id IN (${listOf(tx)})`,
    [drive, JSON.stringify(ids)],
  )
  const byItem = new Map(locals.map(localOf).map((row) => [row.itemId, row]))
  return bases.map((raw) => ({ base: baseOf(raw), local: byItem.get(String(raw.item_id)) }))
}

export async function baseRows(
  tx: Tx,
  drive: string,
  ids: readonly string[],
): Promise<Map<string, BaseRow>> {
  const rows = await tx.all(
    `SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id IN (${listOf(tx)})`,
    [drive, JSON.stringify(ids)],
  )
  return new Map(rows.map(baseOf).map((row) => [row.itemId, row]))
}

/** What is here and was never agreed on, in the order of ids, which is the cursor. */
export async function newHerePage(
  tx: Tx,
  drive: string,
  { after, limit }: { after: number; limit: number },
): Promise<LocalRow[]> {
  const columns = LOCAL_COLUMNS.split(', ').map((column) => `here.${column}`)
  const rows = await tx.all(
    `SELECT ${columns.join(', ')} FROM file_local here
     LEFT JOIN file_base base ON base.drive = here.drive AND base.item_id = here.item_id
     WHERE here.drive = ? AND here.id > ? AND here.is_missing = 0 AND here.parent_id IS NOT NULL
       AND base.item_id IS NULL ORDER BY here.id LIMIT ?`,
    [drive, after, limit],
  )
  return rows.map(localOf)
}

/** Names from the root of several local rows, in few statements. */
export async function localNames(
  tx: Tx,
  drive: string,
  ids: readonly number[],
): Promise<Map<number, string[]>> {
  const known = new Map<number, { parentId: number | null; name: string }>()
  let wanted = [...new Set(ids)]
  for (let depth = 0; wanted.length > 0 && depth < DEPTH_MAX; depth++) {
    const rows = await tx.all(
      `SELECT id, parent_id, name FROM file_local WHERE drive = ? AND id IN (${numbersOf(tx)})`,
      [drive, JSON.stringify(wanted)],
    )
    const above = new Set<number>()
    for (const raw of rows) {
      const parentId = raw.parent_id === null ? null : Number(raw.parent_id)
      known.set(Number(raw.id), { parentId, name: String(raw.name) })
      if (parentId !== null && !known.has(parentId)) above.add(parentId)
    }
    wanted = [...above].filter((id) => !known.has(id))
  }
  return new Map(ids.map((id) => [id, namesTo(known, id)]))
}

const DEPTH_MAX = 1_000

function namesTo(
  known: ReadonlyMap<number, { parentId: number | null; name: string }>,
  id: number,
): string[] {
  const names: string[] = []
  let row = known.get(id)
  for (let depth = 0; row && row.parentId !== null && depth < DEPTH_MAX; depth++) {
    names.push(row.name)
    row = known.get(row.parentId)
  }
  return names.reverse()
}

/** A folder that is added again under a name of before goes on counting where its stream is. */
export async function continuePlans(tx: Tx, drive: string, planned: number): Promise<void> {
  await tx.run(`UPDATE file_drives SET planned = ? WHERE name = ? AND planned < ?`, [planned, drive, planned])
}
