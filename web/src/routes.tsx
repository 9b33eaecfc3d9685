/** Which page stands at which address, and what the navigation lists: the engine's own, and those of the apps. */
import { appPages } from '../../src/apps/pages.ts'
import type { NavigationEntry, PageRoute } from './app-pages.ts'
import { lazyPage } from './lazy-page.tsx'
import { isMember } from './session.ts'

const overview = lazyPage(async () => (await import('./pages/overview.tsx')).OverviewPage)
const stream = lazyPage(async () => (await import('./pages/stream.tsx')).StreamPage)
const work = lazyPage(async () => (await import('./pages/work.tsx')).WorkPage)
const jobs = lazyPage(async () => (await import('./pages/jobs.tsx')).JobsPage)
const job = lazyPage(async () => (await import('./pages/job.tsx')).JobPage)
const users = lazyPage(async () => (await import('./pages/users.tsx')).UsersPage)
const connected = lazyPage(async () => (await import('./pages/connected.tsx')).ConnectedPage)
const settings = lazyPage(async () => (await import('./pages/settings.tsx')).SettingsPage)
const setup = lazyPage(async () => (await import('./pages/setup.tsx')).SetupPage)

export const signIn = lazyPage(async () => (await import('./pages/sign-in.tsx')).SignInPage)
export const notForMembers = lazyPage(
  async () => (await import('./pages/not-for-members.tsx')).NotForMembersPage,
)
export const notFound = lazyPage(async () => (await import('./pages/not-found.tsx')).NotFoundPage)

export const PAGES: readonly PageRoute[] = [
  { path: '/', page: overview },
  { path: '/streams/:name', page: stream },
  { path: '/work', page: work },
  { path: '/work/jobs', page: jobs },
  { path: '/work/jobs/:id', page: job },
  { path: '/users', page: users },
  { path: '/settings', page: settings, members: true },
  { path: '/settings/setup/:service', page: setup },
  { path: '/connected', page: connected, members: true },
  ...appPages.flatMap(({ pages }) => pages),
]

const OWN: readonly NavigationEntry[] = [
  { href: '/', text: 'Overview', icon: 'overview', covers: ['/streams/'], page: overview, place: 0 },
  { href: '/work', text: 'Work', icon: 'work', covers: ['/work/'], page: work, place: 40 },
  { href: '/users', text: 'Users', icon: 'person', covers: [], page: users, place: 80 },
  {
    href: '/settings',
    text: 'Settings',
    icon: 'settings',
    covers: ['/settings/'],
    page: settings,
    members: true,
    place: 90,
  },
]

/** As whoever is signed in has it. */
export const navigation = (): readonly NavigationEntry[] =>
  [...OWN, ...appPages.flatMap(({ navigation }) => navigation)]
    .filter(({ members }) => members || !isMember())
    .sort((a, b) => a.place - b.place)

export function isCurrent(entry: Pick<NavigationEntry, 'href' | 'covers'>, path: string): boolean {
  return path === entry.href || entry.covers.some((start) => path.startsWith(start))
}
