/**
 * What the user did with a conversation in Gmail becomes the record's. Decided from how the conversation is now, and not
 * from what was told of it: whoever asks twice changes nothing.
 *
 *   Done set by the user             all other labels and INBOX go; archived. Mail that came in after it stays
 *   another category's label         a correction: the category is theirs, and is learned from
 *   the record's label taken away    it stays away
 *   draft sent                       sent; Outbox goes; perhaps a follow-up
 *   draft gone and nothing sent      back to review (`discarded`), with Needs Response: discarded is not sent
 *   draft edited                     it is theirs from now on
 *   nothing of that                  Gmail is brought in line with the record, where it is not yet
 */
import { type Outcome, request } from '../../engine/index.ts'
import { labelTitle } from './account.ts'
import { routedAgents } from './agent/router.ts'
import { CATEGORIES, type Category, type LabelRole, type VisibleMessage } from './contract.ts'
import { Conversation, type ThreadJob } from './conversation.ts'
import { followUpFor } from './follow-ups.ts'
import type { AssistKinds } from './kinds.ts'
import { learnFrom } from './learning.ts'
import { isAnswered, isInbound, lastInbound, roleOf, rolesOn } from './plan.ts'
import { settle } from './settle.ts'
import { type DraftRow, noteMessages, putDraft, type ThreadRecord } from './store/records.ts'

export async function runCleanup(kinds: AssistKinds, job: ThreadJob): Promise<Outcome> {
  const talk = await Conversation.open(kinds, job)
  if (!talk) return { skip: 'nothing is known of the conversation', code: 'unknown' }
  const messages = await talk.read()
  if (!messages) return talk.gone()
  const roles = rolesOn(messages, talk.account.labels)
  if (talk.record.category === null) return firstSight(talk, messages, roles)
  if (roles.has('done') && !oursOf(talk.record).has('done')) return done(talk)
  await followDrafts(talk, messages)
  const moved = movedTo(talk.record, roles)
  if (moved !== undefined) return correct(talk, messages, moved)
  const { record } = talk
  const isSeen = messages.some(({ isDraft, labelIds }) => !isDraft && !labelIds.includes('TRASH'))
  if (record.isApplied && record.label !== null && !roles.has(record.label)) {
    if (isSeen) return unlabelled(talk)
    // Only drafts and the trash are left of it: nothing that could have the label.
    const next = { ...record, label: null, labelWas: null }
    return talk.end(next, { note: 'nothing is left to be labelled', code: 'unchanged' })
  }
  const isRight = record.isApplied && rolesAre(roles, record)
  return isRight ? talk.end(record, { note: 'as it should be', code: 'unchanged' }) : settle(talk)
}

/** A conversation that was not sorted yet. Where it has a label, the user has sorted it, or an assistant before this one. */
async function firstSight(
  talk: Conversation,
  messages: readonly VisibleMessage[],
  roles: ReadonlySet<LabelRole>,
): Promise<Outcome> {
  const { record, kinds } = talk
  const { account, thread } = record
  // What came in after Done is news, and is sorted as such.
  const seen = roles.has('done') ? messages.filter((one) => talk.isDone(one)) : messages
  const message = lastInbound(seen, record.account)
  const category = CATEGORIES.find((one) => one !== 'needs_response' && roles.has(roleOf(one)))
  if (!message || roles.size === 0) return onlySent(talk, messages)
  if (category === undefined && !roles.has('done')) {
    // Outbox alone says nothing; Needs Response and Rework are seen to by their own jobs.
    const isOthers = roles.has('needs_response') || roles.has('rework')
    return isOthers
      ? { note: 'left to others', code: 'unchanged' }
      : talk.end({ ...record, isForced: true }, { jobs: [request(kinds.classify, { account, thread })] })
  }
  const label = roles.has('done') ? 'done' : roleOf(category!)
  // A scan leaves conversations with a label to this job, with all that is in them.
  const news = messages.filter(
    (one) => !seen.includes(one) && one.labelIds.includes('INBOX') && isInbound(one, account),
  )
  const isFree = !kinds.models.mayCost(routedAgents(talk.account.settings).map(({ model }) => model))
  const why = `It had the label ${labelTitle(label)} already.`
  await talk.commit(
    {
      ...talk.changed({
        category: category ?? 'fyi',
        label,
        by: 'user',
        confidence: 1,
        reasoning: why,
        status: label === 'done' ? 'archived' : 'skipped',
        subject: message.subject,
        sender: message.from.address,
        answered: message.id,
        lastAtMs: message.sentAtMs,
        classifiedAtMs: talk.nowMs,
      }),
      isApplied: false,
    },
    {
      effects: async (tx) => {
        await talk.settleRead(tx, why, [], seen)
        const ids = news.map(({ id }) => ({ id, threadId: thread }))
        await noteMessages(tx, account, ids, talk.nowMs, isFree ? 'waiting' : 'held')
      },
      event: { what: 'classified', why, by: 'user', canUndo: true },
    },
  )
  const jobs = news.length > 0 && isFree ? [request(kinds.classify, { account, thread })] : []
  return settle(talk, { note: why, code: 'classified', jobs })
}

/** Rework is the user's: it stays until it is done. */
function rolesAre(roles: ReadonlySet<LabelRole>, { label }: ThreadRecord): boolean {
  return [...roles].every((role) => role === label || role === 'rework')
}

async function done(talk: Conversation): Promise<Outcome> {
  await talk.commit(talk.changed({ status: 'archived', label: 'done', order: null, followUpAtMs: null }), {
    event: { what: 'done', why: 'You have marked it as done: it is archived.', by: 'user', canUndo: true },
  })
  return settle(talk, { note: 'archived', code: 'done' })
}

