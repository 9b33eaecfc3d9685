/**
 * What is to be done about one node, from its three rows: a pure function, used by the plan and again by every action
 * just before it acts. The rows of the decision tables are named after it (EF1 … EF14 for files, ED1 … ED8 for folders).
 *
 * One thing at a time: a node that was moved and edited is moved first, and decided anew.
 */
import type { Reason } from './left-code.ts'
import { isTemporaryName, nameBefore } from './names.ts'
import {
  type BaseRow,
  contentSameness,
  isAgreedContent,
  isAside,
  isRemoteContentSame,
  type LocalRow,
  type RemoteRow,
  sameSpelling,
  unreadableText,
} from './trees.ts'

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
  hold?: Reason | undefined
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
  | ({ do: 'nothing'; row: string } & Reason)
  /** Left alone, and people are told why. */
  | ({ do: 'report'; row: string } & Reason)
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

/** Of what would change the other side. */
const DOWNLOADS_ONLY: Reason = { code: 'downloads-only', because: 'only downloads are on' }
const UPLOADS_ONLY: Reason = { code: 'uploads-only', because: 'only uploads are on' }
export const UPLOADS_ONLY_CONFLICT = 'it was changed on both sides, and only uploads are on'

export const SHORTCUT =
  'it is a shortcut to something that somebody shares, which can be kept in step with a folder of its own'

/** Why, by the row of the decision table. */
export const ROW_TEXTS: Readonly<Record<string, string>> = {
  EF2: 'changed in OneDrive',
  EF3: 'changed here',
  EF4: 'changed on both sides, perhaps to the same',
  EF5: 'changed on both sides',
  EF6: 'deleted here',
  EF7: 'deleted here, but changed in OneDrive',
  EF8: 'deleted in OneDrive',
  EF9: 'deleted in OneDrive, but changed here',
  EF11: 'made on both sides, perhaps the same',
  EF12: 'made on both sides, with other content',
  EF13: 'new here',
  EF14: 'new in OneDrive',
  ED3: 'new in OneDrive',
  ED4: 'deleted here, but something in it stays',
  ED5: 'new here',
  ED6: 'deleted in OneDrive',
  ED8: 'deleted here',
  'moved remotely': 'moved in OneDrive',
  'moved locally': 'moved here',
}

/** Verbs that change the folder, and those that change OneDrive. */
const LOCAL_VERBS: ReadonlySet<Verb> = new Set(['download', 'mkdir-local', 'move-local', 'delete-local'])
export const REMOTE_VERBS: ReadonlySet<Verb> = new Set([
  'upload',
  'mkdir-remote',
  'move-remote',
  'delete-remote',
])

export function decide(node: Case, mode: Mode): Decision {
  const decision = decideTwoWay(node)
  if (mode === 'download-only' && REMOTE_VERBS.has(decision.do)) return withheld(decision, DOWNLOADS_ONLY)
  if (mode === 'upload-only' && LOCAL_VERBS.has(decision.do)) return withheld(decision, UPLOADS_ONLY)
  if (mode === 'upload-only' && decision.do === 'conflict' && !isComparison(decision))
    return { do: 'report', row: decision.row, because: UPLOADS_ONLY_CONFLICT }
  return decision
}

/** Both sides seem to have the same content: their bytes are compared first, and only if they differ it is a conflict. */
export function isComparison({ do: verb, row }: Pick<Decision, 'do' | 'row'>): boolean {
  return verb === 'conflict' && (row === 'EF4' || row === 'EF11')
}

/** Whether it replaces the content that the other side has. */
export function isOverwrite({ do: verb, row }: Decision): boolean {
  return (verb === 'upload' && row === 'EF3') || (verb === 'download' && row === 'EF2')
}

/** Times are as good as that: see act/upload.ts. */
export const SAME_TIME_MS = 2_000

/** Whether what comes is older than what it replaces: nobody edits a file so, but a backup is. */
export function replacesNewer({ local, remote }: Case, { do: verb }: Decision): boolean {
  if (!local || remote?.modifiedMs == null) return false
  const newerHereMs = Number(BigInt(local.mtimeNs) / 1_000_000n) - remote.modifiedMs
  return verb === 'upload' ? newerHereMs < -SAME_TIME_MS : newerHereMs > SAME_TIME_MS
}

