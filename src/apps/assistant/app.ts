/** The mail assistant: sorts mail by labels, drafts answers, and runs agents; sends nothing but what an agent may. */
import type { App } from '../../app/app.ts'
import { assistNoun } from './cli/assist.ts'
import type { OpenAssist } from './runtime.ts'

export const assistApp: App<OpenAssist> = {
  name: 'assist',
  services: ['gmail'],
  accounts: {
    told: { remove: 'sorted' },
    load: async () => (await import('./account-use.ts')).assistAccountUse,
  },
  open: async (place) => (await import('./open.ts')).openAssist(place),
  settings: async () => (await import('./settings.ts')).sections,
  look: async (ledger) => (await import('./status.ts')).lookAtAssist(ledger),
  server: async () => (await import('./api/module.ts')).assistModule,
  demo: async () => (await import('./demo/demo.ts')).assistDemo,
  noun: assistNoun,
}
