/** `tidemark mail status` and `tidemark mail slices`: how far the archive is, in words and as a picture. */
import type { Command } from 'commander'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import type { MailAccounts } from '../account.ts'
import type { MailStatus } from '../status.ts'
import type { AttachmentFileInfo, ShardInfo } from '../store/contract.ts'
import type { OpenedMail } from './context.ts'

const STATUS_HELP = `
Ends with 0 when all is settled or a process works on it, 1 when it was not synced yet or stopped before it was done,
when counts do not agree, an account is paused, a file of the archive is missing or damaged, or messages are missing from it, 3 when all
is settled but for bad or lost messages.`

const SLICES_HELP = `
The picture: every slice is one character, oldest first.
  #  settled: all of its messages are accounted for      =  listed, its messages are under way
  .  waiting to be listed                                !  settled, with bad messages
  |  the watermark: everything before it that was there when the mailbox was last checked is settled`

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
      const { showSlices } = await import('./slices.ts')
      await showSlices(context, options)
    })
}

async function showStatus(context: CliContext, options: { account?: string }): Promise<void> {
  const { chosen, withMail } = await import('./context.ts')
  const { mailStatus } = await import('../status.ts')
  const { pauseOf } = await import('./sync-end.ts')
  await withMail(context, {}, async ({ ledger, tables, mail }) => {
    const rows: Row[] = []
    const names = chosen(mail, options)
    for (const name of names) await notice({ ledger, tables, mail }, name)
    for (const status of await mailStatus(ledger, tables, names)) {
      const pause = await pauseOf(ledger, status.account)
      const paused = { pauseReason: pause?.reason ?? null, pauseHint: pause?.hint ?? null }
      rows.push({ ...status, ...paused, ...(await filesOf(mail, status.account)) })
    }
    if (context.output.json) context.output.value(rows)
    else for (const row of rows) await printStatus(context, row, ledger.now())
    context.exitCode = exitCodeOf(rows)
  })
}

/** Nothing is claimed that the archive does not have any more. */
async function notice(
  { ledger, tables, mail }: Pick<OpenedMail, 'ledger' | 'tables' | 'mail'>,
  name: string,
): Promise<void> {
  const { noticeLosses } = await import('../losses.ts')
  const { asTidemarkError } = await import('../../../base/errors.ts')
  const { systemClock } = await import('../../../base/clock.ts')
  try {
    await noticeLosses({ ledger, tables, clock: systemClock }, await mail.get(name))
  } catch (thrown) {
    if (asTidemarkError(thrown).kind === 'bug') throw thrown // what is wrong with the archive is told below
  }
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
  const { asTidemarkError } = await import('../../../base/errors.ts')
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
  const { balanceText } = await import('../status.ts')
  const { totalsText } = await import('../mailbox-totals.ts')
  const { formatBytes, formatCount } = await import('../../../base/format.ts')
  const { distance, isoTime } = await import('../../../base/moment.ts')
  const { plural } = await import('../../../base/wording.ts')
  const phases = {
    new: 'not synced yet',
    backfill: 'copying all mail',
    following: row.isAttended
      ? 'following changes'
      : 'settled when it was last checked; nobody follows it now',
  }
  const isStopped = row.stoppedSinceMs !== null
  output.line(
    `${row.account}: ${row.pauseReason !== null ? 'paused' : isStopped ? 'stopped before it was done' : phases[row.phase]}`,
  )
  if (row.pauseReason !== null) {
    output.line(`  paused     ${row.pauseReason}`)
    if (row.pauseHint !== null) output.line(`             ${row.pauseHint}`)
  }
  if (row.pauseReason === null && row.stoppedSinceMs !== null) {
    const since = row.stoppedSinceMs > 0 ? `, the last one was seen ${distance(row.stoppedSinceMs, now)}` : ''
    output.line(`  stopped    no process works on it${since}`)
    output.line('             Go on with: tidemark mail sync, or tidemark serve')
  }
  if (isUnbegun(row)) output.line('  begin      Run: tidemark mail sync, or tidemark serve')
  const asOf = row.watermarkAsOfMs === null ? '' : `, of the mailbox as of ${isoTime(row.watermarkAsOfMs)}`
  output.line(`  watermark  ${row.watermarkMs === null ? 'none yet' : `${isoTime(row.watermarkMs)}${asOf}`}`)
  output.line(`  messages   ${balanceText(row, formatCount)}`)
  if (row.gmail && row.leftOut) {
    const kept = row.shards.reduce((sum, { deleted }) => sum + deleted, 0)
    const text = totalsText(row.gmail, { ...row.leftOut, kept }, formatCount)
    output.line(`  in Gmail   ${text} (${distance(row.gmail.atMs, now)})`)
  }
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
  printMissing(output, row, { count: formatCount, plural })
  printDamage(output, row)
  if (row.checkedAtMs !== null) output.line(`  checked    ${distance(row.checkedAtMs, now)}`)
  const { verificationText } = await import('../status.ts')
  const verified = row.verified ? `${distance(row.verified.atMs, now)}: ` : ''
  output.line(`  verified   ${verified}${verificationText(row.verified, formatCount)}`)
}

