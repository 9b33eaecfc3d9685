/** The open app, and a runtime that has it at hand. */
import { type OpenApp, openedApp, type Runtime } from '../../app/runtime.ts'
import type { DriveAccounts } from './account.ts'
import type { DriveKinds } from './kinds.ts'
import type { DriveSettings } from './settings.ts'
import type { DriveTables } from './store/tables.ts'

export type OpenDrive = OpenApp & {
  settings: DriveSettings
  tables: DriveTables
  accounts: DriveAccounts
  kinds: DriveKinds
}

export type DriveRuntime = Runtime & { drive: OpenDrive }

export function driveRuntime<R extends Runtime>(runtime: R): R & DriveRuntime {
  return { ...runtime, drive: openedApp<OpenDrive>(runtime, 'drive') }
}
