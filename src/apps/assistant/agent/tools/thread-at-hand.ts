/**
 * Tools that change something: all of them in the conversation that the run is about, and in no other. None takes a
 * recipient, a subject or a conversation, because none of these is the model's to choose; what sends is in send.ts.
 */
import { z } from 'zod'
import type { Clock } from '../../../../base/clock.ts'
import type { LabelRole, Mailbox, VisibleMessage } from '../../contract.ts'
import { ACTION_ARGUMENTS } from '../../guard/actions.ts'
import type { guardDraft } from '../../guard/draft.ts'
import type { replyMime } from '../../reply.ts'
import type { AgentProfile } from '../profiles.ts'
import { noteEscalation } from '../store.ts'
import { type AgentTool, defineTool, ToolRefusal } from '../tool.ts'
import type { SendHands } from './send.ts'

const TIMEOUT_MS = 120_000

/** What the account's mailbox does for a run; each can be called again with the same key, and is done once. */
export type ThreadHands = {
  /**
   * Into the conversation at hand: a draft with this key is adopted, and made where there is none. A draft that the user
   * has edited is never replaced.
   */
  putDraft(
    draft: { key: string; mime: Uint8Array; text: string; answered: string },
    signal: AbortSignal,
  ): Promise<{ outcome: 'made' | 'adopted' } | { outcome: 'refused'; why: string }>
  /** The label of the assistant with this role, on the conversation at hand. */
  applyLabel(role: LabelRole, call: { key: string; why: string }, signal: AbortSignal): Promise<void>
} & SendHands

export type DraftParts = {
  hands: Pick<ThreadHands, 'putDraft'>
  guard: typeof guardDraft
  reply: typeof replyMime
  thread: readonly VisibleMessage[]
  answered: VisibleMessage
  owner: Mailbox
  clock: Clock
}

export function createDraft(parts: DraftParts): AgentTool {
  const { hands, guard, reply, thread, answered, owner, clock } = parts
  return defineTool('create_draft', {
    description:
      'Puts a draft of an answer into this conversation, for the owner to look at and send. Plain text, without ' +
      'greeting lines that the owner would not write. What you do not know is written as [TODO: what is missing].',
    input: ACTION_ARGUMENTS.create_draft,
    effect: 'keyed',
    isOncePerRun: true,
    timeoutMs: TIMEOUT_MS,
    run: async ({ text }, { key, context, signal }) => {
      const guarded = guard(text, { thread, answered, context, owner })
      if (guarded.text.trim() === '') {
        throw new ToolRefusal('draft-empty', 'Nothing is left of the draft that may stand in it.')
      }
      const mime = reply({ answered, owner, text: guarded.text, key, nowMs: clock.now() })
      const put = await hands.putDraft({ key, mime, text: guarded.text, answered: answered.id }, signal)
      if (put.outcome === 'refused') throw new ToolRefusal('draft-refused', put.why)
      const removed = guarded.removed.map(({ code }) => code)
      const note = removed.length === 0 ? '' : ` Left out of it: ${[...new Set(removed)].join(', ')}.`
      return { text: `The draft is in the conversation.${note}` }
    },
  })
}

export type LabelParts = { hands: Pick<ThreadHands, 'applyLabel'>; profile: Pick<AgentProfile, 'labels'> }

export function applyLabel({ hands, profile }: LabelParts): AgentTool {
  return defineTool('apply_label', {
    description: 'Says what this conversation is, by a label of the assistant.',
    input: z.strictObject({ label: z.enum(profile.labels) }),
    effect: 'keyed',
    timeoutMs: TIMEOUT_MS,
    run: async ({ label }, { key, signal }) => {
      await hands.applyLabel(label, { key, why: 'an agent applied it' }, signal)
      return { text: `The conversation has the label ${label}.` }
    },
  })
}

export function escalate({ hands }: { hands: Pick<ThreadHands, 'applyLabel'> }): AgentTool {
  return defineTool('escalate', {
    description: 'Asks the owner to look at this conversation themself.',
    input: ACTION_ARGUMENTS.escalate,
    effect: 'keyed',
    isOncePerRun: true,
    timeoutMs: TIMEOUT_MS,
    run: async ({ reason }, { run, key, signal }) => {
      await hands.applyLabel('action_required', { key, why: reason }, signal)
      return { text: 'The owner is asked to look at it.', effects: noteEscalation(run, reason) }
    },
  })
}
