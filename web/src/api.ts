/** The server's routes as functions. Answers are typed by the same schemas that the server checks them with. */

import type {
  AccountView,
  Connected,
  ServiceView,
  SetupView,
  StepCheckView,
} from '../../src/app/accounts/schemas.ts'
import type {
  AlertView,
  BadView,
  BudgetView,
  DoneView,
  FrontierView,
  JobDetail,
  JobView,
  Overview,
  ScheduleView,
  SegmentView,
  SeriesView,
  SettingView,
  StreamView,
  WorkerView,
} from '../../src/app/schemas.ts'
import type { AuditView, Me, SyncStatus, UserView } from '../../src/app/users/schemas.ts'
import { withQuery } from './links.ts'
import { ApiError, apiErrorFrom, unreachable } from './problem.ts'
import { sessionHeaders } from './session.ts'

export type Page<T> = { items: T[]; next: string | null }
export type Query = Record<string, string | number | boolean | undefined>
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** Longer than the slowest honest answer; a plan of a large mailbox says so with its own limit. */
const REQUEST_MS_MAX = 30_000
export const SLOW_REQUEST_MS_MAX = 600_000

export async function request<T>(
  method: Method,
  path: string,
  options: { body?: unknown; signal?: AbortSignal; limitMs?: number } = {},
): Promise<T> {
  const limit = AbortSignal.timeout(options.limitMs ?? REQUEST_MS_MAX)
  const headers: Record<string, string> = {
    accept: 'application/json',
    'x-tidemark': '1',
    ...sessionHeaders(),
  }
  if (options.body !== undefined) headers['content-type'] = 'application/json'
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
    })
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw unreachable(error)
  }
  if (!response.ok) throw await apiErrorFrom(response)
  try {
    return (await response.json()) as T
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new ApiError({ status: response.status, title: 'The answer broke off', hint: 'Try again.' })
  }
}

export const get = <T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> =>
  request<T>('GET', withQuery(path, query), { signal })
export const post = <T>(path: string, body: unknown = {}, limitMs?: number): Promise<T> =>
  request<T>('POST', path, { body, limitMs })

export type TextOptions = { bytesMax: number; signal?: AbortSignal }

/** The beginning of something that is no JSON, and may be long. */
export async function getText(
  path: string,
  { bytesMax, signal }: TextOptions,
): Promise<{ text: string; isWhole: boolean }> {
  let response: Response
  try {
    response = await fetch(path, { headers: sessionHeaders(), signal })
  } catch (error) {
    if (signal?.aborted) throw error
    throw unreachable(error)
  }
  if (!response.ok || !response.body) throw await apiErrorFrom(response)
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let left = bytesMax
  while (true) {
    const { done, value } = await reader.read()
    if (done) return { text: text + decoder.decode(), isWhole: true }
    text += decoder.decode(value.subarray(0, left), { stream: true })
    left -= value.byteLength
    if (left < 0) break
  }
  await reader.cancel()
  return { text, isWhole: false }
}

export const part = encodeURIComponent
const clientPath = (service: string): string => `/api/oauth-clients/${part(service)}`
const streamPath = (name: string): string => `/api/streams/${part(name)}`
export type JobFilter = {
  state?: string
  kind?: string
  stream?: string
  parent?: number
  segment?: number
  olderThanMs?: number
}
export type PauseTarget = { scope: 'all' | 'stream' | 'kind'; target?: string }
export type ConfigEntries = { items: SettingView[] }
export type Paging = { cursor?: string; limit?: number }

