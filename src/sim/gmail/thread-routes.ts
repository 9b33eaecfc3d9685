/** users.threads. */

import { notFound } from '../google/errors.ts'
import type { SimAnswer } from '../server.ts'
import type { SimThread } from './mailbox-contract.ts'
import { changedJson, messageJson, requestedView } from './message-json.ts'
import { labelChange } from './message-routes.ts'
import { answer, listRequest, noContent, type RouteContext, type RouteTable } from './route.ts'

export const threadRoutes: RouteTable = {
  'GET threads': { name: 'threads.list', need: 'read', run: list },
  'GET threads/*': { name: 'threads.get', need: 'read', run: get },
  'POST threads/*/modify': {
    name: 'threads.modify',
    need: 'modify',
    run: (context) => changed(context, context.mailbox.modifyThread(context.ids[0]!, labelChange(context))),
  },
  'POST threads/*/trash': {
    name: 'threads.trash',
    need: 'modify',
    run: (context) => changed(context, context.mailbox.trashThread(context.ids[0]!)),
  },
  'POST threads/*/untrash': {
    name: 'threads.untrash',
    need: 'modify',
    run: (context) => changed(context, context.mailbox.untrashThread(context.ids[0]!)),
  },
  'DELETE threads/*': {
    name: 'threads.delete',
    need: 'delete',
    run({ mailbox, ids }) {
      mailbox.deleteThread(ids[0]!)
      return noContent
    },
  },
}

function list(context: RouteContext): SimAnswer {
  const { threads, ...rest } = context.mailbox.listThreads(listRequest(context))
  const shown = threads.map((thread) => ({ ...thread, historyId: String(thread.historyId) }))
  return answer(context, shown.length > 0 ? { threads: shown, ...rest } : rest)
}

function get(context: RouteContext): SimAnswer {
  const thread = context.mailbox.thread(context.ids[0]!)
  if (!thread) throw notFound()
  const view = requestedView(context.call.query)
  const messages = thread.messages.map((message) => messageJson(message, view))
  return answer(context, { id: thread.id, historyId: String(thread.historyId), messages })
}

function changed(context: RouteContext, thread: SimThread): SimAnswer {
  return answer(context, { id: thread.id, messages: thread.messages.map(changedJson) })
}
