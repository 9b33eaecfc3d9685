/** `tidemark files`: folders that are kept in step with OneDrive, one file per group of verbs. */
import type { Command } from 'commander'
import type { CliContext } from './context.ts'
import { registerFilesBrowse } from './files-browse.ts'
import { registerFilesCloud } from './files-cloud.ts'
import { registerFilesConflicts } from './files-conflicts.ts'
import { registerFilesPause } from './files-pause.ts'
import { registerFilesSet } from './files-set.ts'
import { registerFilesStatus } from './files-status.ts'
import { registerFilesSync } from './files-sync.ts'
import { registerFilesTrash } from './files-trash.ts'
import { registerFilesVerify } from './files-verify.ts'

export type RegisterFiles = (files: Command, context: CliContext) => void

const verbs: readonly RegisterFiles[] = [
  registerFilesSync,
  registerFilesStatus,
  registerFilesBrowse,
  registerFilesCloud,
  registerFilesConflicts,
  registerFilesVerify,
  registerFilesPause,
  registerFilesTrash,
  registerFilesSet,
]

export function registerFiles(program: Command, context: CliContext): void {
  const files = program.command('files').description('folders that are kept in step with OneDrive')
  for (const register of verbs) register(files, context)
}
