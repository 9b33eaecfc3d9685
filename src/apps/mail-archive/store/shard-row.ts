/** A row of a shard's `messages`, and the message that it stands for. */
import type { Address, MessageSource, StoredAttachment, StoredMessage } from '../message.ts'

/** What every query that ends in `toMessage` must select. */
export const MESSAGE_COLUMNS =
  'm.pos, m.id, m.thread_id, m.message_id, m.message_id_made, m.history_id, m.internal_ms, m.header_ms, ' +
  'm.subject, m.sender, m.people, m.snippet, m.labels, m.bytes, m.sha256, m.attachments, m.problems, ' +
  'm.source, m.deleted_ms, m.stored_ms'

export type MessageRow = {
  pos: number
  id: string
  thread_id: string
  message_id: string
  message_id_made: number
  /** Padded to 20 digits, so that text compares like the number. */
  history_id: string
  internal_ms: number
  header_ms: number | null
  subject: string
  /** JSON: the addresses of From, `[{ name, address }]`. */
  sender: string
  /** JSON: `{ to, cc, bcc, replyTo }`, each like `sender`. */
  people: string
  snippet: string
  /** JSON: label ids, sorted. */
  labels: string
  bytes: number
  sha256: Uint8Array
  /** JSON: `[{ name, type, bytes, sha256, index, inline }]`. */
  attachments: string
  /** JSON: texts. */
  problems: string
  source: MessageSource
  deleted_ms: number | null
  stored_ms: number
}

export type People = {
  to: readonly Address[]
  cc: readonly Address[]
  bcc: readonly Address[]
  replyTo: readonly Address[]
}

const HISTORY_DIGITS = 20

export function paddedHistoryId(historyId: string): string {
  const digits = /^[0-9]{1,20}$/.test(historyId) ? historyId : '0'
  return digits.padStart(HISTORY_DIGITS, '0')
}

export function plainHistoryId(padded: string): string {
  return padded.replace(/^0+(?=.)/, '')
}

/** `row` from a SELECT of MESSAGE_COLUMNS. */
export function toMessage(shard: string, row: MessageRow): StoredMessage {
  const people = JSON.parse(row.people) as People
  const attachments = JSON.parse(row.attachments) as StoredAttachment[]
  return {
    id: row.id,
    threadId: row.thread_id,
    messageId: row.message_id,
    messageIdIsSurrogate: row.message_id_made !== 0,
    historyId: plainHistoryId(row.history_id),
    labelIds: JSON.parse(row.labels) as string[],
    internalMs: row.internal_ms,
    headerMs: row.header_ms,
    subject: row.subject,
    from: JSON.parse(row.sender) as Address[],
    to: people.to,
    cc: people.cc,
    bcc: people.bcc,
    snippet: row.snippet,
    bytes: row.bytes,
    sha256: hexOf(row.sha256),
    attachments: attachments.map(({ name, type, bytes, sha256, index }) => ({
      name,
      type,
      bytes,
      sha256,
      index,
    })),
    problems: JSON.parse(row.problems) as string[],
    source: row.source,
    deletedAtMs: row.deleted_ms,
    storedAtMs: row.stored_ms,
    shard,
  }
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}
