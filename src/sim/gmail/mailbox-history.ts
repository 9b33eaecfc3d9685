/**
 * What happened to a mailbox, in order. Ids grow, with gaps as in Gmail.
 * Invariants: the id of the newest record is at most the mailbox's history id; every change of a message
 * since `#floor` has exactly one record, so replaying them on an older state gives the present one; a
 * start below the floor is answered with 'expired', never with a part of the truth.
 */
import type { Random } from '../../base/random.ts'
import type {
  HistoryMessage,
  HistoryPage,
  HistoryRecord,
  HistoryRequest,
  HistoryType,
  SimMessage,
} from './mailbox-contract.ts'
import { mailboxFault } from './mailbox-fault.ts'

/** The oldest half is dropped beyond this many: history is not for ever in Gmail either. */
const RECORDS_MAX = 1_000_000
const PAGE_DEFAULT = 100
const PAGE_MAX = 500
const GAP_MAX = 40

export type Happening = {
  message: HistoryMessage
  added?: boolean
  deleted?: boolean
  labelsAdded?: string[]
  labelsRemoved?: string[]
}

/** A message that was there before the history began. */
type LoadedMessage = Pick<SimMessage, 'id' | 'threadId' | 'labelIds' | 'historyId'>

type LoggedHappening = Happening & { id: bigint }

const ALL_TYPES: readonly HistoryType[] = ['messageAdded', 'messageDeleted', 'labelAdded', 'labelRemoved']

export class HistoryLog {
  readonly #random: Random
  #records: LoggedHappening[] = []
  #current: bigint
  #floor: bigint

  constructor(options: { start: bigint; random: Random }) {
    this.#random = options.random
    this.#current = options.start
    this.#floor = options.start
  }

  get current(): bigint {
    return this.#current
  }

  /** A new history id, for a change that keeps no record (the loading of a mailbox). */
  advance(): bigint {
    this.#current += BigInt(1 + Math.floor(this.#random() * GAP_MAX))
    return this.#current
  }

  record(happening: Happening): bigint {
    const id = this.advance()
    this.#records.push({ ...happening, id })
    if (this.#records.length > RECORDS_MAX) {
      const dropped = this.#records.splice(0, RECORDS_MAX / 2)
      this.#floor = dropped.at(-1)!.id
    }
    return id
  }

  /** The history of a mailbox that was loaded: from the id of a message on, with those that came after it. */
  begin(floor: bigint | undefined, after: readonly LoadedMessage[]): void {
    this.#floor = floor ?? this.#current
    this.#records = after.map(({ id, threadId, labelIds, historyId }) => ({
      id: historyId,
      message: { id, threadId, labelIds: [...labelIds] },
      added: true,
    }))
  }

  /** Forgets everything: no id given out so far is a valid start any more. */
  expire(): void {
    this.#records = []
    this.#floor = this.advance()
  }

  page(request: HistoryRequest, options: { emptyPages: boolean }): HistoryPage | 'expired' {
    const start = request.startHistoryId
    if (start < this.#floor || start > this.#current) return 'expired'
    const token = request.pageToken === undefined ? undefined : parseToken(request.pageToken)
    const after = token && token.after > start ? token.after : start
    if (after < this.#floor) return 'expired'
    if (options.emptyPages && !token?.full && this.#positionAfter(after) < this.#records.length) {
      return { history: [], nextPageToken: tokenOf({ after, full: true }), historyId: this.#current }
    }
    return this.#fullPage(request, after)
  }

  #fullPage(request: HistoryRequest, after: bigint): HistoryPage {
    const max = Math.min(Math.max(1, request.maxResults || PAGE_DEFAULT), PAGE_MAX)
    const history: HistoryRecord[] = []
    let last = after
    for (let at = this.#positionAfter(after); at < this.#records.length; at += 1) {
      const happening = this.#records[at]!
      const record = recordOf(happening, request)
      if (!record) continue
      if (history.length === max) {
        return { history, nextPageToken: tokenOf({ after: last, full: false }), historyId: this.#current }
      }
      history.push(record)
      last = happening.id
    }
    return { history, historyId: this.#current }
  }

  #positionAfter(id: bigint): number {
    let low = 0
    let high = this.#records.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#records[middle]!.id <= id) low = middle + 1
      else high = middle
    }
    return low
  }
}

function recordOf(happening: LoggedHappening, request: HistoryRequest): HistoryRecord | undefined {
  const { message } = happening
  const label = request.labelId
  if (label && !message.labelIds.includes(label) && !happening.labelsRemoved?.includes(label))
    return undefined
  const types = request.historyTypes?.length ? request.historyTypes : ALL_TYPES
  const record: HistoryRecord = {
    id: happening.id,
    messages: [{ id: message.id, threadId: message.threadId }],
  }
  if (happening.added && types.includes('messageAdded')) record.messagesAdded = [{ message }]
  if (happening.deleted && types.includes('messageDeleted')) record.messagesDeleted = [{ message }]
  if (happening.labelsAdded?.length && types.includes('labelAdded')) {
    record.labelsAdded = [{ message, labelIds: happening.labelsAdded }]
  }
  if (happening.labelsRemoved?.length && types.includes('labelRemoved')) {
    record.labelsRemoved = [{ message, labelIds: happening.labelsRemoved }]
  }
  return Object.keys(record).length > 2 ? record : undefined
}

type Token = { after: bigint; full: boolean }

function tokenOf(token: Token): string {
  return Buffer.from(`h:${token.after}:${token.full ? 'f' : 'e'}`).toString('base64url')
}

function parseToken(text: string): Token {
  const match = /^h:(\d{1,20}):([fe])$/.exec(Buffer.from(text, 'base64url').toString('latin1'))
  if (!match) throw mailboxFault('sim-invalid', 'Invalid pageToken')
  return { after: BigInt(match[1]!), full: match[2] === 'f' }
}
