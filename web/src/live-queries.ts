/** How live events refresh what pages have asked for. */
import type { QueryClient, QueryKey } from '@tanstack/preact-query'
import type { Overview } from '../../src/app/schemas.ts'
import { appPages } from '../../src/apps/pages.ts'
import { api, get } from './api.ts'
import { createLive, type Live } from './live.ts'
import { liveState } from './live-state.ts'
import { keys } from './queries.ts'
import { isMember, onSignedOut, sessionHeaders } from './session.ts'

/** What an event makes stale. A snapshot brings its overview along, and is sent only when something changed. */
const STALE_BY_EVENT: Record<string, readonly QueryKey[]> = {
  snapshot: [keys.jobs, keys.job, keys.segments, keys.frontier, keys.limits],
  mark: [keys.segments, keys.frontier, keys.accounts],
  job: [keys.jobs, keys.job, keys.segments, keys.frontier],
  bad: [keys.bad, keys.segments, keys.frontier],
  pause: [keys.accounts, keys.schedules],
  alert: [keys.accounts],
  budget: [keys.limits],
}
const ALL_LIVE = [
  ...new Set([
    ...Object.values(STALE_BY_EVENT).flat(),
    ...appPages.flatMap(({ live }) => [...Object.values(live?.stale ?? {}).flat(), ...(live?.polled ?? [])]),
  ]),
]

/** What pages of members show of how things are; they are told that it has changed, and not what. */
const MEMBER_KEYS = [keys.sync, keys.accounts, ...appPages.flatMap(({ live }) => live?.polled ?? [])]

/** Many events a second must not become many requests a second. */
const REFRESH_MS_MIN = 2_000

/** Begins the live connection of this page. */
export function startLive(client: QueryClient): Live {
  const refresh = createRefresher(client)
  const live = createLive({
    url: '/api/events',
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init?.headers, ...sessionHeaders() } }),
    onState: (state) => {
      liveState.set(state)
      if (state === 'signed-out') onSignedOut()
    },
    onOpen: ({ isFirst }) => {
      if (!isFirst) refresh(isMember() ? MEMBER_KEYS : [keys.overview, ...ALL_LIVE])
    },
    onEvent: (type, data) => {
      if (type === 'snapshot' && data) client.setQueryData(keys.overview, data as Overview)
      const stale = type === 'news' ? MEMBER_KEYS : staleBy(client, type, data)
      if (stale.length > 0) refresh(stale)
    },
    poll: async () => {
      // Pages of members look by themselves while they hear nothing.
      if (isMember()) {
        await get('/api/me')
        return
      }
      client.setQueryData(keys.overview, await api.overview())
      refresh(ALL_LIVE)
    },
  })
  live.start()
  return live
}

function staleBy(client: QueryClient, type: string, data: unknown): readonly QueryKey[] {
  return [
    ...(STALE_BY_EVENT[type] ?? []),
    ...appPages.flatMap(({ name, live }) => [
      ...(live?.stale[type] ?? []),
      ...(type === `snapshot-${name}` && data ? (live?.onSnapshot?.(client, data) ?? []) : []),
    ]),
  ]
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
