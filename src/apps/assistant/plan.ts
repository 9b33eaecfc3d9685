/** Pure decisions: what the history of a mailbox means, which label a category has, whose words a conversation ends with. */
import { createHash } from 'node:crypto'
import type { HistoryRecord } from '../../cloud/gmail/client.ts'
import { type Category, LABELS, type LabelRole, type Style, type VisibleMessage } from './contract.ts'
import type { LabelIds } from './store/accounts.ts'
import { type Labels, type ThreadRecord, unseenLabel } from './store/records.ts'

/** What is on a thread of these in Gmail is the user's own answer, or the assistant's: never mail that came in. */
const NOT_INBOUND = ['DRAFT', 'TRASH', 'SPAM']

export type NetChange = {
  id: string
  threadId: string | undefined
  /** New in the mailbox; with the labels that it had when the answer was made. */
  isAdded: boolean
  isDeleted: boolean
  labels: ReadonlySet<string>
  added: ReadonlySet<string>
  removed: ReadonlySet<string>
  /** Taken out of the trash, also where it was put there since. */
  isFromTrash: boolean
}

/**
 * What is left of a history when it is over, by message: a label that was set and taken away again is no change, and
 * so most of what the assistant did itself is none.
 */
export function netChanges(records: readonly HistoryRecord[]): NetChange[] {
  type Open = NetChange & { labels: Set<string>; added: Set<string>; removed: Set<string> }
  const byId = new Map<string, Open>()
  const of = (id: string, threadId: string | undefined): Open => {
    const known = byId.get(id)
    if (known) {
      known.threadId ??= threadId
      return known
    }
    const fresh: Open = {
      id,
      threadId,
      isAdded: false,
      isDeleted: false,
      labels: new Set(),
      added: new Set(),
      removed: new Set(),
      isFromTrash: false,
    }
    byId.set(id, fresh)
    return fresh
  }
  for (const record of records) {
    for (const { id, threadId, labelIds } of record.added) {
      const change = of(id, threadId)
      change.isAdded = true
      for (const label of labelIds) change.labels.add(label)
    }
    for (const { id, threadId, labelIds } of record.labelsAdded) {
      const change = of(id, threadId)
      for (const label of labelIds) if (!change.removed.delete(label)) change.added.add(label)
      if (labelIds.includes('TRASH')) change.isFromTrash = false
    }
    for (const { id, threadId, labelIds } of record.labelsRemoved) {
      const change = of(id, threadId)
      for (const label of labelIds) if (!change.added.delete(label)) change.removed.add(label)
      if (labelIds.includes('TRASH')) change.isFromTrash = true
    }
    for (const { id, threadId } of record.deleted) of(id, threadId).isDeleted = true
  }
  return [...byId.values()]
}

/** `cleanup`: what the user did is compared with the record. */
export type ThreadWish = 'cleanup' | 'rework' | 'manual-draft'

export type News = {
  arrivals: { id: string; threadId: string }[]
  deleted: string[]
  /** Messages of drafts of ours that came out of the trash with more of their conversation: nobody has asked for them. */
  back: string[]
  wishes: Map<string, Set<ThreadWish>>
  /** Something that could not be told apart: the mailbox itself must be asked. */
  isUnclear: boolean
}

export type NewsContext = {
  labels: LabelIds
  /** By thread: as the records are now. */
  records: ReadonlyMap<string, ThreadRecord>
  /** By message: threads of drafts that are ours. */
  drafts: ReadonlyMap<string, string>
}

