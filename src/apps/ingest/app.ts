/** Ingest: files that a queue announces or a bucket lists, each record in the index exactly once. */
import type { App } from '../../app/app.ts'
import { ingestNoun } from './cli/ingest.ts'
import type { OpenIngest } from './runtime.ts'

export const ingestApp: App<OpenIngest> = {
  name: 'ingest',
  // Its accounts are its own: they are made with `tidemark ingest add`.
  services: [],
  open: async (place) => (await import('./open.ts')).openIngest(place),
  settings: async () => (await import('./settings.ts')).sections,
  look: async (ledger) => (await import('./status.ts')).lookAtIngest(ledger),
  server: async () => (await import('./api/module.ts')).ingestModule,
  demo: async () => (await import('./demo/demo.ts')).ingestDemo,
  noun: ingestNoun,
}
