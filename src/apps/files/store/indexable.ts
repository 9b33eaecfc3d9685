/** Files that are in step, for the one index: what they are called, where they lie, and what tells their contents. */
import type { Tx } from '../../../ledger/contract.ts'
import { listParameter } from './rows.ts'

export type IndexableFile = {
  itemId: string
  /** From the root of the folder pair, its own name last. */
  names: readonly string[]
  /** Of its content; null where it was agreed on before anybody kept it. */
  sha256: string | null
  hash: string | null
  size: number
  mtimeNs: string
}

type FileRow = {
  item_id: string
  parent_id: number | null
  name: string
  sha256: string | null
  hash: string | null
  size: number
  mtime_ns: string
}

const FROM_FILES = `SELECT l.item_id, l.parent_id, l.name, b.sha256, b.hash, b.size, l.mtime_ns
  FROM file_base b JOIN file_local l ON l.drive = b.drive AND l.item_id = b.item_id AND l.is_missing = 0
  WHERE b.drive = ? AND b.type = 'file'`

/** In the order of their ids, those behind `after`. */
export async function indexablePage(
  tx: Tx,
  pair: string,
  { after, limit }: { after: string; limit: number },
): Promise<IndexableFile[]> {
  const rows = await tx.all<FileRow>(`${FROM_FILES} AND b.item_id > ? ORDER BY b.item_id LIMIT ?`, [
    pair,
    after,
    limit,
  ])
  return withNames(tx, pair, rows)
}

export async function indexableFiles(
  tx: Tx,
  pair: string,
  itemIds: readonly string[],
): Promise<IndexableFile[]> {
  if (itemIds.length === 0) return []
  const rows = await tx.all<FileRow>(`${FROM_FILES} AND b.item_id IN (${listParameter(tx)})`, [
    pair,
    JSON.stringify(itemIds),
  ])
  return withNames(tx, pair, rows)
}

type FolderRow = { id: number; parent_id: number | null; name: string }

const DEPTH_MAX = 1_000

/** Folders are few beside files: all of them are read at once. */
async function withNames(tx: Tx, pair: string, rows: readonly FileRow[]): Promise<IndexableFile[]> {
  if (rows.length === 0) return []
  const folders = new Map(
    (
      await tx.all<FolderRow>(
        `SELECT id, parent_id, name FROM file_local WHERE drive = ? AND type = 'folder'`,
        [pair],
      )
    ).map((folder) => [Number(folder.id), folder]),
  )
  const above = (id: number | null): string[] => {
    const names: string[] = []
    for (let at = id === null ? undefined : folders.get(Number(id)); at && names.length < DEPTH_MAX; ) {
      if (at.parent_id === null) break
      names.push(at.name)
      at = folders.get(Number(at.parent_id))
    }
    return names.reverse()
  }
  return rows.map((row) => ({
    itemId: row.item_id,
    names: [...above(row.parent_id), row.name],
    sha256: row.sha256,
    hash: row.hash,
    size: Number(row.size),
    mtimeNs: String(row.mtime_ns),
  }))
}