export const api = {
  overview: (signal?: AbortSignal) => get<Overview>('/api/overview', {}, signal),
  series: (query: { stepS: 1 | 60; sinceS: number }, signal?: AbortSignal) =>
    get<SeriesView>('/api/series', query, signal),

  streams: (signal?: AbortSignal) => get<{ items: StreamView[] }>('/api/streams', {}, signal),
  stream: (name: string, signal?: AbortSignal) => get<StreamView>(streamPath(name), {}, signal),
  segments: (name: string, query: Paging & { state?: string } = {}, signal?: AbortSignal) =>
    get<Page<SegmentView>>(`${streamPath(name)}/segments`, query, signal),
  frontier: (
    name: string,
    query: { cells?: number; from?: number; to?: number } = {},
    signal?: AbortSignal,
  ) => get<FrontierView>(`${streamPath(name)}/frontier`, query, signal),

  jobs: (query: JobFilter & Paging = {}, signal?: AbortSignal) =>
    get<Page<JobView>>('/api/jobs', query, signal),
  job: (id: number, signal?: AbortSignal) => get<JobDetail>(`/api/jobs/${id}`, {}, signal),
  retryJob: (id: number) => post<DoneView>(`/api/jobs/${id}/retry`),
  cancelJob: (id: number) => post<DoneView>(`/api/jobs/${id}/cancel`),
  bad: (query: Paging & { stream?: string } = {}, signal?: AbortSignal) =>
    get<Page<BadView>>('/api/bad', query, signal),
  retryBad: (which: { ids?: number[]; stream?: string }) => post<DoneView>('/api/bad/retry', which),

  alerts: (signal?: AbortSignal) => get<{ items: AlertView[] }>('/api/alerts', {}, signal),
  workers: (signal?: AbortSignal) => get<{ items: WorkerView[] }>('/api/workers', {}, signal),
  limits: (signal?: AbortSignal) => get<{ items: BudgetView[] }>('/api/limits', {}, signal),
  schedules: (signal?: AbortSignal) => get<{ items: ScheduleView[] }>('/api/schedules', {}, signal),
  pause: (what: PauseTarget & { reason?: string }) => post<DoneView>('/api/pause', what),
  resume: (what: PauseTarget) => post<DoneView>('/api/resume', what),
  config: (signal?: AbortSignal) => get<ConfigEntries>('/api/config', {}, signal),
  setConfig: (key: string, value: string | null) =>
    request<SettingView>('PUT', `/api/config/${part(key)}`, { body: { value } }),

  accounts: (signal?: AbortSignal) => get<Accounts>('/api/accounts', {}, signal),
  connect: (wish: { service: string; access: string; choices: Record<string, object> }) =>
    post<{ url: string; state: string }>('/api/accounts/connect', wish),
  connected: (answer: { state: string; code: string }) =>
    post<Connected>('/api/accounts/connected', answer, SLOW_REQUEST_MS_MAX),
  /** Whoever asks for it has been told what it means for what works with the account. */
  disconnect: ({ service, name }: Pick<Account, 'service' | 'name'>) =>
    request<DoneView>('DELETE', `/api/accounts/${part(service)}/${part(name)}?force=true`),

  setup: (service: string, signal?: AbortSignal) => get<SetupView>(clientPath(service), {}, signal),
  keepClient: (service: string, client: { id: string; secret?: string }) =>
    request<{ checks: StepCheckView[] }>('PUT', clientPath(service), {
      body: client,
      limitMs: SLOW_REQUEST_MS_MAX,
    }),
  checkClient: (service: string) =>
    post<{ checks: StepCheckView[] }>(`${clientPath(service)}/check`, {}, SLOW_REQUEST_MS_MAX),
  forgetClient: (service: string) => request<DoneView>('DELETE', clientPath(service)),

  users: (signal?: AbortSignal) => get<{ items: UserView[] }>('/api/users', {}, signal),
  addUser: (user: { name: string; role: UserView['role'] }) => post<UserView>('/api/users', user),
  changeUser: (id: number, to: { role?: UserView['role']; state?: UserView['state'] }) =>
    request<UserView>('PUT', `/api/users/${id}`, { body: to }),
  removeUser: (id: number) => request<DoneView>('DELETE', `/api/users/${id}`),
  addUserToken: (id: number, label: string) =>
    post<{ id: number; token: string }>(`/api/users/${id}/tokens`, { label }),
  userSignIn: (id: number) => post<{ href: string }>(`/api/users/${id}/sign-in`),
  syncStatus: (id: number, signal?: AbortSignal) =>
    get<SyncStatus>(`/api/users/${id}/sync-status`, {}, signal),
  syncUser: (id: number) => post<{ begun: boolean; text: string }>(`/api/users/${id}/sync`),
  audit: (query: Paging = {}, signal?: AbortSignal) => get<Page<AuditView>>('/api/audit', query, signal),

  ticket: (path: string) => post<{ href: string }>('/api/tickets', { path }),
  signIn: (secret: { token: string } | { code: string }) =>
    post<{ session: string; user: Me }>('/api/sign-in', secret),
  signOut: () => request<unknown>('POST', '/api/sign-out'),
}

/** The accounts as pages see them. */
/** With what the apps that work for it say of it, by their names. */
export type Account = AccountView & { apps: Readonly<Record<string, unknown>> }

export type Accounts = { items: Account[]; services: ServiceView[] }
