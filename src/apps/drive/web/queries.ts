/** The routes of Drive as functions, and what its page asks for. */
import { type QueryKey, useInfiniteQuery, useQuery } from '@tanstack/preact-query'
import { get, type Page, post } from '../../../../web/src/api.ts'
import { useLookMs } from '../../../../web/src/live-state.ts'
import type { DoneView } from '../../../app/schemas.ts'
import type { DriveStatusView, SkippedFileView } from '../api/schemas.ts'

export const driveKeys = {
  status: ['drive-status'],
  skipped: ['drive-skipped'],
} as const satisfies Record<string, QueryKey>

const LOOK_MS = 5_000
const PAGE_FILES = 50

export const useDriveStatus = () =>
  useQuery({
    queryKey: driveKeys.status,
    queryFn: ({ signal }) => get<{ accounts: DriveStatusView[] }>('/api/drive/status', {}, signal),
    refetchInterval: useLookMs(LOOK_MS),
  })

export const useSkipped = (account: string, code: string | undefined, isWanted: boolean) =>
  useInfiniteQuery({
    queryKey: [...driveKeys.skipped, account, code],
    queryFn: ({ pageParam, signal }) =>
      get<Page<SkippedFileView>>(
        '/api/drive/skipped',
        { account, code, cursor: pageParam, limit: PAGE_FILES },
        signal,
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    enabled: isWanted,
  })

export const syncDrive = (account: string): Promise<DoneView> =>
  post<DoneView>('/api/drive/sync', { account })
