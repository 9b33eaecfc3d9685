/**
 * Looks at a mailbox: at what happened since the cursor, or at all of it. There is one such job of a mailbox at a time.
 *
 *   no cursor yet ─┐
 *   due, or wanted ┼─▶ full: the history id first, then inbox, labels and drafts are compared with the records
 *   history is gone┘
 *   otherwise ───────▶ the history since the cursor, paged to its end
 *
 * Jobs and cursor are one commit, and a listing that fails moves nothing. Three things keep mail from being sorted
 * twice: a scan leaves conversations alone that have a label of the assistant and no record, messages that are known
 * are no news, and a conversation has one job of a kind. A push may name a history id that cannot be read yet: then it looks again shortly.
 */
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import type { HistoryRecord } from '../../cloud/gmail/client.ts'
import { type JobRequest, type Outcome, type RunContext, request } from '../../engine/index.ts'
import type { Lane } from '../../ledger/contract.ts'
import type { AssistAccount } from './account.ts'
import { routedAgents } from './agent/router.ts'
import { LABELS } from './contract.ts'
import { draftIds } from './conversation.ts'
import type { AssistKinds, SyncPayload } from './kinds.ts'
import { ensureLabels, hasOtherNames, labelNamesOf } from './labels.ts'
import { netChanges, newsOf, type ThreadWish, wishesOf } from './plan.ts'
import {
  type AccountRow,
  checkWanted,
  decideBacklog,
  dropPush,
  isLaterHistory,
  moveCursor,
  setLabels,
} from './store/accounts.ts'
import {
  decideDrafts,
  isHeld,
  noteMessages,
  reviveDrafts,
  settleMessages,
  touchThreads,
} from './store/records.ts'

const PAGES_MAX = 10_000
/** A push is there before its history can be read: looks again after so long, and so often. */
const UNREADABLE_MS = 500
const UNREADABLE_MAX = 5
/** Nobody has looked for so long: what is found then was found at once. */
const OFF_MS = 3_600_000
/** So many mails are no backlog where they came since a look shortly before, however small `backlog_max` is. */
const MASSES = 50
/** Threads that are looked up at a time. */
const PART = 500

type SyncJob = RunContext<SyncPayload>

export async function runSync(kinds: AssistKinds, job: SyncJob): Promise<Outcome> {
  const { account: name, forceFull } = job.payload
  const opened = await kinds.accounts.get(name)
  const { row } = opened
  const isDue = kinds.clock.now() - (row.fullAtMs ?? 0) >= kinds.settings.fullScanMs
  const account = hasOtherNames(row, labelNamesOf(opened.settings.labels))
    ? await withLabels(job, opened)
    : opened
  const isFull =
    forceFull || row.fullWanted > 0 || row.cursor === null || isDue || account.labels !== opened.labels
  const found = isFull ? undefined : await followHistory(kinds, job, account, row.cursor!)
  const seenTo = found?.historyId ?? (await scan(kinds, job, account))
  if (isUnreadable(row, seenTo) && triesOf(job) < UNREADABLE_MAX) {
    return {
      again: { afterMs: UNREADABLE_MS },
      checkpoint: { unreadable: triesOf(job) + 1 },
      note: 'a push came before its history can be read',
      code: 'history-late',
    }
  }
  return {
    effects: async (tx) => {
      await checkWanted(tx, name, row.syncWanted)
      if (isUnreadable(row, seenTo)) await dropPush(tx, name)
    },
    note: found ? `${found.changes} changes` : 'the whole inbox was compared',
    code: found ? 'history' : 'full',
  }
}

function isUnreadable({ pushedHistory }: AccountRow, seenTo: string): boolean {
  return pushedHistory !== null && isLaterHistory(pushedHistory, seenTo)
}

function triesOf(job: SyncJob): number {
  return Number((job.checkpoint as { unreadable?: number } | null)?.unreadable ?? 0)
}

