/** The routes of mail as functions. */

import {
  get,
  getText,
  type Page,
  type Paging,
  part,
  post,
  SLOW_REQUEST_MS_MAX,
  type TextOptions,
} from '../../../../web/src/api.ts'
import type { DoneView } from '../../../app/schemas.ts'
import type {
  CleanUpPlan,
  CleanUpProof,
  CleanUpRunView,
  CleanUpWish,
  MessageView,
  SearchAnswer,
  SearchFacetsView,
} from '../api/schemas.ts'

/** Frames, pictures and downloads take a ticket for it: see ticket.tsx. */
export const messagePath = (account: string, id: string): string =>
  `/api/mail/messages/${part(account)}/${part(id)}`

/** A download of what a query finds. */
export const exportPath = (query: { q: string; account: string }): string => {
  const params = new URLSearchParams({ q: query.q })
  if (query.account !== '') params.set('account', query.account)
  return `/api/mail/search/export?${params}`
}

export type Suggestions = { items: { text: string; what: string }[] }
export type RunStep = 'undo' | 'resume' | 'halt' | 'abandon'

export const mailApi = {
  sync: (account: string) => post<DoneView>('/api/mail/sync', { account }),
  search: (query: Paging & { q: string; account?: string; order?: 'date' | 'rank' }, signal?: AbortSignal) =>
    get<SearchAnswer>('/api/mail/search', query, signal),
  facets: (query: { q: string; account?: string }, signal?: AbortSignal) =>
    get<SearchFacetsView>('/api/mail/search/facets', query, signal),
  suggest: (q: string, signal?: AbortSignal) => get<Suggestions>('/api/mail/suggest', { q }, signal),
  message: (account: string, id: string, signal?: AbortSignal) =>
    get<MessageView>(messagePath(account, id), {}, signal),
  source: (account: string, id: string, options: TextOptions) =>
    getText(`${messagePath(account, id)}/raw`, options),
  thread: (account: string, id: string, signal?: AbortSignal) =>
    get<{ items: MessageView[] }>(`/api/mail/threads/${part(account)}/${part(id)}`, {}, signal),

  planCleanUp: (wish: CleanUpWish) => post<CleanUpPlan>('/api/mail/clean-up/plan', wish, SLOW_REQUEST_MS_MAX),
  proveCleanUp: (wish: CleanUpWish) => post<CleanUpProof>('/api/mail/clean-up/proofs', wish),
  cleanUpProof: (id: number, signal?: AbortSignal) =>
    get<CleanUpProof>(`/api/mail/clean-up/proofs/${id}`, {}, signal),
  startCleanUp: (wish: CleanUpWish & { confirm?: string }) =>
    post<CleanUpRunView>('/api/mail/clean-up/runs', wish, SLOW_REQUEST_MS_MAX),
  cleanUpRuns: (query: Paging = {}, signal?: AbortSignal) =>
    get<Page<CleanUpRunView>>('/api/mail/clean-up/runs', query, signal),
  /** `confirm`: the words of a deletion that waits, for `resume`. */
  stepCleanUp: (id: number, step: RunStep, confirm?: string) =>
    post<DoneView>(`/api/mail/clean-up/runs/${id}/${step}`, confirm === undefined ? {} : { confirm }),
}
