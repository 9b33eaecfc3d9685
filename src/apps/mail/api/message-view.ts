/** A stored message as the API shows it. */

import { asTidemarkError } from '../../../base/errors.ts'
import type { OpenedArchive } from '../merged-search.ts'
import type { StoredMessage } from '../message.ts'
import { parseMessage } from '../mime/parse.ts'
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
  const { text, hasHtml } = await messageContent(opened, message.id).catch((thrown: unknown) => {
    problems.push(asTidemarkError(thrown).message)
    return { text: '', hasHtml: false }
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
    hasHtml,
    cc: [...message.cc],
    bcc: [...message.bcc],
    files: message.attachments.map(({ index, name, type, bytes }) => ({ index, name, type, bytes })),
  }
}

async function messageContent(
  { archive }: OpenedArchive,
  id: string,
): Promise<{ text: string; hasHtml: boolean }> {
  const [text, raw] = await Promise.all([archive.text(id), archive.raw(id)])
  return { text, hasHtml: hasHtml(raw) }
}

/** Looked for first, since taking a message apart costs much more. */
function hasHtml(raw: Uint8Array): boolean {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  return MENTIONS_HTML.test(bytes.toString('latin1')) && parseMessage(raw).html !== null
}
