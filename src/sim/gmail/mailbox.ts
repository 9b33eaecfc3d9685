/**
 * A simulated Gmail mailbox: messages, threads, labels, drafts and history, without HTTP.
 *
 * Invariants:
 * - every change of a message (added, deleted, labels) takes a new history id and leaves one record
 * - a change that changes nothing leaves no trace
 * - ids are never used again; what was deleted stays in `deleted`, with its bytes, so that a test can
 *   ask what was there
 * - `everListed` holds every id that a listing or the history has given out
 */
import { type Random, seededRandom } from '../../base/random.ts'
import type {
  DeletedMessage,
  DraftList,
  DumpedMessage,
  HistoryPage,
  HistoryRequest,
  LabelChange,
  LabelCounts,
  LabelFields,
  ListRequest,
  MailboxOptions,
  MailboxSwitches,
  MessageList,
  NewMessage,
  SimDraft,
  SimLabel,
  SimMessage,
  SimThread,
  ThreadList,
} from './mailbox-contract.ts'
import { mailboxFault, notFound } from './mailbox-fault.ts'
import { HistoryLog } from './mailbox-history.ts'
import { MessageIndex } from './mailbox-index.ts'
import { LabelBook } from './mailbox-labels.ts'
import { type ListedPage, type Listing, listPage } from './mailbox-listing.ts'
import { compareByTime, type RawSource, StoredMessage } from './mailbox-message.ts'
import { ThreadFinder } from './mailbox-threads.ts'
import { topHeaders } from './message-content.ts'
import { headerOf } from './message-headers.ts'
import type { Match } from './search-match.ts'

export type * from './mailbox-contract.ts'

/** Beyond what a number can hold exactly: whoever treats history ids as numbers is found out. */
const HISTORY_START = 18_014_398_509_000_000n
/** Gmail takes no larger message. */
const MESSAGE_BYTES_MAX = 50 * 1024 * 1024
const BATCH_IDS_MAX = 1_000
const ID_SUFFIX_VALUES = 2 ** 20

/** A generated message: everything but its bytes. */
export type LoadedEntry = {
  internalMs: number
  /** When it came into the mailbox; ids follow it. */
  arrivedMs: number
  labelIds: readonly string[]
  /** The position of the thread's first message, which may be this one. */
  threadIndex: number
}

export class Mailbox {
  readonly address: string
  readonly switches: MailboxSwitches = { pageTokens: 'keyset', emptyHistoryPages: false }
  readonly everListed = new Set<string>()
  /** Called after each change, with the new history id. */
  onChange: ((historyId: bigint) => void) | undefined
  readonly #now: () => number
  readonly #random: Random
  readonly #index = new MessageIndex()
  readonly #labels = new LabelBook()
  readonly #drafts = new DraftBook()
  readonly #deleted = new Map<string, DeletedMessage>()
  readonly #history: HistoryLog
  readonly #threads = new ThreadFinder(this.#index)
  #announced = 0n

  constructor(options: MailboxOptions) {
    this.address = options.address
    this.#now = options.now
    this.#random = options.random ?? seededRandom(1)
    this.#history = new HistoryLog({ start: options.historyStart ?? HISTORY_START, random: this.#random })
  }

  get historyId(): bigint {
    return this.#history.current
  }

  get deleted(): ReadonlyMap<string, DeletedMessage> {
    return this.#deleted
  }

  /** Everything counts, spam and trash too. */
  profile(): { emailAddress: string; messagesTotal: number; threadsTotal: number; historyId: bigint } {
    return {
      emailAddress: this.address,
      messagesTotal: this.#index.byId.size,
      threadsTotal: this.#index.threadCount,
      historyId: this.historyId,
    }
  }

  /**
   * Fills the mailbox with generated messages, in order of arrival. History begins with the newest of them, from where
   * clients start that have read everything; what came after it, older mail on its way for long, is in the history.
   */
  load(source: RawSource, entries: Iterable<LoadedEntry>): void {
    const messages: StoredMessage[] = []
    const taken = new Set<string>()
    for (const entry of entries) {
      const id = this.#newId(entry.arrivedMs, taken)
      taken.add(id)
      const message = new StoredMessage(
        {
          id,
          threadId: messages[entry.threadIndex]?.threadId ?? id,
          labelIds: this.#labels.setOf(entry.labelIds),
          internalMs: Math.floor(entry.internalMs),
          historyId: this.#history.advance(),
        },
        source,
        messages.length,
      )
      messages.push(message)
      if (message.labelIds.has('DRAFT')) this.#drafts.create(id)
    }
    this.#index.addAll(messages)
    this.#threads.load(source, messages)
    const newest = this.#index.sorted.at(-1)
    const after = newest ? messages.slice(messages.indexOf(newest) + 1) : []
    this.#history.begin(newest?.historyId, after)
    this.#announced = this.historyId
  }

