/**
 * Mail from files into an archive. A message that the archive has is left alone, so an import that was
 * interrupted is simply started again, and one that is done twice changes nothing.
 *
 * What comes from a file is marked as imported: the clean-up frees nothing in the cloud on the word of a file.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { type FetchedMessage, isMadeId, madeId, withMailLineEnds } from '../message.ts'
import { parseDate } from '../mime/dates.ts'
import { scanHeaders, unfoldedValue } from '../mime/headers.ts'
import { collectProblems } from '../mime/limits.ts'
import type { Archive } from '../store/contract.ts'
import { surrogateMessageId } from '../store/prepared-message.ts'
import { labelIdsOf } from './label-names.ts'
import type { MailSource } from './source.ts'
import type { SourceMessage } from './source-item.ts'

export type Damaged = { place: string; reason: string }

export type ImportReport = {
  /** Messages found in the source, and their bytes. */
  read: number
  bytes: number
  added: number
  /** The archive had them, or the source has them twice. */
  known: number
  /** What is no mail, or is not read here. */
  ignored: number
  /** The first of them. */
  ignoredPlaces: readonly Damaged[]
  ignoredByReason: Readonly<Record<string, number>>
  damaged: number
  /** The first of them. */
  damagedPlaces: readonly Damaged[]
}

export type ImportOptions = {
  archive: Archive
  source: MailSource
  clock: Clock
  /** Ids by lower-case name, for the labels that the source names. */
  labels?: ReadonlyMap<string, string>
  signal?: AbortSignal
  onProgress?: (report: ImportReport) => void
  onDamaged?: (damaged: Damaged) => void
}

const GROUP_MESSAGES_MAX = 100
const GROUP_BYTES_MAX = 8_000_000
const DAMAGED_LISTED_MAX = 1_000
/** Clocks of senders are wrong; what arrived cannot have come more than this after now. */
const AHEAD_MS_MAX = 86_400_000

export async function importMessages(options: ImportOptions): Promise<ImportReport> {
  const report = {
    read: 0,
    bytes: 0,
    added: 0,
    known: 0,
    ignored: 0,
    ignoredPlaces: [] as Damaged[],
    ignoredByReason: {} as Record<string, number>,
    damaged: 0,
    damagedPlaces: [] as Damaged[],
  }
  let group: FetchedMessage[] = []
  let groupBytes = 0
  const flush = async (): Promise<void> => {
    if (group.length === 0) return
    const { added, known } = await storeGroup(options, group)
    report.added += added
    report.known += known
    group = []
    groupBytes = 0
    options.onProgress?.({ ...report })
  }
  for await (const item of options.source.items()) {
    options.signal?.throwIfAborted()
    if (item.type === 'ignored') {
      const { place, reason } = item
      report.ignored++
      report.ignoredByReason[reason] = (report.ignoredByReason[reason] ?? 0) + 1
      if (report.ignoredPlaces.length < DAMAGED_LISTED_MAX) report.ignoredPlaces.push({ place, reason })
    } else if (item.type === 'damaged') {
      report.damaged++
      const damaged = { place: item.place, reason: item.reason }
      if (report.damagedPlaces.length < DAMAGED_LISTED_MAX) report.damagedPlaces.push(damaged)
      options.onDamaged?.(damaged)
    } else {
      report.read++
      report.bytes += item.raw.byteLength
      group.push(fetchedOf(item, options))
      groupBytes += item.raw.byteLength
      if (group.length >= GROUP_MESSAGES_MAX || groupBytes >= GROUP_BYTES_MAX) await flush()
    }
  }
  await flush()
  return report
}

/** Stores those that the archive does not have. */
async function storeGroup(
  { archive, signal }: ImportOptions,
  group: readonly FetchedMessage[],
): Promise<{ added: number; known: number }> {
  const byId = new Map<string, FetchedMessage>()
  const again: FetchedMessage[] = []
  for (const message of group) {
    if (byId.has(message.id)) again.push(message)
    else byId.set(message.id, message)
  }
  const stored = await archive.stored([...byId.keys()])
  const missing: FetchedMessage[] = []
  for (const message of byId.values()) {
    if (!stored.has(message.id) && !(await hasTwin(archive, message))) missing.push(message)
  }
  let added = 0
  if (missing.length > 0) {
    await archive.room(signal)
    const outcomes = await archive.store(missing)
    added = outcomes.filter(({ status }) => status === 'added').length
  }
  await addLabels(archive, [...again, ...[...byId.values()].filter(({ id }) => stored.has(id))])
  return { added, known: group.length - added }
}

/** Of states, not of places: the copy in one folder says nothing about that in another. */
const STATES = new Set(['UNREAD', 'TRASH', 'SPAM', 'DRAFT'])

/** A message that lies in several folders gets the labels of all, unless Gmail has said what its labels are. */
async function addLabels(archive: Archive, known: readonly FetchedMessage[]): Promise<void> {
  const changes = known
    .map(({ id, historyId, labelIds }) => {
      return { id, historyId, addLabelIds: labelIds.filter((label) => !STATES.has(label)) }
    })
    .filter(({ id, addLabelIds }) => isMadeId(id) && addLabelIds.length > 0)
  if (changes.length > 0) await archive.apply(changes)
}

const TWINS_MAX = 20

/** Does the archive have this message under Gmail's id? A file without that id would bring it in once more. */
async function hasTwin(archive: Archive, { id, raw }: FetchedMessage): Promise<boolean> {
  if (!isMadeId(id)) return false
  const hashes = [raw, withMailLineEnds(raw)].map((bytes) => hash('sha256', bytes, 'hex'))
  const messageId = headerOf(raw, 'message-id')
    ?.trim()
    .replace(/^<(.*)>$/, '$1')
  const values = [...(messageId ? [messageId] : []), ...hashes.map(surrogateMessageId)]
  for (const value of new Set(values)) {
    const { hits } = await archive.search({ is: 'message-id', value }, { limit: TWINS_MAX })
    if (hits.some(({ message }) => hashes.includes(message.sha256))) return true
  }
  return false
}

function fetchedOf(item: SourceMessage, { clock, labels }: ImportOptions): FetchedMessage {
  const id = item.id ?? madeId(item.raw)
  const labelIds = [...new Set([...labelIdsOf(item.labelNames, labels ?? new Map()), ...item.labelIds])]
  const latestMs = clock.now() + AHEAD_MS_MAX
  const candidates = [item.arrivedMs, ...(item.arrivedMs === null ? headerTimes(item.raw) : [])]
  const internalMs = candidates.find((ms) => ms !== null && ms >= 0 && ms <= latestMs) ?? item.modifiedMs
  return {
    id,
    threadId: item.threadId ?? id,
    historyId: '0',
    labelIds,
    internalMs,
    raw: item.raw,
    source: 'import',
  }
}

/** When the last server took it in, and when it says it was written. */
function headerTimes(raw: Uint8Array): (number | null)[] {
  const received = headerOf(raw, 'received')
  const date = headerOf(raw, 'date')
  return [
    received === null ? null : parseDate(received.slice(received.lastIndexOf(';') + 1)),
    date === null ? null : parseDate(date),
  ]
}

/** The first header of that name, in lower case. */
function headerOf(raw: Uint8Array, name: string): string | null {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const { fields } = scanHeaders({
    raw: bytes,
    start: 0,
    end: bytes.length,
    problems: collectProblems(),
    keeps: (one) => one === name,
  })
  const field = fields.find((one) => one.name === name)
  return field ? unfoldedValue(bytes, field) : null
}
