/** The routes of folders as functions. */

import { get, type Page, type Paging, part, post, request } from '../../../../web/src/api.ts'
import type { DoneView } from '../../../app/schemas.ts'
import type {
  ActionView,
  ConflictDetail,
  ConflictView,
  FilesSnapshot,
  FolderPairView,
  HeldDeletesView,
  ItemDetail,
  ReportedView,
  TransfersView,
  TrashEntryView,
  TreeItem,
} from '../api/schemas.ts'

const folderPairPath = (name: string): string => `/api/files/drives/${part(name)}`
export const conflictPath = (name: string, id: number): string => `${folderPairPath(name)}/conflicts/${id}`

export type FolderPage = Page<TreeItem> & { path: string }
export type NewFolder = {
  account?: string
  path: string
  name?: string
  mode: FolderPairView['mode']
  policy: FolderPairView['policy']
}

export const filesApi = {
  files: async (signal?: AbortSignal): Promise<FilesSnapshot> => {
    const [{ items: pairs }, transfers] = await Promise.all([
      get<{ items: FolderPairView[] }>('/api/files/drives', {}, signal),
      get<TransfersView>('/api/files/transfers', {}, signal),
    ])
    return { drives: pairs, transfers }
  },
  addFolder: (wish: NewFolder) =>
    post<{ name: string; root: string; text: string }>('/api/files/drives', wish),
  removeFolder: (name: string) => request<DoneView>('DELETE', folderPairPath(name)),
  syncFiles: (name: string) => post<DoneView>(`${folderPairPath(name)}/sync`),
  folder: (name: string, query: Paging & { folder?: string } = {}, signal?: AbortSignal) =>
    get<FolderPage>(`${folderPairPath(name)}/tree`, query, signal),
  fileItem: (name: string, node: string, signal?: AbortSignal) =>
    get<ItemDetail>(`${folderPairPath(name)}/items/${part(node)}`, {}, signal),
  fileHistory: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<ActionView>>(`${folderPairPath(name)}/history`, query, signal),
  reported: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<ReportedView>>(`${folderPairPath(name)}/reported`, query, signal),
  conflicts: (name: string, query: Paging & { state?: 'open' | 'settled' } = {}, signal?: AbortSignal) =>
    get<Page<ConflictView>>(`${folderPairPath(name)}/conflicts`, query, signal),
  conflict: (name: string, id: number, signal?: AbortSignal) =>
    get<ConflictDetail>(conflictPath(name, id), {}, signal),
  resolveConflict: (name: string, id: number, keep: 'both' | 'local' | 'remote') =>
    post<DoneView>(`${conflictPath(name, id)}/resolve`, { keep }),
  heldDeletes: (name: string, signal?: AbortSignal) =>
    get<HeldDeletesView>(`${folderPairPath(name)}/held-deletes`, {}, signal),
  allowDeletes: (name: string, count: number) =>
    post<DoneView>(`${folderPairPath(name)}/held-deletes`, { count }),
  fileTrash: (name: string, query: Paging = {}, signal?: AbortSignal) =>
    get<Page<TrashEntryView>>(`${folderPairPath(name)}/trash`, query, signal),
  restoreFile: (name: string, id: string) => post<DoneView>(`${folderPairPath(name)}/trash/restore`, { id }),
}
