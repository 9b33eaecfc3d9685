/** users.messages and its attachments. */

import { GoogleError, invalid, notFound } from '../google/errors.ts'
import type { SimAnswer } from '../server.ts'
import type { NewMessage } from './mailbox-contract.ts'
import { dateHeaderMs, topHeaders } from './message-content.ts'
import { changedJson, messageAnswer, requestedView } from './message-json.ts'
import { attachmentOf, base64url } from './payload.ts'
import {
  answer,
  emptyPageToken,
  type Incoming,
  jsonBody,
  listRequest,
  noContent,
  type RouteContext,
  type RouteTable,
  stringOf,
  stringsOf,
} from './route.ts'
import { incomingMessage } from './upload.ts'

export const messageRoutes: RouteTable = {
  'GET messages': { name: 'messages.list', need: 'read', run: list },
  'GET messages/*': { name: 'messages.get', need: 'read', run: get },
  'POST messages': {
    name: 'messages.insert',
    need: 'insert',
    takesUpload: true,
    run: (context) => insert(context, 'receivedTime'),
  },
  'POST messages/import': {
    name: 'messages.import',
    need: 'insert',
    takesUpload: true,
    run: (context) => insert(context, 'dateHeader'),
  },
  'POST messages/send': { name: 'messages.send', need: 'send', takesUpload: true, run: send },
  'POST messages/batchModify': { name: 'messages.batchModify', need: 'modify', run: batchModify },
  'POST messages/batchDelete': { name: 'messages.batchDelete', need: 'delete', run: batchDelete },
  'POST messages/*/modify': {
    name: 'messages.modify',
    need: 'modify',
    run: (context) =>
      answer(context, changedJson(context.mailbox.modify(context.ids[0]!, labelChange(context)))),
  },
  'POST messages/*/trash': {
    name: 'messages.trash',
    need: 'modify',
    run: (context) => answer(context, changedJson(context.mailbox.trash(context.ids[0]!))),
  },
  'POST messages/*/untrash': {
    name: 'messages.untrash',
    need: 'modify',
    run: (context) => answer(context, changedJson(context.mailbox.untrash(context.ids[0]!))),
  },
  'DELETE messages/*': {
    name: 'messages.delete',
    need: 'delete',
    run({ mailbox, ids }) {
      mailbox.delete(ids[0]!)
      return noContent
    },
  },
  'GET messages/*/attachments/*': { name: 'attachments.get', need: 'content', run: attachment },
}

function list(context: RouteContext): SimAnswer {
  const nextPageToken = emptyPageToken(context)
  if (nextPageToken !== undefined) return answer(context, { nextPageToken, resultSizeEstimate: 0 })
  const { messages, ...rest } = context.mailbox.list(listRequest(context))
  const found = answer(context, messages.length > 0 ? { messages, ...rest } : rest)
  const { delivered } = context
  found.onSent = () => {
    for (const { id } of messages) delivered.add(id)
  }
  return found
}

function get(context: RouteContext): SimAnswer {
  const view = requestedView(context.call.query)
  const message = context.mailbox.get(context.ids[0]!)
  if (!message) throw notFound()
  return messageAnswer(message, view, context.selection)
}

function insert(context: RouteContext, dateSource: 'receivedTime' | 'dateHeader'): SimAnswer {
  const incoming = incomingMessage(context)
  const source = context.call.query.get('internalDateSource') ?? dateSource
  if (source !== 'receivedTime' && source !== 'dateHeader')
    throw invalid("Invalid value at 'internal_date_source'")
  const message: NewMessage = { ...placed(incoming), labelIds: stringsOf(incoming.fields, 'labelIds') }
  if (source === 'dateHeader') {
    const dateMs = dateHeaderMs(incoming.raw)
    if (dateMs !== undefined) message.internalMs = dateMs
  }
  return answer(context, changedJson(context.mailbox.insert(message)))
}

function send(context: RouteContext): SimAnswer {
  const incoming = incomingMessage(context)
  checkRecipients(incoming.raw)
  return answer(context, changedJson(context.mailbox.send(placed(incoming))))
}

/** A message and the thread it says it belongs to. */
export function placed({ raw, fields }: Incoming): { raw: Buffer; threadId?: string } {
  const threadId = stringOf(fields, 'threadId')
  return threadId ? { raw, threadId } : { raw }
}

export function checkRecipients(raw: Buffer): void {
  const hasSome = topHeaders(raw).some(
    ({ name, value }) => /^(?:to|cc|bcc)$/.test(name) && value.includes('@'),
  )
  if (!hasSome) throw invalid('Recipient address required')
}

export function labelChange(context: RouteContext): { add: string[]; remove: string[] } {
  const body = jsonBody(context)
  return { add: stringsOf(body, 'addLabelIds'), remove: stringsOf(body, 'removeLabelIds') }
}

function batchModify(context: RouteContext): SimAnswer {
  const ids = stringsOf(jsonBody(context), 'ids')
  context.mailbox.batchModify(ids, labelChange(context))
  return noContent
}

function batchDelete(context: RouteContext): SimAnswer {
  context.mailbox.batchDelete(stringsOf(jsonBody(context), 'ids'))
  return noContent
}

function attachment(context: RouteContext): SimAnswer {
  const [messageId = '', attachmentId = ''] = context.ids
  const message = context.mailbox.get(messageId)
  if (!message) throw notFound()
  const bytes = attachmentOf(message.raw(), attachmentId)
  if (!bytes) {
    throw new GoogleError({ status: 400, message: 'Invalid attachment token', reason: 'invalidArgument' })
  }
  return answer(context, { size: bytes.length, data: base64url(bytes) })
}
