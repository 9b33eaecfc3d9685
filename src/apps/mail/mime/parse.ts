/**
 * The bytes of a message, taken apart. Never fails and never takes more than linear time: mail is written by
 * strangers, and one that cannot be read must not stop the others.
 */
import type { Address } from '../message.ts'
import { parseAddresses } from './addresses.ts'
import { readBodies, type TextPiece } from './bodies.ts'
import { decodeCharset } from './charsets.ts'
import { parseDate } from './dates.ts'
import { decodeTransfer } from './decode.ts'
import { decodeWords, headerText } from './encoded-words.ts'
import { type HeaderField, scanHeaders, unfoldedValue } from './headers.ts'
import {
  ATTACHMENTS_MAX,
  clip,
  collectProblems,
  MESSAGE_ID_CHARS_MAX,
  NAME_CHARS_MAX,
  type Problems,
  plainLine,
  quoted,
  REFERENCES_MAX,
  SUBJECT_CHARS_MAX,
  TEXT_PART_BYTES_MAX,
} from './limits.ts'
import type { ParsedAttachment, ParsedMessage } from './parsed.ts'
import { type Part, partPath, scanStructure } from './structure.ts'
import { snippet } from './text.ts'

/** Where HTML says its charset, if it does. */
const META_BYTES_MAX = 2_048

export const PARSER_FAILED = 'the message could not be taken apart'

export function parseMessage(bytes: Uint8Array): ParsedMessage {
  const problems = collectProblems()
  try {
    return parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), problems)
  } catch (error) {
    // A fault of the parser, or bytes beyond what a string can hold: the mail is kept whatever it is.
    problems.add(`${PARSER_FAILED}: ${error instanceof Error ? plainLine(error.message) : 'unknown'}`)
    return { ...EMPTY_MESSAGE, problems: [`${problems.list.at(-1)}`] }
  }
}

/** Of a message about which nothing could be read. */
export const EMPTY_MESSAGE: ParsedMessage = {
  messageId: null,
  inReplyTo: null,
  references: [],
  headerMs: null,
  subject: '',
  from: [],
  replyTo: [],
  to: [],
  cc: [],
  bcc: [],
  headers: [],
  text: '',
  unshown: '',
  html: null,
  snippet: '',
  attachments: [],
  problems: [],
}

function parse(raw: Buffer, problems: Problems): ParsedMessage {
  const start = firstLine(raw)
  const { fields } = scanHeaders({ raw, start, end: raw.length, problems })
  if (fields.length === 0) problems.add('the message has no headers')
  const parts = scanStructure(raw, start, problems)
  const charset = parts.find((part) => part.parameters.has('charset'))?.parameters.get('charset')
  const head = new Head(raw, fields, charset, problems)
  const content = readParts(raw, parts, problems)
  const date = head.value('date')
  const headerMs = date === null ? null : parseDate(date)
  if (date !== null && headerMs === null) problems.add(`the date ${quoted(date)} cannot be read`)
  return {
    messageId: messageIds(head.value('message-id'), 1)[0] ?? null,
    inReplyTo: messageIds(head.value('in-reply-to'), 1)[0] ?? null,
    references: messageIds(head.value('references'), REFERENCES_MAX),
    headerMs,
    subject: clip(plainLine(decodeWords(head.value('subject') ?? '')).trim(), SUBJECT_CHARS_MAX),
    from: head.addresses('from'),
    replyTo: head.addresses('reply-to'),
    to: head.addresses('to'),
    cc: head.addresses('cc'),
    bcc: head.addresses('bcc'),
    headers: head.all(),
    ...content,
    snippet: snippet(content.text),
    problems: problems.list,
  }
}

/** Blank lines before the headers are none that end them. */
function firstLine(raw: Buffer): number {
  let at = 0
  while (at < raw.length && (raw[at] === 10 || raw[at] === 13)) at++
  // A byte order mark, left by an editor.
  if (raw[at] === 0xef && raw[at + 1] === 0xbb && raw[at + 2] === 0xbf) at += 3
  return at
}

