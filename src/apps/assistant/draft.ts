/**
 * Writes the draft of an answer, once.
 *
 *   pending? ─▶ conversation ─▶ answered by hand? sent · edited draft there? kept
 *     │
 *   key = (mailbox, conversation, message answered, reworks, what the user wants)
 *     │  a draft with that key is noted ─▶ its text is used again, no model is asked
 *   context ─▶ model ─▶ guard ─▶ commit: text, hash, key, label wanted
 *     │
 *   a draft with that key in Gmail? adopted : created ─▶ what it replaces to the trash ─▶ label ─▶ commit: drafted
 *
 * A crash anywhere between two of these leads to the same draft. What the user has edited is theirs: it is neither
 * overwritten nor trashed, but where a rework of our draft asks for it, and then only after the new one is there. A draft
 * that is not shown to be ours (by its key, our Message-ID, or an id that Gmail gave us), or that has attachments, always
 * stays.
 */
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import { type Outcome, request } from '../../engine/index.ts'
import { DEFAULT_STYLE } from './account.ts'
import { contextFor } from './context.ts'
import { type ContextPassage, REWORKS_MAX, type VisibleMessage } from './contract.ts'
import { Conversation, type FoundDraft, keyOf, type ThreadJob } from './conversation.ts'
import { guardDraft } from './guard/draft.ts'
import type { AssistKinds } from './kinds.ts'
import { draftKeyOf, isAnswered, lastInbound, styleFor, textHashOf } from './plan.ts'
import { draftPrompt, draftSchema, draftTextFrom } from './prompts.ts'
import { replyMime, replyText } from './reply.ts'
import { settle } from './settle.ts'
import { noteProblem, noteRefusal } from './store/accounts.ts'
import { type DraftRow, isHeld, putDraft, setDraftState, type ThreadRecord } from './store/records.ts'
import { visibleMessage } from './text/visible.ts'

/** How long a draft waits before it asks a model again. */
const MODEL_RETRY_MS_MIN = 5_000
const MODEL_RETRY_MS_MAX = 5 * 60_000
/** How long a draft waits after an answer that was of no use: a model that is at a loss is so for a while. */
const UNUSABLE_RETRY_MS = [2 * 60_000, 10 * 60_000, 60 * 60_000]

export async function runDraft(kinds: AssistKinds, job: ThreadJob): Promise<Outcome> {
  const talk = await Conversation.open(kinds, job)
  if (!talk) return { skip: 'nothing is known of the conversation', code: 'unknown' }
  const { record } = talk
  if (record.status !== 'pending' || record.category !== 'needs_response') {
    if (!record.isApplied || (await isLabelledLate(talk))) return settle(talk)
    return { note: 'no draft is wanted', code: 'not-wanted' }
  }
  const messages = await talk.read()
  if (!messages) return talk.gone()
  const answered = lastInbound(messages, record.account)
  if (!answered) return nobodyToAnswer(talk)
  if (isOver(record, messages, answered)) return answeredByHand(talk)
  const key = draftKeyOf({ ...record, answered: answered.id, wish: record.order })
  for (const draft of await talk.openDrafts()) {
    const found = await talk.find(draft)
    if (found && !found.isSame && !isGivenBack(record, found)) return keepEdited(talk, found)
    const isMade = draft.state === 'live' || draft.state === 'gone'
    const isWritten = record.order === null && draft.key === key && isMade
    if (found && isWritten) return keepWritten(talk, found)
  }
  const noted = await kinds.tables.draft(record.account, key)
  const isNoted = noted?.state === 'intended' && record.draftKey === key
  if (!isNoted && isOvertaken(talk)) {
    return { note: 'another draft has taken its place', code: 'not-wanted' }
  }
  if (!isNoted && isHeld(record)) return waitsForYes(talk)
  const written = isNoted ? noted : await write(talk, { answered, key })
  if ('outcome' in written) return written.outcome
  return make(talk, { answered, draft: written, isNoted })
}

/**
 * The label of an earlier try may have come to Gmail after whoever has decided otherwise. Other labels that are not on
 * record are the user's, of which a sync tells.
 */
