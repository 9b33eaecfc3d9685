/**
 * The MIME tree of a message as `format=full` shows it. On purpose not the parser of the mail archive: what
 * one of the two gets wrong, the other must be able to show.
 */
import { decodedHeader, decodedQuotedPrintable, parameterOf, textOfBytes } from './message-headers.ts'

export type PayloadHeader = { name: string; value: string }
export type Payload = {
  partId: string
  mimeType: string
  filename: string
  headers: PayloadHeader[]
  body: { size: number; data?: string; attachmentId?: string }
  parts?: Payload[]
}

const PARTS_MAX = 1_000
const DEPTH_MAX = 100
const HEADER_CHARS_MAX = 512 * 1024
const ATTACHMENT_PREFIX = 'ANGjdJ'

type Budget = { parts: number }

export function payloadOf(raw: Buffer): Payload {
  return readPart(raw.toString('latin1'), { partId: '', depth: 0, budget: { parts: PARTS_MAX } })
}

/** Only the headers of the whole message, in their order; `names` in any letters. */
export function payloadHeaders(raw: Buffer, names: readonly string[] = []): PayloadHeader[] {
  const headers = readHeaders(cutHead(raw.toString('latin1', 0, HEADER_CHARS_MAX)).head)
  if (names.length === 0) return headers
  const wanted = new Set(names.map((name) => name.toLowerCase()))
  return headers.filter(({ name }) => wanted.has(name.toLowerCase()))
}

export function mimeTypeOf(headers: readonly PayloadHeader[]): string {
  const type = headerValue(headers, 'content-type') ?? ''
  const name = type.split(';')[0]!.trim().toLowerCase()
  return /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(name) ? name : 'text/plain'
}

/** The decoded bytes of an attachment; undefined when the message has none of that id. */
export function attachmentOf(raw: Buffer, attachmentId: string): Buffer | undefined {
  if (!attachmentId.startsWith(ATTACHMENT_PREFIX)) return undefined
  const partId = Buffer.from(attachmentId.slice(ATTACHMENT_PREFIX.length), 'base64url').toString('latin1')
  if (!/^[\d.]*$/.test(partId)) return undefined
  let part = raw.toString('latin1')
  for (const step of partId === '' ? [] : partId.split('.').slice(0, DEPTH_MAX)) {
    const inner = innerParts(part)[Number(step)]
    if (inner === undefined) return undefined
    part = inner
  }
  const { head, body } = cutHead(part)
  return decodeBody(readHeaders(head), body)
}

export function base64url(bytes: Buffer): string {
  const text = bytes.toString('base64url')
  const rest = text.length % 4
  // The real service pads.
  return rest === 0 ? text : text + '='.repeat(4 - rest)
}

function readPart(text: string, at: { partId: string; depth: number; budget: Budget }): Payload {
  const { head, body } = cutHead(text)
  const headers = readHeaders(head)
  const mimeType = mimeTypeOf(headers)
  const filename = filenameOf(headers)
  const payload: Payload = { partId: at.partId, mimeType, filename, headers, body: { size: 0 } }
  const inner = at.depth < DEPTH_MAX ? innerParts(text) : []
  if (inner.length > 0) {
    payload.parts = []
    for (const [index, part] of inner.entries()) {
      if (at.budget.parts-- <= 0) break
      const partId = at.partId === '' ? String(index) : `${at.partId}.${index}`
      payload.parts.push(readPart(part, { partId, depth: at.depth + 1, budget: at.budget }))
    }
    if (mimeType !== 'message/rfc822') return payload
  }
  const bytes = decodeBody(headers, body)
  payload.body.size = bytes.length
  if (filename !== '' || !mimeType.startsWith('text/')) {
    payload.body.attachmentId = ATTACHMENT_PREFIX + Buffer.from(at.partId, 'latin1').toString('base64url')
  } else if (bytes.length > 0) payload.body.data = base64url(bytes)
  return payload
}