/** Undefined where Gmail no longer knows what came after the cursor: then everything is compared. */
async function followHistory(
  kinds: AssistKinds,
  job: SyncJob,
  account: AssistAccount,
  cursor: string,
): Promise<{ historyId: string; changes: number } | undefined> {
  const records: HistoryRecord[] = []
  let historyId = cursor
  let pageToken: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await historyPage(account, { startHistoryId: cursor, pageToken, signal: job.signal })
    if (!answer) return undefined
    records.push(...answer.records)
    historyId = answer.historyId
    pageToken = answer.nextPageToken
    job.progress({ done: records.length, unit: 'items' })
    if (pageToken === undefined) break
  }
  if (pageToken !== undefined) throw endless('history')
  const changes = netChanges(records)
  const { tables } = kinds
  const ours = Object.values(account.labels)
  // A label that was deleted is gone from all that had it, as if the user had taken it away one by one.
  if (changes.some(({ removed }) => ours.some((label) => removed.has(label)))) {
    if ((await withLabels(job, account)).labels !== account.labels) return undefined
  }
  const ids = changes.map(({ id }) => id)
  const drafts = await tables.draftThreads(account.name, ids)
  const threads = changes.flatMap(({ threadId }) => threadId ?? [])
  const known = await tables.records(account.name, [...new Set([...threads, ...drafts.values()])])
  const news = newsOf(changes, { labels: account.labels, records: known, drafts })
  if (news.isUnclear) return undefined
  const nowMs = kinds.clock.now()
  const unknown = await unknownOf(kinds, account.name, news.arrivals)
  // A job that found one of these in the trash may forget it just now (classify.ts): it looks again, or it is noted anew.
  const unsorted = news.arrivals.filter(({ threadId }) => known.get(threadId)?.category === null)
  const arrivals = [...new Set([...unknown, ...unsorted])]
  const { wishes } = news
  const isBacklog = isManyAtOnce(kinds, account.row, unknown.length) && !isFree(kinds, account)
  const touched = [...arrivals.map(({ threadId }) => threadId), ...wishes.keys()]
  await job.commit({
    jobs: [
      ...(isBacklog ? [] : classifyJobs(kinds, account.name, arrivals, 'interactive')),
      ...wishJobs(kinds, account.name, wishes),
    ],
    effects: async (tx) => {
      await touchThreads(tx, account.name, touched, nowMs)
      await noteMessages(tx, account.name, arrivals, nowMs, isBacklog ? 'held' : 'waiting')
      await settleMessages(tx, account.name, news.deleted, { state: 'gone', reason: 'it was deleted', nowMs })
      await reviveDrafts(tx, account.name, news.back)
      await moveCursor(tx, account.name, { cursor: historyId, full: undefined, nowMs })
    },
  })
  return { historyId, changes: changes.length }
}

/**
 * A machine that was off for days finds as much in the history as a scan would: that costs as much. What comes from one
 * look to the next is new mail, but where it comes in masses.
 */
function isManyAtOnce({ settings, clock }: AssistKinds, { syncedAtMs }: AccountRow, found: number): boolean {
  const wasOff = clock.now() - (syncedAtMs ?? 0) >= OFF_MS
  return found > (wasOff ? settings.backlogMax : Math.max(settings.backlogMax, MASSES))
}

/** Whether sorting costs no money, whichever model or agent is asked. */
function isFree({ models }: AssistKinds, { settings }: AssistAccount): boolean {
  return !models.mayCost(routedAgents(settings).map(({ model }) => model))
}

async function historyPage(
  { client }: AssistAccount,
  page: { startHistoryId: string; pageToken: string | undefined; signal: AbortSignal },
) {
  const { pageToken, ...rest } = page
  try {
    return await client.history({ ...rest, ...(pageToken !== undefined && { pageToken }) })
  } catch (thrown) {
    if (asTidemarkError(thrown).code !== 'history-expired') throw thrown
    return undefined
  }
}

/** Everything is compared; answers with the history id from which changes are followed. */
async function scan(kinds: AssistKinds, job: SyncJob, opened: AssistAccount): Promise<string> {
  const account = await withLabels(job, opened)
  const { client, name } = account
  // Before anything is listed: what happens from here on is followed by history.
  const { historyId } = await client.profile({ signal: job.signal })
  const wishes = new Map<string, Set<ThreadWish>>()
  const labelled = await compareLabels(kinds, job, account, wishes)
  await scanInbox(kinds, job, account, labelled)
  await compareDrafts(kinds, job, account, wishes)
  await leftBehind(kinds, job, account)
  const nowMs = kinds.clock.now()
  await job.commit({
    jobs: wishJobs(kinds, name, wishes),
    effects: async (tx) => {
      await touchThreads(tx, name, wishes.keys(), nowMs)
      await moveCursor(tx, name, { cursor: historyId, full: { wanted: account.row.fullWanted }, nowMs })
    },
  })
  return historyId
}

/**
 * A label that the user has deleted is made again: nothing could be sorted without it. One whose name was changed in the
 * settings is renamed. The same ids are the same object.
 */