/** The header fields as text, each unfolded once. */
class Head {
  readonly #raw: Buffer
  readonly #fields: readonly HeaderField[]
  readonly #values: string[]
  readonly #problems: Problems

  constructor(raw: Buffer, fields: readonly HeaderField[], charset: string | undefined, problems: Problems) {
    this.#raw = raw
    this.#fields = fields
    this.#values = fields.map((field) => headerText(unfoldedValue(raw, field), charset))
    this.#problems = problems
  }

  /** Of the first field of that name. */
  value(name: string): string | null {
    const place = this.#fields.findIndex((field) => field.name === name)
    return place === -1 ? null : this.#values[place]!
  }

  /** Of all fields of that name: there should be one, and there are mails with more. */
  addresses(name: string): Address[] {
    const values = this.#values.filter((_, place) => this.#fields[place]!.name === name)
    return values.length === 0 ? [] : parseAddresses(values.join(', '), this.#problems)
  }

  all(): { name: string; value: string }[] {
    return this.#fields.map((field, place) => ({
      name: this.#raw.toString('latin1', field.start, field.start + field.name.length),
      value: plainLine(decodeWords(this.#values[place]!)),
    }))
  }
}

/** `<a@b> <c@d>`; one without brackets counts where it is alone. */
function messageIds(value: string | null, max: number): string[] {
  if (value === null) return []
  const ids: string[] = []
  let at = 0
  while (ids.length < max) {
    const open = value.indexOf('<', at)
    const close = open === -1 ? -1 : value.indexOf('>', open)
    if (close === -1) break
    const id = plainLine(value.slice(open + 1, close)).replaceAll(' ', '')
    if (id !== '' && id.length <= MESSAGE_ID_CHARS_MAX) ids.push(`<${id}>`)
    at = close + 1
  }
  if (ids.length > 0) return ids
  const bare = plainLine(value).trim()
  return bare.includes('@') && !/[\s<>]/.test(bare) && bare.length <= MESSAGE_ID_CHARS_MAX
    ? [`<${bare}>`]
    : []
}

type Content = Pick<ParsedMessage, 'text' | 'unshown' | 'html' | 'attachments'>

function readParts(raw: Buffer, parts: readonly Part[], problems: Problems): Content {
  const attachments: ParsedAttachment[] = []
  const pieces: TextPiece[] = []
  for (const part of parts) {
    const { body, isAttachment } = roleOf(part)
    if (body) pieces.push({ part, isHtml: body === 'html', text: partText(raw, part, problems) })
    if (!isAttachment) continue
    if (attachments.length < ATTACHMENTS_MAX) attachments.push(attachmentOf(raw, part, problems))
    else problems.add(`the message has more than ${ATTACHMENTS_MAX} attachments; the rest is not listed`)
  }
  const { text, unshown, isCut } = readBodies(pieces)
  if (isCut) problems.add('the text is longer than 1,000,000 characters; the rest is not searched')
  return { text, unshown, html: pieces.find((piece) => piece.isHtml)?.text ?? null, attachments }
}

/** `body`: what it says is read as text or as HTML. A part may be that and an attachment. */
type Role = { body: 'text' | 'html' | null; isAttachment: boolean }

const NONE: Role = { body: null, isAttachment: false }
const ATTACHMENT: Role = { body: null, isAttachment: true }
const TEXT: Role = { body: 'text', isAttachment: false }

const READ_AS_TEXT = new Set([
  'message/delivery-status',
  'message/disposition-notification',
  'text/rfc822-headers',
])
const CALENDAR = 'text/calendar'
const CARDS = new Set(['text/vcard', 'text/x-vcard', 'text/directory'])

