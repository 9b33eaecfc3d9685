/**
 * Two sides on paper: a drive as OneDrive keeps it, and a folder as a file system keeps it. Nothing but maps; every
 * call is one step that nobody can come between.
 */
import type { FileType, LocalStat, RemoteRow } from './trees.ts'
import { nameKey } from './trees.ts'

export type Thing<Id> = {
  id: Id
  parentId: Id | null
  name: string
  type: FileType
  content: string
}

/** What both sides are: names in folders. */
export abstract class PaperSide<Id, T extends Thing<Id>> {
  readonly things = new Map<Id, T>()
  abstract readonly root: Id
  /** What was deleted or replaced by the sync, or deleted by people: contents that can be had back. */
  readonly bin: string[] = []

  abstract isSameName(one: string, other: string): boolean

  children(id: Id): T[] {
    return [...this.things.values()].filter(({ parentId }) => parentId === id)
  }

  child(parentId: Id, name: string): T | undefined {
    return this.children(parentId).find((one) => this.isSameName(one.name, name))
  }

  /** Itself and everything in it. */
  branch(id: Id): T[] {
    const found = [this.things.get(id)!]
    for (const one of found) found.push(...this.children(one.id))
    return found
  }

  isInside(id: Id | null, folder: Id): boolean {
    for (let at = id; at !== null; at = this.things.get(at)?.parentId ?? null) if (at === folder) return true
    return false
  }

  /** Everything but the root, in the order of its making. */
  list(type?: FileType): T[] {
    return [...this.things.values()].filter(
      (one) => one.parentId !== null && (type === undefined || one.type === type),
    )
  }

  folders(): T[] {
    return [...this.things.values()].filter(({ type }) => type === 'folder')
  }

  namesOf(id: Id): string[] {
    const thing = this.things.get(id)!
    return thing.parentId === null ? [] : [...this.namesOf(thing.parentId), thing.name]
  }

  pathOf(id: Id): string {
    return this.namesOf(id).join('/')
  }

  resolve(names: readonly string[]): T | undefined {
    let at = this.things.get(this.root)
    for (const name of names) at = at && at.type === 'folder' ? this.child(at.id, name) : undefined
    return at
  }
}

export type Item = Thing<string> & { eTag: string; cTag: string; modifiedMs: number }
export type Refusal = 'taken' | 'no-folder' | 'not-found' | 'other-version' | 'inside-itself'

/** A drive: ids, tags, names in which case does not count, a log of changes, a recycle bin. */
export class PaperDrive extends PaperSide<string, Item> {
  readonly root = 'root'
  /** Ids in the order of their changes; a deleted folder's children are not in it. */
  readonly log: string[] = []
  readonly #known = new Map<string, Item>()
  #number = 0

  constructor() {
    super()
    this.things.set('root', {
      id: 'root',
      parentId: null,
      name: '',
      type: 'folder',
      content: '',
      eTag: 'e',
      cTag: 'c',
      modifiedMs: 0,
    })
  }

  isSameName(one: string, other: string): boolean {
    return nameKey(one) === nameKey(other)
  }

  make(
    parentId: string,
    name: string,
    { type, content = '' }: { type: FileType; content?: string },
  ): Item | Refusal {
    if (this.things.get(parentId)?.type !== 'folder') return 'no-folder'
    if (this.child(parentId, name)) return 'taken'
    return this.#put({ id: `X${++this.#number}`, parentId, name, type, content, cTag: this.#tag('c') })
  }

  write(id: string, content: string, ifTag?: string): Item | Refusal {
    const item = this.things.get(id)
    if (!item) return 'not-found'
    if (ifTag !== undefined && item.eTag !== ifTag) return 'other-version'
    return this.#put({ ...item, content, cTag: this.#tag('c') })
  }

  move(id: string, parentId: string, name: string): Item | Refusal {
    const item = this.things.get(id)
    if (!item) return 'not-found'
    if (this.things.get(parentId)?.type !== 'folder') return 'no-folder'
    if (this.isInside(parentId, id)) return 'inside-itself'
    const there = this.child(parentId, name)
    if (there && there.id !== id) return 'taken'
    return this.#put({ ...item, parentId, name })
  }

