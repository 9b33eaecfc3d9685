/** Conversations, their messages, drafts and events as they are written, each inside the transaction of the job that does. */
import { TidemarkError } from '../../../base/errors.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { Category, DecidedBy, LabelRole, ThreadStatus } from '../contract.ts'
import { rowsFrom, textsFrom } from './rows.ts'

/** A source that a draft leans on, beside it on the page. */
export type SourceNote = { title: string; source: string; documentId: number; url: string }

/** What the user wants of the next draft: an instruction, and the draft that it is about. */
export type DraftOrder = {
  kind: 'rework' | 'manual'
  /** When it was asked for: two orders are two, also where they say the same. */
  atMs: number
  instruction: string
  earlier: string
  /** Messages of our drafts that the new one replaces: put to the trash once it is there. */
  replaces: readonly string[]
}

export type ThreadRecord = {
  account: string
  thread: string
  version: number
  status: ThreadStatus
  /** Null until it is classified. */
  category: Category | null
  confidence: number
  reasoning: string
  language: string
  style: string
  by: DecidedBy | null
  isAutomated: boolean
  /** The one label of the assistant that the thread has in Gmail; null for none. */
  label: LabelRole | null
  /** While it is not applied: what the thread may have instead. Where it is, and is null: what it has unseen, in the trash. */
  labelWas: LabelRole | null
  isApplied: boolean
  /** Somebody wants it classified again, whatever is known. */
  isForced: boolean
  subject: string
  sender: string
  /** The message that was classified, and is answered. */
  answered: string | null
  lastAtMs: number
  reworks: number
  /** Of the draft that is there, or is to be made. */
  draftKey: string | null
  order: DraftOrder | null
  sources: readonly SourceNote[]
  /** What was taken out of the draft before it was written, for people. */
  removed: readonly { code: string; text: string }[]
  /** Why it waits, for people; null where it does not. */
  problem: string | null
  problemCode: string | null
  followUpAtMs: number | null
  createdAtMs: number
  updatedAtMs: number
  classifiedAtMs: number | null
}

export type Labels = Pick<ThreadRecord, 'label' | 'labelWas' | 'isApplied'>

/**
 * The label of a conversation that lies in the trash or in spam: it is set there, where no scan finds it, and is the
 * record's again with the conversation. Null where there is none such.
 */
export function unseenLabel({ label, labelWas, isApplied }: Labels): LabelRole | null {
  return isApplied && label === null ? labelWas : null
}

/**
 * `waiting`: on its way. `held`: on its way, too, once the user has agreed to what it costs (backlog.ts). `skipped`:
 * nothing is to be done with it. `gone`: no longer in the mailbox.
 */
export type MessageState = 'waiting' | 'held' | 'classified' | 'skipped' | 'gone'

/**
 * `intended`: noted, and perhaps made. `live`: made, and as we wrote it. `edited`: the user has changed it, so that it is
 * theirs. `trashed` by us; `sent` or `gone` by the user.
 */
export type DraftState = 'intended' | 'live' | 'edited' | 'trashed' | 'sent' | 'gone'

export type DraftRow = {
  account: string
  key: string
  thread: string
  state: DraftState
  /** Of what we wrote: what says something else is the user's. Empty, as of no text, once they have changed it. */
  textHash: string
  draftId: string | null
  messageId: string | null
  answered: string
  text: string
  madeAtMs: number
  /**
   * Drafts of others that were in the conversation when it was noted: what is there later and not among them is ours.
   * Null where nobody looked.
   */
  beside: readonly string[] | null
  /** Found where ours was noted, and not shown to be ours. */
  isGuessed: boolean
}

/** `assistant`: by itself. `user`: in Gmail, or on a page. */
export type Actor = 'assistant' | 'user'

/** What undoes it: the record's fields as they were. */
export type Undo = Pick<
  ThreadRecord,
  'category' | 'label' | 'status' | 'by' | 'reasoning' | 'confidence' | 'draftKey'
> & {
  /** The example that the act became, which is forgotten with it. */
  taught?: Taught | undefined
}

/** What is learned from an act of the user: the beginning of a mail, and what it is. */
export type Taught = { text: string; category: Category }

export function undoOf(record: ThreadRecord): Undo {
  const { category, status, by, reasoning, confidence, draftKey } = record
  const label = record.label ?? unseenLabel(record)
  return { category, label, status, by, reasoning, confidence, draftKey }
}

