/** What holds for a folder is changed, or it is not kept in step any more. */
import { existsSync } from 'node:fs'
import { driveSettings, streamOf } from '../apps/file-sync/drive.ts'
import type { DriveRow } from '../apps/file-sync/store/contract.ts'
import { sleep, systemClock } from '../clock.ts'
import { reclaimFromDead } from '../engine/sightings.ts'
import { TidemarkError } from '../errors.ts'
import { deltaSchedule, lookSchedule } from '../server/file-work.ts'
import { unmarkRoot } from '../server/new-drive.ts'
import type { CliContext } from './context.ts'
import { chosenRow, type OpenedFiles, withFiles } from './files-context.ts'
import type { SetOptions } from './files-set.ts'
import { changeSettings, MODE_TEXTS, POLICY_TEXTS } from './files-sync-input.ts'

export async function setFolder(context: CliContext, folder: string, options: SetOptions): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const row = await chosenRow(opened, folder)
    const before = driveSettings.parse(JSON.parse(row.settings))
    const { mode, conflicts, skip, only, maxSize, skipDotfiles, followLinks } = options
    const settings = {
      ...{ mode: mode ?? before.mode, conflicts: conflicts ?? before.conflicts },
      follow_symlinks: followLinks ?? before.follow_symlinks,
      filter: {
        sync_paths: only ?? before.filter.sync_paths,
        skip: skip ?? before.filter.skip,
        skip_dotfiles: skipDotfiles ?? before.filter.skip_dotfiles,
        size_mb_max: maxSize ?? before.filter.size_mb_max,
      },
    }
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

/** Work that is under way ends first: what it writes must not be left behind. */
const ENDED_MS_MAX = 30_000
const STEP_MS = 100
const CANCELED_PAGE = 1_000

export async function removeFolder(context: CliContext, folder: string): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const row = await chosenRow(opened, folder)
    const stream = streamOf(row.name)
    await opened.ledger.pause('stream', stream, 'the folder is being removed')
    try {
      for (const name of [deltaSchedule(row.name), lookSchedule(row.name)]) {
        await opened.ledger.dropSchedule(name)
      }
      await cancelAll(opened, stream)
      await opened.files.store.removeDrive(row.name)
      removeMarker(context, row)
    } finally {
      await opened.ledger.resume('stream', stream)
    }
    if (output.json) output.value({ folder: row.name, root: row.root, removed: true })
    else output.line(`${row.name} is not kept in step any more. ${row.root} and OneDrive stay as they are.`)
  })
}

/** A marker that cannot be taken away only keeps the folder from being added anew, which is then said. */
function removeMarker({ output }: CliContext, { root }: DriveRow): void {
  if (!existsSync(root)) return
  try {
    unmarkRoot(root)
  } catch (thrown) {
    output.error(thrown)
  }
}

async function cancelAll({ ledger, engine }: OpenedFiles, stream: string): Promise<void> {
  const untilMs = systemClock.monotonicMs() + ENDED_MS_MAX
  await reclaimFromDead(ledger)
  for (;;) {
    const pending = await ledger.jobs({ stream, state: 'pending', limit: CANCELED_PAGE })
    const claimed = await ledger.jobs({ stream, state: 'claimed', limit: CANCELED_PAGE })
    if (pending.length + claimed.length === 0) return
    for (const { id } of [...pending, ...claimed]) await engine.cancel(id)
    if (pending.length > 0) continue
    if (systemClock.monotonicMs() > untilMs) {
      throw new TidemarkError('What is under way in this folder does not end.', {
        ...{ kind: 'transient', code: 'folder-busy' },
        hint: 'Stop tidemark serve or files watch, then try again. Nothing was removed.',
      })
    }
    await sleep(systemClock, STEP_MS)
  }
}
