/**
 * One drive: items by id, folders by name, what was deleted, what changed and in which order. No HTTP, no
 * files, no clock of its own.
 *
 * Invariants:
 * - A folder has no two children whose names differ only in case or in composition.
 * - Every change gives the item a new eTag and a place at the end of the change log; a change of content a new
 *   cTag. The cTag of a folder changes with everything under it.
 * - What is deleted goes to the recycle bin with all that is under it, and comes back from there as it was,
 *   with the same ids. What is purged from there is only in the dump.
 * - Content that was replaced is a version of its file.
 */
import type { Random } from '../../base/random.ts'
import { ChangeLog, type DeltaPage, type DeltaRequest } from './change-log.ts'
import { type Content, type ContentInput, ContentStore } from './content.ts'
import { DriveFault } from './drive-fault.ts'
import {
  ancestorsOf,
  type DriveType,
  type Item,
  type ItemKind,
  type ItemVersion,
  isWithin,
  itemPath,
  sizeOf,
  subtree,
  versionId,
} from './item.ts'

export type ConflictBehavior = 'fail' | 'replace' | 'rename'

/** What the client says about the file on its own disk. */
export type FileTimes = { createdMs?: number; modifiedMs?: number }

export type DriveOptions = {
  id: string
  type: DriveType
  owner: string
  now: () => number
  random: Random
  quotaBytes?: number
  keepBytesMax?: number
}

export type BinEntry = { item: Item; path: string; deletedMs: number }

