/**
 * Sends mail: only of a profile that names to whom, and only to them. The address of the model must be one of these to
 * the last character (guard/actions.ts); the one that is written into the mail is the profile's own. There is no other
 * recipient, no attachment, and no subject of the model.
 *
 * Nobody looks at it before it goes: what a draft would have been rid of (guard/draft.ts) refuses it whole, and mail of
 * a program is not answered by a program.
 */
import { oneLine } from '../../../../app/plain-text.ts'
import { TidemarkError } from '../../../../base/errors.ts'
import type { ContextPassage, Mailbox, VisibleMessage } from '../../contract.ts'
import { ACTION_ARGUMENTS } from '../../guard/actions.ts'
import type { DraftFacts, guardDraft } from '../../guard/draft.ts'
import { replySubject } from '../../reply.ts'
import { type AgentTool, defineTool, ToolRefusal } from '../tool.ts'

const TIMEOUT_MS = 120_000
const SUBJECT_CHARS_MAX = 200
const SUBJECT_PLAIN = 'A message for you'

export type SentMail = {
  /** Of the call. */
  key: string
  run: number
  /** The message that the run is about, whether this answers it or not. */
  about: string
  to: string
  subject: string
  text: string
  /** What it answers, where it goes to whom the conversation is with; otherwise it is a conversation of its own. */
  answered: VisibleMessage | undefined
}

/**
 * `kept`: the user has taken it over as a draft. `lost`: its draft is gone, and it is not found among what was sent.
 * `again`: the run has sent already, or tried to; or another one has, to the same recipient for the same message.
 */
export type SendOutcome = 'sent' | 'kept' | 'lost' | 'too-many' | 'again'

export type SendHands = { send(mail: SentMail, signal: AbortSignal): Promise<SendOutcome> }

export type SendParts = {
  hands: SendHands
  guard: typeof guardDraft
  /** Exact addresses, in small letters. */
  sendTo: readonly string[]
  thread: readonly VisibleMessage[]
  answered: VisibleMessage
  owner: Mailbox
  isAutomated: boolean
}

export function sendMail(parts: SendParts): AgentTool {
  const { hands, sendTo } = parts
  return defineTool('send', {
    description: `Sends a mail in the name of the owner, at once, to one of: ${sendTo.join(', ')}. Plain text. Once in a run.`,
    input: ACTION_ARGUMENTS.send,
    effect: 'keyed',
    isOncePerRun: true,
    timeoutMs: TIMEOUT_MS,
    run: async ({ to, text }, { key, run, context, signal }) => {
      const outcome = await hands.send(mailOf(parts, { to, text, key, run, context }), signal)
      if (outcome !== 'sent') throw new ToolRefusal(`send-${outcome}`, WHY[outcome])
      return { text: `It was sent to ${to}.` }
    },
  })
}

/** Pure; throws a ToolRefusal where it must not go. */
export function mailOf(
  parts: Omit<SendParts, 'hands'>,
  wanted: Pick<SentMail, 'to' | 'text' | 'key' | 'run'> & { context: readonly ContextPassage[] },
): SentMail {
  const { guard, sendTo, answered, isAutomated } = parts
  const { to, key, run, context } = wanted
  if (!sendTo.includes(to)) throw new TidemarkError(`${to} was let through.`, { kind: 'bug' })
  if (isAutomated) throw new ToolRefusal('automated', 'A program sent this mail: nothing is sent for it.')
  // By who wrote it, not by Reply-To: with that a stranger could name somebody of ours.
  const isAnswer = answered.from.address.toLowerCase() === to
  const facts = factsFor(parts, { to, isAnswer, context })
  const { text, removed } = guard(wanted.text, facts)
  if (removed.length > 0) {
    const codes = [...new Set(removed.map(({ code }) => code))].join(', ')
    throw new ToolRefusal('send-filtered', `It was not sent: it has what may not stand in it: ${codes}.`)
  }
  if (/\[TODO\b/i.test(text) || text.trim() === '') {
    throw new ToolRefusal('send-unfinished', 'It was not sent: it is not finished.')
  }
  return {
    key,
    run,
    about: answered.id,
    to,
    // Who wrote the mail chose its subject: nobody else is told it in the owner's name.
    subject: isAnswer ? oneLine(replySubject(answered.subject), SUBJECT_CHARS_MAX) : SUBJECT_PLAIN,
    text,
    answered: isAnswer ? answered : undefined,
  }
}

const WHY: Readonly<Record<Exclude<SendOutcome, 'sent'>, string>> = {
  kept: 'It was not sent: the owner has taken it over as a draft.',
  lost: 'Its draft is gone, and it is not among what was sent: it is not sent again.',
  again: 'It was not sent: mail was sent for this already, or tried to be; there is no second one.',
  'too-many': 'It was not sent: agents of this mailbox have sent enough for a day.',
}

/**
 * Somebody who has not written in the conversation is told no links and numbers but the owner's and their own: those of
 * a stranger would come from the owner then. What was searched for and read does not count, because the stranger's mail
 * is found there, too.
 */
function factsFor(
  { thread, answered, owner }: Omit<SendParts, 'hands'>,
  { to, isAnswer, context }: { to: string; isAnswer: boolean; context: readonly ContextPassage[] },
): DraftFacts {
  if (isAnswer) return { thread, answered, owner, context }
  const nobody = { name: '', address: to }
  return {
    thread: thread.filter(({ id }) => id !== answered.id),
    answered: { ...answered, from: nobody, replyTo: [], to: [], cc: [], subject: '', text: '', newText: '' },
    owner,
    context: [],
  }
}
