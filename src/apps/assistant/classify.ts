/**
 * Sorts one conversation: the last message of somebody else decides.
 *
 *   news? ─no─▶ done
 *     │ yes
 *   route ─agent─▶ record `agent` ─▶ assist.agent
 *     │ pipeline
 *   the user's rules ─▶ headers and senders ─▶ model ─▶ (down for too long, or none) local classifier
 *     │
 *   record, label wanted, event │ label in Gmail │ applied; needs_response: assist.draft
 *
 * Whatever says so, automated mail never needs a response. An answer that cannot be used is none: such mail counts as
 * needing a response, with little confidence, so that a person looks at it.
 */
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import { type Outcome, request } from '../../engine/index.ts'
import { routeMessage, routingRules } from './agent/router.ts'
import type { Category, Classification, VisibleMessage } from './contract.ts'
import { Conversation, type FoundDraft, type ThreadJob } from './conversation.ts'
import type { AssistKinds } from './kinds.ts'
import { matchingRule } from './learning.ts'
import { isPutAway, lastInbound, roleOf } from './plan.ts'
import { classificationOf, classificationSchema, classifyPrompt } from './prompts.ts'
import { judgeSender } from './rules.ts'
import { settle } from './settle.ts'
import { noteMail, noteProblem } from './store/accounts.ts'
import { forgetMessages, putDraft, settleMessages, type ThreadRecord } from './store/records.ts'
import { noteHit } from './store/rules.ts'
import { hiddenNote } from './text/hidden.ts'

/** The user may be at work on an answer. A draft that they left behind is no reason to leave new mail unsorted. */
const IN_WORK: ReadonlySet<ThreadRecord['status']> = new Set(['pending', 'drafted', 'discarded'])
/** Of an answer that could not be used. */
const UNUSABLE_CONFIDENCE = 0.1
/** How long sorting waits before it asks a model again that was down. */
const MODEL_RETRY_MS_MIN = 2_000
const MODEL_RETRY_MS_MAX = 60_000

export async function runClassify(kinds: AssistKinds, job: ThreadJob): Promise<Outcome> {
  const talk = await Conversation.open(kinds, job)
  if (!talk) return { skip: 'nothing is known of the conversation', code: 'unknown' }
  const { record } = talk
  const noted = await kinds.tables.waiting(record.account, record.thread)
  if (noted.length === 0 && !record.isForced) return settled(talk)
  // Gmail names a conversation after its first message: where that one is new, it is all there is.
  const isFirst = noted.length === 1 && noted[0] === record.thread && record.category === null
  const messages = isFirst ? await talk.readOne(record.thread) : await talk.read()
  if (!messages) return talk.gone()
  const waiting = await withoutOwn(talk, messages, noted)
  const last = lastInbound(messages, record.account)
  const message = record.isForced ? last : (newsIn(talk, messages, waiting) ?? last)
  const isNews = message !== undefined && (waiting.includes(message.id) || record.isForced)
  if (!isNews || !message) return nothingNew(talk, { message, waiting, messages })
  if (!record.isForced && record.category !== null && IN_WORK.has(record.status)) {
    const edited = await editedDraft(talk)
    if (edited) return keepEdited(talk, { edited, message, waiting })
  }
  const routed = routeMessage(message, routingRules.parse(talk.account.settings.routing))
  if (routed.route === 'agent') return toAgent(talk, { message, waiting, ...routed })
  const judged = await judge(talk, message)
  if ('wait' in judged) return judged.wait
  return decided(talk, { message, waiting, ...judged })
}

/** What came out of the trash with the mail that it answers, or was begun as an answer, never came to the inbox. */
async function withoutOwn(
  { job, record }: Conversation,
  messages: readonly VisibleMessage[],
  waiting: readonly string[],
): Promise<readonly string[]> {
  const isOwn = ({ isDraft, isSent, labelIds }: VisibleMessage): boolean =>
    isDraft || (isSent && !labelIds.includes('INBOX'))
  const own = messages.filter((one) => waiting.includes(one.id) && isOwn(one)).map(({ id }) => id)
  if (own.length === 0) return waiting
  await job.commit({ effects: (tx) => forgetMessages(tx, record.account, own) })
  return waiting.filter((id) => !own.includes(id))
}

/** The last message in the inbox that was not sorted yet, also where a later one never came to the inbox. */
function newsIn(
  { record }: Conversation,
  messages: readonly VisibleMessage[],
  waiting: readonly string[],
): VisibleMessage | undefined {
  const news = messages.filter(({ id }) => waiting.includes(id))
  const message = lastInbound(news, record.account)
  const isLate = message !== undefined && record.category !== null && message.sentAtMs <= record.lastAtMs
  return isLate ? undefined : message
}

/** Nothing is to be decided; what an earlier try has not brought to Gmail is. */
async function settled(talk: Conversation): Promise<Outcome> {
  const { isApplied, category } = talk.record
  if (isApplied || category === null) return { note: 'nothing new', code: 'nothing-new' }
  return settle(talk)
}

