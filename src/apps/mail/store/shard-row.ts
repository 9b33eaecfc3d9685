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

/** A list of texts; none where it is damaged, which the check finds and says. */
export function textsOf(json: string): string[] {
  try {
    const list: unknown = JSON.parse(json)
    return Array.isArray(list) ? list.filter((text) => typeof text === 'string') : []
  } catch {
    return []
  }
}

/** Is nothing of the list damaged? */
export function areTexts(json: string): boolean {
  try {
    const list: unknown = JSON.parse(json)
    return Array.isArray(list) && list.every((text) => typeof text === 'string')
  } catch {
    return false
  }
}

/** Null where it is damaged: one such message must not keep others from being found. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}

function addressesOf(list: unknown): Address[] {
  const isAddress = (one: Partial<Address> | null): boolean =>
    typeof one?.name === 'string' && typeof one.address === 'string'
  return Array.isArray(list) ? list.filter(isAddress) : []
}

function attachmentsOf(list: unknown): StoredAttachment[] {
  const isAttachment = (one: Partial<StoredAttachment> | null): boolean =>
    typeof one?.name === 'string' && typeof one.type === 'string' && typeof one.sha256 === 'string'
  return Array.isArray(list) ? list.filter(isAttachment) : []
}

/** `row` from a SELECT of MESSAGE_COLUMNS. What of it is damaged is left out, which the check finds and says. */
export function toMessage(shard: string, row: MessageRow): StoredMessage {
  const people = parsed(row.people) as Partial<People> | null
  return {
    id: row.id,
    threadId: row.thread_id,
    messageId: row.message_id,
    messageIdIsSurrogate: row.message_id_made !== 0,
    historyId: plainHistoryId(row.history_id),
    labelIds: textsOf(row.labels),
    internalMs: row.internal_ms,
    headerMs: row.header_ms,
    subject: row.subject,
    from: addressesOf(parsed(row.sender)),
    to: addressesOf(people?.to),
    cc: addressesOf(people?.cc),
    bcc: addressesOf(people?.bcc),
    snippet: row.snippet,
    bytes: row.bytes,
    sha256: hexOf(row.sha256),
    attachments: attachmentsOf(parsed(row.attachments)).map(({ name, type, bytes, sha256, index }) => ({
      name,
      type,
      bytes,
      sha256,
      index,
    })),
    problems: textsOf(row.problems),
    source: row.source,
    deletedAtMs: row.deleted_ms,
    storedAtMs: row.stored_ms,
    shard,
  }
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}
