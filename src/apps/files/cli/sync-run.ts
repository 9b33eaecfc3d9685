/** Runs a sync in this process: looks at both sides, does what is to be done, and says how it goes. */

import { type CliContext, exitCodes } from '../../../app/command.ts'
import { resumeSignedIn } from '../../../app/signed-in.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatDuration } from '../../../base/format.ts'
import { handleSignals } from '../../../engine/shutdown.ts'
import { SERVICE, sourcesOf, streamOf } from '../folder-pair.ts'
import { openRoot } from '../local/root.ts'
import type { FolderPairRow } from '../store/contract.ts'
import { startFolderPairs, tidyTrash } from '../work.ts'
import { type OpenedFiles, withFiles } from './context.ts'
import { type Asking, answerHeld, forgetYes, tellHeld, terminalAsking } from './held-deletes.ts'
import { conclude } from './sync-end.ts'
import { applyChoices, checkOptions, type FilesSyncOptions, setUp, wantedFolders } from './sync-input.ts'
import { FilesProgress } from './sync-progress.ts'
import { settle } from './sync-settle.ts'
import { WatchJournal } from './watch-journal.ts'

/** Jobs that failed before and are tried again by a sync. */
const RETRIED_MAX = 1_000
const WATCH_STEP_MS = 500
const HELD_LOOK_MS = 5_000

export async function syncFiles(
  context: CliContext,
  folder: string | undefined,
  options: FilesSyncOptions,
  asking: Asking = terminalAsking(context),
): Promise<void> {
  checkOptions(folder, options)
  await withFiles(context, async (opened) => {
    const { rows: known, draft } = await wantedFolders(opened, folder, options)
    if (options.dryRun) {
      const { dryRunFolders } = await import('./dry-run.ts')
      await stoppable(context, (stop) =>
        dryRunFolders(context, opened, { rows: known, draft, options, stop }),
      )
      return
    }
    const rows = draft && folder ? [await setUp(context, opened, { folder, options })] : known
    await applyChoices(context, opened, { rows, options })
    const there = openable(context, rows)
    if (there.length > 0) {
      const names = there.map(({ name }) => name)
      await resumeSignedIn(opened, SERVICE, sourcesOf(there))
      await retryFailed(opened, names)
      await stoppable(context, (stop) => run(context, opened, { names, options, stop, asking }))
    }
    if (there.length < rows.length) context.exitCode = exitCodes.failure
  })
}

/** A folder that is not there is said now. One folder's trouble does not keep the others from being synced. */
function openable({ output }: CliContext, rows: readonly FolderPairRow[]): FolderPairRow[] {
  return rows.filter((row) => {
    try {
      openRoot(row.root, row.markerId)
      return true
    } catch (thrown) {
      if (rows.length === 1) throw thrown
      output.error(thrown)
      output.note(`${row.name} is left out of this sync.`)
      return false
    }
  })
}

export async function stoppable(
  { output }: CliContext,
  work: (stop: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController()
  const unhandle = handleSignals({
    process,
    clock: systemClock,
    onStop: async () => {
      // What is drawn has no end of line.
      if (output.isTerminal) output.rawError('\n')
      output.note('Stopping; what is under way is kept. Run it again to go on.')
      stop.abort()
    },
    onReload: () => output.note('The configuration is read when the command starts.'),
    exit: (code) => process.exit(code),
    onError: (error) => output.error(error),
  })
  try {
    await work(stop.signal)
  } finally {
    unhandle()
  }
}

type Run = { names: readonly string[]; options: FilesSyncOptions; stop: AbortSignal; asking: Asking }

async function run(context: CliContext, opened: OpenedFiles, input: Run): Promise<void> {
  const { names, options, stop } = input
  const { engine, files } = opened
  for (const name of names) {
    await engine.streams.open(streamOf(name))
    // Of a sync that was killed: what it was for is asked for again.
    await forgetYes(opened, name)
  }
  await engine.start()
  const progress = new FilesProgress(context, opened, names)
  let shown: ReadonlySet<string> = new Set()
  try {
    for (const name of names) {
      await engine.enqueue(files.kinds.sync, { drive: name }, { stream: streamOf(name) })
    }
    // Whoever watches has time.
    const patienceMs = options.watch ? undefined : opened.config.files.patience_minutes * 60_000
    const settled = (): Promise<void> => settle(context, opened, { names, stop, patienceMs, progress })
    await settled()
    shown = await answerHeld(context, opened, { ...input, progress, settled })
    if (options.watch && !stop.aborted) await watch(context, opened, { ...input, progress })
    else for (const name of names) await tidy(context, opened, name)
  } finally {
    progress.end()
  }
  const kept = await stillKept(opened, names)
  for (const name of names) {
    if (!kept.includes(name)) context.output.note(`${name} is not kept in step any more.`)
  }
  await conclude(context, opened, { names: kept, stopped: stop.aborted, done: progress.done, shown })
}

/** A folder may be removed meanwhile, by another command or on its page. */
async function stillKept({ files }: OpenedFiles, names: readonly string[]): Promise<string[]> {
  const there = new Set((await files.store.folderPairs()).map(({ name }) => name))
  return names.filter((name) => there.has(name))
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
  input: Run & { progress: FilesProgress },
): Promise<void> {
  const { names, stop, progress } = input
  const { output } = context
  const { pollMs } = opened.files.settings
  const work = await startFolderPairs(opened, {
    ...{ clock: systemClock, names },
    onError: (error) => output.error(error),
  })
  const journal = new WatchJournal(context, opened, names)
  const watching = `Watching; changes in OneDrive are asked for every ${formatDuration(pollMs)}. Ctrl-C stops it.`
  await progress.aside(() => output.note(watching))
  try {
    let lookedMs: number | undefined
    const told = new Set<string>()
    while (!stop.aborted) {
      if (journal.hasNews) await progress.aside(() => journal.tell())
      if (lookedMs === undefined || systemClock.monotonicMs() - lookedMs >= HELD_LOOK_MS) {
        const kept = await stillKept(opened, names)
        if (kept.length === 0) return
        await progress.aside(async () => {
          await tellHeld(context, opened, { ...input, names: kept, told })
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

/** What failed for good in an earlier sync gets its full number of tries again, and what was put off need not wait. */
async function retryFailed({ ledger }: OpenedFiles, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const stream = streamOf(name)
    await ledger.hurry(stream)
    for (const { id } of await ledger.jobs({ state: 'failed', stream, limit: RETRIED_MAX })) {
      await ledger.redo(id).catch((thrown: unknown) => {
        // Brought back already, by one that it depends on or by another sync.
        if (!(thrown instanceof UsageError)) throw thrown
      })
    }
  }
}
