/** What Drive commands work with. */
import { withApp } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { driveApp } from '../app.ts'
import { type DriveRuntime, driveRuntime } from '../runtime.ts'

/** Opens everything, and starts nothing. */
export function withDrive<T>(context: CliContext, use: (opened: DriveRuntime) => Promise<T>): Promise<T> {
  return withApp(context, driveApp, {}, (runtime) => use(driveRuntime(runtime)))
}
