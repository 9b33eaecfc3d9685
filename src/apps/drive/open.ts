/** The Drive index in a process: its tables, the clients of its accounts, and its kinds of jobs. */
import type { AppPlace } from '../../app/runtime.ts'
import { driveKinds, jobsOf } from './jobs.ts'
import { driveBudgets, openDriveAccounts } from './open-accounts.ts'
import { driveRuntime, type OpenDrive } from './runtime.ts'
import { type DriveOverrides, driveSettingsOf } from './settings.ts'
import { driveSources } from './sources.ts'
import { lookAtDrive } from './status.ts'
import { DriveTables } from './store/tables.ts'
import { startDriveWork } from './work.ts'

/** Listing, following and settling, besides the documents. */
const WORKERS_BESIDES = 4

export async function openDrive(place: AppPlace): Promise<OpenDrive> {
  const { config, ledger, clock } = place
  const overrides = (place.overrides.drive ?? {}) as DriveOverrides
  const settings = driveSettingsOf(config, overrides)
  const tables = await DriveTables.open(ledger)
  const accounts = await openDriveAccounts({
    accounts: place.accounts,
    vault: place.vault,
    fetch: place.fetch,
    clock,
    settings,
    limits: () => place.engine()?.limits,
  })
  const kinds = driveKinds({
    accounts,
    tables,
    clock,
    settings,
    index: async () => {
      const search = await place.search.open()
      await search.prepare()
      return search
    },
    extractor: () => place.search.extractor(),
  })
  return {
    ...(await lookAtDrive(ledger)),
    settings,
    tables,
    accounts,
    kinds,
    sources: driveSources(place, { accounts, tables, kinds }),
    jobs: jobsOf(kinds),
    budgets: () => driveBudgets(accounts.names(), settings),
    workersMin: () => settings.workersMax + WORKERS_BESIDES,
    work: (runtime, options) => startDriveWork(driveRuntime(runtime), options),
    async reload() {
      Object.assign(settings, driveSettingsOf(config, overrides))
      await accounts.reload()
    },
    close: async () => {},
  }
}
