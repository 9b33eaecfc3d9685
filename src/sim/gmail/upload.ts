/** The bytes of a message on their way in: as base64url in JSON, or as an upload (media or multipart). */
import { invalid } from '../google/errors.ts'
import { boundaryOf, splitMultipart } from '../google/multipart.ts'
import { jsonBody, type RouteContext, stringOf } from './route.ts'

export type Incoming = { raw: Buffer; fields: Record<string, unknown> }

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

function uploaded({ call }: RouteContext): Incoming {
  const type = String(call.headers['content-type'] ?? '')
  if (call.query.get('uploadType') === 'resumable') throw invalid('Resumable uploads are not simulated.')
  if (call.query.get('uploadType') !== 'multipart') return { raw: call.body, fields: {} }
  const boundary = boundaryOf(type)
  const parts = boundary === undefined ? [] : splitMultipart(call.body, boundary)
  const [first, second] = parts
  if (!first || !second) throw invalid('Missing end boundary in multipart body.')
  let fields: unknown
  try {
    fields = JSON.parse(first.body.toString('utf8') || '{}')
  } catch {
    throw invalid('Invalid JSON payload received.')
  }
  return { raw: second.body, fields: (fields ?? {}) as Record<string, unknown> }
}
