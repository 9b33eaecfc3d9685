/** The systems of Tidemark. To add one, write its folder and name it here: see docs/adding-an-app.md. */
import type { App } from '../app/app.ts'
import { assistApp } from './assistant/app.ts'
import { driveApp } from './drive/app.ts'
import { filesApp } from './files/app.ts'
import { ingestApp } from './ingest/app.ts'
import { mailApp } from './mail/app.ts'
import { searchApp } from './search/app.ts'

export const apps: readonly App[] = [mailApp, filesApp, driveApp, ingestApp, assistApp, searchApp]