  /** Into the recycle bin, with everything in it. */
  remove(id: string, ifTag?: string): Refusal | undefined {
    const item = this.things.get(id)
    if (!item) return 'not-found'
    if (ifTag !== undefined && item.eTag !== ifTag) return 'other-version'
    for (const one of this.branch(id)) {
      if (one.type === 'file') this.bin.push(one.content)
      this.things.delete(one.id)
    }
    this.log.push(id)
    return undefined
  }

  exchange(one: string, other: string): void {
    const [a, b] = [this.things.get(one)!, this.things.get(other)!]
    this.#put({ ...a, parentId: b.parentId, name: b.name })
    this.#put({ ...b, parentId: a.parentId, name: a.name })
  }

  row(item: Item): RemoteRow {
    const isFile = item.type === 'file'
    return {
      itemId: item.id,
      parentId: item.parentId,
      name: item.name,
      type: item.type,
      size: item.content.length,
      hash: isFile ? hashOf(item.content) : null,
      eTag: item.eTag,
      cTag: item.cTag,
      modifiedMs: item.modifiedMs,
      isDeleted: false,
    }
  }

  /** What delta tells of an id now. */
  told(id: string): RemoteRow {
    const item = this.things.get(id)
    const former = this.#known.get(id)!
    return item ? this.row(item) : { ...this.row(former), name: '', hash: null, size: 0, isDeleted: true }
  }

  #tag(kind: string): string {
    return `${kind}${++this.#number}`
  }

  #put(item: Omit<Item, 'eTag' | 'modifiedMs'>): Item {
    const whole: Item = { ...item, eTag: this.#tag('e'), modifiedMs: this.#number }
    this.things.set(whole.id, whole)
    this.#known.set(whole.id, whole)
    this.log.push(whole.id)
    return whole
  }
}

export type PaperFile = Thing<number> & { birth: number; mtime: number }

/** A folder: numbers of files that are given again, names in which case counts, a trash. */
export class PaperFolder extends PaperSide<number, PaperFile> {
  readonly root = 1
  readonly #free: number[] = []
  #number = 1
  #time = 1

  constructor() {
    super()
    this.things.set(1, { id: 1, parentId: null, name: '', type: 'folder', content: '', birth: 1, mtime: 1 })
  }

  isSameName(one: string, other: string): boolean {
    return one === other
  }

  make(
    parentId: number,
    name: string,
    { type, content = '' }: { type: FileType; content?: string },
  ): PaperFile | 'taken' {
    if (this.child(parentId, name)) return 'taken'
    const id = this.#free.pop() ?? ++this.#number
    const made = { id, parentId, name, type, content, birth: ++this.#time, mtime: ++this.#time }
    this.things.set(id, made)
    return made
  }

  write(id: number, content: string): void {
    Object.assign(this.things.get(id)!, { content, mtime: ++this.#time })
  }

  move(id: number, parentId: number, name: string): void {
    Object.assign(this.things.get(id)!, { parentId, name })
  }

  remove(id: number): void {
    for (const one of this.branch(id)) {
      this.things.delete(one.id)
      this.#free.push(one.id)
    }
  }

  exchange(one: number, other: number): void {
    const [a, b] = [this.things.get(one)!, this.things.get(other)!]
    const place = { parentId: a.parentId, name: a.name }
    Object.assign(a, { parentId: b.parentId, name: b.name })
    Object.assign(b, place)
  }

  stat({ id, birth, mtime, content, type }: PaperFile): LocalStat {
    return {
      dev: '1',
      ino: String(id),
      birthNs: String(birth),
      mtimeNs: String(mtime),
      ctimeNs: String(mtime),
      size: type === 'file' ? content.length : 0,
    }
  }
}

export function hashOf(content: string): string {
  return `#${content}`
}
