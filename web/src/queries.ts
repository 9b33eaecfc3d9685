/** What several pages ask for: keys, hooks, and how live events refresh them. */
import { QueryCache, QueryClient, type QueryKey, useQuery, useQueryClient } from '@tanstack/preact-query'
import { useCallback, useEffect, useState } from 'preact/hooks'
import type { DoneView, Overview, StreamView } from '../../src/server/engine-api/schemas.ts'
import type { DriveView, FilesSnapshot } from '../../src/server/files-api/schemas.ts'
import { api } from './api.ts'
import { showToast } from './components/toast-store.ts'
import { createLive, type Live, type LiveState } from './live.ts'
import { ApiError } from './problem.ts'
import { onSignedOut } from './session.ts'
import { createStore, useStore } from './store.ts'

export const keys = {
  overview: ['overview'],
  series: ['series'],
  jobs: ['jobs'],
  job: ['job'],
  bad: ['bad'],
  segments: ['segments'],
  frontier: ['frontier'],
  accounts: ['accounts'],
  schedules: ['schedules'],
  limits: ['limits'],
  archive: ['archive'],
  config: ['config'],
  search: ['search'],
  message: ['message'],
  files: ['files'],
  fileAccounts: ['file-accounts'],
  fileParts: ['file-parts'],
} as const satisfies Record<string, QueryKey>

/** What an event makes stale. A snapshot brings its overview along, and is sent only when something changed. */
const STALE_BY_EVENT: Record<string, readonly QueryKey[]> = {
  snapshot: [keys.jobs, keys.job, keys.segments, keys.frontier, keys.limits, keys.archive],
  'snapshot-mail': [keys.accounts],
  // Trees, histories and lists of a folder: see noteFiles.
  'files-changed': [keys.fileParts],
  mark: [keys.segments, keys.frontier, keys.accounts],
  job: [keys.jobs, keys.job, keys.segments, keys.frontier, keys.archive],
  bad: [keys.bad, keys.segments, keys.frontier],
  pause: [keys.accounts, keys.schedules],
  alert: [keys.accounts],
  budget: [keys.limits],
}
const ALL_LIVE = [...new Set(Object.values(STALE_BY_EVENT).flat())]

/** Many events a second must not become many requests a second. */
const REFRESH_MS_MIN = 2_000

export function createQueries(): QueryClient {
  const queryCache = new QueryCache({
    onError: (error) => {
      if (error instanceof ApiError && error.status === 401) onSignedOut()
    },
  })
  return new QueryClient({
    queryCache,
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        // What the server refuses it refuses again; only what did not reach it is worth another try.
        retry: (failures, error) => failures < 2 && !(error instanceof ApiError && isFinal(error)),
        // A server on this machine is reachable without any network.
        networkMode: 'always',
      },
      mutations: { networkMode: 'always' },
    },
  })
}

const isFinal = (error: ApiError): boolean =>
  error.status >= 400 && error.status < 500 && error.status !== 429

const liveState = createStore<LiveState>('connecting')
export const useLive = (): LiveState => useStore(liveState)

/** Begins the live connection of this page. */
export function startLive(client: QueryClient): Live {
  const refresh = createRefresher(client)
  const live = createLive({
    url: '/api/events',
    fetch: (...args) => fetch(...args),
    onState: (state) => {
      liveState.set(state)
      if (state === 'signed-out') onSignedOut()
    },
    onOpen: ({ isFirst }) => {
      if (!isFirst) refresh([keys.overview, keys.files, ...ALL_LIVE])
    },
    onEvent: (type, data) => {
      if (type === 'snapshot' && data) client.setQueryData(keys.overview, data as Overview)
      const isFiles = type === 'snapshot-files' && data
      const stale =
        STALE_BY_EVENT[isFiles && noteFiles(client, data as FilesSnapshot) ? 'files-changed' : type]
      if (stale) refresh(stale)
    },
    poll: async () => {
      client.setQueryData(keys.overview, await api.overview())
      refresh([keys.files, ...ALL_LIVE])
    },
  })
  live.start()
  return live
}

/** Whether more changed than how far transfers are: then what is shown of folders is looked at again. */
function noteFiles(client: QueryClient, now: FilesSnapshot): boolean {
  const before = client.getQueryData<FilesSnapshot>(keys.files)
  client.setQueryData(keys.files, now)
  return JSON.stringify(before?.drives) !== JSON.stringify(now.drives)
}

function createRefresher(client: QueryClient): (stale: readonly QueryKey[]) => void {
  const waiting = new Map<string, QueryKey>()
  let isTimed = false
  const flush = (): void => {
    isTimed = false
    for (const queryKey of waiting.values()) void client.invalidateQueries({ queryKey })
    waiting.clear()
  }
  return (stale) => {
    for (const key of stale) waiting.set(String(key[0]), key)
    if (!isTimed) setTimeout(flush, REFRESH_MS_MIN)
    isTimed = true
  }
}

export const useOverview = () =>
  useQuery({
    queryKey: keys.overview,
    queryFn: ({ signal }) => api.overview(signal),
    // Events keep it fresh, or the polling that takes their place.
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: (query) => (query.state.data ? false : 3_000),
  })

export function useStreamView(name: string): StreamView | undefined {
  return useOverview().data?.streams.find((stream) => stream.name === name)
}

export const useAccounts = () =>
  useQuery({ queryKey: keys.accounts, queryFn: ({ signal }) => api.accounts(signal), staleTime: 15_000 })

export const useFiles = () =>
  useQuery({
    queryKey: keys.files,
    queryFn: ({ signal }) => api.files(signal),
    // Events keep it fresh, or the polling that takes their place.
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: (query) => (query.state.data ? false : 3_000),
  })

export function useDrive(name: string): DriveView | undefined {
  return useFiles().data?.drives.find((drive) => drive.name === name)
}

export const useFileAccounts = () =>
  useQuery({ queryKey: keys.fileAccounts, queryFn: ({ signal }) => api.fileAccounts(signal) })

export const useFrontier = (name: string, range: { cells?: number; from?: number; to?: number } = {}) =>
  useQuery({
    queryKey: [...keys.frontier, name, range],
    queryFn: ({ signal }) => api.frontier(name, range, signal),
    placeholderData: (before) => (before?.stream === name ? before : undefined),
  })

export type ActionOptions<Input> = {
  run: (input: Input) => Promise<DoneView>
  invalidates?: readonly QueryKey[]
  done?: (answer: DoneView) => void
}

/** A change: says as a toast what came of it, and refreshes what it touched. */
export function useAction<Input = void>(options: ActionOptions<Input>) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const start = async (input: Input): Promise<boolean> => {
    setBusy(true)
    try {
      const answer = await options.run(input)
      showToast(answer.text, { tone: 'accent' })
      for (const queryKey of [keys.overview, ...(options.invalidates ?? [])]) {
        void client.invalidateQueries({ queryKey })
      }
      options.done?.(answer)
      return true
    } catch (error) {
      showToast(describe(error), { tone: 'danger' })
      return false
    } finally {
      setBusy(false)
    }
  }
  return { start, busy }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'That did not work.'
  const hint = error instanceof ApiError ? error.hint : undefined
  return hint ? `${error.message} ${hint}` : error.message
}

/** The time, for ages and countdowns that go on; every user of the same step shares a timer's beat. */
export function useNow(stepMs = 1_000): number {
  const [now, setNow] = useState(Date.now)
  const tick = useCallback(() => setNow(Date.now()), [])
  useEffect(() => {
    const timer = setInterval(tick, stepMs)
    return () => clearInterval(timer)
  }, [stepMs, tick])
  return now
}