export function newsOf(changes: readonly NetChange[], context: NewsContext): News {
  const { labels, records, drafts } = context
  const roles = new Map(LABELS.map((role) => [labels[role], role]))
  const news: News = { arrivals: [], deleted: [], back: [], wishes: new Map(), isUnclear: false }
  const wish = (thread: string, what: ThreadWish): void => {
    const all = news.wishes.get(thread) ?? new Set()
    news.wishes.set(thread, all.add(what))
  }
  const isOther = ({ id, isFromTrash }: NetChange): boolean => isFromTrash && !drafts.has(id)
  const backAgain = new Set(changes.filter(isOther).map(({ threadId }) => threadId))
  for (const change of changes) {
    const { id, isAdded, isDeleted, isFromTrash, added, removed } = change
    const ours = drafts.get(id)
    const thread = change.threadId ?? ours
    if (isDeleted) {
      news.deleted.push(id)
      if (ours !== undefined) wish(ours, 'cleanup')
      continue
    }
    // It was put away when it should have been sorted.
    const isUnsorted = isFromTrash && ours === undefined && records.get(thread ?? '')?.category === null
    if (isInboxArrival(change) || isUnsorted) {
      if (thread === undefined) news.isUnclear = true
      else news.arrivals.push({ id, threadId: thread })
    }
    if (thread === undefined) continue
    // Put to the trash, taken out of it, or sent as it is: no longer the draft that it was.
    const isMoved = added.has('TRASH') || isFromTrash || removed.has('DRAFT')
    if (ours !== undefined && isMoved) wish(ours, 'cleanup')
    if (ours !== undefined && isFromTrash && backAgain.has(thread)) news.back.push(id)
    if (isAdded && change.labels.has('SENT')) wish(thread, 'cleanup')
    const record = records.get(thread)
    // Out of where nobody saw it, with the label that it had.
    const isBack = removed.has('TRASH') || removed.has('SPAM')
    if (isBack && record && unseenLabel(record) !== null) wish(thread, 'cleanup')
    // There, with its label: nobody sees it any more, if that is all of it.
    const isAway = added.has('TRASH') || added.has('SPAM')
    if (isAway && record?.isApplied && record.label !== null) wish(thread, 'cleanup')
    for (const label of added) {
      const role = roles.get(label)
      if (role !== undefined) for (const one of wishesOf(role, record)) wish(thread, one)
    }
    for (const label of removed) {
      const role = roles.get(label)
      if (role !== undefined && record?.isApplied && oursOf(record).has(role)) wish(thread, 'cleanup')
    }
  }
  return news
}

function isInboxArrival({ isAdded, labels, added, removed }: NetChange): boolean {
  const isNowIn = (isAdded && labels.has('INBOX') && !removed.has('INBOX')) || added.has('INBOX')
  return isNowIn && !NOT_INBOUND.some((label) => labels.has(label) || added.has(label))
}

/** What a label means that somebody has set on a thread; nothing where it is the one that the record has. */
export function wishesOf(role: LabelRole, record: ThreadRecord | undefined): ThreadWish[] {
  if (role === 'rework') return record?.order?.kind === 'rework' ? [] : ['rework']
  if (record && unseenLabel(record) === role) return ['cleanup']
  if (record?.label === role || (record && !record.isApplied && record.labelWas === role)) return []
  return role === 'needs_response' ? ['manual-draft'] : ['cleanup']
}

export function roleOf(category: Category): LabelRole {
  return category
}

/** The record of a conversation of which nothing is seen any more: its label is kept in mind. */
export function unseen<R extends Labels>(record: R): R {
  return { ...record, label: null, labelWas: record.label ?? unseenLabel(record), isApplied: true }
}

/** Set by jobs alone, unless the user moves a conversation by them. */
const SORTED: readonly LabelRole[] = ['action_required', 'payment_request', 'fyi', 'waiting']

/**
 * Labels that we have set, or may have. A person who decides several times on the page before Gmail has the first of it
 * leaves any of these there for a moment: none of them is another word of theirs.
 */
export function oursOf(record: Labels & Pick<ThreadRecord, 'by'>): ReadonlySet<LabelRole | null> {
  const { label, labelWas, isApplied, by } = record
  if (isApplied) return new Set([label, unseenLabel(record)])
  return new Set([label, labelWas, ...(by === 'user' ? SORTED : [])])
}

/**
 * The record with another label, which Gmail does not have yet. Until it has, the label from before counts as ours, too.
 * Where that was not set yet either, Gmail has it or the one before it: of these, the one that is not wanted now is
 * kept in mind, or what a job is just setting would be taken for a word of the user.
 */
