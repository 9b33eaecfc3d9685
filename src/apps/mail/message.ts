/** The words of the mail archive: what a message is on its way in, at rest, and on its way out. */
import { hash } from 'node:crypto'

/** `gmail`: the bytes came from the cloud. `import`: from a file, and not yet compared with the cloud. */
export type MessageSource = 'gmail' | 'import'

/** A message as it was fetched or read from a file. */
export type FetchedMessage = {
  /** Gmail's id, or a stable surrogate (`import-…`) for a file that names none. */
  id: string
  threadId: string
  /** Decides which of two views of the labels is newer: a decimal number of up to 64 bits; '0' where unknown. */
  historyId: string
  labelIds: readonly string[]
  /** When Gmail received it, in milliseconds since the epoch: never changes, and decides the shard. */
  internalMs: number
  /** The bytes of the message, exactly as they are (RFC 822). */
  raw: Uint8Array
  source: MessageSource
  /** An id under which the archive has it from before: if that has the same bytes, it becomes this message. */
  replaces?: string
}

/**
 * The id of a file that names none: by its bytes, so that it is the same whoever reads them. Lines of mail end with CR
 * LF; programs save them with LF alone, and it is the same message. `sha256`: of these bytes, in hex,
 * where it is known.
 */
export function madeId(raw: Uint8Array, sha256?: string): string {
  const mended = withMailLineEnds(raw)
  const hex = mended === raw && sha256 ? sha256 : hash('sha256', mended, 'hex')
  return `${MADE_ID}${hex.slice(0, 24)}`
}

/** The same bytes where all lines end as they should. */
export function withMailLineEnds(raw: Uint8Array): Uint8Array {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const pieces: Uint8Array[] = []
  let from = 0
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at - 1] === CR) continue
    pieces.push(bytes.subarray(from, at), CRLF)
    from = at + 1
  }
  return pieces.length === 0 ? raw : Buffer.concat([...pieces, bytes.subarray(from)])
}

const LF = 10
const CR = 13
const CRLF = Uint8Array.of(CR, LF)

export function isMadeId(id: string): boolean {
  return id.startsWith(MADE_ID)
}

const MADE_ID = 'import-'

/** `added`: new. `updated`: was there, its labels or source are newer now. `kept`: nothing to change. */
export type StoreOutcome = {
  id: string
  status: 'added' | 'updated' | 'kept'
  shard: string
  /** What the parser stumbled over; the bytes are kept whatever it is. */
  problems: readonly string[]
}

/** A change that the cloud reported for a message that may or may not be stored. */
export type MessageChange = {
  id: string
  /** The history record's own id: a change older than what is stored changes nothing. */
  historyId: string
  addLabelIds?: readonly string[]
  removeLabelIds?: readonly string[]
  /** Replaces all labels (a reconcile knows the whole set). */
  setLabelIds?: readonly string[]
  /** The cloud no longer has it: marked, never removed. */
  deletedAtMs?: number
  /** It is there again (restored from the archive, or a deletion that was none). */
  restored?: true
}

export type Address = { name: string; address: string }

/** A stored message without its bytes. */
export type StoredMessage = {
  id: string
  threadId: string
  /** From its header; a made-up `<…@surrogate.tidemark>` where it has none. */
  messageId: string
  messageIdIsSurrogate: boolean
  historyId: string
  labelIds: readonly string[]
  internalMs: number
  /** From its Date header; null where it has none that can be read. */
  headerMs: number | null
  subject: string
  from: readonly Address[]
  to: readonly Address[]
  cc: readonly Address[]
  bcc: readonly Address[]
  snippet: string
  /** Of the raw bytes. */
  bytes: number
  /** Of the raw bytes, in hex. */
  sha256: string
  attachments: readonly StoredAttachment[]
  problems: readonly string[]
  source: MessageSource
  /** When the cloud no longer had it; null while it has. */
  deletedAtMs: number | null
  storedAtMs: number
  shard: string
}

export type StoredAttachment = {
  /** As the mail says, unsafe as a path: see `safeFileName`. */
  name: string
  type: string
  /** Of the decoded content. */
  bytes: number
  sha256: string
  /** Its place among the attachments, from 0. */
  index: number
}

/**
 * What is known about the bytes of a message, after reading them back from the committed file:
 * - proven: they are there and have the hash that was noted when they came
 * - imported: there and whole, but from a file: not yet compared with the cloud
 * - absent: the archive has no such message
 * - mismatch: there, but their hash is another one
 * - unreadable: their shard (or attachment file) is missing or corrupt, or its labels are damaged
 */
export type ProofState = 'proven' | 'imported' | 'absent' | 'mismatch' | 'unreadable'

/** What the last check of a whole archive found. */
export type Verification = {
  atMs: number
  messages: number
  /** Messages whose bytes, or what follows from them, are not what they were. */
  damaged: number
  /** Files that are missing or cannot be read. */
  brokenFiles: number
  /** Messages that the cloud has and the archive has not; null where it was not compared. */
  missing: number | null
}

export type Proof = {
  id: string
  state: ProofState
  bytes: number
  internalMs: number | null
  deletedAtMs: number | null
  labelIds: readonly string[]
  /** Why it is not proven, for people. */
  detail?: string
}
