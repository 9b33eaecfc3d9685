/** Mail: all of Gmail in an archive, and a clean-up of what is proven to be there. */
import type { App } from '../../app/app.ts'
import { mailNoun } from './cli/mail.ts'
import type { OpenMail } from './runtime.ts'

export const mailApp: App<OpenMail> = {
  name: 'mail',
  services: ['gmail'],
  accounts: {
    flags: [
      { flags: '--spam', text: 'archive spam too' },
      { flags: '--no-spam', text: 'leave spam out (default)' },
      { flags: '--trash', text: 'archive the trash too (default)' },
      { flags: '--no-trash', text: 'leave the trash out' },
      {
        flags: '--only-label <label>',
        isList: true,
        text: 'only mail with this label; can be given several times',
      },
      {
        flags: '--skip-label <label>',
        isList: true,
        text: 'no mail with this label; can be given several times',
      },
    ],
    told: { settings: '{spam, trash, onlyLabels, skipLabels}', remove: 'archive' },
    load: async () => (await import('./account-use.ts')).mailAccountUse,
  },
  open: async (place) => (await import('./open.ts')).openMail(place),
  settings: async () => (await import('./settings.ts')).sections,
  look: async (ledger) => (await import('./status.ts')).lookAtMail(ledger),
  server: async () => (await import('./api/module.ts')).mailModule,
  demo: async () => (await import('./demo/demo.ts')).mailDemo,
  noun: mailNoun,
}
