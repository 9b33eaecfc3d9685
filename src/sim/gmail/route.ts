/** What a route of the Gmail API is given and what it may answer with. */
import type { FaultPlan } from '../faults.ts'
import { invalid } from '../google/errors.ts'
import { applyFields, type Selection } from '../google/fields.ts'
import type { Uploads } from '../google/uploads.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import type { Mailbox } from './mailbox.ts'
import type { ListRequest } from './mailbox-contract.ts'
import type { Push } from './push.ts'
import type { ScopeNeed } from './scopes.ts'

export type RouteContext = {
  mailbox: Mailbox
  call: SimCall
  /** The `*` of the route's pattern, decoded. */
  ids: readonly string[]
  selection: Selection | undefined
  plan: FaultPlan | undefined
  isUpload: boolean
  uploads: GmailUploads
  /** The end of a resumable upload: what came in its calls. */
  resumed?: Incoming
  push: Push
  /** Ids whose answer has left whole. */
  delivered: Set<string>
  nowMs: number
}

/** What a resumable upload is for. */
export type GmailUploads = Uploads<{ route: Route; ids: readonly string[] }>

/** A message on its way in, and the fields beside its bytes. */
export type Incoming = { raw: Buffer; fields: Record<string, unknown> }

export type Route = {
  name: string
  need: ScopeNeed
  /** It takes a message under /upload, too. */
  takesUpload?: true
  run(context: RouteContext): SimAnswer
}

/** `GET messages/*` → the route. */
export type RouteTable = Readonly<Record<string, Route>>

const EMPTY_PAGE_PREFIX = 'empty-'
const PAGE_MAX = 500

export const noContent: SimAnswer = { status: 204, headers: {}, body: '' }

export function answer({ selection }: RouteContext, value: unknown): SimAnswer {
  return jsonAnswer(applyFields(value, selection))
}

/** The JSON of a request; what it holds is checked by who reads it. */
export function jsonBody({ call }: RouteContext): Record<string, unknown> {
  if (call.body.length === 0) return {}
  try {
    const value: unknown = JSON.parse(call.body.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>
    }
  } catch {
    // Falls through to the same answer as JSON that is no object.
  }
  throw invalid('Invalid JSON payload received.')
}

export function stringsOf(body: Record<string, unknown>, name: string): string[] {
  const value = body[name]
  if (value === undefined || value === null) return []
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value as string[]
  throw invalid(`Invalid value at '${name}'`)
}

export function stringOf(body: Record<string, unknown>, name: string): string | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  throw invalid(`Invalid value at '${name}'`)
}

export function listRequest({ call: { query } }: RouteContext): ListRequest {
  const request: ListRequest = { includeSpamTrash: query.get('includeSpamTrash') === 'true' }
  const q = query.get('q')
  const pageToken = realPageToken(query)
  const maxResults = pageSize(query)
  const labelIds = query.getAll('labelIds')
  if (q) request.q = q
  if (pageToken) request.pageToken = pageToken
  if (maxResults !== undefined) request.maxResults = maxResults
  if (labelIds.length > 0) request.labelIds = labelIds
  return request
}

/** More than the greatest page is that page, as the real service does it. */
export function pageSize(query: URLSearchParams): number | undefined {
  const text = query.get('maxResults')
  if (text === null) return undefined
  const size = Number(text)
  if (!/^\d+$/.test(text) || size < 1)
    throw invalid(`Invalid value at 'max_results' (TYPE_UINT32), "${text}"`)
  return Math.min(size, PAGE_MAX)
}

/** The next page of an empty page is the one that was asked for. */
export function emptyPageToken({ call: { query }, plan }: RouteContext): string | undefined {
  const token = query.get('pageToken') ?? ''
  if (!plan?.emptyPage || token.startsWith(EMPTY_PAGE_PREFIX)) return undefined
  return EMPTY_PAGE_PREFIX + token
}

export function realPageToken(query: URLSearchParams): string | undefined {
  const token = query.get('pageToken') ?? ''
  return (token.startsWith(EMPTY_PAGE_PREFIX) ? token.slice(EMPTY_PAGE_PREFIX.length) : token) || undefined
}
