/** What a check compares, page by page, and why things are left alone, by count. */
import type { Tx } from '../../../ledger/contract.ts'
import type { LeftCode } from '../left-code.ts'
import type { BaseRow, LocalRow } from '../trees.ts'
import {
  BASE_COLUMNS,
  LOCAL_COLUMNS,
  listParameter,
  numberListParameter,
  toBaseRow,
  toLocalRow,
} from './rows.ts'

export type LeftAlone = { because: string; code: LeftCode | null; count: number }

/** Reasons why things are left alone, the most frequent first. */
export async function leftAlone(tx: Tx, pair: string, limit: number): Promise<LeftAlone[]> {
  const rows = await tx.all<{ because: string; code: LeftCode | null; n: number }>(
    `SELECT because, code, count(*) AS n FROM file_open WHERE drive = ? AND because IS NOT NULL AND planned IS NULL
     GROUP BY because, code ORDER BY count(*) DESC, because LIMIT ?`,
    [pair, limit],
  )
  return rows.map(({ because, code, n }) => ({ because, code, count: Number(n) }))
}

/** What both sides agreed on, with its local row where there is one. */
export type AgreedRow = { base: BaseRow; local: LocalRow | undefined }

/** In the order of item ids, which is the cursor. */
export async function agreedPage(
  tx: Tx,
  pair: string,
  { after, limit }: { after: string; limit: number },
): Promise<AgreedRow[]> {
  const bases = await tx.all(
    `SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id > ? ORDER BY item_id LIMIT ?`,
    [pair, after, limit],
  )
  const ids = bases.map((raw) => String(raw.item_id))
  const locals = await tx.all(
    `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND item_id IN (${listParameter(tx)})`,
    [pair, JSON.stringify(ids)],
  )
  const byItem = new Map(locals.map(toLocalRow).map((row) => [row.itemId, row]))
  return bases.map((raw) => ({ base: toBaseRow(raw), local: byItem.get(String(raw.item_id)) }))
}

/** What is here and was never agreed on, in the order of ids, which is the cursor. */
export async function newHerePage(
  tx: Tx,
  pair: string,
  { after, limit }: { after: number; limit: number },
): Promise<LocalRow[]> {
  const columns = LOCAL_COLUMNS.split(', ').map((column) => `here.${column}`)
  const rows = await tx.all(
    `SELECT ${columns.join(', ')} FROM file_local here
     LEFT JOIN file_base base ON base.drive = here.drive AND base.item_id = here.item_id
     WHERE here.drive = ? AND here.id > ? AND here.is_missing = 0 AND here.parent_id IS NOT NULL
       AND base.item_id IS NULL ORDER BY here.id LIMIT ?`,
    [pair, after, limit],
  )
  return rows.map(toLocalRow)
}

/** Names from the root of several local rows, in few statements. */
export async function localNames(
  tx: Tx,
  pair: string,
  ids: readonly number[],
): Promise<Map<number, string[]>> {
  const known = new Map<number, { parentId: number | null; name: string }>()
  let wanted = [...new Set(ids)]
  for (let depth = 0; wanted.length > 0 && depth < DEPTH_MAX; depth++) {
    const rows = await tx.all(
      `SELECT id, parent_id, name FROM file_local WHERE drive = ? AND id IN (${numberListParameter(tx)})`,
      [pair, JSON.stringify(wanted)],
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
export async function continuePlans(tx: Tx, pair: string, planned: number): Promise<void> {
  await tx.run(`UPDATE file_drives SET planned = ? WHERE name = ? AND planned < ?`, [planned, pair, planned])
}
