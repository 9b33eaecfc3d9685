/** The open app, and a runtime that has it at hand. */
import { type OpenApp, openedApp, type Runtime } from '../../app/runtime.ts'
import type { FileSync } from './index.ts'

export type OpenFiles = OpenApp & FileSync
export type FilesRuntime = Runtime & { files: OpenFiles }

export function filesRuntime<R extends Runtime>(runtime: R): R & FilesRuntime {
  return { ...runtime, files: openedApp<OpenFiles>(runtime, 'files') }
}