async function isLabelledLate(talk: Conversation): Promise<boolean> {
  if (talk.job.attempt === 1 || talk.record.label === 'outbox') return false
  return (await talk.read()) !== undefined && talk.isFoundBy('outbox')
}

/**
 * Somebody has asked anew since the model gave nothing of use, or new mail has: a later try would pay for the same answer
 * again. One that waits itself for a model has a checkpoint.
 */
function isOvertaken({ record: { problemCode }, job }: Conversation): boolean {
  if (triesOf(job) === 0 || problemCode === UNUSABLE) return false
  return problemCode === null || job.checkpoint === null
}

/** Whatever has led here: it costs money, and the user was asked whether they want that. */
function waitsForYes(talk: Conversation): Outcome | Promise<Outcome> {
  const told = { note: 'waits until its cost is agreed to', code: 'held' }
  return talk.record.isApplied ? told : settle(talk, told)
}

/** The draft that a rework is about, as it was when it was asked for. What the user writes later is theirs again. */
function isGivenBack({ order }: ThreadRecord, { message }: FoundDraft): boolean {
  return order?.replaces.includes(message.id) ?? false
}

/** Answered by the user; what they ordered is over where they have answered since. */
function isOver(
  { order }: ThreadRecord,
  messages: readonly VisibleMessage[],
  answered: VisibleMessage,
): boolean {
  if (!isAnswered(messages, answered)) return false
  if (order === null) return true
  const isLater = ({ id, isSent, labelIds, sentAtMs }: VisibleMessage): boolean =>
    isSent && !labelIds.includes('TRASH') && (sentAtMs >= order.atMs || order.replaces.includes(id))
  return messages.some(isLater)
}

/** What the text of a draft becomes in Gmail, as it is read again. */
export function draftHashOf(text: string): string {
  const part = {
    mimeType: 'text/plain',
    fileName: '',
    headers: [],
    bytes: Buffer.from(replyText(text)),
    sizeBytes: 0,
  }
  const shown = visibleMessage({
    id: 'draft',
    threadId: 'draft',
    labelIds: ['DRAFT'],
    internalMs: 0,
    headers: [],
    parts: [part],
  })
  return textHashOf(shown.text)
}

/** Asks the model, and notes what is to be made; or says why the draft has to wait. */
async function write(
  talk: Conversation,
  { answered, key }: { answered: VisibleMessage; key: string },
): Promise<DraftRow | { outcome: Outcome }> {
  const { account, record, kinds } = talk
  const { order } = record
  const style = styleFor(answered.from.address, record.style, account.settings, DEFAULT_STYLE)
  // Before the model: a call that fails after it would cost its answer.
  const beside = await talk.beside()
  const context = await contextOnce(talk, answered)
  // A try of an earlier answer that is due while this one asks sees that it is overtaken.
  if (triesOf(talk.job) === 0 && record.problemCode === UNUSABLE) {
    await talk.commit({ ...record, problem: null, problemCode: null })
  }
  const thread = (talk.messages ?? []).filter((message) => !message.isDraft)
  const wish = {
    thread,
    answered,
    owner: account.owner,
    style,
    context,
    instruction: order?.instruction ?? '',
    earlier: order?.earlier ?? '',
  }
  const { system, prompt } = draftPrompt(wish)
  let said: string | undefined
  try {
    const answer = await kinds.models.ask({
      account: account.name,
      purpose: 'draft',
      threadId: record.thread,
      system,
      messages: [{ role: 'user', content: prompt }],
      schema: draftSchema,
      signal: talk.signal,
    })
    said = draftTextFrom(answer.value ?? answer.text)
  } catch (thrown) {
    if (talk.signal.aborted) throw thrown
    const found = { answered: answered.id, context }
    return { outcome: await withoutModel(talk, asTidemarkError(thrown), found) }
  }
  if (said === undefined) return { outcome: unusable(talk) }
  const { text, removed } = guardDraft(said, wish)
  const draft: DraftRow = {
    account: record.account,
    key,
    thread: record.thread,
    state: 'intended',
    textHash: draftHashOf(text),
    draftId: null,
    messageId: null,
    answered: answered.id,
    text,
    madeAtMs: talk.nowMs,
    beside,
    isGuessed: false,
  }
  const next = talk.changed({
    draftKey: key,
    answered: answered.id,
    label: labelFor(record),
    sources: context.map(({ title, source, documentId, url }) => ({ title, source, documentId, url })),
    removed,
    problem: null,
    problemCode: null,
  })
  await talk.commit(next, {
    effects: async (tx) => {
      await putDraft(tx, draft)
      if (account.row.problemCode !== null) await noteProblem(tx, account.name, null)
      if (account.row.refusedBy !== null) await noteRefusal(tx, account.name, null)
    },
  })
  return draft
}

