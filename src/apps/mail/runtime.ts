/** The open app, and a runtime that has it at hand. */
import { type OpenApp, openedApp, type Runtime } from '../../app/runtime.ts'
import type { MailAccounts } from './account.ts'
import type { HtmlRenderer } from './api/html-renderer.ts'
import type { CleanUpRuns } from './clean-up/runs.ts'
import type { MailKinds } from './kinds.ts'
import type { MailSettings } from './settings.ts'
import type { MailTables } from './store/tables.ts'

export type OpenMail = OpenApp & {
  settings: MailSettings
  tables: MailTables
  accounts: MailAccounts
  kinds: MailKinds
  cleanUpRuns: CleanUpRuns
  /** Makes HTML of mail safe to show, in a thread of its own. */
  html: HtmlRenderer
}

export type MailRuntime = Runtime & { mail: OpenMail }

export function mailRuntime<R extends Runtime>(runtime: R): R & MailRuntime {
  return { ...runtime, mail: openedApp<OpenMail>(runtime, 'mail') }
}