/** What a multipart or a forwarded message holds; nothing where it is a leaf. */
function innerParts(text: string): string[] {
  const { head, body } = cutHead(text)
  const headers = readHeaders(head)
  const mimeType = mimeTypeOf(headers)
  if (mimeType === 'message/rfc822') return [decodeBody(headers, body).toString('latin1')]
  if (!mimeType.startsWith('multipart/')) return []
  const boundary = parameterOf(headerValue(headers, 'content-type') ?? '', 'boundary')
  return boundary ? splitAtBoundary(body, boundary) : []
}

function splitAtBoundary(body: string, boundary: string): string[] {
  const parts: string[] = []
  const mark = `--${boundary}`
  let from = -1
  let at = body.startsWith(mark) ? 0 : body.indexOf(`\n${mark}`) + 1
  while ((at > 0 || body.startsWith(mark)) && parts.length < PARTS_MAX) {
    if (from >= 0) parts.push(withoutLastBreak(body.slice(from, at)))
    const line = body.indexOf('\n', at)
    if (body.startsWith('--', at + mark.length) || line < 0) return parts
    from = line + 1
    const next = body.indexOf(`\n${mark}`, line)
    if (next < 0) break
    at = next + 1
  }
  // A part that nobody closed goes to the end.
  if (from >= 0 && parts.length < PARTS_MAX) parts.push(body.slice(from))
  return parts
}

/** The line break before a boundary belongs to the boundary. */
function withoutLastBreak(text: string): string {
  if (text.endsWith('\r\n')) return text.slice(0, -2)
  return text.endsWith('\n') ? text.slice(0, -1) : text
}

function cutHead(text: string): { head: string; body: string } {
  if (text.startsWith('\n')) return { head: '', body: text.slice(1) }
  if (text.startsWith('\r\n')) return { head: '', body: text.slice(2) }
  const lf = text.indexOf('\n\n')
  const crlf = text.indexOf('\n\r\n')
  if (lf < 0 && crlf < 0) return { head: text, body: '' }
  const isLf = crlf < 0 || (lf >= 0 && lf < crlf)
  const at = isLf ? lf : crlf
  return { head: text.slice(0, at), body: text.slice(at + (isLf ? 2 : 3)) }
}

function readHeaders(head: string): PayloadHeader[] {
  const headers: PayloadHeader[] = []
  const text = head.length > HEADER_CHARS_MAX ? head.slice(0, HEADER_CHARS_MAX) : head
  for (const line of text.split(/\r?\n/)) {
    if (/^[ \t]/.test(line)) {
      const last = headers.at(-1)
      if (last) last.value += ` ${line.trim()}`
      continue
    }
    const colon = line.indexOf(':')
    if (colon > 0) headers.push({ name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() })
  }
  for (const header of headers) header.value = decodedHeader(header.value)
  return headers
}

function headerValue(headers: readonly PayloadHeader[], name: string): string | undefined {
  return headers.find((header) => header.name.toLowerCase() === name)?.value
}

function filenameOf(headers: readonly PayloadHeader[]): string {
  const disposition = headerValue(headers, 'content-disposition') ?? ''
  const type = headerValue(headers, 'content-type') ?? ''
  return parameterOf(disposition, 'filename') ?? parameterOf(type, 'name') ?? ''
}

/** Text comes out as UTF-8, whatever charset it was in, as Gmail does it. */
function decodeBody(headers: readonly PayloadHeader[], body: string): Buffer {
  const encoding = (headerValue(headers, 'content-transfer-encoding') ?? '').trim().toLowerCase()
  const bytes = decodeTransfer(body, encoding)
  const type = headerValue(headers, 'content-type') ?? ''
  if (!mimeTypeOf(headers).startsWith('text/') || filenameOf(headers) !== '') return bytes
  const charset = parameterOf(type, 'charset')?.toLowerCase()
  if (charset === undefined || charset === 'utf-8' || charset === 'us-ascii') return bytes
  try {
    return Buffer.from(new TextDecoder(charset).decode(bytes))
  } catch {
    // A charset nobody knows: as good a guess as any.
    return Buffer.from(textOfBytes(bytes.toString('latin1')))
  }
}

function decodeTransfer(body: string, encoding: string): Buffer {
  if (encoding === 'base64') return Buffer.from(body, 'base64')
  if (encoding !== 'quoted-printable') return Buffer.from(body, 'latin1')
  return Buffer.from(decodedQuotedPrintable(body), 'latin1')
}