/** The last rework that is possible goes to the user: more of them would not help. */
function labelFor({ reworks }: ThreadRecord): 'action_required' | 'outbox' {
  return reworks >= REWORKS_MAX ? 'action_required' : 'outbox'
}

/** What a draft that waits for a model keeps: what it leans on was paid for. */
type Waits = { sinceMs: number; found: { answered: string; context: ContextPassage[] } }

/** A draft that failed before asks no model for its context again: each try would cost, and lead to nothing. */
async function contextOnce(talk: Conversation, answered: VisibleMessage): Promise<ContextPassage[]> {
  const { found } = (talk.job.checkpoint ?? {}) as Partial<Waits>
  if (found?.answered === answered.id) return found.context
  return contextFor(talk, answered, { asksModel: talk.record.problemCode === null })
}

async function withoutModel(
  talk: Conversation,
  error: TidemarkError,
  found: Waits['found'],
): Promise<Outcome> {
  const { record, job, account } = talk
  if (!/^(?:no-model|model-)/.test(error.code ?? '')) throw error
  if (error.code === UNUSABLE) return unusable(talk)
  const isPassing =
    error.code === 'model-down' || (error.code === 'model-budget' && error.kind !== 'permanent')
  const problem = isPassing ? `The draft waits: ${error.message}` : `No draft: ${error.message}`
  const next = { ...record, problem, problemCode: error.code! }
  const refusedBy = isPassing ? undefined : await talk.kinds.models.fingerprint(account.name)
  const effects = async (tx: Parameters<typeof noteProblem>[0]): Promise<void> => {
    await noteProblem(tx, account.name, { code: error.code!, text: error.message })
    if (refusedBy !== undefined) await noteRefusal(tx, account.name, refusedBy)
  }
  if (!isPassing) return talk.end(next, { effects, note: problem, code: error.code! })
  if (record.problemCode !== error.code) await talk.commit(next, { effects })
  const sinceMs = Number((job.checkpoint as Partial<Waits> | null)?.sinceMs ?? talk.nowMs)
  const checkpoint: Waits = { sinceMs, found }
  const backoffMs = Math.min(MODEL_RETRY_MS_MAX, Math.max(MODEL_RETRY_MS_MIN, talk.nowMs - sinceMs))
  return {
    again: { afterMs: Math.max(backoffMs, error.retryAfterMs ?? 0) },
    checkpoint,
    note: problem,
    code: 'waits-for-model',
  }
}

const UNUSABLE = 'model-unusable'

function triesOf({ payload }: ThreadJob): number {
  return payload.tries ?? 0
}

/**
 * No answer, or none that is a draft. It is asked for again by itself, as often as a job is tried; under a key of its
 * own, so that whoever asks meanwhile does not wait for it.
 */