  // Messages

  list(request: ListRequest = {}): MessageList {
    const { found, ...rest } = this.#page(request)
    for (const { id } of found) this.everListed.add(id)
    return { messages: found.map(({ id, threadId }) => ({ id, threadId })), ...rest }
  }

  get(id: string): SimMessage | undefined {
    return this.#index.byId.get(id)
  }

  /** The newest messages, without counting as listed. */
  newest(count: number): SimMessage[] {
    return this.#index.sorted.slice(-count).reverse()
  }

  insert(message: NewMessage): SimMessage {
    this.#labels.checkInsert(message.labelIds ?? [])
    const inserted = this.#insert(message, message.labelIds ?? [])
    this.#changed()
    return inserted
  }

  send(message: { raw: Buffer; threadId?: string }): SimMessage {
    const sent = this.#insert(this.#outgoing(message), ['SENT'])
    this.#changed()
    return sent
  }

  modify(id: string, change: LabelChange): SimMessage {
    this.#labels.checkChange(change)
    const message = this.#living(id)
    this.#relabel(message, change)
    this.#changed()
    return message
  }

  trash(id: string): SimMessage {
    return this.modify(id, { add: ['TRASH'] })
  }

  untrash(id: string): SimMessage {
    return this.modify(id, { remove: ['TRASH'] })
  }

  /** For good; the trash is not asked. */
  delete(id: string): void {
    this.#remove([this.#living(id)])
    this.#changed()
  }

