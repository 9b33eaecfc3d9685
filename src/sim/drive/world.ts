/**
 * The world of the simulated Drive, without HTTP: people and groups, My Drives and shared drives, what is in them, and
 * the log of changes of each user and each shared drive. Whoever calls it may do everything; the API asks first.
 *
 * Invariants:
 * - Each item has one parent, or none; there are no cycles.
 * - What is in My Drive has an owner and no drive; what is in a shared drive has a drive and no owner.
 * - A change is told to those whose listing of the item it concerns, before or after. What a folder, a group, a
 *   membership or the time changes for the items below it is told to nobody: they did not change.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { Random } from '../../base/random.ts'
import { type Access, accessOf, grantsOn, isExpired, isFindable } from './access.ts'
import { ChangeLog } from './change-log.ts'
import { Content, type ContentInput } from './content.ts'
import {
  type GranteeType,
  type Group,
  type Item,
  isFolder,
  mimeTypes,
  type Permission,
  type Role,
  type User,
} from './item.ts'

export type DriveMember = { email: string; role: Role }

export type NewItem = {
  name: string
  /** The folder, or the id of a shared drive; the owner's My Drive otherwise. */
  parent?: string
  /** Who makes it, and owns it unless it is in a shared drive; the owner of the folder otherwise. */
  by?: string
  mimeType?: string
  content?: ContentInput
  /** Of a shortcut. */
  target?: string
  createdMs?: number
  modifiedMs?: number
  description?: string
  resourceKey?: string
  properties?: Record<string, string>
  /** One that `newId` gave. */
  id?: string
}

export type NewPermission = {
  type: GranteeType
  role: Role
  email?: string
  domain?: string
  isDiscoverable?: boolean
  expiresMs?: number
}

export type WorldOptions = {
  clock: Clock
  random: Random
  /** Whether what happens to a folder (trash, move) is told of all that is below it, too. */
  tellsBelow?: boolean
}

const USERS_MAX = 20_000
const ITEMS_MAX = 5_000_000
const ID_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

export class DriveWorld {
  readonly users = new Map<string, User>()
  readonly groups = new Map<string, Group>()
  readonly items = new Map<string, Item>()
  /** The roots of the shared drives, by their ids. */
  readonly drives = new Map<string, Item>()
  tellsBelow: boolean
  /** Grows with every change: what was computed before it may be wrong. */
  revision = 0
  #isQuiet = false
  readonly #clock: Clock
  readonly #random: Random
  readonly #children = new Map<string, Set<Item>>()
  readonly #userLogs = new Map<string, ChangeLog>()
  readonly #driveLogs = new Map<string, ChangeLog>()

  constructor({ clock, random, tellsBelow = false }: WorldOptions) {
    this.#clock = clock
    this.#random = random
    this.tellsBelow = tellsBelow
  }

  /** What happens meanwhile is told to nobody: a world that is being made has no history. */
  quietly(run: () => void): void {
    this.#isQuiet = true
    try {
      run()
    } finally {
      this.#isQuiet = false
    }
  }

  // People.

