/**
 * What a search and a snippet look at: headers, the text for people, and the names of attachments.
 * Never fails: what cannot be understood is taken as text or left out.
 */
import { escapeHtml } from '../../base/escape-html.ts'
import {
  decodedBytes,
  decodedHeader,
  decodedQuotedPrintable,
  type Header,
  headerOf,
  headersOf,
  parameterOf,
  splitPart,
  textOfBytes,
} from './message-headers.ts'

const PARTS_MAX = 1_000
const DEPTH_MAX = 400
const TEXT_CHARS_MAX = 200_000
const SNIPPET_CHARS_MAX = 200

export type MessageContent = {
  headers: Header[]
  text: string
  filenames: string[]
  hasAttachment: boolean
}

type Part = { bytes: string; depth: number }

export function parsedContent(raw: Buffer): MessageContent {
  const content: MessageContent = { headers: [], text: '', filenames: [], hasAttachment: false }
  const waiting: Part[] = [{ bytes: raw.toString('latin1'), depth: 0 }]
  for (let seen = 0; waiting.length > 0 && seen < PARTS_MAX; seen += 1) {
    const part = waiting.pop()!
    const { head, body } = splitPart(part.bytes)
    const headers = headersOf(head)
    if (part.depth === 0) content.headers = headers
    const type = headerOf(headers, 'content-type') ?? 'text/plain'
    const boundary = /^\s*multipart\//i.test(type) ? parameterOf(type, 'boundary') : undefined
    if (boundary && part.depth < DEPTH_MAX) {
      const parts = partsBetween(body, boundary).map((bytes) => ({ bytes, depth: part.depth + 1 }))
      waiting.push(...parts.reverse())
    } else {
      readLeaf(content, { headers, type, body })
    }
  }
  return content
}

/** The Date header as milliseconds; undefined when it is missing or means nothing. */
export function dateHeaderMs(raw: Buffer): number | undefined {
  const ms = Date.parse(headerOf(topHeaders(raw), 'date') ?? '')
  return Number.isFinite(ms) ? ms : undefined
}

/** Only the headers: much cheaper than the content of a large message. */
export function topHeaders(raw: Buffer): Header[] {
  const crlf = raw.indexOf('\r\n\r\n')
  const lf = raw.indexOf('\n\n')
  const ends = [crlf, lf].filter((at) => at >= 0)
  const end = ends.length > 0 ? Math.min(...ends) : raw.length
  return headersOf(splitPart(raw.toString('latin1', 0, end + 4)).head)
}

export function snippetOf(raw: Buffer): string {
  const text = parsedContent(raw).text.replaceAll(/\s+/g, ' ').trim()
  // Gmail's snippets are HTML text.
  return escapeHtml([...text.slice(0, SNIPPET_CHARS_MAX * 2)].slice(0, SNIPPET_CHARS_MAX).join(''))
}

function partsBetween(body: string, boundary: string): string[] {
  const parts = `\n${body}`.split(`\n--${boundary}`).slice(1, PARTS_MAX)
  const inner: string[] = []
  for (const part of parts) {
    if (part.startsWith('--')) break
    inner.push(part.replace(/^[ \t]*\r?\n/, '').replace(/\r$/, ''))
  }
  return inner
}

function readLeaf(content: MessageContent, part: { headers: Header[]; type: string; body: string }): void {
  const disposition = headerOf(part.headers, 'content-disposition') ?? ''
  const filename = parameterOf(`;${disposition}`, 'filename') ?? parameterOf(part.type, 'name')
  const isText = /^\s*text\/(?:plain|html)/i.test(part.type)
  if (filename) content.filenames.push(filename)
  const isInlineImage = /^\s*inline/i.test(disposition) || headerOf(part.headers, 'content-id') !== undefined
  if (/^\s*attachment/i.test(disposition) || (filename && !isInlineImage)) content.hasAttachment = true
  if (!isText || filename || content.text.length > TEXT_CHARS_MAX) return
  const text = leafText(part)
  content.text += `${/html/i.test(part.type) ? withoutTags(text) : text}\n`
}

function leafText(part: { headers: Header[]; type: string; body: string }): string {
  const encoding = (headerOf(part.headers, 'content-transfer-encoding') ?? '').trim().toLowerCase()
  const body = part.body.slice(0, TEXT_CHARS_MAX)
  let bytes = body
  if (encoding === 'base64') bytes = Buffer.from(body, 'base64').toString('latin1')
  else if (encoding === 'quoted-printable') bytes = decodedQuotedPrintable(body)
  const charset = parameterOf(part.type, 'charset')
  const decoded = charset && decodedBytes(Buffer.from(bytes, 'latin1'), charset)
  return decoded || textOfBytes(bytes)
}

function withoutTags(html: string): string {
  return withoutElement(withoutElement(html, 'script'), 'style')
    .replaceAll(/<[^<>]*>/g, ' ')
    .replaceAll('&nbsp;', ' ')
    .replaceAll('&amp;', '&')
}

/** By hand and in one pass: a pattern would take for ever on thousands of elements that never close. */
function withoutElement(html: string, name: string): string {
  const lower = html.toLowerCase()
  let kept = ''
  let at = 0
  for (;;) {
    const open = lower.indexOf(`<${name}`, at)
    const close = open < 0 ? -1 : lower.indexOf(`</${name}`, open)
    if (close < 0) return kept + html.slice(at)
    kept += `${html.slice(at, open)} `
    at = close
  }
}

/** A header's values for people, joined. */
export function shownHeader(headers: readonly Header[], name: string): string {
  return headers
    .filter((header) => header.name === name)
    .map(({ value }) => decodedHeader(value))
    .join(', ')
}
