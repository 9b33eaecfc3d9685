/** The open app, and a runtime that has it at hand. */
import { type OpenApp, openedApp, type Runtime } from '../../app/runtime.ts'
import { APP, type AssistAccounts } from './account.ts'
import type { Agents } from './agent/open.ts'
import type { PushPart } from './api/webhook.ts'
import type { AssistKinds } from './kinds.ts'
import type { Models } from './models/ask.ts'
import type { ModelCalls } from './models/store.ts'
import type { AssistSettings } from './settings.ts'
import type { AssistTables } from './store/tables.ts'

export type OpenAssist = OpenApp & {
  settings: AssistSettings
  tables: AssistTables
  accounts: AssistAccounts
  kinds: AssistKinds
  models: Models
  /** The log of what models were asked, and what it cost. */
  calls: ModelCalls
  agents: Agents
  push: PushPart
}

export type AssistRuntime = Runtime & { assist: OpenAssist }

export function assistRuntime<R extends Runtime>(runtime: R): R & AssistRuntime {
  return { ...runtime, assist: openedApp<OpenAssist>(runtime, APP) }
}
