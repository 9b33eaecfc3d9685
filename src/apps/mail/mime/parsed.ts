/** What the parser makes of the bytes of a message. It never fails: what it could not read is a problem noted. */
import type { Address } from '../message.ts'

export type ParsedAttachment = {
  /** Decoded, as the mail says; '' where it has none. */
  name: string
  /** Lower case, such as `application/pdf`. */
  type: string
  contentId: string | null
  isInline: boolean
  /** The transfer encoding, lower case: base64, quoted-printable, 7bit, 8bit, binary … */
  encoding: string
  /** Where its encoded body lies in the raw bytes: [start, end). */
  start: number
  end: number
  /** The decoded content. */
  content: Uint8Array
}

export type ParsedMessage = {
  /** With its angle brackets; null where there is none that can be read. */
  messageId: string | null
  inReplyTo: string | null
  references: readonly string[]
  headerMs: number | null
  subject: string
  from: readonly Address[]
  replyTo: readonly Address[]
  to: readonly Address[]
  cc: readonly Address[]
  bcc: readonly Address[]
  /** In the order of the message, unfolded and decoded, at most HEADERS_MAX. */
  headers: readonly { name: string; value: string }[]
  /** What a person would read: from text parts, or from HTML made plain where it says more. At most TEXT_CHARS_MAX. */
  text: string
  /** What alternatives of it say besides, for search. At most TEXT_CHARS_MAX. */
  unshown: string
  /** As it came, not sanitised. */
  html: string | null
  /** The first 200 characters or so of `text`, in one line. */
  snippet: string
  attachments: readonly ParsedAttachment[]
  /** In plain words, at most PROBLEMS_MAX: "the part 1.2 says base64 but is not". */
  problems: readonly string[]
}
