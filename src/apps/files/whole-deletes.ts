/**
 * Plans the deletion of whole folders in OneDrive, each by one action: see store/whole-deletes.ts. Whatever is not plain
 * there (something stays, is left out, was changed in OneDrive, many deletions wait for a yes) is left to the plan of
 * single things.
 */
import type { FolderPair } from './folder-pair.ts'
import { isHeld } from './guard.ts'
import { withHolds } from './holds.ts'
import type { Plan } from './plan.ts'
import type { FolderPairRow } from './store/contract.ts'
import type { FileStore } from './store/file-store.ts'
import type { WholeDelete } from './store/whole-deletes.ts'
import { itemNode } from './trees.ts'

/** Two calls cost no more. */
const ITEMS_MIN = 3

export type WholeDeletes = { plan: Plan; folders: WholeDelete[] }

export async function planWholeDeletes(
  store: FileStore,
  pair: FolderPair,
  row: FolderPairRow,
  nowMs: number,
): Promise<WholeDeletes | undefined> {
  const { mode } = pair.settings
  if (mode === 'download-only') return undefined
  const gone = await store.foldersGone(pair.name)
  if (gone.length === 0) return undefined
  const ahead = await store.deletesAhead(pair.name, mode)
  const recent = await store.recentDeletes(pair.name, nowMs)
  if (isHeld({ ...ahead, forced: row.forcedDeletes, recent })) return undefined
  const plan: Plan = { actions: [], bookkeeping: [], waiting: [], reported: [], heldDeletes: undefined }
  const folders: WholeDelete[] = []
  for (const { itemId, version } of gone) {
    const whole = await store.wholeDelete(pair.name, itemId)
    if (!whole || whole.items.length < ITEMS_MIN || !(await isTakingPart(pair, whole))) continue
    folders.push(whole)
    plan.actions.push({
      node: itemNode(itemId),
      version,
      verb: 'delete-remote',
      row: 'ED8',
      path: whole.path,
      bytes: 0,
      after: [],
      isWhole: true,
    })
  }
  return folders.length > 0 ? { plan, folders } : undefined
}

async function isTakingPart(pair: FolderPair, { items }: WholeDelete): Promise<boolean> {
  for (const [at, { row: remote, path }] of items.entries()) {
    if (at % pair.filter.turnPaths === 0) await new Promise((resolve) => setImmediate(resolve))
    const rows = { base: undefined, local: undefined, remote, localParentId: undefined }
    if (withHolds(pair, rows, path).hold !== undefined) return false
  }
  return true
}
