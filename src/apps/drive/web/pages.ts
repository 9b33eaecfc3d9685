/** The page of Drives: how far each account and each of its drives is, and what is found by its name only. */
import type { AppPages } from '../../../../web/src/app-pages.ts'
import { lazyPage } from '../../../../web/src/lazy-page.tsx'
import { driveKeys } from './queries.ts'

const drives = lazyPage(async () => (await import('./pages/drives.tsx')).DrivesPage)

export const drivePages: AppPages = {
  name: 'drive',
  pages: [{ path: '/drive', page: drives, members: true }],
  navigation: [
    { href: '/drive', text: 'Drive', icon: 'archive', covers: [], page: drives, members: true, place: 25 },
  ],
  live: { stale: { 'snapshot-drive': [driveKeys.status] }, polled: [driveKeys.status] },
  stream: { ofAccount: (account) => `drive:${account}` },
}
