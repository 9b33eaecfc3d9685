/**
 * What the user did with a conversation in Gmail becomes the record's. Decided from how the conversation is now, and not
 * from what was told of it: whoever asks twice changes nothing.
 *
 *   Done set by the user             all other labels and INBOX go; archived. Mail that came in after it stays
 *   another category's label         a correction: the category is theirs, and is learned from
 *   Needs Response set by the user   left to who makes the draft (manual-draft.ts)
 *   the record's label taken away    it stays away; where it is there again, it is the record's again
 *   thrown away, or to spam          its label is kept in mind, and is the record's again when it comes back
 *   draft sent                       sent; Outbox goes; perhaps a follow-up
 *   draft gone and nothing sent      back to review (`discarded`), with Needs Response: discarded is not sent
 *   a draft that was gone is back    as before it was
 *   draft edited                     it is theirs from now on
 *   nothing of that                  Gmail is brought in line with the record, where it is not yet
 */
import { type Outcome, request } from '../../engine/index.ts'
import { labelTitle } from './account.ts'
import { routedAgents } from './agent/router.ts'
import { CATEGORIES, type Category, LABELS, type LabelRole, type VisibleMessage } from './contract.ts'
import { Conversation, type FoundDraft, type ThreadJob } from './conversation.ts'
import { followUpFor } from './follow-ups.ts'
import type { AssistKinds } from './kinds.ts'
import { learnFrom, taughtBy } from './learning.ts'
import { isAnswered, isInbound, lastInbound, oursOf, roleOf, rolesOn, unseen } from './plan.ts'
import { draftJobs, settle } from './settle.ts'
import { type DraftRow, noteMessages, putDraft, type ThreadRecord, unseenLabel } from './store/records.ts'

export async function runCleanup(kinds: AssistKinds, job: ThreadJob): Promise<Outcome> {
  const talk = await Conversation.open(kinds, job)
  if (!talk) return { skip: 'nothing is known of the conversation', code: 'unknown' }
  const messages = await talk.read()
  if (!messages) return talk.gone()
  const roles = rolesOn(messages, talk.account.labels)
  if (talk.record.category === null) return firstSight(talk, messages, roles)
  await followDrafts(talk, messages)
  if (roles.has('done') && !oursOf(talk.record).has('done')) return done(talk)
  const moved = movedTo(talk.record, roles)
  const { record } = talk
  if (moved !== undefined) {
    const isAgain = record.label === null && record.category === moved
    return isAgain ? labelledAgain(talk, moved) : correct(talk, messages, moved)
  }
  if (isAskedFor(record, roles)) {
    const { account, thread } = record
    const jobs = [request(kinds.manualDraft, { account, thread })]
    return talk.end(record, { jobs, note: 'an answer is asked for', code: 'asked' })
  }
  const back = unseenLabel(record)
  // Where the label is only on what was put away, new mail is all that is seen of it.
  const isBack = back !== null && (talk.isFoundBy(back) || (talk.isSeen && !talk.hasLabel(back)))
  if (isBack) return cameBack(talk, back, roles)
  if (record.isApplied && record.label !== null && !roles.has(record.label)) {
    if (talk.isSeen) return unlabelled(talk, roles)
    // A draft is all that is shown of it: one that has other labels as well would be found by every scan.
    if (LABELS.some((role) => role !== record.label && talk.isFoundBy(role))) return settle(talk)
    const next = talk.isFoundBy(record.label) ? record : unseen(record)
    return talk.end(next, { note: 'nothing is seen that could have the label', code: 'unchanged' })
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

/**
 * By Needs Response, also where that was set in the trash, of which history tells at another time than of the return.
 * Not while a label of ours is on its way to Gmail: what is there then may be an earlier one of ours.
 */
function isAskedFor(record: ThreadRecord, roles: ReadonlySet<LabelRole>): boolean {
  return record.isApplied && roles.has('needs_response') && !oursOf(record).has('needs_response')
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
      event: {
        what: 'corrected',
        why,
        by: 'user',
        canUndo: true,
        taught: message && taughtBy(message, category),
      },
    },
  )
  return settle(talk, { note: why, code: 'corrected' })
}

/** Out of the trash or spam: no word of the user about its label, or where its mail lies. */
async function cameBack(
  talk: Conversation,
  back: LabelRole,
  roles: ReadonlySet<LabelRole>,
): Promise<Outcome> {
  const label = talk.isFoundBy(back) ? back : null
  const next: ThreadRecord = { ...talk.record, label, labelWas: null }
  const note = 'it is seen again'
  const isOnAll = label === null || roles.has(label) || !talk.isSeen
  if (isOnAll && rolesAre(roles, next)) {
    return talk.end(next, { note, code: 'labelled', jobs: draftJobs(talk, next) })
  }
  await talk.commit({ ...next, isApplied: false })
  return settle(talk, { note, code: 'labelled' })
}

