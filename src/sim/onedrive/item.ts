/** One item of a drive: a file, a folder, or a package (a OneNote notebook), and what is known about it. */
import type { Content } from './content.ts'

export type ItemKind = 'file' | 'folder' | 'package'

export type ItemVersion = { id: string; content: Content; modifiedMs: number }

export type DriveType = 'personal' | 'business'

/** What is known here of an item in another drive. */
export type Remote = { drive: { id: string; type: DriveType; owner: string }; item: Item }

export type Item = {
  readonly id: string
  readonly kind: ItemKind
  name: string
  /** What the folder finds it by: names that differ only in case or in composition are the same. */
  key: string
  /** Undefined for the root. A deleted item keeps the one it had. */
  parent: Item | undefined
  /** Of files. */
  content: Content | undefined
  /** Of folders and packages. */
  children: Map<string, Item> | undefined
  /** The children in the order of their names, until one changes. */
  sorted: readonly Item[] | undefined
  /** Of a folder: what is under it. */
  bytes: number
  createdMs: number
  modifiedMs: number
  fsCreatedMs: number
  fsModifiedMs: number
  /** Counts every change. */
  eVersion: number
  /** Counts changes of content; of a folder, any change under it. */
  cVersion: number
  /** The place of its last change in the drive's log. */
  seq: number
  /** What it held before, the newest last. */
  versions: ItemVersion[]
  /** The number of what it holds now: never used again, also where an older one was deleted. */
  version: number
  /** `with-parent`: a folder above it was deleted. */
  deleted: 'no' | 'directly' | 'with-parent'
  /** The name it had before the last rename, for a delta that repeats itself. */
  nameBefore?: string
  specialName?: string
  /** It is no folder of this drive but a shortcut to one of another. */
  remote?: Remote
  /** Somebody else was let in here at some time. */
  isShared?: true
  /** Folders that it was in, and was moved out of: to whoever sees nothing else it is deleted. */
  left?: Set<Item>
  /** Which transient refusals it has met already, where such a quirk is on. */
  met: Set<string> | undefined
}

export function ancestorsOf(item: Item): Item[] {
  const found: Item[] = []
  for (let above = item.parent; above; above = above.parent) found.push(above)
  return found
}

/** From the root, without a leading slash; empty for the root itself. */
export function itemPath(item: Item): string {
  let path = ''
  for (let at = item; at.parent; at = at.parent) path = path === '' ? at.name : `${at.name}/${path}`
  return path
}

export function isWithin(item: Item, folder: Item): boolean {
  for (let at: Item | undefined = item; at; at = at.parent) if (at === folder) return true
  return false
}

/** The item, then all that is under it, parents first. */
export function* subtree(item: Item): Iterable<Item> {
  yield item
  if (!item.children) return
  for (const child of item.children.values()) yield* subtree(child)
}

/** Of what the file holds now. */
export function versionId({ version }: Item): string {
  return `${version}.0`
}

export function sizeOf(item: Item): number {
  return item.kind === 'file' ? (item.content?.size ?? 0) : item.bytes
}

export function sortedChildren(folder: Item): readonly Item[] {
  folder.sorted ??= [...(folder.children?.values() ?? [])].sort((a, b) =>
    a.key < b.key ? -1 : a.key > b.key ? 1 : 0,
  )
  return folder.sorted
}
