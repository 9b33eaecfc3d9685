/** A message with its bytes, out of the JSON of format=raw. */
import { damagedAnswer } from './errors.ts'
import { decode, rawMessageSchema } from './schema.ts'

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

export function rawMessageOf(value: unknown, askedId: string): RawMessage {
  const { internalDate, raw, ...rest } = decode(rawMessageSchema, value, askedId)
  if (rest.id !== askedId) throw damagedAnswer(askedId, 'it names another message')
  const bytes = decodeBase64Url(raw)
  if (!bytes) throw damagedAnswer(askedId, 'its bytes are not whole')
  return { ...rest, internalMs: internalDate, raw: bytes }
}

/** Undefined where decoding would lose something. Plain base64 and padding are fine too. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  let length = text.length
  if (text.endsWith('==')) length -= 2
  else if (text.endsWith('=')) length -= 1
  if (length % 4 === 1) return undefined
  const bytes = Buffer.from(text, 'base64url')
  // Node skips foreign characters and stops at padding: each of them makes the result shorter.
  if (bytes.length !== Math.floor((length * 3) / 4)) return undefined
  // Small buffers are cut from a pool that many share, and that cannot be transferred.
  return bytes.buffer.byteLength === bytes.length ? bytes : new Uint8Array(bytes)
}