  /** Says nothing about ids that do not exist. */
  batchModify(ids: readonly string[], change: LabelChange): void {
    checkBatch(ids)
    this.#labels.checkChange(change)
    for (const message of this.#known(ids)) this.#relabel(message, change)
    this.#changed()
  }

  /** Says nothing about ids that do not exist. */
  batchDelete(ids: readonly string[]): void {
    checkBatch(ids)
    this.#remove(this.#known(ids))
    this.#changed()
  }

  // Threads

  listThreads(request: ListRequest = {}): ThreadList {
    // A thread stands where its newest matching message stands, and only there.
    const isNewest = (message: StoredMessage, match: Match): boolean =>
      !this.#index.thread(message.threadId).some((one) => compareByTime(one, message) > 0 && match(one))
    const { found, ...rest } = this.#page(request, isNewest)
    const threads = found.map(({ threadId }) => {
      const { id, snippet, historyId } = this.thread(threadId)!
      return { id, snippet, historyId }
    })
    return { threads, ...rest }
  }

  thread(id: string): SimThread | undefined {
    const messages = this.#index.thread(id)
    const last = messages.at(-1)
    if (!last) return undefined
    const historyId = messages.reduce((max, one) => (one.historyId > max ? one.historyId : max), 0n)
    return { id, historyId, snippet: last.snippet, messages }
  }

  modifyThread(id: string, change: LabelChange): SimThread {
    this.#labels.checkChange(change)
    for (const message of this.#livingThread(id)) this.#relabel(message, change)
    this.#changed()
    return this.thread(id)!
  }

  trashThread(id: string): SimThread {
    return this.modifyThread(id, { add: ['TRASH'] })
  }

  untrashThread(id: string): SimThread {
    return this.modifyThread(id, { remove: ['TRASH'] })
  }

  deleteThread(id: string): void {
    this.#remove(this.#livingThread(id))
    this.#changed()
  }

  // Labels

  labels(): SimLabel[] {
    return this.#labels.all()
  }

  label(id: string): (SimLabel & LabelCounts) | undefined {
    const label = this.#labels.get(id)
    return label && { ...label, ...this.#counts(id) }
  }

  createLabel(fields: LabelFields): SimLabel {
    return this.#labels.create(fields)
  }

  updateLabel(id: string, fields: Partial<LabelFields>): SimLabel {
    return this.#labels.update(id, fields)
  }

  /** Messages lose the label first, each with a record of history. */
  deleteLabel(id: string): void {
    const label = this.#labels.get(id)
    if (label?.type === 'user') {
      for (const message of this.#index.sorted) this.#relabel(message, { remove: [id] })
    }
    this.#labels.delete(id)
    this.#changed()
  }

  // Drafts

  listDrafts(request: ListRequest = {}): DraftList {
    const { found, ...rest } = this.#page({ ...request, labelIds: ['DRAFT'] })
    for (const { id } of found) this.everListed.add(id)
    const drafts = found.map(({ id, threadId }) => ({
      id: this.#drafts.draftIdOf(id)!,
      message: { id, threadId },
    }))
    return { drafts, ...rest }
  }

  draft(id: string): SimDraft | undefined {
    const messageId = this.#drafts.messageIdOf(id)
    const message = messageId === undefined ? undefined : this.#index.byId.get(messageId)
    return message && { id, message }
  }

  createDraft(message: { raw: Buffer; threadId?: string }): SimDraft {
    const inserted = this.#insert(message, ['DRAFT'])
    const id = this.#drafts.create(inserted.id)
    this.#changed()
    return { id, message: inserted }
  }

  /** The draft keeps its id; its message is a new one. */
  updateDraft(id: string, message: { raw: Buffer; threadId?: string }): SimDraft {
    const old = this.#livingDraft(id)
    const inserted = this.#insert({ ...message, threadId: message.threadId ?? old.threadId }, ['DRAFT'])
    this.#drafts.set(id, inserted.id)
    this.#remove([old])
    this.#changed()
    return { id, message: inserted }
  }

  /** For good, not into the trash. */
  deleteDraft(id: string): void {
    this.#remove([this.#livingDraft(id)])
    this.#changed()
  }

  sendDraft(id: string, message?: { raw: Buffer; threadId?: string }): SimMessage {
    const old = this.#livingDraft(id)
    const outgoing = this.#outgoing({
      raw: message?.raw ?? old.raw(),
      threadId: message?.threadId ?? old.threadId,
    })
    const sent = this.#insert(outgoing, ['SENT'])
    this.#remove([old])
    this.#changed()
    return sent
  }

  // History

  history(request: HistoryRequest): HistoryPage | 'expired' {
    const page = this.#history.page(request, { emptyPages: this.switches.emptyHistoryPages })
    if (page !== 'expired') {
      for (const { messages } of page.history) for (const { id } of messages) this.everListed.add(id)
    }
    return page
  }

  /** After it, every history id given out before is too old. */
  expireHistory(): void {
    this.#history.expire()
    this.#announced = this.historyId
  }

  /** Everything that is or ever was here; hashes are computed when asked for. */
  *dump(): Iterable<DumpedMessage> {
    // Copies: whoever reads slowly must not meet a message twice because it was deleted meanwhile.
    const [living, deleted] = [this.#index.sorted.slice(), [...this.#deleted.values()]]
    for (const message of living) yield this.#dumped(message, 'living')
    for (const { message } of deleted) yield this.#dumped(message as StoredMessage, 'deleted')
  }

  #dumped(message: StoredMessage, state: 'living' | 'deleted'): DumpedMessage {
    return {
      id: message.id,
      threadId: message.threadId,
      internalMs: message.internalMs,
      labels: [...message.labelIds],
      deleted: state === 'deleted',
      everListed: this.everListed.has(message.id),
      sha256: () => message.sha256(),
    }
  }

  #page(request: ListRequest, also?: (message: StoredMessage, match: Match) => boolean): ListedPage {
    const listing: Listing = {
      index: this.#index,
      labels: this.#labels,
      address: this.address,
      nowMs: this.#now(),
      pageTokens: this.switches.pageTokens,
    }
    return listPage(listing, request, also)
  }

  #insert(message: NewMessage, labelIds: readonly string[]): StoredMessage {
    if (message.raw.length > MESSAGE_BYTES_MAX) {
      throw mailboxFault('sim-invalid', 'The message is too large')
    }
    if (message.threadId !== undefined && !this.#index.hasThread(message.threadId)) throw notFound()
    const headers = topHeaders(message.raw)
    const id = this.#newId(this.#now())
    const labels = this.#labels.setOf(labelIds)
    const threadId = message.threadId ?? this.#threads.threadFor(headers) ?? id
    const historyId = this.#history.record({
      message: { id, threadId, labelIds: [...labels] },
      added: true,
    })
    const internalMs = Math.floor(message.internalMs ?? this.#now())
    const stored = new StoredMessage(
      { id, threadId, labelIds: labels, internalMs, historyId },
      Buffer.from(message.raw),
    )
    this.#index.add(stored)
    this.#threads.remember(stored, headers)
    return stored
  }

