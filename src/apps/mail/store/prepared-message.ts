/**
 * A message made ready for its shard: hashed, parsed, packed. All that costs time and needs no database happens here,
 * before any lock is taken. Whatever the parser does, the bytes are kept.
 */
import { hash } from 'node:crypto'
import type { Address, FetchedMessage, MessageSource } from '../message.ts'
import { encodeParcel, packMessage } from '../mime/parcel.ts'
import { EMPTY_MESSAGE, parseMessage } from '../mime/parse.ts'
import type { ParsedMessage } from '../mime/parsed.ts'
import { compressed } from './compression.ts'
import { sanitizedMs } from './shard-router.ts'
import { hexOf, type People, paddedHistoryId } from './shard-row.ts'

/** Counts the changes of what is derived here. */
export { DERIVATION } from './schema.ts'

/** What the search index gets, column by column. */
export type Words = {
  subject: string
  sender: string
  recipients: string
  cc: string
  bcc: string
  files: string
  body: string
}

/** A large attachment, kept once in a file of its own. */
export type Content = { sha256: string; content: Uint8Array }

/**
 * All that follows from the bytes of a message and from nothing else. The writer, the check and the rebuilding of the
 * index have it from the same function: what is stored can be compared with it at any time, and written anew from it.
 */
export type Derived = {
  messageId: string
  messageIdIsSurrogate: boolean
  headerMs: number | null
  subject: string
  sender: string
  people: string
  snippet: string
  attachments: string
  hasAttachment: boolean
  problems: readonly string[]
  /** As it is shown. */
  text: string
  words: Words
}

export type PreparedMessage = Omit<Derived, 'text'> & {
  id: string
  threadId: string
  historyId: string
  labelIds: readonly string[]
  internalMs: number
  source: MessageSource
  /** Where the archive may have the same bytes from before. */
  replaces: string | null
  bytes: number
  sha256: Uint8Array
  raw: Uint8Array
  text: Uint8Array
  contents: readonly Content[]
}

export function prepareMessage(message: FetchedMessage): PreparedMessage {
  const { raw } = message
  const sha256 = hash('sha256', raw, 'buffer')
  const parsed = parsedOrBare(raw)
  const parcel = parcelOf(raw, parsed)
  const derived = derivedFrom(parsed, sha256, parcel.attachmentHashes)
  return {
    ...derived,
    id: message.id,
    threadId: message.threadId,
    historyId: paddedHistoryId(message.historyId),
    labelIds: sortedLabels(message.labelIds),
    internalMs: sanitizedMs(message.internalMs),
    source: message.source,
    replaces: message.replaces ?? null,
    bytes: raw.byteLength,
    sha256,
    raw: compressed(encodeParcel(parcel)),
    text: compressed(Buffer.from(derived.text, 'utf8')),
    contents: parcel.contents,
  }
}

/** `sha256`: of the bytes. */
export function derivedOf(raw: Uint8Array, sha256: Uint8Array): Derived {
  return derivedFrom(parsedOrBare(raw), sha256, [])
}

/** `hashes`: of the contents of attachments, where they are known already. */
function derivedFrom(parsed: ParsedMessage, sha256: Uint8Array, hashes: readonly string[]): Derived {
  const { to, cc, bcc, replyTo } = parsed
  const people: People = { to, cc, bcc, replyTo }
  return {
    messageId: parsed.messageId ?? `<${surrogateMessageId(hexOf(sha256))}>`,
    messageIdIsSurrogate: parsed.messageId === null,
    headerMs: parsed.headerMs === null ? null : sanitizedMs(parsed.headerMs),
    subject: parsed.subject,
    sender: JSON.stringify(parsed.from),
    people: JSON.stringify(people),
    snippet: parsed.snippet,
    attachments: JSON.stringify(attachmentsOf(parsed, hashes)),
    hasAttachment: parsed.attachments.some(({ isInline }) => !isInline),
    problems: parsed.problems,
    text: parsed.text,
    words: indexedWords(parsed),
  }
}

/** For a message that names none: by its bytes, in hex. */
export function surrogateMessageId(sha256: string): string {
  return `${sha256.slice(0, 32)}@surrogate.tidemark`
}

export function sortedLabels(labelIds: Iterable<string>): string[] {
  return [...new Set(labelIds)].sort()
}

/** The parser promises not to fail; should it ever, the message is kept without what it would have said. */
function parsedOrBare(raw: Uint8Array): ParsedMessage {
  try {
    return parseMessage(raw)
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    return { ...EMPTY_MESSAGE, problems: [`it could not be parsed: ${why}`] }
  }
}

function parcelOf(raw: Uint8Array, parsed: ParsedMessage): ReturnType<typeof packMessage> {
  try {
    return packMessage(raw, parsed)
  } catch {
    // Without its attachments cut out it is larger, and the same.
    return packMessage(raw, { ...parsed, attachments: [] })
  }
}

function attachmentsOf(parsed: ParsedMessage, hashes: readonly string[]): object[] {
  return parsed.attachments.map(({ name, type, content, isInline }, index) => ({
    name,
    type,
    bytes: content.byteLength,
    sha256: hashes[index] ?? hash('sha256', content, 'hex'),
    index,
    inline: isInline,
  }))
}

function indexedWords(parsed: ParsedMessage): Words {
  return {
    subject: parsed.subject,
    sender: addressWords(parsed.from),
    recipients: addressWords(parsed.to),
    cc: addressWords(parsed.cc),
    bcc: addressWords(parsed.bcc),
    files: parsed.attachments.map(({ name }) => name).join('\n'),
    body: parsed.unshown === '' ? parsed.text : `${parsed.text}\n${parsed.unshown}`,
  }
}

function addressWords(addresses: readonly Address[]): string {
  return addresses.map(({ name, address }) => `${name} ${address}`).join('\n')
}
