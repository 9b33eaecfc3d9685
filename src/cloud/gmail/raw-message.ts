/** A message with its bytes, out of the JSON of format=raw. */
import { damagedAnswer } from './errors.ts'
import { decode, parseJson, rawMessageSchema } from './schema.ts'

const QUOTE = 0x22
/** In the place of the bytes; not base64, so no message can have it. */
const STAND_IN = '.'

export type RawMessage = {
  id: string
  threadId: string
  historyId: string
  labelIds: readonly string[]
  internalMs: number
  /** In memory of its own, so that it can be handed to another thread. */
  raw: Uint8Array<ArrayBuffer>
  sizeEstimate: number
  snippet: string
}

/** Out of the body of an answer, which must be about `askedId`. */
export function rawMessageOf(body: Buffer, askedId: string): RawMessage {
  const { fields, bytes } = setApart(body) ?? together(body, askedId)
  const { internalDate, raw: _, ...rest } = decode(rawMessageSchema, fields, askedId)
  if (rest.id !== askedId) throw damagedAnswer(askedId, 'it names another message')
  if (!bytes || bytes.length === 0) throw damagedAnswer(askedId, 'its bytes are not whole')
  return { ...rest, internalMs: internalDate, raw: bytes }
}

type Taken = { fields: unknown; bytes: Uint8Array<ArrayBuffer> | undefined }

/**
 * Decodes the bytes without parsing them as JSON first, which halves the time per message. Undefined where the JSON
 * is written in another way than usual, or is none: then it is for the parser to say.
 */
function setApart(body: Buffer): Taken | undefined {
  // Inside a string the quotes would be escaped, so this is a key; perhaps of another object, see below.
  const key = body.indexOf('"raw"')
  const opening = key < 0 ? -1 : body.indexOf(QUOTE, key + '"raw"'.length)
  const closing = opening < 0 ? -1 : body.indexOf(QUOTE, opening + 1)
  if (closing < 0 || body.indexOf('"raw"', closing) >= 0) return undefined
  const bytes = decodeBase64Url(body.toString('latin1', opening + 1, closing))
  if (!bytes) return undefined
  let fields: unknown
  try {
    fields = JSON.parse(
      `${body.toString('utf8', 0, opening)}"${STAND_IN}"${body.toString('utf8', closing + 1)}`,
    )
  } catch {
    return undefined
  }
  return (fields as { raw?: unknown } | null)?.raw === STAND_IN ? { fields, bytes } : undefined
}

function together(body: Buffer, askedId: string): Taken {
  const fields = parseJson(body.toString('utf8'), askedId)
  const { raw } = decode(rawMessageSchema, fields, askedId)
  return { fields, bytes: decodeBase64Url(raw) }
}

/** Undefined where decoding would lose something. Plain base64 and padding are fine too. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  // Buffer.from() would skip foreign characters, and take the lower half of wide ones for good.
  const bytes = decoded(text, 'base64url') ?? decoded(text, 'base64')
  let length = text.length
  if (text.endsWith('==')) length -= 2
  else if (text.endsWith('=')) length -= 1
  // White space is skipped, which makes the result shorter than the text says.
  return length % 4 !== 1 && bytes?.length === Math.floor((length * 3) / 4) ? bytes : undefined
}

function decoded(text: string, alphabet: 'base64url' | 'base64'): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.fromBase64(text, { alphabet })
  } catch {
    return undefined
  }
}
