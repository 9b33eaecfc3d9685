/**
 * What people ask for on a page or the command line: each writes the record, the event and the job that carries it out
 * in one transaction, so that it happens once, and also where the process ends right after.
 */
import { isDeepStrictEqual } from 'node:util'
import { asTidemarkError, UsageError } from '../../base/errors.ts'
import type { Engine } from '../../engine/engine.ts'
import { request } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { type AccountSettings, accountSettings, labelTitle, settingsOf, streamOf } from './account.ts'
import { strayRule } from './agent/router.ts'
import { type Category, type Mailbox, REWORKS_MAX, type VisibleMessage } from './contract.ts'
import { isLiveDraft } from './conversation.ts'
import type { AssistKinds } from './kinds.ts'
import { learnFrom, taughtBy } from './learning.ts'
import { notOnboarded } from './open-accounts.ts'
import { lastInbound, relabelled, roleOf } from './plan.ts'
import { recipientsOf, replyMime, replySubject } from './reply.ts'
import { reworked } from './rework.ts'
import { assistStatus } from './status.ts'
import { setActive, setSettings, wantSync } from './store/accounts.ts'
import {
  addEvent,
  type DraftRow,
  forceThread,
  noteUndone,
  putDraft,
  type Taught,
  type ThreadRecord,
  touchThreads,
  undoOf,
  writeRecord,
} from './store/records.ts'
import { unlearn } from './store/rules.ts'
import type { EventRow } from './store/tables.ts'
import { visibleMessage } from './text/visible.ts'

export type ActionPlace = { engine: Engine; kinds: AssistKinds }
export type ThreadOf = { account: string; thread: string }

/** Has the mailbox looked at, now or as soon as a look that is under way ends. False where it is unknown or off. */
export function requestSync(
  { engine, kinds }: ActionPlace,
  account: string,
  wish: { historyId?: string; full?: boolean; atMs?: number } = {},
): Promise<boolean> {
  return inTransaction(engine, async (tx) => {
    const { atMs: nowMs = kinds.clock.now(), ...rest } = wish
    if (!(await wantSync(tx, account, { ...rest, nowMs }))) return false
    await tx.enqueue([request(kinds.sync, syncPayload(account), { stream: streamOf(account) })])
    return true
  })
}

/**
 * Somebody asks for a look by hand. Where drafts wait because of a model, they are tried once more, which a look at the
 * news alone does not do: whatever kept them may be mended.
 */
export async function lookNow(place: ActionPlace & { ledger: Ledger }, account: string): Promise<boolean> {
  const [status] = await assistStatus(place.ledger, place.kinds.tables, [account])
  const full = status?.problem != null && status.draftsToCome > 0
  return requestSync(place, account, full ? { full } : {})
}

export function syncPayload(account: string): { account: string; historyId: string; forceFull: boolean } {
  return { account, historyId: '', forceFull: false }
}

/** Sorted again, whatever is known. */
export async function reclassify(
  { engine, kinds }: ActionPlace,
  { account, thread }: ThreadOf,
): Promise<void> {
  await inTransaction(engine, async (tx) => {
    await touchThreads(tx, account, [thread], kinds.clock.now())
    await forceThread(tx, account, thread)
    await tx.enqueue([threadRequest(kinds.classify, { account, thread })])
  })
}

/** The user says what it is. It is learned from. */
export const correctCategory = whenStale(
  async (place: ActionPlace, of: ThreadOf, category: Category): Promise<ThreadRecord> => {
    const { kinds } = place
    const record = await recordOf(kinds, of)
    const message = await answeredOf(kinds, record)
    const why = `You moved it to ${labelTitle(roleOf(category))}.`
    const isResponse = category === 'needs_response'
    const next: ThreadRecord = {
      ...relabelled(record, roleOf(category)),
      category,
      by: 'user',
      confidence: 1,
      reasoning: why,
      status: isResponse ? 'pending' : 'skipped',
      order: null,
      problem: null,
      problemCode: null,
      classifiedAtMs: record.classifiedAtMs ?? kinds.clock.now(),
    }
    return write(place, record, next, {
      event: { what: 'corrected', why, canUndo: true, taught: message && taughtBy(message, category) },
      effects: async (tx, nowMs) => {
        if (message) await learnFrom(tx, { record, message, category, nowMs })
      },
    })
  },
)

