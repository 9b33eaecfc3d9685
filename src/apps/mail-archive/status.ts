/** How far an account is: what the ledger knows, in the words of mail. */
import type { Ledger } from '../../ledger/ledger.ts'
import type { StreamStatus } from '../../ledger/queries.ts'
import { streamOf } from './account.ts'
import type { MailTables } from './store/tables.ts'

export type MailStatus = {
  account: string
  /** `new`: never synced. `backfill`: the first pass over all mail goes on. `following`: only changes are left. */
  phase: 'new' | 'backfill' | 'following'
  paused: boolean
  /** Everything that arrived before is accounted for, in milliseconds since the epoch. */
  watermarkMs: number | null
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
  return Promise.all(
    accounts.map(async (account) =>
      statusOf(account, streams.get(streamOf(account)), await tables.findMailbox(account)),
    ),
  )
}

type Mailbox = Awaited<ReturnType<MailTables['findMailbox']>>

function statusOf(account: string, stream: StreamStatus | undefined, mailbox: Mailbox): MailStatus {
  const counts = {
    listed: Number(stream?.listed ?? 0),
    stored: Number(stream?.stored ?? 0),
    gone: Number(stream?.gone ?? 0),
    skipped: Number(stream?.skipped ?? 0),
    bad: Number(stream?.bad ?? 0),
  }
  const isPlanned = mailbox?.planned_at != null
  const plannedS = mailbox?.planned_at == null ? 0 : Math.floor(mailbox.planned_at / 1000)
  return {
    account,
    phase: !isPlanned ? 'new' : (stream?.mark_at ?? 0) < plannedS ? 'backfill' : 'following',
    paused: Boolean(stream?.paused),
    watermarkMs: stream && stream.mark_at > 0 ? stream.mark_at * 1000 : null,
    slices: Number(stream?.segments ?? 0),
    settledSlices: Number(stream?.settled_segments ?? 0),
    ...counts,
    onTheirWay: counts.listed - counts.stored - counts.gone - counts.skipped - counts.bad,
    unbalanced: Number(stream?.unbalanced ?? 0),
    historyId: stream?.cursor ?? null,
    checkedAtMs: mailbox?.checked_at ?? null,
    plannedAtMs: mailbox?.planned_at ?? null,
    granularity: mailbox?.granularity ?? null,
    sinceMs: mailbox?.since_s == null ? null : mailbox.since_s * 1000,
  }
}

/** `1,000 listed = 990 stored + 8 gone + 0 skipped + 2 bad`, and what is still on its way. */
export function balanceText(status: MailStatus, count: (n: number) => string): string {
  const { listed, stored, gone, skipped, bad, onTheirWay } = status
  const rest = onTheirWay > 0 ? ` + ${count(onTheirWay)} on their way` : ''
  return `${count(listed)} listed = ${count(stored)} stored + ${count(gone)} gone + ${count(skipped)} skipped + ${count(bad)} bad${rest}`
}