const QUOTA_BYTES_DEFAULT = 5 * 2 ** 40
const RENAMES_MAX = 10_000
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export class Drive {
  readonly id: string
  readonly type: DriveType
  readonly owner: string
  readonly contents: ContentStore
  readonly root: Item
  readonly recycleBin = new Map<string, BinEntry>()
  /** Deleted for good; an oracle tells by it what the user wanted gone. */
  readonly purged: BinEntry[] = []
  quotaBytes: number
  /** Of upload sessions that nobody ended. */
  reservedBytes = 0
  onChange: (item: Item) => void = () => {}
  readonly #now: () => number
  readonly #random: Random
  readonly #items = new Map<string, Item>()
  readonly #log = new ChangeLog()
  #itemsMade = 0
  #binBytes = 0

  constructor(options: DriveOptions) {
    this.id = options.id
    this.type = options.type
    this.owner = options.owner
    this.quotaBytes = options.quotaBytes ?? QUOTA_BYTES_DEFAULT
    this.contents = new ContentStore(
      options.keepBytesMax === undefined ? {} : { keepBytesMax: options.keepBytesMax },
    )
    this.#now = options.now
    this.#random = options.random
    this.root = this.#make({ name: 'root', parent: undefined, kind: 'folder' })
    this.#log.note(this.root, this.#now())
  }

  get seq(): number {
    return this.#log.seq
  }

  get usedBytes(): number {
    return this.root.bytes + this.#binBytes + this.reservedBytes
  }

  get binBytes(): number {
    return this.#binBytes
  }

  get nowMs(): number {
    return this.#now()
  }

  /** Not those that were deleted. */
  get(id: string): Item | undefined {
    const item = this.#items.get(id)
    return item?.deleted === 'no' ? item : undefined
  }

  /** Also what was deleted. */
  ever(id: string): Item | undefined {
    return this.#items.get(id)
  }

  items(): Iterable<Item> {
    return subtree(this.root)
  }

  child(folder: Item, name: string): Item | undefined {
    return folder.children?.get(nameKey(name))
  }

  at(path: string | readonly string[], from: Item = this.root): Item | undefined {
    let item: Item | undefined = from
    for (const name of typeof path === 'string' ? path.split('/') : path) {
      if (name !== '') item = item && this.child(item, name)
    }
    return item
  }

  createFolder(
    parent: Item,
    name: string,
    {
      conflict = 'fail',
      times = {},
      kind = 'folder' as ItemKind,
    }: { conflict?: ConflictBehavior; times?: FileTimes; kind?: ItemKind } = {},
  ): { item: Item; isNew: boolean } {
    this.checkPlace(parent, name)
    const there = this.child(parent, name)
    if (there?.kind === 'folder' && conflict === 'replace') return { item: there, isNew: false }
    if (there && conflict !== 'rename') throw clash(name)
    const free = there ? this.#freeName(parent, name) : name
    const item = this.#make({ name: free, parent, kind, times })
    this.#attach(item, parent)
    this.#changed(item)
    return { item, isNew: true }
  }

  /** A new file, or new content of the one that is there. */
  putFile(input: {
    parent: Item
    name: string
    content: Content
    conflict?: ConflictBehavior
    times?: FileTimes
  }): { item: Item; isNew: boolean } {
    const { parent, name, content, conflict = 'replace', times = {} } = input
    this.checkPlace(parent, name)
    const there = this.child(parent, name)
    if (there && conflict === 'replace') {
      if (there.kind !== 'file') throw clash(name)
      return { item: this.setContent(there, content, times), isNew: false }
    }
    if (there && conflict === 'fail') throw clash(name)
    this.checkQuota(content.size)
    const free = there ? this.#freeName(parent, name) : name
    const item = this.#make({ name: free, parent, kind: 'file', times })
    item.content = content
    this.#attach(item, parent)
    this.#changed(item)
    return { item, isNew: true }
  }

  setContent(item: Item, content: Content, times: FileTimes = {}): Item {
    if (item.kind !== 'file') throw new DriveFault('invalidRequest', 'The item is not a file.')
    const before = item.content!
    this.checkQuota(content.size - before.size)
    this.#keepVersion(item)
    item.content = content
    item.cVersion += 1
    const nowMs = this.#now()
    item.fsModifiedMs = times.modifiedMs ?? nowMs
    if (times.createdMs !== undefined) item.fsCreatedMs = times.createdMs
    this.#addBytes(item.parent, content.size - before.size)
    this.#changed(item)
    return item
  }

  /** An older one; what the file holds now stays. */
  deleteVersion(item: Item, id: string): void {
    if (id === versionId(item)) {
      throw new DriveFault('invalidRequest', 'The current version of a file cannot be deleted.')
    }
    item.versions.splice(item.versions.indexOf(this.version(item, id)), 1)
  }

  version(item: Item, id: string): ItemVersion {
    const found = item.versions.find((one) => one.id === id)
    if (!found) throw new DriveFault('itemNotFound', 'The version could not be found.')
    return found
  }

  update(
    item: Item,
    change: { name?: string; parent?: Item; times?: FileTimes; conflict?: ConflictBehavior },
  ): Item {
    const { name = item.name, parent = item.parent, times, conflict = 'fail' } = change
    if (name !== item.name || parent !== item.parent) this.#moveTo(item, { name, parent, conflict })
    if (times) this.#setTimes(item, times)
    this.#changed(item)
    return item
  }

  delete(item: Item): void {
    if (!item.parent) throw new DriveFault('accessDenied', 'The root folder cannot be deleted.')
    const path = itemPath(item)
    this.#detach(item)
    this.#binBytes += sizeOf(item)
    for (const one of subtree(item)) one.deleted = one === item ? 'directly' : 'with-parent'
    this.recycleBin.set(item.id, { item, path, deletedMs: this.#now() })
    this.#changed(item)
  }

  /** Back from the recycle bin, to where it was or to another folder. */
  restore(id: string, to: { parent?: Item; name?: string; conflict?: ConflictBehavior } = {}): Item {
    const entry = this.recycleBin.get(id)
    if (!entry) throw new DriveFault('itemNotFound', 'The item is not in the recycle bin.')
    const { item } = entry
    const parent = to.parent ?? (item.parent?.deleted === 'no' ? item.parent : this.root)
    const wanted = to.name ?? item.name
    const isTaken = this.child(parent, wanted) !== undefined
    if (isTaken && to.conflict !== 'rename') throw clash(wanted)
    const name = isTaken ? this.#freeName(parent, wanted) : wanted
    this.checkPlace(parent, name)
    this.recycleBin.delete(id)
    this.#binBytes -= sizeOf(item)
    item.name = name
    item.key = nameKey(name)
    this.#attach(item, parent)
    // Readers have dropped all of it with the folder, so all of it is news.
    for (const one of subtree(item)) {
      one.deleted = 'no'
      this.#changed(one)
    }
    return item
  }

  /** For good: of one entry, or of all. */
  purge(id?: string): number {
    const entries = id === undefined ? [...this.recycleBin.values()] : [this.recycleBin.get(id)]
    for (const entry of entries) {
      if (!entry) throw new DriveFault('itemNotFound', 'The item is not in the recycle bin.')
      this.recycleBin.delete(entry.item.id)
      this.#binBytes -= sizeOf(entry.item)
      this.purged.push(entry)
    }
    return entries.length
  }

  /** With all that is under it; new ids, no versions. */
  copy(item: Item, to: { parent: Item; name: string; conflict?: ConflictBehavior }): Item {
    this.checkQuota(sizeOf(item))
    return this.#paste(outline(item), to)
  }

  #paste({ item, children }: Outline, to: { parent: Item; name: string; conflict?: ConflictBehavior }): Item {
    if (item.kind === 'file') {
      const times = { createdMs: item.fsCreatedMs, modifiedMs: item.fsModifiedMs }
      return this.putFile({ conflict: 'fail', ...to, content: item.content!, times }).item
    }
    const made = this.createFolder(to.parent, to.name, { conflict: to.conflict ?? 'fail', kind: item.kind })
    for (const child of children) this.#paste(child, { parent: made.item, name: child.item.name })
    return made.item
  }

  delta(request: DeltaRequest): DeltaPage {
    return this.#log.page(request)
  }

  addContent(input: ContentInput): Content {
    return this.contents.add(input)
  }

  checkQuota(bytes: number): void {
    if (bytes > 0 && this.usedBytes + bytes > this.quotaBytes) {
      throw new DriveFault('quotaLimitReached', 'Insufficient space available.')
    }
  }

  #moveTo(item: Item, to: { name: string; parent: Item | undefined; conflict: ConflictBehavior }): void {
    const { name, parent, conflict } = to
    if (!item.parent || !parent) throw new DriveFault('accessDenied', 'The root folder cannot be changed.')
    this.checkPlace(parent, name)
    if (isWithin(parent, item)) {
      throw new DriveFault('invalidRequest', 'An item cannot be moved into itself or under itself.')
    }
    const there = this.child(parent, name)
    const isTaken = there !== undefined && there !== item
    // A folder cannot make room for what is in it: that would be deleted with it.
    const isFixed = isTaken && (there.kind !== item.kind || isWithin(item, there))
    if (isTaken && (conflict === 'fail' || (conflict === 'replace' && isFixed))) throw clash(name)
    const free = isTaken && conflict === 'rename' ? this.#freeName(parent, name) : name
    if (isTaken && conflict === 'replace') this.delete(there)
    const before = ancestorsOf(item)
    this.#detach(item)
    if (free !== item.name) item.nameBefore = item.name
    item.name = free
    item.key = nameKey(free)
    this.#attach(item, parent)
    this.#crossBorders(item, before)
  }

  /** To those who see a shared folder alone, what leaves it is gone, and all that comes into it is news. */
  #crossBorders(item: Item, before: readonly Item[]): void {
    const now = ancestorsOf(item)
    item.left ??= new Set()
    for (const one of before) item.left.add(one)
    for (const one of now) item.left.delete(one)
    if (!now.some((one) => one.isShared && !before.includes(one))) return
    for (const one of subtree(item)) if (one !== item) this.#log.note(one, this.#now())
  }

  /** Who may come to it is news as well. */
  noteShared(item: Item): void {
    for (const one of subtree(item)) if (one.parent) this.#log.note(one, this.#now())
  }

  #keepVersion(item: Item): void {
    item.versions.push({ id: versionId(item), content: item.content!, modifiedMs: item.modifiedMs })
    item.version += 1
  }

  /** On Business even the time of a file makes a version. */
  #setTimes(item: Item, times: FileTimes): void {
    if (this.type === 'business' && item.kind === 'file') this.#keepVersion(item)
    if (times.createdMs !== undefined) item.fsCreatedMs = times.createdMs
    if (times.modifiedMs !== undefined) item.fsModifiedMs = times.modifiedMs
  }

  checkPlace(parent: Item, name: string): void {
    if (!parent.children) throw new DriveFault('invalidRequest', 'The parent is not a folder.')
    // An upload may end long after its folder.
    if (parent.deleted !== 'no') throw new DriveFault('itemNotFound', 'The parent does not exist any more.')
    const problem = nameProblem(name, { isInRoot: parent === this.root })
    if (problem) throw new DriveFault('invalidRequest', problem)
    if (itemPath(parent).length + 1 + name.length > PATH_CHARS_MAX) {
      throw new DriveFault('invalidRequest', `The path is longer than ${PATH_CHARS_MAX} characters.`)
    }
  }

  #freeName(parent: Item, name: string): string {
    for (let number = 1; number <= RENAMES_MAX; number++) {
      const free = numberedName(name, number)
      if (!this.child(parent, free)) return free
    }
    throw clash(name)
  }

  #make(input: { name: string; parent: Item | undefined; kind: ItemKind; times?: FileTimes }): Item {
    const { name, parent, kind, times = {} } = input
    const nowMs = this.#now()
    const item: Item = {
      id: this.#newId(),
      kind,
      name,
      key: nameKey(name),
      parent,
      content: undefined,
      children: kind === 'file' ? undefined : new Map(),
      sorted: undefined,
      bytes: 0,
      createdMs: nowMs,
      modifiedMs: nowMs,
      fsCreatedMs: times.createdMs ?? nowMs,
      fsModifiedMs: times.modifiedMs ?? nowMs,
      eVersion: 0,
      cVersion: 1,
      seq: 0,
      versions: [],
      version: 1,
      deleted: 'no',
      met: undefined,
    }
    this.#items.set(item.id, item)
    return item
  }

  #newId(): string {
    this.#itemsMade += 1
    if (this.type === 'personal') return `${this.id.toUpperCase()}!${100 + this.#itemsMade}`
    let id = '01'
    for (let at = 0; at < 25; at++) id += BASE32[Math.floor(this.#random() * 32)]
    // Unique whatever was drawn.
    return id + this.#itemsMade.toString(32).toUpperCase().padStart(7, '0')
  }

  #attach(item: Item, parent: Item): void {
    item.parent = parent
    parent.children!.set(item.key, item)
    parent.sorted = undefined
    this.#addBytes(parent, sizeOf(item))
  }

  #detach(item: Item): void {
    const parent = item.parent!
    parent.children!.delete(item.key)
    parent.sorted = undefined
    this.#addBytes(parent, -sizeOf(item))
    this.#touchAbove(item)
  }

  #addBytes(folder: Item | undefined, bytes: number): void {
    for (let at = folder; at; at = at.parent) at.bytes += bytes
  }

  #changed(item: Item): void {
    const nowMs = this.#now()
    item.eVersion += 1
    item.modifiedMs = nowMs
    this.#touchAbove(item)
    this.#log.note(item, nowMs)
    this.onChange(item)
  }

  #touchAbove(item: Item): void {
    const nowMs = this.#now()
    for (const folder of ancestorsOf(item)) {
      folder.cVersion += 1
      folder.modifiedMs = nowMs
    }
  }
}

