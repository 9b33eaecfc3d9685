/**
 * A message of Gmail as a person would see it: the words of its HTML, or its plain text where it has none, without
 * what is hidden. Where both exist, the HTML is what Gmail shows, so that the plain text is not read: an order that
 * stands only there was never seen by the person who is said to have got it.
 */
import { isUtf8 } from 'node:buffer'
import { cutText, oneLine } from '../../../search/extract/clean-text.ts'
import { decoderOf } from '../../../search/extract/decode.ts'
import type { VisibleMessage } from '../contract.ts'
import { mailboxesOf } from './addresses.ts'
import { HIDDEN_CHARS_MAX, HTML_CHARS_MAX, type HtmlText, htmlText, TEXT_CHARS_MAX } from './html.ts'
import { spelledByTags, withoutInvisible } from './invisible.ts'
import { isForwardSubject, withoutQuotes } from './quotes.ts'

/** What is read of a message: as Gmail's client gives it. */
export type MessageParts = {
  id: string
  threadId: string
  labelIds: readonly string[]
  internalMs: number
  headers: readonly (readonly [name: string, value: string])[]
  parts: readonly {
    mimeType: string
    fileName: string
    headers: readonly (readonly [name: string, value: string])[]
    bytes: Uint8Array | undefined
    sizeBytes: number
  }[]
}

const SUBJECT_CHARS_MAX = 500
const HEADERS_MAX = 200
const HEADER_CHARS_MAX = 4_000
const PARTS_MAX = 100
const FILE_NAME_CHARS_MAX = 200
/** Lines without a word, after which nobody looks further down. */
const GAP_LINES_MAX = 50
const GAP_BLANKS_MAX = 2_000
/** Of what stands behind such a gap, and of the gap itself. */
const HIDDEN_GAP_MAX = 10_000

export function visibleMessage(mail: MessageParts): VisibleMessage {
  const headers = mail.headers
    .slice(0, HEADERS_MAX)
    .map(([name, value]) => [name.toLowerCase(), value.slice(0, HEADER_CHARS_MAX)] as const)
  const header = (name: string): string => headers.find(([one]) => one === name)?.[1] ?? ''
  const hidden = new Set<string>()
  const say = (kinds: readonly string[]): void => kinds.forEach((kind) => void hidden.add(kind))
  const subject = withoutInvisible(header('subject'))
  say(subject.found)
  const body = bodyOf(mail.parts.slice(0, PARTS_MAX))
  say(body.hidden)
  const shown = withoutInvisible(body.text)
  say(shown.found)
  const near = withoutFar(shown.text, hidden)
  const text = cutText(near, TEXT_CHARS_MAX).trim()
  const hiddenTexts = [
    spelledByTags(header('subject')),
    body.hiddenText,
    spelledByTags(body.text),
    shown.text.slice(near.length, near.length + HIDDEN_GAP_MAX),
  ]
  const subjectLine = oneLine(subject.text, SUBJECT_CHARS_MAX)
  return {
    id: mail.id,
    threadId: mail.threadId,
    messageId: idOf(header('message-id')),
    references: referencesOf(header('references') || header('in-reply-to')),
    from: mailboxesOf(header('from'))[0] ?? { name: '', address: '' },
    replyTo: mailboxesOf(header('reply-to')),
    to: mailboxesOf(header('to')),
    cc: mailboxesOf(header('cc')),
    subject: subjectLine,
    sentAtMs: mail.internalMs,
    labelIds: mail.labelIds,
    text,
    newText: withoutQuotes(text, { isForward: isForwardSubject(subjectLine) }),
    hidden: [...hidden].sort(),
    hiddenText: oneLine(withoutInvisible(hiddenTexts.join(' ')).text, HIDDEN_CHARS_MAX),
    attachments: attachmentsOf(mail.parts),
    headers,
    isDraft: mail.labelIds.includes('DRAFT'),
    isSent: mail.labelIds.includes('SENT'),
  }
}

const MESSAGE_ID = /<[\x21-\x3b\x3d\x3f-\x7e]{1,996}>/g
const REFERENCES_MAX = 50

function idOf(text: string): string {
  return text.match(MESSAGE_ID)?.[0] ?? ''
}

/** Only what has the form of ids: nothing else may stand in the header of an answer. */
function referencesOf(text: string): string {
  return (text.match(MESSAGE_ID) ?? []).slice(-REFERENCES_MAX).join(' ')
}

type Part = MessageParts['parts'][number]

function isShown(part: Part): boolean {
  const disposition = part.headers.find(([name]) => name.toLowerCase() === 'content-disposition')?.[1] ?? ''
  return part.fileName === '' && part.bytes !== undefined && !/^\s*attachment/i.test(disposition)
}

/** A plain text directly before an HTML text is the same in other words, and Gmail shows the latter. */
function bodyOf(parts: readonly Part[]): Pick<HtmlText, 'text' | 'hidden' | 'hiddenText'> {
  const shown = parts.filter((part) => isShown(part) && /^text\/(?:plain|html)$/i.test(part.mimeType))
  const isHtml = (part: Part | undefined): boolean => /html/i.test(part?.mimeType ?? '')
  const wanted = shown.filter((part, at) => isHtml(part) || !isHtml(shown[at + 1]))
  const texts: string[] = []
  const hidden: string[] = []
  const hiddenTexts: string[] = []
  let charsLeft = HTML_CHARS_MAX
  for (const part of wanted) {
    const text = decode(part, charsLeft)
    charsLeft -= text.length
    const read = isHtml(part) ? htmlText(text) : { text, hidden: [], hiddenText: '', imageTexts: [] }
    hidden.push(...read.hidden)
    hiddenTexts.push(read.hiddenText)
    // A message of images alone shows these words until its images are shown.
    texts.push(read.text === '' ? read.imageTexts.map((image) => `[image: ${image}]`).join('\n') : read.text)
  }
  return {
    text: texts.filter((text) => text !== '').join('\n\n'),
    hidden,
    hiddenText: hiddenTexts.join(' '),
  }
}

function decode(part: Part, charsMax: number): string {
  // No character takes more than four bytes.
  const bytes = (part.bytes ?? new Uint8Array()).subarray(0, Math.max(0, charsMax) * 4)
  const type = part.headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  const charset = /charset\s*=\s*["']?([\w.:-]{1,40})/i.exec(type)?.[1] ?? 'windows-1252'
  const label = isUtf8(bytes) && !/utf-?16|iso-2022|utf-?7/i.test(charset) ? 'utf-8' : charset
  return decoderOf(label).decode(bytes).slice(0, Math.max(0, charsMax))
}

function withoutFar(text: string, hidden: Set<string>): string {
  let [from, lines, blanks] = [0, 0, 0]
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x0a) {
      lines += 1
      blanks = 0
    } else if (char === 0x20 || char === 0x09) blanks += 1
    else if (lines > GAP_LINES_MAX || blanks > GAP_BLANKS_MAX) {
      hidden.add('far-below')
      return text.slice(0, from)
    } else {
      from = at + 1
      lines = 0
      blanks = 0
    }
  }
  return text
}

function attachmentsOf(parts: readonly Part[]): VisibleMessage['attachments'] {
  return parts
    .filter((part) => part.fileName !== '')
    .slice(0, PARTS_MAX)
    .map((part) => ({
      name: oneLine(withoutInvisible(part.fileName).text, FILE_NAME_CHARS_MAX),
      mimeType: part.mimeType,
      sizeBytes: part.sizeBytes,
    }))
}
