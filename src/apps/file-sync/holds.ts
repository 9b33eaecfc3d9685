/** What the filter and the rules for names say about a node, added to its rows. */
import type { Case } from './decide.ts'
import type { FileDrive } from './drive.ts'
import { IN_EXCHANGE, illegalNameOf, isTemporaryName, unsafeNameOf } from './names.ts'

/** `path` relative to the root, as people see it. */
export function withHolds(drive: Pick<FileDrive, 'filter' | 'rootItemId'>, rows: Case, path: string): Case {
  const { local, remote } = rows
  const type = (local ?? remote)?.type
  const size = Math.max(
    local?.isMissing ? 0 : (local?.size ?? 0),
    remote?.isDeleted ? 0 : (remote?.size ?? 0),
  )
  const excluded =
    type === 'file' || type === 'folder'
      ? drive.filter.excluded(path.normalize('NFC'), { type, size })
      : undefined
  return {
    ...rows,
    hold: excluded === undefined ? undefined : holdOf(rows, path, excluded),
    illegalName: local && illegalNameOf(local.name, { isInRoot: !path.includes('/'), path }),
    unsafeName: remote && !isTemporaryName(remote.name) ? unsafeNameOf(remote.name) : undefined,
  }
}

/**
 * A name of our own, which something has for a moment, says nothing about whether it takes part: it goes on to the
 * name that it is to have. What is in it waits for that.
 */
function holdOf({ base }: Case, path: string, excluded: string): string | undefined {
  const names = path.split('/')
  if (!base || !isTemporaryName(names[0]!)) return `left out: ${excluded}`
  return names.length === 1 ? undefined : IN_EXCHANGE
}
