/** Runs the check, says how far it is, and what it found. */
import { join } from 'node:path'
import { DiskThreads } from '../apps/file-sync/local/threads.ts'
import { type VerifyReport, verifyDrive } from '../apps/file-sync/verify.ts'
import { systemClock } from '../clock.ts'
import { TidemarkError } from '../errors.ts'
import { formatBytes, formatCount } from '../format.ts'
import { plural, shellWord } from '../wording.ts'
import { type CliContext, exitCodes } from './context.ts'
import { chosenRows, type OpenedFiles, withFiles } from './files-context.ts'
import { stoppable } from './files-sync-run.ts'

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
    else for (const [at, report] of reports.entries()) print(context, report, rows[at]!.root)
    if (reports.some(({ differences }) => differences.length > 0)) context.exitCode = exitCodes.bad
  })
}

async function verifyOne(
  { output }: CliContext,
  { files, ledger }: OpenedFiles,
  { name, deep, disk, stop }: { name: string; deep: boolean; disk: DiskThreads; stop: AbortSignal },
): Promise<VerifyReport> {
  let toldMs = systemClock.monotonicMs()
  return verifyDrive({
    ...{ store: files.store, ledger, disk, deep, signal: stop, drive: await files.drives.get(name) },
    onProgress: ({ what, done }) => {
      if (systemClock.monotonicMs() - toldMs < TOLD_EVERY_MS || what === 'contents') return
      toldMs = systemClock.monotonicMs()
      const words = what === 'files' ? 'files read' : 'items of OneDrive compared'
      output.note(`${name}: ${formatCount(done)} ${words}`)
    },
  })
}

function print({ output }: CliContext, report: VerifyReport, root: string): void {
  const { drive, files, bytes, remoteItems, differences, unverified, leftOut } = report
  for (const { path, side, text } of differences) {
    output.line(`${drive}: ${side === 'here' ? 'here' : 'OneDrive'}: ${path}: ${text}`)
  }
  const checked = `${formatCount(files)} ${plural(files, 'file')} read (${formatBytes(bytes)}), ${formatCount(remoteItems)} ${plural(remoteItems, 'item')} of OneDrive compared`
  const found = differences.length
  output.line(
    `${drive}: ${checked}; ${found === 0 ? 'everything agrees' : `${formatCount(found)} ${plural(found, 'difference')}`}.`,
  )
  if (unverified > 0) {
    output.note(
      `${drive}: OneDrive gives no hash of ${formatCount(unverified)} ${plural(unverified, 'file')}; --deep reads them.`,
    )
  }
  if (leftOut > 0) output.note(`${drive}: ${formatCount(leftOut)} left out, as you wished.`)
  const damaged = differences.find(({ what, side }) => what === 'damaged' && side === 'here')
  if (damaged) {
    const to = shellWord(join(root, damaged.path))
    output.note(
      `${drive}: what was synced is in OneDrive. Put it back with: tidemark files get ${shellWord(damaged.path)} ${to} --force`,
    )
  } else if (found > 0) {
    output.note('What was only not synced yet is brought into step with: tidemark files sync')
  }
}
