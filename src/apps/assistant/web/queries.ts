/** The routes of the assistant as functions, what its pages ask for, and their addresses. */
import { type QueryKey, useQuery } from '@tanstack/preact-query'
import { get, type Page, part, post, request } from '../../../../web/src/api.ts'
import { withQuery } from '../../../../web/src/links.ts'
import { usePagedList } from '../../../../web/src/paged-list.ts'
import type { DoneView } from '../../../app/schemas.ts'
import type {
  AssistAccountView,
  BriefingView,
  CallView,
  CategoryView,
  ExampleView,
  ReplayedView,
  RoutedView,
  RuleView,
  RunDetailView,
  RunView,
  SettingsView,
  ThreadDetailView,
  ThreadMailView,
  ThreadView,
} from '../api/schemas.ts'

export const assistKeys = {
  accounts: ['assist-accounts'],
  threads: ['list', 'assist-threads'],
  thread: ['assist-thread'],
  mail: ['assist-mail'],
  rules: ['assist-rules'],
  examples: ['assist-examples'],
  costs: ['assist-costs'],
  runs: ['assist-runs'],
  briefing: ['assist-briefing'],
  settings: ['assist-settings'],
} as const satisfies Record<string, QueryKey>

/** What a change of one thread may change elsewhere. */
export const TOUCHED = [
  assistKeys.accounts,
  assistKeys.threads,
  assistKeys.thread,
  assistKeys.rules,
  assistKeys.examples,
]

export const assistLink = (query: { show?: string; category?: string } = {}): string =>
  withQuery('/assist', query)
export const threadLink = ({ account, thread }: Pick<ThreadView, 'account' | 'thread'>): string =>
  `/assist/${encodeURIComponent(account)}/threads/${encodeURIComponent(thread)}`
export const runLink = ({ id }: Pick<RunView, 'id'>): string => `/assist/runs/${id}`

const LOOK_MS = 3_000
const PAGE_ROWS = 100
const threadPath = (account: string, thread: string): string =>
  `/api/assist/accounts/${part(account)}/threads/${part(thread)}`

export const useAssistAccounts = () =>
  useQuery({
    queryKey: assistKeys.accounts,
    queryFn: ({ signal }) => get<{ items: AssistAccountView[] }>('/api/assist/accounts', {}, signal),
    refetchInterval: LOOK_MS,
  })

export type ThreadFilter = { category?: string; status?: string }

export const useThreads = (filter: ThreadFilter) =>
  usePagedList<ThreadView>({
    key: ['assist-threads', filter],
    page: (cursor, signal) =>
      get<Page<ThreadView>>('/api/assist/threads', { ...filter, cursor, limit: PAGE_ROWS }, signal),
  })

export const useThread = (account: string, thread: string) =>
  useQuery({
    queryKey: [...assistKeys.thread, account, thread],
    queryFn: ({ signal }) => get<ThreadDetailView>(threadPath(account, thread), {}, signal),
    refetchInterval: LOOK_MS,
  })