  addUser(input: string | { address: string; name?: string }): User {
    const { address, name = personName(address) } = typeof input === 'string' ? { address: input } : input
    if (this.users.has(address)) throw new UsageError(`There are two users ${address}.`)
    if (this.users.size >= USERS_MAX) throw new UsageError(`There can be ${USERS_MAX} users at most.`)
    const user: User = {
      address,
      name,
      domain: domainOf(address),
      permissionId: digitsOf(address),
      rootId: '',
    }
    this.users.set(address, user)
    this.#userLogs.set(address, new ChangeLog(10_000 + this.users.size * 1_000_000))
    const root = this.#add({
      id: this.newId('0A', 17),
      name: 'My Drive',
      mimeType: mimeTypes.folder,
      by: address,
    })
    root.isRoot = true
    root.owner = address
    give(root, { type: 'user', role: 'owner', email: address })
    user.rootId = root.id
    return user
  }

  addGroup(input: { address: string; name?: string; members?: readonly string[] }): Group {
    const { address, name = personName(address), members = [] } = input
    if (this.groups.has(address)) throw new UsageError(`There are two groups ${address}.`)
    const group: Group = { address, name, members: new Set() }
    this.groups.set(address, group)
    this.setMembers(address, members)
    return group
  }

  /** Nobody is told of the documents; who comes into a shared drive or leaves it is told of the drive. */
  setMembers(address: string, members: readonly string[]): void {
    const group = this.groups.get(address)
    if (!group) throw unknown('group', address, this.groups.keys())
    this.#tellMembers(() => {
      group.members = new Set(members)
    })
  }

  isMember(address: string, group: string, seen: ReadonlySet<string> = new Set()): boolean {
    const members = this.groups.get(group)?.members
    if (!members || seen.has(group)) return false
    if (members.has(address)) return true
    const beyond = new Set([...seen, group])
    return [...members].some((one) => this.groups.has(one) && this.isMember(address, one, beyond))
  }

  user(address: string): User {
    const user = this.users.get(address)
    if (user) return user
    throw unknown('user', address, this.users.keys())
  }

  // Looking.

  item(id: string): Item {
    const item = this.items.get(id)
    if (item) return item
    throw new TidemarkError(`There is no item ${id}.`, { kind: 'permanent', code: 'sim-not-found' })
  }

  drive(id: string): Item {
    const drive = this.drives.get(id)
    if (drive) return drive
    throw unknown('shared drive', id, this.drives.keys())
  }

  children(item: Item): ReadonlySet<Item> {
    return this.#children.get(item.id) ?? NO_CHILDREN
  }

  *below(item: Item): Iterable<Item> {
    for (const child of this.children(item)) {
      yield child
      yield* this.below(child)
    }
  }

  access(user: User, item: Item): Access | undefined {
    return accessOf(user, item, { groups: this, nowMs: this.#clock.now() })
  }

  log(of: { user: string } | { drive: string }): ChangeLog {
    const log = 'user' in of ? this.#userLogs.get(of.user) : this.#driveLogs.get(of.drive)
    if (!log) throw new UsageError('There is no such log of changes.')
    return log
  }

  newId(prefix = '1', length = 32): string {
    let id = prefix
    for (let at = 0; at < length; at++) id += ID_CHARACTERS[Math.floor(this.#random() * 64)]
    return id
  }

  // Making.

  addDrive(input: { name: string; members?: readonly DriveMember[]; id?: string }): Item {
    const by = input.members?.[0]?.email ?? ''
    const root = this.#add({
      id: input.id ?? this.newId('0A', 17),
      name: input.name,
      mimeType: mimeTypes.folder,
      by,
    })
    root.isRoot = true
    root.driveId = root.id
    this.drives.set(root.id, root)
    this.#driveLogs.set(root.id, new ChangeLog(500 + this.drives.size * 1_000))
    for (const { email, role } of input.members ?? [])
      this.share(root.id, { type: this.#typeOf(email), role, email })
    return root
  }

  /** Not empty: refused, as the service does it. */
  deleteDrive(id: string): void {
    const root = this.drive(id)
    if (this.children(root).size > 0) throw new UsageError('The shared drive is not empty.')
    this.#tellMembers(() => {
      this.drives.delete(id)
      root.isDeleted = true
      root.permissions.clear()
      this.items.delete(id)
    }, [id])
  }

  renameDrive(id: string, name: string): void {
    this.drive(id).name = name
    this.#tellDrive(id, this.#membersOf(this.drive(id)))
  }

  createFolder(input: Omit<NewItem, 'mimeType' | 'content' | 'target'>): Item {
    return this.create({ ...input, mimeType: mimeTypes.folder })
  }

  create(input: NewItem): Item {
    const parent = this.item(input.parent ?? this.user(input.by ?? '').rootId)
    if (!isFolder(parent)) throw new UsageError(`${parent.name} is not a folder.`)
    const by = input.by ?? parent.owner ?? this.#membersOf(parent)[0] ?? ''
    const item = this.#add({ ...input, by, parent })
    if (parent.driveId !== undefined) item.driveId = parent.driveId
    else {
      item.owner = by
      give(item, { type: 'user', role: 'owner', email: by })
    }
    this.#tell(item, this.listedFor(item))
    return item
  }

  // Changing.

  edit(
    id: string,
    content: ContentInput,
    options: { by?: string; modifiedMs?: number; mimeType?: string } = {},
  ): Item {
    const item = this.item(id)
    return this.#change(item, options.by, () => {
      item.content = new Content(content)
      item.revision += 1
      item.modifiedMs = options.modifiedMs ?? this.#clock.now()
      if (options.mimeType !== undefined) item.mimeType = options.mimeType
    })
  }

  /** The text of the document stays as it is, and so does the time of its last change. */
  comment(id: string, text: string, by?: string): Item {
    return this.touch(id, ({ comments }) => void comments.push(text), by)
  }

  rename(id: string, name: string, by?: string): Item {
    const item = this.item(id)
    return this.#change(item, by, () => {
      item.name = name
      item.modifiedMs = this.#clock.now()
    })
  }

  /** Anything that only the item itself shows. */
  touch(id: string, change: (item: Item) => void, by?: string): Item {
    const item = this.item(id)
    return this.#change(item, by, () => change(item))
  }

  move(id: string, parentId: string, by?: string): Item {
    const item = this.item(id)
    const parent = this.item(parentId)
    if (!isFolder(parent)) throw new UsageError(`${parent.name} is not a folder.`)
    checkNoRoot(item)
    for (let at: Item | undefined = parent; at; at = at.parent) {
      if (at === item) throw new UsageError('A folder cannot be put into itself.')
    }
    return this.#changeTree(item, by, () => {
      this.#place(item, parent)
      this.#settle(item, parent, by)
    })
  }

  trash(id: string, by?: string): Item {
    const item = this.item(id)
    checkNoRoot(item)
    return this.#changeTree(item, by, () => {
      item.trashed = { atMs: this.#clock.now(), by: by ?? item.owner ?? '' }
    })
  }

  untrash(id: string, by?: string): Item {
    const item = this.item(id)
    return this.#changeTree(item, by, () => {
      item.trashed = undefined
    })
  }

  /** For ever, with all below it; what others own there goes to their own My Drive. */
  delete(id: string): void {
    const item = this.item(id)
    checkNoRoot(item)
    for (const child of [...this.children(item)]) {
      if (child.owner === item.owner) this.delete(child.id)
      else this.move(child.id, this.user(child.owner!).rootId)
    }
    const told = this.listedFor(item)
    this.#place(item, undefined)
    item.isDeleted = true
    this.items.delete(id)
    this.#tell(item, told)
  }

  emptyTrash(of: { user: string } | { drive: string }): string[] {
    const gone: string[] = []
    for (const item of [...this.items.values()]) {
      const isHere = 'user' in of ? item.owner === of.user : item.driveId === of.drive
      if (!item.trashed || !isHere || item.isDeleted) continue
      gone.push(item.id)
      this.delete(item.id)
    }
    return gone
  }

  // Sharing.

  share(id: string, input: NewPermission, by?: string): Permission {
    const item = this.item(id)
    if (input.role === 'owner') return this.#transfer(item, input.email ?? '')
    let made: Permission | undefined
    this.#changeSharing(item, () => {
      made = give(item, input)
      const shared = { atMs: this.#clock.now(), by: by ?? item.owner ?? '' }
      for (const address of this.#people(made)) {
        if (!item.sharedAt.has(address)) item.sharedAt.set(address, shared)
      }
    })
    return made!
  }

  /** By the permission's id, or whose it is: an address, a domain, or `anyone`. */
  unshare(id: string, whose: string): void {
    const item = this.item(id)
    const found = [...item.permissions.values()].find(
      (one) => one.id === whose || one.email === whose || one.domain === whose || one.type === whose,
    )
    if (!found) throw unknown('permission', whose, item.permissions.keys())
    if (found.role === 'owner') throw new UsageError('The owner cannot be unshared.')
    this.#changeSharing(item, () => item.permissions.delete(found.id))
  }

  changePermission(
    id: string,
    permissionId: string,
    change: { role?: Role; expiresMs?: number | undefined },
  ): Permission {
    const item = this.item(id)
    const permission = item.permissions.get(permissionId)
    if (!permission) throw unknown('permission', permissionId, item.permissions.keys())
    if (change.role === 'owner') return this.#transfer(item, permission.email ?? '')
    this.#changeSharing(item, () => {
      if (change.role !== undefined) permission.role = change.role
      if ('expiresMs' in change) {
        if (change.expiresMs === undefined) delete permission.expiresMs
        else permission.expiresMs = change.expiresMs
      }
    })
    return permission
  }

  /** Whether a folder keeps out those who have access only through the folders above it. */
  limit(id: string, isLimited: boolean, by?: string): Item {
    const item = this.item(id)
    if (!isFolder(item) || item.isRoot) throw new UsageError('Only folders have limited access.')
    return this.#change(item, by, () => {
      item.isLimited = isLimited
    })
  }

  /** The user looked at it: from now on it is in their listing, also where they came by a link. */
  open(address: string, id: string): void {
    const item = this.item(id)
    item.openedBy.set(this.user(address).address, this.#clock.now())
    this.revision += 1
    if (this.access(this.user(address), item)) this.log({ user: address }).add('file', id, this.#clock.now())
  }

  /**
   * In whose own log the item's changes are: those who list it otherwise than as members of its shared drive, and
   * those who were told of it before and still see it.
   */
  listedFor(item: Item): string[] {
    if (this.#isQuiet) return []
    const nowMs = this.#clock.now()
    const told = new Set<string>()
    for (const { permission, on } of grantsOn(item)) {
      if (isExpired(permission, nowMs) || (on.isRoot && item.driveId !== undefined)) continue
      if (isFindable(permission)) for (const address of this.#people(permission)) told.add(address)
    }
    for (const [address, user] of this.users) {
      if (told.has(address)) continue
      const isKnown = item.openedBy.has(address) || this.log({ user: address }).has(item.id)
      if (isKnown && this.access(user, item)) told.add(address)
    }
    return [...told]
  }

  /** Users whom a permission for a user or a group names. */
  #people({ type, email = '' }: Permission): string[] {
    if (type === 'user') return this.users.has(email) ? [email] : []
    if (type === 'group') return [...this.users.keys()].filter((address) => this.isMember(address, email))
    return []
  }

  #membersOf(root: Item): string[] {
    const nowMs = this.#clock.now()
    const open = [...root.permissions.values()].filter((one) => !isExpired(one, nowMs))
    return [...new Set(open.flatMap((one) => this.#people(one)))]
  }

  #add(input: Omit<NewItem, 'parent' | 'by'> & { by: string; parent?: Item }): Item {
    if (this.items.size >= ITEMS_MAX) throw new UsageError(`There can be ${ITEMS_MAX} items at most.`)
    const nowMs = this.#clock.now()
    const createdMs = input.createdMs ?? input.modifiedMs ?? nowMs
    const item: Item = {
      id: input.id ?? this.newId(),
      name: input.name,
      mimeType: input.mimeType ?? 'text/plain',
      parent: undefined,
      owner: undefined,
      driveId: undefined,
      isRoot: false,
      permissions: new Map(),
      isLimited: false,
      content: input.content === undefined ? undefined : new Content(input.content),
      target: input.target === undefined ? undefined : this.item(input.target),
      createdMs,
      modifiedMs: input.modifiedMs ?? createdMs,
      modifiedBy: input.by,
      version: 1,
      revision: 1,
      trashed: undefined,
      isDeleted: false,
      description: input.description,
      properties: { ...input.properties },
      starredBy: new Set(),
      openedBy: new Map(),
      sharedAt: new Map(),
      resourceKey: input.resourceKey,
      writersCanShare: true,
      copyNeedsWriter: false,
      comments: [],
    }
    if (this.items.has(item.id)) throw new UsageError(`There is an item ${item.id} already.`)
    if (!isFolder(item) && !item.target) item.content ??= new Content('')
    this.items.set(item.id, item)
    if (input.parent) this.#place(item, input.parent)
    this.revision += 1
    return item
  }

  #place(item: Item, parent: Item | undefined): void {
    if (item.parent) this.#children.get(item.parent.id)?.delete(item)
    item.parent = parent
    if (!parent) return
    const siblings = this.#children.get(parent.id) ?? new Set()
    siblings.add(item)
    this.#children.set(parent.id, siblings)
  }

  /** Whose it is after a move: into a shared drive, out of one, or neither. */
  #settle(item: Item, parent: Item, by: string | undefined): void {
    if (item.driveId === parent.driveId) return
    for (const one of [item, ...this.below(item)]) {
      one.driveId = parent.driveId
      for (const { id, role } of [...one.permissions.values()])
        if (role === 'owner') one.permissions.delete(id)
      one.owner = parent.driveId === undefined ? (by ?? parent.owner) : undefined
      if (one.owner !== undefined) give(one, { type: 'user', role: 'owner', email: one.owner })
    }
  }

  #transfer(item: Item, email: string): Permission {
    if (item.driveId !== undefined) throw new UsageError('What is in a shared drive has no owner.')
    this.user(email)
    let made: Permission | undefined
    this.#changeSharing(item, () => {
      const before = item.owner
      if (before !== undefined) give(item, { type: 'user', role: 'writer', email: before })
      made = give(item, { type: 'user', role: 'owner', email })
      item.owner = email
    })
    return made!
  }

  #change(item: Item, by: string | undefined, run: () => void): Item {
    const before = this.listedFor(item)
    run()
    item.version += 1
    if (by !== undefined) item.modifiedBy = by
    this.#tell(item, [...before, ...this.listedFor(item)])
    return item
  }

  /** What happens to a folder concerns all below it; whether they are told depends on the service's mood. */
  #changeTree(item: Item, by: string | undefined, run: () => void): Item {
    const tree = this.tellsBelow ? [...this.below(item)] : []
    const before = tree.map((one) => [one, this.listedFor(one), one.driveId] as const)
    const from = item.driveId
    this.#change(item, by, run)
    if (from !== undefined && from !== item.driveId)
      this.log({ drive: from }).add('file', item.id, this.#clock.now())
    for (const [one, told, drive] of before) {
      this.#tell(one, [...told, ...this.listedFor(one)])
      if (drive !== undefined && drive !== one.driveId)
        this.log({ drive }).add('file', one.id, this.#clock.now())
    }
    return item
  }

  #changeSharing(item: Item, run: () => void): void {
    if (item.isRoot && item.driveId !== undefined) {
      this.#tellMembers(run, [item.id])
      return
    }
    this.#change(item, undefined, run)
  }

  /** Around what may bring people into shared drives or out of them. */
  #tellMembers(run: () => void, driveIds: readonly string[] = [...this.drives.keys()]): void {
    const before = driveIds.map((id) => new Set(this.#membersOf(this.drive(id))))
    run()
    this.revision += 1
    for (const [at, id] of driveIds.entries()) {
      const root = this.drives.get(id)
      const after = new Set(root ? this.#membersOf(root) : [])
      const told = [...before[at]!.symmetricDifference(after)]
      if (told.length > 0) this.#tellDrive(id, told)
    }
  }

  #tellDrive(id: string, told: readonly string[]): void {
    this.revision += 1
    if (this.#isQuiet) return
    for (const user of told) this.log({ user }).add('drive', id, this.#clock.now())
  }

  #tell(item: Item, told: Iterable<string>): void {
    this.revision += 1
    if (this.#isQuiet) return
    const nowMs = this.#clock.now()
    for (const user of new Set(told)) this.#userLogs.get(user)?.add('file', item.id, nowMs)
    if (item.driveId !== undefined) this.#driveLogs.get(item.driveId)?.add('file', item.id, nowMs)
  }

  #typeOf(email: string): 'user' | 'group' {
    return this.groups.has(email) ? 'group' : 'user'
  }
}

function checkNoRoot({ isRoot, name }: Item): void {
  if (isRoot) throw new UsageError(`${name} is a drive itself, and stays where it is.`)
}

const NO_CHILDREN: ReadonlySet<Item> = new Set()

/** The same grantee has one permission on an item: the new one replaces it. */
function give(item: Item, input: NewPermission): Permission {
  const permission: Permission = { id: permissionId(input), type: input.type, role: input.role }
  if (input.email !== undefined) permission.email = input.email
  if (input.domain !== undefined) permission.domain = input.domain
  if (input.type === 'domain' || input.type === 'anyone')
    permission.isDiscoverable = input.isDiscoverable ?? false
  if (input.expiresMs !== undefined) permission.expiresMs = input.expiresMs
  item.permissions.set(permission.id, permission)
  return permission
}

function permissionId({ type, email = '', domain = '', isDiscoverable }: NewPermission): string {
  if (type === 'anyone') return isDiscoverable ? 'anyone' : 'anyoneWithLink'
  if (type === 'domain') return `${digitsOf(domain).slice(0, 18)}${isDiscoverable ? 'k' : 'l'}`
  return digitsOf(email)
}

/** Twenty digits, as those of a Google account. */
function digitsOf(text: string): string {
  const hash = createHash('sha256').update(text).digest()
  return `1${String(hash.readBigUInt64BE() % 10n ** 19n).padStart(19, '0')}`
}

export function domainOf(address: string): string {
  return address.slice(address.indexOf('@') + 1)
}

function personName(address: string): string {
  const words = address.slice(0, address.indexOf('@')).split(/[._-]+/)
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join(' ')
}

function unknown(what: string, name: string, known: Iterable<string>): TidemarkError {
  const some = [...known].slice(0, 10)
  return new TidemarkError(`There is no ${what} ${name || '(none given)'}.`, {
    kind: 'permanent',
    code: 'sim-not-found',
    hint: `There are ${some.join(', ') || 'none'}.`,
  })
}