/** Put back by the user: no other word than before. */
async function labelledAgain(talk: Conversation, category: Category): Promise<Outcome> {
  await talk.commit({ ...talk.changed({ label: roleOf(category) }), isApplied: false })
  return settle(talk, { note: 'it has its label again', code: 'labelled' })
}

/** Taken away by the user; what they have put there instead, and is no word of theirs, goes with it. */
async function unlabelled(talk: Conversation, roles: ReadonlySet<LabelRole>): Promise<Outcome> {
  const { record } = talk
  const why = `You took the label ${labelTitle(record.label!)} away.`
  const event = { what: 'unlabelled', why, by: 'user' as const, canUndo: true }
  // No draft is made for what the user has taken off the list, unless they ask for one at the same time.
  const isOff = (record.status === 'pending' || record.status === 'discarded') && !roles.has('rework')
  const next: ThreadRecord = {
    ...record,
    label: null,
    labelWas: null,
    status: isOff ? 'skipped' : record.status,
    order: roles.has('rework') ? record.order : null,
  }
  if (rolesAre(roles, next)) return talk.end(next, { event, note: why, code: 'unlabelled' })
  await talk.commit({ ...next, isApplied: false }, { event })
  return settle(talk, { note: why, code: 'unlabelled' })
}

/** Sent, discarded or edited: commits what became of our drafts, and of the conversation with them. */
async function followDrafts(talk: Conversation, messages: readonly VisibleMessage[]): Promise<void> {
  const changed: DraftRow[] = []
  const back: FoundDraft[] = []
  const there = new Set<string>()
  let isReturn = false
  for (const draft of await talk.openDrafts()) {
    // Of one that is only noted nobody knows yet whether it was made: its own job will tell.
    if (draft.state === 'intended') {
      there.add(draft.key)
      continue
    }
    const found = await talk.find(draft)
    if (!found) changed.push({ ...draft, state: 'gone' })
    else {
      there.add(draft.key)
      isReturn ||= draft.state === 'gone'
      const isKnown = draft.state === 'edited' || found.isSame
      if (!isKnown || found.message.id !== draft.messageId) {
        changed.push(await talk.takenOver(found))
      } else if (draft.state === 'gone') back.push(found)
    }
  }
  changed.push(...(await onlyOne(talk, back, there)))
  if (isReturn) await talk.trashReplaced()
  const { record } = talk
  const answered = messages.find(({ id }) => id === record.answered) ?? lastInbound(messages, record.account)
  const isSent = answered !== undefined && isAnswered(messages, answered)
  const wasOpen = record.status === 'drafted' || record.status === 'discarded'
  const isOver = wasOpen && there.size === 0
  const kept = changed.find(({ state }) => state === 'live' || state === 'edited')
  const isBack = record.status === 'discarded' && kept !== undefined && !isSent
  if (changed.length === 0 && !(isOver && (isSent || record.status === 'drafted'))) return
  const gone = isSent ? ('sent' as const) : ('gone' as const)
  const rows = changed.map((draft) => (draft.state === 'gone' ? { ...draft, state: gone } : draft))
  const next = isOver ? ended(talk, { messages, isSent }) : isBack ? restored(talk, kept.key) : undefined
  const event = next?.event ?? (kept && (kept.state === 'edited' ? EDITED : BACK))
  await talk.commit(next?.record ?? record, {
    effects: async (tx) => {
      for (const draft of rows) await putDraft(tx, draft)
    },
    ...(event && { event }),
  })
}

/** Of drafts of ours that are back, as we wrote them: the others go, where one has taken their place meanwhile. */
async function onlyOne(
  talk: Conversation,
  back: readonly FoundDraft[],
  there: ReadonlySet<string>,
): Promise<DraftRow[]> {
  const { draftKey } = talk.record
  const kept = there.has(draftKey ?? '') ? draftKey : back.at(-1)?.draft.key
  const rows: DraftRow[] = []
  for (const found of back) {
    const isLeft = found.draft.key === kept || (await talk.trash(found)) !== undefined
    rows.push({ ...found.draft, state: isLeft ? 'live' : 'trashed' })
  }
  return rows
}

const EDITED = {
  what: 'draft-edited',
  why: 'You have edited the draft: it is yours from now on.',
  by: 'user' as const,
}
const BACK = { what: 'draft-back', why: 'The draft that was thrown away is back.', by: 'user' as const }

function restored(talk: Conversation, draftKey: string) {
  const isThird = labelOf(talk.record) === 'action_required'
  const label = isThird ? ('action_required' as const) : ('outbox' as const)
  return { record: talk.changed({ status: 'drafted', label, draftKey }), event: BACK }
}

function labelOf(record: ThreadRecord): LabelRole | null {
  return record.label ?? unseenLabel(record)
}

function ended(talk: Conversation, about: { messages: readonly VisibleMessage[]; isSent: boolean }) {
  const { record } = talk
  const label = labelOf(record)
  if (about.isSent) {
    return {
      record: talk.changed({
        status: 'sent',
        label: label === 'done' ? 'done' : null,
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
      label: label === 'action_required' ? label : 'needs_response',
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