/** Read from Gmail: once, and again when a new message was seen. */
export const useThreadMail = ({ account, thread, lastMessageAtMs }: ThreadView) =>
  useQuery({
    queryKey: [...assistKeys.mail, account, thread, lastMessageAtMs],
    queryFn: ({ signal }) => get<ThreadMailView>(`${threadPath(account, thread)}/messages`, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  })

export const useRules = () =>
  useQuery({
    queryKey: assistKeys.rules,
    queryFn: ({ signal }) => get<{ items: RuleView[] }>('/api/assist/rules', {}, signal),
  })

export const useExamples = () =>
  useQuery({
    queryKey: assistKeys.examples,
    queryFn: ({ signal }) => get<{ items: ExampleView[] }>('/api/assist/examples', {}, signal),
  })

export const useCosts = () =>
  useQuery({
    queryKey: assistKeys.costs,
    queryFn: ({ signal }) => get<{ items: CallView[] }>('/api/assist/costs', {}, signal),
    refetchInterval: LOOK_MS,
  })

export const useRuns = () =>
  useQuery({
    queryKey: assistKeys.runs,
    queryFn: ({ signal }) => get<{ items: RunView[] }>('/api/assist/runs', {}, signal),
    refetchInterval: LOOK_MS,
  })

export const useRun = (id: string) =>
  useQuery({
    queryKey: [...assistKeys.runs, id],
    queryFn: ({ signal }) => get<RunDetailView>(`/api/assist/runs/${part(id)}`, {}, signal),
    refetchInterval: LOOK_MS,
  })

export const useBriefing = () =>
  useQuery({
    queryKey: assistKeys.briefing,
    queryFn: ({ signal }) => get<{ items: BriefingView[] }>('/api/assist/briefing', {}, signal),
  })

export const useSettings = (account: string) =>
  useQuery({
    queryKey: [...assistKeys.settings, account],
    queryFn: ({ signal }) => get<SettingsView>(`/api/assist/accounts/${part(account)}/settings`, {}, signal),
  })

export const assistApi = {
  onboard: (account: string) => post<DoneView>('/api/assist/accounts', { account }),
  sync: (account: string) => post<DoneView>('/api/assist/sync', { account }),
  agreeToCosts: (account: string) =>
    post<DoneView>(`/api/assist/accounts/${encodeURIComponent(account)}/backlog`),
  setActive: (account: string, isActive: boolean) =>
    request<DoneView>('PUT', `/api/assist/accounts/${part(account)}`, { body: { isActive } }),
  reclassify: ({ account, thread }: Pick<ThreadView, 'account' | 'thread'>, category: CategoryView) =>
    post<DoneView>(`${threadPath(account, thread)}/category`, { category }),
  draft: ({ account, thread }: Pick<ThreadView, 'account' | 'thread'>, instruction: string) =>
    post<DoneView>(`${threadPath(account, thread)}/draft`, { instruction }),
  rework: ({ account, thread }: Pick<ThreadView, 'account' | 'thread'>, instruction: string) =>
    post<DoneView>(`${threadPath(account, thread)}/rework`, { instruction }),
  edit: ({ account, thread }: Pick<ThreadView, 'account' | 'thread'>, text: string) =>
    request<DoneView>('PUT', `${threadPath(account, thread)}/draft`, { body: { text } }),
  approve: ({ account, thread }: Pick<ThreadView, 'account' | 'thread'>) =>
    post<DoneView>(`${threadPath(account, thread)}/approve`),
  undo: ({ account, thread }: Pick<ThreadView, 'account' | 'thread'>, event: number) =>
    post<DoneView>(`${threadPath(account, thread)}/events/${event}/undo`),
  addRule: (rule: Pick<RuleView, 'account' | 'from' | 'subject' | 'category'>) =>
    post<DoneView>('/api/assist/rules', rule),
  changeRule: (id: number, to: Partial<Pick<RuleView, 'isOn' | 'from' | 'subject' | 'category'>>) =>
    request<DoneView>('PUT', `/api/assist/rules/${id}`, { body: to }),
  changeExample: (id: number, to: Pick<ExampleView, 'isOn'>) =>
    request<DoneView>('PUT', `/api/assist/examples/${id}`, { body: to }),
  removeExample: (id: number) => request<DoneView>('DELETE', `/api/assist/examples/${id}`),
  removeRule: (id: number) => request<DoneView>('DELETE', `/api/assist/rules/${id}`),
  replay: (id: number) => post<ReplayedView>(`/api/assist/rules/${id}/replay`),
  routeTest: (account: string, mail: { from: string; subject: string; headers: string }) =>
    post<RoutedView>(`/api/assist/accounts/${part(account)}/route-test`, mail),
  saveSettings: (account: string, settings: Pick<SettingsView, 'toml'>) =>
    request<DoneView>('PUT', `/api/assist/accounts/${part(account)}/settings`, { body: settings }),
}
