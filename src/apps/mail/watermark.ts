/**
 * The watermark as it is said to people: everything dated before it that was in the mailbox at a certain time is
 * accounted for. Without that time it would be untrue: mail may come with any date, also with one that was passed long
 * ago, and nobody knows of it before the history is read.
 *
 * What the history brings is not in the slices by its date, but in a segment behind them, and its dates are not known
 * before it is fetched. It may be a message whose slice is listed later and passes it over as known. So while a segment
 * behind the slices is not settled, the watermark and its time are those from before the first of them.
 */
import type { StreamRow, Tx } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { accountOf, streamOf } from './account.ts'
import { markOf } from './plan.ts'
import { missingCounts } from './store/missing-messages.ts'
import { holdWatermark, type MailboxRow, type MailTables } from './store/tables.ts'

export type Watermark = {
  /** In seconds since the epoch; 0 where there is none. */
  markS: number
  /** It speaks of the mailbox as it was then. */
  asOfMs: number | null
}

type Position = Pick<StreamRow, 'id' | 'mark_at'>

/** The stream is read before the mailbox, and both before this looks for news: what comes in between holds it back. */
export async function watermarkOf(
  ledger: Ledger,
  stream: Position,
  mailbox: MailboxRow | undefined,
): Promise<Watermark> {
  if (mailbox?.planned_at == null) return { markS: 0, asOfMs: null }
  const { markS, asOfMs } = await markBeforeNews(ledger, stream, mailbox)
  // What was stored and is not there any more is not claimed.
  const { pendingFromMs } = await missingCounts(ledger, mailbox.account)
  const heldS = Math.min(markS, pendingFromMs === null ? markS : Math.floor(pendingFromMs / 1000))
  // Nothing is accounted for before 1970.
  return { markS: Math.max(0, heldS), asOfMs }
}

/** Streams as they may be shown: a mailbox up to its watermark, which may be behind the mark that the ledger keeps. */
export async function withWatermarks<Row extends Position & Pick<StreamRow, 'name' | 'mark'>>(
  ledger: Ledger,
  tables: MailTables,
  streams: readonly Row[],
): Promise<Row[]> {
  return Promise.all(
    streams.map(async (stream) => {
      const mailbox = stream.name.startsWith(streamOf(''))
        ? await tables.findMailbox(accountOf(stream.name))
        : undefined
      if (!mailbox) return stream
      const { markS } = await watermarkOf(ledger, stream, mailbox)
      if (markS === stream.mark_at) return stream
      return { ...stream, mark: markS === 0 ? null : markOf(markS), mark_at: markS }
    }),
  )
}

async function markBeforeNews(ledger: Ledger, stream: Position, mailbox: MailboxRow): Promise<Watermark> {
  if (!(await hasOpenNews(ledger, stream, mailbox))) {
    return { markS: stream.mark_at, asOfMs: mailbox.checked_at }
  }
  if (mailbox.held_as_of !== null) return { markS: mailbox.held_mark_s ?? 0, asOfMs: mailbox.held_as_of }
  // News from before it was noted where they held it: behind the slices, the mark waits for them by itself.
  const isBehindSlices = stream.mark_at >= Math.floor((mailbox.planned_at ?? 0) / 1000)
  return { markS: isBehindSlices ? stream.mark_at : 0, asOfMs: mailbox.planned_at }
}

/** For the transaction that adds a segment behind the slices, before it notes that the mailbox was checked. */
export async function holding(
  ledger: Ledger,
  stream: Position,
  mailbox: MailboxRow | undefined,
): Promise<(tx: Tx) => Promise<void>> {
  if (!mailbox || (await hasOpenNews(ledger, stream, mailbox))) return async () => {}
  return (tx) => holdWatermark(tx, mailbox.account, stream.mark_at)
}

async function hasOpenNews(ledger: Ledger, { id }: Position, { planned_at }: MailboxRow): Promise<boolean> {
  const fromAt = Math.floor((planned_at ?? 0) / 1000)
  for (const state of ['open', 'sealed'] as const) {
    if ((await ledger.segments(id, { fromAt, state, limit: 1 })).length > 0) return true
  }
  return false
}
