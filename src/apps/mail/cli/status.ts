/** What `tidemark mail status` says of an account: how far its archive is, and whether its files are sound. */
import { pauseOf } from '../../../app/cli/ending.ts'
import type { Standing, StatusReporter } from '../../../app/cli/noun.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { systemClock } from '../../../base/clock.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { distance, isoTime } from '../../../base/moment.ts'
import { counted, plural } from '../../../base/wording.ts'
import { mailApp } from '../app.ts'
import { noticeLosses } from '../losses.ts'
import { totalsText } from '../mailbox-totals.ts'
import { type MailRuntime, mailRuntime } from '../runtime.ts'
import { balanceText, type MailStatus, mailStatus, verificationText } from '../status.ts'
import type { AttachmentFileInfo, ShardInfo } from '../store/contract.ts'

export const reportMail: StatusReporter = async (runtime, source) => {
  const opened = mailRuntime(runtime)
  const { ledger, mail } = opened
  await noticeLost(opened, source.name)
  const [status] = await mailStatus(ledger, mail.tables, [source.name])
  const pause = await pauseOf(openedSources(mailApp, runtime), source)
  const row: Row = {
    ...status!,
    pauseReason: pause?.reason ?? null,
    pauseHint: pause?.hint ?? null,
    ...(await archiveFiles(opened, source.name)),
  }
  return { lines: [...statusLines(row, ledger.now())], json: row, standing: accountStanding(row) }
}

