/**
 * The message of a draft: an answer in its thread, as plain text. To whom it goes, what it is called and to what it
 * answers come from the message that is answered, never from a model; each value is held to its form before it becomes
 * a header, so that no text can begin a header of its own.
 *
 * Above the marker the user writes what should become of the draft; below it stands the draft.
 */
import { TidemarkError } from '../../base/errors.ts'
import { cutText } from '../../search/extract/clean-text.ts'
import { MARKER, type Mailbox, type VisibleMessage } from './contract.ts'
import { isAddress } from './text/addresses.ts'
import { htmlText } from './text/html.ts'

export const DRAFT_KEY_HEADER = 'X-Tidemark-Draft'

const BODY_CHARS_MAX = 100_000
const SUBJECT_CHARS_MAX = 500
const REFERENCES_MAX = 30
const LINE_BYTES = 76
/** Of an encoded word: 75 characters at most, of which base64 takes 4 for 3 bytes. */
const WORD_BYTES = 45
const REPLY_PREFIX =
  /^\s*(?:(?:re|aw|sv|antw|antwort|rif|res|vs|odp|r|回复|回覆)(?:\[\d{1,3}\])?\s?[:：]\s*)+/i
const ID = /<[\x21-\x3b\x3d\x3f-\x7e]{1,996}>/g

export type ReplyInput = {
  answered: VisibleMessage
  owner: Mailbox
  text: string
  /** Names this draft: letters and digits. */
  key: string
  nowMs: number
}

export function replyMime({ answered, owner, text, key, nowMs }: ReplyInput): Uint8Array {
  const headers = [
    `From: ${mailboxHeader(owner)}`,
    ...recipientHeader(recipientsOf(answered, owner)),
    `Subject: ${encodeWords(replySubject(answered.subject), 'Subject: '.length)}`,
    `Date: ${dateHeader(nowMs)}`,
    `Message-ID: <${messageIdOf(key, owner)}>`,
    ...threadHeaders(answered),
    `${DRAFT_KEY_HEADER}: ${token(key)}`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: base64',
  ]
  const body = Buffer.from(replyText(text).replaceAll('\n', '\r\n'), 'utf8').toString('base64')
  return Buffer.from(`${headers.join('\r\n')}\r\n\r\n${folded(body)}\r\n`, 'ascii')
}

export type SentInput = {
  owner: Mailbox
  /** One address, as the settings have it. */
  to: string
  subject: string
  text: string
  key: string
  answered: VisibleMessage | undefined
  nowMs: number
}

/** A mail that a program sends: to one address, and so that no program answers it (RFC 3834). */
export function sentMime({ owner, to, subject, text, key, answered, nowMs }: SentInput): Uint8Array {
  const recipient = mailboxHeader({ name: '', address: to })
  if (recipient !== to) throw new TidemarkError('Mail has nobody to go to.', { kind: 'bug' })
  const headers = [
    `From: ${mailboxHeader(owner)}`,
    `To: ${recipient}`,
    `Subject: ${encodeWords(oneLineOf(subject), 'Subject: '.length)}`,
    `Date: ${dateHeader(nowMs)}`,
    `Message-ID: <${messageIdOf(key, owner)}>`,
    ...(answered ? threadHeaders(answered) : []),
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: base64',
  ]
  const body = cutText(plainLines(text), BODY_CHARS_MAX).replaceAll('\n', '\r\n')
  return Buffer.from(
    `${headers.join('\r\n')}\r\n\r\n${folded(Buffer.from(body).toString('base64'))}\r\n`,
    'ascii',
  )
}

/** Known before the message is made. */
export function messageIdOf(key: string, owner: Mailbox): string {
  return `tidemark.${token(key)}@${domainOf(owner.address)}`
}

/** What the body of a draft says. */
export function replyText(text: string): string {
  return `\n${MARKER}\n\n${cutText(withoutMarkers(plainLines(text)), BODY_CHARS_MAX)}\n`
}

/** Reply-To or From; where the user answers themself, who they wrote to. */
export function recipientsOf(answered: VisibleMessage, owner: Mailbox): Mailbox[] {
  const isOwn = ({ address }: Mailbox): boolean => address.toLowerCase() === owner.address.toLowerCase()
  const asked = answered.replyTo.length > 0 ? answered.replyTo : [answered.from]
  const others = asked.filter((one) => isAddress(one.address) && !isOwn(one))
  if (others.length > 0) return others
  return answered.to.filter((one) => isAddress(one.address) && !isOwn(one))
}

/** One `Re: `, whatever answers in other languages have added. */
export function replySubject(subject: string): string {
  const bare = oneLineOf(subject).replace(REPLY_PREFIX, '')
  return cutText(`Re: ${bare}`.trim(), SUBJECT_CHARS_MAX)
}

