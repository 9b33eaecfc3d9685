/**
 * Gmail's API as the rest of Tidemark sees it: typed calls that are priced, paced and classified. Holds no state
 * of its own; what it needs of the world is passed in.
 *
 * - every call goes through `pace` with its price in units
 * - every failure is a TidemarkError, except the reason of an aborted signal and what a caller's `onAnswer`
 *   throws, which are passed on as they are
 */

import type { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { type HttpCall, type TokenSource, Transport } from '../http-transport.ts'
import type { Fetch } from '../oauth.ts'
import { callBatch, type FailedAnswer, PART_BYTES_MAX, type Pace } from './batch-call.ts'
import * as gmailErrors from './errors.ts'
import { damagedAnswer } from './errors.ts'
import { buildUpload, redate } from './insertion.ts'
import type { GmailMethod, Prices } from './prices.ts'
import { type RawMessage, rawMessageOf } from './raw-message.ts'
import {
  decode,
  type HistoryRecord,
  historySchema,
  labelCountSchema,
  labelSchema,
  labelsSchema,
  MESSAGE_ID,
  messageListSchema,
  messageRefSchema,
  messageSchema,
  nothingSchema,
  parseJson,
  profileSchema,
  threadRefSchema,
  watchSchema,
} from './schema.ts'
import {
  type Draft,
  type DraftPage,
  type DraftRef,
  draftListSchema,
  draftRefSchema,
  draftSchema,
  fullMessageSchema,
  type MailThread,
  type ThreadMessage,
  threadMessageOf,
  threadSchema,
} from './thread.ts'

export type { TokenSource } from '../http-transport.ts'
export type { FailedAnswer, Pace } from './batch-call.ts'
export type { RawMessage } from './raw-message.ts'
export type { HistoryRecord } from './schema.ts'
export type { Draft, DraftPage, DraftRef, MailThread, ThreadMessage } from './thread.ts'

export type GmailClientOptions = {
  fetch: Fetch
  clock: Clock
  /** `https://gmail.googleapis.com` */
  apiUrl: string
  token: TokenSource
  pace: Pace
  prices: Prices
  /** Silence of the connection, not the length of the call. */
  timeoutMs?: number
  batchCallsMax?: number
  /** An address where a service account acts for others. */
  userId?: string
}

export type Label = z.infer<typeof labelSchema>
export type Profile = z.infer<typeof profileSchema>
export type MessageRef = z.infer<typeof messageRefSchema>

export type IdPage = {
  ids: { id: string; threadId: string }[]
  nextPageToken: string | undefined
  /** Only an estimate. */
  estimate: number
}

export type HistoryPage = {
  /** In the order in which it happened. */
  records: HistoryRecord[]
  /** The mailbox's present id: where to go on from when there is no next page. */
  historyId: string
  nextPageToken: string | undefined
}

export type RawAnswer = { id: string; ok: true; message: RawMessage } | FailedAnswer

/** A message without its bytes. */
export type MessageState = Pick<RawMessage, 'id' | 'threadId' | 'historyId' | 'labelIds' | 'internalMs'>

export type LabelsAnswer = { id: string; ok: true; message: MessageState } | FailedAnswer

export type LabelEdit = { add?: readonly string[]; remove?: readonly string[] }

/** `header`: the bytes stay as they are and their Date header counts. `internal`: see insertion.ts. */
export type Dating = 'header' | 'internal'

export type InsertOptions = {
  raw: Uint8Array
  labelIds: readonly string[]
  internalMs: number
  threadId?: string
  dating?: Dating
}

type CallOptions = { signal?: AbortSignal }

const BATCH_CALLS_MAX = 50
const TIMEOUT_MS = 60_000
const PAGE_SIZE_MAX = 500
const EDIT_IDS_MAX = 1_000
const FULL_FIELDS = 'id,threadId,labelIds,historyId,internalDate,payload'
/** What is asked for of each message, and nothing else: a snippet costs the service time. */
const FIELDS = {
  minimal: 'id,threadId,labelIds,historyId,internalDate',
  raw: 'id,threadId,labelIds,historyId,internalDate,raw',
} as const
const ANSWER_BYTES_MAX = 32 * 1024 * 1024

export class GmailClient {
  readonly #options: GmailClientOptions
  readonly #transport: Transport
  readonly #user: string
  readonly batchCallsMax: number

  constructor(options: GmailClientOptions) {
    if (!/^https?:$/.test(URL.parse(options.apiUrl)?.protocol ?? '')) {
      throw new UsageError('The address of the Gmail API is no web address.')
    }
    this.#options = options
    this.#transport = new Transport({
      ...options,
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
      errors: gmailErrors,
    })
    this.#user = `/gmail/v1/users/${encodeURIComponent(options.userId ?? 'me')}`
    this.batchCallsMax = options.batchCallsMax ?? BATCH_CALLS_MAX
  }

  profile(options: CallOptions = {}): Promise<Profile> {
    return this.#call('getProfile', this.#get('/profile'), profileSchema, 'the profile', options)
  }

  async labels(options: CallOptions = {}): Promise<Label[]> {
    const { labels } = await this.#call(
      'labels.list',
      this.#get('/labels'),
      labelsSchema,
      'the labels',
      options,
    )
    return labels
  }

  /** How many messages have it. */
  async labelCount(id: string, options: CallOptions = {}): Promise<number> {
    const call = this.#get(`/labels/${encodeURIComponent(id)}`)
    const label = await this.#call('labels.get', call, labelCountSchema, `the label ${id}`, options)
    return label.messagesTotal
  }

  /** Fails with the code `exists` where there is one of that name. */
  createLabel({ name }: { name: string }, options: CallOptions = {}): Promise<Label> {
    const call = this.#post('/labels', {
      name,
      labelListVisibility: 'labelShow',
      messageListVisibility: 'show',
    })
    return this.#call('labels.create', call, labelSchema, 'the new label', options)
  }

  /** It keeps its id, and the messages that have it. Fails with the code `exists` where another one is called so. */
  renameLabel({ id, name }: { id: string; name: string }, options: CallOptions = {}): Promise<Label> {
    const call: HttpCall = { ...this.#post(`/labels/${encodeURIComponent(id)}`, { name }), verb: 'PATCH' }
    return this.#call('labels.patch', call, labelSchema, `the label ${id}`, options)
  }

  async listIds(
    page: CallOptions & {
      query?: string
      labelIds?: readonly string[]
      includeSpamTrash: boolean
      pageToken?: string
      maxResults?: number
    },
  ): Promise<IdPage> {
    const { query, maxResults = PAGE_SIZE_MAX, signal, ...rest } = page
    const call = this.#get('/messages', { q: query || undefined, maxResults, ...rest })
    const answer = await this.#call('messages.list', call, messageListSchema, 'a page of ids', { signal })
    return {
      ids: answer.messages,
      nextPageToken: answer.nextPageToken,
      estimate: answer.resultSizeEstimate,
    }
  }

  /** Fails with the code `history-expired` where Gmail no longer knows what came after `startHistoryId`. */
  async history(
    page: CallOptions & { startHistoryId: string; pageToken?: string; maxResults?: number },
  ): Promise<HistoryPage> {
    const { signal, maxResults = PAGE_SIZE_MAX, ...rest } = page
    const call = this.#get('/history', { maxResults, ...rest })
    try {
      const answer = await this.#call('history.list', call, historySchema, 'the history', { signal })
      return {
        records: answer.history,
        historyId: answer.historyId,
        nextPageToken: answer.nextPageToken,
      }
    } catch (error) {
      if (!(error instanceof TidemarkError) || error.kind !== 'gone') throw error
      throw new TidemarkError(`Gmail has no history since ${page.startHistoryId} any more`, {
        kind: 'gone',
        code: 'history-expired',
        cause: error,
      })
    }
  }

  /** One message with its bytes. */
  async get(id: string, options: CallOptions = {}): Promise<RawMessage> {
    this.#check([id], 1)
    const call = this.#get(`/messages/${id}`, { format: 'raw' })
    return await this.#paced('messages.get', options, (signal) =>
      this.#transport.send(
        call,
        async (answer) => rawMessageOf(await answer.jsonBytes(id, PART_BYTES_MAX), id),
        signal,
      ),
    )
  }

  /**
   * Many messages with their bytes, at most `batchCallsMax`. `onAnswer` is awaited for each of them as soon as it
   * has come, once for every id; while it runs, nothing more is read. Rejects only where no id is at fault:
   * the whole call was refused, the signal aborted, or `onAnswer` threw.
   */
  async getRaw(
    ids: readonly string[],
    options: CallOptions & { onAnswer: (answer: RawAnswer) => void | Promise<void> },
  ): Promise<void> {
    this.#check(ids, this.batchCallsMax)
    await this.#batch<RawAnswer>({
      ...options,
      ids,
      format: 'raw',
      answerOf: (id, body) => ({ id, ok: true, message: rawMessageOf(body, id) }),
    })
  }

  /** The same without bytes: how the messages are labelled just now. Also gives all answers at the end. */
  async getLabels(
    ids: readonly string[],
    options: CallOptions & { onAnswer?: (answer: LabelsAnswer) => void | Promise<void> } = {},
  ): Promise<LabelsAnswer[]> {
    this.#check(ids, this.batchCallsMax)
    const answers: LabelsAnswer[] = []
    await this.#batch<LabelsAnswer>({
      ...options,
      ids,
      format: 'minimal',
      answerOf: labelsAnswerOf,
      onAnswer: async (answer) => {
        answers.push(answer)
        await options.onAnswer?.(answer)
      },
    })
    return answers
  }

  /** One message as people read it: decoded headers and parts. */
  async message(id: string, options: CallOptions = {}): Promise<ThreadMessage> {
    this.#check([id], 1)
    const call = this.#get(`/messages/${id}`, { format: 'full', fields: FULL_FIELDS })
    const answer = await this.#call('messages.get', call, fullMessageSchema, id, options)
    if (answer.id !== id) throw damagedAnswer(id, 'it names another message')
    return threadMessageOf(answer)
  }

  /** A whole conversation, with its drafts and what of it is in the trash. */
  async thread(threadId: string, options: CallOptions = {}): Promise<MailThread> {
    this.#check([threadId], 1)
    const fields = `id,historyId,messages(${FULL_FIELDS})`
    const call = this.#get(`/threads/${threadId}`, { format: 'full', fields })
    const answer = await this.#call('threads.get', call, threadSchema, threadId, options)
    if (answer.id !== threadId) throw damagedAnswer(threadId, 'it names another conversation')
    return { ...answer, messages: answer.messages.map(threadMessageOf) }
  }

  async drafts(
    page: CallOptions & { query?: string; pageToken?: string; maxResults?: number } = {},
  ): Promise<DraftPage> {
    const { query, maxResults = PAGE_SIZE_MAX, signal, ...rest } = page
    const call = this.#get('/drafts', { q: query || undefined, maxResults, ...rest })
    const { drafts, nextPageToken } = await this.#call('drafts.list', call, draftListSchema, 'the drafts', {
      signal,
    })
    return {
      drafts: drafts.map(({ id, message }) => ({ id, messageId: message.id, threadId: message.threadId })),
      nextPageToken,
    }
  }

  async draft(id: string, options: CallOptions = {}): Promise<Draft> {
    this.#check([id], 1)
    const call = this.#get(`/drafts/${id}`, { format: 'full' })
    const answer = await this.#call('drafts.get', call, draftSchema, id, options)
    return { id: answer.id, message: threadMessageOf(answer.message) }
  }

  /**
   * Not safe to repeat: a call whose answer was lost may have worked. Whoever tries again looks first for a draft that
   * carries a mark of their own.
   */
  createDraft(
    { raw, threadId }: { raw: Uint8Array; threadId?: string },
    options: CallOptions = {},
  ): Promise<DraftRef> {
    const call = this.#post('/drafts', { message: draftBody(raw, threadId) })
    return this.#call('drafts.create', call, draftRefSchema, 'the new draft', options)
  }

  /** The draft keeps its id; its message becomes another one, and what stood there before is gone for good. */
  updateDraft(
    { id, raw, threadId }: { id: string; raw: Uint8Array; threadId?: string },
    options: CallOptions = {},
  ): Promise<DraftRef> {
    this.#check([id], 1)
    const call: HttpCall = {
      ...this.#post(`/drafts/${id}`, { message: draftBody(raw, threadId) }),
      verb: 'PUT',
    }
    return this.#call('drafts.update', call, draftRefSchema, id, options)
  }

  /**
   * As the draft is now, and at most once: a draft that was sent is none any more, and a second call fails with
   * `not-found`. The one call that sends.
   */
  async sendDraft(id: string, options: CallOptions = {}): Promise<MessageRef> {
    this.#check([id], 1)
    return await this.#call('drafts.send', this.#post('/drafts/send', { id }), messageRefSchema, id, options)
  }

  /** Says nothing about ids that do not exist. */
  async batchModify(edit: LabelEdit & { ids: readonly string[] }, options: CallOptions = {}): Promise<void> {
    this.#check(edit.ids, EDIT_IDS_MAX)
    if (edit.ids.length === 0) return
    const call = this.#post('/messages/batchModify', { ids: edit.ids, ...editOf(edit) })
    await this.#call('messages.batchModify', call, nothingSchema, 'the change of labels', options)
  }

  /** For good, not to the trash. Says nothing about ids that do not exist. */
  async batchDelete(ids: readonly string[], options: CallOptions = {}): Promise<void> {
    this.#check(ids, EDIT_IDS_MAX)
    if (ids.length === 0) return
    const call = this.#post('/messages/batchDelete', { ids })
    await this.#call('messages.batchDelete', call, nothingSchema, 'the deletion', options)
  }

  /**
   * Puts a message into the mailbox without sending it. Not safe to repeat: a call whose answer was lost may have
   * worked, and a second one makes a second message. `altered`: its Date header was replaced (see insertion.ts).
   */
  async insert(
    message: InsertOptions,
    options: CallOptions = {},
  ): Promise<MessageRef & { altered: boolean }> {
    const { labelIds, threadId, dating = 'header', internalMs } = message
    const { raw, altered } =
      dating === 'internal' ? redate(message.raw, internalMs) : { raw: message.raw, altered: false }
    const { path, uploadType, ...body } = buildUpload({ labelIds, threadId }, raw)
    const call: HttpCall = {
      verb: 'POST',
      path: `${path}${this.#user}/messages`,
      query: { uploadType, internalDateSource: 'dateHeader' },
      ...body,
    }
    const answer = await this.#call(
      'messages.insert',
      call,
      messageRefSchema,
      'the inserted message',
      options,
    )
    return { ...answer, altered }
  }

  trash(id: string, options: CallOptions = {}): Promise<MessageRef> {
    return this.#edit('messages.trash', id, 'trash', undefined, options)
  }

  untrash(id: string, options: CallOptions = {}): Promise<MessageRef> {
    return this.#edit('messages.untrash', id, 'untrash', undefined, options)
  }

  modify({ id, ...edit }: LabelEdit & { id: string }, options: CallOptions = {}): Promise<MessageRef> {
    return this.#edit('messages.modify', id, 'modify', editOf(edit), options)
  }

  /** All messages of the thread. */
  async modifyThread(
    { threadId, ...edit }: LabelEdit & { threadId: string },
    options: CallOptions = {},
  ): Promise<void> {
    this.#check([threadId], 1)
    const call = this.#post(`/threads/${threadId}/modify`, editOf(edit))
    await this.#call('threads.modify', call, threadRefSchema, threadId, options)
  }

  /** Asks for notifications at a Pub/Sub topic; they end after a week at most. */
  async watch(
    target: { topicName: string; labelIds?: readonly string[] },
    options: CallOptions = {},
  ): Promise<{ historyId: string; expiresMs: number }> {
    const { topicName, labelIds } = target
    const filter = labelIds ? { labelIds, labelFilterBehavior: 'include' } : {}
    const call = this.#post('/watch', { topicName, ...filter })
    const answer = await this.#call('watch', call, watchSchema, 'the notifications', options)
    return { historyId: answer.historyId, expiresMs: answer.expiration }
  }

  async stop(options: CallOptions = {}): Promise<void> {
    const call = this.#post('/stop', undefined)
    await this.#call('stop', call, nothingSchema, 'the end of notifications', options)
  }

  #edit(
    method: GmailMethod,
    id: string,
    verb: string,
    body: unknown,
    options: CallOptions,
  ): Promise<MessageRef> {
    this.#check([id], 1)
    return this.#call(method, this.#post(`/messages/${id}/${verb}`, body), messageRefSchema, id, options)
  }

  #batch<A>(call: {
    ids: readonly string[]
    format: 'raw' | 'minimal'
    answerOf: (id: string, body: Buffer) => A
    onAnswer: (answer: A | FailedAnswer) => void | Promise<void>
    signal?: AbortSignal
  }): Promise<void> {
    const { clock, pace, prices } = this.#options
    return callBatch<A>({
      ...call,
      clock,
      pace,
      transport: this.#transport,
      method: 'messages.get',
      units: prices['messages.get'],
      pathOf: (id) => `${this.#user}/messages/${id}?format=${call.format}&fields=${FIELDS[call.format]}`,
    })
  }

  async #call<T>(
    method: GmailMethod,
    call: HttpCall,
    schema: z.ZodType<T>,
    what: string,
    options: CallOptions,
  ): Promise<T> {
    return await this.#paced(method, options, (signal) =>
      this.#transport.send(
        call,
        async (answer) => {
          const body = await answer.jsonBytes(what, ANSWER_BYTES_MAX)
          return decode(schema, body.length === 0 ? {} : parseJson(body.toString('utf8'), what), what)
        },
        signal,
      ),
    )
  }

  #paced<T>(
    method: GmailMethod,
    { signal }: CallOptions,
    fn: (signal?: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { pace, prices } = this.#options
    return pace({ method, units: prices[method], signal }, (paced) => fn(paced ?? signal))
  }

  #get(path: string, query?: HttpCall['query']): HttpCall {
    return { verb: 'GET', path: `${this.#user}${path}`, query }
  }

  #post(path: string, body: unknown): HttpCall {
    const json = body === undefined ? {} : { body: JSON.stringify(body), contentType: 'application/json' }
    return { verb: 'POST', path: `${this.#user}${path}`, ...json }
  }

  #check(ids: readonly string[], idsMax: number): void {
    if (ids.length > idsMax) {
      throw new UsageError(`${ids.length} messages were given to one call, which takes ${idsMax} at most.`)
    }
    if (!ids.every((id) => MESSAGE_ID.test(id))) {
      throw new UsageError('A message id holds characters that no id has.')
    }
  }
}

function labelsAnswerOf(id: string, body: Buffer): LabelsAnswer {
  const message = decode(messageSchema, parseJson(body.toString('utf8'), id), id)
  if (message.id !== id) throw damagedAnswer(id, 'it names another message')
  const { labelIds, historyId, internalDate, threadId } = message
  return { id, ok: true, message: { id, labelIds, historyId, internalMs: internalDate, threadId } }
}

function draftBody(raw: Uint8Array, threadId: string | undefined): { raw: string; threadId?: string } {
  return { raw: Buffer.from(raw).toString('base64url'), ...(threadId !== undefined && { threadId }) }
}

function editOf({ add = [], remove = [] }: LabelEdit): { addLabelIds: string[]; removeLabelIds: string[] } {
  return { addLabelIds: [...add], removeLabelIds: [...remove] }
}