export function relabelled<R extends Labels>(record: R, label: ThreadRecord['label']): R {
  if (label === record.label) return { ...record, isApplied: false }
  const isBack = !record.isApplied && record.labelWas === label
  const labelWas = record.isApplied || isBack ? (record.label ?? unseenLabel(record)) : record.labelWas
  return { ...record, label, labelWas, isApplied: false }
}

/** Where no scan finds it. */
export function isPutAway({ labelIds }: { labelIds: readonly string[] }): boolean {
  return labelIds.includes('TRASH') || labelIds.includes('SPAM')
}

/** Neither a draft nor put away. */
export function isSeen({ labelIds }: { labelIds: readonly string[] }): boolean {
  return !NOT_INBOUND.some((label) => labelIds.includes(label))
}

/** Which of the assistant's labels are on what people see of a thread. */
export function rolesOn(
  messages: readonly { labelIds: readonly string[] }[],
  labels: LabelIds,
): Set<LabelRole> {
  const shown = messages.filter(isSeen)
  return new Set(LABELS.filter((role) => shown.some(({ labelIds }) => labelIds.includes(labels[role]))))
}

export function isInbound(message: VisibleMessage, owner: string): boolean {
  const { labelIds, isDraft, isSent, from } = message
  if (isDraft || isSent || from.address.toLowerCase() === owner.toLowerCase()) return false
  return !labelIds.includes('TRASH') && !labelIds.includes('SPAM')
}

/** The last message of somebody else: what is classified, and answered. */
export function lastInbound(thread: readonly VisibleMessage[], owner: string): VisibleMessage | undefined {
  return thread.findLast((message) => isInbound(message, owner))
}

/** Whether the user has written after it: by hand, or by sending a draft. */
export function isAnswered(thread: readonly VisibleMessage[], answered: VisibleMessage): boolean {
  const at = thread.indexOf(answered)
  return thread.some(
    (message, index) =>
      message.isSent &&
      !message.labelIds.includes('TRASH') &&
      (index > at || message.sentAtMs > answered.sentAtMs),
  )
}

/** Names a draft: the same wish has the same key, so that it is made once. */
export function draftKeyOf(of: {
  account: string
  thread: string
  answered: string
  reworks: number
  /** What the user wants of it, if anything. */
  wish: unknown
}): string {
  const text = JSON.stringify([of.account, of.thread, of.answered, of.reworks, of.wish])
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** Of what a draft says; white space at the ends of lines and of the text is nobody's edit. */
export function textHashOf(text: string): string {
  const plain = text
    .replaceAll('\r\n', '\n')
    .replaceAll(/[ \t]+$/gm, '')
    .trim()
  return createHash('sha256').update(plain).digest('hex')
}

/** By contact, then domain, then what the model said, then the default. */
export function styleFor(
  sender: string,
  modelStyle: string,
  settings: {
    styles: readonly Style[]
    contacts: Readonly<Record<string, string>>
    domains: Readonly<Record<string, string>>
    defaultStyle: string
  },
  fallback: Style,
): Style {
  const address = sender.toLowerCase()
  const domain = address.slice(address.lastIndexOf('@') + 1)
  const named = (table: Readonly<Record<string, string>>, key: string): string | undefined =>
    Object.entries(table).find(([name]) => name.toLowerCase() === key)?.[1]
  const wanted = [
    named(settings.contacts, address),
    named(settings.domains, domain),
    modelStyle,
    settings.defaultStyle,
  ]
  for (const name of wanted) {
    const style = name && settings.styles.find((one) => one.name.toLowerCase() === name.toLowerCase())
    if (style) return style
  }
  return fallback
}

const DAY_MS = 86_400_000

/** So many working days later: Saturdays and Sundays are none. */
export function afterWorkingDays(fromMs: number, days: number): number {
  let at = fromMs
  for (let left = days; left > 0; ) {
    at += DAY_MS
    const weekday = new Date(at).getUTCDay()
    if (weekday !== 0 && weekday !== 6) left -= 1
  }
  return at
}

/** Whether somebody who wrote this waits for an answer. */
export function asksForSomething(text: string): boolean {
  return /[?？]|\b(?:please|could you|can you|let me know|kindly|bitte|könnten sie|kannst du|s'il vous plaît|por favor|prosím)\b/i.test(
    text,
  )
}
