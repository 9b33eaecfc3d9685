/**
 * One conversation under the hands of a job: the record as it was read, the mail as Gmail has it, and how a change of
 * the record is committed so that no two jobs overwrite each other.
 *
 * Every job that touches Gmail ends with a commit that checks the version it read. Where two meet, the later one looks
 * again and brings Gmail in line with the record, so that the order in which their calls arrived does not matter.
 */
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import type { MailThread } from '../../cloud/gmail/client.ts'
import type { JobRequest, Outcome, RunContext } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { AssistAccount } from './account.ts'
import { LABELS, type LabelRole, type VisibleMessage } from './contract.ts'
import type { AssistKinds, ThreadPayload } from './kinds.ts'
import { setLabel } from './labels.ts'
import { isInbound, isPutAway, isSeen, relabelled, textHashOf } from './plan.ts'
import { DRAFT_KEY_HEADER, messageIdOf, splitAtMarker } from './reply.ts'
import {
  type Actor,
  addEvent,
  type DraftRow,
  noteMessages,
  setDraftState,
  settleMessages,
  type Taught,
  type ThreadRecord,
  type Undo,
  undoOf,
  unseenLabel,
  writeRecord,
} from './store/records.ts'
import { visibleMessage } from './text/visible.ts'

export type ThreadJob = RunContext<ThreadPayload>

export class Conversation {
  readonly kinds: AssistKinds
  readonly job: ThreadJob
  readonly account: AssistAccount
  record: ThreadRecord
  /** Undefined until it was read. */
  messages: readonly VisibleMessage[] | undefined

  private constructor(kinds: AssistKinds, job: ThreadJob, account: AssistAccount, record: ThreadRecord) {
    this.kinds = kinds
    this.job = job
    this.account = account
    this.record = record
  }

  /** Undefined where the assistant knows nothing of it. */
  static async open(kinds: AssistKinds, job: ThreadJob): Promise<Conversation | undefined> {
    const { account, thread } = job.payload
    const opened = await kinds.accounts.get(account)
    const record = await kinds.tables.record(account, thread)
    return record && new Conversation(kinds, job, opened, record)
  }

  get signal(): AbortSignal {
    return this.job.signal
  }

  get nowMs(): number {
    return this.kinds.clock.now()
  }

