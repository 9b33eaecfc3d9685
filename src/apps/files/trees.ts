/** The three trees, as the rest of the file sync sees them. `store/` keeps them; see README.md. */

/** The row of the folder itself, in every local tree. */
export const ROOT_ID = 1

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
  /** Of the last change of any kind: who sets back the time of an edit does not set back this. '0': not known. */
  ctimeNs: string
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
  /** Of the same content; QuickXorHash tells damage, and not one content from another. Null where nobody has looked yet. */
  sha256: string | null
  /** The item that it is the local side of. */
  itemId: string | null
  /** It was there and is not any more; kept until that is settled. */
  isMissing: boolean
  /** Why its content could not be looked at: a sentence, or a code of ASIDE. Then nothing is concluded from it. */
  unreadable: string | null
}

/**
 * Why nothing is known of what was at a place: something that cannot be synced has taken it, or it has become that
 * itself. These codes are kept in `unreadable`; such a row keeps its base, and nothing is deleted in OneDrive for it.
 */
export const ASIDE = {
  link: 'aside-link',
  special: 'aside-special',
  leftOut: 'aside-left-out',
  renamed: 'aside-renamed',
  moved: 'aside-moved',
  emptied: 'aside-emptied',
  illegible: 'aside-illegible',
} as const

const ASIDE_TEXTS: ReadonlyMap<string, string> = new Map([
  [ASIDE.link, 'a link has taken its place here'],
  [ASIDE.special, 'something that is neither a file nor a folder has taken its place here'],
  [ASIDE.leftOut, 'something that is left out has taken its place here'],
  [ASIDE.renamed, 'it has a name here that is left out'],
  [ASIDE.moved, 'it is in a folder here that is left out'],
  [ASIDE.emptied, 'something that was in it is in a folder here that is left out, or has a name that is'],
  [ASIDE.illegible, 'it has a name here that is not valid text'],
])

/** The thing itself is not at its place, and is not known to be gone. */
export function isAside({ unreadable }: Pick<LocalRow, 'unreadable'>): boolean {
  return unreadable !== null && ASIDE_TEXTS.has(unreadable)
}

/** `unreadable` as people are told it. */
export function unreadableText(unreadable: string): string {
  return ASIDE_TEXTS.get(unreadable) ?? unreadable
}

export type RemoteRow = {
  itemId: string
  /** Null for the root. */
  parentId: string | null
  name: string
  /** `package`: a notebook. `shortcut`: to a folder of somebody else. */
  type: FileType | 'package' | 'shortcut'
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
  /** Of the same; null where it was agreed on before anybody kept it. */
  sha256: string | null
  size: number
  /** What OneDrive said of it then: after an upload it may have been rewritten, so its hash can differ from ours. */
  remoteHash: string | null
  remoteSize: number
  eTag: string | null
  cTag: string | null
  /** Another folder has come since (a copy out of a backup): what is other here may be older, and is no edit. */
  isUnsure?: boolean
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

/** A content that was read, as its hashes tell it. */
export type Digests = { hash: string; sha256: string }

/** Whether a content is the one that both sides agreed on. What is not known of it says nothing. */
export function isAgreedContent(
  { hash, sha256 }: Pick<LocalRow, 'hash' | 'sha256'>,
  base: Pick<BaseRow, 'hash' | 'sha256'>,
): boolean {
  return hash === base.hash && (sha256 === null || base.sha256 === null || sha256 === base.sha256)
}

/** Larger ones count as the same by OneDrive's hash: to compare them, a first sync would download what both have. */
export const COMPARED_BYTES_MAX = 1024 * 1024

/**
 * Whether a content here is the one that OneDrive has, as far as anybody can tell without reading that. Two unknown
 * hashes say nothing; two empty files are equal without any. QuickXorHash is the same for contents in which records of
 * 160 bytes have changed places, or have changed in the same way twice: so it says `same` only together with the time
 * of the file, which goes along wherever Tidemark brings one, or where the file is too large to be compared.
 */
export function contentSameness(
  { size, hash, mtimeNs }: Pick<LocalRow, 'size' | 'hash' | 'mtimeNs'>,
  remote: Pick<RemoteRow, 'size' | 'hash' | 'modifiedMs'>,
): 'same' | 'likely' | 'other' {
  if (size === 0 && remote.size === 0) return 'same'
  if (hash === null || hash !== remote.hash || size !== remote.size) return 'other'
  return size > COMPARED_BYTES_MAX || wholeMs(mtimeNs) === remote.modifiedMs ? 'same' : 'likely'
}

/** Rounded: a time that was set in milliseconds may stand a few nanoseconds below them. */
export function wholeMs(timeNs: string): number {
  return Number((BigInt(timeNs) + 500_000n) / 1_000_000n)
}
