/**
 * A message as JSON in the four formats. The raw one is the hot path of every download: its bytes become
 * base64 once, and nothing walks over that text again.
 */

import { invalid } from '../google/errors.ts'
import { applyFields, type Selection, selects } from '../google/fields.ts'
import type { SimAnswer } from '../server.ts'
import type { SimMessage } from './mailbox-contract.ts'
import { snippetOf } from './message-content.ts'
import { base64url, mimeTypeOf, payloadHeaders, payloadOf } from './payload.ts'

export type MessageFormat = 'minimal' | 'full' | 'raw' | 'metadata'
export type MessageView = { format: MessageFormat; headers: readonly string[] }

const JSON_HEADERS = { 'content-type': 'application/json; charset=UTF-8' }
/** The text of a snippet stands near the beginning; looking through attachments would cost most of a get. */
const SNIPPET_BYTES = 8 * 1024
const NOT_ASCII = /[\u0080-\uffff]/g

export function requestedView(query: URLSearchParams): MessageView {
  const format = (query.get('format') ?? 'full').toLowerCase()
  if (format !== 'minimal' && format !== 'full' && format !== 'raw' && format !== 'metadata') {
    throw invalid(`Invalid value at 'format' (type.googleapis.com/gmail.v1.Format), "${format}"`)
  }
  return { format, headers: query.getAll('metadataHeaders') }
}

export function messageAnswer(message: SimMessage, view: MessageView, selection?: Selection): SimAnswer {
  if (view.format !== 'raw') {
    const shown = applyFields(messageJson(message, view), selection)
    return { status: 200, headers: JSON_HEADERS, body: Buffer.from(JSON.stringify(shown)) }
  }
  const raw = message.raw()
  const head = asciiJson(shortFields(message, raw, selection))
  if (!selects(selection, 'raw')) return { status: 200, headers: JSON_HEADERS, body: head }
  const start = head === '{}' ? '{"raw":"' : `${head.slice(0, -1)},"raw":"`
  return { status: 200, headers: JSON_HEADERS, body: `${start}${base64url(raw)}"}` }
}

export function messageJson(message: SimMessage, { format, headers }: MessageView): Record<string, unknown> {
  const raw = message.raw()
  const json = shortFields(message, raw)
  if (format === 'raw') json.raw = base64url(raw)
  if (format === 'full') json.payload = payloadOf(raw)
  if (format === 'metadata') {
    const all = payloadHeaders(raw)
    const shown = headers.length > 0 ? payloadHeaders(raw, headers) : all
    json.payload = { partId: '', mimeType: mimeTypeOf(all), headers: shown }
  }
  return json
}

/** After a change the service tells no more than this. */
export function changedJson(message: SimMessage): Record<string, unknown> {
  return { id: message.id, threadId: message.threadId, labelIds: [...message.labelIds] }
}

/** What all formats have. The snippet costs a look into the body, so only who wants it pays for it. */
function shortFields(message: SimMessage, raw: Buffer, selection?: Selection): Record<string, unknown> {
  const json: Record<string, unknown> = {}
  if (selects(selection, 'id')) json.id = message.id
  if (selects(selection, 'threadId')) json.threadId = message.threadId
  if (selects(selection, 'labelIds') && message.labelIds.size > 0) json.labelIds = [...message.labelIds]
  if (selects(selection, 'snippet')) json.snippet = snippetOf(raw.subarray(0, SNIPPET_BYTES))
  if (selects(selection, 'historyId')) json.historyId = String(message.historyId)
  if (selects(selection, 'internalDate')) json.internalDate = String(message.internalMs)
  if (selects(selection, 'sizeEstimate')) json.sizeEstimate = raw.length
  return json
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    NOT_ASCII,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
