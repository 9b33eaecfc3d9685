/** The routes of object ingest as functions, what its pages ask for, and their addresses. */
import { type QueryKey, useQuery } from '@tanstack/preact-query'
import { useEffect } from 'preact/hooks'
import { get, type Page, type Paging, part, post } from '../../../../web/src/api.ts'
import { withQuery } from '../../../../web/src/links.ts'
import { type PagedList, usePagedList } from '../../../../web/src/paged-list.ts'
import type { DoneView } from '../../../app/schemas.ts'
import type { PipelineStatusView, QuarantinedView, ShardView, UnparsedView } from '../api/schemas.ts'

export type ObjectState = ShardView['state']

export const ingestKeys = {
  pipelines: ['ingest-pipelines'],
  object: ['ingest-object'],
  unparsed: ['ingest-unparsed'],
  objects: ['list', 'ingest-objects'],
  quarantine: ['list', 'ingest-quarantine'],
} as const satisfies Record<string, QueryKey>

export const ingestLink = (): string => '/ingest'
export const pipelineLink = (name: string, query: { show?: string; state?: string } = {}): string =>
  withQuery(`/ingest/${encodeURIComponent(name)}`, query)
export const objectLink = ({ pipeline, id }: Pick<ShardView, 'pipeline' | 'id'>): string =>
  `/ingest/${encodeURIComponent(pipeline)}/objects/${encodeURIComponent(id)}`

/** The last part of its address: many share the rest. */
export const objectName = (uri: string): string => uri.split('/').findLast((piece) => piece !== '') ?? uri

const LOOK_MS = 3_000
const PAGE_ROWS = 100
const pathOf = (name: string): string => `/api/ingest/pipelines/${part(name)}`

export const usePipelines = () =>
  useQuery({
    queryKey: ingestKeys.pipelines,
    queryFn: ({ signal }) => get<{ pipelines: PipelineStatusView[] }>('/api/ingest/pipelines', {}, signal),
    refetchInterval: LOOK_MS,
  })

export const usePipeline = (name: string) =>
  useQuery({
    queryKey: [...ingestKeys.pipelines, name],
    queryFn: ({ signal }) => get<PipelineStatusView>(pathOf(name), {}, signal),
    refetchInterval: LOOK_MS,
  })

export const useObject = (name: string, shard: string) =>
  useQuery({
    queryKey: [...ingestKeys.object, name, shard],
    queryFn: ({ signal }) => get<ShardView>(`${pathOf(name)}/shards/${part(shard)}`, {}, signal),
    refetchInterval: LOOK_MS,
  })

export const useUnparsed = (name: string) =>
  useQuery({
    queryKey: [...ingestKeys.unparsed, name],
    queryFn: ({ signal }) => get<{ items: UnparsedView[] }>(`${pathOf(name)}/unparsed`, {}, signal),
    refetchInterval: LOOK_MS,
  })

export const useObjects = (name: string, state: ObjectState | undefined) =>
  useLook(
    usePagedList<ShardView>({
      key: ['ingest-objects', name, state],
      page: (cursor, signal) => {
        const query: Paging & { state?: ObjectState } = { cursor, limit: PAGE_ROWS, state }
        return get<Page<ShardView>>(`${pathOf(name)}/shards`, query, signal)
      },
    }),
  )

export const useQuarantine = (name: string, shard?: string) =>
  useLook(
    usePagedList<QuarantinedView>({
      key: ['ingest-quarantine', name, shard],
      page: (cursor, signal) =>
        get<Page<QuarantinedView>>(`${pathOf(name)}/quarantine`, { cursor, limit: PAGE_ROWS, shard }, signal),
    }),
  )

/** Looked at again and again while it is short: members hear of nothing, and a replay is done later than it is asked for. */
function useLook<T>(list: PagedList<T>): PagedList<T> {
  const { isLive, refetch } = list
  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => void refetch({ cancelRefetch: false }), LOOK_MS)
    return () => clearInterval(timer)
  }, [isLive, refetch])
  return list
}

/** Of one record where `at` is given, of all of the object otherwise. */
export const replay = (of: { pipeline: string; shard: string; at?: number }): Promise<DoneView> =>
  post<DoneView>(
    `${pathOf(of.pipeline)}/shards/${part(of.shard)}/replay`,
    of.at === undefined ? {} : { at: [of.at] },
  )

export const reconcile = (name: string): Promise<DoneView> => post<DoneView>(`${pathOf(name)}/reconcile`)
