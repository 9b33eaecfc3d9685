/** What the filter and the rules for names say about a node, added to its rows. */
import type { Case } from './decide.ts'
import type { FileDrive } from './drive.ts'
import { illegalNameOf, isTemporaryName, unsafeNameOf } from './names.ts'

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
    hold: excluded === undefined ? undefined : `left out: ${excluded}`,
    illegalName: local && illegalNameOf(local.name, { isInRoot: !path.includes('/'), path }),
    unsafeName: remote && !isTemporaryName(remote.name) ? unsafeNameOf(remote.name) : undefined,
  }
}