/** Wants a draft, with notes or without. */
export const orderDraft = whenStale(
  async (place: ActionPlace, of: ThreadOf, instruction: string = ''): Promise<ThreadRecord> => {
    const { kinds } = place
    const record = await recordOf(kinds, of)
    const why =
      instruction === '' ? 'You asked for an answer.' : 'You asked for an answer, and left notes for it.'
    const next: ThreadRecord = {
      ...relabelled(record, 'needs_response'),
      category: 'needs_response',
      by: 'user',
      confidence: 1,
      reasoning: why,
      status: 'pending',
      draftKey: null,
      order: { kind: 'manual', atMs: kinds.clock.now(), instruction, earlier: '', replaces: [] },
      problem: null,
      problemCode: null,
      classifiedAtMs: record.classifiedAtMs ?? kinds.clock.now(),
    }
    return write(place, record, next, { event: { what: 'asked', why, canUndo: true } })
  },
)

/** Wants another draft, as the instruction says. Refused beyond the limit. */
export const orderRework = whenStale(
  async (place: ActionPlace, of: ThreadOf, instruction: string): Promise<ThreadRecord> => {
    const { kinds } = place
    const record = await recordOf(kinds, of)
    if (record.reworks >= REWORKS_MAX) {
      throw new UsageError(
        `It was reworked ${REWORKS_MAX} times already: please finish the draft yourself.`,
        {
          code: 'rework-refused',
        },
      )
    }
    const drafts = await kinds.tables.drafts(of.account, of.thread)
    const draft = drafts.findLast(({ state }) => state === 'live' || state === 'edited')
    const order = {
      kind: 'rework' as const,
      atMs: kinds.clock.now(),
      instruction,
      earlier: draft?.text ?? '',
      replaces: draft?.messageId == null ? [] : [draft.messageId],
    }
    const next = reworked(record, order, kinds.clock.now())
    return write(place, record, next, {
      event: {
        what: 'rework',
        why: `You asked for another draft: ${instruction.slice(0, 200)}`,
        canUndo: false,
      },
    })
  },
)

/** The draft is fine as it is: it waits in the Outbox to be sent by hand. */
export const approveDraft = whenStale(async (place: ActionPlace, of: ThreadOf): Promise<ThreadRecord> => {
  const record = await recordOf(place.kinds, of)
  if (record.status !== 'drafted') {
    throw new UsageError('There is no draft of it that could be approved.', { code: 'no-draft' })
  }
  const next = { ...relabelled(record, 'outbox'), isApplied: false }
  const why = 'You have approved the draft: it waits in the Outbox for you to send it.'
  return write(place, record, next, { event: { what: 'approved', why, canUndo: true } })
})

/**
 * The user's own words in the draft. Refused where it was changed in Gmail meanwhile, or has more by now than words of
 * ours could replace.
 */
export async function editDraft(
  place: ActionPlace,
  of: ThreadOf,
  text: string,
  signal: AbortSignal,
): Promise<DraftRow> {
  const { kinds, engine } = place
  const record = await recordOf(kinds, of)
  const draft = record.draftKey === null ? undefined : await kinds.tables.draft(of.account, record.draftKey)
  if (draft?.draftId == null) throw new UsageError('There is no draft of it.', { code: 'no-draft' })
  const account = await kinds.accounts.get(of.account)
  const thread = await account.client.thread(of.thread, { signal })
  const messages = thread.messages.map(visibleMessage)
  const answered = messages.find(({ id }) => id === draft.answered) ?? lastInbound(messages, record.account)
  const there = messages.find((message) => isLiveDraft(message) && message.id === draft.messageId)
  if (!answered || !there) {
    throw new UsageError('The draft was changed in Gmail meanwhile.', {
      code: 'draft-changed',
      hint: 'Look at it again, and then change it.',
    })
  }
  if (!isOnlyText(there, { answered, owner: account.owner })) {
    throw new UsageError('The draft has attachments, recipients or a subject that were set in Gmail.', {
      code: 'draft-changed',
      hint: 'Change its text in Gmail: here they would be lost.',
    })
  }
  const nowMs = kinds.clock.now()
  const raw = replyMime({ answered, owner: account.owner, text, key: draft.key, nowMs })
  const made = await account.client.updateDraft({ id: draft.draftId, raw, threadId: of.thread }, { signal })
  const next: DraftRow = {
    ...draft,
    messageId: made.messageId,
    text,
    state: 'edited',
    textHash: '',
  }
  await inTransaction(engine, async (tx) => {
    await putDraft(tx, next)
    await touchThreads(tx, of.account, [of.thread], nowMs)
    const why = 'You have edited the draft: it is yours from now on.'
    await addEvent(tx, { ...of, atMs: nowMs, what: 'draft-edited', why, by: 'user' })
  })
  return next
}

