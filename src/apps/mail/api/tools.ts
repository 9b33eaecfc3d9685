/** Mail for models: finding it, reading it, and, where that is switched on, looking for new mail. */
import { z } from 'zod'
import { noteWithoutEngine } from '../../../app/engine-note.ts'
import { accountText } from '../../../app/inputs.ts'
import { QUERY_CHARS_MAX } from '../../../search/query/syntax.ts'
import { messageId, noteMailLook } from './inputs.ts'
import { defineTool } from './route.ts'
import { CURSOR_LENGTH_MAX, searchMail } from './search.ts'
import { syncNow } from './sync.ts'
import { hitsAnswer, messageAnswer, THREAD_PAGE, threadAnswer } from './tool-answers.ts'
import { findMessage, findThread } from './tool-inputs.ts'

/** Each hit takes 700 characters at most, or a little more: all of them fit an answer. */
const HITS_MAX = 20
const HITS_DEFAULT = 10
const TEXT_OFFSET_MAX = 100_000_000
const THREAD_OFFSET_MAX = 1_000_000

const account = accountText.optional().describe('The address of one account; all of them if left out')
const id = messageId.describe('The id of a message, as mail_search gives it')

const search = defineTool({
  name: 'mail_search',
  title: 'Search mail',
  access: 'read',
  description:
    'Finds messages in the local copy of all mail and answers a line for each: time, ids, sender, subject, part of ' +
    'the text. Takes Gmail\'s search language: words, "phrases", word*, from: to: subject: filename: label: in: is: ' +
    'has:attachment larger: smaller: after:2024/01/31 before: newer_than:3d older_than:1y, - for not, OR, { } for ' +
    'any of, ( ) for all of; also body: id: thread: is:deleted. Words are found whole: plan* also finds plans. Spam ' +
    'and trash are searched unless left out (-in:spam -in:trash).',
  narrower: 'Ask for fewer with limit, then go on with the cursor.',
  input: z.strictObject({
    query: z.string().max(QUERY_CHARS_MAX).default('').describe('Everything, newest first, if left out'),
    account,
    order: z.enum(['date', 'rank']).default('date').describe('Newest first, or best first'),
    limit: z.int().min(1).max(HITS_MAX).default(HITS_DEFAULT),
    cursor: z
      .string()
      .max(CURSOR_LENGTH_MAX)
      .optional()
      .describe('For the next page: the one that the page before gave, with the same query and order'),
  }),
  run: async ({ query, ...rest }, services, { user }) =>
    hitsAnswer(await searchMail(services, user, { text: query, ...rest })),
})

const message = defineTool({
  name: 'mail_message',
  title: 'Read a message',
  access: 'read',
  description:
    'Reads one message: headers, text (HTML is made plain; nothing is loaded from the net), and a list of its ' +
    'attachments. A long text comes in pages: the answer names the offset of the next one.',
  narrower: 'Go on with offset.',
  input: z.strictObject({
    id,
    account,
    offset: z.int().min(0).max(TEXT_OFFSET_MAX).default(0).describe('Where in the text to begin'),
  }),
  run: async ({ id: wanted, account: owner, offset }, services, { user }) => {
    await noteMailLook(services, user, { account: owner, what: `read mail ${wanted}` })
    return messageAnswer(await findMessage(services, { account: owner, id: wanted }), { offset })
  },
})

const thread = defineTool({
  name: 'mail_thread',
  title: 'Read a conversation',
  access: 'read',
  description:
    `Reads a conversation, oldest message first, ${THREAD_PAGE} messages at a time, each with the beginning of its ` +
    'text; mail_message gives the rest of one.',
  narrower: 'Read single messages with mail_message.',
  input: z.strictObject({
    id: messageId.describe('The id of a conversation or of one of its messages, as mail_search gives it'),
    account,
    offset: z.int().min(0).max(THREAD_OFFSET_MAX).default(0).describe('How many messages to pass over'),
  }),
  run: async ({ id: wanted, account: owner, offset }, services, { user }) => {
    await noteMailLook(services, user, { account: owner, what: `read conversation ${wanted}` })
    return threadAnswer(await findThread(services, { account: owner, id: wanted }), { offset })
  },
})

const sync = defineTool({
  name: 'mail_sync',
  title: 'Look for new mail',
  access: 'write',
  description: 'Looks for new mail now instead of when its time comes; the answer does not wait for it.',
  narrower: 'Name one account.',
  input: z.strictObject({ account }),
  run: async ({ account: wanted }, services) => {
    const { text } = await syncNow(services, wanted)
    return [text, await noteWithoutEngine(services)]
  },
})

export const mailTools = [search, message, thread, sync]
