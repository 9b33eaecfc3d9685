/** What is the file sync's own about `sync` and `watch`: new folders, a dry run, deletions that wait, and the watch. */
import { existsSync, statSync } from 'node:fs'
import { type SyncPart, type SyncRun, stoppable, syncSources } from '../../../app/cli/sync.ts'
import type { CliContext } from '../../../app/command.ts'
import type { Source } from '../../../app/sources.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatDuration } from '../../../base/format.ts'
import { counted, shellWord } from '../../../base/wording.ts'
import { filesApp } from '../app.ts'
import { chosenRows, findRow, rowsHere, unknownFolder } from '../chosen-folders.ts'
import { topId } from '../drives.ts'
import { type FolderPairSettings, folderPairSettings, streamOf } from '../folder-pair.ts'
import { changeSettings, type FilterOptions, settingsWith } from '../folder-settings.ts'
import { openRoot } from '../local/root.ts'
import {
  addFolderPair,
  draftFolderPair,
  type FolderPairDraft,
  type NewFolderPairInput,
  topText,
} from '../new-folder.ts'
import { filesRuntime } from '../runtime.ts'
import { resumeShares } from '../shared-folder.ts'
import { folderSource } from '../sources.ts'
import type { FolderPairRow } from '../store/contract.ts'
import { startFolderPairs, tidyTrash } from '../work.ts'
import type { OpenedFiles } from './context.ts'
import {
  type Asking,
  answerHeld,
  explainFolder,
  forgetYes,
  tellHeld,
  terminalAsking,
} from './held-deletes.ts'
import { MODE_TEXTS, POLICY_TEXTS } from './set.ts'
import { WatchJournal } from './watch-journal.ts'

const WATCH_STEP_MS = 500
const HELD_LOOK_MS = 5_000

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

export function syncFiles(
  context: CliContext,
  folder: string | undefined,
  options: FilesSyncOptions,
  asking?: Asking,
): Promise<void> {
  return syncSources(context, filesApp, { wanted: folder, options }, filesSync(asking))
}

export function filesSync(asking?: Asking): SyncPart {
  return {
    check({ wanted, options }) {
      checkOptions(wanted, options)
      return undefined
    },
    steps(context, { runtime }, { wanted, options }) {
      const opened = filesRuntime(runtime)
      const ask = asking ?? terminalAsking(context)
      let shown: ReadonlySet<string> = new Set()
      return {
        choose: () => choose(context, opened, { folder: wanted, options }),
        async check({ name }) {
          const { root, markerId } = await opened.files.store.folderPair(name)
          openRoot(root, markerId)
          const [gone] = await resumeShares(opened, [name])
          if (gone) throw gone
        },
        async settled(run) {
          shown = await answerHeld(context, opened, { ...held(run), options, asking: ask })
          if (options.watch && !run.stop.aborted) return
          for (const { name } of run.sources) await tidy(context, opened, name)
        },
        watch: (run) => watch(context, opened, { ...run, options }),
        async kept(sources) {
          const kept = await stillKept(opened, sources)
          for (const source of sources) {
            if (!kept.includes(source)) context.output.note(`${source.name} is not kept in step any more.`)
          }
          return kept
        },
        explain: ({ name }) => explainFolder(context, opened, { name, isShown: shown.has(name) }),
      }
    },
  }
}

const held = ({ sources, stop, settle, progress }: SyncRun) => ({
  names: sources.map(({ name }) => name),
  stop,
  settle,
  progress,
})

/** Undefined after a dry run: there is nothing left to do. */
async function choose(
  context: CliContext,
  opened: OpenedFiles,
  { folder, options }: { folder: string | undefined; options: FilesSyncOptions },
): Promise<readonly Source[] | undefined> {
  const { rows: known, draft } = await wantedFolders(opened, folder, options)
  if (options.dryRun) {
    const { dryRunFolders } = await import('./dry-run.ts')
    await stoppable(context, (stop) => dryRunFolders(context, opened, { rows: known, draft, options, stop }))
    return undefined
  }
  const rows = draft && folder ? [await setUp(context, opened, { folder, options })] : known
  await applyChoices(context, opened, { rows, options })
  // Of a sync that was killed: what it was for is asked for again. Before the engine starts, which would go on with it.
  for (const { name } of rows) await forgetYes(opened, name)
  return rows.map(folderSource)
}

