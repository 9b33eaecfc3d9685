/**
 * Follows the mailbox: what changed since the cursor. Labels and deletions are applied to the archive before the
 * cursor moves, and applying them again changes nothing, so a crash in between only repeats them. New messages
 * become a segment of the stream: the mark passes it when they are stored.
 */

import { plural } from '../../base/wording.ts'
import type { HistoryRecord } from '../../cloud/gmail/client.ts'
import { type Outcome, type RunContext, request, TidemarkError } from '../../engine/index.ts'
import type { MailAccount } from './account.ts'
import type { MailKinds } from './kinds.ts'
import { mendLosses } from './losses.ts'
import { readTotals } from './mailbox-totals.ts'
import type { MessageChange } from './message.ts'
import { chunksOf, markOf } from './plan.ts'
import { noteStale } from './store/stale-labels.ts'
import { noteChecked, noteFresh, noteLabels, noteTotals } from './store/tables.ts'
import { holding } from './watermark.ts'

/** Pages of one commit; a longer history is taken in several. */
const PAGES_MAX = 20
const COMMITS_MAX = 1_000

/** Beyond any history: a service that answers with next pages for ever must end. */
const PAGES_IN_ALL_MAX = 20_000

type Found = {
  records: HistoryRecord[]
  historyId: string
  more: boolean
  /** What arrived by then is in it; null where there is more to read. */
  uptoMs: number | null
}

export async function runHistory(kinds: MailKinds, job: RunContext<{ account: string }>): Promise<Outcome> {
  const { ledger, clock, accounts } = kinds
  const account = await accounts.get(job.payload.account)
  if ((await ledger.stream(account.stream)).cursor !== null) await mendLosses(kinds, job, account)
  let news = 0
  for (let round = 0; round < COMMITS_MAX; round++) {
    const { cursor } = await ledger.stream(account.stream)
    if (cursor === null) return { skip: 'the mailbox is not planned yet' }
    const nowMs = clock.now()
    const found = await readPages(account, cursor, { signal: job.signal, nowMs }).catch((error: unknown) => {
      if (error instanceof TidemarkError && error.code === 'history-expired') return null
      throw error
    })
    if (!found) {
      return {
        jobs: [request(kinds.reconcile, { account: account.name })],
        note: `the history before ${cursor} has expired: the mailbox is compared with the archive`,
      }
    }
    news += found.records.length
    if (found.records.length === 0 && found.historyId === cursor) {
      return { effects: (tx) => noteChecked(tx, account.name, nowMs), note: 'nothing new' }
    }
    await kinds.listingLock.run(account.name, () => takeIn(kinds, job, account, found))
    job.progress({ done: news, unit: 'items', label: changesText(news) })
    if (!found.more) {
      const totals = await readTotals(account, { atMs: clock.now(), signal: job.signal })
      return { effects: (tx) => noteTotals(tx, account.name, totals), note: changesText(news) }
    }
  }
  return { again: {}, note: `${changesText(news)}, and more` }
}

async function readPages(
  account: MailAccount,
  cursor: string,
  { signal, nowMs }: { signal: AbortSignal; nowMs: number },
): Promise<Found> {
  const records: HistoryRecord[] = []
  let pageToken: string | undefined
  // The mailbox's id when the first page was made: what happens while pages are turned may be on none of them.
  let present: string | undefined
  for (let pages = 1; pages <= PAGES_IN_ALL_MAX; pages++) {
    const page = await account.client.history({ startHistoryId: cursor, pageToken, signal })
    records.push(...page.records)
    present ??= page.historyId
    const last = records.at(-1)?.id ?? cursor
    if (!page.nextPageToken) {
      return { records, historyId: newer(newer(cursor, present), last), more: false, uptoMs: nowMs }
    }
    // The cursor may stop at any record; the next reading begins after it.
    if (pages >= PAGES_MAX && last !== cursor) return { records, historyId: last, more: true, uptoMs: null }
    pageToken = page.nextPageToken
  }
  throw new TidemarkError(`the history has more than ${PAGES_IN_ALL_MAX} pages without a change`, {
    kind: 'permanent',
  })
}

