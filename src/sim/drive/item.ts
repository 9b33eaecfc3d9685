/** What a Drive holds: files, folders, native documents and shortcuts, people, groups and permissions. */
import type { Content } from './content.ts'

export const mimeTypes = {
  folder: 'application/vnd.google-apps.folder',
  document: 'application/vnd.google-apps.document',
  spreadsheet: 'application/vnd.google-apps.spreadsheet',
  presentation: 'application/vnd.google-apps.presentation',
  shortcut: 'application/vnd.google-apps.shortcut',
} as const

const NATIVE_PREFIX = 'application/vnd.google-apps.'

/** From the least to the most; `organizer` and `fileOrganizer` are of shared drives, `owner` of My Drive. */
export const roles = ['reader', 'commenter', 'writer', 'fileOrganizer', 'organizer', 'owner'] as const
export type Role = (typeof roles)[number]

export type GranteeType = 'user' | 'group' | 'domain' | 'anyone'

export type Permission = {
  id: string
  type: GranteeType
  role: Role
  /** Of a user or a group. */
  email?: string
  domain?: string
  /** Of a domain or of anyone: whether it is found by search, or only by who has the link. */
  isDiscoverable?: boolean
  expiresMs?: number
}

export type User = { address: string; name: string; domain: string; permissionId: string; rootId: string }

export type Group = {
  address: string
  name: string
  /** Addresses of users and of other groups. */
  members: Set<string>
}

export type Item = {
  readonly id: string
  name: string
  mimeType: string
  /** Nothing above it: a My Drive, a shared drive, or an item whose folder went. */
  parent: Item | undefined
  /** Of what is in My Drive. */
  owner: string | undefined
  /** Of what is in a shared drive; the drive's own root has its id. */
  driveId: string | undefined
  isRoot: boolean
  /** Given on the item itself; what comes from above is not written down. */
  permissions: Map<string, Permission>
  /** `inheritedPermissionsDisabled` */
  isLimited: boolean
  /** Binary files and native documents. */
  content: Content | undefined
  target: Item | undefined
  createdMs: number
  modifiedMs: number
  modifiedBy: string
  version: number
  revision: number
  /** Trashed itself; what is below a trashed folder is trashed with it. */
  trashed: { atMs: number; by: string } | undefined
  isDeleted: boolean
  description: string | undefined
  properties: Record<string, string>
  starredBy: Set<string>
  /** Who opened it, and when. */
  openedBy: Map<string, number>
  sharedAt: Map<string, { atMs: number; by: string }>
  /** Whoever comes by link only must name it. */
  resourceKey: string | undefined
  writersCanShare: boolean
  copyNeedsWriter: boolean
  /** Of a native document, in their order; not for those who may only read it. */
  comments: string[]
}

export function isFolder({ mimeType }: Pick<Item, 'mimeType'>): boolean {
  return mimeType === mimeTypes.folder
}

/** Has no bytes of its own: it is exported, not downloaded. */
export function isNative({ mimeType }: Pick<Item, 'mimeType'>): boolean {
  return mimeType.startsWith(NATIVE_PREFIX)
}

export function isTrashed(item: Item): boolean {
  for (let at: Item | undefined = item; at; at = at.parent) if (at.trashed) return true
  return false
}

export function isAtLeast(role: Role, least: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(least)
}