/** None where nobody can be answered: the user sees an empty field. */
function recipientHeader(recipients: readonly Mailbox[]): string[] {
  const list = recipients.map(mailboxHeader).filter((one) => one !== '')
  return list.length > 0 ? [`To: ${list.join(',\r\n ')}`] : []
}

function threadHeaders(answered: VisibleMessage): string[] {
  const id = answered.messageId.match(ID)?.[0]
  if (id === undefined) return []
  const earlier = (answered.references.match(ID) ?? []).filter((one) => one !== id)
  // The first and the last say where a thread begins and where it is.
  const kept = [...earlier.slice(0, 1), ...earlier.slice(1).slice(-REFERENCES_MAX)]
  return [`In-Reply-To: ${id}`, `References: ${[...kept, id].join('\r\n ')}`]
}

function mailboxHeader({ name, address }: Mailbox): string {
  const bare = isAddress(address) && isAscii(address) ? address : ''
  if (bare === '') return ''
  const words = oneLineOf(name)
  if (words === '') return bare
  if (isAscii(words)) return `"${words.slice(0, 200).replace(/["\\]/g, '')}" <${bare}>`
  return `${encodeWords(words.slice(0, 200), 16)}\r\n <${bare}>`
}

/** RFC 2047, in words that fit a line and never cut a character. */
function encodeWords(text: string, columnsBefore: number): string {
  if (isAscii(text) && text.length + columnsBefore <= 900 && !text.includes('=?')) return text
  const words: string[] = []
  let [word, bytes] = ['', 0]
  for (const char of text) {
    const size = Buffer.byteLength(char)
    if (bytes + size > WORD_BYTES) {
      words.push(word)
      word = ''
      bytes = 0
    }
    word += char
    bytes += size
  }
  words.push(word)
  return words.map((one) => `=?utf-8?B?${Buffer.from(one).toString('base64')}?=`).join('\r\n ')
}

function isAscii(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text)
}

function oneLineOf(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
}

/** What may stand in an id: anything else is left out. */
function token(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]/g, '').slice(0, 200)
}

function domainOf(address: string): string {
  return token(address.split('@')[1] ?? '') || 'localhost'
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

function dateHeader(nowMs: number): string {
  const date = new Date(nowMs)
  const two = (number: number): string => String(number).padStart(2, '0')
  const day = `${DAYS[date.getUTCDay()]}, ${two(date.getUTCDate())} ${MONTHS[date.getUTCMonth()]}`
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map(two).join(':')
  return `${day} ${date.getUTCFullYear()} ${time} +0000`
}

function folded(base64: string): string {
  return base64.match(new RegExp(`.{1,${LINE_BYTES}}`, 'g'))?.join('\r\n') ?? ''
}

function plainLines(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?|[\u2028\u2029\u0085]/g, '\n')
    .replace(/[^\P{Cc}\n\t]/gu, '')
    .trim()
}

/** A second marker would make it unclear where the draft begins. */
function withoutMarkers(text: string): string {
  return text
    .split('\n')
    .filter((line) => !isMarkerLine(line))
    .join('\n')
    .trim()
}

/** ✂ with or without its selector, as black or white scissors, alone on its line or with dashes around. */
const MARKER_LINE = /^[\s>\-–—_=*.·]{0,80}[✂✁✃✄](?:[\ufe0e\ufe0f\u200d]*)[\s\-–—_=*.·]{0,80}$/u

const IS_HTML = /^\s*<(?:!doctype|html|body|div|p|span|br|meta|font|table)\b/i

function isMarkerLine(line: string): boolean {
  return line.length < 200 && MARKER_LINE.test(line)
}

/**
 * What stands above the first line that is a marker, and what below it; undefined where there is none. The editor may
 * have turned the text into HTML, dropped the emoji's selector or added lines.
 */
export function splitAtMarker(text: string): { above: string; below: string } | undefined {
  const shown = IS_HTML.test(text) ? htmlText(text).text : text
  const lines = shown.replace(/\r\n?/g, '\n').split('\n')
  const at = lines.findIndex(isMarkerLine)
  if (at >= 0) {
    return {
      above: lines.slice(0, at).join('\n').trim(),
      below: lines
        .slice(at + 1)
        .join('\n')
        .trim(),
    }
  }
  // Run together with other words: the first one counts.
  const inline = /[✂✁✃✄][\ufe0e\ufe0f]?/u.exec(shown)
  if (!inline) return undefined
  return {
    above: shown.slice(0, inline.index).trim(),
    below: shown.slice(inline.index + inline[0].length).trim(),
  }
}
