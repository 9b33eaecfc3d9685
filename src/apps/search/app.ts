/** Search: one index over everything that the other apps keep, found by words and by meaning under each user's access. */
import type { App } from '../../app/app.ts'
import { searchNoun } from './cli/search.ts'
import type { OpenSearchApp } from './open.ts'

export const searchApp: App<OpenSearchApp> = {
  name: 'search',
  services: [],
  open: async (place) => (await import('./open.ts')).openSearchApp(place),
  settings: async () => [(await import('../../config/settings.ts')).searchSection],
  forgetUser: async (tx, userId) => (await import('./store.ts')).forgetUser(tx, userId),
  look: async () => ({}),
  server: async () => (await import('./api/module.ts')).searchModule,
  demo: async () => (await import('./demo/demo.ts')).searchDemo,
  noun: searchNoun,
}
