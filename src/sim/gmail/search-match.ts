/**
 * A search's conditions put to messages. What time alone decides becomes a range, so that a listing by
 * slices of time looks only at its slice, and nothing looks at a message's bytes unless it must.
 */
import type { LabelBook } from './mailbox-labels.ts'
import type { StoredMessage } from './mailbox-message.ts'
import { type MessageContent, parsedContent, shownHeader } from './message-content.ts'
import { headerOf } from './message-headers.ts'
import type { Condition, TextField } from './search.ts'

export type Match = (message: StoredMessage) => boolean

export type SearchPlan = {
  fromMs: number
  toMs: number
  /** Undefined when the range says it all. */
  match: Match | undefined
  /** The query itself asks for spam or trash. */
  asksForSpamTrash: boolean
}

export type MatchContext = { address: string; labels: LabelBook }

export function searchPlan(condition: Condition, context: MatchContext): SearchPlan {
  const terms = condition.kind === 'and' ? condition.terms : [condition]
  let fromMs = Number.NEGATIVE_INFINITY
  let toMs = Number.POSITIVE_INFINITY
  const rest: Condition[] = []
  for (const term of terms) {
    if (term.kind === 'time') {
      fromMs = Math.max(fromMs, term.fromMs)
      toMs = Math.min(toMs, term.toMs)
    } else {
      rest.push(term)
    }
  }
  const match = rest.length > 0 ? matchOf({ kind: 'and', terms: rest }, context) : undefined
  return { fromMs, toMs, match, asksForSpamTrash: asksForSpamTrash(condition) }
}

export function matchOf(condition: Condition, context: MatchContext): Match {
  switch (condition.kind) {
    case 'and': {
      const matches = cheapFirst(condition.terms).map((term) => matchOf(term, context))
      return (message) => matches.every((match) => match(message))
    }
    case 'or': {
      const matches = cheapFirst(condition.terms).map((term) => matchOf(term, context))
      return (message) => matches.some((match) => match(message))
    }
    case 'not': {
      const match = matchOf(condition.term, context)
      return (message) => !match(message)
    }
    case 'time':
      return ({ internalMs }) => internalMs >= condition.fromMs && internalMs < condition.toMs
    case 'label':
      return labelled(context.labels.named(condition.name))
    case 'in':
      return inPlace(condition.place, context.labels)
    case 'is':
      return inState(condition.state)
    case 'category':
      return labelled([`CATEGORY_${categoryOf(condition.name)}`])
    case 'has':
      return having(condition.what, context.labels)
    case 'size':
      return ({ sizeEstimate }) => sizeEstimate >= condition.bytesMin && sizeEstimate <= condition.bytesMax
    case 'message-id':
      return (message) => messageIdOf(message) === condition.messageId
    case 'text':
      return holding(condition.field, condition.text, context.address)
  }
}

/** Without brackets; generated messages tell it without being made. */
export function messageIdOf(message: StoredMessage): string | undefined {
  if (!Buffer.isBuffer(message.origin)) return message.origin.messageIdOf(message.index)
  const value = headerOf(contentFor(message).headers, 'message-id')?.trim()
  return value?.replaceAll(/^<|>$/g, '')
}

/** Conditions that need no bytes go first: the others are then asked only where it matters. */
function cheapFirst(terms: readonly Condition[]): Condition[] {
  return terms.toSorted((a, b) => cost(a) - cost(b))
}

function cost(condition: Condition): number {
  switch (condition.kind) {
    case 'text':
      return 3
    case 'has':
    case 'size':
    case 'message-id':
      return 2
    case 'and':
    case 'or':
      return Math.max(0, ...condition.terms.map(cost))
    case 'not':
      return cost(condition.term)
    default:
      return 0
  }
}

function asksForSpamTrash(condition: Condition): boolean {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return condition.terms.some(asksForSpamTrash)
    case 'in':
      return ['trash', 'spam', 'anywhere'].includes(condition.place)
    case 'label':
      return ['trash', 'spam'].includes(condition.name.toLowerCase())
    default:
      return false
  }
}

function labelled(ids: readonly string[]): Match {
  return ({ labelIds }) => ids.some((id) => labelIds.has(id))
}

const ARCHIVE_EXCLUDES = ['INBOX', 'SENT', 'DRAFT', 'SPAM', 'TRASH', 'CHAT']
const nothing: Match = () => false

function inPlace(place: string, labels: LabelBook): Match {
  if (place === 'anywhere' || place === 'all') return () => true
  if (place === 'drafts') return labelled(['DRAFT'])
  if (place === 'chats') return labelled(['CHAT'])
  if (place === 'archive') return ({ labelIds }) => !ARCHIVE_EXCLUDES.some((id) => labelIds.has(id))
  if (place === 'read') return ({ labelIds }) => !labelIds.has('UNREAD')
  return labelled(labels.named(place))
}

function inState(state: string): Match {
  if (state === 'read') return ({ labelIds }) => !labelIds.has('UNREAD')
  if (['unread', 'starred', 'important', 'sent', 'draft', 'inbox', 'chat'].includes(state)) {
    return labelled([state.toUpperCase()])
  }
  return nothing
}

function categoryOf(name: string): string {
  const upper = name.toUpperCase()
  return upper === 'PRIMARY' ? 'PERSONAL' : upper
}

function having(what: string, labels: LabelBook): Match {
  if (what === 'attachment') return (message) => contentFor(message).hasAttachment
  const isUserLabel = (id: string): boolean => labels.get(id)?.type === 'user'
  if (what === 'userlabels') return ({ labelIds }) => [...labelIds].some(isUserLabel)
  if (what === 'nouserlabels') return ({ labelIds }) => ![...labelIds].some(isUserLabel)
  if (what === 'yellow-star') return labelled(['STARRED'])
  return nothing
}

function holding(field: TextField, text: string, address: string): Match {
  const isPerson = ['from', 'to', 'cc', 'bcc', 'deliveredto'].includes(field)
  const wanted = foldedWords(isPerson && text.toLowerCase() === 'me' ? address : text)
  if (wanted === '') return nothing
  return (message) => ` ${foldedWords(fieldText(contentFor(message), field))} `.includes(` ${wanted} `)
}

function fieldText(content: MessageContent, field: TextField): string {
  const { headers } = content
  if (field === 'filename') return content.filenames.join(' \n ')
  if (field === 'deliveredto') return shownHeader(headers, 'delivered-to')
  if (field === 'list') return `${shownHeader(headers, 'list-id')} ${shownHeader(headers, 'list-post')}`
  if (field !== 'anywhere') return shownHeader(headers, field)
  const people = ['subject', 'from', 'to', 'cc', 'bcc'].map((name) => shownHeader(headers, name))
  return [...people, ...content.filenames, content.text].join('\n')
}

/** Words in lower case with single spaces: Gmail finds whole words, whatever stands between them. */
function foldedWords(text: string): string {
  return (
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}\p{M}]+/gu) ?? []
  ).join(' ')
}

/** One message is asked several things in a row; its content is taken apart once. */
let remembered: { message: StoredMessage; content: MessageContent } | undefined

function contentFor(message: StoredMessage): MessageContent {
  if (remembered?.message !== message) remembered = { message, content: parsedContent(message.raw()) }
  return remembered.content
}
