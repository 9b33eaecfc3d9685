/** users.getProfile, users.history and users.watch/stop. */

import { invalid, notFound } from '../google/errors.ts'
import type { SimAnswer } from '../server.ts'
import type { HistoryRecord, HistoryRequest, HistoryType } from './mailbox-contract.ts'
import {
  answer,
  emptyPageToken,
  jsonBody,
  noContent,
  pageSize,
  type RouteContext,
  type RouteTable,
  realPageToken,
  stringOf,
  stringsOf,
} from './route.ts'

export const accountRoutes: RouteTable = {
  'GET profile': { name: 'getProfile', need: 'read', run: profile },
  'GET history': { name: 'history.list', need: 'read', run: history },
  'POST watch': { name: 'watch', need: 'read', run: watch },
  'POST stop': {
    name: 'stop',
    need: 'read',
    run({ mailbox, push }) {
      push.stop(mailbox.address)
      return noContent
    },
  },
}

const HISTORY_TYPES: readonly string[] = ['messageAdded', 'messageDeleted', 'labelAdded', 'labelRemoved']
const UINT64_MAX = 2n ** 64n - 1n

function profile(context: RouteContext): SimAnswer {
  const { historyId, ...rest } = context.mailbox.profile()
  return answer(context, { ...rest, historyId: String(historyId) })
}

function history(context: RouteContext): SimAnswer {
  const request = historyRequest(context)
  const nextPageToken = emptyPageToken(context)
  if (nextPageToken !== undefined) {
    return answer(context, { nextPageToken, historyId: String(context.mailbox.historyId) })
  }
  const page = context.mailbox.history(request)
  if (page === 'expired') throw notFound()
  const body: Record<string, unknown> = {}
  if (page.history.length > 0) body.history = page.history.map(recordJson)
  if (page.nextPageToken !== undefined) body.nextPageToken = page.nextPageToken
  const found = answer(context, { ...body, historyId: String(page.historyId) })
  const { delivered } = context
  found.onSent = () => {
    for (const { messages } of page.history) for (const { id } of messages) delivered.add(id)
  }
  return found
}

function historyRequest({ call: { query } }: RouteContext): HistoryRequest {
  const start = query.get('startHistoryId')
  if (start === null) throw invalid('Missing required parameter: startHistoryId')
  if (!/^\d{1,20}$/.test(start) || BigInt(start) > UINT64_MAX) {
    throw invalid(`Invalid value at 'start_history_id' (TYPE_UINT64), "${start}"`)
  }
  const request: HistoryRequest = { startHistoryId: BigInt(start) }
  const pageToken = realPageToken(query)
  const maxResults = pageSize(query)
  const labelId = query.get('labelId')
  const types = query.getAll('historyTypes')
  const unknown = types.find((type) => !HISTORY_TYPES.includes(type))
  if (unknown !== undefined) throw invalid(`Invalid value at 'history_types', "${unknown}"`)
  if (pageToken) request.pageToken = pageToken
  if (maxResults !== undefined) request.maxResults = maxResults
  if (labelId) request.labelId = labelId
  if (types.length > 0) request.historyTypes = types as HistoryType[]
  return request
}

function recordJson({ id, ...record }: HistoryRecord): Record<string, unknown> {
  return { id: String(id), ...record }
}

function watch(context: RouteContext): SimAnswer {
  const body = jsonBody(context)
  const topicName = stringOf(body, 'topicName') ?? ''
  if (!/^projects\/[^/]+\/topics\/[^/]+$/.test(topicName)) {
    throw invalid('Invalid topicName does not match projects/*/topics/*')
  }
  const { mailbox, push } = context
  const expiresAtMs = push.watch(mailbox.address, { topicName, labelIds: stringsOf(body, 'labelIds') })
  return answer(context, { historyId: String(mailbox.historyId), expiration: String(expiresAtMs) })
}
