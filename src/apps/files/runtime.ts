/** The open app, and a runtime that has it at hand. */
import type { Indexing } from '../../app/documents.ts'
import { type OpenApp, openedApp, type Runtime } from '../../app/runtime.ts'
import type { FileSync } from './index.ts'

export type OpenFiles = OpenApp &
  FileSync & {
    /** Undefined where files are not to be found in the one search. */
    indexing: Indexing | undefined
  }
export type FilesRuntime = Runtime & { files: OpenFiles }

export function filesRuntime<R extends Runtime>(runtime: R): R & FilesRuntime {
  return { ...runtime, files: openedApp<OpenFiles>(runtime, 'files') }
}
