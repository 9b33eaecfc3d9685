/**
 * The user put Needs Response on a conversation: an answer is wanted. A draft of theirs in it holds notes: what stands
 * above the mark, or all of it. Then as any draft; the notes are theirs, and stay.
 */
import type { Outcome } from '../../engine/index.ts'
import type { VisibleMessage } from './contract.ts'
import { Conversation, isLiveDraft, keyOf, type ThreadJob } from './conversation.ts'
import type { AssistKinds } from './kinds.ts'
import { learnFrom, taughtBy } from './learning.ts'
import { lastInbound, oursOf, rolesOn } from './plan.ts'
import { splitAtMarker } from './reply.ts'
import { settle } from './settle.ts'
import type { DraftOrder } from './store/records.ts'

export async function runManualDraft(kinds: AssistKinds, job: ThreadJob): Promise<Outcome> {
  const talk = await Conversation.open(kinds, job)
  if (!talk) return { skip: 'nothing is known of the conversation', code: 'unknown' }
  const messages = await talk.read()
  if (!messages) return talk.gone()
  const { record } = talk
  const isSet = rolesOn(messages, talk.account.labels).has('needs_response')
  if (!isSet || oursOf(record).has('needs_response')) {
    const told = { note: 'nothing was asked for', code: 'nothing-new' }
    // Of what is seen only a draft has it, where a scan would find it again and again.
    return !isSet && talk.isFoundBy('needs_response') ? settle(talk, told) : told
  }
  const drafts = await talk.openDrafts()
  if (record.status === 'drafted' && drafts.length > 0) {
    return settle(talk, { note: 'a draft is there already', code: 'drafted' })
  }
  const answered = lastInbound(messages, record.account)
  const order = notesIn(talk, messages, new Set(drafts.map(({ key }) => key)))
  const why =
    order.instruction === '' ? 'You asked for an answer.' : 'You asked for an answer, and left notes for it.'
  const next = talk.changed({
    ...(answered && {
      subject: answered.subject,
      sender: answered.from.address,
      answered: answered.id,
      lastAtMs: answered.sentAtMs,
    }),
    category: 'needs_response',
    status: 'pending',
    label: 'needs_response',
    by: 'user',
    confidence: 1,
    reasoning: why,
    draftKey: null,
    order,
    problem: null,
    problemCode: null,
    classifiedAtMs: record.classifiedAtMs ?? talk.nowMs,
  })
  const category = 'needs_response'
  const wasSorted = record.category !== null && record.category !== category
  const message = wasSorted ? answered : undefined
  await talk.commit(
    { ...next, isApplied: false },
    {
      effects: async (tx) => {
        await talk.settleRead(tx, why)
        if (message) await learnFrom(tx, { record, message, category, nowMs: talk.nowMs })
      },
      event: {
        what: 'asked',
        why,
        by: 'user',
        canUndo: true,
        taught: message && taughtBy(message, category),
      },
    },
  )
  return settle(talk, { note: why, code: 'asked' })
}

/** A draft of the user's own; one of ours is not notes. */
function notesIn(
  { nowMs }: Conversation,
  messages: readonly VisibleMessage[],
  ours: ReadonlySet<string>,
): DraftOrder {
  const notes = messages.findLast((message) => isLiveDraft(message) && !ours.has(keyOf(message) ?? ''))
  return {
    kind: 'manual',
    atMs: nowMs,
    instruction: notes ? (splitAtMarker(notes.text)?.above || notes.text).trim() : '',
    earlier: '',
    replaces: [],
  }
}