/** Set by jobs alone, unless the user moves a conversation by them. */
const SORTED: readonly LabelRole[] = ['action_required', 'payment_request', 'fyi', 'waiting']

/**
 * Labels that we have set, or may have. A person who decides several times on the page before Gmail has the first of it
 * leaves any of these there for a moment: none of them is another word of theirs.
 */
function oursOf({ label, labelWas, isApplied, by }: ThreadRecord): ReadonlySet<LabelRole | null> {
  if (isApplied) return new Set([label])
  return new Set([label, labelWas, ...(by === 'user' ? SORTED : [])])
}

/** A category that only the user can have set; Needs Response by hand is a wish for a draft (manual-draft.ts). */
function movedTo(record: ThreadRecord, roles: ReadonlySet<LabelRole>): Category | undefined {
  const ours = oursOf(record)
  return CATEGORIES.find(
    (category) => category !== 'needs_response' && roles.has(roleOf(category)) && !ours.has(roleOf(category)),
  )
}

async function correct(
  talk: Conversation,
  messages: readonly VisibleMessage[],
  category: Category,
): Promise<Outcome> {
  const { record } = talk
  const why = `You moved it to ${labelTitle(roleOf(category))}.`
  const next = talk.changed({
    category,
    label: roleOf(category),
    by: 'user',
    confidence: 1,
    reasoning: why,
    status: 'skipped',
    order: null,
    problem: null,
    problemCode: null,
  })
  const message = lastInbound(messages, record.account)
  await talk.commit(
    { ...next, isApplied: false },
    {
      effects: async (tx) => {
        if (message) await learnFrom(tx, { record, message, category, nowMs: talk.nowMs })
      },
      event: { what: 'corrected', why, by: 'user', canUndo: true },
    },
  )
  return settle(talk, { note: why, code: 'corrected' })
}

function unlabelled(talk: Conversation): Outcome {
  const { record } = talk
  const why = `You took the label ${labelTitle(record.label!)} away.`
  return talk.end(
    {
      ...record,
      label: null,
      labelWas: null,
      // No draft is made for what the user has taken off the list.
      status: record.status === 'pending' || record.status === 'discarded' ? 'skipped' : record.status,
      order: null,
    },
    { event: { what: 'unlabelled', why, by: 'user', canUndo: true }, note: why, code: 'unlabelled' },
  )
}

/** Sent, discarded or edited: commits what became of our drafts, and of the conversation with them. */
async function followDrafts(talk: Conversation, messages: readonly VisibleMessage[]): Promise<void> {
  const changed: DraftRow[] = []
  let isThere = false
  for (const draft of await talk.openDrafts()) {
    // Of one that is only noted nobody knows yet whether it was made: its own job will tell.
    if (draft.state === 'intended') {
      isThere = true
      continue
    }
    const found = await talk.find(draft)
    if (!found) changed.push({ ...draft, state: 'gone' })
    else {
      isThere = true
      const isKnown = draft.state === 'edited' || found.isSame
      if (!isKnown || found.message.id !== draft.messageId) {
        changed.push(await talk.takenOver(found))
      }
    }
  }
  const { record } = talk
  const answered = messages.find(({ id }) => id === record.answered) ?? lastInbound(messages, record.account)
  const isSent = answered !== undefined && isAnswered(messages, answered)
  const wasOpen = record.status === 'drafted' || record.status === 'discarded'
  const isOver = wasOpen && !isThere
  if (changed.length === 0 && !(isOver && (isSent || record.status === 'drafted'))) return
  const gone = isSent ? ('sent' as const) : ('gone' as const)
  const rows = changed.map((draft) => (draft.state === 'gone' ? { ...draft, state: gone } : draft))
  const next = isOver ? ended(talk, { messages, isSent }) : undefined
  await talk.commit(next?.record ?? record, {
    effects: async (tx) => {
      for (const draft of rows) await putDraft(tx, draft)
    },
    event: next?.event ?? {
      what: 'draft-edited',
      why: 'You have edited the draft: it is yours from now on.',
      by: 'user',
    },
  })
}

function ended(talk: Conversation, about: { messages: readonly VisibleMessage[]; isSent: boolean }) {
  const { record } = talk
  const isThird = record.label === 'action_required'
  if (about.isSent) {
    return {
      record: talk.changed({
        status: 'sent',
        label: record.label === 'done' ? 'done' : null,
        draftKey: null,
        followUpAtMs: followUpFor(talk, about.messages),
      }),
      event: { what: 'sent', why: 'You have sent the answer.', by: 'user' as const },
    }
  }
  if (record.status === 'discarded') return undefined
  return {
    record: talk.changed({
      status: 'discarded',
      label: isThird ? record.label : 'needs_response',
      draftKey: null,
    }),
    event: {
      what: 'discarded',
      why: 'The draft was discarded and nothing was sent: the message still waits for you.',
      by: 'user' as const,
      canUndo: false,
    },
  }
}

/** A conversation that only the user has written in: whether an answer to it is awaited. */
function onlySent(talk: Conversation, messages: readonly VisibleMessage[]): Outcome {
  const followUpAtMs = followUpFor(talk, messages)
  if (followUpAtMs === talk.record.followUpAtMs) return { note: 'nothing to do', code: 'unchanged' }
  const last = messages.at(-1)
  const { subject = '', to = [] } = last ?? {}
  return talk.end(
    { ...talk.record, followUpAtMs, subject, sender: to[0]?.address ?? '', lastAtMs: last?.sentAtMs ?? 0 },
    { note: 'noted for a follow-up', code: 'follow-up' },
  )
}
