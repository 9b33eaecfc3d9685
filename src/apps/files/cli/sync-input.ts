/** What `files sync` is told: which folders, set up where they are new, and what is to hold for them. */
import { existsSync, statSync } from 'node:fs'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { plural, shellWord } from '../../../base/wording.ts'
import { type FolderPairSettings, folderPairSettings, streamOf } from '../folder-pair.ts'
import {
  addFolderPair,
  draftFolderPair,
  type FolderPairDraft,
  type NewFolderPairInput,
} from '../new-folder.ts'
import type { FolderPairRow } from '../store/contract.ts'
import { changeSettings as writeSettings } from '../store/filter-change.ts'
import { chosenRows, findRow, namesOfPath, type OpenedFiles, rowsHere, unknownFolder } from './context.ts'
import type { FilterOptions, SetOptions } from './set.ts'

export type FilesSyncOptions = FilterOptions & {
  account?: string
  drive?: string
  name?: string
  downloadOnly?: boolean
  uploadOnly?: boolean
  twoWay?: boolean
  conflicts?: FolderPairSettings['conflicts']
  dryRun?: boolean
  watch?: boolean
  forceDeletes?: boolean
  /** A folder that is not known is a mistake. */
  isKnownOnly?: boolean
}

export function checkOptions(folder: string | undefined, options: FilesSyncOptions): void {
  if (options.dryRun && options.watch) throw new UsageError('--dry-run looks once: leave out --watch.')
  if (options.dryRun && options.forceDeletes)
    throw new UsageError('--dry-run deletes nothing: leave out --force-deletes.')
  const filter = [options.skip, options.only, options.maxSize, options.skipDotfiles, options.followLinks]
  if (folder === undefined && filter.some((choice) => choice !== undefined)) {
    throw new UsageError('What is left out is chosen for one folder: which one?', {
      hint: 'Give its name or its path: tidemark files sync Documents --skip …',
    })
  }
  const isNewOnly = options.account ?? options.drive ?? options.name
  if (isNewOnly !== undefined && folder === undefined) {
    throw new UsageError('Which folder is to be set up?', {
      hint: 'Give its path: tidemark files sync ~/Documents --account …',
    })
  }
}

export type Wanted = { rows: FolderPairRow[]; draft: FolderPairDraft | undefined }

/** The folders that are there, or the draft of a new one. */
export async function wantedFolders(
  opened: OpenedFiles,
  folder: string | undefined,
  options: FilesSyncOptions,
): Promise<Wanted> {
  const rows = await rowsHere(opened)
  const known = folder === undefined ? undefined : findRow(rows, folder)
  if (folder === undefined || known || options.isKnownOnly) {
    refuseNewFlags(known, options)
    return { rows: await chosenRows(opened, folder), draft: undefined }
  }
  if (!isPath(folder)) {
    const { message, hint, code } = unknownFolder(rows, folder)
    throw new UsageError(message, {
      ...{ code: code ?? 'drive-unknown' },
      hint: `${hint && rows.length > 0 ? `${hint} ` : ''}To begin with a new folder, write its path: tidemark files sync ${shellWord(`./${folder}`)}`,
    })
  }
  return { rows: [], draft: await draftFolderPair(opened, newFolderPairInput(folder, options)) }
}

function refuseNewFlags(known: FolderPairRow | undefined, { account, drive, name }: FilesSyncOptions): void {
  if (!known) return
  const isOther =
    (account !== undefined && account.trim().toLowerCase() !== known.account) ||
    (drive !== undefined && drive !== known.driveId) ||
    (name !== undefined && name !== known.name)
  if (!isOther) return
  throw new UsageError(`${known.root} is set up already, as ${known.name} of ${known.account}.`, {
    code: 'root-taken',
    hint: '--account, --drive and --name are for new folders: leave them out, or choose another folder.',
  })
}

/** A slip in a name must not make a folder of that name. */
function isPath(text: string): boolean {
  if (/[/\\]/.test(text) || text === '.' || text === '..') return true
  return existsSync(text) && statSync(text).isDirectory()
}

function newFolderPairInput(folder: string, options: FilesSyncOptions): NewFolderPairInput {
  const { account, drive: driveId, name } = options
  const { mode, ...settings } = chosenSettings(folderPairSettings.parse({}), options)
  // Where nobody says which way, that is for what the account may do.
  const isSaid = chosenMode(options) !== undefined
  return { root: folder, account, driveId, name, settings: isSaid ? { mode, ...settings } : settings }
}

export async function setUp(
  { output }: CliContext,
  opened: OpenedFiles,
  { folder, options }: { folder: string; options: FilesSyncOptions },
): Promise<FolderPairRow> {
  const added = await addFolderPair(opened, newFolderPairInput(folder, options))
  await opened.engine.streams.open(streamOf(added.name))
  output.note(`${added.root} is kept in step with the OneDrive of ${added.account}, as ${added.name}.`)
  noteMerge({ output }, added)
  return opened.files.store.folderPair(added.name)
}

export function noteMerge({ output }: Pick<CliContext, 'output'>, { entries, root }: FolderPairDraft): void {
  if (entries === 0) return
  output.note(
    `${root} is not empty (${formatCount(entries)} ${plural(entries, 'thing')} at its top): what is in it and what is in OneDrive are merged. Nothing is deleted; where both have a file of the same name with other content, both are kept.`,
  )
}

function chosenMode({
  downloadOnly,
  uploadOnly,
  twoWay,
}: FilesSyncOptions): FolderPairSettings['mode'] | undefined {
  if (downloadOnly) return 'download-only'
  if (uploadOnly) return 'upload-only'
  return twoWay ? 'two-way' : undefined
}

/** What was said with flags, on top of what holds. */
export function chosenSettings(before: FolderPairSettings, options: FilesSyncOptions): FolderPairSettings {
  const mode = chosenMode(options)
  return settingsWith(before, { ...options, ...(mode && { mode }) })
}

/** What is not said stays as it was. */
export function settingsWith(before: FolderPairSettings, options: SetOptions): FolderPairSettings {
  const { mode, conflicts, skip, only, maxSize, skipDotfiles, followLinks } = options
  return {
    ...{ mode: mode ?? before.mode, conflicts: conflicts ?? before.conflicts },
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

/** What was chosen holds from now on: other processes that sync this folder must do the same. */
export async function applyChoices(
  context: CliContext,
  opened: OpenedFiles,
  { rows, options }: { rows: readonly FolderPairRow[]; options: FilesSyncOptions },
): Promise<void> {
  for (const row of rows) {
    const before = folderPairSettings.parse(JSON.parse(row.settings))
    const now = chosenSettings(before, options)
    if (!(await changeSettings(opened, row, now))) continue
    if (now.mode !== before.mode) context.output.note(`${row.name}: from now on ${MODE_TEXTS[now.mode]}.`)
    if (now.conflicts !== before.conflicts) {
      context.output.note(`${row.name}: from now on ${POLICY_TEXTS[now.conflicts]}.`)
    }
    if (JSON.stringify(now.filter) !== JSON.stringify(before.filter)) {
      context.output.note(
        `${row.name}: from now on other things take part. tidemark files set ${shellWord(row.name)} shows which.`,
      )
    }
  }
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