function roleOf(part: Part): Role {
  if (part.isOpaque) return NONE
  // Of messages within messages, the outermost is listed: the others are part of it.
  if (part.kind === 'message') return part.parent && part.message === null ? ATTACHMENT : NONE
  // A multipart without parts is text that was labelled wrongly.
  if (part.type.startsWith('multipart/')) return part.children === 0 ? TEXT : NONE
  if (part.disposition === 'attachment') return ATTACHMENT
  const body = bodyRole(part)
  if (!hasName(part))
    return body ? { body, isAttachment: false } : isAlternativeForm(part) ? NONE : ATTACHMENT
  // What is shown in its place is read there, whether it has a name or not; it can be saved all the same.
  const isShown = part.disposition === 'inline' || part.type === 'text/plain' || body === 'html'
  return { body: isShown && !CARDS.has(part.type) ? body : null, isAttachment: true }
}

function bodyRole(part: Part): Role['body'] {
  if (part.type === 'text/html' || part.type === 'application/xhtml+xml') return 'html'
  if (part.type === 'text/plain' || READ_AS_TEXT.has(part.type)) return 'text'
  const isText = part.type.startsWith('text/') && part.type !== CALENDAR
  return isText && !isAlternativeForm(part) ? 'text' : null
}

/** Another form of a text that is there in plain too, such as AMP. */
function isAlternativeForm(part: Part): boolean {
  return part.alternative !== null && part.type.startsWith('text/') && part.type !== CALENDAR
}

function hasName(part: Part): boolean {
  return part.dispositionParameters.has('filename') || part.parameters.has('name')
}

/** The text of a part, as it came. */
function partText(raw: Buffer, part: Part, problems: Problems): string {
  // Quoted-printable takes three bytes for one at most.
  const end = Math.min(part.bodyEnd, part.bodyStart + 3 * TEXT_PART_BYTES_MAX)
  const decoded = decodeTransfer(raw.subarray(part.bodyStart, end), part.encoding)
  if (decoded.problem) problems.add(`the part ${partPath(part)} ${decoded.problem}`)
  const isCut = end < part.bodyEnd || decoded.content.length > TEXT_PART_BYTES_MAX
  if (isCut)
    problems.add(`the text of the part ${partPath(part)} is longer than 4 MB; the rest is not searched`)
  const bytes = decoded.content.subarray(0, TEXT_PART_BYTES_MAX)
  const charset = part.parameters.get('charset') ?? ''
  const { text, problem } = decodeCharset(
    bytes,
    charset,
    part.type === 'text/html' ? htmlCharset(bytes) : undefined,
  )
  // A cut goes through a character now and then: that is no fault of the mail.
  if (problem && !isCut) {
    problems.add(`the part ${partPath(part)} ${problem}${charset === '' ? '' : `: ${quoted(charset)}`}`)
  }
  return text
}

/** What HTML says of itself, where the mail says nothing. */
function htmlCharset(bytes: Buffer): string | undefined {
  const start = bytes.toString('latin1', 0, META_BYTES_MAX)
  return /<meta[^>]{0,300}\bcharset\s*=\s*["']?([\w:.-]{1,40})/i.exec(start)?.[1]
}

function attachmentOf(raw: Buffer, part: Part, problems: Problems): ParsedAttachment {
  const decoded = decodeTransfer(raw.subarray(part.bodyStart, part.bodyEnd), part.encoding)
  if (decoded.problem) problems.add(`the part ${partPath(part)} ${decoded.problem}`)
  const name = part.dispositionParameters.get('filename') ?? part.parameters.get('name') ?? ''
  return {
    name: clip(plainLine(name).trim(), NAME_CHARS_MAX),
    type: clip(plainLine(part.type), NAME_CHARS_MAX),
    contentId: part.contentId,
    isInline:
      part.disposition === 'inline' ||
      (part.disposition === '' && (part.contentId !== null || part.type === CALENDAR)),
    encoding: part.encoding === '' ? '7bit' : clip(plainLine(part.encoding), NAME_CHARS_MAX),
    start: part.bodyStart,
    end: part.bodyEnd,
    content: decoded.content,
  }
}