export type NewEvent = {
  account: string
  thread: string
  atMs: number
  /** For programs: `classified`, `draft-created`, … */
  what: string
  /** For people. */
  why: string
  by: Actor
  undo?: Undo | undefined
}

/** A job's look was older than the news. It costs no try: the job looks again at once. */
export function staleLook(): TidemarkError {
  return new TidemarkError('something else happened to the conversation meanwhile: looks again', {
    kind: 'throttled',
    code: 'assist-stale',
    retryAfterMs: 1,
  })
}

/** Makes the records where there are none; in any case, whoever is at work on one of them notices. */
export async function touchThreads(
  tx: Tx,
  account: string,
  threads: Iterable<string>,
  nowMs: number,
): Promise<void> {
  // In one order, so that two who touch several do not wait for each other.
  const sorted = [...new Set(threads)].sort()
  if (sorted.length === 0) return
  await tx.run(
    `INSERT INTO assist_threads(account, thread, version, status, created_at, updated_at)
     SELECT ?, one, 1, 'pending', ?, ? FROM (${textsFrom(tx, 'one')}) AS given WHERE true ORDER BY one
     ON CONFLICT (account, thread) DO UPDATE SET version = assist_threads.version + 1`,
    [account, nowMs, nowMs, JSON.stringify(sorted)],
  )
}

