/**
 * A message as `format=full` shows it: headers that Gmail has decoded, and its leaf parts in order. For whoever reads a
 * conversation; the archive keeps bytes (raw-message.ts).
 */
import { z } from 'zod'
import { damagedAnswer } from './errors.ts'
import { decodeBase64Url } from './raw-message.ts'
import { messageSchema } from './schema.ts'

export type MessagePart = {
  mimeType: string
  fileName: string
  headers: [name: string, value: string][]
  /** Undefined of attachments, which Gmail gives only to who asks for them. Text is UTF-8, whatever it was. */
  bytes: Uint8Array | undefined
  sizeBytes: number
}

export type ThreadMessage = {
  id: string
  threadId: string
  labelIds: string[]
  /** 64 bits, which a number cannot hold. */
  historyId: string
  internalMs: number
  headers: [name: string, value: string][]
  /** Leaf parts in the order in which they stand. */
  parts: MessagePart[]
}

export type MailThread = {
  id: string
  historyId: string
  /** Oldest first, drafts and the trash too. */
  messages: ThreadMessage[]
}

/** A draft keeps its id when it is edited; its message is then another one. */
export type DraftRef = { id: string; messageId: string; threadId: string }
export type Draft = { id: string; message: ThreadMessage }
export type DraftPage = { drafts: DraftRef[]; nextPageToken: string | undefined }

/** Deeper, or more, than any mail that is meant to be read: the rest is left out. */
const DEPTH_MAX = 100
const PARTS_MAX = 1_000

type Payload = {
  mimeType: string
  filename: string
  headers: { name: string; value: string }[]
  body: { size: number; data: string }
  parts: Payload[]
}

const headers = z.array(z.object({ name: z.string(), value: z.string() })).default([])
const payloadSchema: z.ZodType<Payload> = z.lazy(() =>
  z.object({
    mimeType: z.string().default('text/plain'),
    filename: z.string().default(''),
    headers,
    body: z
      .object({ size: z.number().int().nonnegative().default(0), data: z.string().default('') })
      .prefault({}),
    parts: z.array(payloadSchema).default([]),
  }),
)

export const fullMessageSchema = messageSchema.extend({ payload: payloadSchema.optional() })

export const threadSchema = z.object({
  id: z.string(),
  historyId: z.union([z.string(), z.number().transform(String)]).default('0'),
  messages: z.array(fullMessageSchema).default([]),
})

const refSchema = z.object({ id: z.string().min(1), threadId: z.string().min(1) })

export const draftListSchema = z.object({
  drafts: z.array(z.object({ id: z.string().min(1), message: refSchema })).default([]),
  nextPageToken: z
    .string()
    .nullish()
    .transform((token) => token || undefined),
})

export const draftRefSchema = z
  .object({ id: z.string().min(1), message: refSchema })
  .transform(({ id, message }): DraftRef => ({ id, messageId: message.id, threadId: message.threadId }))

export const draftSchema = z.object({ id: z.string().min(1), message: fullMessageSchema })

export function threadMessageOf(wire: z.output<typeof fullMessageSchema>): ThreadMessage {
  const { id, threadId, labelIds, historyId, internalDate, payload } = wire
  const parts: MessagePart[] = []
  if (payload) collectLeaves(payload, parts, { id, depth: 0 })
  return {
    id,
    threadId,
    labelIds,
    historyId,
    internalMs: internalDate,
    headers: pairs(payload?.headers ?? []),
    parts,
  }
}

function collectLeaves(payload: Payload, leaves: MessagePart[], at: { id: string; depth: number }): void {
  if (at.depth > DEPTH_MAX || leaves.length >= PARTS_MAX) return
  if (payload.parts.length > 0) {
    for (const part of payload.parts) collectLeaves(part, leaves, { id: at.id, depth: at.depth + 1 })
    return
  }
  const { mimeType, filename, body } = payload
  const bytes = body.data === '' ? undefined : decodeBase64Url(body.data)
  if (body.data !== '' && !bytes) throw damagedAnswer(at.id, 'a part of it is not whole')
  leaves.push({
    mimeType: mimeType.toLowerCase(),
    fileName: filename,
    headers: pairs(payload.headers),
    bytes,
    sizeBytes: body.size,
  })
}

function pairs(of: readonly { name: string; value: string }[]): [string, string][] {
  return of.map(({ name, value }) => [name, value])
}