/** The news are not somebody else's, or an older message than the one that was sorted. */
async function nothingNew(
  talk: Conversation,
  about: {
    message: VisibleMessage | undefined
    waiting: readonly string[]
    messages: readonly VisibleMessage[]
  },
): Promise<Outcome> {
  const { record } = talk
  const shown = new Map(about.messages.map((message) => [message.id, message]))
  const gone = about.waiting.filter((id) => !shown.has(id))
  // Thrown away before it was sorted, and perhaps taken back.
  const isAway = (id: string): boolean => record.category === null && isPutAway(shown.get(id)!)
  const away = about.waiting.filter((id) => shown.has(id) && isAway(id))
  const there = about.waiting.filter((id) => shown.has(id) && !isAway(id))
  // An older message of somebody else that came late belongs to what was sorted already.
  const isKnown = record.category !== null && about.message !== undefined
  return talk.end(
    { ...record, isForced: false },
    {
      effects: async (tx) => {
        const nowMs = talk.nowMs
        await settleMessages(tx, record.account, gone, { state: 'gone', reason: 'it was deleted', nowMs })
        await forgetMessages(tx, record.account, away)
        await settleMessages(tx, record.account, there, {
          state: isKnown ? 'classified' : 'skipped',
          reason: isKnown ? 'sorted with the conversation' : 'written by you, or not in the inbox any more',
          nowMs,
        })
      },
      note: 'nothing of somebody else is new',
      code: 'nothing-new',
    },
  )
}

async function editedDraft(talk: Conversation): Promise<FoundDraft | undefined> {
  for (const draft of await talk.openDrafts()) {
    const found = await talk.find(draft)
    if (found && !found.isSame) return found
  }
  return undefined
}

/** The user is at work on the answer: it is theirs, and nothing of it changes. */
async function keepEdited(
  talk: Conversation,
  about: { edited: FoundDraft; message: VisibleMessage; waiting: readonly string[] },
): Promise<Outcome> {
  const { record } = talk
  const draft = await talk.takenOver(about.edited)
  return talk.end(
    { ...record, lastAtMs: about.message.sentAtMs },
    {
      effects: async (tx) => {
        await putDraft(tx, draft)
        await settleWaiting(talk, tx, { ...about, reason: 'your edited draft stays' })
      },
      event: {
        what: 'draft-kept',
        why: 'A new message came while you were editing the draft: your draft stays as it is.',
      },
    },
  )
}

async function toAgent(
  talk: Conversation,
  about: { message: VisibleMessage; waiting: readonly string[]; profile: string; rule: string },
): Promise<Outcome> {
  const { message, waiting, profile, rule } = about
  const { account, thread } = talk.record
  const next = talk.changed({
    ...seen(message),
    status: 'agent',
    category: 'fyi',
    confidence: 1,
    by: 'rule',
    reasoning: `The routing rule ${rule} gives it to the agent ${profile}.`,
    // Done was for what came before.
    label: talk.record.label === 'outbox' ? 'outbox' : null,
    isForced: false,
  })
  return talk.end(next, {
    effects: (tx) => settleWaiting(talk, tx, { message, waiting, reason: `given to the agent ${profile}` }),
    event: { what: 'routed', why: told(next.reasoning, hiddenNote(message)), canUndo: true },
    jobs: [request(talk.kinds.agent, { account, thread })],
  })
}

type Judged = { classification: Classification; ruleId?: number | undefined }

async function judge(talk: Conversation, message: VisibleMessage): Promise<Judged | { wait: Outcome }> {
  const { kinds, account } = talk
  const sender = judgeSender(message, { blacklist: account.settings.blacklist })
  const { isAutomated } = sender
  const rule = matchingRule(await kinds.tables.rules(account.name), message)
  if (rule) {
    const reasoning = `Your rule ${rule.note === '' ? `#${rule.id}` : `“${rule.note}”`} says so.`
    return {
      classification: held({ ...plain(rule.category, reasoning), by: 'rule', isAutomated }),
      ruleId: rule.id,
    }
  }
  if (sender.category !== undefined) {
    const reasoning = `By its headers and its sender: ${sender.reasons.join('; ')}.`
    return { classification: held({ ...plain(sender.category, reasoning), by: 'rule', isAutomated }) }
  }
  // The oldest first: of too many, the last words of the user count.
  const all = await kinds.tables.examples(account.name)
  const examples = all.filter(({ enabled }) => enabled).reverse()
  const asked = await askModel(talk, message, examples)
  if ('wait' in asked) return asked
  const said = asked.said ?? (await locally(talk, message, { examples, because: asked.because }))
  return { classification: held({ ...said, isAutomated }) }
}

function plain(category: Category, reasoning: string): Omit<Classification, 'by' | 'isAutomated'> {
  return { category, confidence: 1, reasoning, language: '', style: '' }
}

/** Two programs that answer each other do not stop. */
function held(said: Classification): Classification {
  if (!said.isAutomated || said.category !== 'needs_response') return said
  return {
    ...said,
    category: 'fyi',
    reasoning: `A program sent it, and programs get no answers. (Otherwise: ${said.reasoning})`,
  }
}

type Asked = { wait: Outcome } | { said: Omit<Classification, 'isAutomated'> | undefined; because: string }

