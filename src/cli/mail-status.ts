/** `tidemark mail status` and `tidemark mail slices`: how far the archive is, in words and as a picture. */
import type { Command } from 'commander'
import type { MailStatus } from '../apps/mail-archive/status.ts'
import { type CliContext, exitCodes } from './context.ts'

const STATUS_HELP = `
Ends with 0 when all is settled or under way, 1 when counts do not agree or an account is paused, 3 when all is
settled but for bad messages.`

const SLICES_HELP = `
The picture: every slice is one character, oldest first.
  #  settled: all of its messages are accounted for      =  listed, its messages are under way
  .  waiting to be listed                                !  settled, with bad messages
  |  the watermark: everything before it is settled`

export function registerMailStatus(mail: Command, context: CliContext): void {
  mail
    .command('status')
    .description('show how far the archive of each account is')
    .option('--account <address>', 'only this account')
    .addHelpText('after', STATUS_HELP)
    .action((options: { account?: string }) => showStatus(context, options))
  mail
    .command('slices')
    .description('draw the slices of a mailbox and its watermark')
    .option('--account <address>', 'only this account')
    .option('--list', 'list them with their counts instead')
    .addHelpText('after', SLICES_HELP)
    .action(async (options: { account?: string; list?: boolean }) => {
      const { showSlices } = await import('./mail-slices.ts')
      await showSlices(context, options)
    })
}

async function showStatus(context: CliContext, options: { account?: string }): Promise<void> {
  const { withMailArchive } = await import('./mail-context.ts')
  const { mailStatus } = await import('../apps/mail-archive/status.ts')
  await withMailArchive(context, options, async ({ ledger, tables, archives }) => {
    const all = await mailStatus(
      ledger,
      tables,
      archives.map(({ name }) => name),
    )
    const pauses = await ledger.pauses()
    const rows = await Promise.all(
      archives.map(async ({ name, archive }, index) => ({
        ...all[index]!,
        pauseReason: pauses.find(({ target }) => target === `mail:${name}`)?.reason ?? null,
        shards: await archive.shards(),
      })),
    )
    if (context.output.json) context.output.value(rows)
    else for (const row of rows) await printStatus(context, row, ledger.now())
    context.exitCode = exitCodeOf(rows)
  })
}

type Row = MailStatus & {
  pauseReason: string | null
  shards: {
    name: string
    state: string
    messages: number
    rawBytes: number
    fileBytes: number
    detail?: string
  }[]
}

async function printStatus({ output }: CliContext, row: Row, now: number): Promise<void> {
  const { balanceText } = await import('../apps/mail-archive/status.ts')
  const { formatBytes, formatCount } = await import('../format.ts')
  const { distance, isoTime } = await import('./jobs-time.ts')
  const phases = { new: 'not synced yet', backfill: 'copying all mail', following: 'following changes' }
  output.line(`${row.account}: ${row.paused ? 'paused' : phases[row.phase]}`)
  if (row.pauseReason) output.line(`  paused     ${row.pauseReason}`)
  output.line(`  watermark  ${row.watermarkMs === null ? 'none yet' : isoTime(row.watermarkMs)}`)
  output.line(`  messages   ${balanceText(row, formatCount)}`)
  output.line(`  slices     ${formatCount(row.settledSlices)} of ${formatCount(row.slices)} settled`)
  if (row.unbalanced > 0) output.line(`  WRONG      ${row.unbalanced} slices whose counts do not agree`)
  const sum = (key: 'rawBytes' | 'fileBytes'): number => row.shards.reduce((n, shard) => n + shard[key], 0)
  output.line(
    `  archive    ${row.shards.length} files, ${formatBytes(sum('fileBytes'))} for ${formatBytes(sum('rawBytes'))} of mail`,
  )
  for (const { name, state, detail } of row.shards) {
    if (state !== 'ok')
      output.line(
        `  DAMAGED    ${name} is ${state}${detail ? `: ${detail}` : ''}. Run: tidemark mail verify --repair`,
      )
  }
  if (row.checkedAtMs !== null) output.line(`  checked    ${distance(row.checkedAtMs, now)}`)
}

function exitCodeOf(rows: readonly Row[]): CliContext['exitCode'] {
  const isWrong = ({ unbalanced, paused, shards }: Row): boolean =>
    unbalanced > 0 || paused || shards.some(({ state }) => state !== 'ok')
  if (rows.some(isWrong)) return exitCodes.failure
  const isSettled = ({ onTheirWay, settledSlices, slices }: Row): boolean =>
    onTheirWay === 0 && settledSlices === slices
  return rows.every(isSettled) && rows.some(({ bad }) => bad > 0) ? exitCodes.bad : exitCodes.ok
}