/** Nothing is claimed that the archive does not have any more. */
async function noticeLost({ ledger, mail }: MailRuntime, name: string): Promise<void> {
  const { tables, accounts } = mail
  try {
    await noticeLosses({ ledger, tables, clock: systemClock }, await accounts.get(name))
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
async function archiveFiles({ mail }: MailRuntime, name: string): Promise<Files> {
  try {
    const { archive } = await mail.accounts.get(name)
    const [shards, attachmentFiles] = [await archive.shards(), await archive.attachmentFiles()]
    return { shards, attachmentFiles, archiveProblem: null }
  } catch (thrown) {
    const { kind, message, hint, code } = asTidemarkError(thrown)
    if (kind === 'bug') throw thrown
    const archiveProblem = { message, hint: hint ?? null, code: code ?? null }
    return { shards: [], attachmentFiles: [], archiveProblem }
  }
}

function* statusLines(row: Row, now: number): Generator<string> {
  yield* headLines(row, now)
  const asOf = row.watermarkAsOfMs === null ? '' : `, of the mailbox as of ${isoTime(row.watermarkAsOfMs)}`
  yield `  complete   ${row.watermarkMs === null ? 'nothing yet' : `up to ${isoTime(row.watermarkMs)}${asOf}`}`
  yield `  messages   ${balanceText(row, formatCount)}`
  if (row.gmail && row.leftOut) {
    const kept = row.shards.reduce((sum, { deleted }) => sum + deleted, 0)
    const text = totalsText(row.gmail, { ...row.leftOut, kept }, formatCount)
    yield `  in Gmail   ${text} (${distance(row.gmail.atMs, now)})`
  }
  yield `  slices     ${formatCount(row.settledSlices)} of ${formatCount(row.slices)} settled`
  if (row.unbalanced > 0) yield `  WRONG      ${counted(row.unbalanced, 'slice')} whose counts do not agree`
  const files = [...row.shards, ...row.attachmentFiles]
  const fileBytes = files.reduce((sum, file) => sum + file.fileBytes, 0)
  const rawBytes = row.shards.reduce((sum, shard) => sum + shard.rawBytes, 0)
  if (!row.archiveProblem)
    yield `  archive    ${counted(files.length, 'file')}, ${formatBytes(fileBytes)} for ${formatBytes(rawBytes)} of mail`
  const fewer = fewerThanStored(row)
  if (fewer > 0)
    yield `  WRONG      the archive has ${counted(fewer, 'message')} fewer than were stored in it. Run: tidemark mail verify --repair`
  yield* missingLines(row)
  yield* damageLines(row)
  if (row.checkedAtMs !== null) yield `  checked    ${distance(row.checkedAtMs, now)}`
  const verified = row.verified ? `${distance(row.verified.atMs, now)}: ` : ''
  yield `  verified   ${verified}${verificationText(row.verified, formatCount)}`
}

function* headLines(row: Row, now: number): Generator<string> {
  const phases = {
    new: 'not synced yet',
    backfill: 'copying all mail',
    following: row.isAttended
      ? 'following changes'
      : 'settled when it was last checked; nobody follows it now',
  }
  const { account, pauseReason, pauseHint, stoppedSinceMs } = row
  const isStopped = stoppedSinceMs !== null
  yield `${account}: ${pauseReason !== null ? 'paused' : isStopped ? 'stopped before it was done' : phases[row.phase]}`
  if (pauseReason !== null) {
    yield `  paused     ${pauseReason}`
    if (pauseHint !== null) yield `             ${pauseHint}`
  } else if (isStopped) {
    const since = stoppedSinceMs > 0 ? `, the last one was seen ${distance(stoppedSinceMs, now)}` : ''
    yield `  stopped    no process works on it${since}`
    yield '             Go on with: tidemark mail sync, or tidemark serve'
  }
  if (isUnbegun(row)) yield '  begin      Run: tidemark mail sync, or tidemark serve'
}

/** How many messages fewer the archive has than the ledger has counted in; 0 where files cannot be read. */
function fewerThanStored({ stored, shards, archiveProblem }: Row): number {
  if (archiveProblem || shards.some(({ state }) => state !== 'ok')) return 0
  return Math.max(0, stored - shards.reduce((sum, { messages }) => sum + messages, 0))
}

function* missingLines({ missing, lost, lostImports }: Row): Generator<string> {
  if (missing > 0) {
    const are = `${counted(missing, 'message')} ${plural(missing, 'is', 'are')}`
    yield `  MISSING    ${are} not in the archive any more: was an older copy of a file put back?`
    yield `             The next sync fetches ${plural(missing, 'it', 'them')} again: tidemark mail sync`
  }
  if (lost > 0)
    yield `  LOST       ${counted(lost, 'message')} that ${plural(lost, 'was', 'were')} stored: neither the archive nor Gmail has ${plural(lost, 'it', 'them')} any more`
  if (lostImports > 0)
    yield `  LOST       ${counted(lostImports, 'imported message')} ${plural(lostImports, 'is', 'are')} not in the archive any more: import ${plural(lostImports, 'it', 'them')} again`
}

function brokenFiles({ shards, attachmentFiles }: Row): (ShardInfo | AttachmentFileInfo)[] {
  return [...shards, ...attachmentFiles].filter(({ state }) => state !== 'ok')
}

function* damageLines(row: Row): Generator<string> {
  const { archiveProblem } = row
  if (archiveProblem) {
    yield `  DAMAGED    ${archiveProblem.message}`
    if (archiveProblem.hint) yield `             ${archiveProblem.hint}`
  }
  const broken = brokenFiles(row)
  for (const { name, state, detail } of broken) yield `  DAMAGED    ${detail ?? `${name}.db is ${state}.`}`
  if (broken.length > 0)
    yield '             Put it back from a backup, or fetch again what was in it: tidemark mail verify --repair'
}

/** Nothing of it is known yet, and nobody is at it. */
function isUnbegun({ phase, isAttended, pauseReason, stoppedSinceMs }: Row): boolean {
  return phase === 'new' && !isAttended && pauseReason === null && stoppedSinceMs === null
}

function accountStanding(row: Row): Standing {
  const isWrong =
    row.unbalanced > 0 ||
    isUnbegun(row) ||
    row.stoppedSinceMs !== null ||
    row.pauseReason !== null ||
    row.archiveProblem !== null ||
    fewerThanStored(row) > 0 ||
    row.missing > 0 ||
    brokenFiles(row).length > 0
  if (isWrong) return 'wrong'
  if (row.onTheirWay > 0 || row.settledSlices < row.slices) return 'going'
  return row.bad + row.lost + row.lostImports > 0 ? 'bad' : 'settled'
}