async function withLabels(job: SyncJob, account: AssistAccount): Promise<AssistAccount> {
  const { client, name, settings, row } = account
  const made = await ensureLabels(client, settings.labels, job.signal, row)
  if (made.renewed.length === 0 && row.labelNames !== null && !hasOtherNames(row, made.labelNames)) {
    return account
  }
  await job.commit({ effects: (tx) => setLabels(tx, name, made) })
  const { labelNames, renewed } = made
  const labels = renewed.length === 0 ? account.labels : made.labels
  return { ...account, labels, row: { ...row, labels, labelNames } }
}

async function scanInbox(
  kinds: AssistKinds,
  job: SyncJob,
  account: AssistAccount,
  labelled: ReadonlySet<string>,
): Promise<void> {
  const { settings, clock, tables } = kinds
  const free = isFree(kinds, account)
  const query = `in:inbox newer_than:${settings.scanDays}d`
  let pageToken: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await account.client.listIds({
      query,
      includeSpamTrash: false,
      signal: job.signal,
      ...(pageToken !== undefined && { pageToken }),
    })
    const unknown = await unknownOf(kinds, account.name, answer.ids)
    const known = await tables.records(account.name, [...new Set(unknown.map(({ threadId }) => threadId))])
    // The first guard: what has a label and no record was sorted by somebody, and is taken as it is (cleanup.ts).
    const isSorted = (thread: string): boolean =>
      labelled.has(thread) && (known.get(thread)?.category ?? null) === null
    const arrivals = unknown.filter(({ threadId }) => !isSorted(threadId))
    const nowMs = clock.now()
    if (arrivals.length > 0) {
      await job.commit({
        jobs: free ? classifyJobs(kinds, account.name, arrivals, 'bulk') : [],
        effects: async (tx) => {
          await touchThreads(
            tx,
            account.name,
            arrivals.map(({ threadId }) => threadId),
            nowMs,
          )
          await noteMessages(tx, account.name, arrivals, nowMs, free ? 'waiting' : 'held')
        },
      })
    }
    pageToken = answer.nextPageToken
    if (pageToken === undefined) break
  }
  if (pageToken !== undefined) throw endless('inbox')
  // What goes on its way here gets its jobs with what else was left behind.
  await job.commit({
    effects: (tx) => decideBacklog(tx, account.name, { free, max: settings.backlogMax }),
  })
}

/**
 * What has a label of ours in Gmail and another one, or none, in its record: the user did it while nobody looked.
 * Answers with all threads that have one.
 */
async function compareLabels(
  kinds: AssistKinds,
  job: SyncJob,
  account: AssistAccount,
  wishes: Map<string, Set<ThreadWish>>,
): Promise<ReadonlySet<string>> {
  const seen = new Map<string, Set<string>>()
  const labelled = new Set<string>()
  for (const role of LABELS) {
    const threads = await threadsLabelled(job, account, account.labels[role])
    seen.set(role, threads)
    for (const thread of threads) labelled.add(thread)
    const all = [...threads]
    for (let at = 0; at < all.length; at += PART) {
      const part = all.slice(at, at + PART)
      const records = await kinds.tables.records(account.name, part)
      for (const thread of part) {
        for (const wish of wishesOf(role, records.get(thread))) addWish(wishes, thread, wish)
      }
    }
  }
  let after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const records = await kinds.tables.page(account.name, { after, limit: PART })
    for (const { thread, label, isApplied } of records) {
      if (!isApplied || (label !== null && !seen.get(label)!.has(thread))) addWish(wishes, thread, 'cleanup')
    }
    after = records.at(-1)?.thread ?? ''
    if (records.length < PART) return labelled
  }
  throw endless('list of records')
}

async function threadsLabelled(job: SyncJob, account: AssistAccount, label: string): Promise<Set<string>> {
  const threads = new Set<string>()
  let pageToken: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await account.client.listIds({
      labelIds: [label],
      includeSpamTrash: false,
      signal: job.signal,
      ...(pageToken !== undefined && { pageToken }),
    })
    for (const { threadId } of answer.ids) threads.add(threadId)
    pageToken = answer.nextPageToken
    if (pageToken === undefined) return threads
  }
  throw endless('label')
}

