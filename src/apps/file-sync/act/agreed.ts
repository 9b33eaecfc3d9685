/**
 * Ends that say what both sides are, written over rows that others may have written since the action began: OneDrive
 * told of a newer version, or a look at the folder found another content. Such news must not be overwritten by what
 * the action knew: nobody would tell it again.
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { ActionContext } from '../action.ts'
import { plainStat } from '../local/stat.ts'
import { dismissConflicts } from '../store/conflicts.ts'
import type { InStep } from '../store/contract.ts'
import { endInStep, endMoved } from '../store/ends.ts'
import { localRow, seeLocal } from '../store/local-tree.ts'
import { hearNow, isOther, remoteRows } from '../store/remote-tree.ts'
import { sameStat } from '../store/rows.ts'
import type { LocalRow, RemoteRow } from '../trees.ts'

type Acted = Pick<ActionContext, 'drive' | 'case' | 'job'>

/** Both sides have the same now. */
export async function endAgreed(tx: Tx, acted: Acted, end: InStep): Promise<boolean> {
  const drive = acted.drive.name
  const isNews = await newsOf(tx, acted, end)
  const again = await endInStep(tx, drive, end)
  if (acted.drive.settings.conflicts === 'manual') {
    await dismissConflicts(tx, drive, end.node, acted.job.clock.now())
  }
  return (await isNews.tell()) || again
}

/** A rename or move was done on either side. */
export async function endPlaced(tx: Tx, acted: Acted, end: Parameters<typeof endMoved>[2]): Promise<boolean> {
  const { id, parentId, name } = end.local
  const news = await newsOf(tx, acted, { remote: end.remote, local: { id }, stat: plainStat(end.local) })
  const drive = acted.drive.name
  // Who was known to be at this place is not, or the file system would not have let it go there.
  const now = await localRow(tx, drive, id)
  const local = { ...(now ?? end.local), parentId, name, isMissing: false }
  await makeRoom(tx, drive, local)
  const again = await endMoved(tx, drive, { ...end, local })
  return (await news.tell({ placeOnly: false })) || again
}

async function makeRoom(tx: Tx, drive: string, { id, parentId, name }: LocalRow): Promise<void> {
  if (parentId === null) return
  const { localAtName } = await import('../store/local-tree.ts')
  const other = await localAtName(tx, drive, parentId, name)
  if (other && other.id !== id) await seeLocal(tx, drive, [{ seen: 'missing', id: other.id, parentId, name }])
}
