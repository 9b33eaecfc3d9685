/** The routes of folders as functions. */

import { get, type Page, type Paging, part, post, request } from '../../../../web/src/api.ts'
import type { DoneView } from '../../../app/schemas.ts'
import type {
  ActionView,
  ConflictDetail,
  ConflictView,
  DrivesView,
  FilesSnapshot,
  FolderSettings,
  FolderView,
  HeldDeletesView,
  ItemDetail,
  ReportedView,
  TransfersView,
  TrashEntryView,
  TreeItem,
} from '../api/schemas.ts'

const folderPath = (name: string): string => `/api/files/folders/${part(name)}`
export const conflictPath = (name: string, id: number): string => `${folderPath(name)}/conflicts/${id}`

export type TreePage = Page<TreeItem> & { path: string }
export type NewFolder = {
  account?: string
  drive?: string
  path: string
  name?: string
  mode: FolderView['mode']
  policy: FolderView['policy']
}

export const filesApi = {
  files: async (signal?: AbortSignal): Promise<FilesSnapshot> => {
    const [{ items: folders }, transfers] = await Promise.all([
      get<{ items: FolderView[] }>('/api/files/folders', {}, signal),
      get<TransfersView>('/api/files/transfers', {}, signal),
    ])
    return { folders, transfers }
  },
  drives: (account: string, signal?: AbortSignal) =>
    get<DrivesView>('/api/files/drives', { account }, signal),
  addFolder: (wish: NewFolder) =>
    post<{ name: string; root: string; text: string }>('/api/files/folders', wish),
  settings: (name: string, signal?: AbortSignal) =>
    get<FolderSettings>(`${folderPath(name)}/settings`, {}, signal),
  setSettings: (name: string, to: Partial<FolderSettings>) =>
    request<FolderSettings>('PUT', `${folderPath(name)}/settings`, { body: to }),
  removeFolder: (name: string) => request<DoneView>('DELETE', folderPath(name)),
  syncFiles: (name: string) => post<DoneView>(`${folderPath(name)}/sync`),
  folder: (name: string, query: Paging & { folder?: string } = {}, signal?: AbortSignal) =>
    get<TreePage>(`${folderPath(name)}/tree`, query, signal),
  fileItem: (name: string, node: string, signal?: AbortSignal) =>
    get<ItemDetail>(`${folderPath(name)}/items/${part(node)}`, {}, signal),
  fileHistory: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<ActionView>>(`${folderPath(name)}/history`, query, signal),
  reported: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<ReportedView>>(`${folderPath(name)}/reported`, query, signal),
  conflicts: (name: string, query: Paging & { state?: 'open' | 'settled' } = {}, signal?: AbortSignal) =>
    get<Page<ConflictView>>(`${folderPath(name)}/conflicts`, query, signal),
  conflict: (name: string, id: number, signal?: AbortSignal) =>
    get<ConflictDetail>(conflictPath(name, id), {}, signal),
  resolveConflict: (name: string, id: number, keep: 'both' | 'local' | 'remote') =>
    post<DoneView>(`${conflictPath(name, id)}/resolve`, { keep }),
  heldDeletes: (name: string, signal?: AbortSignal) =>
    get<HeldDeletesView>(`${folderPath(name)}/held-deletes`, {}, signal),
  allowDeletes: (name: string, count: number) =>
    post<DoneView>(`${folderPath(name)}/held-deletes`, { count }),
  fileTrash: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<TrashEntryView>>(`${folderPath(name)}/trash`, query, signal),
  restoreFile: (name: string, id: string) => post<DoneView>(`${folderPath(name)}/trash/restore`, { id }),
}
