/** The pages of folders. */
import type { AppPages } from '../../../../web/src/app-pages.ts'
import { formatCount } from '../../../../web/src/format.ts'
import { lazyPage } from '../../../../web/src/lazy-page.tsx'
import type { Need } from '../../../../web/src/overview/need.ts'
import type { FolderView } from '../api/schemas.ts'
import { folderNeeds } from './folder-state.ts'
import { filesLink, folderLink } from './links.ts'
import { fileKeys, noteFiles, useFiles } from './queries.ts'

const files = lazyPage(async () => (await import('./pages/files.tsx')).FilesPage)
const folder = lazyPage(async () => (await import('./pages/folder.tsx')).FolderPage)
const conflict = lazyPage(async () => (await import('./pages/conflict.tsx')).ConflictPage)

export const filesPages: AppPages = {
  name: 'files',
  pages: [
    { path: '/files', page: files },
    { path: '/files/:name', page: folder },
    { path: '/files/:name/conflicts/:id', page: conflict },
  ],
  navigation: [
    { href: filesLink(), text: 'Files', icon: 'folder', covers: ['/files/'], page: files, place: 20 },
  ],
  live: { stale: {}, polled: [fileKeys.files, fileKeys.fileParts], onSnapshot: noteFiles },
  account: async () => (await import('./account.tsx')).filesPart,
  useNeeds: () => useFiles().data?.folders.flatMap(needsOfFolder) ?? [],
  stream: {
    home: (name) => folderLink(name),
    place: (round) => (round <= 0 ? 'the beginning' : `round ${formatCount(round)}`),
  },
}

export function needsOfFolder(folder: FolderView): Need[] {
  return folderNeeds(folder).map(({ key, text, view }) => ({
    key: `files ${key}`,
    tone: 'danger',
    since: null,
    resume: null,
    title: view === 'deletes' ? 'Many deletions wait for your yes' : 'A conflict is yours to decide',
    text: `${folder.name}: ${text}. Nothing is lost until you decide, and nothing afterwards.`,
    action: {
      text: 'Look at it',
      href: view === 'deletes' ? `${folderLink(folder.name)}#deletes` : folderLink(folder.name, 'conflicts'),
    },
  }))
}
