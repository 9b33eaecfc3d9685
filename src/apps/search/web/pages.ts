/** The page of search: everything that is kept, for everybody who may see some of it. */
import type { AppPages } from '../../../../web/src/app-pages.ts'
import { lazyPage } from '../../../../web/src/lazy-page.tsx'

const find = lazyPage(async () => (await import('./pages/find.tsx')).FindPage)

export const searchPages: AppPages = {
  name: 'search',
  pages: [{ path: '/find', page: find, members: true }],
  navigation: [
    { href: '/find', text: 'Find anything', icon: 'search', covers: [], page: find, members: true, place: 5 },
  ],
}
