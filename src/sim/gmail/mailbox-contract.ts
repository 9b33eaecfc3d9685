/** What the simulated mailbox is asked and what it answers: the words of the Gmail API, without its HTTP. */
import type { Random } from '../../base/random.ts'

/** Wrong calls throw TidemarkError: code `sim-not-found` (404), `sim-invalid` (400) or `sim-conflict` (409). */
export type MailboxOptions = {
  address: string
  now: () => number
  random?: Random
  historyStart?: bigint
}

/** Behaviour that may be switched while the mailbox lives. */
export type MailboxSwitches = {
  /** `offset` tokens count: a deletion while listing shifts the pages. */
  pageTokens: 'keyset' | 'offset'
  /** Before every page of history, an empty one that has a nextPageToken. */
  emptyHistoryPages: boolean
}

export interface SimMessage {
  readonly id: string
  readonly threadId: string
  readonly labelIds: ReadonlySet<string>
  readonly internalMs: number
  readonly historyId: bigint
  /** Computed from the bytes when asked for. */
  readonly sizeEstimate: number
  readonly snippet: string
  raw(): Buffer
}

export type MessageRef = { id: string; threadId: string }
export type ListRequest = {
  q?: string
  labelIds?: readonly string[]
  includeSpamTrash?: boolean
  pageToken?: string
  maxResults?: number
}
export type MessageList = { messages: MessageRef[]; nextPageToken?: string; resultSizeEstimate: number }
export type SimThread = { id: string; historyId: bigint; snippet: string; messages: SimMessage[] }
export type ThreadList = {
  threads: { id: string; snippet: string; historyId: bigint }[]
  nextPageToken?: string
  resultSizeEstimate: number
}
export type LabelChange = { add?: readonly string[]; remove?: readonly string[] }
export type NewMessage = { raw: Buffer; labelIds?: readonly string[]; internalMs?: number; threadId?: string }

export type LabelFields = {
  name: string
  messageListVisibility?: 'show' | 'hide'
  labelListVisibility?: 'labelShow' | 'labelShowIfUnread' | 'labelHide'
  color?: { textColor: string; backgroundColor: string }
}
export type SimLabel = LabelFields & { id: string; type: 'system' | 'user' }
export type LabelCounts = {
  messagesTotal: number
  messagesUnread: number
  threadsTotal: number
  threadsUnread: number
}

export type SimDraft = { id: string; message: SimMessage }
export type DraftList = {
  drafts: { id: string; message: MessageRef }[]
  nextPageToken?: string
  resultSizeEstimate: number
}

export type HistoryType = 'messageAdded' | 'messageDeleted' | 'labelAdded' | 'labelRemoved'
export type HistoryRequest = {
  startHistoryId: bigint
  pageToken?: string
  maxResults?: number
  labelId?: string
  historyTypes?: readonly HistoryType[]
}
export type HistoryMessage = MessageRef & { labelIds: string[] }
export type HistoryRecord = {
  id: bigint
  messages: MessageRef[]
  messagesAdded?: { message: HistoryMessage }[]
  messagesDeleted?: { message: HistoryMessage }[]
  labelsAdded?: { message: HistoryMessage; labelIds: string[] }[]
  labelsRemoved?: { message: HistoryMessage; labelIds: string[] }[]
}
export type HistoryPage = { history: HistoryRecord[]; nextPageToken?: string; historyId: bigint }

export type DeletedMessage = { message: SimMessage; atMs: number; historyId: bigint }
export type DumpedMessage = {
  id: string
  threadId: string
  internalMs: number
  labels: string[]
  deleted: boolean
  everListed: boolean
  sha256(): string
}
