/**
 * A conversation that a routing rule gives to an agent. The run and its steps are on record (agent/store.ts); what it
 * does to the conversation goes through `hands`, under the same rules as everything else: the record first, a draft
 * noted before it is made, and what the user has edited left alone.
 */
import { asTidemarkError } from '../../base/errors.ts'
import { type Outcome, request } from '../../engine/index.ts'
import { runKey } from './agent/open.ts'
import { routeMessage, routingRules } from './agent/router.ts'
import type { ThreadHands } from './agent/tools/thread-at-hand.ts'
import { CATEGORIES, type VisibleMessage } from './contract.ts'
import { Conversation, type ThreadJob } from './conversation.ts'
import { draftHashOf, putIntoGmail } from './draft.ts'
import type { AssistKinds } from './kinds.ts'
import { lastInbound } from './plan.ts'
import { sendOnce } from './sending.ts'
import { settle } from './settle.ts'
import { type DraftRow, putDraft, setDraftState, type ThreadRecord } from './store/records.ts'
import { visibleMessage } from './text/visible.ts'

const MODEL_RETRY_MS = 30_000

export async function runAgentJob(kinds: AssistKinds, job: ThreadJob): Promise<Outcome> {
  const talk = await Conversation.open(kinds, job)
  if (!talk) return { skip: 'nothing is known of the conversation', code: 'unknown' }
  if (talk.record.status !== 'agent') return { note: 'no agent is wanted any more', code: 'not-wanted' }
  const thread = await talk.read()
  if (!thread) return talk.gone()
  const message = lastInbound(thread, talk.record.account)
  if (!message)
    return talk.end({ ...talk.record, status: 'skipped' }, { note: 'nobody wrote', code: 'nobody' })
  const routed = routeMessage(message, routingRules.parse(talk.account.settings.routing))
  if (routed.route !== 'agent') return backToSorting(talk)
  try {
    return await withAgent(talk, { thread, message, ...routed })
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    const isWaiting =
      error.code === 'model-down' || (error.code === 'model-budget' && error.kind !== 'permanent')
    if (!isWaiting || talk.signal.aborted) throw thrown
    return {
      again: { afterMs: Math.max(MODEL_RETRY_MS, error.retryAfterMs ?? 0) },
      note: `waits for the model: ${error.message}`,
      code: 'waits-for-model',
    }
  }
}

/** The rule is gone: it is mail like any other. */
function backToSorting(talk: Conversation): Outcome {
  const { account, thread } = talk.record
  return talk.end(
    { ...talk.record, isForced: true },
    {
      jobs: [request(talk.kinds.classify, { account, thread })],
      note: 'no rule fits any more',
      code: 'rerouted',
    },
  )
}

async function withAgent(
  talk: Conversation,
  about: { thread: readonly VisibleMessage[]; message: VisibleMessage; profile: string; rule: string },
): Promise<Outcome> {
  const { kinds, account, job, signal } = talk
  const result = await kinds.agents.run({
    key: runKey({ account: account.name, message: about.message.id, job: job.id }),
    account: account.name,
    owner: account.owner,
    profiles: account.settings.profiles,
    ...about,
    reader: () => kinds.accounts.reader(account.name),
    readThread: async (id, stop) => {
      const found = await account.client.thread(id, { signal: stop }).catch((thrown: unknown) => {
        if (asTidemarkError(thrown).code === 'not-found') return undefined
        throw thrown
      })
      return found?.messages.map(visibleMessage)
    },
    hands: handsOf(talk),
    commit: (effects) => job.commit({ effects }),
    signal,
  })
  const { record } = talk
  // One that another job has only noted, and did not make, is none.
  const drafts = (await talk.openDrafts()).filter(({ state }) => state !== 'intended')
  const draft = drafts.find(({ key }) => key === record.draftKey) ?? drafts.at(-1)
  const failed = result.status !== 'completed'
  const why = `The agent ${about.profile}: ${result.text || result.status}`.slice(0, 500)
  const isWithout = draft === undefined && record.label === 'outbox'
  const instead = failed ? 'action_required' : isWithout ? 'needs_response' : undefined
  const next = instead ? talk.changed({ label: instead }) : record
  const label = CATEGORIES.find((category) => category === next.label)
  const ended: Partial<ThreadRecord> = {
    status: draft ? 'drafted' : 'skipped',
    category: draft ? 'needs_response' : (label ?? record.category),
    draftKey: draft?.key ?? null,
    reasoning: why,
    isForced: false,
  }
  await talk.commit(
    { ...next, ...ended },
    { event: { what: failed ? 'agent-failed' : 'agent-done', why, canUndo: false } },
  )
  return settle(talk, { note: why, code: result.status.replaceAll('_', '-') })
}

function handsOf(talk: Conversation): ThreadHands {
  return {
    async applyLabel(role, { why }) {
      if (talk.record.label === role && talk.record.isApplied) return
      await talk.commit(talk.changed({ label: role }), { event: { what: 'agent-label', why, canUndo: true } })
      await talk.applyLabel()
      await talk.commit({ ...talk.record, isApplied: true, labelWas: null })
    },
    async putDraft({ key, mime, text, answered }) {
      await talk.read()
      const { account, thread } = talk.record
      const open = await talk.openDrafts()
      for (const draft of open) {
        const found = draft.key === key ? undefined : await talk.find(draft)
        if (found && !found.isSame) {
          return { outcome: 'refused', why: 'The owner has edited a draft in this conversation.' }
        }
      }
      const noted = open.find((draft) => draft.key === key)
      if (noted && noted.state !== 'intended') return { outcome: 'adopted' }
      const draft: DraftRow = noted ?? {
        account,
        key,
        thread,
        state: 'intended',
        textHash: draftHashOf(text),
        draftId: null,
        messageId: null,
        answered,
        text,
        madeAtMs: talk.nowMs,
        beside: await talk.beside(),
        isGuessed: false,
      }
      await talk.commit(talk.changed({ draftKey: key, label: 'outbox' }), {
        effects: (tx) => putDraft(tx, draft),
      })
      const { made, isAdopted } = await putIntoGmail(talk, {
        draft,
        isNoted: noted !== undefined,
        raw: mime,
      })
      const { trashed } = await talk.trashUntouched(key)
      await talk.applyLabel()
      await talk.commit(
        { ...talk.record, isApplied: true, labelWas: null },
        {
          effects: async (tx) => {
            for (const one of trashed) await setDraftState(tx, one, 'trashed')
            await putDraft(tx, made)
          },
          event: { what: 'draft-created', why: 'An agent wrote it.' },
        },
      )
      return { outcome: isAdopted ? 'adopted' : 'made' }
    },
    send: (mail) => sendOnce(talk, mail),
  }
}
