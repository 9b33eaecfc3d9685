/** What holds for a folder is changed, or it is not kept in step any more. */

import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { folderPairSettings, streamOf } from '../folder-pair.ts'
import { finishRemoval, removeFolderPair } from '../folder-removal.ts'
import { chosenRow, withFiles } from './context.ts'
import type { SetOptions } from './set.ts'
import { changeSettings, MODE_TEXTS, POLICY_TEXTS, settingsWith } from './sync-input.ts'

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
