/** What holds for a folder pair, and changing it: the same for the command line and the API. */
import { UsageError } from '../../base/errors.ts'
import { type FolderPairSettings, folderPairSettings, SERVICE, streamOf } from './folder-pair.ts'
import { refuseWriting } from './new-folder.ts'
import type { FilesRuntime } from './runtime.ts'
import type { FolderPairRow } from './store/contract.ts'
import { mergeSettings as writeSettings } from './store/filter-change.ts'

/** What takes part. */
export type FilterOptions = {
  skip?: string[] | undefined
  only?: string[] | undefined
  maxSize?: number | undefined
  skipDotfiles?: boolean | undefined
  followLinks?: boolean | undefined
}

export type SettingsOptions = FilterOptions & {
  mode?: FolderPairSettings['mode'] | undefined
  conflicts?: FolderPairSettings['conflicts'] | undefined
}

/** What is not said stays as it was. */
export function settingsWith(before: FolderPairSettings, options: SettingsOptions): FolderPairSettings {
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
  throw new UsageError(`${path || 'An empty path'} is the whole folder, which cannot be one of its parts.`, {
    hint: 'All of it takes part where no part is named.',
  })
}

export type SettingsChange = { before: FolderPairSettings; now: FolderPairSettings; isOther: boolean }

/**
 * On top of what holds at the moment of writing: two that change different things both keep theirs. What was left alone
 * is decided anew with the next look at the whole folder.
 */
export async function changeSettings(
  { files, accounts }: Pick<FilesRuntime, 'files' | 'accounts'>,
  { name, account: accountName }: FolderPairRow,
  change: (before: FolderPairSettings) => FolderPairSettings,
): Promise<SettingsChange> {
  const account = await accounts.find(SERVICE, accountName)
  const changed = await files.store.write((tx) =>
    writeSettings(tx, name, (settings) => {
      const before = folderPairSettings.parse(JSON.parse(settings))
      const now = folderPairSettings.parse(change(before))
      // An account that may only read by now keeps what holds; nothing of it is uploaded.
      if (account && now.mode !== before.mode) refuseWriting(account, now.mode)
      return { before, now, isOther: JSON.stringify(now) !== settings }
    }),
  )
  if (changed.isOther) await files.pairs.reload()
  return changed
}

/** What was changed is looked at now. */
export async function syncChanged(
  { engine, files }: Pick<FilesRuntime, 'engine' | 'files'>,
  { name }: Pick<FolderPairRow, 'name'>,
): Promise<void> {
  const stream = streamOf(name)
  await engine.streams.open(stream)
  await engine.enqueue(files.kinds.sync, { drive: name }, { stream })
}

/** `/a//b/` → `a`, `b`. */
export function namesOfPath(path: string): string[] {
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  if (!names.includes('..')) return names
  throw new UsageError(`${path} leads out of the folder.`, {
    hint: 'Give the path from the top of the folder.',
  })
}
