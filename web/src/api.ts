/** The server's routes as functions. Answers are typed by the same schemas that the server checks them with. */
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
} from '../../src/server/engine-api/schemas.ts'
import type {
  ActionView,
  ConflictDetail,
  ConflictView,
  DriveView,
  FileAccountView,
  FilesSnapshot,
  HeldDeletesView,
  ItemDetail,
  ReportedView,
  TransfersView,
  TrashEntryView,
  TreeItem,
} from '../../src/server/files-api/schemas.ts'
import type {
  ArchivePlan,
  ArchiveRunView,
  ArchiveWish,
  MailAccountView,
  MessageView,
  SearchAnswer,
} from '../../src/server/mail-api/schemas.ts'
import { withQuery } from './links.ts'
import { ApiError, problemOf, unreachable } from './problem.ts'

export type Page<T> = { items: T[]; next: string | null }
export type Query = Record<string, string | number | boolean | undefined>
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** Longer than the slowest honest answer; a plan of a large mailbox says so with its own limit. */
const REQUEST_MS_MAX = 30_000
const SLOW_REQUEST_MS_MAX = 600_000

export async function request<T>(
  method: Method,
  path: string,
  options: { body?: unknown; signal?: AbortSignal; limitMs?: number } = {},
): Promise<T> {
  const limit = AbortSignal.timeout(options.limitMs ?? REQUEST_MS_MAX)
  const headers: Record<string, string> = { accept: 'application/json', 'x-tidemark': '1' }
  if (options.body !== undefined) headers['content-type'] = 'application/json'
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers,
      credentials: 'same-origin',
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
    })
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw unreachable(error)
  }
  if (!response.ok) throw await problemOf(response)
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

type TextOptions = { bytesMax: number; signal?: AbortSignal }

