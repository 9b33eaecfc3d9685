/** Which page stands at which address, and what the navigation lists. A new page is a line here. */
import type { IconName } from './components/icon.tsx'
import { type LazyPage, lazyPage } from './lazy-page.tsx'

export type PageRoute = { path: string; page: LazyPage }

const overview = lazyPage(async () => (await import('./pages/overview.tsx')).OverviewPage)
const stream = lazyPage(async () => (await import('./pages/stream.tsx')).StreamPage)
const work = lazyPage(async () => (await import('./pages/work.tsx')).WorkPage)
const jobs = lazyPage(async () => (await import('./pages/jobs.tsx')).JobsPage)
const job = lazyPage(async () => (await import('./pages/job.tsx')).JobPage)
const search = lazyPage(async () => (await import('./pages/search.tsx')).SearchPage)
const message = lazyPage(async () => (await import('./pages/message.tsx')).MessagePage)
const archive = lazyPage(async () => (await import('./pages/archive.tsx')).ArchivePage)
const files = lazyPage(async () => (await import('./pages/files.tsx')).FilesPage)
const drive = lazyPage(async () => (await import('./pages/drive.tsx')).DrivePage)
const conflict = lazyPage(async () => (await import('./pages/conflict.tsx')).ConflictPage)
const settings = lazyPage(async () => (await import('./pages/settings.tsx')).SettingsPage)

export const signIn = lazyPage(async () => (await import('./pages/sign-in.tsx')).SignInPage)
export const notFound = lazyPage(async () => (await import('./pages/not-found.tsx')).NotFoundPage)

export const PAGES: readonly PageRoute[] = [
  { path: '/', page: overview },
  { path: '/streams/:name', page: stream },
  { path: '/work', page: work },
  { path: '/work/jobs', page: jobs },
  { path: '/work/jobs/:id', page: job },
  { path: '/search', page: search },
  { path: '/mail/:account/:id', page: message },
  { path: '/archive', page: archive },
  { path: '/files', page: files },
  { path: '/files/:name', page: drive },
  { path: '/files/:name/conflicts/:id', page: conflict },
  { path: '/settings', page: settings },
]

export type NavigationEntry = {
  href: string
  text: string
  icon: IconName
  /** Also on pages that begin with one of these. */
  covers: readonly string[]
  page: LazyPage
}

export const NAVIGATION: readonly NavigationEntry[] = [
  { href: '/', text: 'Overview', icon: 'overview', covers: ['/streams/'], page: overview },
  { href: '/search', text: 'Search', icon: 'search', covers: ['/mail/'], page: search },
  { href: '/files', text: 'Files', icon: 'folder', covers: ['/files/'], page: files },
  { href: '/work', text: 'Work', icon: 'work', covers: ['/work/'], page: work },
  { href: '/archive', text: 'Archive', icon: 'archive', covers: [], page: archive },
  { href: '/settings', text: 'Settings', icon: 'settings', covers: [], page: settings },
]

export function isCurrent(entry: Pick<NavigationEntry, 'href' | 'covers'>, path: string): boolean {
  return path === entry.href || entry.covers.some((start) => path.startsWith(start))
}