/** Nothing but its text differs from the draft that we would write. */
function isOnlyText(there: VisibleMessage, of: { answered: VisibleMessage; owner: Mailbox }): boolean {
  const addresses = (list: readonly Mailbox[]): string[] =>
    list.map(({ address }) => address.toLowerCase()).toSorted()
  const words = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
  const hasMore = there.headers.some(([name, value]) => /^b?cc$/.test(name) && value.trim() !== '')
  return (
    there.attachments.length === 0 &&
    !hasMore &&
    words(there.subject) === words(replySubject(of.answered.subject)) &&
    isDeepStrictEqual(addresses(there.to), addresses(recipientsOf(of.answered, of.owner)))
  )
}

/** Takes back what an event did to the record; labels and drafts follow. */
export const undoEvent = whenStale(
  async (place: ActionPlace, account: string, eventId: number): Promise<ThreadRecord> => {
    const { kinds } = place
    const event = await kinds.tables.event(eventId)
    if (event?.account !== account)
      throw new UsageError(`There is no event #${eventId}.`, { code: 'event-unknown' })
    if (!event.undo || event.undoneAtMs !== null) {
      throw new UsageError('That cannot be undone, or was already.', { code: 'undo-impossible' })
    }
    const { thread } = event
    const record = await recordOf(kinds, { account, thread })
    const { label, taught, ...rest } = event.undo
    if (event.what === 'done') await backToInbox(kinds, record)
    const drafts = await kinds.tables.drafts(account, thread)
    const isThere = drafts.some(({ key, state }) => key === rest.draftKey && state !== 'trashed')
    const next: ThreadRecord = {
      ...relabelled(record, label),
      ...rest,
      // It was sorted once: a conversation does not become unknown again.
      category: rest.category ?? record.category,
      // A draft that went to the trash is written again.
      status:
        rest.category === null ? 'skipped' : rest.status === 'drafted' && !isThere ? 'pending' : rest.status,
      order: null,
      isApplied: false,
    }
    const events = await kinds.tables.events(account, { thread })
    return write(place, record, next, {
      event: { what: 'undone', why: `You took back: ${event.why}`, canUndo: false },
      effects: async (tx, nowMs) => {
        await noteUndone(tx, eventId, nowMs)
        // The rule that it proposed is off, and stays for its user to look at.
        if (taught) await forgetTaught(tx, event, events)
      },
    })
  },
)

/** What the user has said of the conversation since then is not taken back with it, and stays learned. */
async function forgetTaught(tx: Tx, event: EventRow, events: readonly EventRow[]): Promise<void> {
  const [last, before] = events.filter(({ undo, undoneAtMs }) => undo?.taught && undoneAtMs === null)
  if (last?.id !== event.id) return
  const taught = before?.undo?.taught
  await unlearn(tx, event, taught && { atMs: before!.atMs, taught })
}

/** What Done took out of it. May be repeated. */
async function backToInbox(kinds: AssistKinds, { account, thread }: ThreadRecord): Promise<void> {
  const { client } = await kinds.accounts.get(account)
  const rows = await kinds.tables.messages(account, thread)
  const ids = rows.filter(({ state }) => state === 'classified').map(({ message }) => message)
  await client.batchModify({ ids, add: ['INBOX'] })
}

