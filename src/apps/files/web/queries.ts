/** What several pages of folders ask for. */
import { type QueryClient, type QueryKey, useQuery } from '@tanstack/preact-query'
import type { FilesSnapshot } from '../api/schemas.ts'
import { filesApi } from './api.ts'

export const fileKeys = {
  files: ['files'],
  /** Trees, histories and lists of a folder. */
  fileParts: ['file-parts'],
} as const satisfies Record<string, QueryKey>

/** Where more changed than how far transfers are, what is shown of folders is looked at again. */
export function noteFiles(client: QueryClient, data: unknown): readonly QueryKey[] {
  const now = data as FilesSnapshot
  const before = client.getQueryData<FilesSnapshot>(fileKeys.files)
  client.setQueryData(fileKeys.files, now)
  return JSON.stringify(before?.folders) === JSON.stringify(now.folders) ? [] : [fileKeys.fileParts]
}

export const useFiles = () =>
  useQuery({
    queryKey: fileKeys.files,
    queryFn: ({ signal }) => filesApi.files(signal),
    // Events keep it fresh, or the polling that takes their place.
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: (query) => (query.state.data ? false : 3_000),
  })
