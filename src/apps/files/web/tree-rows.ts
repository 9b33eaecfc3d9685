/** The folders that are open, as the rows that a list draws. Pure. */
import type { TreeItem } from '../api/schemas.ts'

/** What was loaded of a folder. The top of the tree has the key ''. */
export type LoadedFolder = {
  items: readonly TreeItem[]
  /** Where the next page begins; null: all is here. */
  next: string | null
  error?: unknown
}

export type TreeRow =
  | {
      kind: 'item'
      key: string
      item: TreeItem
      depth: number
      isOpen: boolean
      /** Of its siblings, from 1; and how many there are, or -1 while not all are known. */
      place: number
      siblings: number
    }
  /** Stands where more come: they are loaded when it is in sight. */
  | { kind: 'more'; key: string; folder: string; depth: number; error?: unknown }

export const TOP = ''
const ROWS_MAX = 200_000

export function treeRows(folders: ReadonlyMap<string, LoadedFolder>, open: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = []
  const add = (folder: string, depth: number, above: readonly string[]): void => {
    const loaded = folders.get(folder)
    const items = loaded?.items ?? []
    const siblings = loaded?.next === null ? items.length : -1
    for (const [at, item] of items.entries()) {
      if (rows.length >= ROWS_MAX) return
      // A folder that was moved into itself on one side must not be drawn without end.
      const isOpen = item.type === 'folder' && open.has(item.node) && !above.includes(item.node)
      rows.push({ kind: 'item', key: `${folder} ${item.node}`, item, depth, isOpen, place: at + 1, siblings })
      if (isOpen) add(item.node, depth + 1, [...above, item.node])
    }
    if (!loaded || loaded.next !== null) {
      const error = loaded?.error === undefined ? {} : { error: loaded.error }
      rows.push({ kind: 'more', key: `${folder} more`, folder, depth, ...error })
    }
  }
  add(TOP, 0, [])
  return rows
}

/** The row that a key leads to from the row at `at`; undefined where it leads nowhere. */
export function rowAfterKey(rows: readonly TreeRow[], at: number, key: string): number | undefined {
  const last = rows.length - 1
  switch (key) {
    case 'ArrowDown':
      return Math.min(last, at + 1)
    case 'ArrowUp':
      return Math.max(0, at - 1)
    case 'PageDown':
      return Math.min(last, at + PAGE_ROWS)
    case 'PageUp':
      return Math.max(0, at - PAGE_ROWS)
    case 'Home':
      return 0
    case 'End':
      return last
    default:
      return undefined
  }
}

const PAGE_ROWS = 10

/** The row of the folder that this one is in. */
export function parentRow(rows: readonly TreeRow[], at: number): number | undefined {
  const depth = rows[at]?.depth ?? 0
  for (let above = at - 1; above >= 0; above--) if (rows[above]!.depth < depth) return above
  return undefined
}
