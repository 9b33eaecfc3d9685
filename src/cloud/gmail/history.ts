/** History records in the words of Tidemark. */
import type { WireHistoryRecord } from './schema.ts'

export type ChangedMessage = { id: string; threadId: string | undefined }
export type RelabelledMessage = ChangedMessage & { labelIds: readonly string[] }

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

export function historyRecordOf(wire: WireHistoryRecord): HistoryRecord {
  const record = {
    id: wire.id,
    added: wire.messagesAdded.map(({ message }) => ({ ...idsOf(message), labelIds: message.labelIds ?? [] })),
    labelsAdded: wire.labelsAdded.map(({ message, labelIds }) => ({ ...idsOf(message), labelIds })),
    labelsRemoved: wire.labelsRemoved.map(({ message, labelIds }) => ({ ...idsOf(message), labelIds })),
    deleted: wire.messagesDeleted.map(({ message }) => idsOf(message)),
  }
  const { added, labelsAdded, labelsRemoved, deleted } = record
  const told = new Set([...added, ...labelsAdded, ...labelsRemoved, ...deleted].map(({ id }) => id))
  return { ...record, touched: wire.messages.filter(({ id }) => !told.has(id)).map(idsOf) }
}

function idsOf({ id, threadId }: { id: string; threadId?: string | undefined }): ChangedMessage {
  return { id, threadId }
}