  /** The whole of it as people see it; undefined where it is gone. */
  async read(): Promise<readonly VisibleMessage[] | undefined> {
    const thread = await this.#asked(() =>
      this.account.client.thread(this.record.thread, { signal: this.signal }),
    )
    this.messages = thread && this.#shown(thread)
    return this.messages
  }

  /** Just one message, where that is all there is of it: half the price. */
  async readOne(id: string): Promise<readonly VisibleMessage[] | undefined> {
    const message = await this.#asked(() => this.account.client.message(id, { signal: this.signal }))
    this.messages = message && [visibleMessage(message)]
    return this.messages
  }

  #shown({ messages }: MailThread): VisibleMessage[] {
    return messages.map(visibleMessage)
  }

  async #asked<T>(call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call()
    } catch (thrown) {
      if (asTidemarkError(thrown).code !== 'not-found') throw thrown
      return undefined
    }
  }

  /** The record with these changes; a label that changes is not applied yet, nor is none in place of an unseen one. */
  changed(change: Partial<ThreadRecord>): ThreadRecord {
    const { record } = this
    const isSame = change.label === record.label && unseenLabel(record) === null
    if (change.label === undefined || isSame) return { ...record, ...change }
    return { ...relabelled(record, change.label), ...change }
  }

  /** Writes the record on the way; throws where something else happened to it. */
  async commit(
    next: ThreadRecord,
    also: { effects?: (tx: Tx) => Promise<void>; event?: EventText } = {},
  ): Promise<void> {
    const before = this.record
    await this.job.commit({ effects: (tx) => this.#write(tx, next, before, also) })
    this.record = { ...next, version: next.version + 1 }
  }

  /** The end of the job: the record is as Gmail has it. */
  end(
    next: ThreadRecord,
    also: {
      effects?: (tx: Tx) => Promise<void>
      event?: EventText
      jobs?: readonly JobRequest[]
      note?: string
      code?: string
    } = {},
  ): Outcome {
    const before = this.record
    return {
      effects: (tx) => this.#write(tx, next, before, also),
      ...(also.jobs && { jobs: also.jobs }),
      ...(also.note !== undefined && { note: also.note }),
      ...(also.code !== undefined && { code: also.code }),
    }
  }

  async #write(
    tx: Tx,
    next: ThreadRecord,
    before: ThreadRecord,
    { effects, event }: { effects?: (tx: Tx) => Promise<void>; event?: EventText },
  ): Promise<void> {
    await writeRecord(tx, next, this.nowMs)
    await effects?.(tx)
    if (!event) return
    const undo = event.canUndo ? { ...undoOf(before), taught: event.taught } : undefined
    await addEvent(tx, this.event(event, undo))
  }

  event({ what, why, by = 'assistant' }: EventText, undo?: Undo): Parameters<typeof addEvent>[1] {
    const { account, thread } = this.record
    return { account, thread, atMs: this.nowMs, what, why, by, undo }
  }

  /** All mail of others that was read of it is sorted with it, also what no sync has seen yet. */
  async settleRead(
    tx: Tx,
    reason: string,
    also: readonly string[] = [],
    messages: readonly VisibleMessage[] = this.messages ?? [],
  ): Promise<void> {
    const { account, thread } = this.record
    const nowMs = this.nowMs
    const read = messages.filter(
      (message) => message.labelIds.includes('INBOX') && isInbound(message, account),
    )
    const ids = read.map(({ id }) => id)
    await noteMessages(
      tx,
      account,
      ids.map((id) => ({ id, threadId: thread })),
      nowMs,
    )
    const all = [...new Set([...also, ...ids])]
    await settleMessages(tx, account, all, { state: 'classified', reason, nowMs })
  }

  /** Sets the record's label in Gmail. False where the conversation is gone. */
  async applyLabel(label: LabelRole | null = this.record.label): Promise<boolean> {
    try {
      const { thread, label: now, labelWas } = this.record
      const isDone = label === 'done'
      if (!this.messages && isDone) await this.read()
      const ours = [now, labelWas].filter((role) => role !== null)
      const known = new Set([...LABELS.filter((role) => this.isFoundBy(role)), ...ours])
      const covered = isDone ? await this.#doneWith() : []
      await setLabel(this.account, { thread, label, known, messages: covered }, this.signal)
      return true
    } catch (thrown) {
      if (asTidemarkError(thrown).code !== 'not-found') throw thrown
      return false
    }
  }

  /** What the user has seen of it, and is done with: mail that came in later is news, and stays in the inbox. */
  async #doneWith(): Promise<string[]> {
    const { account, thread } = this.record
    const rows = await this.kinds.tables.messages(account, thread)
    const sorted = new Set(rows.filter(({ state }) => state === 'classified').map(({ message }) => message))
    const isNews = (message: VisibleMessage): boolean =>
      isInbound(message, account) && !this.isDone(message) && !sorted.has(message.id)
    const there = (this.messages ?? []).filter((message) => !message.isDraft && !isNews(message))
    return there.map(({ id }) => id)
  }

  /** More is left of it than drafts and what was put away, as far as it was read: something that can have a label. */
  get isSeen(): boolean {
    return this.messages?.some(isSeen) ?? true
  }

  /** On anything of it, also on what was put away. */
  hasLabel(role: LabelRole, messages: readonly VisibleMessage[] = this.messages ?? []): boolean {
    return messages.some(({ labelIds }) => labelIds.includes(this.account.labels[role]))
  }

  /** A scan finds the label on it: on its drafts as well. */
  isFoundBy(role: LabelRole): boolean {
    const messages = this.messages ?? []
    return this.hasLabel(
      role,
      messages.filter((message) => !isPutAway(message)),
    )
  }

  /** Once its label is set, a scan finds it there. Drafts get all but Done. */
  get isFindable(): boolean {
    if (this.record.label === 'done') return this.isSeen
    return this.messages?.some((message) => !isPutAway(message)) ?? true
  }

  isDone({ labelIds }: VisibleMessage): boolean {
    return labelIds.includes(this.account.labels.done)
  }

  /** Everything of it was deleted: the record says so, and its messages are in the inbox no more. */
  async gone(): Promise<Outcome> {
    const { account, thread } = this.record
    const { tables } = this.kinds
    const messages = (await tables.messages(account, thread)).map(({ message }) => message)
    const drafts = await this.openDrafts()
    const next: ThreadRecord = {
      ...this.record,
      ...(this.record.category !== null && { status: 'archived' as const }),
      label: null,
      labelWas: null,
      isApplied: true,
      isForced: false,
      draftKey: null,
      order: null,
      problem: null,
      problemCode: null,
      followUpAtMs: null,
    }
    const wasThere = this.record.category !== null && this.record.status !== 'archived'
    return this.end(next, {
      effects: async (tx) => {
        await settleMessages(tx, account, messages, {
          state: 'gone',
          reason: 'it was deleted',
          nowMs: this.nowMs,
        })
        for (const { key } of drafts) await setDraftState(tx, { account, key }, 'gone')
      },
      ...(wasThere && {
        event: { what: 'deleted', why: 'The conversation is no longer in the mailbox.', by: 'user' as const },
      }),
      note: 'gone',
      code: 'gone',
    })
  }

  /**
   * Drafts of ours that may be in Gmail, oldest first; also one that was gone, and was seen to be there again when it
   * was read.
   */
  async openDrafts(): Promise<DraftRow[]> {
    const { account, thread } = this.record
    const rows = await this.kinds.tables.drafts(account, thread)
    const there = new Set(this.#liveDrafts().map(({ id }) => id))
    // A guessed one was left to the user, and is there all the time.
    const isBack = ({ state, messageId, isGuessed }: DraftRow): boolean =>
      state === 'gone' && !isGuessed && there.has(messageId ?? '')
    const isOpen = ({ state }: DraftRow): boolean =>
      state === 'intended' || state === 'live' || state === 'edited'
    return rows.filter((row) => isOpen(row) || isBack(row))
  }

  /**
   * What became of a draft of ours. It is known by its message, then by its key, then by its draft id, which stays when
   * the user edits it; of one that is only noted no id is known, and an edit takes its key away: see `#since`.
   * `same`: as we wrote it.
   */
  async find(draft: DraftRow): Promise<FoundDraft | undefined> {
    const there = this.#liveDrafts()
    const byMessage = there.find(({ id }) => id === draft.messageId)
    const byKey = there.find((message) => keyOf(message) === draft.key)
    const isNoted = draft.state === 'intended'
    const message = byMessage ?? byKey ?? (isNoted ? await this.#since(draft) : await this.#byDraftId(draft))
    if (!message) return undefined
    const isShown = !isNoted || byKey !== undefined || message.messageId.includes(this.#ownId(draft))
    const isGuessed = draft.isGuessed || !isShown
    const isOurs = draft.messageId === null || message.id === draft.messageId
    const isSame =
      isOurs &&
      !isGuessed &&
      draft.state !== 'edited' &&
      message.attachments.length === 0 &&
      textHashOf(message.text) === draft.textHash
    return { draft, message, isSame, isGuessed }
  }

  #liveDrafts(): VisibleMessage[] {
    return (this.messages ?? []).filter(isLiveDraft)
  }

  /** Live drafts that are in no row of ours. What is in spam is in no list of drafts. */
  async #strangers(): Promise<{ drafts: VisibleMessage[]; rows: readonly DraftRow[] }> {
    const { account, thread } = this.record
    const there = this.#liveDrafts().filter((message) => !isPutAway(message))
    const rows = there.length === 0 ? [] : await this.kinds.tables.drafts(account, thread)
    const known = new Set(rows.map(({ messageId }) => messageId))
    return { drafts: there.filter((one) => !known.has(one.id) && keyOf(one) === undefined), rows }
  }

  /** Ids of drafts that are here and not ours: noted with a draft before it is made. */
  async beside(): Promise<string[]> {
    const { drafts } = await this.#strangers()
    if (drafts.length === 0) return []
    return [...(await this.idsOf(drafts)).values()]
  }

  /**
   * A draft that came into the conversation after ours was noted, and perhaps made: ours, in the words of the user, or
   * one that they began themselves meanwhile. Either way it is the answer that they are at work on. Of several, the one
   * that still has our Message-ID is ours, and one with our mark may be.
   */
  async #since({ key, beside }: DraftRow): Promise<VisibleMessage | undefined> {
    const { drafts, rows } = await this.#strangers()
    if (beside === null || drafts.length === 0) return undefined
    const ids = await this.idsOf(drafts)
    const others = new Set([...beside, ...rows.map(({ draftId }) => draftId)])
    const since = drafts.filter(({ id }) => ids.has(id) && !others.has(ids.get(id)!))
    return (
      since.find(({ messageId }) => messageId.includes(this.#ownId({ key }))) ??
      since.findLast(({ text }) => splitAtMarker(text) !== undefined) ??
      since.at(-1)
    )
  }

  #ownId({ key }: Pick<DraftRow, 'key'>): string {
    return messageIdOf(key, this.account.owner)
  }

  /**
   * The row of a draft that the user has made theirs: with all by which it is found again. Theirs it stays, also where
   * they changed its recipients alone, and throw it away and take it back.
   */
  async takenOver({ draft, message, isGuessed }: FoundDraft): Promise<DraftRow> {
    const { id: messageId, text } = message
    const draftId = draft.draftId ?? (await this.idsOf([message])).get(messageId) ?? null
    return { ...draft, state: 'edited', textHash: '', draftId, messageId, text, isGuessed }
  }

  /**
   * The drafts of these messages. One that has another message by now the user is changing just now: whoever went on
   * would take it for none, and write a second one. One that never gets an id is left out in the end, so that it holds up
   * nothing for good.
   */
  async idsOf(messages: readonly VisibleMessage[]): Promise<Map<string, string>> {
    const all = await draftIds(this.account, this.signal)
    const ids = new Map<string, string>()
    for (const { id } of messages) {
      const draftId = all.get(id)
      if (draftId === undefined) {
        if (this.job.job.failures >= MOVED_TRIES) continue
        const what = 'A draft was changed while the assistant looked at it.'
        throw new TidemarkError(what, { kind: 'transient', code: 'draft-moved' })
      }
      ids.set(id, draftId)
    }
    return ids
  }

  async #byDraftId({ draftId }: DraftRow): Promise<VisibleMessage | undefined> {
    if (draftId === null) return undefined
    const draft = await this.#asked(() => this.account.client.draft(draftId, { signal: this.signal }))
    const message = draft && visibleMessage(draft.message)
    return message && isLiveDraft(message) ? message : undefined
  }

  /**
   * To the trash, from where it can be taken back. One that is gone already is fine; one that the user has edited since
   * it was looked at has another message, and is answered with: it stays.
   */
  async trash(found: FoundDraft): Promise<FoundDraft | undefined> {
    const { draft, message } = found
    if (found.isGuessed) return found
    if (await this.#asked(() => this.account.client.trash(message.id, { signal: this.signal })))
      return undefined
    const now = await this.#byDraftId(draft)
    return now && { ...found, message: now, isSame: false }
  }

  /**
   * What we had put there came out of the trash with the conversation, and the draft that took its place. One that comes
   * out alone the user wants: it is left to them.
   */
  async trashReplaced(): Promise<void> {
    const { account, thread } = this.record
    const there = new Set(this.#liveDrafts().map(({ id }) => id))
    const rows = await this.kinds.tables.drafts(account, thread)
    for (const draft of rows.filter(({ state }) => state === 'trashed')) {
      const found = there.has(draft.messageId ?? '') ? await this.find(draft) : undefined
      if (found?.isSame) await this.trash(found)
    }
  }

  /** Drafts of ours that nobody has touched go to the trash; answers with their keys. What was edited stays. */
  async trashUntouched(except?: string): Promise<{ trashed: DraftRow[]; edited: FoundDraft[] }> {
    const trashed: DraftRow[] = []
    const edited: FoundDraft[] = []
    const open = await this.openDrafts()
    if (open.length > 0 && !this.messages) await this.read()
    for (const draft of open) {
      if (draft.key === except) continue
      const found = await this.find(draft)
      const left = found?.isSame ? await this.trash(found) : found
      if (left) edited.push(left)
      else trashed.push(draft)
    }
    return { trashed, edited }
  }
}

export type EventText = {
  what: string
  why: string
  by?: Actor
  canUndo?: boolean
  /** Where it is an act from which is learned. */
  taught?: Taught | undefined
}

/** `guessed`: nothing shows that we have made it, and the user may have: it is never put away. */
export type FoundDraft = { draft: DraftRow; message: VisibleMessage; isSame: boolean; isGuessed: boolean }

export function isLiveDraft({ isDraft, labelIds }: VisibleMessage): boolean {
  return isDraft && !labelIds.includes('TRASH')
}

/** Of a job that found a draft to be changed just then; the last of its tries goes on all the same. */
const MOVED_TRIES = 2
const PAGES_MAX = 10_000

/** Of all drafts of the mailbox, by their messages: a conversation names only messages. */
export async function draftIds({ client }: AssistAccount, signal: AbortSignal): Promise<Map<string, string>> {
  const ids = new Map<string, string>()
  let pageToken: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await client.drafts({ signal, ...(pageToken !== undefined && { pageToken }) })
    for (const { id, messageId } of answer.drafts) ids.set(messageId, id)
    pageToken = answer.nextPageToken
    if (pageToken === undefined) return ids
  }
  throw new TidemarkError(`Gmail's list of drafts does not end after ${PAGES_MAX} pages.`, {
    kind: 'permanent',
  })
}

export function keyOf({ headers }: VisibleMessage): string | undefined {
  return headers.find(([name]) => name === DRAFT_KEY_HEADER.toLowerCase())?.[1]?.trim()
}
