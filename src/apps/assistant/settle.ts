/**
 * Brings Gmail in line with the record: the one label on the whole conversation, and, where no answer is needed any
 * more, no draft of ours that nobody has touched. The end of every job that changed the record; may be repeated.
 */
import { type JobRequest, type Outcome, request } from '../../engine/index.ts'
import type { Conversation } from './conversation.ts'
import { unseen } from './plan.ts'
import { isHeld, setDraftState, type ThreadRecord } from './store/records.ts'

export async function settle(
  talk: Conversation,
  also: { note?: string; code?: string; jobs?: readonly JobRequest[] } = {},
): Promise<Outcome> {
  const { record } = talk
  if (record.category === null) return talk.end({ ...record, isForced: false }, also)
  const keepsDrafts = record.category === 'needs_response' || record.status === 'agent'
  const { trashed } = keepsDrafts ? { trashed: [] } : await talk.trashUntouched()
  if (!(await talk.applyLabel())) return talk.gone()
  const hasLost = trashed.some(({ key }) => key === record.draftKey)
  const done: ThreadRecord = {
    ...record,
    isApplied: true,
    labelWas: null,
    ...(hasLost && { draftKey: null }),
  }
  // What is set in the trash is for who takes it out again; until then no scan finds it there.
  return talk.end(talk.isFindable ? done : unseen(done), {
    ...also,
    effects: async (tx) => {
      for (const { account, key } of trashed) await setDraftState(tx, { account, key }, 'trashed')
    },
    jobs: [...draftJobs(talk, done), ...(also.jobs ?? [])],
  })
}

/** A draft, where one is wanted, and no yes is waited for. */
export function draftJobs({ kinds }: Pick<Conversation, 'kinds'>, record: ThreadRecord): JobRequest[] {
  const { account, thread, category, status } = record
  const isWanted = category === 'needs_response' && status === 'pending' && !isHeld(record)
  return isWanted ? [request(kinds.draft, { account, thread })] : []
}
