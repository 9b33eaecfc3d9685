/**
 * The Rework label: what stands above the mark in the draft is what the user wants changed. The order is noted and the
 * draft job carries it out; the label stays on the conversation until the new draft is there. At most REWORKS_MAX times:
 * the last one goes to Action Required with a warning, and what is asked for beyond it is refused.
 */
import type { Outcome } from '../../engine/index.ts'
import { MARKER, REWORKS_MAX, type VisibleMessage } from './contract.ts'
import { Conversation, isLiveDraft, type ThreadJob } from './conversation.ts'
import type { AssistKinds } from './kinds.ts'
import { rolesOn } from './plan.ts'
import { splitAtMarker } from './reply.ts'
import { draftJobs, settle } from './settle.ts'
import type { DraftOrder, ThreadRecord } from './store/records.ts'

export async function runRework(kinds: AssistKinds, job: ThreadJob): Promise<Outcome> {
  const talk = await Conversation.open(kinds, job)
  if (!talk) return { skip: 'nothing is known of the conversation', code: 'unknown' }
  const messages = await talk.read()
  if (!messages) return talk.gone()
  const { record } = talk
  if (record.order !== null) {
    return talk.end(record, { jobs: draftJobs(talk, record), note: 'is under way', code: 'under-way' })
  }
  if (!rolesOn(messages, talk.account.labels).has('rework')) {
    const told = { note: 'the label is gone', code: 'nothing-new' }
    // Of what is seen only a draft has it, where a scan would find it again and again.
    return talk.isFoundBy('rework') ? settle(talk, told) : told
  }
  const order = await orderFrom(talk, messages)
  if (record.reworks >= REWORKS_MAX) return refused(talk)
  return ordered(talk, order)
}

/** Notes the order; also for who asks on a page. */
export function reworked(record: ThreadRecord, order: DraftOrder, nowMs: number): ThreadRecord {
  return {
    ...record,
    category: 'needs_response',
    status: 'pending',
    reworks: record.reworks + 1,
    order,
    problem: null,
    problemCode: null,
    classifiedAtMs: record.classifiedAtMs ?? nowMs,
  }
}

function ordered(talk: Conversation, order: DraftOrder): Outcome {
  const next = reworked(talk.record, order, talk.nowMs)
  const left = REWORKS_MAX - next.reworks
  const why =
    left === 0
      ? `You asked for another draft, for the last time: it can be reworked ${REWORKS_MAX} times.`
      : `You asked for another draft${order.instruction === '' ? '' : `: ${order.instruction.slice(0, 200)}`}.`
  return talk.end(next, {
    effects: (tx) => talk.settleRead(tx, 'you asked for a draft'),
    event: { what: 'rework', why, by: 'user' },
    jobs: draftJobs(talk, next),
    note: why,
    code: 'ordered',
  })
}

async function refused(talk: Conversation): Promise<Outcome> {
  await talk.commit(
    { ...talk.changed({ label: 'action_required' }), isApplied: false },
    {
      event: {
        what: 'rework-refused',
        why: `It was reworked ${REWORKS_MAX} times already: please finish the draft yourself.`,
      },
    },
  )
  return settle(talk, { note: 'reworked too often', code: 'rework-refused' })
}

/**
 * What the user wrote above the mark, and what stood below it, of our draft or of any other in the conversation. Only
 * ours is replaced.
 */
export async function orderFrom(
  talk: Conversation,
  messages: readonly VisibleMessage[],
): Promise<DraftOrder> {
  const drafts = messages.filter(isLiveDraft)
  const ours = await Promise.all((await talk.openDrafts()).map((draft) => talk.find(draft)))
  const own = ours.findLast((found) => found !== undefined)?.message
  const mine = own ?? drafts.at(-1)
  const split = mine && splitAtMarker(mine.text)
  return {
    kind: 'rework',
    atMs: talk.nowMs,
    instruction: split?.above ?? '',
    earlier: (split?.below ?? mine?.text ?? '').replaceAll(MARKER, ''),
    replaces: own ? [own.id] : [],
  }
}