/** How many messages fewer the archive has than the ledger has counted in; 0 where files cannot be read. */
function lostOf({ stored, shards, archiveProblem }: Row): number {
  if (archiveProblem || shards.some(({ state }) => state !== 'ok')) return 0
  return Math.max(0, stored - shards.reduce((sum, { messages }) => sum + messages, 0))
}

type Words = { count: (n: number) => string; plural: (n: number, one: string, many?: string) => string }

function printMissing(
  output: CliContext['output'],
  { missing, lost, lostImports }: Row,
  { count, plural }: Words,
): void {
  const many = (n: number, what: string): string => `${count(n)} ${plural(n, what)}`
  if (missing > 0) {
    const are = `${many(missing, 'message')} ${plural(missing, 'is', 'are')}`
    output.line(`  MISSING    ${are} not in the archive any more: was an older copy of a file put back?`)
    output.line(
      `             The next sync fetches ${plural(missing, 'it', 'them')} again: tidemark mail sync`,
    )
  }
  if (lost > 0)
    output.line(
      `  LOST       ${many(lost, 'message')} that ${plural(lost, 'was', 'were')} stored: neither the archive nor Gmail has ${plural(lost, 'it', 'them')} any more`,
    )
  if (lostImports > 0)
    output.line(
      `  LOST       ${many(lostImports, 'imported message')} ${plural(lostImports, 'is', 'are')} not in the archive any more: import ${plural(lostImports, 'it', 'them')} again`,
    )
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

/** Nothing of it is known yet, and nobody is at it. */
function isUnbegun({ phase, isAttended, pauseReason, stoppedSinceMs }: Row): boolean {
  return phase === 'new' && !isAttended && pauseReason === null && stoppedSinceMs === null
}

function exitCodeOf(rows: readonly Row[]): CliContext['exitCode'] {
  const isWrong = (row: Row): boolean =>
    row.unbalanced > 0 ||
    isUnbegun(row) ||
    row.stoppedSinceMs !== null ||
    row.pauseReason !== null ||
    row.archiveProblem !== null ||
    lostOf(row) > 0 ||
    row.missing > 0 ||
    [...row.shards, ...row.attachmentFiles].some(({ state }) => state !== 'ok')
  if (rows.some(isWrong)) return exitCodes.failure
  const isSettled = ({ onTheirWay, settledSlices, slices }: Row): boolean =>
    onTheirWay === 0 && settledSlices === slices
  return rows.every(isSettled) && rows.some(({ bad, lost, lostImports }) => bad + lost + lostImports > 0)
    ? exitCodes.bad
    : exitCodes.ok
}
