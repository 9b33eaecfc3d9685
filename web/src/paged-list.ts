/** A list that the server gives page by page. Short ones follow live; a long one stands still until it is asked. */
import { useInfiniteQuery } from '@tanstack/preact-query'
import { useEffect, useRef } from 'preact/hooks'
import type { Page } from './api.ts'
import { useOverview } from './queries.ts'

/** Refreshing asks for all loaded pages again, since pages move as rows come: too much beyond a few. */
const LIVE_PAGES_MAX = 3
const REFRESH_MS_MIN = 2_000

export type PagedListOptions<T> = {
  key: readonly unknown[]
  page: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>
}

export type PagedList<T> = ReturnType<typeof usePagedList<T>>

export function usePagedList<T>({ key, page }: PagedListOptions<T>) {
  const query = useInfiniteQuery({
    queryKey: ['list', ...key],
    queryFn: ({ pageParam, signal }) => page(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: Page<T>) => last.next ?? undefined,
  })
  const { data, hasNextPage, isFetching, isFetchingNextPage, fetchNextPage, refetch } = query
  const rows = data?.pages.flatMap(({ items }) => items) ?? []
  const isLive = (data?.pages.length ?? 0) <= LIVE_PAGES_MAX
  useFollow(isLive && !isFetching, query.dataUpdatedAt, () => void refetch({ cancelRefetch: false }))
  // A page may be empty although there are more: the server looked as long as it may.
  const isSearching = rows.length === 0 && hasNextPage
  useEffect(() => {
    if (isSearching && !isFetching) void fetchNextPage()
  }, [isSearching, isFetching])
  return {
    rows,
    error: query.error,
    isLive,
    /** Nothing to show yet. */
    isLoading: query.isPending || isFetchingNextPage || isSearching,
    isComplete: data !== undefined && !hasNextPage,
    loadMore: () => {
      if (hasNextPage && !isFetching) void fetchNextPage()
    },
    refetch,
  }
}

/** Snapshots of the overview come only when something has changed: then the list may have, too. */
function useFollow(isReady: boolean, loadedAt: number, refresh: () => void): void {
  const { dataUpdatedAt } = useOverview()
  const seenAt = useRef(dataUpdatedAt)
  useEffect(() => {
    if (!isReady || dataUpdatedAt === seenAt.current || Date.now() - loadedAt < REFRESH_MS_MIN) return
    seenAt.current = dataUpdatedAt
    refresh()
  }, [isReady, dataUpdatedAt])
}
