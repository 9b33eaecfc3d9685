/**
 * What the file sync keeps in the ledger's database: the words of the store. Everything that jobs write is written by
 * effects of the engine's own commits, so what changes something takes the transaction.
 *
 * Invariants:
 * - a change to a row of a tree opens its node, in the same transaction
 * - a node is not open only if its three rows agree (decide says EF1 or ED1), or it has none
 * - base rows are written by the end of an action alone
 *
 * The stored names are older than the word *folder pair*: the table `file_drives`, the column `drive` of the other
 * tables and the field `drive` of job payloads and of the marker file hold the name of a folder pair.
 */
import type { ConflictKind } from '../decide.ts'
import type { LeftCode } from '../left-code.ts'
import type { FileType, LocalRow, LocalStat, NodeKey, RemoteRow } from '../trees.ts'

export type FolderPairRow = {
  /** Its name here: `files:<name>` is its stream. */
  name: string
  account: string
  driveId: string
  /** Personal or business: some answers differ. */
  driveType: string
  rootItemId: string
  root: string
  /** Written into the root's marker file: another root with another marker is not this one. */
  markerId: string
  /** Of the machine that has the root. */
  machine: string
  /** JSON: mode, policy, filters … as zod parses them. */
  settings: string
  /** The delta link, or the next link of an enumeration under way. */
  link: string | null
  /** Counts enumerations from the start; rows not seen in one that was completed are deleted. */
  generation: number
  isEnumerating: boolean
  /** Some pages of changes were heard, and not yet the last one: nothing is concluded from that. */
  isReading: boolean
  /** When a full scan was last completed; null: the local tree is not known yet. */
  scannedAt: number | null
  /** When delta was last read to its end; null: the remote tree is not known yet. */
  heardAt: number | null
  /** How many deletions, and how many files with another content, someone said yes to. */
  forcedDeletes: number
  forcedOverwrites: number
  /** JSON: how many wait for a yes, on each side (`Held` in guard.ts). */
  heldDeletes: string | null
  /** Of the filters that the trees were last looked through with. */
  filterKey: string
  /** The number of the last plan. */
  planned: number
  /** When the watch last saw a change of which no look was asked for yet; null: there is none. */
  changeSeenAt: number | null
  /** Who shares it, as people call them, where the top is a folder of somebody else; null where it is a drive's root. */
  sharedBy: string | null
}

/** What a look at the folder found. */
export type LocalObservation =
  | {
      seen: 'new'
      /** Reserved with `takeLocalIds`. */
      id: number
      parentId: number
      name: string
      type: LocalRow['type']
      stat: LocalStat
      unreadable?: string | null
    }
  /** Content, name or place changed; what is left out stays. */
  | {
      seen: 'changed'
      id: number
      stat?: LocalStat
      name?: string
      parentId?: number
      unreadable?: string | null
    }
  /** It was at this place, and is not any more. */
  | { seen: 'missing'; id: number; parentId: number; name: string }

export type OpenNode = {
  node: NodeKey
  version: number
  /** The plan whose action is not settled. */
  planned: number | null
  waitsFor: NodeKey | null
  /** Why it is left alone: reported, held, or given up. */
  because: string | null
  code: LeftCode | null
}

export type ConflictRow = {
  id: number
  kind: ConflictKind
  path: string
  node: NodeKey
  /** Where the local version went; null where both are untouched. */
  copyPath: string | null
  localHash: string | null
  remoteHash: string | null
  at: number
  /** open: nobody has decided yet (policy manual). */
  state: 'open' | 'kept-both' | 'kept-local' | 'kept-remote' | 'dismissed'
  resolvedAt: number | null
}

/** Both sides agree now. */
export type InStep = {
  node: NodeKey
  version: number
  remote: RemoteRow
  /** An existing local row, or a new one below this parent. */
  local: { id: number } | { parentId: number }
  localName: string
  type: FileType
  stat: LocalStat
  hash: string | null
  sha256: string | null
  /** The rows of both sides, where they were read in this very transaction. */
  now?: { local: LocalRow | undefined; remote: RemoteRow | undefined }
}

export type SetAside = {
  node: NodeKey
  version: number
  localId: number
  /** Where it was when it was renamed. */
  from: Pick<LocalRow, 'parentId' | 'name'>
  /** After that; undefined where it was renamed by a try before, and may have been edited since. */
  stat?: LocalStat | undefined
  copyName: string
  /** False where it only wanted a name that is taken: it keeps its item. */
  isDetached: boolean
  conflict: Omit<ConflictRow, 'id' | 'resolvedAt'>
}
