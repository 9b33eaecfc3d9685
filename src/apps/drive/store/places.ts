/**
 * Where a document lies, as everybody may be told it: only folders that all who can see the document see, too, and have
 * seen under their present names. The name of a private folder is not for those with whom one of its documents is shared.
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { IndexWriter } from '../../../search/contract.ts'
import { documentOf, type FileRow } from './file-row.ts'
import { textsFrom } from './rows.ts'

/** Folders within folders; Google allows 100. */
const DEPTH_MAX = 100

type Step = { file: string; account: string; folder: string; depth: number; name: string | null }

/** By file: the names of its folders, outermost first. */
export async function placesOf(
  tx: Tx,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const given = JSON.stringify(ids)
  const readers = await tx.all<{ file: string; account: string }>(
    `SELECT DISTINCT file, account FROM drive_access WHERE file IN (${textsFrom(tx)})`,
    [given],
  )
  const steps = await tx.all<Step>(
    `WITH RECURSIVE up(file, account, folder, depth) AS (
       SELECT file, account, parent, 1 FROM drive_access WHERE file IN (${textsFrom(tx)}) AND parent IS NOT NULL
       UNION
       SELECT up.file, up.account, a.parent, up.depth + 1 FROM up
         JOIN drive_access a ON a.account = up.account AND a.file = up.folder
         WHERE a.parent IS NOT NULL AND up.depth < ${DEPTH_MAX})
     SELECT up.file, up.account, up.folder, up.depth, COALESCE(g.name, f.name) AS name FROM up
       LEFT JOIN drive_feeds g ON g.account = up.account AND g.drive = up.folder
       LEFT JOIN drive_files f ON f.id = up.folder AND EXISTS (
         SELECT 1 FROM drive_access seen WHERE seen.account = up.account AND seen.file = up.folder
           AND seen.serial >= f.version_serial)
     ORDER BY up.file, up.account, up.depth DESC`,
    [given],
  )
  const accounts = new Map<string, number>()
  for (const { file } of readers) accounts.set(file, (accounts.get(file) ?? 0) + 1)
  return new Map(ids.map((id) => [id, commonPath(steps, id, accounts.get(id) ?? 0)]))
}

function commonPath(steps: readonly Step[], id: string, accounts: number): string[] {
  const own = steps.filter(({ file, name }) => file === id && name !== null)
  const seenBy = new Map<string, Set<string>>()
  // A drive is called what each account was told last.
  for (const { folder, name, account } of own) {
    seenBy.getOrInsertComputed(`${folder} ${name}`, () => new Set()).add(account)
  }
  const [first] = own
  return own
    .filter(
      ({ account, folder, name }) =>
        account === first?.account && seenBy.get(`${folder} ${name}`)!.size === accounts,
    )
    .map(({ name }) => name!)
}

/** Tells the index where these documents lie now, where that is another place than it was told before. */
export async function describeMoved(tx: Tx, index: IndexWriter, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const places = await placesOf(tx, ids)
  const rows = await tx.all<FileRow>(
    `SELECT * FROM drive_files WHERE published = 1 AND id IN (${textsFrom(tx)}) ORDER BY id`,
    [JSON.stringify(ids)],
  )
  for (const row of rows) {
    const place = places.get(row.id) ?? []
    const text = JSON.stringify(place)
    if (text === row.place && !row.place_stale) continue
    await index.describe(tx, documentOf(row, place))
    await tx.run(`UPDATE drive_files SET place = ?, place_stale = 0 WHERE id = ?`, [text, row.id])
  }
}

/** Folders that appeared, were renamed or moved: what lies below is told anew. */
export async function spreadMoves(tx: Tx, account: string): Promise<void> {
  const moved = await tx.get(`SELECT 1 AS one FROM drive_access WHERE account = ? AND moved = 1 LIMIT 1`, [
    account,
  ])
  if (!moved) return
  await tx.run(
    `WITH RECURSIVE down(id) AS (
       SELECT file FROM drive_access WHERE account = ? AND moved = 1
       UNION
       SELECT a.file FROM down JOIN drive_access a ON a.account = ? AND a.parent = down.id)
     UPDATE drive_files SET place_stale = 1 WHERE published = 1 AND id IN (SELECT id FROM down)`,
    [account, account],
  )
  await tx.run(`UPDATE drive_access SET moved = 0 WHERE account = ? AND moved = 1`, [account])
}

export async function stalePlaces(tx: Tx, limit: number): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(
    `SELECT id FROM drive_files WHERE place_stale = 1 ORDER BY id LIMIT ${limit}`,
  )
  return rows.map(({ id }) => id)
}
