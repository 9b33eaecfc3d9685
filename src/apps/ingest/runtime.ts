/** The open app, and a runtime that has it at hand. */
import { type OpenApp, openedApp, type Runtime } from '../../app/runtime.ts'
import type { IngestKinds } from './kinds.ts'
import type { Pipelines } from './pipelines.ts'
import type { Receivers } from './receivers.ts'
import type { IngestSettings } from './settings.ts'
import type { InboxTables } from './store/inbox.ts'
import type { IngestTables } from './store/tables.ts'

export type OpenIngest = OpenApp & {
  settings: IngestSettings
  tables: IngestTables
  inbox: InboxTables
  pipelines: Pipelines
  kinds: IngestKinds
  receivers: Receivers
}

export type IngestRuntime = Runtime & { ingest: OpenIngest }

export function ingestRuntime<R extends Runtime>(runtime: R): R & IngestRuntime {
  return { ...runtime, ingest: openedApp<OpenIngest>(runtime, 'ingest') }
}
