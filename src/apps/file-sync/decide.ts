/**
 * What is to be done about one node, from its three rows: a pure function, used by the plan and again by every action
 * just before it acts. The rows of the decision tables are named after it (EF1 … EF14 for files, ED1 … ED8 for folders).
 *
 * One thing at a time: a node that was moved and edited is moved first, and decided anew.
 */
import { isTemporaryName } from './names.ts'
import { type BaseRow, isRemoteContentSame, type LocalRow, type RemoteRow, sameSpelling } from './trees.ts'

export type Mode = 'two-way' | 'download-only' | 'upload-only'
export type ConflictPolicy = 'keep-both' | 'keep-local' | 'keep-remote' | 'manual'

/** The rows of a node, and what the plan or the store found out around it. */
export type Case = {
  base: BaseRow | undefined
  /** With `isMissing`, or undefined where there never was one. */
  local: LocalRow | undefined
  /** With `isDeleted`, or undefined where OneDrive never told of one. */
  remote: RemoteRow | undefined
  /** Item id of the local side's folder; undefined: that folder is not in OneDrive (yet). */
  localParentId: string | undefined
  /** Why nothing may be done about it now: excluded, unreadable, held by a conflict, blocked. */
  hold?: string | undefined
  /** Why OneDrive would not take the local name. */
  illegalName?: string | undefined
  /** Why this machine cannot take the remote name. */
  unsafeName?: string | undefined
  /** Folders only: something in it is not to be deleted along with it, on the side that still has it. */
  hasSurvivors?: boolean | undefined
}

export type ConflictKind = 'edit-edit' | 'edit-delete' | 'create-create'

export type Decision =
  /** This mode does nothing about it. */
  | { do: 'nothing'; row: string; because: string }
  /** Left alone, and people are told why. */
  | { do: 'report'; row: string; because: string }
  /** Bookkeeping, without any I/O. */
  | { do: 'adopt'; row: string }
  | { do: 'forget'; row: string }
  | { do: 'detach'; row: string; conflict?: ConflictKind }
  /** The local content must be hashed first. */
  | { do: 'check'; row: string }
  | { do: 'download'; row: string }
  | { do: 'upload'; row: string }
  | { do: 'mkdir-local' | 'mkdir-remote'; row: string }
  | { do: 'move-local' | 'move-remote'; row: string }
  | { do: 'delete-local' | 'delete-remote'; row: string }
  | { do: 'conflict'; row: string; conflict: ConflictKind }

export type Verb = Decision['do']

/** The row of a conflict that is about nothing but such a name: what has it gets another one. */
export const TEMPORARY_NAME = 'temporary name'

/** Said of what would change the other side; something new in a folder that is left alone for it finds that by it. */
export const DOWNLOADS_ONLY = 'only downloads are on'
export const UPLOADS_ONLY = 'only uploads are on'

/** Verbs that change the folder, and those that change OneDrive. */
const LOCAL_VERBS: ReadonlySet<Verb> = new Set(['download', 'mkdir-local', 'move-local', 'delete-local'])
const REMOTE_VERBS: ReadonlySet<Verb> = new Set(['upload', 'mkdir-remote', 'move-remote', 'delete-remote'])

export function decide(node: Case, mode: Mode): Decision {
  const decision = decideTwoWay(node)
  if (mode === 'download-only' && REMOTE_VERBS.has(decision.do)) return withheld(decision, DOWNLOADS_ONLY)
  if (mode === 'upload-only' && LOCAL_VERBS.has(decision.do)) return withheld(decision, UPLOADS_ONLY)
  if (mode === 'upload-only' && decision.do === 'conflict')
    return {
      do: 'report',
      row: decision.row,
      because: 'it was changed on both sides, and only uploads are on',
    }
  return decision
}

function withheld({ row }: Decision, because: string): Decision {
  return { do: 'nothing', row, because }
}

function decideTwoWay(node: Case): Decision {
  const { base, local, remote, hold } = node
  const type = base?.type ?? local?.type ?? remote?.type
  // Whatever it was, there is nothing left that could be left alone.
  if (!isHere(local) && !isThere(remote)) return { do: 'forget', row: type === 'folder' ? 'ED7' : 'EF10' }
  if (hold !== undefined) return { do: 'report', row: 'held', because: hold }
  if (local?.unreadable != null) return { do: 'report', row: 'unreadable', because: local.unreadable }
  if (local?.type === 'other')
    return { do: 'report', row: 'special', because: 'it is neither a file nor a folder' }
  if (remote?.type === 'package')
    return { do: 'report', row: 'package', because: 'it is a notebook, which has no file' }
  if (type === 'folder') return decideFolder(node)
  return base ? decideKnownFile(node, base) : decideNewFile(node)
}

function isHere(local: LocalRow | undefined): local is LocalRow {
  return local !== undefined && !local.isMissing
}

function isThere(remote: RemoteRow | undefined): remote is RemoteRow {
  return remote !== undefined && !remote.isDeleted
}

