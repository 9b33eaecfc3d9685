/** Routes about threads: listing them, looking at one, and changing what became of it. */
import { z } from 'zod'
import { noteWithoutEngine } from '../../../app/engine-note.ts'
import { accountText, idNumber, readJsonCursor, writeCursor } from '../../../app/inputs.ts'
import { notFound } from '../../../app/problem.ts'
import { cursorQuery, type DoneView, done, doneSchema, pageOf } from '../../../app/schemas.ts'
import { approveDraft, correctCategory, editDraft, orderDraft, orderRework, undoEvent } from '../actions.ts'
import { threadMail } from '../thread-mail.ts'
import { threadDetail, threadView } from '../views.ts'
import { chosenMailboxes, noteSeen, ownMailbox } from './access.ts'
import { type AssistServices, route } from './route.ts'
import {
  categorySchema,
  statusSchema,
  threadDetailSchema,
  threadMailSchema,
  threadSchema,
} from './schemas.ts'

const DRAFT_CHARS_MAX = 50_000
const INSTRUCTION_CHARS_MAX = 5_000

const threadText = z
  .string()
  .regex(/^[0-9a-zA-Z_-]{1,64}$/)
  .describe('The id that Gmail gave the thread')
const threadParams = z.object({ account: accountText, thread: threadText })
const instructionText = z.string().trim().max(INSTRUCTION_CHARS_MAX).describe('What the draft should say')
const cursorPlace = z.object({ updatedAtMs: z.number().int(), thread: z.string().max(64) })

export const getThreads = route('GET /api/assist/threads', {
  summary: 'Threads that were sorted, those that changed last first',
  access: 'member',
  errors: [400, 404],
  query: z.object({
    ...cursorQuery,
    account: accountText.optional(),
    category: categorySchema.optional().describe('Only those'),
    status: statusSchema.optional().describe('Only those'),
  }),
  answer: pageOf(threadSchema),
  handle: async ({ query, user }, services) => {
    const { limit, category, status } = query
    const accounts = await chosenMailboxes(services, user, {
      account: query.account,
      what: 'listed sorted mail',
    })
    const before = readJsonCursor(query.cursor, cursorPlace)
    const rows = await services.assist.tables.list({ accounts, category, status, before, limit })
    const last = rows.at(-1)
    const next =
      rows.length < limit || !last
        ? null
        : writeCursor({ updatedAtMs: last.updatedAtMs, thread: last.thread })
    return { items: rows.map(threadView), next }
  },
})

export const getThread = route('GET /api/assist/accounts/{account}/threads/{thread}', {
  summary: 'One thread: why it was sorted so, its draft, and what happened',
  access: 'member',
  errors: [404],
  params: threadParams,
  answer: threadDetailSchema,
  handle: async ({ params, user }, services) => {
    const { thread } = params
    const account = await ownMailbox(services, user, {
      account: params.account,
      what: `read thread ${thread}`,
    })
    const { tables } = services.assist
    const record = await tables.record(account, thread)
    if (!record) throw notFound(`There is no thread ${thread}.`, { code: 'thread-unknown' })
    await noteSeen(services, user, { account, thread })
    const events = await tables.events(account, { thread })
    const draft = record.draftKey === null ? undefined : await tables.draft(account, record.draftKey)
    return threadDetail(record, { events, draft })
  },
})

export const getThreadMail = route('GET /api/assist/accounts/{account}/threads/{thread}/messages', {
  summary: 'The mail of a thread as plain text, read from Gmail now: what is answered first, then the newest',
  access: 'member',
  errors: [404, 409, 503],
  params: threadParams,
  answer: threadMailSchema,
  handle: async ({ params, user, signal }, services) => {
    const { thread } = params
    const account = await ownMailbox(services, user, {
      account: params.account,
      what: `read the mail of thread ${thread}`,
    })
    const record = await services.assist.tables.record(account, thread)
    if (!record) throw notFound(`There is no thread ${thread}.`, { code: 'thread-unknown' })
    return threadMail(services.assist.kinds, record, signal)
  },
})

type ThreadChange = { params: z.output<typeof threadParams>; user: Parameters<typeof ownMailbox>[1] }

