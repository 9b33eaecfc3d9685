/** The bytes of a message on their way in: as base64url in JSON, or as an upload (media, multipart or resumable). */
import { invalid, notFound } from '../google/errors.ts'
import { parseFields } from '../google/fields.ts'
import { boundaryOf, splitMultipart } from '../google/multipart.ts'
import type { SimAnswer } from '../server.ts'
import { type Incoming, jsonBody, type Route, type RouteContext, stringOf } from './route.ts'

/** The message itself, or `message` of a draft; `fields` are those beside the bytes. */
export function incomingMessage(context: RouteContext): Incoming {
  if (!context.isUpload) return fromFields(jsonBody(context))
  return uploaded(context)
}

export function incomingDraft(context: RouteContext): Incoming & { draftId?: string } {
  const { raw, fields } = context.isUpload ? uploaded(context) : { raw: undefined, fields: jsonBody(context) }
  const draftId = stringOf(fields, 'id')
  const message = (fields.message ?? {}) as Record<string, unknown>
  const incoming = raw ? { raw, fields: message } : fromFields(message)
  return draftId === undefined ? incoming : { ...incoming, draftId }
}

function fromFields(fields: Record<string, unknown>): Incoming {
  const text = stringOf(fields, 'raw')
  if (!text)
    throw invalid("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
  if (!/^[\w+/-]*={0,2}$/.test(text)) throw invalid('Invalid value for ByteString: raw')
  return { raw: Buffer.from(text, 'base64url'), fields }
}

function uploaded({ call, resumed }: RouteContext): Incoming {
  if (resumed) return resumed
  const type = String(call.headers['content-type'] ?? '')
  if (call.query.get('uploadType') !== 'multipart') return { raw: call.body, fields: {} }
  const boundary = boundaryOf(type)
  const parts = boundary === undefined ? [] : splitMultipart(call.body, boundary)
  const [first, second] = parts
  if (!first || !second) throw invalid('Missing end boundary in multipart body.')
  return { raw: second.body, fields: metadataOf(first.body) }
}

function metadataOf(json: Buffer): Record<string, unknown> {
  try {
    return (JSON.parse(json.toString('utf8') || '{}') ?? {}) as Record<string, unknown>
  } catch {
    throw invalid('Invalid JSON payload received.')
  }
}

/** The first call of a resumable upload. */
export function isResumable({ isUpload, call }: { isUpload: boolean; call: RouteContext['call'] }): boolean {
  return isUpload && call.query.get('uploadType') === 'resumable' && !call.query.has('upload_id')
}

/** The calls that bring the bytes of a resumable upload; with the last of them the route runs that it began with. */
export const resumeRoutes: Readonly<Record<'messages' | 'drafts', Route>> = {
  messages: { name: 'messages.upload', need: 'upload', run: resume },
  drafts: { name: 'drafts.upload', need: 'upload', run: resume },
}

function resume(context: RouteContext): SimAnswer {
  const { uploads, call, mailbox } = context
  const session = uploads.find(call, mailbox.address)
  if (!session) throw notFound()
  const { route, ids } = session.purpose
  return uploads.resume(session, call, (raw) =>
    route.run({
      ...context,
      ids,
      call: { ...call, query: session.query },
      selection: parseFields(session.query.get('fields')),
      resumed: { raw, fields: metadataOf(session.metadata) },
    }),
  )
}
