/** What people ask about a folder pair, in a few statements. */
import type { Tx } from '../../../ledger/contract.ts'
import type { NodeKey } from '../trees.ts'

export type Totals = { files: number; folders: number; bytes: number }

/** Of what both sides agree on. */
export async function readTotals(tx: Tx, pair: string): Promise<Totals> {
  const rows = await tx.all<{ type: string; n: number; bytes: number | null }>(
    `SELECT type, count(*) AS n, sum(size) AS bytes FROM file_base WHERE drive = ? GROUP BY type`,
    [pair],
  )
  const of = (type: string) => rows.find((row) => row.type === type)
  return {
    files: Number(of('file')?.n ?? 0),
    folders: Number(of('folder')?.n ?? 0),
    bytes: Number(of('file')?.bytes ?? 0),
  }
}

export type Reported = { node: NodeKey; path: string; because: string }

/**
 * What is left alone and why, with where it is: on this side where it is here, else in OneDrive. A conflict of something
 * new here with an item of its name is told once.
 */
export async function readReported(
  tx: Tx,
  pair: string,
  { after = '', limit }: { after?: string | undefined; limit: number },
): Promise<Reported[]> {
  const rows = await tx.all<{ node: NodeKey; because: string }>(
    `SELECT node, because FROM file_open WHERE drive = ? AND because IS NOT NULL AND planned IS NULL AND node > ?
       AND NOT (coalesce(code, '') = 'undecided' AND substr(node, 1, 2) = 'l:') ORDER BY node LIMIT ?`,
    [pair, after, limit],
  )
  const reported: Reported[] = []
  for (const { node, because } of rows)
    reported.push({ node, because, path: await pathOfNode(tx, pair, node) })
  return reported
}

const DEPTH_MAX = 1_000

export async function pathOfNode(tx: Tx, pair: string, node: NodeKey): Promise<string> {
  const start = node.startsWith('l:')
    ? await tx.get<{ id: number }>(`SELECT id FROM file_local WHERE drive = ? AND id = ?`, [
        pair,
        Number(node.slice(2)),
      ])
    : await tx.get<{ id: number }>(
        `SELECT id FROM file_local WHERE drive = ? AND item_id = ? AND is_missing = 0`,
        [pair, node.slice(2)],
      )
  const names = start
    ? await namesAbove(tx, { pair, id: Number(start.id), table: 'file_local', column: 'id' })
    : await namesAbove(tx, { pair, id: node.slice(2), table: 'file_remote', column: 'item_id' })
  return names.join('/') || node
}

async function namesAbove(
  tx: Tx,
  from: { pair: string; id: string | number; table: 'file_local' | 'file_remote'; column: 'id' | 'item_id' },
): Promise<string[]> {
  const rows = await tx.all<{ id: string | number; name: string }>(
    `WITH RECURSIVE above(id, parent_id, name, depth) AS (
       SELECT ${from.column}, parent_id, name, 0 FROM ${from.table} WHERE drive = ? AND ${from.column} = ?
       UNION ALL SELECT up.${from.column}, up.parent_id, up.name, above.depth + 1
         FROM above CROSS JOIN ${from.table} up
         WHERE up.drive = ? AND up.${from.column} = above.parent_id AND above.depth < ${DEPTH_MAX})
     SELECT id, name FROM above WHERE parent_id IS NOT NULL ORDER BY depth`,
    [from.pair, from.id, from.pair],
  )
  // Folders that OneDrive has inside of each other are named once.
  const names = new Map<string | number, string>()
  for (const { id, name } of rows) {
    if (names.has(id)) break
    names.set(id, name)
  }
  return [...names.values()].reverse()
}
