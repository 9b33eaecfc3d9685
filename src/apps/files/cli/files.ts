/** `tidemark files`: folders that are kept in step with OneDrive, one file per group of verbs. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { registerFilesBrowse } from './browse.ts'
import { registerFilesCloud } from './cloud.ts'
import { registerFilesConflicts } from './conflicts.ts'
import { registerFilesPause } from './pause.ts'
import { registerFilesSet } from './set.ts'
import { registerFilesStatus } from './status.ts'
import { registerFilesSync } from './sync.ts'
import { registerFilesTrash } from './trash.ts'
import { registerFilesVerify } from './verify.ts'

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
