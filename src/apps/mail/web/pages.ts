/** The pages of mail. */
import { Redirect } from 'wouter-preact'
import type { AppPages } from '../../../../web/src/app-pages.ts'
import { lazyPage } from '../../../../web/src/lazy-page.tsx'
import { keys } from '../../../../web/src/queries.ts'
import { cleanUpLink, searchLink } from './links.ts'
import { mailKeys } from './queries.ts'
import { useSearchKey } from './search/keyboard.ts'

const search = lazyPage(async () => (await import('./pages/search.tsx')).SearchPage)
const message = lazyPage(async () => (await import('./pages/message.tsx')).MessagePage)
/** The address that it had before. */
const formerCleanUp = lazyPage(async () => () => Redirect({ to: cleanUpLink(), replace: true }))
const cleanUp = lazyPage(async () => (await import('./pages/clean-up.tsx')).CleanUpPage)

export const mailPages: AppPages = {
  name: 'mail',
  pages: [
    { path: '/search', page: search },
    { path: '/mail/:account/:id', page: message },
    { path: '/clean-up', page: cleanUp },
    { path: '/archive', page: formerCleanUp },
  ],
  navigation: [
    { href: searchLink(), text: 'Mail', icon: 'mail', covers: ['/mail/'], page: search, place: 10 },
    { href: cleanUpLink(), text: 'Free up Gmail', icon: 'archive', covers: [], page: cleanUp, place: 50 },
  ],
  live: {
    stale: {
      snapshot: [mailKeys.cleanUp],
      'snapshot-mail': [keys.accounts],
      job: [mailKeys.cleanUp],
    },
    polled: [],
  },
  useKeys: useSearchKey,
  account: async () => (await import('./account.tsx')).mailPart,
  stream: { ofAccount: (account) => `mail:${account}` },
}