/** Somebody wants it classified again, whatever is known. False where there is no such conversation. */
export async function forceThread(tx: Tx, account: string, thread: string): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE assist_threads SET forced = 1, version = version + 1 WHERE account = ? AND thread = ?`,
    [account, thread],
  )
  return changed === 1
}

/** Writes the record as it is to be, or throws `staleLook` where it is no longer as it was read. Returns what is stored. */
export async function writeRecord(tx: Tx, record: ThreadRecord, nowMs: number): Promise<ThreadRecord> {
  const changed = await tx.run(
    `UPDATE assist_threads SET version = version + 1, status = ?, category = ?, confidence = ?, reasoning = ?,
       language = ?, style = ?, decided_by = ?, is_automated = ?, label = ?, label_was = ?, applied = ?,
       forced = ?, subject = ?, sender = ?, answered = ?,
       last_at = ?, reworks = ?, draft_key = ?, wish = ?, sources = ?, removed = ?, problem = ?, problem_code = ?, follow_up_at = ?,
       updated_at = ?, classified_at = ?
     WHERE account = ? AND thread = ? AND version = ?`,
    [
      record.status,
      record.category,
      record.confidence,
      record.reasoning,
      record.language,
      record.style,
      record.by,
      record.isAutomated ? 1 : 0,
      record.label,
      record.labelWas,
      record.isApplied ? 1 : 0,
      record.isForced ? 1 : 0,
      record.subject,
      record.sender,
      record.answered,
      record.lastAtMs,
      record.reworks,
      record.draftKey,
      record.order === null ? null : JSON.stringify(record.order),
      JSON.stringify(record.sources),
      JSON.stringify(record.removed),
      record.problem,
      record.problemCode,
      record.followUpAtMs,
      nowMs,
      record.classifiedAtMs,
      record.account,
      record.thread,
      record.version,
    ],
  )
  if (changed !== 1) throw staleLook()
  return { ...record, version: record.version + 1, updatedAtMs: nowMs }
}

/** Those that were not known before are on their way now; answers with them. */
export async function noteMessages(
  tx: Tx,
  account: string,
  messages: readonly { id: string; threadId: string }[],
  nowMs: number,
  state: 'waiting' | 'held' = 'waiting',
): Promise<Set<string>> {
  if (messages.length === 0) return new Set()
  const given = rowsFrom(tx, { id: 'text', threadId: 'text' })
  const rows = await tx.all<{ message: string }>(
    `INSERT INTO assist_messages(account, message, thread, state, seen_at)
     SELECT ?, given.id, given."threadId", '${state}', ? FROM ${given} WHERE true
     ON CONFLICT (account, message) DO NOTHING RETURNING message`,
    [account, nowMs, JSON.stringify(messages)],
  )
  return new Set(rows.map(({ message }) => message))
}

export async function releaseHeld(tx: Tx, account: string): Promise<void> {
  await tx.run(`UPDATE assist_messages SET state = 'waiting' WHERE account = ? AND state = 'held'`, [account])
}

const WAITS = `account = ? AND status = 'pending' AND category = 'needs_response'`

/**
 * Drafts that waited because there was no model: where there is one now that costs money, and they are many, they wait
 * for a yes. What the user has asked for themself does not.
 */
export async function decideDrafts(
  tx: Tx,
  account: string,
  { free, max }: { free: boolean; max: number },
): Promise<void> {
  const row = await tx.get<{ n: number }>(
    `SELECT COUNT(*) AS n FROM assist_threads WHERE ${WAITS} AND wish IS NULL AND problem_code IN ('no-model', 'held')`,
    [account],
  )
  if (free || Number(row?.n) <= max) {
    await setDraftProblem(tx, account, { of: `'held'`, text: null, code: null })
    return
  }
  const text = 'The draft waits until you agree to what the drafts cost.'
  await setDraftProblem(tx, account, { of: `'no-model'`, text, code: 'held' })
}

/** Waits for that yes; what the user has asked for themself does not. */
export function isHeld({ problemCode, order }: Pick<ThreadRecord, 'problemCode' | 'order'>): boolean {
  return problemCode === 'held' && order === null
}

/** The yes. */
export async function releaseDrafts(tx: Tx, account: string): Promise<void> {
  await setDraftProblem(tx, account, { of: `'no-model', 'held'`, text: null, code: null })
}

async function setDraftProblem(
  tx: Tx,
  account: string,
  { of, text, code }: { of: string; text: string | null; code: string | null },
): Promise<void> {
  await tx.run(
    `UPDATE assist_threads SET version = version + 1, problem = ?, problem_code = ?
     WHERE ${WAITS} AND wish IS NULL AND problem_code IN (${of})`,
    [text, code, account],
  )
}

export async function settleMessages(
  tx: Tx,
  account: string,
  ids: readonly string[],
  { state, reason, nowMs }: { state: MessageState; reason: string; nowMs: number },
): Promise<void> {
  if (ids.length === 0) return
  await tx.run(
    `UPDATE assist_messages SET state = ?, reason = ?, settled_at = ? WHERE account = ? AND message IN (${textsFrom(tx)})`,
    [state, reason, nowMs, account, JSON.stringify(ids)],
  )
}

/** As if they had never been seen: when they come to the inbox, they are news. */
export async function forgetMessages(tx: Tx, account: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await tx.run(`DELETE FROM assist_messages WHERE account = ? AND message IN (${textsFrom(tx)})`, [
    account,
    JSON.stringify(ids),
  ])
}

export async function putDraft(tx: Tx, draft: DraftRow): Promise<void> {
  await tx.run(
    `INSERT INTO assist_drafts(account, draft_key, thread, state, text_hash, draft_id, message, answered, draft_text, made_at, beside, guessed)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (account, draft_key) DO UPDATE SET state = excluded.state, text_hash = excluded.text_hash,
       draft_id = excluded.draft_id, message = excluded.message, draft_text = excluded.draft_text,
       beside = excluded.beside, guessed = excluded.guessed`,
    [
      draft.account,
      draft.key,
      draft.thread,
      draft.state,
      draft.textHash,
      draft.draftId,
      draft.messageId,
      draft.answered,
      draft.text,
      draft.madeAtMs,
      draft.beside && JSON.stringify(draft.beside),
      draft.isGuessed ? 1 : 0,
    ],
  )
}

export async function setDraftState(
  tx: Tx,
  { account, key }: Pick<DraftRow, 'account' | 'key'>,
  state: DraftState,
): Promise<void> {
  await tx.run(`UPDATE assist_drafts SET state = ? WHERE account = ? AND draft_key = ?`, [
    state,
    account,
    key,
  ])
}

/**
 * What we had put into the trash came out of it with the conversation: as what the user threw away and took back, of
 * which one stays at most (cleanup.ts).
 */
export async function reviveDrafts(tx: Tx, account: string, messages: readonly string[]): Promise<void> {
  if (messages.length === 0) return
  await tx.run(
    `UPDATE assist_drafts SET state = 'gone' WHERE account = ? AND state = 'trashed' AND message IN (${textsFrom(tx)})`,
    [account, JSON.stringify(messages)],
  )
}

export async function addEvent(tx: Tx, event: NewEvent): Promise<void> {
  const undo = event.undo === undefined ? null : JSON.stringify(event.undo)
  await tx.run(
    `INSERT INTO assist_events(account, thread, at, what, why, done_by, undo) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    [event.account, event.thread, event.atMs, event.what, event.why, event.by, undo],
  )
}

export async function noteUndone(tx: Tx, id: number, nowMs: number): Promise<void> {
  await tx.run(`UPDATE assist_events SET undone_at = ? WHERE id = ? AND undone_at IS NULL`, [nowMs, id])
}
