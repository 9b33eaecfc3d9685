/**
 * Which thread a new message joins: as in Gmail, the one of a message that it names in References or
 * In-Reply-To, if their subjects agree apart from "Re:" and the like; otherwise it begins its own.
 */
import type { MessageIndex } from './mailbox-index.ts'
import type { RawSource, StoredMessage } from './mailbox-message.ts'
import { shownHeader, topHeaders } from './message-content.ts'
import { type Header, headerOf } from './message-headers.ts'

/** Of a long chain only the newest references are looked at. */
const REFERENCES_MAX = 50

export class ThreadFinder {
  readonly #index: MessageIndex
  readonly #byMessageId = new Map<string, StoredMessage>()
  readonly #loads: { source: RawSource; messages: readonly StoredMessage[] }[] = []

  constructor(index: MessageIndex) {
    this.#index = index
  }

  /** Generated messages know their own Message-IDs, which saves keeping them here. */
  load(source: RawSource, messages: readonly StoredMessage[]): void {
    this.#loads.push({ source, messages })
  }

  remember(message: StoredMessage, headers: readonly Header[]): void {
    const messageId = messageIdsIn(headerOf(headers, 'message-id') ?? '')[0]
    if (messageId && !this.#byMessageId.has(messageId)) this.#byMessageId.set(messageId, message)
  }

  threadFor(headers: readonly Header[]): string | undefined {
    const named = [headerOf(headers, 'references') ?? '', headerOf(headers, 'in-reply-to') ?? '']
    const references = messageIdsIn(named.join(' ')).slice(-REFERENCES_MAX).reverse()
    if (references.length === 0) return undefined
    const subject = baseSubject(shownHeader(headers, 'subject'))
    for (const reference of references) {
      const message = this.#find(reference)
      if (!message || !this.#index.hasThread(message.threadId)) continue
      if (baseSubject(shownHeader(topHeaders(message.raw()), 'subject')) === subject) return message.threadId
    }
    return undefined
  }

  #find(messageId: string): StoredMessage | undefined {
    const own = this.#byMessageId.get(messageId)
    if (own) return own
    for (const { source, messages } of this.#loads) {
      const index = source.indexOf(messageId)
      if (index !== undefined) return messages[index]
    }
    return undefined
  }
}

export function messageIdsIn(text: string): string[] {
  return [...text.matchAll(/<([^<>\s]{1,998})>/g)].map(([, id]) => id!)
}

export function baseSubject(subject: string): string {
  const bare = subject.replace(/^(?:\s*(?:re|fwd?|aw|wg|sv|vs|tr|rv|antw)(?:\[\d+\])?\s*:)+/i, '')
  return bare.trim().toLowerCase().replaceAll(/\s+/g, ' ')
}