function unusable(talk: Conversation): Outcome {
  const { record, kinds, job } = talk
  const { account, thread } = record
  const tries = triesOf(job) + 1
  const max = kinds.settings.attempts
  const what = 'the model gave no answer that could be used'
  const isLast = tries >= max
  const problem = isLast
    ? `No draft: ${what}, ${tries} times in a row. It is asked again when a new message comes, or when you ask for a draft.`
    : `The draft waits: ${what}. It is asked again within the hour (try ${tries + 1} of ${max}).`
  const runAt = talk.nowMs + (UNUSABLE_RETRY_MS[tries - 1] ?? UNUSABLE_RETRY_MS.at(-1)!)
  const key = `${account}/${thread} again ${tries}`
  return talk.end(
    { ...record, problem, problemCode: UNUSABLE },
    {
      ...(isLast && { event: { what: 'draft-failed', why: problem } }),
      ...(!isLast && { jobs: [request(kinds.draft, { account, thread, tries }, { runAt, key })] }),
      note: problem,
      code: UNUSABLE,
    },
  )
}

/** Once it is noted: in Gmail, and what it replaces out of it. */
async function make(
  talk: Conversation,
  { answered, draft, isNoted }: { answered: VisibleMessage; draft: DraftRow; isNoted: boolean },
): Promise<Outcome> {
  const { account, record } = talk
  const { order } = record
  const others = (await talk.openDrafts()).filter(({ key }) => key !== draft.key)
  if (order !== null || others.length > 0) {
    // The model may have taken its time: what is to be replaced may have been sent by now, or be another one.
    const messages = await talk.read()
    if (!messages) return talk.gone()
    const now = messages.find(({ id }) => id === answered.id)
    if (now && isOver(record, messages, now)) return answeredByHand(talk)
    for (const other of others) {
      const found = await talk.find(other)
      if (found && !found.isSame && !isGivenBack(record, found)) return keepEdited(talk, found)
    }
  }
  const { owner } = account
  const { text, key } = draft
  const reply = { answered, owner, text, key, nowMs: talk.nowMs }
  const { made, isAdopted } = await putIntoGmail(talk, { draft, isNoted, raw: replyMime(reply) })
  const { trashed, edited } = await talk.trashUntouched(draft.key)
  const theirs: DraftRow[] = []
  let kept = edited.find((found) => !isGivenBack(record, found))
  for (const found of edited) {
    if (found === kept || found.message.attachments.length > 0) continue
    if (found.isGuessed) {
      theirs.push(found.draft)
      continue
    }
    const left = await talk.trash(found)
    if (left) kept = left
    else trashed.push(found.draft)
  }
  if (kept && made.state === 'live') return withdraw(talk, { made, kept, trashed })
  if (!(await talk.applyLabel())) return talk.gone()
  return talk.end(
    {
      ...record,
      status: 'drafted',
      isApplied: true,
      labelWas: null,
      order: null,
      problem: null,
      problemCode: null,
    },
    {
      effects: async (tx) => {
        for (const one of trashed) await setDraftState(tx, one, 'trashed')
        for (const one of theirs) await setDraftState(tx, one, 'gone')
        await putDraft(tx, made)
      },
      event: { what: order?.kind === 'rework' ? 'draft-reworked' : 'draft-created', why: whyOf(record) },
      note: isAdopted ? 'adopted the draft of an earlier try' : 'created',
      code: isAdopted ? 'adopted' : 'drafted',
    },
  )
}

/** The user has edited the draft that is there while another was made: theirs stays, ours goes. */
async function withdraw(
  talk: Conversation,
  about: { made: DraftRow; kept: FoundDraft; trashed: readonly DraftRow[] },
): Promise<Outcome> {
  const { made, kept, trashed } = about
  await talk.account.client.trash(made.messageId!, { signal: talk.signal })
  return keepEdited(talk, kept, [...trashed, made])
}

/**
 * Adopted where an earlier try has made it, and created otherwise. Of one that this try has noted itself only its key
 * counts: what else is new in the conversation the user has begun while a model took its time.
 */
export async function putIntoGmail(
  talk: Conversation,
  { draft, isNoted, raw }: { draft: DraftRow; isNoted: boolean; raw: Uint8Array },
): Promise<{ made: DraftRow; isAdopted: boolean }> {
  const { account, record, signal } = talk
  const hasKey = (talk.messages ?? []).some((message) => keyOf(message) === draft.key)
  const found = isNoted || hasKey ? await talk.find(draft) : undefined
  if (found?.isSame) {
    const { id } = found.message
    const draftId = (await talk.idsOf([found.message])).get(id) ?? null
    return { made: { ...draft, state: 'live', draftId, messageId: id }, isAdopted: true }
  }
  if (found) return { made: await talk.takenOver(found), isAdopted: true }
  const { id: draftId, messageId } = await account.client.createDraft(
    { raw, threadId: record.thread },
    { signal },
  )
  return { made: { ...draft, state: 'live', draftId, messageId }, isAdopted: false }
}

