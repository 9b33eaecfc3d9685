/** What file commands work with: the runtime, and the folders that a command is about. */
import { withApp } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { filesApp } from '../app.ts'
import { chosenRows } from '../chosen-folders.ts'
import type { FolderPair } from '../folder-pair.ts'
import { type FilesRuntime, filesRuntime } from '../runtime.ts'
import type { FolderPairRow } from '../store/contract.ts'

export type OpenedFiles = FilesRuntime

/** Opens everything, and starts nothing. */
export function withFiles<T>(context: CliContext, use: (opened: OpenedFiles) => Promise<T>): Promise<T> {
  return withApp(context, filesApp, {}, (runtime) => use(filesRuntime(runtime)))
}

/** For commands about one folder: it need not be named where it is the only one. */
export async function chosenRow(opened: OpenedFiles, wanted: string | undefined): Promise<FolderPairRow> {
  const rows = await chosenRows(opened, wanted)
  const [row] = rows
  if (row && rows.length === 1) return row
  throw new UsageError('There are several folders: which one is meant?', {
    code: 'folder-unclear',
    hint: `Say it with --folder. There are: ${rows.map(({ name }) => name).join(', ')}.`,
  })
}

export async function chosenFolderPair(opened: OpenedFiles, wanted: string | undefined): Promise<FolderPair> {
  const { name } = await chosenRow(opened, wanted)
  return opened.files.pairs.get(name)
}
