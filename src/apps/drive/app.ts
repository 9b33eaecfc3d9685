/** Drive: many people's Google Drives in one index, each document once, each found by who may see it. */
import type { App } from '../../app/app.ts'
import { driveNoun } from './cli/drive.ts'
import type { OpenDrive } from './runtime.ts'

export const driveApp: App<OpenDrive> = {
  name: 'drive',
  services: ['drive'],
  accounts: {
    told: { remove: 'documents' },
    load: async () => (await import('./account-use.ts')).driveAccountUse,
  },
  open: async (place) => (await import('./open.ts')).openDrive(place),
  settings: async () => (await import('./settings.ts')).sections,
  look: async (ledger) => (await import('./status.ts')).lookAtDrive(ledger),
  server: async () => (await import('./api/module.ts')).driveModule,
  demo: async () => (await import('./demo/demo.ts')).driveDemo,
  noun: driveNoun,
}
