/**
 * Puts messages back that Gmail no longer has: the bytes from the archive, with the labels of before. The API takes no
 * date beside the bytes (see insertion.ts), so that one of the two changes: the bytes stay, unless it is asked otherwise.
 *
 * An insertion cannot be repeated safely, so it is journaled in two steps: first that it is about to be made, with
 * the ids of everything in the mailbox that looks like the message; then the new id. After a crash in between, what
 * looks like it, was not there before and has the same bytes is what the call has made.
 */
import { createHash } from 'node:crypto'
import { asTidemarkError, TidemarkError } from '../../../base/errors.ts'
import { redate } from '../../../cloud/gmail/insertion.ts'
import type { RunContext } from '../../../engine/index.ts'
import type { MailAccount } from '../account.ts'
import type { StoredMessage } from '../message.ts'
import type { EntryRow } from '../store/journal.ts'
import { noteInserting, noteUndone, type Undone } from '../store/journal-writes.ts'
import { noteListed } from '../store/tables.ts'
import type { BatchPayload, CleanUpKinds } from './kinds.ts'

/** Given by what a message is; Gmail refuses them with an insertion. */
const NOT_INSERTED = ['DRAFT', 'CHAT']
const LOOK_PAGES_MAX = 20
/** Ids that are safe to stand in a search. */
const SEARCHABLE_MESSAGE_ID = /^<([^\s<>"'(){}]{1,500})>$/

export type Reinserting = {
  kinds: CleanUpKinds
  job: RunContext<BatchPayload>
  account: MailAccount
  /** The labels that the mailbox has now. */
  labels: ReadonlySet<string>
}

export async function reinsert(context: Reinserting, entry: EntryRow): Promise<void> {
  const { kinds, job } = context
  const { run } = job.payload
  let undone: Undone
  try {
    undone = await putBack(context, entry)
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (job.signal.aborted || (error.kind !== 'permanent' && error.kind !== 'gone')) throw thrown
    undone = { id: entry.id, undo: 'failed', detail: error.message }
  }
  await job.commit({ effects: (tx) => noteUndone(tx, run, [undone], kinds.clock.now()) })
  if (undone.newId === undefined) return
  await kinds.point('reinserted')
  await adoptReinserted(context, { id: entry.id, newId: undone.newId })
}

async function putBack(context: Reinserting, entry: EntryRow): Promise<Undone> {
  const { kinds, job, account } = context
  const message = await account.archive.message(entry.id)
  if (!message) throw new TidemarkError('the archive does not have it', { kind: 'permanent' })
  const raw = await account.archive.raw(entry.id)
  if (entry.undo === 'inserting') {
    const made = await madeBefore(context, entry, message, raw)
    if (made !== undefined) return { id: entry.id, undo: 'reinserted', newId: made }
  } else {
    const seenBefore = await lookAlikes(account, message, job.signal)
    const { run } = job.payload
    await job.commit({ effects: (tx) => noteInserting(tx, run, { id: entry.id, seenBefore }) })
  }
  await kinds.point('inserting')
  const inserted = await insert(context, entry, message, raw)
  await kinds.point('inserted')
  const detail = changeOfDate(message, inserted.altered)
  return { id: entry.id, undo: 'reinserted', newId: inserted.id, ...(detail ? { detail } : {}) }
}

/** What is different about a message that is there again. */
function changeOfDate({ headerMs, internalMs }: StoredMessage, isAltered: boolean): string | undefined {
  if (isAltered) return REWRITTEN
  if (headerMs === null) return UNDATED
  return wholeSecond(headerMs) === wholeSecond(internalMs) ? undefined : REDATED
}

export const REWRITTEN = 'its Date header was rewritten to say when it arrived'
export const UNDATED = 'Gmail now dates it by when it was inserted: it has no date of its own'
export const REDATED = 'Gmail now dates it by its Date header, and not by when it arrived'

/**
 * The archive has it under its new id from here on, and not twice: Gmail's own bytes are fetched, and take the place of
 * the same ones under the old id. A rewritten message stays beside its original. Only then is it listed, so that the
 * sync does not count it as a new one: what is never adopted is fetched by the sync like any other.
 */
export async function adoptReinserted(
  { job, account }: Pick<Reinserting, 'job' | 'account'>,
  { id: replaces, newId }: { id: string; newId: string },
): Promise<void> {
  const { signal } = job
  try {
    const { id, threadId, historyId, labelIds, internalMs, raw } = await account.client.get(newId, { signal })
    const message = { id, threadId, historyId, labelIds, internalMs, raw }
    await account.archive.store([{ ...message, source: 'gmail', replaces }])
  } catch (thrown) {
    // Deleted again: nothing to take its place.
    if (asTidemarkError(thrown).kind !== 'gone') throw thrown
  }
  await job.commit({
    effects: async (tx) => {
      await noteListed(tx, account.name, [newId])
    },
  })
}

function wholeSecond(ms: number): number {
  return Math.floor(ms / 1_000)
}

async function insert(
  { job, account, labels }: Reinserting,
  entry: EntryRow,
  message: StoredMessage,
  raw: Uint8Array,
): Promise<{ id: string; altered: boolean }> {
  const { signal } = job
  const wanted = {
    raw,
    internalMs: message.internalMs,
    labelIds: (entry.priorLabels ?? []).filter((id) => labels.has(id) && !NOT_INSERTED.includes(id)),
    dating: job.payload.keepDates ? ('internal' as const) : ('header' as const),
  }
  try {
    return await account.client.insert({ ...wanted, threadId: message.threadId }, { signal })
  } catch (thrown) {
    // Its conversation may be gone with it: then it starts one of its own.
    const { kind } = asTidemarkError(thrown)
    if (kind !== 'permanent' && kind !== 'gone') throw thrown
    return account.client.insert(wanted, { signal })
  }
}

/** What an earlier attempt has made, if it came so far. */
async function madeBefore(
  { kinds, job, account }: Reinserting,
  entry: EntryRow,
  message: StoredMessage,
  raw: Uint8Array,
): Promise<string | undefined> {
  const seen = new Set(entry.seenBefore)
  const fresh = (await lookAlikes(account, message, job.signal)).filter((id) => !seen.has(id))
  const journal = await kinds.journal()
  const others = await journal.madeByUndo(fresh)
  const hashes = [sha256(raw), sha256(redate(raw, message.internalMs).raw)]
  for (const id of fresh.filter((one) => !others.has(one))) {
    try {
      const found = await account.client.get(id, { signal: job.signal })
      if (hashes.includes(sha256(found.raw))) return id
    } catch (thrown) {
      if (asTidemarkError(thrown).kind !== 'gone') throw thrown
    }
  }
  return undefined
}

/** Ids in the mailbox with the same Message-ID; without a usable one, of the same second. */
async function lookAlikes(
  account: MailAccount,
  message: StoredMessage,
  signal: AbortSignal,
): Promise<string[]> {
  const { messageId, messageIdIsSurrogate, internalMs, headerMs } = message
  const searchable = messageIdIsSurrogate ? null : SEARCHABLE_MESSAGE_ID.exec(messageId)
  const times = [internalMs, ...(headerMs === null ? [] : [headerMs])]
  const queries = searchable ? [`rfc822msgid:${searchable[1]}`] : [...new Set(times.map(secondQuery))]
  const ids = new Set<string>()
  for (const query of queries) for (const id of await listAll(account, query, signal)) ids.add(id)
  return [...ids]
}

/** Whether its bounds belong to it is not documented: a second more on each side. */
function secondQuery(ms: number): string {
  const second = Math.floor(ms / 1000)
  return `after:${second - 1} before:${second + 2}`
}

async function listAll(account: MailAccount, query: string, signal: AbortSignal): Promise<string[]> {
  const ids: string[] = []
  let pageToken: string | undefined
  for (let page = 0; page < LOOK_PAGES_MAX; page++) {
    const asked = { query, includeSpamTrash: true, signal, ...(pageToken === undefined ? {} : { pageToken }) }
    const answer = await account.client.listIds(asked)
    ids.push(...answer.ids.map(({ id }) => id))
    pageToken = answer.nextPageToken
    if (!pageToken) return ids
  }
  throw new TidemarkError('too many messages look like it to tell whether it is there', { kind: 'permanent' })
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