/** What there is to copy, before the copy is there, too: a folder may be copied into itself. */
type Outline = { item: Item; children: readonly Outline[] }

function outline(item: Item): Outline {
  return { item, children: [...(item.children?.values() ?? [])].map(outline) }
}

function clash(name: string): DriveFault {
  return new DriveFault(
    'nameAlreadyExists',
    `An item with the name "${name}" already exists under the parent.`,
  )
}

/** Which names OneDrive takes. */
export const PATH_CHARS_MAX = 400
export const NAME_CHARS_MAX = 255

const PLAIN_LOWER = /^[\x20-\x40\x5b-\x7e]*$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const ILLEGAL = /["*:<>?/\\|\x00-\x1f\x7f]/
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d|\.lock|desktop\.ini)$/i

/** Two names with the same key cannot stand in the same folder. */
export function nameKey(name: string): string {
  return PLAIN_LOWER.test(name) ? name : name.normalize('NFC').toLowerCase()
}

/** Why a name is refused. */
export function nameProblem(name: string, { isInRoot = false } = {}): string | undefined {
  if (name === '') return 'The name is empty.'
  if (name.length > NAME_CHARS_MAX) return `The name is longer than ${NAME_CHARS_MAX} characters.`
  if (ILLEGAL.test(name)) return 'The provided name contains characters that are not allowed.'
  if (name.startsWith(' ') || name.endsWith(' ')) return 'The name begins or ends with a space.'
  if (name.endsWith('.')) return 'The name ends with a dot.'
  if (name.startsWith('~$')) return 'The name begins with ~$.'
  if (/_vti_/i.test(name)) return 'The name contains _vti_.'
  if (RESERVED.test(name)) return 'The provided name is reserved.'
  if (isInRoot && /^forms$/i.test(name)) return 'The provided name is reserved in the root folder.'
  return undefined
}

/** `a.txt` → `a 1.txt`, as the service does it when it is told to rename. */
export function numberedName(name: string, number: number): string {
  const dot = name.lastIndexOf('.')
  return dot > 0 ? `${name.slice(0, dot)} ${number}${name.slice(dot)}` : `${name} ${number}`
}
