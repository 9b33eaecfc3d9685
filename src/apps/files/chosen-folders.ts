/** Which of the folders that are kept in step are meant. */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { UsageError } from '../../base/errors.ts'
import { didYouMean } from '../../cli/output/input.ts'
import { machineId } from './index.ts'
import type { FilesRuntime } from './runtime.ts'
import type { FolderPairRow } from './store/contract.ts'

type WithStore = { files: Pick<FilesRuntime['files'], 'store'> }

/** Those of this machine. */
export async function rowsHere({ files }: WithStore): Promise<FolderPairRow[]> {
  const here = machineId()
  return (await files.store.folderPairs()).filter(({ machine }) => machine === here)
}

/** By its name, or by where its folder is. */
export function findRow(rows: readonly FolderPairRow[], wanted: string): FolderPairRow | undefined {
  const plain = wanted.trim().toLowerCase()
  return (
    rows.find(({ name }) => name === wanted) ??
    rows.find(({ name }) => name.toLowerCase() === plain) ??
    rows.find(({ root }) => root === realPath(wanted))
  )
}

function realPath(wanted: string): string {
  const path = resolve(wanted)
  try {
    return realpathSync(path)
  } catch {
    // Not there (any more): then it can only be the very path that was kept.
    return path
  }
}

/** The folders that a command is about; all of this machine where none is named. */
export async function chosenRows(opened: WithStore, wanted: string | undefined): Promise<FolderPairRow[]> {
  const rows = await rowsHere(opened)
  if (wanted === undefined) {
    if (rows.length > 0) return rows
    throw noFolder()
  }
  const found = findRow(rows, wanted)
  if (found) return [found]
  const elsewhere = findRow(await opened.files.store.folderPairs(), wanted)
  if (elsewhere) {
    throw new UsageError(`The folder of ${elsewhere.name}, ${elsewhere.root}, is on another machine.`, {
      code: 'drive-elsewhere',
      hint: 'Run the command there.',
    })
  }
  throw unknownFolder(rows, wanted)
}

export function unknownFolder(rows: readonly FolderPairRow[], wanted: string): UsageError {
  const names = rows.map(({ name }) => name)
  return new UsageError(`No folder called ${wanted} is kept in step${didYouMean(wanted, names)}`, {
    code: 'drive-unknown',
    hint: names.length > 0 ? `There are: ${names.join(', ')}.` : BEGIN_HINT,
  })
}

const BEGIN_HINT = 'Begin with one: tidemark files sync FOLDER'

function noFolder(): UsageError {
  return new UsageError('No folder of this machine is kept in step yet.', {
    code: 'no-folder',
    hint: BEGIN_HINT,
  })
}