/** Rows in which a side is gone come before those in which it changed. */
function decideKnownFile(node: Case, base: BaseRow): Decision {
  const { local, remote } = node
  if (!isHere(local)) {
    const isSame = isRemoteContentSame(remote!, base) && !isMovedRemotely(remote!, base)
    if (isSame) return { do: 'delete-remote', row: 'EF6' }
    return node.unsafeName === undefined ? { do: 'download', row: 'EF7' } : unsafe(node)
  }
  if (!isThere(remote)) {
    if (local.hash === null) return { do: 'check', row: 'EF8' }
    const isSame = local.hash === base.hash && !isMovedLocally(node, base)
    return isSame ? { do: 'delete-local', row: 'EF8' } : { do: 'detach', row: 'EF9', conflict: 'edit-delete' }
  }
  return decideMove(node, base) ?? decideContent(node, base)
}

function decideContent({ local, remote }: Case, base: BaseRow): Decision {
  const isRemoteSame = isRemoteContentSame(remote!, base)
  if (local!.hash === null) return { do: 'check', row: isRemoteSame ? 'EF3' : 'EF5' }
  const isLocalSame = local!.hash === base.hash
  if (isLocalSame && isRemoteSame) return { do: 'adopt', row: 'EF1' }
  if (isLocalSame) return { do: 'download', row: 'EF2' }
  if (isRemoteSame) return { do: 'upload', row: 'EF3' }
  if (isSameContent(local!, remote!)) return { do: 'adopt', row: 'EF4' }
  return { do: 'conflict', row: 'EF5', conflict: 'edit-edit' }
}

function decideNewFile(node: Case): Decision {
  const { local, remote } = node
  if (isHere(local) && isThere(remote)) {
    if (local.hash === null && local.size === remote.size && remote.hash !== null)
      return { do: 'check', row: 'EF11' }
    if (isSameContent(local, remote)) return { do: 'adopt', row: 'EF11' }
    return { do: 'conflict', row: 'EF12', conflict: 'create-create' }
  }
  if (isHere(local)) return node.illegalName === undefined ? { do: 'upload', row: 'EF13' } : illegal(node)
  return node.unsafeName === undefined ? { do: 'download', row: 'EF14' } : unsafe(node)
}

function decideFolder(node: Case): Decision {
  const { base, local, remote } = node
  if (!base) {
    if (isHere(local) && isThere(remote)) return { do: 'adopt', row: 'ED2' }
    if (isHere(local))
      return node.illegalName === undefined ? { do: 'mkdir-remote', row: 'ED5' } : illegal(node)
    return node.unsafeName === undefined ? { do: 'mkdir-local', row: 'ED3' } : unsafe(node)
  }
  if (!isThere(remote))
    return node.hasSurvivors ? { do: 'detach', row: 'ED6' } : { do: 'delete-local', row: 'ED6' }
  if (!isHere(local)) {
    const isKept = node.hasSurvivors === true || isMovedRemotely(remote, base)
    if (!isKept) return { do: 'delete-remote', row: 'ED8' }
    return node.unsafeName === undefined ? { do: 'mkdir-local', row: 'ED4' } : unsafe(node)
  }
  return decideMove(node, base) ?? { do: 'adopt', row: 'ED1' }
}

/** Where both sides moved it, OneDrive's place counts. */
function decideMove(node: Case, base: BaseRow): Decision | undefined {
  const { local, remote, localParentId } = node
  if (localParentId === remote!.parentId && sameSpelling(local!.name, remote!.name)) {
    // Where an exchange of names led nowhere, both sides may have ended up with the name for a moment.
    return isTemporaryName(local!.name)
      ? { do: 'conflict', row: TEMPORARY_NAME, conflict: 'create-create' }
      : undefined
  }
  // A name of our own, from an exchange of names that was interrupted, is nobody's wish.
  if (!isTemporaryName(remote!.name) && (isMovedRemotely(remote!, base) || isTemporaryName(local!.name))) {
    return node.unsafeName === undefined ? { do: 'move-local', row: 'moved remotely' } : unsafe(node)
  }
  return node.illegalName === undefined ? { do: 'move-remote', row: 'moved locally' } : illegal(node)
}

function isMovedRemotely(remote: RemoteRow, base: BaseRow): boolean {
  return remote.parentId !== base.parentId || !sameSpelling(remote.name, base.name)
}

function isMovedLocally({ local, localParentId }: Case, base: BaseRow): boolean {
  return localParentId !== base.parentId || !sameSpelling(local!.name, base.name)
}

/** Two unknown hashes say nothing; two empty files are equal without any. */
function isSameContent(local: LocalRow, remote: RemoteRow): boolean {
  if (local.size === 0 && remote.size === 0) return true
  return local.hash !== null && local.hash === remote.hash
}

function illegal({ illegalName }: Case): Decision {
  return { do: 'report', row: 'illegal name', because: illegalName! }
}

function unsafe({ unsafeName }: Case): Decision {
  return { do: 'report', row: 'unsafe name', because: unsafeName! }
}
