/** What is typed becomes the address a moment later, and the address is what is searched. */

import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/preact-query'
import { useEffect, useRef, useState } from 'preact/hooks'
import { setSearchParams, useSearchParam } from '../../../../../web/src/search-params.ts'
import { mailApi } from '../api.ts'
import { mailKeys } from '../queries.ts'
import { rememberSearch } from './last-search.ts'
import { isUnfinished } from './words.ts'

const TYPING_MS = 180
const PAGE_ITEMS = 40

export type Order = 'date' | 'rank'

/** The field's text, which runs ahead of the address by as long as somebody types. */
export function useQueryText() {
  const q = useSearchParam('q')
  const [text, setText] = useState(q)
  const written = useRef(q)
  const timer = useRef<ReturnType<typeof setTimeout>>()
  const write = (next: string): void => {
    clearTimeout(timer.current)
    written.current = next.trim()
    setSearchParams({ q: written.current })
  }
  useEffect(() => {
    // Changed by something else: a link, or going back.
    if (q !== written.current) {
      written.current = q
      setText(q)
    }
  }, [q])
  useEffect(() => () => clearTimeout(timer.current), [])
  return {
    q,
    text,
    type: (next: string): void => {
      setText(next)
      clearTimeout(timer.current)
      if (!isUnfinished(next)) timer.current = setTimeout(() => write(next), TYPING_MS)
    },
    submit: (next: string): void => {
      setText(next)
      write(next)
    },
  }
}

export function useSearchResults(wish: { q: string; account: string; order: Order }) {
  const { q, account, order } = wish
  useEffect(() => rememberSearch(location.pathname + location.search), [q, account, order])
  return useInfiniteQuery({
    queryKey: [...mailKeys.search, wish],
    queryFn: ({ pageParam, signal }) =>
      mailApi.search(
        { q: q.trim(), account: account || undefined, order, cursor: pageParam, limit: PAGE_ITEMS },
        signal,
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    // Coming back from a message must find the list as it was.
    staleTime: 60_000,
    // A query is asked again by typing, not by looking at the window.
    refetchOnWindowFocus: false,
  })
}

/** Asked once the list is there: it matters more. */
export function useFacets({ q, account, isWanted }: { q: string; account: string; isWanted: boolean }) {
  return useQuery({
    queryKey: [...mailKeys.search, 'facets', q, account],
    queryFn: ({ signal }) => mailApi.facets({ q: q.trim(), account: account || undefined }, signal),
    enabled: isWanted,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    retry: false,
  })
}

export function useSuggestions(text: string, isWanted: boolean) {
  const [asked, setAsked] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), TYPING_MS / 2)
    return () => clearTimeout(timer)
  }, [text])
  const { data } = useQuery({
    queryKey: ['suggest', asked],
    queryFn: ({ signal }) => mailApi.suggest(asked, signal),
    enabled: isWanted && asked.trim() !== '',
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  })
  return asked.trim() === '' ? [] : (data?.items ?? [])
}
