/** Mail as documents of the one index: each message, and those of its attachments that have text. */
import { hash } from 'node:crypto'
import type { DocumentOffer, OfferedDocument, OfferedId } from '../../app/documents.ts'
import { accountKey } from '../../ledger/accounts.ts'
import type { DocumentType } from '../../search/contract.ts'
import { type MailAccount, type MailAccounts, SERVICE } from './account.ts'
import type { Address, StoredAttachment, StoredMessage } from './message.ts'
import type { MailTables } from './store/tables.ts'

const SOURCE = 'mail'
const PAGE = 1_000
/** Attachments of one message; the others are found by their mail. */
const ATTACHMENTS_MAX = 50
const ATTACHMENT_BYTES_MAX = 64 * 1024 * 1024

/** Before and after any mail. */
const EARLIEST_MS = -8_640_000_000_000_000
const LATEST_MS = 8_640_000_000_000_000

export function mailOffer({
  accounts,
  tables,
}: {
  accounts: MailAccounts
  tables: MailTables
}): DocumentOffer {
  return {
    source: SOURCE,
    async owner(unit) {
      return accounts.names().includes(unit)
        ? { principal: accountKey({ service: SERVICE, name: unit }) }
        : 'unknown'
    },
    async stamp(unit) {
      const { stores } = await (await accounts.get(unit)).archive.mark()
      return String(stores)
    },
    async all(unit, after, signal) {
      const { archive } = await accounts.get(unit)
      const fromMs = after === null ? EARLIEST_MS : Number(after)
      const ids: OfferedId[] = []
      for await (const entries of archive.entries({ fromMs, toMs: LATEST_MS, pageSize: PAGE })) {
        signal.throwIfAborted()
        for (const { id, labelIds } of entries) ids.push({ id, version: labelsVersion(labelIds) })
        const lastMs = entries.at(-1)!.internalMs
        // The next page begins with the last millisecond of this one: others may have the same.
        if (lastMs > fromMs) return { ids, next: String(lastMs) }
      }
      return { ids, next: null }
    },
    has: async (unit, ids) => (await accounts.get(unit)).archive.stored(ids),
    async read(unit, id) {
      const account = await accounts.get(unit)
      const stored = await account.archive.messageWithText(id)
      if (!stored) return undefined
      const { message, text } = stored
      const names = new Map((await tables.labels(unit)).map((label) => [label.id, label.name]))
      const labels = message.labelIds.map((label) => names.get(label) ?? label)
      const whole = messageDocument(account, message, { labels, text })
      const parts = message.attachments.filter(isWorthReading)
      return [whole, ...parts.map((one) => attachmentDocument(account, whole, { message, one }))]
    },
  }
}

function messageDocument(
  account: MailAccount,
  message: StoredMessage,
  { labels, text }: { labels: readonly string[]; text: string },
): OfferedDocument {
  const { id, subject, from, to, cc, bcc, internalMs, bytes, source } = message
  return {
    title: subject === '' ? '(no subject)' : subject,
    type: 'mail',
    mimeType: 'message/rfc822',
    owner: account.name,
    people: [
      ...from.map((one) => ({ role: 'from' as const, name: addressText(one) })),
      ...[...to, ...cc, ...bcc].map((one) => ({ role: 'to' as const, name: addressText(one) })),
    ],
    folders: labels,
    url:
      source === 'gmail'
        ? `https://mail.google.com/mail/?authuser=${encodeURIComponent(account.name)}#all/${id}`
        : '',
    createdAtMs: internalMs,
    modifiedAtMs: internalMs,
    sizeBytes: bytes,
    version: labelsVersion(message.labelIds),
    body: { text, hash: `text:${hash('sha256', text)}` },
  }
}

function attachmentDocument(
  account: MailAccount,
  whole: OfferedDocument,
  { message, one }: { message: StoredMessage; one: StoredAttachment },
): OfferedDocument {
  return {
    ...whole,
    part: String(one.index),
    title: one.name === '' ? `attachment ${one.index + 1}` : one.name,
    type: 'attachment' satisfies DocumentType,
    mimeType: one.type,
    sizeBytes: one.bytes,
    version: one.sha256,
    body: {
      hash: `sha256:${one.sha256}`,
      name: one.name,
      mimeType: one.type,
      bytes: async () => (await account.archive.attachment(message.id, one.index)).content,
    },
  }
}

/** Pictures of signatures and sounds have no text; everything else says so itself where it has none. */
function isWorthReading({ type, bytes, index }: StoredAttachment): boolean {
  return index < ATTACHMENTS_MAX && bytes <= ATTACHMENT_BYTES_MAX && !/^(?:image|audio|video)\//i.test(type)
}

function addressText({ name, address }: Address): string {
  return name === '' ? address : `${name} <${address}>`
}

/** Its bytes never change; where it lies does. */
function labelsVersion(labelIds: readonly string[]): string {
  return hash('sha256', [...labelIds].sort().join('\n')).slice(0, 16)
}
