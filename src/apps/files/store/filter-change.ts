/**
 * Another filter: what was left alone is decided anew. OneDrive has to tell nothing again for that, because the remote
 * tree holds what is left out as well; what is left out here is found by the look that has just come to its end.
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { FolderPairSettings } from '../folder-pair.ts'
import type { FolderPairRow } from './contract.ts'
import { setFolderPair } from './file-store.ts'

/** In front of the key of the last whole look: the settings are others since. */
const CHANGED = '!'

/**
 * Other settings. What was left alone is decided anew with the next look at the whole folder; with which filter the
 * last one was made stays known, since what is missing by then may only have taken no part.
 */
export async function changeSettings(
  tx: Tx,
  row: FolderPairRow,
  settings: FolderPairSettings,
): Promise<void> {
  const filterKey = row.filterKey === '' ? '' : CHANGED + keyOfLastLook(row)
  await setFolderPair(tx, row.name, { settings: JSON.stringify(settings), filterKey })
}

/** Of the filter of the last whole look; '' where there was none yet. */
export function keyOfLastLook({ filterKey }: Pick<FolderPairRow, 'filterKey'>): string {
  return filterKey.startsWith(CHANGED) ? filterKey.slice(CHANGED.length) : filterKey
}

export async function reopenExcluded(tx: Tx, pair: string, filterKey: string): Promise<number> {
  const row = await tx.get<{ filter_key: string }>(`SELECT filter_key FROM file_drives WHERE name = ?`, [
    pair,
  ])
  if (!row || row.filter_key === filterKey) return 0
  return tx.run(
    `UPDATE file_open SET because = NULL, code = NULL WHERE drive = ? AND planned IS NULL AND because IS NOT NULL`,
    [pair],
  )
}