/** Drafts of ours that are gone, or back beside others, or have another message than we gave them. */
async function compareDrafts(
  kinds: AssistKinds,
  job: SyncJob,
  account: AssistAccount,
  wishes: Map<string, Set<ThreadWish>>,
): Promise<void> {
  const open = await kinds.tables.openDrafts(account.name)
  const there = await draftIds(account, job.signal)
  for (const { draftId, messageId, thread, state } of open) {
    if (state === 'intended') continue
    const isThere = draftId !== null && there.get(messageId ?? '') === draftId
    if (!isThere) addWish(wishes, thread, 'cleanup')
  }
  const back = await kinds.tables.draftThreads(account.name, [...there.keys()], 'gone')
  for (const thread of back.values()) addWish(wishes, thread, 'cleanup')
}

/** What only other settings of the models can change. */
const REFUSALS: ReadonlySet<string> = new Set([
  'no-model',
  'model-refused',
  'model-not-configured',
  'model-budget',
])

/** Conversations whose job was lost or failed for good: it is asked for again, unless it would be refused again. */
async function leftBehind(kinds: AssistKinds, job: SyncJob, account: AssistAccount): Promise<void> {
  const { name, row } = account
  const max = kinds.settings.backlogMax
  await job.commit({ effects: (tx) => decideDrafts(tx, name, { free: isFree(kinds, account), max }) })
  const isWanted = job.payload.forceFull || row.fullWanted > 0
  const isRefused =
    !isWanted && row.refusedBy !== null && row.refusedBy === (await kinds.models.fingerprint(name))
  let after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const threads = await kinds.tables.waitingThreads(name, after, PART)
    if (threads.length === 0) break
    await job.commit({
      jobs: threads.map((thread) => threadJob(kinds.classify, name, thread, 'bulk')),
    })
    after = threads.at(-1)!
  }
  after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const records = await kinds.tables.page(name, { status: 'pending', after, limit: PART })
    const waiting = records.filter(
      (record) =>
        record.category === 'needs_response' &&
        (isWanted || record.problemCode !== 'model-unusable') &&
        !isHeld(record) &&
        !(isRefused && REFUSALS.has(record.problemCode ?? '')),
    )
    if (waiting.length > 0) {
      await job.commit({
        jobs: waiting.map(({ thread }) => threadJob(kinds.draft, name, thread, 'bulk')),
      })
    }
    after = records.at(-1)?.thread ?? ''
    if (records.length < PART) break
  }
  after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const threads = await kinds.tables.agentThreads(name, after, PART)
    if (threads.length === 0) return
    await job.commit({ jobs: threads.map((thread) => threadJob(kinds.agent, name, thread, 'bulk')) })
    after = threads.at(-1)!
  }
}

/** The second guard: what is known is no news. */
async function unknownOf(
  kinds: AssistKinds,
  account: string,
  found: readonly { id: string; threadId: string }[],
): Promise<{ id: string; threadId: string }[]> {
  const news: { id: string; threadId: string }[] = []
  for (let at = 0; at < found.length; at += PART) {
    const part = found.slice(at, at + PART)
    const known = await kinds.tables.knownMessages(
      account,
      part.map(({ id }) => id),
    )
    news.push(...part.filter(({ id }) => !known.has(id)))
  }
  return news
}

function classifyJobs(
  kinds: AssistKinds,
  account: string,
  arrivals: readonly { threadId: string }[],
  lane: Lane,
): JobRequest[] {
  const threads = new Set(arrivals.map(({ threadId }) => threadId))
  return [...threads].map((thread) => threadJob(kinds.classify, account, thread, lane))
}

function wishJobs(
  kinds: AssistKinds,
  account: string,
  wishes: ReadonlyMap<string, ReadonlySet<ThreadWish>>,
): JobRequest[] {
  const kindOf = { cleanup: kinds.cleanup, rework: kinds.rework, 'manual-draft': kinds.manualDraft } as const
  return [...wishes].flatMap(([thread, all]) =>
    [...all].map((wish) => threadJob(kindOf[wish], account, thread, 'interactive')),
  )
}

function threadJob(kind: AssistKinds['classify'], account: string, thread: string, lane: Lane): JobRequest {
  return request(kind, { account, thread }, { lane })
}

function addWish(wishes: Map<string, Set<ThreadWish>>, thread: string, wish: ThreadWish): void {
  wishes.set(thread, (wishes.get(thread) ?? new Set()).add(wish))
}

function endless(what: string): TidemarkError {
  return new TidemarkError(`Gmail's ${what} does not end after ${PAGES_MAX} pages.`, { kind: 'permanent' })
}
