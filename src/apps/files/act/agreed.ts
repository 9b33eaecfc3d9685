/**
 * Ends that say what both sides are, written over rows that others may have written since the action began: OneDrive
 * told of a newer version, or a look at the folder found something else. Such news must not be overwritten by what
 * the action knew when it began: nobody would tell it again. So it is told again afterwards.
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { ActionContext } from '../action.ts'
import { isSameStat, plainStat } from '../local/stat.ts'
import type { InStep, LocalObservation } from '../store/contract.ts'
import { dismissConflicts, endInStep, endMoved } from '../store/ends.ts'
import { localAtName, localRow, recordLocal } from '../store/local-tree.ts'
import { isOther, recordRemoteNow, remoteRow } from '../store/remote-tree.ts'
import type { LocalRow, LocalStat, RemoteRow } from '../trees.ts'

type Acted = Pick<ActionContext, 'pair' | 'case' | 'job'>

/** Both sides have the same now. `known`: the local row, where it was read in this transaction. */
export async function endAgreed(
  tx: Tx,
  acted: Acted,
  { known, ...end }: Omit<InStep, 'now'> & { known?: LocalRow | undefined },
): Promise<boolean> {
  const { pair, job } = acted
  const now = {
    local: known ?? ('id' in end.local ? await localRow(tx, pair.name, end.local.id) : undefined),
    remote: await remoteRow(tx, pair.name, end.remote.itemId),
  }
  const remoteNews = newsOfItem(acted, now.remote, end.remote)
  const localNews = now.local && newsOfFile(acted, now.local, end.stat)
  const again = await endInStep(tx, pair.name, { ...end, now })
  if (pair.settings.conflicts === 'manual') {
    await dismissConflicts(tx, pair.name, end.node, job.clock.now())
  }
  return (await tell(tx, pair.name, remoteNews, localNews)) || again
}

/** A rename or move was done on either side. */
export async function endPlaced(tx: Tx, acted: Acted, end: Parameters<typeof endMoved>[2]): Promise<boolean> {
  const pair = acted.pair.name
  const { id, parentId, name } = end.local
  const remoteNews = newsOfItem(acted, await remoteRow(tx, pair, end.remote.itemId), end.remote)
  const now = await localRow(tx, pair, id)
  const localNews = now && newsOfPlace(acted, now, end.local)
  const { ctimeNs } = now && !isMovedRow(acted, now) ? now : end.local
  const local = { ...(now ?? end.local), parentId, name, isMissing: false, ctimeNs }
  await makeRoom(tx, pair, local)
  const again = await endMoved(tx, pair, { ...end, local })
  return (await tell(tx, pair, remoteNews, localNews)) || again
}

/** What was moved is what the row says: so the ctime that the move gave it is that of the same content. */
function isMovedRow({ case: { local } }: Acted, now: LocalRow): boolean {
  return local !== undefined && isSameStat(now, local)
}

function newsOfItem(acted: Acted, now: RemoteRow | undefined, known: RemoteRow): RemoteRow | undefined {
  const began = acted.case.remote
  const isAsItBegan = began?.itemId === now?.itemId && now?.eTag === began?.eTag
  const isNews = now && isOther(now, known) && !(isAsItBegan && !isOther(now, began!))
  return isNews ? now : undefined
}

function newsOfFile(acted: Acted, now: LocalRow, known: LocalStat): LocalObservation | undefined {
  const { id } = now
  const began = acted.case.local
  if (!now.isMissing && (now.type === 'folder' || isSameStat(now, known))) return undefined
  const isAsItBegan = began?.id === id && began.isMissing === now.isMissing && isSameStat(began, now)
  if (isAsItBegan) return undefined
  const { parentId, name } = now
  if (!now.isMissing) return { seen: 'changed', id, stat: plainStat(now) }
  return parentId === null ? undefined : { seen: 'missing', id, parentId, name }
}

function newsOfPlace(acted: Acted, now: LocalRow, known: LocalRow): LocalObservation | undefined {
  const { id, parentId, name } = now
  const began = acted.case.local
  const isAt = (row: LocalRow | undefined): boolean => row?.parentId === parentId && row?.name === name
  if (parentId === null || now.isMissing || isAt(known) || isAt(began)) return undefined
  return { seen: 'changed', id, parentId, name }
}

async function tell(
  tx: Tx,
  pair: string,
  item: RemoteRow | undefined,
  file: LocalObservation | undefined,
): Promise<boolean> {
  const heard = item ? await recordRemoteNow(tx, pair, [item]) : 0
  const seen = file ? (await recordLocal(tx, pair, [file])).opened : 0
  return heard + seen > 0
}

/** Who was known to be at this place is not: the file system has given it to another. */
async function makeRoom(tx: Tx, pair: string, { id, parentId, name }: LocalRow): Promise<void> {
  if (parentId === null) return
  const other = await localAtName(tx, pair, parentId, name)
  if (other && other.id !== id)
    await recordLocal(tx, pair, [{ seen: 'missing', id: other.id, parentId, name }])
}
