/** The three trees, as the rest of the file sync sees them. `store/` keeps them; see README.md. */

/** `i:<item id>` where OneDrive knows it, else `l:<local id>`. */
export type NodeKey = `i:${string}` | `l:${number}`

export type FileType = 'file' | 'folder'

/** What was seen of a local file or folder: unchanged as long as all of it is. Nanoseconds as text: they need more than 53 bits. */
export type LocalStat = {
  dev: string
  ino: string
  /** '0' where the file system does not tell. */
  birthNs: string
  mtimeNs: string
  size: number
}

export type LocalRow = LocalStat & {
  id: number
  /** Null for the root. */
  parentId: number | null
  /** As the file system spells it. */
  name: string
  /** `other`: a symbolic link that is not followed, a socket, a device … */
  type: FileType | 'other'
  /** QuickXorHash of the content with this stat; null where nobody has looked yet, and for folders. */
  hash: string | null
  /** The item that it is the local side of. */
  itemId: string | null
  /** It was there and is not any more; kept until that is settled. */
  isMissing: boolean
  /** Why its content could not be looked at; then nothing is concluded from it. */
  unreadable: string | null
}

export type RemoteRow = {
  itemId: string
  /** Null for the root. */
  parentId: string | null
  name: string
  type: FileType | 'package'
  size: number
  /** Null where OneDrive does not say. */
  hash: string | null
  eTag: string | null
  cTag: string | null
  modifiedMs: number | null
  isDeleted: boolean
}

/** Both sides were like this when they last agreed. */
export type BaseRow = {
  itemId: string
  parentId: string
  name: string
  type: FileType
  /** Of the local content; null for folders. */
  hash: string | null
  size: number
  /** What OneDrive said of it then: after an upload it may have been rewritten, so its hash can differ from ours. */
  remoteHash: string | null
  remoteSize: number
  eTag: string | null
  cTag: string | null
}

/** A place in the drive, by the item id of its folder; null where that folder is not in OneDrive yet. */
export type Place = { parentId: string | null; name: string }

export function itemNode(itemId: string): NodeKey {
  return `i:${itemId}`
}

export function localNode({ id, itemId }: Pick<LocalRow, 'id' | 'itemId'>): NodeKey {
  return itemId === null ? `l:${id}` : `i:${itemId}`
}

/** The same name to OneDrive: case and the form of accents do not count. */
export function nameKey(name: string): string {
  return name.normalize('NFC').toLowerCase()
}

/** The same spelling: the form of accents does not count, case does. */
export function sameSpelling(one: string, other: string): boolean {
  return one === other || one.normalize('NFC') === other.normalize('NFC')
}

/** Whether the content that OneDrive has is still that of the base. */
export function isRemoteContentSame(remote: RemoteRow, base: BaseRow): boolean {
  if (remote.cTag !== null && base.cTag !== null) return remote.cTag === base.cTag
  if (remote.hash !== null && base.remoteHash !== null) return remote.hash === base.remoteHash
  return remote.size === base.remoteSize && remote.eTag === base.eTag
}