async function askModel(
  talk: Conversation,
  message: VisibleMessage,
  examples: readonly { text: string; category: Category }[],
): Promise<Asked> {
  const { kinds, account, job } = talk
  const { system, prompt } = classifyPrompt({
    message,
    thread: talk.messages ?? [],
    owner: account.owner,
    styles: account.settings.styles,
    examples,
  })
  try {
    const answer = await kinds.models.ask({
      account: account.name,
      purpose: 'classify',
      threadId: message.threadId,
      system,
      messages: [{ role: 'user', content: prompt }],
      schema: classificationSchema,
      signal: talk.signal,
    })
    if (account.row.problemCode !== null)
      await job.commit({ effects: (tx) => noteProblem(tx, account.name, null) })
    const said = classificationOf(answer.value ?? answer.text)
    return { said: said ? { ...said, by: 'model' } : unusable(), because: '' }
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (talk.signal.aborted) throw thrown
    switch (error.code) {
      case 'model-unusable':
        return { said: unusable(), because: '' }
      case 'no-model':
      case 'model-refused':
        await noteRefused(talk, error)
        return { said: undefined, because: error.message }
      case 'model-down':
      case 'model-budget':
        await noteRefused(talk, error)
        return waitOrDecide(talk, error)
      default:
        throw thrown
    }
  }
}

async function noteRefused(talk: Conversation, error: TidemarkError): Promise<void> {
  const { account, job } = talk
  if (account.row.problemCode === error.code) return
  await job.commit({
    effects: (tx) => noteProblem(tx, account.name, { code: error.code!, text: error.message }),
  })
}

/** A model that is down or over its budget is not an answer: the job waits, but not for ever. */
function waitOrDecide(talk: Conversation, error: TidemarkError): Asked {
  const { job, kinds } = talk
  const sinceMs = Number((job.checkpoint as { sinceMs?: number } | null)?.sinceMs ?? talk.nowMs)
  const leftMs = sinceMs + kinds.settings.modelWaitMs - talk.nowMs
  if (leftMs <= 0) return { said: undefined, because: error.message }
  const backoffMs = Math.min(MODEL_RETRY_MS_MAX, Math.max(MODEL_RETRY_MS_MIN, talk.nowMs - sinceMs))
  const afterMs = Math.min(leftMs, Math.max(backoffMs, error.retryAfterMs ?? 0))
  return {
    wait: {
      again: { afterMs },
      checkpoint: { sinceMs },
      note: `waits for the model: ${error.message}`,
      code: 'waits-for-model',
    },
  }
}

function unusable(): Omit<Classification, 'isAutomated'> {
  return {
    ...plain('needs_response', 'The model gave no answer that could be used: have a look yourself.'),
    confidence: UNUSABLE_CONFIDENCE,
    by: 'default',
  }
}

async function locally(
  talk: Conversation,
  message: VisibleMessage,
  about: { examples: readonly { text: string; category: Category }[]; because: string },
): Promise<Omit<Classification, 'isAutomated'>> {
  const said = await talk.kinds.local.classify(message, about.examples, talk.signal)
  return { ...said, reasoning: `${said.reasoning} (${about.because})` }
}

async function decided(
  talk: Conversation,
  about: Judged & { message: VisibleMessage; waiting: readonly string[] },
): Promise<Outcome> {
  const { message, waiting, classification, ruleId } = about
  const { category, by, isAutomated, ...said } = classification
  const isResponse = category === 'needs_response'
  const next = talk.changed({
    ...seen(message),
    ...said,
    status: isResponse ? 'pending' : 'skipped',
    category,
    by,
    isAutomated,
    label: roleOf(category),
    isForced: false,
    reworks: 0,
    order: null,
    problem: null,
    problemCode: null,
    followUpAtMs: null,
    classifiedAtMs: talk.nowMs,
  })
  await talk.commit(next, {
    effects: async (tx) => {
      await settleWaiting(talk, tx, { message, waiting, reason: category })
      if (ruleId !== undefined) await noteHit(tx, ruleId)
    },
    event: {
      what: talk.record.category === null ? 'classified' : 'reclassified',
      // Newsletters hide the line that lists show of them: that is no news.
      why: told(classification.reasoning, isAutomated ? '' : hiddenNote(message)),
      canUndo: true,
    },
  })
  return settle(talk, { note: `${category}: ${by}`, code: 'classified' })
}

function told(why: string, note: string): string {
  return note === '' ? why : `${why} ${note}`
}

function seen(message: VisibleMessage): Pick<ThreadRecord, 'subject' | 'sender' | 'answered' | 'lastAtMs'> {
  return {
    subject: message.subject,
    sender: message.from.address,
    answered: message.id,
    lastAtMs: message.sentAtMs,
  }
}

async function settleWaiting(
  talk: Conversation,
  tx: Parameters<typeof settleMessages>[0],
  about: { message: VisibleMessage; waiting: readonly string[]; reason: string },
): Promise<void> {
  await talk.settleRead(tx, about.reason, about.waiting)
  await noteMail(tx, talk.record.account, about.message.sentAtMs)
}
