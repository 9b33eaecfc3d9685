/** The pages of the assistant: mail by category, one thread with its draft and its history, runs of agents. */
import type { AppPages } from '../../../../web/src/app-pages.ts'
import { lazyPage } from '../../../../web/src/lazy-page.tsx'
import { assistKeys, assistLink } from './queries.ts'

const board = lazyPage(async () => (await import('./pages/board.tsx')).BoardPage)
const thread = lazyPage(async () => (await import('./pages/thread.tsx')).ThreadPage)
const run = lazyPage(async () => (await import('./pages/run.tsx')).RunPage)

export const assistPages: AppPages = {
  name: 'assist',
  pages: [
    { path: '/assist', page: board, members: true },
    { path: '/assist/runs/:id', page: run, members: true },
    { path: '/assist/:account/threads/:thread', page: thread, members: true },
  ],
  navigation: [
    {
      href: assistLink(),
      text: 'Assistant',
      icon: 'check',
      covers: ['/assist/'],
      page: board,
      members: true,
      place: 12,
    },
  ],
  live: { stale: {}, polled: [assistKeys.accounts] },
  stream: { home: () => assistLink(), ofAccount: (account) => `assist:${account}` },
}
