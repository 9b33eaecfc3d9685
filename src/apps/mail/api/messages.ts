/** Reading mail: a message, its conversation, its HTML, its bytes and its attachments. */
import { z } from 'zod'
import { notFound } from '../../../app/problem.ts'
import { safeFileName } from '../mime/file-name.ts'
import { framePolicy, plainDocument } from './html.ts'
import { messageId, messageParams, noteMailLook, openArchive, openMessage } from './inputs.ts'
import { messageView } from './message-view.ts'
import { download, route } from './route.ts'
import { type MessageView, messageSchema } from './schemas.ts'

/** Of a conversation, the newest: each is read whole. */
const THREAD_MAX = 200
const THREAD_CHARS_MAX = 4_000_000
const ATTACHMENT_INDEX_MAX = 10_000
const attachmentIndex = z.coerce
  .number()
  .int()
  .min(0)
  .max(ATTACHMENT_INDEX_MAX)
  .describe("Its place, as the message's `files` give it")

/** 422: what is kept of it is damaged. */
const showMessage = route('GET /api/mail/messages/{account}/{id}', {
  errors: [409, 422],
  summary: 'A message, with its plain text',
  params: messageParams,
  answer: messageSchema,
  handle: async ({ params, user }, services) => {
    const { opened, message } = await openMessage(services, user, params)
    return messageView(opened, message)
  },
})

const showThread = route('GET /api/mail/threads/{account}/{id}', {
  errors: [409, 422],
  summary: `A conversation, oldest first; of a long one the newest, ${THREAD_MAX} at most`,
  params: z.object({
    account: messageParams.shape.account,
    id: messageId.describe('The `threadId` of one of its messages'),
  }),
  answer: z.object({ items: z.array(messageSchema) }),
  handle: async ({ params: { account, id }, signal, user }, services) => {
    await noteMailLook(services, user, { account, what: `read conversation ${id}` })
    const opened = await openArchive(services, account)
    const messages = await opened.archive.thread(id)
    if (messages.length === 0) {
      throw notFound(`The archive of ${account} has no conversation ${id}.`, { code: 'thread-unknown' })
    }
    const items: MessageView[] = []
    let chars = 0
    for (const message of messages.slice(-THREAD_MAX).reverse()) {
      signal.throwIfAborted()
      items.push(await messageView(opened, message))
      chars += items.at(-1)!.text.length
      if (chars > THREAD_CHARS_MAX) break
    }
    items.reverse()
    return { items }
  },
})

const showHtml = download('GET /api/mail/messages/{account}/{id}/html', {
  errors: [409, 422],
  contentType: 'text/html',
  summary: 'The HTML of a message, sanitised, for a sandboxed frame',
  params: messageParams,
  query: z.object({
    images: z
      .enum(['true', 'false'])
      .default('false')
      .describe('Whether images are loaded from the net, which tells their sender that the mail was read'),
  }),
  handle: async ({ params, query, user }, services) => {
    const { opened, message } = await openMessage(services, user, params)
    const images = query.images === 'true'
    const rendered = await services.mail.html.render({ raw: await opened.archive.raw(message.id), images })
    const document =
      rendered === 'late' ? plainDocument(await opened.archive.text(message.id)) : rendered.document
    if (document === null) {
      throw notFound(`The message ${message.id} has no HTML.`, {
        code: 'html-missing',
        hint: 'Show its text.',
      })
    }
    return {
      bytes: document,
      contentType: 'text/html; charset=utf-8',
      headers: { 'content-security-policy': framePolicy(images) },
    }
  },
})

/** Were a browser to show what it saves, it must not act on it. */
const SAVED_POLICY = { 'content-security-policy': "default-src 'none'; sandbox" }

const showRaw = download('GET /api/mail/messages/{account}/{id}/raw', {
  errors: [409, 422],
  contentType: 'message/rfc822',
  summary: 'The bytes of a message, exactly as they came',
  params: messageParams,
  handle: async ({ params, user }, services) => {
    const { opened, message } = await openMessage(services, user, params)
    return {
      bytes: await opened.archive.raw(message.id),
      contentType: 'message/rfc822',
      fileName: safeFileName(`${message.subject.slice(0, 80)}.eml`, `${message.id}.eml`),
      headers: SAVED_POLICY,
    }
  },
})

const showAttachment = download('GET /api/mail/messages/{account}/{id}/attachments/{index}', {
  errors: [409, 422],
  summary: 'An attachment, by its place from 0; always to be saved, never shown',
  contentType: 'application/octet-stream',
  params: messageParams.extend({ index: attachmentIndex }),
  handle: async ({ params, user }, services) => {
    const { opened, message } = await openMessage(services, user, params)
    const { index } = params
    if (!message.attachments.some((one) => one.index === index)) {
      throw notFound(`The message ${message.id} has no attachment ${index}.`, { code: 'attachment-unknown' })
    }
    const { name, content } = await opened.archive.attachment(message.id, index)
    return {
      bytes: content,
      // Not as what the mail says it is: nothing must take it for a page.
      contentType: 'application/octet-stream',
      fileName: safeFileName(name, `attachment-${index + 1}`),
      headers: SAVED_POLICY,
    }
  },
})

export const messageRoutes = [showMessage, showThread, showHtml, showRaw, showAttachment]
