/** `tidemark mail verify`: is all that should be there, there, and is it what it should be? */
import type { Command } from 'commander'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import type { VerifyReport } from '../verify.ts'

export type VerifyFlags = { account?: string; shard?: string[]; offline?: boolean; repair?: boolean }

const HELP = `
Reads every message back from the archive and compares it with the hash that was noted when it came, and its texts,
headers, labels and search index with what follows from its bytes; then lists the mailbox slice by slice and compares
which messages it has. Nothing is changed without --repair, which writes texts and index anew from sound bytes, sets
damaged files aside (never deletes them) and fetches again what is missing or damaged.

Ends with 0 when all is well (or mended), 1 when something is damaged or missing, or could not be compared.`

export function registerMailVerify(mail: Command, context: CliContext): void {
  mail
    .command('verify')
    .description(
      'check every message against its hash and what follows from it, and the archive against Gmail',
    )
    .option('--account <address>', 'only this account')
    .option('--shard <name>', 'only this file of the archive; may be repeated', collect)
    .option('--offline', 'leave out the comparison with Gmail')
    .option('--repair', 'mend what is found')
    .addHelpText('after', HELP)
    .action(async (options: VerifyFlags) => {
      const { verifyMail } = await import('./verify-run.ts')
      await verifyMail(context, options)
    })
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

export async function printReport(context: CliContext, report: VerifyReport): Promise<void> {
  const { formatBytes, formatCount } = await import('../../../base/format.ts')
  const { plural } = await import('../../../base/wording.ts')
  const { output } = context
  const { damaged, cloud, cloudProblem, shards } = report
  const many = (n: number): string => `${formatCount(n)} ${plural(n, 'message')}`
  output.line(`${report.account}: ${many(report.messages)} read, ${formatBytes(report.bytes)}`)
  const broken = shards.filter(({ state }) => state !== 'ok')
  for (const { name, state, detail } of broken) output.line(`  ${detail ?? `${name}.db is ${state}.`}`)
  const all = broken.length > 0 ? 'every message that could be read' : 'every message'
  output.line(
    damaged.length === 0
      ? `  ${all} has its hash, and its texts, labels and index are what follows from it`
      : `  ${many(damaged.length)} ${plural(damaged.length, 'is', 'are')} damaged`,
  )
  list(output, damaged, ({ id, shard, detail }) => `${id} in ${shard}.db: ${detail}`)
  if (report.outdated > 0)
    output.line(
      `  ${many(report.outdated)} ${plural(report.outdated, 'has', 'have')} texts and index of an earlier version. Run: tidemark mail reindex`,
    )
  if (cloudProblem) {
    output.line(`  not compared with Gmail: ${cloudProblem.message}`)
    if (cloudProblem.hint) output.note(`  ${cloudProblem.hint}`)
  }
  if (!cloud) return
  const missing = cloud.missing.length
  output.line(
    `  Gmail lists ${many(cloud.listed)} in ${formatCount(cloud.slices)} ${plural(cloud.slices, 'slice')}; ${missing === 0 ? 'all are stored' : `${formatCount(cloud.stored)} are stored, ${formatCount(missing)} ${plural(missing, 'is', 'are')} not`}`,
  )
  list(output, cloud.missing, (id) => `${id} is missing`)
  const more = cloud.vanished.length
  if (more > 0) output.line(`  ${many(more)} ${plural(more, 'is', 'are')} stored that Gmail no longer has`)
}

const SHOWN_MAX = 20

function list<T>(output: CliContext['output'], items: readonly T[], text: (item: T) => string): void {
  for (const item of items.slice(0, SHOWN_MAX)) output.line(`    ${text(item)}`)
  if (items.length > SHOWN_MAX) output.line(`    and ${items.length - SHOWN_MAX} more; --json names them all`)
}

export function isWell({ damaged, shards, cloud, cloudProblem }: VerifyReport): boolean {
  if (damaged.length > 0 || shards.some(({ state }) => state !== 'ok')) return false
  return !cloudProblem && !cloud?.missing.length
}

export function exitCodeOf(reports: readonly VerifyReport[]): CliContext['exitCode'] {
  return reports.every(isWell) ? exitCodes.ok : exitCodes.failure
}