  #outgoing(message: { raw: Buffer; threadId?: string }): { raw: Buffer; threadId?: string } {
    const unique = Math.floor(this.#random() * 2 ** 48).toString(36)
    return {
      ...message,
      raw: withSentHeaders(message.raw, { address: this.address, nowMs: this.#now(), unique }),
    }
  }

  #relabel(message: StoredMessage, change: LabelChange): void {
    const before = message.labelIds
    const after = this.#labels.changed(before, change)
    if (after === before) return
    message.labelIds = after
    message.historyId = this.#history.record({
      message: { id: message.id, threadId: message.threadId, labelIds: [...after] },
      labelsAdded: [...after].filter((id) => !before.has(id)),
      labelsRemoved: [...before].filter((id) => !after.has(id)),
    })
  }

  #remove(messages: readonly StoredMessage[]): void {
    this.#index.removeAll(messages)
    for (const message of messages) {
      const { id, threadId, labelIds } = message
      const historyId = this.#history.record({
        message: { id, threadId, labelIds: [...labelIds] },
        deleted: true,
      })
      this.#drafts.forgetMessage(id)
      this.#deleted.set(id, { message, atMs: this.#now(), historyId })
    }
  }

  #counts(labelId: string): LabelCounts {
    const counts = { messagesTotal: 0, messagesUnread: 0 }
    const threads = new Set<string>()
    const unreadThreads = new Set<string>()
    for (const { labelIds, threadId } of this.#index.sorted) {
      if (!labelIds.has(labelId)) continue
      counts.messagesTotal += 1
      threads.add(threadId)
      if (!labelIds.has('UNREAD')) continue
      counts.messagesUnread += 1
      unreadThreads.add(threadId)
    }
    return { ...counts, threadsTotal: threads.size, threadsUnread: unreadThreads.size }
  }

  #living(id: string): StoredMessage {
    const message = this.#index.byId.get(id)
    if (!message) throw notFound()
    return message
  }

  #livingThread(id: string): StoredMessage[] {
    const messages = this.#index.thread(id)
    if (messages.length === 0) throw notFound()
    return messages
  }

  #livingDraft(id: string): StoredMessage {
    const messageId = this.#drafts.messageIdOf(id)
    if (messageId === undefined) throw notFound()
    return this.#living(messageId)
  }

  /** The living messages of these ids, each once. */
  #known(ids: readonly string[]): StoredMessage[] {
    return [...new Set(ids)].flatMap((id) => this.#index.byId.get(id) ?? [])
  }

  /** Sixteen hex digits that grow with the time of arrival, like Gmail's. */
  #newId(arrivedMs: number, taken?: ReadonlySet<string>): string {
    for (;;) {
      const suffix = Math.floor(this.#random() * ID_SUFFIX_VALUES)
      const id = `${Math.floor(arrivedMs).toString(16).padStart(11, '0')}${suffix.toString(16).padStart(5, '0')}`
      if (!this.#index.byId.has(id) && !this.#deleted.has(id) && !taken?.has(id)) return id
    }
  }

  #changed(): void {
    if (this.historyId === this.#announced) return
    this.#announced = this.historyId
    this.onChange?.(this.historyId)
  }
}

function checkBatch(ids: readonly string[]): void {
  if (ids.length === 0) throw mailboxFault('sim-invalid', 'No message ids specified')
  if (ids.length > BATCH_IDS_MAX) {
    throw mailboxFault('sim-invalid', `Too many message ids: at most ${BATCH_IDS_MAX}`)
  }
}

/** A message as Gmail sends it: with a Date, a From and a Message-ID if it had none. */
function withSentHeaders(raw: Buffer, options: { address: string; nowMs: number; unique: string }): Buffer {
  const headers = topHeaders(raw)
  const missing: string[] = []
  if (!headerOf(headers, 'date')) {
    missing.push(`Date: ${new Date(options.nowMs).toUTCString().replace('GMT', '+0000')}`)
  }
  if (!headerOf(headers, 'from')) missing.push(`From: ${options.address}`)
  if (!headerOf(headers, 'message-id')) missing.push(`Message-ID: <${options.unique}@mail.gmail.com>`)
  if (missing.length === 0) return raw
  return Buffer.concat([Buffer.from(`${missing.join('\r\n')}\r\n`), raw])
}

/**
 * Drafts: a draft keeps its id while its message is replaced on every update.
 * Invariant: a draft's message is a living message with the label DRAFT, and belongs to one draft only.
 */
class DraftBook {
  readonly #messageIds = new Map<string, string>()
  readonly #draftIds = new Map<string, string>()
  #created = 0

  create(messageId: string): string {
    this.#created += 1
    // Looks like Gmail's: an `r` and a number of which nothing can be learned.
    const id = `r${(0x5851f42d4c957f2dn * BigInt(this.#created)) & 0x7fffffffffffffffn}`
    this.set(id, messageId)
    return id
  }

  set(id: string, messageId: string): void {
    const previous = this.#messageIds.get(id)
    if (previous) this.#draftIds.delete(previous)
    this.#messageIds.set(id, messageId)
    this.#draftIds.set(messageId, id)
  }

  messageIdOf(id: string): string | undefined {
    return this.#messageIds.get(id)
  }

  draftIdOf(messageId: string): string | undefined {
    return this.#draftIds.get(messageId)
  }

  forgetMessage(messageId: string): void {
    const id = this.#draftIds.get(messageId)
    this.#draftIds.delete(messageId)
    if (id) this.#messageIds.delete(id)
  }
}
