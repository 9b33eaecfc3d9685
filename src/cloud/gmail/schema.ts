/**
 * What of Gmail's answers is used. Unknown fields are let through and dropped; what is missing or of
 * another type makes the answer damaged, since a guess would end up in the archive.
 */
import { z } from 'zod'

export { decode, parseJson } from './errors.ts'

/** Goes into paths and into the heads of batch parts, so nothing else may stand in it. */
export const MESSAGE_ID = /^[\w-]{1,128}$/

const id = z.string().regex(MESSAGE_ID)
const count = z.number().int().nonnegative().catch(0)

/** 64 bits, which a number cannot hold. */
const historyId = z.union([z.string().regex(/^\d{1,20}$/), z.number().int().nonnegative().transform(String)])

const epochMs = z.union([
  z
    .string()
    .regex(/^-?\d{1,15}$/)
    .transform(Number),
  z.number().int(),
])

const labelIds = z.array(z.string()).default([])
/** One that cannot be read must not pass for none: the list would seem to end there. */
const pageToken = z
  .string()
  .max(4_096)
  .nullish()
  .transform((token) => token || undefined)

export const profileSchema = z.object({
  emailAddress: z.string(),
  messagesTotal: count,
  threadsTotal: count,
  historyId,
})

export const labelSchema = z.object({
  id: z.string().min(1),
  name: z.string(),
  /** `system` or `user`. */
  type: z.string().default('user'),
})

/** Only what is asked for of a single label. */
export const labelCountSchema = z.object({ messagesTotal: count.default(0) })

export const labelsSchema = z.object({ labels: z.array(labelSchema).default([]) })

export const messageListSchema = z.object({
  messages: z.array(z.object({ id, threadId: id })).default([]),
  nextPageToken: pageToken,
  resultSizeEstimate: count.default(0),
})

/** Of format=minimal, and of format=raw without its bytes. */
export const messageSchema = z.object({
  id,
  threadId: id,
  labelIds,
  historyId,
  internalDate: epochMs,
  snippet: z.string().default(''),
  sizeEstimate: count.default(0),
})

export const rawMessageSchema = messageSchema.extend({ raw: z.string().min(1) })

/** What modify, trash and insert answer with. */
export const messageRefSchema = z.object({ id, threadId: id, labelIds })

export const threadRefSchema = z.object({ id })

const changed = z.object({
  id,
  threadId: id.optional().catch(undefined),
  labelIds: z.array(z.string()).optional(),
})
const messageChange = z.array(z.object({ message: changed })).default([])
const labelChange = z.array(z.object({ message: changed, labelIds })).default([])

const historyRecordSchema = z.object({
  id: historyId,
  messages: z.array(changed).default([]),
  messagesAdded: messageChange,
  messagesDeleted: messageChange,
  labelsAdded: labelChange,
  labelsRemoved: labelChange,
})

export const historySchema = z.object({
  history: z.array(historyRecordSchema.transform(historyRecord)).default([]),
  historyId,
  nextPageToken: pageToken,
})

export const watchSchema = z.object({ historyId, expiration: epochMs })

export const nothingSchema = z.unknown().transform(() => undefined)

type ChangedMessage = { id: string; threadId: string | undefined }
type RelabelledMessage = ChangedMessage & { labelIds: readonly string[] }

/** What happened at one point of the mailbox's history; records come in the order of their ids. */
export type HistoryRecord = {
  /** A decimal number of up to 64 bits. */
  id: string
  /** New in the mailbox, with the labels that it had when the answer was made. */
  added: readonly RelabelledMessage[]
  /** Just these labels were added, or removed. */
  labelsAdded: readonly RelabelledMessage[]
  labelsRemoved: readonly RelabelledMessage[]
  /** Gone for good, not just in the trash. */
  deleted: readonly ChangedMessage[]
  /** Named without saying what happened: to be looked at again. */
  touched: readonly ChangedMessage[]
}

function historyRecord(wire: z.infer<typeof historyRecordSchema>): HistoryRecord {
  const record = {
    id: wire.id,
    added: wire.messagesAdded.map(({ message }) => ({
      ...messageIds(message),
      labelIds: message.labelIds ?? [],
    })),
    labelsAdded: wire.labelsAdded.map(({ message, labelIds }) => ({ ...messageIds(message), labelIds })),
    labelsRemoved: wire.labelsRemoved.map(({ message, labelIds }) => ({ ...messageIds(message), labelIds })),
    deleted: wire.messagesDeleted.map(({ message }) => messageIds(message)),
  }
  const { added, labelsAdded, labelsRemoved, deleted } = record
  const told = new Set([...added, ...labelsAdded, ...labelsRemoved, ...deleted].map(({ id }) => id))
  return { ...record, touched: wire.messages.filter(({ id }) => !told.has(id)).map(messageIds) }
}

function messageIds({ id, threadId }: { id: string; threadId?: string | undefined }): ChangedMessage {
  return { id, threadId }
}
