/** Files: folders of this machine and of OneDrive, kept in step in both directions. */
import type { App } from '../../app/app.ts'
import { filesNoun } from './cli/files.ts'
import type { OpenFiles } from './runtime.ts'

export const filesApp: App<OpenFiles> = {
  name: 'files',
  services: ['onedrive'],
  accounts: {
    told: {
      remove: 'folders [{name, root}]',
      inUse:
        'An account with which a folder is kept in step is\nforgotten only with --force: the folder stays as it is, and is no longer kept in step.',
    },
    load: async () => (await import('./account-use.ts')).filesAccountUse,
  },
  open: async (place) => (await import('./open.ts')).openFiles(place),
  settings: async () => (await import('./settings.ts')).sections,
  look: async (ledger) => (await import('./status.ts')).lookAtFiles(ledger),
  server: async () => (await import('./api/module.ts')).filesModule,
  demo: async () => (await import('./demo/demo.ts')).filesDemo,
  noun: filesNoun,
}
