/** `tidemark mail status` and `tidemark mail slices`: how far the archive is, in words and as a picture. */
import type { Command } from 'commander'
import type { MailAccounts } from '../apps/mail-archive/account.ts'
import type { MailStatus } from '../apps/mail-archive/status.ts'
import type { AttachmentFileInfo, ShardInfo } from '../apps/mail-archive/store/contract.ts'
import { type CliContext, exitCodes } from './context.ts'

const STATUS_HELP = `
Ends with 0 when all is settled or under way, 1 when counts do not agree, an account is paused or a file of the
archive is missing or damaged, 3 when all is settled but for bad messages.`

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
  const { chosen, withMail } = await import('./mail-context.ts')
  const { mailStatus } = await import('../apps/mail-archive/status.ts')
  const { pauseOf } = await import('./mail-sync-end.ts')
  await withMail(context, {}, async ({ ledger, tables, mail }) => {
    const rows: Row[] = []
    for (const status of await mailStatus(ledger, tables, chosen(mail, options))) {
      const pause = await pauseOf(ledger, status.account)
      const paused = { pauseReason: pause?.reason ?? null, pauseHint: pause?.hint ?? null }
      rows.push({ ...status, ...paused, ...(await filesOf(mail, status.account)) })
    }
    if (context.output.json) context.output.value(rows)
    else for (const row of rows) await printStatus(context, row, ledger.now())
    context.exitCode = exitCodeOf(rows)
  })
}

type Files = {
  shards: ShardInfo[]
  attachmentFiles: AttachmentFileInfo[]
  /** Why the archive could not be opened at all. */
  archiveProblem: { message: string; hint: string | null; code: string | null } | null
}

type Row = MailStatus & Files & { pauseReason: string | null; pauseHint: string | null }

/** An archive that cannot be opened is part of the status, not the end of it. */
async function filesOf(mail: MailAccounts, name: string): Promise<Files> {
  const { asTidemarkError } = await import('../errors.ts')
  try {
    const { archive } = await mail.get(name)
    const [shards, attachmentFiles] = [await archive.shards(), await archive.attachmentFiles()]
    return { shards, attachmentFiles, archiveProblem: null }
  } catch (thrown) {
    const { kind, message, hint, code } = asTidemarkError(thrown)
    if (kind === 'bug') throw thrown
    const archiveProblem = { message, hint: hint ?? null, code: code ?? null }
    return { shards: [], attachmentFiles: [], archiveProblem }
  }
}

async function printStatus({ output }: CliContext, row: Row, now: number): Promise<void> {
  const { balanceText } = await import('../apps/mail-archive/status.ts')
  const { formatBytes, formatCount } = await import('../format.ts')
  const { distance, isoTime } = await import('../moment.ts')
  const { plural } = await import('../wording.ts')
  const phases = { new: 'not synced yet', backfill: 'copying all mail', following: 'following changes' }
  output.line(`${row.account}: ${row.pauseReason === null ? phases[row.phase] : 'paused'}`)
  if (row.pauseReason !== null) {
    output.line(`  paused     ${row.pauseReason}`)
    if (row.pauseHint !== null) output.line(`             ${row.pauseHint}`)
  }
  output.line(`  watermark  ${row.watermarkMs === null ? 'none yet' : isoTime(row.watermarkMs)}`)
  output.line(`  messages   ${balanceText(row, formatCount)}`)
  output.line(`  slices     ${formatCount(row.settledSlices)} of ${formatCount(row.slices)} settled`)
  if (row.unbalanced > 0)
    output.line(`  WRONG      ${row.unbalanced} ${plural(row.unbalanced, 'slice')} whose counts do not agree`)
  const files = [...row.shards, ...row.attachmentFiles]
  const fileBytes = files.reduce((sum, file) => sum + file.fileBytes, 0)
  const rawBytes = row.shards.reduce((sum, shard) => sum + shard.rawBytes, 0)
  if (!row.archiveProblem)
    output.line(
      `  archive    ${formatCount(files.length)} ${plural(files.length, 'file')}, ${formatBytes(fileBytes)} for ${formatBytes(rawBytes)} of mail`,
    )
  const lost = lostOf(row)
  if (lost > 0)
    output.line(
      `  WRONG      the archive has ${formatCount(lost)} ${plural(lost, 'message')} fewer than were stored in it. Run: tidemark mail verify --repair`,
    )
  printDamage(output, row)
  if (row.checkedAtMs !== null) output.line(`  checked    ${distance(row.checkedAtMs, now)}`)
}

/** How many messages fewer the archive has than the ledger has counted in; 0 where files cannot be read. */
function lostOf({ stored, shards, archiveProblem }: Row): number {
  if (archiveProblem || shards.some(({ state }) => state !== 'ok')) return 0
  return Math.max(0, stored - shards.reduce((sum, { messages }) => sum + messages, 0))
}

function printDamage(output: CliContext['output'], { shards, attachmentFiles, archiveProblem }: Row): void {
  if (archiveProblem) {
    output.line(`  DAMAGED    ${archiveProblem.message}`)
    if (archiveProblem.hint) output.line(`             ${archiveProblem.hint}`)
  }
  const broken = [...shards, ...attachmentFiles].filter(({ state }) => state !== 'ok')
  for (const { name, state, detail } of broken)
    output.line(`  DAMAGED    ${detail ?? `${name}.db is ${state}.`}`)
  if (broken.length > 0)
    output.line(
      '             Put it back from a backup, or fetch again what was in it: tidemark mail verify --repair',
    )
}

function exitCodeOf(rows: readonly Row[]): CliContext['exitCode'] {
  const isWrong = (row: Row): boolean =>
    row.unbalanced > 0 ||
    row.pauseReason !== null ||
    row.archiveProblem !== null ||
    lostOf(row) > 0 ||
    [...row.shards, ...row.attachmentFiles].some(({ state }) => state !== 'ok')
  if (rows.some(isWrong)) return exitCodes.failure
  const isSettled = ({ onTheirWay, settledSlices, slices }: Row): boolean =>
    onTheirWay === 0 && settledSlices === slices
  return rows.every(isSettled) && rows.some(({ bad }) => bad > 0) ? exitCodes.bad : exitCodes.ok
}
