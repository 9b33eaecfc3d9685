/** `tidemark mail verify`: is all that should be there, there, and is it what it should be? */
import type { Command } from 'commander'
import type { VerifyReport } from '../apps/mail-archive/verify.ts'
import { type CliContext, exitCodes } from './context.ts'

export type VerifyFlags = { account?: string; shard?: string[]; offline?: boolean; repair?: boolean }

const HELP = `
Reads every message back from the archive and compares it with the hash that was noted when it came; then lists the
mailbox slice by slice and compares which messages it has. Nothing is changed without --repair, which sets damaged
files aside (never deletes them) and fetches again what is missing or damaged.

Ends with 0 when all is well (or mended), 1 when something is damaged or missing.`

export function registerMailVerify(mail: Command, context: CliContext): void {
  mail
    .command('verify')
    .description('check every message against its hash, and the archive against Gmail')
    .option('--account <address>', 'only this account')
    .option('--shard <name>', 'only this file of the archive; may be repeated', collect)
    .option('--offline', 'leave out the comparison with Gmail')
    .option('--repair', 'mend what is found')
    .addHelpText('after', HELP)
    .action(async (options: VerifyFlags) => {
      const { verifyMail } = await import('./mail-verify-run.ts')
      await verifyMail(context, options)
    })
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

export async function printReport(context: CliContext, report: VerifyReport): Promise<void> {
  const { formatBytes, formatCount } = await import('../format.ts')
  const { output } = context
  const { damaged, cloud, shards } = report
  output.line(
    `${report.account}: ${formatCount(report.messages)} messages read, ${formatBytes(report.bytes)}`,
  )
  for (const { name, state, detail } of shards) {
    if (state !== 'ok') output.line(`  ${name} is ${state}${detail ? `: ${detail}` : ''}`)
  }
  output.line(
    damaged.length === 0
      ? '  every message has its hash'
      : `  ${formatCount(damaged.length)} messages are damaged`,
  )
  for (const { id, shard, state, detail } of damaged.slice(0, 20))
    output.line(`    ${id} in ${shard}: ${state}, ${detail}`)
  if (!cloud) return
  output.line(
    `  Gmail lists ${formatCount(cloud.listed)} in ${formatCount(cloud.slices)} slices; ${formatCount(cloud.stored)} of them are stored, ${formatCount(cloud.missing.length)} are not`,
  )
  for (const id of cloud.missing.slice(0, 20)) output.line(`    ${id} is missing`)
  if (cloud.vanished.length > 0)
    output.line(`  ${formatCount(cloud.vanished.length)} are stored that Gmail no longer has`)
}

export function isWell({ damaged, shards, cloud }: VerifyReport): boolean {
  return damaged.length === 0 && shards.every(({ state }) => state === 'ok') && !cloud?.missing.length
}

export function exitCodeOf(reports: readonly VerifyReport[]): CliContext['exitCode'] {
  return reports.every(isWell) ? exitCodes.ok : exitCodes.failure
}
