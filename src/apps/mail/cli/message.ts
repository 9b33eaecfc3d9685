/** A stored message as commands print it. */

import { isoTime } from '../../../base/moment.ts'
import type { OpenedArchive } from '../merged-search.ts'
import type { Address, StoredMessage } from '../message.ts'

type Owner = Pick<OpenedArchive, 'name' | 'labelNames'>

export function messageJson(owner: Owner, message: StoredMessage) {
  const { internalMs, headerMs, deletedAtMs, storedAtMs, labelIds, attachments, ...rest } = message
  const { messageIdIsSurrogate: _, historyId: __, ...shown } = rest
  return {
    account: owner.name,
    ...shown,
    date: isoTime(internalMs),
    headerDate: isoTime(headerMs),
    labels: labelNames(owner, labelIds),
    attachments: attachments.map(({ index, ...attachment }) => ({ number: index + 1, ...attachment })),
    deletedAt: isoTime(deletedAtMs),
    storedAt: isoTime(storedAtMs),
  }
}

export function labelNames({ labelNames: names }: Owner, ids: readonly string[]): string[] {
  return ids.map((id) => names.get(id) ?? id)
}

/** `Amy Smith <amy@example.com>, bob@example.com` */
export function addressList(addresses: readonly Address[]): string {
  return addresses.map(({ name, address }) => (name === '' ? address : `${name} <${address}>`)).join(', ')
}

/** The shortest that says who it is. */
export function senderText({ from: [first] }: StoredMessage): string {
  return first ? first.name || first.address : '(nobody)'
}

/** `2024-03-01` on the machine's own clock face. */
export function dayText(internalMs: number): string {
  const date = new Date(internalMs)
  if (Number.isNaN(date.getTime())) return '?'
  return [date.getFullYear(), date.getMonth() + 1, date.getDate()]
    .map((part, index) => String(part).padStart(index === 0 ? 4 : 2, '0'))
    .join('-')
}
