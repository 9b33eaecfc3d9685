/**
 * A sent mail that asks for something and gets no answer within some working days comes back: as Waiting, in the inbox,
 * with a reminder among its events. An answer that comes before that is sorted as all mail, and ends it.
 */
import { asTidemarkError } from '../../base/errors.ts'
import { type Outcome, type RunContext, request } from '../../engine/index.ts'
import type { VisibleMessage } from './contract.ts'
import type { Conversation } from './conversation.ts'
import type { AccountPayload, AssistKinds } from './kinds.ts'
import { afterWorkingDays, asksForSomething, isInbound, relabelled } from './plan.ts'
import { addEvent, undoOf, writeRecord } from './store/records.ts'
import { visibleMessage } from './text/visible.ts'

const DUE_MAX = 200

/** When the user's last mail in it is overdue, if it asks for something; null where nothing is awaited. */
export function followUpFor(
  { account, kinds }: Pick<Conversation, 'account' | 'kinds'>,
  messages: readonly VisibleMessage[],
): number | null {
  const days = account.settings.followUpDays ?? kinds.settings.followUpDays
  const last = messages.findLast(({ isDraft, labelIds }) => !isDraft && !labelIds.includes('TRASH'))
  if (days === 0 || !last?.isSent || !asksForSomething(last.newText)) return null
  return afterWorkingDays(last.sentAtMs, days)
}

export async function runFollowUp(kinds: AssistKinds, job: RunContext<AccountPayload>): Promise<Outcome> {
  const { account: name } = job.payload
  const account = await kinds.accounts.get(name)
  const nowMs = kinds.clock.now()
  const due = await kinds.tables.followUps(name, nowMs, DUE_MAX)
  let reminded = 0
  for (const record of due) {
    const thread = await account.client
      .thread(record.thread, { signal: job.signal })
      .catch((thrown: unknown) => {
        if (asTidemarkError(thrown).code === 'not-found') return undefined
        throw thrown
      })
    const messages = (thread?.messages ?? []).map(visibleMessage)
    const last = messages.findLast(({ isDraft, labelIds }) => !isDraft && !labelIds.includes('TRASH'))
    const isAwaited = last?.isSent === true && !isInbound(last, name)
    const why = `No answer came to what you wrote on ${new Date(last?.sentAtMs ?? 0).toISOString().slice(0, 10)}.`
    // Before the commit, after which nobody would do it again.
    if (isAwaited) {
      await account.client.modifyThread({ threadId: record.thread, add: ['INBOX'] }, { signal: job.signal })
    }
    await job.commit({
      effects: async (tx) => {
        await writeRecord(
          tx,
          isAwaited
            ? {
                ...relabelled(record, 'waiting'),
                category: 'waiting',
                by: 'default',
                confidence: 1,
                reasoning: why,
                status: 'skipped',
                followUpAtMs: null,
                classifiedAtMs: record.classifiedAtMs ?? nowMs,
              }
            : { ...record, followUpAtMs: null },
          nowMs,
        )
        if (!isAwaited) return
        const { account: of, thread: id } = record
        const undo = record.category === null ? undefined : undoOf(record)
        await addEvent(tx, {
          account: of,
          thread: id,
          atMs: nowMs,
          what: 'follow-up',
          why,
          by: 'assistant',
          undo,
        })
      },
      jobs: isAwaited ? [request(kinds.cleanup, { account: name, thread: record.thread })] : [],
    })
    if (isAwaited) reminded += 1
  }
  return { note: `${reminded} reminders`, code: 'reminded' }
}
