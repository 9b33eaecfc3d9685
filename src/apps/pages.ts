/** The pages of the systems, beside those of the engine. To add an app's, name them here. */
import type { AppPages } from '../../web/src/app-pages.ts'
import { assistPages } from './assistant/web/pages.ts'
import { drivePages } from './drive/web/pages.ts'
import { filesPages } from './files/web/pages.ts'
import { ingestPages } from './ingest/web/pages.ts'
import { mailPages } from './mail/web/pages.ts'
import { searchPages } from './search/web/pages.ts'

export const appPages: readonly AppPages[] = [
  mailPages,
  assistPages,
  filesPages,
  drivePages,
  ingestPages,
  searchPages,
]
