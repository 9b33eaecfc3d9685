/** What a scan is asked to look at, and what it must know for that. */
import type { Filter } from '../filter.ts'
import type { SeenFolder } from '../store/seen-folders.ts'
import type { LocalRow, LocalStat } from '../trees.ts'
import type { FolderReader } from './listing.ts'
import type { Root } from './root.ts'

/** What the scan must know of the local tree. */
export type KnownTree = {
  root(): Promise<LocalRow>
  /** Right below a folder, missing ones included. */
  children(parentId: number): Promise<readonly LocalRow[]>
  /**
   * The digest of all that is in a folder and not missing, if it is known without reading that, and the rows of the
   * folders in it, both as they are at one moment.
   */
  seen?(folderId: number): Promise<SeenFolder | undefined>
  byInode(stat: Pick<LocalStat, 'dev' | 'ino'>): Promise<readonly LocalRow[]>
  path(id: number): Promise<readonly string[] | undefined>
  at(names: readonly string[]): Promise<LocalRow | undefined>
  /** The first of `count` ids for new rows. */
  takeIds(count: number): Promise<number>
}

export type ScanOptions = {
  root: Root
  tree: KnownTree
  filter: Filter
  reader?: FolderReader
  /** Folders to look at, by their names from the root; everything where it is left out. */
  folders?: readonly (readonly string[])[]
  followLinks?: boolean
  crossMounts?: boolean
  signal?: AbortSignal
  /** Observations a batch. */
  batchMax?: number
  /** Names in folders that are left out among which something missing is looked for. */
  leftOutNamesMax?: number
}
