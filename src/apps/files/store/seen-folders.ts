/**
 * Digests of folders of the local tree, so that a look need not read the rows of a folder in which nothing changed.
 *
 * A digest is made of rows, in the transaction that writes it, and triggers take it away in the transaction that
 * changes one of these rows: so it is there only while it is true. Only on SQLite, where one transaction follows
 * another; elsewhere rows could change between being read and being committed.
 */
import type { Tx } from '../../../ledger/contract.ts'
import { digestOfRows } from '../local/folder-digest.ts'
import type { LocalRow } from '../trees.ts'
import { childRows, PACKED_ROWS, unpackedRows } from './local-tree.ts'

export type SeenFolder = {
  digest: string
  /** The rows of the folders in it. */
  folders: LocalRow[]
}

/** Both at one moment; undefined where there is no digest. */
export async function seenFolder(tx: Tx, pair: string, id: number): Promise<SeenFolder | undefined> {
  if (tx.dialect !== 'sqlite') return undefined
  const found = await tx.get<{ digest: string; folders: string }>(SEEN, [pair, id])
  return found && { digest: found.digest, folders: unpackedRows(found.folders) }
}

const SEEN = `SELECT digest, (
    SELECT ${PACKED_ROWS.sqlite} FROM file_local child WHERE child.drive = seen.drive
      AND child.parent_id = seen.folder AND child.type = 'folder' AND child.is_missing = 0) AS folders
  FROM file_seen seen WHERE drive = ? AND folder = ?`

/** As their rows are now. */
export async function noteSeen(tx: Tx, pair: string, ids: readonly number[]): Promise<void> {
  if (tx.dialect !== 'sqlite') return
  for (const id of ids) {
    const rows = (await childRows(tx, pair, id)).filter(({ isMissing }) => !isMissing)
    if (rows.length === 0 || rows.some(({ unreadable }) => unreadable !== null)) continue
    await tx.run(
      `INSERT INTO file_seen(drive, folder, digest) VALUES (?, ?, ?)
       ON CONFLICT (folder, drive) DO UPDATE SET digest = excluded.digest`,
      [pair, id, digestOfRows(rows)],
    )
  }
}