/** The beginning of something that is no JSON, and may be long. */
export async function getText(
  path: string,
  { bytesMax, signal }: TextOptions,
): Promise<{ text: string; isWhole: boolean }> {
  let response: Response
  try {
    response = await fetch(path, { credentials: 'same-origin', signal })
  } catch (error) {
    if (signal?.aborted) throw error
    throw unreachable(error)
  }
  if (!response.ok || !response.body) throw await problemOf(response)
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

const part = encodeURIComponent
const streamPath = (name: string): string => `/api/streams/${part(name)}`
/** Also for addresses in `href` and `src`: `${messagePath(account, id)}/raw`. */
export const messagePath = (account: string, id: string): string =>
  `/api/mail/messages/${part(account)}/${part(id)}`

const drivePath = (name: string): string => `/api/files/drives/${part(name)}`
export const conflictPath = (name: string, id: number): string => `${drivePath(name)}/conflicts/${id}`

export type JobFilter = {
  state?: string
  kind?: string
  stream?: string
  parent?: number
  segment?: number
  olderThanMs?: number
}
export type PauseTarget = { scope: 'all' | 'stream' | 'kind'; target?: string }
export type Suggestions = { items: { text: string; what: string }[] }
export type Session = { required: boolean; signedIn: boolean }
export type ConfigEntries = { items: SettingView[] }
type Paging = { cursor?: string; limit?: number }
export type FolderPage = Page<TreeItem> & { path: string }
export type NewFolder = {
  account?: string
  path: string
  name?: string
  mode: DriveView['mode']
  policy: DriveView['policy']
}
export type RunStep = 'undo' | 'resume' | 'halt' | 'abandon'

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

  accounts: (signal?: AbortSignal) => get<{ items: MailAccountView[] }>('/api/mail/accounts', {}, signal),
  connect: (wish: { access: 'readonly' | 'modify' | 'full'; spam?: boolean; trash?: boolean }) =>
    post<{ url: string; state: string }>('/api/mail/accounts/connect', wish),
  disconnect: (name: string) => request<DoneView>('DELETE', `/api/mail/accounts/${part(name)}`),
  sync: (account?: string) => post<DoneView>('/api/mail/sync', account === undefined ? {} : { account }),
  search: (query: Paging & { q: string; account?: string; order?: 'date' | 'rank' }, signal?: AbortSignal) =>
    get<SearchAnswer>('/api/mail/search', query, signal),
  suggest: (q: string, signal?: AbortSignal) => get<Suggestions>('/api/mail/suggest', { q }, signal),
  message: (account: string, id: string, signal?: AbortSignal) =>
    get<MessageView>(messagePath(account, id), {}, signal),
  source: (account: string, id: string, options: TextOptions) =>
    getText(`${messagePath(account, id)}/raw`, options),
  thread: (account: string, id: string, signal?: AbortSignal) =>
    get<{ items: MessageView[] }>(`/api/mail/threads/${part(account)}/${part(id)}`, {}, signal),

  planArchive: (wish: ArchiveWish & { quick?: boolean }) =>
    post<ArchivePlan>('/api/mail/archive/plan', wish, SLOW_REQUEST_MS_MAX),
  startArchive: (wish: ArchiveWish & { confirm?: string }) =>
    post<ArchiveRunView>('/api/mail/archive/runs', wish, SLOW_REQUEST_MS_MAX),
  archiveRuns: (query: Paging = {}, signal?: AbortSignal) =>
    get<Page<ArchiveRunView>>('/api/mail/archive/runs', query, signal),
  archiveRun: (id: number, signal?: AbortSignal) =>
    get<ArchiveRunView>(`/api/mail/archive/runs/${id}`, {}, signal),
  /** `confirm`: the words of a deletion that waits, for `resume`. */
  stepArchive: (id: number, step: RunStep, confirm?: string) =>
    post<DoneView>(`/api/mail/archive/runs/${id}/${step}`, confirm === undefined ? {} : { confirm }),

  files: async (signal?: AbortSignal): Promise<FilesSnapshot> => {
    const [{ items: drives }, transfers] = await Promise.all([
      get<{ items: DriveView[] }>('/api/files/drives', {}, signal),
      get<TransfersView>('/api/files/transfers', {}, signal),
    ])
    return { drives, transfers }
  },
  fileAccounts: (signal?: AbortSignal) =>
    get<{ items: FileAccountView[] }>('/api/files/accounts', {}, signal),
  connectFiles: (wish: { access: 'readonly' | 'readwrite' }) =>
    post<{ url: string; state: string }>('/api/files/accounts/connect', wish),
  addFolder: (wish: NewFolder) =>
    post<{ name: string; root: string; text: string }>('/api/files/drives', wish),
  removeFolder: (name: string) => request<DoneView>('DELETE', drivePath(name)),
  syncFiles: (name: string) => post<DoneView>(`${drivePath(name)}/sync`),
  folder: (name: string, query: Paging & { folder?: string } = {}, signal?: AbortSignal) =>
    get<FolderPage>(`${drivePath(name)}/tree`, query, signal),
  fileItem: (name: string, node: string, signal?: AbortSignal) =>
    get<ItemDetail>(`${drivePath(name)}/items/${part(node)}`, {}, signal),
  fileHistory: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<ActionView>>(`${drivePath(name)}/history`, query, signal),
  reported: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<ReportedView>>(`${drivePath(name)}/reported`, query, signal),
  conflicts: (name: string, query: Paging & { state?: 'open' | 'settled' } = {}, signal?: AbortSignal) =>
    get<Page<ConflictView>>(`${drivePath(name)}/conflicts`, query, signal),
  conflict: (name: string, id: number, signal?: AbortSignal) =>
    get<ConflictDetail>(conflictPath(name, id), {}, signal),
  resolveConflict: (name: string, id: number, keep: 'both' | 'local' | 'remote') =>
    post<DoneView>(`${conflictPath(name, id)}/resolve`, { keep }),
  heldDeletes: (name: string, signal?: AbortSignal) =>
    get<HeldDeletesView>(`${drivePath(name)}/held-deletes`, {}, signal),
  allowDeletes: (name: string, count: number) => post<DoneView>(`${drivePath(name)}/held-deletes`, { count }),
  fileTrash: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<TrashEntryView>>(`${drivePath(name)}/trash`, query, signal),
  restoreFile: (name: string, id: string) => post<DoneView>(`${drivePath(name)}/trash/restore`, { id }),

  session: (signal?: AbortSignal) => get<Session>('/api/session', {}, signal),
  signIn: (token: string) => post<Session>('/api/sign-in', { token }),
  signOut: () => post<Session>('/api/sign-out'),
}
