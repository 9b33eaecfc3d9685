/** users.drafts. */

import { invalid, notFound } from '../google/errors.ts'
import type { SimAnswer } from '../server.ts'
import type { SimDraft } from './mailbox-contract.ts'
import { changedJson, messageJson, requestedView } from './message-json.ts'
import { checkRecipients, placed } from './message-routes.ts'
import {
  answer,
  jsonBody,
  listRequest,
  noContent,
  type RouteContext,
  type RouteTable,
  stringOf,
} from './route.ts'
import { incomingDraft } from './upload.ts'

export const draftRoutes: RouteTable = {
  'GET drafts': { name: 'drafts.list', need: 'drafts', run: list },
  'GET drafts/*': { name: 'drafts.get', need: 'drafts', run: get },
  'POST drafts': {
    name: 'drafts.create',
    need: 'compose',
    takesUpload: true,
    run: (context) => changed(context, context.mailbox.createDraft(placed(incomingDraft(context)))),
  },
  'PUT drafts/*': {
    name: 'drafts.update',
    need: 'compose',
    takesUpload: true,
    run: (context) =>
      changed(context, context.mailbox.updateDraft(context.ids[0]!, placed(incomingDraft(context)))),
  },
  'POST drafts/send': { name: 'drafts.send', need: 'compose', takesUpload: true, run: send },
  'DELETE drafts/*': {
    name: 'drafts.delete',
    need: 'compose',
    run({ mailbox, ids }) {
      mailbox.deleteDraft(ids[0]!)
      return noContent
    },
  },
}

function list(context: RouteContext): SimAnswer {
  const { drafts, ...rest } = context.mailbox.listDrafts(listRequest(context))
  return answer(context, drafts.length > 0 ? { drafts, ...rest } : rest)
}

function get(context: RouteContext): SimAnswer {
  const draft = context.mailbox.draft(context.ids[0]!)
  if (!draft) throw notFound()
  return answer(context, {
    id: draft.id,
    message: messageJson(draft.message, requestedView(context.call.query)),
  })
}

function send(context: RouteContext): SimAnswer {
  const { isUpload, mailbox } = context
  const hasNewText = isUpload || jsonBody(context).message !== undefined
  const incoming = hasNewText ? incomingDraft(context) : undefined
  const id = incoming?.draftId ?? (isUpload ? undefined : stringOf(jsonBody(context), 'id'))
  if (id === undefined) throw invalid('Missing draft id')
  const draft = mailbox.draft(id)
  if (!draft) throw notFound()
  checkRecipients(incoming?.raw ?? draft.message.raw())
  return answer(context, changedJson(mailbox.sendDraft(id, incoming && placed(incoming))))
}

function changed(context: RouteContext, draft: SimDraft): SimAnswer {
  return answer(context, { id: draft.id, message: changedJson(draft.message) })
}
