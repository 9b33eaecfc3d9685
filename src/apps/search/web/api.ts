/** The routes of search as functions. */
import { get, part, post, request } from '../../../../web/src/api.ts'
import type { DoneView } from '../../../app/schemas.ts'
import type { CoverageView, DocumentView, SavedView, SearchAnswerView, WhoView } from '../api/schemas.ts'

export const FACETS = ['source', 'type', 'owner', 'folder', 'year'] as const
export type FacetName = (typeof FACETS)[number]
export type Filters = Readonly<Partial<Record<FacetName, readonly string[]>>>

export type Wish = {
  q: string
  sort: 'relevance' | 'newest' | 'oldest'
  filters: Filters
  /** Of admins: with whose eyes. */
  as: string
}

export const PAGE_HITS = 20

function wishPath({ q, sort, filters, as }: Wish, cursor: string | undefined): string {
  const search = new URLSearchParams({ q, sort, limit: String(PAGE_HITS) })
  for (const facet of FACETS) for (const value of filters[facet] ?? []) search.append(facet, value)
  if (as !== '') search.set('as', as)
  if (cursor !== undefined) search.set('cursor', cursor)
  return `/api/search?${search}`
}

export const searchApi = {
  search: (wish: Wish, cursor: string | undefined, signal?: AbortSignal) =>
    request<SearchAnswerView>('GET', wishPath(wish, cursor), { signal }),
  suggest: (q: string, as: string, signal?: AbortSignal) =>
    get<{ items: { text: string; kind: 'word' | 'title' }[] }>(
      '/api/search/suggest',
      { q, as: as || undefined },
      signal,
    ),
  read: (id: number, as: string, from: number, signal?: AbortSignal) =>
    get<DocumentView>(`/api/search/documents/${id}`, { from, as: as || undefined }, signal),
  coverage: (as: string, signal?: AbortSignal) =>
    get<CoverageView>('/api/search/coverage', { as: as || undefined }, signal),
  who: (id: number, signal?: AbortSignal) => get<WhoView>(`/api/search/who/${id}`, {}, signal),
  own: (signal?: AbortSignal) =>
    get<{ saved: SavedView[]; recent: string[] }>('/api/search/saved', {}, signal),
  save: (name: string, query: string) => post<SavedView>('/api/search/saved', { name, query }),
  forget: (id: number) => request<DoneView>('DELETE', `/api/search/saved/${part(String(id))}`),
  note: (text: string) => post<DoneView>('/api/search/recent', { text }),
  forgetRecent: () => request<DoneView>('DELETE', '/api/search/recent'),
}