function checkOptions(folder: string | undefined, options: FilesSyncOptions): void {
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

type Wanted = { rows: FolderPairRow[]; draft: FolderPairDraft | undefined }

/** The folders that are there, or the draft of a new one. */
async function wantedFolders(
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
      code: code ?? 'drive-unknown',
      hint: `${hint && rows.length > 0 ? `${hint} ` : ''}To begin with a new folder, write its path: tidemark files sync ${shellWord(`./${folder}`)}`,
    })
  }
  return { rows: [], draft: await draftFolderPair(opened, newFolderPairInput(folder, options)) }
}

function refuseNewFlags(known: FolderPairRow | undefined, { account, drive, name }: FilesSyncOptions): void {
  if (!known) return
  const isOther =
    (account !== undefined && account.trim().toLowerCase() !== known.account) ||
    (drive !== undefined && drive !== topId(known)) ||
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
  const { account, drive, name } = options
  const { mode, ...settings } = chosenSettings(folderPairSettings.parse({}), options)
  // Where nobody says which way, that is for what the account may do.
  const isSaid = chosenMode(options) !== undefined
  return { root: folder, account, drive, name, settings: isSaid ? { mode, ...settings } : settings }
}

async function setUp(
  { output }: CliContext,
  opened: OpenedFiles,
  { folder, options }: { folder: string; options: FilesSyncOptions },
): Promise<FolderPairRow> {
  const added = await addFolderPair(opened, newFolderPairInput(folder, options))
  await opened.engine.streams.open(streamOf(added.name))
  output.note(`${added.root} is kept in step with ${topText(added)}, as ${added.name}.`)
  noteMerge({ output }, added)
  return opened.files.store.folderPair(added.name)
}

export function noteMerge({ output }: Pick<CliContext, 'output'>, { entries, root }: FolderPairDraft): void {
  if (entries === 0) return
  output.note(
    `${root} is not empty (${counted(entries, 'thing')} at its top): what is in it and what is in OneDrive are merged. Nothing is deleted; where both have a file of the same name with other content, both are kept.`,
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

/** What was chosen holds from now on: other processes that sync this folder must do the same. */
async function applyChoices(
  context: CliContext,
  opened: OpenedFiles,
  { rows, options }: { rows: readonly FolderPairRow[]; options: FilesSyncOptions },
): Promise<void> {
  for (const row of rows) {
    const change = (held: FolderPairSettings) => chosenSettings(held, options)
    const { before, now, isOther } = await changeSettings(opened, row, change)
    if (!isOther) continue
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

/** A folder may be removed meanwhile, by another command or on its page. */
async function stillKept({ files }: OpenedFiles, sources: readonly Source[]): Promise<Source[]> {
  const there = new Set((await files.store.folderPairs()).map(({ name }) => name))
  return sources.filter(({ name }) => there.has(name))
}

async function tidy({ output }: CliContext, opened: OpenedFiles, name: string): Promise<void> {
  try {
    await tidyTrash(opened, await opened.files.pairs.get(name), systemClock.now())
  } catch (thrown) {
    // The sync itself went well; the next one tries again.
    output.error(thrown)
  }
}

async function watch(
  context: CliContext,
  opened: OpenedFiles,
  run: SyncRun & { options: FilesSyncOptions },
): Promise<void> {
  const { sources, stop, progress, options } = run
  const { output } = context
  const names = sources.map(({ name }) => name)
  const { pollMs } = opened.files.settings
  const onError = (error: unknown): void => output.error(error)
  const work = await startFolderPairs(opened, { clock: systemClock, names, onError })
  const journal = new WatchJournal(context, opened, names)
  const watching = `Watching; changes in OneDrive are asked for every ${formatDuration(pollMs)}. Ctrl-C stops it.`
  await progress.aside(() => output.note(watching))
  try {
    let lookedMs: number | undefined
    const told = new Set<string>()
    while (!stop.aborted) {
      if (journal.hasNews) await progress.aside(() => journal.tell())
      if (lookedMs === undefined || systemClock.monotonicMs() - lookedMs >= HELD_LOOK_MS) {
        const kept = (await stillKept(opened, sources)).map(({ name }) => name)
        if (kept.length === 0) return
        await progress.aside(async () => {
          await tellHeld(context, opened, { names: kept, options, told })
          await journal.tellNeeds(kept)
        })
        lookedMs = systemClock.monotonicMs()
      }
      await progress.show()
      await sleep(systemClock, WATCH_STEP_MS, stop).catch(() => {
        // Told to stop: the loop ends by itself.
      })
    }
    await progress.aside(() => journal.tell())
  } finally {
    journal.end()
    await work.stop()
  }
}
