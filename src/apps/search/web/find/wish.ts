/** What is asked for stands in the address, so that a link, and going back, lead to the same answer. */
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/preact-query'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSearch } from 'wouter-preact'
import { FACETS, type FacetName, type Filters, searchApi, type Wish } from '../api.ts'

const TYPING_MS = 220
/** A search that was looked at for so long was meant. */
const MEANT_MS = 2_500

export function useWish(): Wish {
  useSearch()
  const search = new URLSearchParams(location.search)
  const sort = search.get('sort')
  const chosen = FACETS.flatMap((facet) => {
    const values = search.getAll(facet)
    return values.length > 0 ? [[facet, values] as const] : []
  })
  return {
    q: search.get('q') ?? '',
    sort: sort === 'newest' || sort === 'oldest' ? sort : 'relevance',
    filters: Object.fromEntries(chosen),
    as: search.get('as') ?? '',
  }
}

export function setWish(change: Partial<Wish>, options: { push?: boolean } = {}): void {
  const search = new URLSearchParams(location.search)
  const put = (name: string, value: string): void => {
    if (value === '') search.delete(name)
    else search.set(name, value)
  }
  if (change.q !== undefined) put('q', change.q)
  if (change.sort !== undefined) put('sort', change.sort === 'relevance' ? '' : change.sort)
  if (change.as !== undefined) put('as', change.as)
  if (change.filters) {
    for (const facet of FACETS) {
      search.delete(facet)
      for (const value of change.filters[facet] ?? []) search.append(facet, value)
    }
  }
  // Another search has other documents.
  search.delete('open')
  const text = search.toString()
  const url = `${location.pathname}${text === '' ? '' : `?${text}`}`
  if (options.push) history.pushState(null, '', url)
  else history.replaceState(null, '', url)
}

export function toggled(filters: Filters, facet: FacetName, value: string): Filters {
  const before = filters[facet] ?? []
  const now = before.includes(value) ? before.filter((one) => one !== value) : [...before, value]
  return { ...filters, [facet]: now }
}

/** The field's text runs ahead of the address while somebody types. */
export function useTyped(q: string) {
  const [text, setText] = useState(q)
  const written = useRef(q)
  const timer = useRef<ReturnType<typeof setTimeout>>()
  const write = (next: string): void => {
    clearTimeout(timer.current)
    written.current = next.trim()
    setWish({ q: written.current })
  }
  useEffect(() => {
    if (q === written.current) return
    written.current = q
    setText(q)
  }, [q])
  useEffect(() => () => clearTimeout(timer.current), [])
  return {
    text,
    type(next: string): void {
      setText(next)
      clearTimeout(timer.current)
      timer.current = setTimeout(() => write(next), TYPING_MS)
    },
    submit(next: string): void {
      setText(next)
      write(next)
    },
  }
}

export function useAnswer(wish: Wish) {
  return useInfiniteQuery({
    queryKey: ['find', wish],
    queryFn: ({ pageParam, signal }) => searchApi.search(wish, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    enabled: isAsked(wish),
    staleTime: 30_000,
    refetchOnWindowFocus: false,
  })
}

export function isAsked({ q, filters }: Wish): boolean {
  return q.trim() !== '' || FACETS.some((facet) => (filters[facet]?.length ?? 0) > 0)
}

export const OWN_KEY = ['find-own']

export const useOwnSearches = () =>
  useQuery({ queryKey: OWN_KEY, queryFn: ({ signal }) => searchApi.own(signal), staleTime: 60_000 })

/** Remembers what was searched for, once it stood for a while; nothing of what is seen with the eyes of others. */
export function useRemembered({ q, as }: Wish, isFound: boolean): void {
  const client = useQueryClient()
  useEffect(() => {
    if (q.trim() === '' || as !== '' || !isFound) return
    const timer = setTimeout(() => {
      void searchApi
        .note(q.trim())
        .then(() => client.invalidateQueries({ queryKey: OWN_KEY }))
        .catch(() => undefined)
    }, MEANT_MS)
    return () => clearTimeout(timer)
  }, [q, as, isFound, client])
}

export function useSuggestions(text: string, as: string, isWanted: boolean) {
  const [asked, setAsked] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), TYPING_MS / 2)
    return () => clearTimeout(timer)
  }, [text])
  const { data } = useQuery({
    queryKey: ['find-suggest', asked, as],
    queryFn: ({ signal }) => searchApi.suggest(asked, as, signal),
    enabled: isWanted && asked.trim() !== '',
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  })
  return asked.trim() === '' ? [] : (data?.items ?? [])
}
