/** The tree of a folder as far as it was opened: pages are loaded when they come into sight, and follow live. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { filesApi } from './api.ts'
import { useFiles } from './queries.ts'
import { type LoadedFolder, TOP, treeRows } from './tree-rows.ts'

const PAGE = 200
/** Of a folder with more, what is loaded stands still until it is opened again. */
const LIVE_ITEMS_MAX = 500
const REFRESH_MS_MIN = 2_000

export function useTree(pair: string) {
  const [folders, setFolders] = useState<ReadonlyMap<string, LoadedFolder>>(new Map())
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const loading = useRef(new Set<string>())
  const left = useRef(new AbortController())
  useEffect(() => () => left.current.abort(), [])
  const put = (folder: string, loaded: LoadedFolder): void =>
    setFolders((before) => new Map(before).set(folder, loaded))

  const loadMore = async (folder: string): Promise<void> => {
    if (loading.current.has(folder)) return
    loading.current.add(folder)
    const before = folders.get(folder)
    try {
      const wanted = { ...whichOf(folder), cursor: before?.next ?? undefined, limit: PAGE }
      const page = await filesApi.folder(pair, wanted, left.current.signal)
      put(folder, { items: [...(before?.items ?? []), ...page.items], next: page.next })
    } catch (error) {
      put(folder, { items: before?.items ?? [], next: before?.next ?? '', error })
    } finally {
      loading.current.delete(folder)
    }
  }

  const refresh = async (): Promise<void> => {
    for (const folder of [TOP, ...open]) {
      // Whoever left may have removed the folder: nothing more is asked of it.
      if (left.current.signal.aborted) return
      const before = folders.get(folder)
      if (!before || before.items.length > LIVE_ITEMS_MAX || loading.current.has(folder)) continue
      loading.current.add(folder)
      try {
        const wanted = { ...whichOf(folder), limit: Math.max(PAGE, before.items.length) }
        const page = await filesApi.folder(pair, wanted, left.current.signal)
        put(folder, { items: page.items, next: page.next })
      } catch {
        // Gone, or out of reach for a moment: what is shown stays until the next look.
      } finally {
        loading.current.delete(folder)
      }
    }
  }
  useFollow(refresh)

  const toggle = (folder: string, wanted?: boolean): void => {
    const isOpen = wanted ?? !open.has(folder)
    const next = new Set(open)
    if (isOpen) next.add(folder)
    else next.delete(folder)
    setOpen(next)
    // Opened again, it is looked at anew.
    if (isOpen && folders.has(folder)) {
      const kept = new Map(folders)
      kept.delete(folder)
      setFolders(kept)
    }
  }
  return { rows: treeRows(folders, open), toggle, loadMore, isLoaded: folders.has(TOP) }
}

function whichOf(folder: string): { folder?: string } {
  return folder === TOP ? {} : { folder }
}

/** Calls after the folder has changed, and not more often than every few seconds. */
function useFollow(refresh: () => Promise<void>): void {
  const { data } = useFiles()
  const print = JSON.stringify(
    data?.folders.map(({ open, files, folders, scannedAt, heardAt, conflicts }) => [
      open,
      files,
      folders,
      scannedAt,
      heardAt,
      conflicts,
    ]),
  )
  const latest = useRef(refresh)
  latest.current = refresh
  const seen = useRef(print)
  useEffect(() => {
    if (seen.current === print) return
    const timer = setTimeout(() => {
      seen.current = print
      void latest.current()
    }, REFRESH_MS_MIN / 4)
    return () => clearTimeout(timer)
  }, [print])
}