/** Ids have up to 64 bits. A cursor never moves backwards. */
function newer(one: string, other: string): string {
  return BigInt(other) > BigInt(one) ? other : one
}

async function takeIn(
  kinds: MailKinds,
  job: RunContext<{ account: string }>,
  account: MailAccount,
  found: Found,
): Promise<void> {
  const { tables, clock, ledger } = kinds
  const { name, archive } = account
  const atMs = clock.now()
  const { changes, added, deleted, unclear } = readChanges(found.records, atMs)
  const { unknown } = changes.length > 0 ? await archive.apply(changes) : { unknown: [] as string[] }
  // A change to a message that is not stored: it may be on its way with older labels, or never have been wanted.
  const again = await tables.listed(name, [...unknown, ...unclear])
  const fresh = await tables.unlisted(
    name,
    [...new Set([...added, ...unknown, ...unclear])].filter((id) => !deleted.has(id) && !again.has(id)),
  )
  const size = kinds.batchSize(name).size
  const labels = await newLabels(kinds, account, found.records, job.signal)
  const stream = await ledger.stream(account.stream)
  const { id: streamId, tail_at: tailS } = stream
  const hold = await holding(ledger, stream, await tables.findMailbox(name))
  // No further than the history was read: what arrived since is not accounted for.
  const toS = Math.max(tailS + 1, Math.floor((found.uptoMs ?? 0) / 1000))
  const label = `history ${found.historyId}`
  await job.commit({
    ...(fresh.length > 0
      ? {
          segments: [{ streamId, from: tailS, to: toS, mark: markOf(toS), label, ref: 'news' }],
          counts: [{ segment: 'news', listed: fresh.length, seal: true }],
        }
      : {}),
    jobs: [
      ...chunksOf(fresh, size).map((ids) =>
        request(kinds.fetch, { account: name, ids }, { segment: 'news', lane: 'interactive' }),
      ),
      ...chunksOf([...again], size).map((ids) =>
        request(kinds.fetch, { account: name, ids, refresh: true }, { lane: 'interactive' }),
      ),
      ...(kinds.indexing && changes.length > 0 ? [kinds.indexing.request(name)] : []),
    ],
    cursor: found.historyId,
    effects: async (tx) => {
      if (fresh.length > 0) await hold(tx)
      await noteFresh(tx, name, fresh)
      await noteStale(tx, name, [...again])
      if (found.uptoMs !== null) await noteChecked(tx, name, found.uptoMs)
      await noteLabels(tx, name, labels)
      await kinds.indexing?.want(tx, name, [...new Set(changes.map(({ id }) => id))])
    },
  })
}

type Changes = {
  changes: MessageChange[]
  added: string[]
  /** Named without saying what happened: looked at again. */
  unclear: Set<string>
  deleted: Set<string>
}

function readChanges(records: readonly HistoryRecord[], atMs: number): Changes {
  const found: Changes = { changes: [], added: [], unclear: new Set(), deleted: new Set() }
  for (const { id: historyId, ...record } of records) {
    for (const { id } of record.added) found.added.push(id)
    for (const { id, labelIds } of record.labelsAdded) {
      found.changes.push({ id, historyId, addLabelIds: labelIds })
    }
    for (const { id, labelIds } of record.labelsRemoved) {
      found.changes.push({ id, historyId, removeLabelIds: labelIds })
    }
    for (const { id } of record.deleted) {
      found.deleted.add(id)
      found.changes.push({ id, historyId, deletedAtMs: atMs })
    }
    for (const { id } of record.touched) found.unclear.add(id)
  }
  return found
}

/** Names are asked for only when a label turns up that nobody knows. */
async function newLabels(
  kinds: MailKinds,
  account: MailAccount,
  records: readonly HistoryRecord[],
  signal: AbortSignal,
): Promise<{ id: string; name: string }[]> {
  const known = new Set((await kinds.tables.labels(account.name)).map(({ id }) => id))
  const used = records.flatMap(({ added, labelsAdded }) =>
    [...added, ...labelsAdded].flatMap(({ labelIds }) => labelIds),
  )
  return used.some((id) => !known.has(id)) ? account.client.labels({ signal }) : []
}

const changesText = (count: number): string => `${count} ${plural(count, 'change')}`
