/** What the filter and the rules for names say about a node, added to its rows. */
import { type Case, isMovedRemotely } from './decide.ts'
import type { FolderPair } from './folder-pair.ts'
import type { Reason } from './left-code.ts'
import { IN_EXCHANGE, illegalNameOf, isTemporaryName, leftOut, unsafeNameOf } from './names.ts'

/** `path` relative to the root, as people see it. */
export function withHolds(pair: Pick<FolderPair, 'filter' | 'rootItemId'>, rows: Case, path: string): Case {
  const { local, remote } = rows
  const type = (local ?? remote)?.type
  const size = Math.max(
    local?.isMissing ? 0 : (local?.size ?? 0),
    remote?.isDeleted ? 0 : (remote?.size ?? 0),
  )
  const excluded = excludedAt(pair, { type, size }, path)
  return {
    ...rows,
    hold: excluded === undefined ? undefined : holdReason(rows, path, excluded),
    illegalName: local && illegalNameOf(local.name, { isInRoot: !path.includes('/'), path }),
    unsafeName: remote && !isTemporaryName(remote.name) ? unsafeNameOf(remote.name) : undefined,
  }
}

/**
 * By which of its paths it is judged: where it is here. But what OneDrive has moved from a name that is left out to one
 * that takes part is on its way there, and takes part again.
 */
export function judgedPath(
  pair: Pick<FolderPair, 'filter'>,
  { base, local, remote }: Case,
  { here, there }: { here: string; there: string | undefined },
): string {
  if (!base || !local || local.isMissing || !remote || remote.isDeleted || there === undefined) return here
  const isOnItsWay = isMovedRemotely(remote, base) && excludedAt(pair, local, here) !== undefined
  return isOnItsWay && excludedAt(pair, remote, there) === undefined ? there : here
}

function excludedAt(
  { filter }: Pick<FolderPair, 'filter'>,
  { type, size }: { type: string | undefined; size: number },
  path: string,
): string | undefined {
  if (type !== 'file' && type !== 'folder') return undefined
  return filter.excluded(path.normalize('NFC'), { type, size })
}

/**
 * A name of our own, which something has for a moment, says nothing about whether it takes part: it goes on to the
 * name that it is to have. What is in it waits for that.
 */
function holdReason({ base }: Case, path: string, excluded: string): Reason | undefined {
  const names = path.split('/')
  if (!base || !isTemporaryName(names[0]!)) return leftOut(excluded)
  return names.length === 1 ? undefined : IN_EXCHANGE
}
