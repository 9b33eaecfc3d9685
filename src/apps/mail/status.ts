/** How far an account is: what the ledger knows, in the words of mail. */

import type { AppLook } from '../../app/runtime.ts'
import { plural } from '../../base/wording.ts'
import { type Attendance, readAttendance } from '../../engine/observe/engines.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { StreamStatus } from '../../ledger/queries.ts'
import { accountOf, mailChoices, streamOf } from './account.ts'
import { type LeftOut, leftOutOf, type MailboxTotals, totalsFrom, wholeOf } from './mailbox-totals.ts'
import type { Verification } from './message.ts'
import { type MissingCounts, missingCounts } from './store/missing-messages.ts'
import { MailTables } from './store/tables.ts'
import { type Watermark, watermarkOf, withWatermarks } from './watermark.ts'

export type MailStatus = {
  account: string
  /** Something is left to do, and no process works on it: since when, or 0 where nobody knows. Null where one does. */
  stoppedSinceMs: number | null
  /** Whether any process would notice what changes in Gmail. */
  isAttended: boolean
  /** `new`: never synced. `backfill`: the first pass over all mail goes on. `following`: only changes are left. */
  phase: 'new' | 'backfill' | 'following'
  paused: boolean
  /**
   * Everything dated before it that was in the mailbox at `watermarkAsOfMs` is accounted for, in milliseconds since the
   * epoch. What came later with an old date is on its way, or not known yet.
   */
  watermarkMs: number | null
  watermarkAsOfMs: number | null
  slices: number
  settledSlices: number
  listed: number
  stored: number
  gone: number
  skipped: number
  bad: number
  /** Listed, and not yet any of these. */
  onTheirWay: number
  unbalanced: number
  /** Were stored, and are not in the archive any more: on their way back, and counted as such. */
  missing: number
  /** Were stored, and neither the archive nor the cloud has them any more. */
  lost: number
  /** Came from files, and are not in the archive any more. */
  lostImports: number
  /** The last check of the whole archive; null before the first. */
  verified: Verification | null
  /** What Gmail said there is, and what of it is left out by choice; null before the first sync. */
  gmail: MailboxTotals | null
  leftOut: LeftOut | null
  /** How many there will be when all are listed; null where nobody can tell. */
  whole: number | null
  historyId: string | null
  checkedAtMs: number | null
  plannedAtMs: number | null
  granularity: string | null
  sinceMs: number | null
}

export async function mailStatus(
  ledger: Ledger,
  tables: MailTables,
  accounts: readonly string[],
): Promise<MailStatus[]> {
  if (accounts.length === 0) return []
  const streams = new Map((await ledger.streams()).map((stream) => [stream.name, stream]))
  const attendance = await readAttendance(ledger)
  return Promise.all(
    accounts.map(async (account) => {
      const stream = streams.get(streamOf(account))
      const mailbox = await tables.findMailbox(account)
      const watermark = stream ? await watermarkOf(ledger, stream, mailbox) : { markS: 0, asOfMs: null }
      const missing = await missingCounts(ledger, account)
      return accountStatus(account, { stream, mailbox, watermark, missing, attendance })
    }),
  )
}

type StatusInput = {
  stream: StreamStatus | undefined
  mailbox: Awaited<ReturnType<MailTables['findMailbox']>>
  watermark: Watermark
  missing: MissingCounts
  attendance: Attendance
}

