/** The bytes of a message on their way in: as base64url in JSON, or as an upload (media or multipart). */
import { invalid } from './errors.ts'
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

export function boundaryOf(contentType: string): string | undefined {
  const match = /^multipart\/[^;]*;(?:.*;)?\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType)
  return match?.[1] ?? match?.[2]
}

export type BodyPart = { headers: Record<string, string>; body: Buffer }

const PARTS_MAX = 1_001

/** The parts of a body; forgiving about a missing last boundary. */
export function splitMultipart(body: Buffer, boundary: string): BodyPart[] {
  const mark = Buffer.from(`--${boundary}`, 'latin1')
  const parts: BodyPart[] = []
  let at = body.indexOf(mark)
  while (at >= 0 && parts.length < PARTS_MAX) {
    const after = at + mark.length
    if (body[after] === DASH && body[after + 1] === DASH) break
    const line = body.indexOf(LF, after)
    if (line < 0) break
    const next = body.indexOf(mark, line + 1)
    parts.push(readPart(body.subarray(line + 1, next < 0 ? body.length : withoutBreak(body, next))))
    at = next
  }
  return parts
}

const LF = 10
const CR = 13
const DASH = 45

function withoutBreak(body: Buffer, end: number): number {
  const at = body[end - 1] === LF ? end - 1 : end
  return body[at - 1] === CR ? at - 1 : at
}

function readPart(part: Buffer): BodyPart {
  const { head, body } = cutHead(part)
  return { headers: readHeaders(head), body }
}

/** Head and body at the first empty line. */
export function cutHead(part: Buffer): { head: string; body: Buffer } {
  if (part[0] === LF) return { head: '', body: part.subarray(1) }
  if (part[0] === CR && part[1] === LF) return { head: '', body: part.subarray(2) }
  const crlf = part.indexOf('\r\n\r\n')
  const lf = part.indexOf('\n\n')
  if (crlf < 0 && lf < 0) return { head: part.toString('latin1'), body: part.subarray(part.length) }
  const isCrlf = lf < 0 || (crlf >= 0 && crlf < lf)
  const at = isCrlf ? crlf : lf
  return { head: part.toString('latin1', 0, at), body: part.subarray(at + (isCrlf ? 4 : 2)) }
}

export function readHeaders(head: string): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const line of head.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon > 0) headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim()
  }
  return headers
}
