/**
 * One message as the mailbox keeps it. There may be hundreds of thousands, so a record is small: label
 * sets are shared between messages, and the bytes of a generated message are made when asked for.
 */
import { createHash } from 'node:crypto'
import type { SimMessage } from './mailbox-contract.ts'
import { snippetOf } from './message-content.ts'

/** Where the bytes of generated messages come from: the same index always gives the same bytes. */
export interface RawSource {
  /** Must not be written to: it may be shared. */
  raw(index: number): Buffer
  /** The Message-ID header without its brackets, cheaper than the whole message. */
  messageIdOf(index: number): string | undefined
  /** The message that has this Message-ID, if it is one of the source's own. */
  indexOf(messageId: string): number | undefined
}

export type MessageFields = {
  id: string
  threadId: string
  labelIds: ReadonlySet<string>
  internalMs: number
  historyId: bigint
}

export class StoredMessage implements SimMessage {
  readonly id: string
  readonly threadId: string
  readonly internalMs: number
  labelIds: ReadonlySet<string>
  historyId: bigint
  readonly origin: Buffer | RawSource
  readonly index: number
  #bytes = -1

  constructor(fields: MessageFields, origin: Buffer | RawSource, index = -1) {
    this.id = fields.id
    this.threadId = fields.threadId
    this.internalMs = fields.internalMs
    this.labelIds = fields.labelIds
    this.historyId = fields.historyId
    this.origin = origin
    this.index = index
  }

  raw(): Buffer {
    const bytes = Buffer.isBuffer(this.origin) ? this.origin : this.origin.raw(this.index)
    this.#bytes = bytes.length
    return bytes
  }

  get sizeEstimate(): number {
    return this.#bytes >= 0 ? this.#bytes : this.raw().length
  }

  get snippet(): string {
    return snippetOf(this.raw())
  }

  sha256(): string {
    return createHash('sha256').update(this.raw()).digest('hex')
  }
}

/** Oldest first; messages of the same millisecond stand in the order of their ids. */
export function compareByTime(
  a: { internalMs: number; id: string },
  b: { internalMs: number; id: string },
): number {
  return a.internalMs - b.internalMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}
