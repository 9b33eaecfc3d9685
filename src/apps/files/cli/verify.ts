/** `tidemark files verify`: every file against what both sides last agreed on. Changes nothing. */
import { basename } from 'node:path'
import { stoppable } from '../../../app/cli/sync.ts'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { TidemarkError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { plural, shellWord } from '../../../base/wording.ts'
import { chosenRows } from '../chosen-folders.ts'
import { DiskThreads } from '../local/threads.ts'
import { type VerifyReport, verifyFolderPair } from '../verify.ts'
import { type OpenedFiles, withFiles } from './context.ts'

const TOLD_EVERY_MS = 5_000
const THREADS_MAX = 4

export async function verifyFolders(
  context: CliContext,
  folder: string | undefined,
  { deep }: { deep?: boolean },
): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const rows = await chosenRows(opened, folder)
    const reports: VerifyReport[] = []
    await stoppable(context, async (stop) => {
      const disk = new DiskThreads({ threads: Math.min(THREADS_MAX, opened.files.settings.parallelCheckers) })
      try {
        for (const { name } of rows) {
          reports.push(await verifyOne(context, opened, { name, deep: deep === true, disk, stop }))
        }
      } catch (thrown) {
        if (!stop.aborted) throw thrown
        throw new TidemarkError('The check was stopped.', { kind: 'transient', cause: thrown })
      } finally {
        await disk.stop()
      }
    })
    if (output.json) output.value(reports)
    else for (const report of reports) print(context, report)
    if (reports.some(({ differences }) => differences.length > 0)) context.exitCode = exitCodes.bad
  })
}

async function verifyOne(
  { output }: CliContext,
  { files, ledger }: OpenedFiles,
  { name, deep, disk, stop }: { name: string; deep: boolean; disk: DiskThreads; stop: AbortSignal },
): Promise<VerifyReport> {
  let toldMs = systemClock.monotonicMs()
  return verifyFolderPair({
    store: files.store,
    ledger,
    disk,
    deep,
    signal: stop,
    pair: await files.pairs.get(name),
    onProgress: ({ what, done }) => {
      if (systemClock.monotonicMs() - toldMs < TOLD_EVERY_MS || what === 'contents') return
      toldMs = systemClock.monotonicMs()
      const words = what === 'files' ? 'files read' : 'items of OneDrive compared'
      output.note(`${name}: ${formatCount(done)} ${words}`)
    },
  })
}

function print({ output }: CliContext, report: VerifyReport): void {
  const { drive: pair, files, bytes, remoteItems, differences, unverified, leftOut } = report
  for (const { path, side, text } of differences) {
    output.line(`${pair}: ${side === 'here' ? 'here' : 'OneDrive'}: ${path}: ${text}`)
  }
  const checked = `${formatCount(files)} ${plural(files, 'file')} read (${formatBytes(bytes)}), ${formatCount(remoteItems)} ${plural(remoteItems, 'item')} of OneDrive compared`
  const found = differences.length
  output.line(
    `${pair}: ${checked}; ${found === 0 ? 'everything agrees' : `${formatCount(found)} ${plural(found, 'difference')}`}.`,
  )
  if (unverified > 0) {
    output.note(
      `${pair}: OneDrive gives no hash of ${formatCount(unverified)} ${plural(unverified, 'file')}; --deep reads them.`,
    )
  }
  if (leftOut > 0) output.note(`${pair}: ${formatCount(leftOut)} left out, as you wished.`)
  const damaged = differences.find(({ what, side }) => what === 'damaged' && side === 'here')
  if (damaged) {
    const to = shellWord(`${basename(damaged.path)}.from-onedrive`)
    output.note(
      `${pair}: what is here may be the only copy of it, and OneDrive has what was synced. Fetch that beside it, and compare: tidemark files get ${shellWord(damaged.path)} ${to}`,
    )
  } else if (found > 0) {
    output.note('What was only not synced yet is brought into step with: tidemark files sync')
  }
}
