/**
 * Another filter: what was left alone is decided anew. OneDrive has to tell nothing again for that, because the remote
 * tree holds what is left out as well; what is left out here is found by the look that has just come to its end.
 */
import { UsageError } from '../../../base/errors.ts'
import type { Tx } from '../../../ledger/contract.ts'
import { type FolderPairSettings, UNKNOWN } from '../folder-pair.ts'
import { itemNode } from '../trees.ts'
import type { FolderPairRow } from './contract.ts'
import { setFolderPair } from './file-store.ts'
import { openNodes } from './open-nodes.ts'

/** In front of the key of the last whole look: the settings are others since. */
const CHANGED = '!'
/** In front of all: what is missing since is no proof of anything. It makes the key one that no filter has. */
const DOUBTED = '?'

/**
 * Other settings. What was left alone is decided anew with the next look at the whole folder; with which filter the
 * last one was made stays known, since what is missing by then may only have taken no part.
 */
export async function changeSettings(
  tx: Tx,
  row: Pick<FolderPairRow, 'name' | 'filterKey'>,
  settings: FolderPairSettings,
): Promise<void> {
  const filterKey = row.filterKey === '' ? '' : CHANGED + keyOfLastLook(row)
  await setFolderPair(tx, row.name, { settings: JSON.stringify(settings), filterKey })
  if (settings.conflicts === 'manual') return
  // The policy decides about them by then.
  await tx.run(`UPDATE file_conflicts SET state = 'dismissed' WHERE drive = ? AND state = 'open'`, [row.name])
}

/**
 * Other settings, on top of those that hold when they are written. `change` is told these as they are kept, and may
 * refuse; where nothing is different nothing is written.
 */
export async function mergeSettings<C extends { now: FolderPairSettings; isOther: boolean }>(
  tx: Tx,
  name: string,
  change: (settings: string) => C,
): Promise<C> {
  const lock = tx.dialect === 'postgres' ? ' FOR UPDATE' : ''
  const raw = await tx.get<{ settings: string; filter_key: string }>(
    `SELECT settings, filter_key FROM file_drives WHERE name = ?${lock}`,
    [name],
  )
  if (!raw) throw new UsageError(`${name} is not kept in step any more.`, { code: UNKNOWN })
  const changed = change(raw.settings)
  if (changed.isOther) await changeSettings(tx, { name, filterKey: raw.filter_key }, changed.now)
  return changed
}

/**
 * Nobody can tell from now on why something is missing here: what is known to be missing comes back, and so does what
 * the next look at the whole folder misses.
 */
export async function doubtMissing(tx: Tx, pair: string): Promise<void> {
  await tx.run(
    `UPDATE file_drives SET filter_key = ? || filter_key WHERE name = ? AND filter_key <> ''
       AND substr(filter_key, 1, 1) <> ?`,
    [DOUBTED, pair, DOUBTED],
  )
  const rows = await tx.all<{ item_id: string }>(
    `DELETE FROM file_base WHERE drive = ? AND item_id IN (
       SELECT item_id FROM file_local WHERE drive = ? AND is_missing = 1 AND item_id IS NOT NULL) RETURNING item_id`,
    [pair, pair],
  )
  await openNodes(
    tx,
    pair,
    rows.map((row) => itemNode(row.item_id)),
  )
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