function withheld({ row }: Decision, reason: Reason): Decision {
  return { do: 'nothing', row, ...reason }
}

function decideTwoWay(node: Case): Decision {
  const { base, local, remote, hold } = node
  const type = base?.type ?? local?.type ?? remote?.type
  // Whatever it was, there is nothing left that could be left alone.
  if (!isHere(local) && !isThere(remote)) return { do: 'forget', row: type === 'folder' ? 'ED7' : 'EF10' }
  if (hold !== undefined) return { do: 'report', row: 'held', ...hold }
  if (isHere(local) && local.unreadable !== null) {
    // Nothing is left to be kept in step: what is in its place is looked at as something of its own.
    if (isAside(local) && !isThere(remote)) return { do: 'forget', row: 'aside' }
    return { do: 'report', row: 'unreadable', because: unreadableText(local.unreadable) }
  }
  if (local?.type === 'other')
    return { do: 'report', row: 'special', because: 'it is neither a file nor a folder' }
  if (remote?.type === 'package')
    return { do: 'report', row: 'package', because: 'it is a notebook, which has no file' }
  if (remote?.type === 'shortcut') return { do: 'report', row: 'shortcut', because: SHORTCUT }
  // Left over from an exchange of names that was interrupted, and nothing says any more where it belongs.
  if (!base && isHere(local) && !isThere(remote) && isTemporaryName(local.name))
    return { do: 'conflict', row: TEMPORARY_NAME, conflict: 'create-create' }
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
    const isSame = isAgreedContent(local, base) && !isMovedLocally(node, base)
    return isSame ? { do: 'delete-local', row: 'EF8' } : { do: 'detach', row: 'EF9', conflict: 'edit-delete' }
  }
  return decideMove(node, base) ?? decideContent(node, base)
}

function decideContent({ local, remote }: Case, base: BaseRow): Decision {
  const isRemoteSame = isRemoteContentSame(remote!, base)
  if (local!.hash === null) return { do: 'check', row: isRemoteSame ? 'EF3' : 'EF5' }
  const isLocalSame = isAgreedContent(local!, base)
  if (isLocalSame && isRemoteSame) return { do: 'adopt', row: 'EF1' }
  if (isLocalSame) return { do: 'download', row: 'EF2' }
  if (isRemoteSame && !base.isUnsure) return { do: 'upload', row: 'EF3' }
  // An edit that its hash cannot tell from what both had is not told from OneDrive's by it either: bytes are compared.
  const sameness = local!.hash === base.hash ? 'other' : contentSameness(local!, remote!)
  if (sameness === 'same') return { do: 'adopt', row: 'EF4' }
  return { do: 'conflict', row: sameness === 'likely' ? 'EF4' : 'EF5', conflict: 'edit-edit' }
}

function decideNewFile(node: Case): Decision {
  const { local, remote } = node
  if (isHere(local) && isThere(remote)) {
    if (local.hash === null && local.size === remote.size && remote.hash !== null)
      return { do: 'check', row: 'EF11' }
    const sameness = contentSameness(local, remote)
    if (sameness === 'same') return { do: 'adopt', row: 'EF11' }
    return { do: 'conflict', row: sameness === 'likely' ? 'EF11' : 'EF12', conflict: 'create-create' }
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

export function isMovedRemotely(remote: RemoteRow, base: BaseRow): boolean {
  return remote.parentId !== base.parentId || !sameSpelling(remote.name, base.name)
}

/**
 * A name of our own is nobody's wish; but in which folder it was before is not known: somebody may have moved it there,
 * and then it stays.
 */
function isMovedLocally({ local, localParentId }: Case, base: BaseRow): boolean {
  const { name } = local!
  const isSameName = [name, ...(isTemporaryName(name) ? [nameBefore(name)] : [])].some((one) =>
    sameSpelling(one, base.name),
  )
  return localParentId !== base.parentId || !isSameName
}

function illegal({ illegalName }: Case): Decision {
  return { do: 'report', row: 'illegal name', because: illegalName! }
}

function unsafe({ unsafeName }: Case): Decision {
  return { do: 'report', row: 'unsafe name', because: unsafeName! }
}
