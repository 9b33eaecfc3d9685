/** What several pages ask for: keys, hooks, and how live events refresh them. */
import { QueryCache, QueryClient, type QueryKey, useQuery, useQueryClient } from '@tanstack/preact-query'
import { useCallback, useEffect, useState } from 'preact/hooks'
import type { DoneView } from '../../src/app/schemas.ts'
import { api } from './api.ts'
import { showToast } from './components/toast-store.ts'
import { ApiError } from './problem.ts'
import { isMember, onSignedOut } from './session.ts'

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
  config: ['config'],
  users: ['users'],
  sync: ['sync'],
} as const satisfies Record<string, QueryKey>

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

export const useOverview = () =>
  useQuery({
    queryKey: keys.overview,
    queryFn: ({ signal }) => api.overview(signal),
    // Events keep it fresh, or the polling that takes their place.
    staleTime: Number.POSITIVE_INFINITY,
    // What the engine does is for admins.
    enabled: !isMember(),
    refetchInterval: (query) => (query.state.data ? false : 3_000),
  })

/** For the hooks of apps, too, which pick their own. */
export const accountsQuery = {
  queryKey: keys.accounts,
  queryFn: ({ signal }: { signal: AbortSignal }) => api.accounts(signal),
  staleTime: 15_000,
}

export const useAccounts = () => useQuery(accountsQuery)

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
  const [isDone, setDone] = useState(false)
  const start = async (input: Input): Promise<boolean> => {
    setBusy(true)
    try {
      const answer = await options.run(input)
      showToast(answer.text, { tone: 'accent' })
      for (const queryKey of [keys.overview, ...(options.invalidates ?? [])]) {
        void client.invalidateQueries({ queryKey })
      }
      setDone(true)
      options.done?.(answer)
      return true
    } catch (error) {
      showToast(describe(error), { tone: 'danger' })
      return false
    } finally {
      setBusy(false)
    }
  }
  return { start, busy, isDone }
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
