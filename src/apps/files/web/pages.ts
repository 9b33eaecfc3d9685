/** The pages of folders. */
import type { AppPages } from '../../../../web/src/app-pages.ts'
import { formatCount } from '../../../../web/src/format.ts'
import { lazyPage } from '../../../../web/src/lazy-page.tsx'
import type { Need } from '../../../../web/src/overview/need.ts'
import type { FolderPairView } from '../api/schemas.ts'
import { folderPairNeeds } from './folder-pair-state.ts'
import { filesLink, folderPairLink } from './links.ts'
import { fileKeys, noteFiles, useFiles } from './queries.ts'

const files = lazyPage(async () => (await import('./pages/files.tsx')).FilesPage)
const drive = lazyPage(async () => (await import('./pages/folder-pair.tsx')).FolderPairPage)
const conflict = lazyPage(async () => (await import('./pages/conflict.tsx')).ConflictPage)

export const filesPages: AppPages = {
  name: 'files',
  pages: [
    { path: '/files', page: files },
    { path: '/files/:name', page: drive },
    { path: '/files/:name/conflicts/:id', page: conflict },
  ],
  navigation: [
    { href: filesLink(), text: 'Files', icon: 'folder', covers: ['/files/'], page: files, place: 20 },
  ],
  live: { stale: {}, polled: [fileKeys.files, fileKeys.fileParts], onSnapshot: noteFiles },
  account: async () => (await import('./account.tsx')).filesPart,
  useNeeds: () => useFiles().data?.drives.flatMap(needsOfFolderPair) ?? [],
  stream: {
    home: (name) => folderPairLink(name),
    /** The mark is a link of OneDrive, which means nothing to people; its plans are counted. */
    mark: ({ markAt }) => (markAt > 0 ? `plan ${formatCount(markAt)}` : '–'),
  },
}

export function needsOfFolderPair(pair: FolderPairView): Need[] {
  return folderPairNeeds(pair).map(({ key, text, view }) => ({
    key: `files ${key}`,
    tone: 'danger',
    since: null,
    resume: null,
    title: view === 'deletes' ? 'Many deletions wait for your yes' : 'A conflict is yours to decide',
    text: `${pair.name}: ${text}. Nothing is lost until you decide, and nothing afterwards.`,
    action: {
      text: 'Look at it',
      href:
        view === 'deletes' ? `${folderPairLink(pair.name)}#deletes` : folderPairLink(pair.name, 'conflicts'),
    },
  }))
}
