/** A stored message as the API shows it. */

import { asTidemarkError } from '../../../base/errors.ts'
import type { OpenedArchive } from '../merged-search.ts'
import type { StoredMessage } from '../message.ts'
import { parseMessage } from '../mime/parse.ts'
import { htmlHeightPx } from './html-height.ts'
import type { MessageSummary, MessageView } from './schemas.ts'

type Owner = Pick<OpenedArchive, 'name' | 'labelNames'>

const MENTIONS_HTML = /text\/html/i

export function summaryView(owner: Owner, message: StoredMessage): MessageSummary {
  const { id, threadId, subject, snippet, internalMs, bytes, deletedAtMs } = message
  return {
    account: owner.name,
    id,
    threadId,
    subject,
    snippet,
    internalMs,
    bytes,
    deletedAtMs,
    from: [...message.from],
    to: [...message.to],
    labels: message.labelIds.map((label) => owner.labelNames.get(label) ?? label),
    attachments: message.attachments.length,
  }
}

/** Where its bytes cannot be read, that is one of its problems; what the index knows is shown all the same. */
export async function messageView(opened: OpenedArchive, message: StoredMessage): Promise<MessageView> {
  const { messageId, headerMs, sha256, shard, source } = message
  const problems = [...message.problems]
  const { text, html } = await messageContent(opened, message.id).catch((thrown: unknown) => {
    problems.push(asTidemarkError(thrown).message)
    return { text: '', html: null }
  })
  return {
    ...summaryView(opened, message),
    messageId,
    headerMs,
    sha256,
    shard,
    source,
    problems,
    text,
    hasHtml: html !== null,
    htmlHeights:
      html === null ? null : { narrowPx: htmlHeightPx(html, NARROW_PX), widePx: htmlHeightPx(html, WIDE_PX) },
    gmailUrl: gmailUrl(opened.name, message),
    cc: [...message.cc],
    bcc: [...message.bcc],
    files: message.attachments.map(({ index, name, type, bytes }) => ({ index, name, type, bytes })),
  }
}

/** Frames are about so wide on a phone and on a desk; pages take what is nearer. */
const NARROW_PX = 320
const WIDE_PX = 1_000

async function messageContent(
  { archive }: OpenedArchive,
  id: string,
): Promise<{ text: string; html: string | null }> {
  const [text, raw] = await Promise.all([archive.text(id), archive.raw(id)])
  return { text, html: htmlOf(raw) }
}

/** Looked for first, since taking a message apart costs much more. */
function htmlOf(raw: Uint8Array): string | null {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  return MENTIONS_HTML.test(bytes.toString('latin1')) ? parseMessage(raw).html : null
}

/**
 * By the id that its sender gave it, which every mailbox finds; by its conversation where it has none. Not where Gmail
 * never had it or has it no more.
 */
function gmailUrl(account: string, message: StoredMessage): string | null {
  if (message.source !== 'gmail' || message.deletedAtMs !== null) return null
  const { messageId, messageIdIsSurrogate, threadId } = message
  const place = messageIdIsSurrogate
    ? `all/${encodeURIComponent(threadId)}`
    : `search/${encodeURIComponent(`rfc822msgid:${messageId.replace(/^<|>$/g, '')}`)}`
  return `https://mail.google.com/mail/?authuser=${encodeURIComponent(account)}#${place}`
}
