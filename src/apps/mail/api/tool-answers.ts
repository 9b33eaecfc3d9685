/** Mail as models read it: compact, with ids to cite, and everything that a sender wrote as a quotation. */

import type { AnswerPart, ToolAnswer } from '../../../app/module.ts'
import { oneLine, wholeEnd } from '../../../app/plain-text.ts'
import { ProblemError } from '../../../app/problem.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { isoTime } from '../../../base/moment.ts'
import { counted } from '../../../base/wording.ts'
import type { Address, StoredMessage } from '../message.ts'
import { messageView } from './message-view.ts'
import type { MessageSummary, MessageView, SearchAnswer, SearchHitView } from './schemas.ts'
import type { FoundMessage, FoundThread } from './tool-inputs.ts'

/** Of a message's text at once. */
export const TEXT_CHARS = 10_000
/** Messages of a conversation at once, and characters of each: together less than an answer may have. */
export const THREAD_PAGE = 8
export const THREAD_TEXT_CHARS = 1_500

/** What stands in lists is short, so that no page is cut: a cursor or an offset goes on behind all of it. */
const NAME_CHARS_MAX = 80
const SUBJECT_CHARS_MAX = 160
const SNIPPET_CHARS_MAX = 160
const LIST_ADDRESSES_MAX = 2
const ADDRESSES_MAX = 10
const LABELS_MAX = 10
const FILES_MAX = 20
const PROBLEMS_MAX = 5

export function hitsAnswer({ items, next, unsearched }: SearchAnswer): ToolAnswer {
  const count = counted(items.length, 'message')
  const parts: AnswerPart[] = [items.length === 0 ? 'No message matches.' : `${count}.`]
  // First of all, so that it is there also when the rest is cut.
  if (next !== null) parts.push(` There are more: ask again with the cursor ${next}`)
  for (const { account, shard, reason } of unsearched) {
    parts.push(
      `\n${shard === '' ? 'The archive' : shard} of ${account} could not be searched: `,
      quote(reason),
    )
  }
  for (const [at, hit] of items.entries()) parts.push(`\n\n${at + 1}. ${whereabouts(hit)}\n`, hitText(hit))
  return parts
}

function whereabouts(summary: MessageSummary): string {
  return `${momentOf(summary)} | thread ${summary.threadId} | account ${summary.account}`
}

function momentOf({ id, internalMs, attachments, deletedAtMs }: MessageSummary): string {
  const extras = [
    ...(attachments > 0 ? [counted(attachments, 'attachment')] : []),
    ...(deletedAtMs === null ? [] : ['no longer in Gmail']),
  ]
  return [isoTime(internalMs), `message ${id}`, ...extras].join(' | ')
}

function hitText({ from, subject, snippet, excerpt }: SearchHitView): AnswerPart {
  const found = excerpt.some(({ match }) => match) ? excerpt.map(({ text }) => text).join('') : snippet
  const lines = [
    `From: ${senders(from, LIST_ADDRESSES_MAX)}`,
    `Subject: ${oneLine(subject, SUBJECT_CHARS_MAX)}`,
    oneLine(found, SNIPPET_CHARS_MAX),
  ]
  return quote(lines.join('\n'))
}

export async function messageAnswer(
  found: FoundMessage,
  { offset }: { offset: number },
): Promise<ToolAnswer> {
  const view = await messageView(found.opened, found.message)
  const { text } = view
  if (offset > 0 && offset >= text.length) {
    throw new ProblemError(
      400,
      `The text of the message ${view.id} has only ${formatCount(text.length)} characters.`,
      {
        code: 'offset-beyond',
        hint: 'Begin with offset 0.',
      },
    )
  }
  const start = wholeEnd(text, offset)
  const end = wholeEnd(text, start + TEXT_CHARS)
  const parts: AnswerPart[] = [`${whereabouts(view)} | ${formatBytes(view.bytes)}\n`]
  if (offset === 0) parts.push(quote(headersOf(view)), '\n')
  parts.push(...textParts({ text, start, end }))
  return parts
}

