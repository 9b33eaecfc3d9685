/** The pages of mail. */
import type { AppPages } from '../../../../web/src/app-pages.ts'
import { lazyPage } from '../../../../web/src/lazy-page.tsx'
import { keys } from '../../../../web/src/queries.ts'
import { archiveLink, searchLink } from './links.ts'
import { mailKeys } from './queries.ts'

const search = lazyPage(async () => (await import('./pages/search.tsx')).SearchPage)
const message = lazyPage(async () => (await import('./pages/message.tsx')).MessagePage)
const cleanUp = lazyPage(async () => (await import('./pages/clean-up.tsx')).ArchivePage)

export const mailPages: AppPages = {
  name: 'mail',
  pages: [
    { path: '/search', page: search },
    { path: '/mail/:account/:id', page: message },
    { path: '/archive', page: cleanUp },
  ],
  navigation: [
    { href: searchLink(), text: 'Search', icon: 'search', covers: ['/mail/'], page: search, place: 10 },
    { href: archiveLink(), text: 'Archive', icon: 'archive', covers: [], page: cleanUp, place: 50 },
  ],
  live: {
    stale: {
      snapshot: [mailKeys.archive],
      'snapshot-mail': [keys.accounts],
      job: [mailKeys.archive],
    },
    polled: [],
  },
  account: async () => (await import('./account.tsx')).mailPart,
  stream: { ofAccount: (account) => `mail:${account}` },
}
