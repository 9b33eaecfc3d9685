/** `tidemark files set` and `files remove`: what holds for a folder, and the end of keeping it in step. */
import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { type FolderPairSettings, folderPairSettings, streamOf } from '../folder-pair.ts'
import { finishRemoval, removeFolderPair } from '../folder-removal.ts'
import type { FolderPairRow } from '../store/contract.ts'
import { changeSettings as writeSettings } from '../store/filter-change.ts'
import { chosenRow, namesOfPath, type OpenedFiles, withFiles } from './context.ts'

/** What takes part. */
export type FilterOptions = {
  skip?: string[]
  only?: string[]
  maxSize?: number
  skipDotfiles?: boolean
  followLinks?: boolean
}

export type SetOptions = FilterOptions & {
  mode?: 'two-way' | 'download-only' | 'upload-only'
  conflicts?: 'keep-both' | 'keep-local' | 'keep-remote' | 'manual'
}

export async function setFolder(context: CliContext, folder: string, options: SetOptions): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const row = await chosenRow(opened, folder)
    const settings = settingsWith(folderPairSettings.parse(JSON.parse(row.settings)), options)
    const isOther = await changeSettings(opened, row, settings)
    if (isOther) {
      const stream = streamOf(row.name)
      await opened.engine.streams.open(stream)
      await opened.engine.enqueue(opened.files.kinds.sync, { drive: row.name }, { stream })
    }
    if (output.json) {
      output.value({ folder: row.name, changed: isOther, ...settings })
      return
    }
    output.line(`${row.name}: ${MODE_TEXTS[settings.mode]}`)
    output.line(`  conflicts  ${POLICY_TEXTS[settings.conflicts]}`)
    const { sync_paths: paths, skip: patterns, skip_dotfiles: dots, size_mb_max: size } = settings.filter
    if (paths.length > 0) output.line(`  only       ${paths.join(', ')}`)
    if (patterns.length > 0) output.line(`  left out   ${patterns.join(', ')}`)
    if (dots) output.line('  left out   names that begin with a dot')
    if (size > 0) output.line(`  left out   files of more than ${size} MB`)
    output.line(`  links      ${settings.follow_symlinks ? 'followed within the folder' : 'left alone'}`)
    if (isOther) output.note('It holds from the next sync on.')
  })
}

export async function removeFolder(context: CliContext, folder: string): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const row = await chosenRow(opened, folder)
    const { unmarked } = await removeFolderPair(opened, row, systemClock)
    await finishRemoval(opened, row.name, systemClock)
    if (unmarked !== undefined) output.error(unmarked)
    if (output.json) output.value({ folder: row.name, root: row.root, removed: true })
    else output.line(`${row.name} is not kept in step any more. ${row.root} and OneDrive stay as they are.`)
  })
}

/** What is not said stays as it was. */
export function settingsWith(before: FolderPairSettings, options: SetOptions): FolderPairSettings {
  const { mode, conflicts, skip, only, maxSize, skipDotfiles, followLinks } = options
  return {
    mode: mode ?? before.mode,
    conflicts: conflicts ?? before.conflicts,
    filter: {
      sync_paths: only?.map(onlyPath) ?? before.filter.sync_paths,
      skip: skip ?? before.filter.skip,
      skip_dotfiles: skipDotfiles ?? before.filter.skip_dotfiles,
      size_mb_max: maxSize ?? before.filter.size_mb_max,
    },
    follow_symlinks: followLinks ?? before.follow_symlinks,
  }
}

/** One that leads nowhere would leave out everything. */
function onlyPath(path: string): string {
  const names = namesOfPath(path)
  if (names.length > 0) return names.join('/')
  throw new UsageError(`--only ${path} is the whole folder.`, {
    hint: "All of it takes part with: --only ''",
  })
}

export const MODE_TEXTS: Record<FolderPairSettings['mode'], string> = {
  'two-way': 'changes go both ways',
  'download-only': 'changes only come here from OneDrive',
  'upload-only': 'changes only go from here to OneDrive',
}

export const POLICY_TEXTS: Record<FolderPairSettings['conflicts'], string> = {
  'keep-both':
    'of a file that was changed on both sides, both versions are kept, the one from here under another name',
  'keep-local': 'of a file that was changed on both sides, the version from here counts',
  'keep-remote': 'of a file that was changed on both sides, the version in OneDrive counts',
  manual: 'of a file that was changed on both sides, you decide',
}

/** False where nothing is different. What was left alone is decided anew with the next look at the whole folder. */
export async function changeSettings(
  { files }: Pick<OpenedFiles, 'files'>,
  row: FolderPairRow,
  settings: FolderPairSettings,
): Promise<boolean> {
  const parsed = folderPairSettings.parse(settings)
  if (JSON.stringify(parsed) === row.settings) return false
  await files.store.write((tx) => writeSettings(tx, row, parsed))
  await files.pairs.reload()
  return true
}