function whyOf({ order, reworks }: ThreadRecord): string {
  if (order?.kind === 'manual') return 'You asked for an answer; your notes were taken as instructions.'
  if (order?.kind !== 'rework') return 'The message needs a response.'
  const said =
    order.instruction === '' ? 'without an instruction' : `as you said: ${order.instruction.slice(0, 200)}`
  return reworks >= REWORKS_MAX
    ? `Reworked for the last time, ${said}. Please finish it yourself: it can be reworked ${REWORKS_MAX} times.`
    : `Reworked ${said}.`
}

/** The user has written the answer without us. */
async function answeredByHand(talk: Conversation): Promise<Outcome> {
  const unmade = await unmadeDrafts(talk)
  await talk.commit(
    talk.changed({
      status: 'sent',
      label: null,
      draftKey: null,
      order: null,
      problem: null,
      problemCode: null,
    }),
    {
      effects: async (tx) => {
        for (const draft of unmade) await setDraftState(tx, draft, 'gone')
      },
      event: { what: 'answered', why: 'You have answered it yourself.', by: 'user', canUndo: true },
    },
  )
  return settle(talk, { note: 'answered by hand', code: 'answered' })
}

/** Noted and not there: whoever waited for them to be made would wait for ever. */
async function unmadeDrafts(talk: Conversation): Promise<DraftRow[]> {
  const unmade: DraftRow[] = []
  for (const draft of await talk.openDrafts()) {
    if (draft.state === 'intended' && !(await talk.find(draft))) unmade.push(draft)
  }
  return unmade
}

/** Sorted again to the same end: the draft that is there, or there again, is the answer. */
async function keepWritten(talk: Conversation, found: FoundDraft): Promise<Outcome> {
  const { draft } = found
  const { trashed } = await talk.trashUntouched(draft.key)
  await talk.commit(talk.changed({ status: 'drafted', label: labelFor(talk.record), draftKey: draft.key }), {
    effects: async (tx) => {
      for (const one of trashed) await setDraftState(tx, one, 'trashed')
      await setDraftState(tx, draft, 'live')
    },
  })
  return settle(talk, { note: 'the draft is there already', code: 'drafted' })
}

async function keepEdited(
  talk: Conversation,
  found: FoundDraft,
  also: readonly DraftRow[] = [],
): Promise<Outcome> {
  const draft = await talk.takenOver(found)
  // What an earlier try has made beside it, or only noted.
  const { trashed, edited } = await talk.trashUntouched(draft.key)
  const doubles = edited.filter(({ message }) => message.id === found.message.id).map((one) => one.draft)
  const kept = { status: 'drafted', label: 'outbox', draftKey: draft.key, order: null } as const
  await talk.commit(talk.changed({ ...kept, problem: null, problemCode: null }), {
    effects: async (tx) => {
      for (const one of [...trashed, ...doubles, ...also]) await putDraft(tx, { ...one, state: 'trashed' })
      await putDraft(tx, draft)
    },
    event: { what: 'draft-kept', why: 'You have edited the draft: it stays as it is.' },
  })
  return settle(talk, { note: 'an edited draft is there', code: 'draft-kept' })
}

/** What was asked for is answered by its reason; the label with which it was asked for goes. */
async function nobodyToAnswer(talk: Conversation): Promise<Outcome> {
  const problem = 'No draft: nobody else has written in this conversation.'
  await talk.commit(
    { ...talk.record, status: 'skipped', order: null, problem, problemCode: 'nobody', isApplied: false },
    { event: { what: 'draft-failed', why: problem } },
  )
  return settle(talk, { note: problem, code: 'nobody' })
}