/** The mailbox is the user's, and what is done is told in a sentence. */
async function changed(
  services: AssistServices,
  { params, user }: ThreadChange,
  { what, text }: { what: string; text: string },
  run: (of: { account: string; thread: string }) => Promise<unknown>,
): Promise<DoneView> {
  const account = await ownMailbox(services, user, {
    account: params.account,
    what: `${what} ${params.thread}`,
  })
  await run({ account, thread: params.thread })
  return done(`${text}${await noteWithoutEngine(services)}`)
}

const ofAssist = ({ engine, assist }: AssistServices) => ({ engine, kinds: assist.kinds })

export const moveThread = route('POST /api/assist/accounts/{account}/threads/{thread}/category', {
  status: 202,
  summary: 'Moves a thread to another category, and learns from it',
  access: 'member',
  errors: [404],
  params: threadParams,
  body: z.strictObject({ category: categorySchema.describe('Where it belongs') }),
  answer: doneSchema,
  handle: (input, services) =>
    changed(services, input, { what: 'moved thread', text: 'It is moved, and remembered.' }, (of) =>
      correctCategory(ofAssist(services), of, input.body.category),
    ),
})

export const draftThread = route('POST /api/assist/accounts/{account}/threads/{thread}/draft', {
  status: 202,
  summary: 'Has a draft written',
  access: 'member',
  errors: [404],
  params: threadParams,
  body: z.strictObject({ instruction: instructionText.optional() }),
  answer: doneSchema,
  handle: (input, services) =>
    changed(services, input, { what: 'asked for a draft in thread', text: 'A draft is written.' }, (of) =>
      orderDraft(ofAssist(services), of, input.body.instruction ?? ''),
    ),
})

export const reworkThread = route('POST /api/assist/accounts/{account}/threads/{thread}/rework', {
  status: 202,
  summary: 'Has the draft written anew',
  access: 'member',
  errors: [404, 409],
  params: threadParams,
  body: z.strictObject({ instruction: instructionText.min(1) }),
  answer: doneSchema,
  handle: (input, services) =>
    changed(services, input, { what: 'reworked the draft of thread', text: 'It is written anew.' }, (of) =>
      orderRework(ofAssist(services), of, input.body.instruction),
    ),
})

export const editThread = route('PUT /api/assist/accounts/{account}/threads/{thread}/draft', {
  summary: "Writes the user's own words into the draft, in Gmail, too",
  access: 'member',
  errors: [404, 409],
  params: threadParams,
  body: z.strictObject({ text: z.string().max(DRAFT_CHARS_MAX).describe('All of the draft') }),
  answer: doneSchema,
  handle: (input, services) =>
    changed(
      services,
      input,
      { what: 'edited the draft of thread', text: 'The draft is saved in Gmail.' },
      (of) => editDraft(ofAssist(services), of, input.body.text, input.signal),
    ),
})

export const approveThread = route('POST /api/assist/accounts/{account}/threads/{thread}/approve', {
  summary: 'The draft is fine: it waits in the Outbox to be sent by hand',
  access: 'member',
  errors: [404, 409],
  params: threadParams,
  answer: doneSchema,
  handle: (input, services) =>
    changed(
      services,
      input,
      { what: 'approved the draft of thread', text: 'Approved. Send it in Gmail when you like.' },
      (of) => approveDraft(ofAssist(services), of),
    ),
})

export const undoThread = route('POST /api/assist/accounts/{account}/threads/{thread}/events/{event}/undo', {
  status: 202,
  summary: 'Takes back what an event did to the thread',
  access: 'member',
  errors: [404, 409],
  params: threadParams.extend({ event: idNumber.describe('The number of the event') }),
  answer: doneSchema,
  handle: (input, services) =>
    changed(
      services,
      input,
      { what: 'took back a change of thread', text: 'It is taken back.' },
      async (of) => {
        const event = await services.assist.tables.event(input.params.event)
        if (event?.account !== of.account || event.thread !== of.thread) {
          throw notFound(`There is no event #${input.params.event}.`, { code: 'event-unknown' })
        }
        await undoEvent(ofAssist(services), of.account, input.params.event)
      },
    ),
})
