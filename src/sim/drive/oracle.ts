/**
 * The truth about who may see what, for tests of access: written apart from what answers the API, and the other way
 * round. There every item asks upwards who is allowed; here every permission is poured down from where it was given.
 */
import type { Item, Permission } from './item.ts'
import type { DriveWorld } from './world.ts'

/** How a user came to an item. */
export type Through = {
  type: Permission['type']
  role: Permission['role']
  /** The address, the domain, or `anyone`. */
  whom: string
  /** The item, folder or shared drive on which it was given. */
  on: string
  isInherited: boolean
  /** By link only: it does not make the item findable. */
  isLinkOnly: boolean
}

export type SeenItem = {
  id: string
  name: string
  mimeType: string
  role: Permission['role']
  through: Through[]
}

export type Sight = {
  /** Ids of files (no folders) that the user may find by search: neither trashed nor by link only. */
  find: string[]
  /** Ids of files that the user may read when the id is known. */
  read: string[]
  /** Both, and folders, with how the user came to them. */
  items: SeenItem[]
}

export type WhoSees = Record<string, Sight>

const ORDER: readonly string[] = ['reader', 'commenter', 'writer', 'fileOrganizer', 'organizer', 'owner']

export function whoSees(world: DriveWorld, nowMs: number): WhoSees {
  const principals = principalsOf(world)
  const seen = new Map<string, Map<Item, Through[]>>([...world.users.keys()].map((name) => [name, new Map()]))
  for (const item of world.items.values()) {
    for (const permission of item.permissions.values()) {
      if (permission.expiresMs !== undefined && permission.expiresMs <= nowMs) continue
      for (const address of holders(permission, principals))
        pour(world, { item, permission, into: seen.get(address)! })
    }
  }
  return Object.fromEntries([...seen].map(([address, items]) => [address, sightOf(address, items)]))
}

type Principals = { byName: Map<string, Set<string>>; everybody: string[] }

/** Whom a name stands for: users by their addresses, groups flattened, domains. */
function principalsOf(world: DriveWorld): Principals {
  const byName = new Map<string, Set<string>>()
  const add = (name: string, address: string): void => {
    byName.set(name, (byName.get(name) ?? new Set()).add(address))
  }
  for (const { address, domain } of world.users.values()) {
    add(`user:${address}`, address)
    add(`domain:${domain}`, address)
  }
  for (const { address } of world.groups.values()) {
    const reached = new Set([address])
    for (const name of reached) {
      for (const member of world.groups.get(name)?.members ?? []) {
        if (world.groups.has(member)) reached.add(member)
        else if (world.users.has(member)) add(`group:${address}`, member)
      }
    }
  }
  return { byName, everybody: [...world.users.keys()] }
}

function holders({ type, email, domain }: Permission, { byName, everybody }: Principals): Iterable<string> {
  return type === 'anyone' ? everybody : (byName.get(`${type}:${email ?? domain}`) ?? [])
}

function pour(
  world: DriveWorld,
  { item, permission, into }: { item: Item; permission: Permission; into: Map<Item, Through[]> },
): void {
  const waiting = [item]
  for (const at of waiting) {
    const isStopped = at !== item && at.isLimited && !['owner', 'organizer'].includes(permission.role)
    if (isStopped) continue
    const isInherited = at !== item
    const isOwnerAbove = isInherited && permission.role === 'owner' && at.owner !== permission.email
    const known = into.get(at) ?? []
    known.push({
      type: permission.type,
      role: isOwnerAbove ? 'writer' : permission.role,
      whom: permission.email ?? permission.domain ?? 'anyone',
      on: item.id,
      isInherited,
      isLinkOnly:
        (permission.type === 'domain' || permission.type === 'anyone') && !permission.isDiscoverable,
    })
    into.set(at, known)
    waiting.push(...world.children(at))
  }
}

function sightOf(address: string, items: Map<Item, Through[]>): Sight {
  const sight: Sight = { find: [], read: [], items: [] }
  for (const [item, through] of items) {
    if (item.isRoot) continue
    const { id, name, mimeType } = item
    const isFolder = mimeType === 'application/vnd.google-apps.folder'
    const role = through.map((one) => one.role).sort((a, b) => ORDER.indexOf(b) - ORDER.indexOf(a))[0]!
    sight.items.push({ id, name, mimeType, role, through })
    if (isFolder) continue
    sight.read.push(id)
    const isListed = through.some(({ isLinkOnly }) => !isLinkOnly) || item.openedBy.has(address)
    if (isListed && !isInTrash(item)) sight.find.push(id)
  }
  sight.find.sort()
  sight.read.sort()
  return sight
}

function isInTrash(item: Item): boolean {
  return item.trashed !== undefined || (item.parent !== undefined && isInTrash(item.parent))
}
