/**
 * Another filter: what was left alone is decided anew. OneDrive has to tell nothing again for that, because the remote
 * tree holds what is left out as well; what is left out here is found by the look that has just come to its end.
 */
import type { Tx } from '../../../ledger/contract.ts'

export async function reopenExcluded(tx: Tx, drive: string, filterKey: string): Promise<number> {
  const row = await tx.get<{ filter_key: string }>(`SELECT filter_key FROM file_drives WHERE name = ?`, [
    drive,
  ])
  if (!row || row.filter_key === filterKey) return 0
  return tx.run(
    `UPDATE file_open SET because = NULL WHERE drive = ? AND planned IS NULL AND because IS NOT NULL`,
    [drive],
  )
}
