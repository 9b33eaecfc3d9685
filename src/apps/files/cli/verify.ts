/** `tidemark files verify`: every file against what both sides last agreed on. Changes nothing. */
import { basename } from 'node:path'
import type { Verifying, VerifyPart } from '../../../app/cli/verify.ts'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { counted, shellWord } from '../../../base/wording.ts'
import { DiskThreads } from '../local/threads.ts'
import { filesRuntime } from '../runtime.ts'
import { type VerifyReport, verifyFolderPair } from '../verify.ts'

const THREADS_MAX = 4

export const filesVerify: VerifyPart = {
  open(context, { runtime }, { deep }): Verifying<VerifyReport> {
    const { files, ledger } = filesRuntime(runtime)
    const disk = new DiskThreads({ threads: Math.min(THREADS_MAX, files.settings.parallelCheckers) })
    return {
      check: async ({ name }, { stop, tell }) =>
        verifyFolderPair({
          store: files.store,
          ledger,
          disk,
          deep: deep === true,
          signal: stop,
          pair: await files.pairs.get(name),
          onProgress: ({ what, done }) => {
            if (what !== 'contents')
              tell({ done, what: what === 'files' ? 'files read' : 'items of OneDrive compared' })
          },
        }),
      print: (report) => print(context, report),
      exitCode: ({ differences }) => (differences.length > 0 ? exitCodes.bad : exitCodes.ok),
      close: () => disk.stop(),
    }
  },
}

function print({ output }: CliContext, report: VerifyReport): void {
  const { drive: pair, files, bytes, remoteItems, differences, unverified, leftOut } = report
  for (const { path, side, text } of differences) {
    output.line(`${pair}: ${side === 'here' ? 'here' : 'OneDrive'}: ${path}: ${text}`)
  }
  const checked = `${counted(files, 'file')} read (${formatBytes(bytes)}), ${counted(remoteItems, 'item')} of OneDrive compared`
  const found = differences.length
  output.line(`${pair}: ${checked}; ${found === 0 ? 'everything agrees' : counted(found, 'difference')}.`)
  if (unverified > 0) {
    output.note(`${pair}: OneDrive gives no hash of ${counted(unverified, 'file')}; --deep reads them.`)
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
