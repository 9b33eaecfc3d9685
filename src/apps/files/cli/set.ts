/** `tidemark files set` and `files remove`: what holds for a folder, and the end of keeping it in step. */
import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import type { FolderPairSettings } from '../folder-pair.ts'
import { finishRemoval, removeFolderPair } from '../folder-removal.ts'
import { changeSettings, type SettingsOptions, settingsWith, syncChanged } from '../folder-settings.ts'
import { chosenRow, withFiles } from './context.ts'

export async function setFolder(
  context: CliContext,
  folder: string,
  options: SettingsOptions,
): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const row = await chosenRow(opened, folder)
    const change = (before: FolderPairSettings) => settingsWith(before, options)
    const { now: settings, isOther } = await changeSettings(opened, row, change)
    if (isOther) await syncChanged(opened, row)
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