function textParts({ text, start, end }: { text: string; start: number; end: number }): AnswerPart[] {
  if (text.trim() === '') return ['It has no text.']
  if (start === 0 && end >= text.length) return ['Its text:\n', quote(text)]
  const page = `characters ${start} to ${Math.min(end, text.length)} of ${text.length}`
  const more = end < text.length ? ` The next page has the offset ${end}.` : ' This is the end of it.'
  return [`Its text, ${page}.${more}\n`, quote(text.slice(start, end))]
}

function headersOf(view: MessageView): string {
  const { cc, bcc, headerMs, labels, files, problems } = view
  const names = labels.slice(0, LABELS_MAX).map((name) => oneLine(name, NAME_CHARS_MAX))
  return [
    `From: ${senders(view.from)}`,
    `To: ${senders(view.to)}`,
    ...(cc.length > 0 ? [`Cc: ${senders(cc)}`] : []),
    ...(bcc.length > 0 ? [`Bcc: ${senders(bcc)}`] : []),
    ...(headerMs === null ? [] : [`Date: ${isoTime(headerMs)}`]),
    `Subject: ${oneLine(view.subject, SUBJECT_CHARS_MAX * 2)}`,
    `Message-ID: ${oneLine(view.messageId, SUBJECT_CHARS_MAX)}`,
    ...(names.length > 0 ? [`Labels: ${listed(names, labels.length)}`] : []),
    ...files.slice(0, FILES_MAX).map(fileLine),
    ...(files.length > FILES_MAX ? [`and ${formatCount(files.length - FILES_MAX)} more attachments`] : []),
    ...problems.slice(0, PROBLEMS_MAX).map((problem) => `Problem: ${oneLine(problem, SUBJECT_CHARS_MAX)}`),
  ].join('\n')
}

function fileLine({ index, name, type, bytes }: MessageView['files'][number]): string {
  const called = oneLine(name, NAME_CHARS_MAX) || '(no name)'
  return `Attachment ${index}: ${called} (${oneLine(type, NAME_CHARS_MAX)}, ${formatBytes(bytes)})`
}

export async function threadAnswer(found: FoundThread, { offset }: { offset: number }): Promise<ToolAnswer> {
  const { opened, messages } = found
  const total = messages.length
  if (offset >= total) {
    const has = counted(total, 'message')
    throw new ProblemError(400, `The conversation has only ${has}.`, {
      code: 'offset-beyond',
      hint: 'Begin with offset 0.',
    })
  }
  const page = messages.slice(offset, offset + THREAD_PAGE)
  const end = offset + page.length
  const { threadId } = messages[0] as StoredMessage
  const count = counted(total, 'message')
  const parts: AnswerPart[] = [`Conversation ${threadId} of ${opened.name}: ${count}, oldest first.`]
  if (page.length < total) parts.push(` These are ${offset + 1} to ${end}.`)
  if (end < total) parts.push(` Go on with the offset ${end}.`)
  for (const [at, message] of page.entries()) {
    const view = await messageView(opened, message)
    parts.push(`\n\n${offset + at + 1}. ${momentOf(view)}\n`, quote(inThread(view)), leftOf(view))
  }
  return parts
}

function inThread(view: MessageView): string {
  const { from, to, subject, text } = view
  const lines = [
    `From: ${senders(from, LIST_ADDRESSES_MAX)}`,
    `To: ${senders(to, LIST_ADDRESSES_MAX)}`,
    `Subject: ${oneLine(subject, SUBJECT_CHARS_MAX)}`,
  ]
  return `${lines.join('\n')}\n\n${text.slice(0, wholeEnd(text, THREAD_TEXT_CHARS)).trim()}`
}

function leftOf({ id, text }: MessageView): string {
  const left = text.length - wholeEnd(text, THREAD_TEXT_CHARS)
  return left > 0 ? `\n${left} more characters: mail_message with the id ${id}` : ''
}

function senders(addresses: readonly Address[], max = ADDRESSES_MAX): string {
  const names = addresses
    .slice(0, max)
    .map(({ name, address }) => oneLine(name === '' ? address : `${name} <${address}>`, NAME_CHARS_MAX))
  return listed(names, addresses.length) || '(nobody)'
}

function listed(names: readonly string[], total: number): string {
  const more = total - names.length
  return `${names.join(', ')}${more > 0 ? ` and ${formatCount(more)} more` : ''}`
}

function quote(text: string): AnswerPart {
  return { quote: text }
}