function accountStatus(
  account: string,
  { stream, mailbox, watermark, missing, attendance }: StatusInput,
): MailStatus {
  const { isAttended, since } = attendance
  const { pending, lost, imports } = missing
  const counts = {
    listed: Number(stream?.listed ?? 0),
    // What was counted in and is not there any more is not claimed.
    stored: Math.max(0, Number(stream?.stored ?? 0) - pending - lost),
    gone: Number(stream?.gone ?? 0),
    skipped: Number(stream?.skipped ?? 0),
    bad: Number(stream?.bad ?? 0),
  }
  const isPlanned = mailbox?.planned_at != null
  const plannedS = mailbox?.planned_at == null ? 0 : Math.floor(mailbox.planned_at / 1000)
  const onTheirWay = counts.listed - counts.stored - counts.gone - counts.skipped - counts.bad - lost
  const isOpen = onTheirWay > 0 || Number(stream?.segments ?? 0) > Number(stream?.settled_segments ?? 0)
  return {
    account,
    isAttended,
    stoppedSinceMs: isAttended || !isOpen ? null : (since ?? 0),
    phase: !isPlanned ? 'new' : (stream?.mark_at ?? 0) < plannedS ? 'backfill' : 'following',
    paused: Boolean(stream?.paused),
    watermarkMs: watermark.markS > 0 ? watermark.markS * 1000 : null,
    watermarkAsOfMs: watermark.markS > 0 ? watermark.asOfMs : null,
    slices: Number(stream?.segments ?? 0),
    settledSlices: Number(stream?.settled_segments ?? 0),
    ...counts,
    onTheirWay,
    missing: pending,
    lost,
    lostImports: imports,
    verified: mailbox?.verified ? (JSON.parse(mailbox.verified) as Verification) : null,
    ...totalsOf(mailbox, counts.listed),
    unbalanced: Number(stream?.unbalanced ?? 0),
    historyId: stream?.cursor ?? null,
    checkedAtMs: mailbox?.checked_at ?? null,
    plannedAtMs: mailbox?.planned_at ?? null,
    granularity: mailbox?.granularity ?? null,
    sinceMs: mailbox?.since_s == null ? null : mailbox.since_s * 1000,
  }
}

/** By stream: how many messages there will be when all are listed, where that is known. */
export async function mailWholes(
  tables: MailTables,
  streams: readonly { name: string; listed?: number }[],
): Promise<Map<string, number>> {
  const wholes = new Map<string, number>()
  for (const { name, listed } of streams) {
    if (!name.startsWith(streamOf(''))) continue
    const { whole } = totalsOf(await tables.findMailbox(accountOf(name)), Number(listed ?? 0))
    if (whole !== null) wholes.set(name, whole)
  }
  return wholes
}

function totalsOf(
  mailbox: StatusInput['mailbox'],
  listed: number,
): Pick<MailStatus, 'gmail' | 'leftOut' | 'whole'> {
  const gmail = totalsFrom(mailbox?.totals)
  const choices = mailChoices.parse(mailbox?.choices == null ? {} : JSON.parse(mailbox.choices))
  const leftOut = gmail && leftOutOf(gmail, choices, mailbox?.since_s ?? null)
  return { gmail, leftOut, whole: wholeOf({ gmail, leftOut, listed }) }
}

/** `1,000 listed = 990 stored + 8 gone + 0 skipped + 2 bad`, and what is still on its way. */
export function balanceText(status: MailStatus, count: (n: number) => string): string {
  const { listed, stored, gone, skipped, bad, lost, onTheirWay } = status
  const rest = `${lost > 0 ? ` + ${count(lost)} lost` : ''}${onTheirWay > 0 ? ` + ${count(onTheirWay)} on their way` : ''}`
  return `${count(listed)} listed = ${count(stored)} stored + ${count(gone)} gone + ${count(skipped)} skipped + ${count(bad)} bad${rest}`
}

/** What the last check found; without when that was. */
export function verificationText(verified: Verification | null, count: (n: number) => string): string {
  if (!verified) return 'never. Run: tidemark mail verify'
  const { messages, damaged, brokenFiles, missing } = verified
  const wrong = [
    ...(damaged > 0 ? [`${count(damaged)} damaged`] : []),
    ...(brokenFiles > 0 ? [`${count(brokenFiles)} ${plural(brokenFiles, 'file')} broken`] : []),
    ...(missing ? [`${count(missing)} missing`] : []),
  ]
  const what = `${count(messages)} ${plural(messages, 'message')}`
  if (wrong.length > 0) return `${what}, ${wrong.join(', ')}. Run: tidemark mail verify --repair`
  return `${what}, all well${missing === null ? ', not compared with Gmail' : ''}`
}

/** What the ledger alone tells of mailboxes. */
export async function lookAtMail(ledger: Ledger): Promise<AppLook> {
  const tables = await MailTables.open(ledger)
  return {
    async shownStreams(rows) {
      const marked = await withWatermarks(ledger, tables, rows)
      const wholes = await mailWholes(tables, marked)
      return marked.map((row) => ({ ...row, whole: wholes.get(row.name) }))
    },
  }
}
