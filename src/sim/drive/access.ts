/**
 * Who may do what with an item, as the service decides it: from the item up to the top, through every folder.
 *
 * Invariants:
 * - What is given on a folder holds for everything below it, however deep, unless a limited-access folder lies between;
 *   owners and organizers pass those.
 * - The owner of a folder may edit what others put into it; only the item's own owner owns it.
 * - An expired permission is as good as none, at once.
 * - A link without discovery lets read whoever knows the id; it is listed for nobody who has not opened it.
 * - Of a limited-access folder, who may see the folder above sees the name and nothing else.
 */
import { type Item, isAtLeast, isFolder, type Permission, type Role, roles, type User } from './item.ts'

/** A permission and where it was given. */
export type Grant = { permission: Permission; on: Item }

export type Access = {
  role: Role
  /** All that let the user in, the item's own first. */
  through: readonly Grant[]
  /** Found by search; otherwise only by its id. */
  isListed: boolean
  /** The name of a limited-access folder, and no more. */
  isMetadataOnly: boolean
}

/** What decides whether a permission is about somebody. */
export type Membership = { isMember(address: string, group: string): boolean }

/** Every permission that holds on the item for anybody, expired ones too. */
export function grantsOn(item: Item): Grant[] {
  const grants: Grant[] = []
  let isCutOff = false
  for (let on: Item | undefined = item; on; on = on.parent) {
    for (const permission of on.permissions.values()) {
      if (!isCutOff || passesLimits(permission)) grants.push({ permission, on })
    }
    isCutOff ||= on.isLimited
  }
  return grants
}

export function passesLimits({ role }: Permission): boolean {
  return role === 'owner' || role === 'organizer'
}

/** Undefined where the item does not exist for this user. */
export function accessOf(
  user: User,
  item: Item,
  { groups, nowMs }: { groups: Membership; nowMs: number },
): Access | undefined {
  const through = grantsOn(item).filter(({ permission }) => isFor(permission, { user, groups, nowMs }))
  if (through.length > 0) {
    return {
      role: highestRole(through, item, user),
      through,
      isListed: item.openedBy.has(user.address) || through.some(({ permission }) => isFindable(permission)),
      isMetadataOnly: false,
    }
  }
  if (!item.isLimited || !isFolder(item) || !item.parent) return undefined
  const above = accessOf(user, item.parent, { groups, nowMs })
  if (!above || above.isMetadataOnly) return undefined
  return { role: 'reader', through: above.through, isListed: above.isListed, isMetadataOnly: true }
}

export function isExpired({ expiresMs }: Permission, nowMs: number): boolean {
  return expiresMs !== undefined && expiresMs <= nowMs
}

function isFor(
  permission: Permission,
  { user, groups, nowMs }: { user: User; groups: Membership; nowMs: number },
): boolean {
  if (isExpired(permission, nowMs)) return false
  switch (permission.type) {
    case 'user':
      return permission.email === user.address
    case 'group':
      return groups.isMember(user.address, permission.email!)
    case 'domain':
      return permission.domain === user.domain
    case 'anyone':
      return true
  }
}

export function isFindable({ type, isDiscoverable }: Permission): boolean {
  return type === 'user' || type === 'group' || isDiscoverable === true
}

/** The role that a permission gives below the folder on which it was given. */
export function roleOn(item: Item, { permission, on }: Grant): Role {
  return permission.role === 'owner' && on !== item && item.owner !== permission.email
    ? 'writer'
    : permission.role
}

function highestRole(through: readonly Grant[], item: Item, user: User): Role {
  if (item.owner === user.address) return 'owner'
  let highest = 0
  for (const grant of through) highest = Math.max(highest, roles.indexOf(roleOn(item, grant)))
  return roles[highest]!
}

/** Whether the role allows to share the item, and so to see with whom it is shared. */
export function canShare(item: Item, { role, isMetadataOnly }: Access): boolean {
  if (isMetadataOnly) return false
  return item.writersCanShare || item.driveId !== undefined ? isAtLeast(role, 'writer') : role === 'owner'
}