export async function changeSettings(
  { engine, kinds }: ActionPlace,
  account: string,
  change: Partial<AccountSettings>,
): Promise<AccountSettings> {
  const row = await kinds.tables.account(account)
  if (!row) throw notOnboarded(account)
  const next = accountSettings.parse({ ...settingsOf(row), ...change })
  const lost = change.routing || change.profiles ? strayRule(next) : undefined
  if (lost) {
    const { name, profile } = lost
    throw new UsageError(
      `The routing rule ${name} names the agent ${profile}, of which there is no profile.`,
      {
        code: 'import-invalid',
        hint: 'Its mail would be sorted by nobody. Name one of [[profiles]].',
      },
    )
  }
  await inTransaction(engine, (tx) => setSettings(tx, account, JSON.stringify(next)))
  return next
}

/** Off: nothing is looked at; labels, drafts and records stay. */
export async function switchAccount(
  { engine, kinds }: ActionPlace,
  account: string,
  active: boolean,
): Promise<void> {
  if (!(await kinds.tables.account(account))) throw notOnboarded(account)
  await inTransaction(engine, (tx) => setActive(tx, account, active))
  await kinds.accounts.reload()
}

export async function recordOf(kinds: Pick<AssistKinds, 'tables'>, of: ThreadOf): Promise<ThreadRecord> {
  const record = await kinds.tables.record(of.account, of.thread)
  if (record) return record
  throw new UsageError(`The assistant knows no conversation ${of.thread} of ${of.account}.`, {
    code: 'thread-unknown',
  })
}

const STALE_TRIES_MAX = 20

/** A job may change the record while a person decides about it: then what they want is written against what is there now. */
function whenStale<Args extends readonly unknown[], T>(
  act: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  return async (...args) => {
    for (let tries = 1; ; tries++) {
      try {
        return await act(...args)
      } catch (thrown) {
        if (asTidemarkError(thrown).code !== 'assist-stale' || tries >= STALE_TRIES_MAX) throw thrown
      }
    }
  }
}

type EngineTx = Parameters<Parameters<Engine['transaction']>[0]>[0]

function inTransaction<T>(engine: Engine, fn: (tx: EngineTx) => Promise<T>): Promise<T> {
  return engine.transaction(fn)
}

/** What the correction is about; without it nothing is learned, and that is no reason to refuse it. */
async function answeredOf(kinds: AssistKinds, { account, answered, subject, sender }: ThreadRecord) {
  if (answered === null) return undefined
  try {
    const { client } = await kinds.accounts.get(account)
    return visibleMessage(await client.message(answered))
  } catch {
    // Out of reach, or deleted: subject and sender are known all the same.
    return { subject, newText: '', from: { name: '', address: sender } }
  }
}

async function write(
  { engine, kinds }: ActionPlace,
  before: ThreadRecord,
  next: ThreadRecord,
  also: {
    event: { what: string; why: string; canUndo: boolean; taught?: Taught | undefined }
    effects?: (tx: Tx, nowMs: number) => Promise<void>
  },
): Promise<ThreadRecord> {
  const { account, thread } = next
  const nowMs = kinds.clock.now()
  const { canUndo, taught, ...event } = also.event
  return inTransaction(engine, async (tx) => {
    const stored = await writeRecord(tx, next, nowMs)
    await also.effects?.(tx, nowMs)
    const undo = canUndo ? { ...undoOf(before), taught } : undefined
    await addEvent(tx, { account, thread, atMs: nowMs, by: 'user', ...event, undo })
    // The look brings the label to Gmail, and then has the draft made that is wanted: at once, they would meet.
    const kind = next.order?.kind === 'rework' ? kinds.draft : kinds.cleanup
    await tx.enqueue([threadRequest(kind, { account, thread })])
    return stored
  })
}

function threadRequest(kind: AssistKinds['classify'], of: ThreadOf) {
  return request(kind, of, { stream: streamOf(of.account), lane: 'interactive' })
}
