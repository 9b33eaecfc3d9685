/** Mail from an archive into files, by query, newest first, a page at a time. */
import { asTidemarkError } from '../../../base/errors.ts'
import type { StoredMessage } from '../message.ts'
import { safeFileName } from '../mime/file-name.ts'
import { clip } from '../mime/limits.ts'
import type { Query } from '../query/query.ts'
import type { Archive } from '../store/contract.ts'
import type { ExportFormat } from './formats.ts'
import { labelNamesOf } from './label-names.ts'
import { maildirName } from './maildir.ts'
import { formatMboxMessage } from './mbox.ts'
import { FileTarget, FolderTarget, targetError } from './target.ts'

export type ExportReport = {
  messages: number
  bytes: number
  failed: number
  /** Messages whose bytes could not be read, the first of them. */
  failures: readonly { id: string; reason: string }[]
  /** Parts of the archive that could not be searched: their messages are missing from the export. */
  unsearched: readonly { shard: string; reason: string }[]
}

export type ExportOptions = {
  archive: Archive
  query: Query
  format: ExportFormat
  target: string
  force?: boolean
  now: number
  /** Ids by lower-case name, and names by id. */
  labels?: ReadonlyMap<string, string>
  labelNames?: ReadonlyMap<string, string>
  signal?: AbortSignal
  onProgress?: (report: ExportReport) => void
}

const PAGE_MESSAGES = 100
const FAILURES_LISTED_MAX = 1_000
const SUBJECT_CHARS_MAX = 60

export async function exportMessages(options: ExportOptions): Promise<ExportReport> {
  try {
    return await exportInto(options)
  } catch (thrown) {
    throw targetError(thrown, options.target)
  }
}

async function exportInto(options: ExportOptions): Promise<ExportReport> {
  const writer = await openWriter(options)
  try {
    const report = await exportAll(options, writer)
    await writer.finish()
    return report
  } catch (thrown) {
    await writer.abandon()
    throw thrown
  }
}

type Writer = {
  write(message: StoredMessage, raw: Uint8Array): Promise<void>
  finish(): Promise<void>
  abandon(): Promise<void>
}

async function exportAll(options: ExportOptions, writer: Writer): Promise<ExportReport> {
  const { archive, query, labels, now, signal } = options
  const failures: { id: string; reason: string }[] = []
  const unsearched = new Map<string, string>()
  const counts = { messages: 0, bytes: 0, failed: 0 }
  const report = (): ExportReport => ({
    ...counts,
    failures,
    unsearched: [...unsearched].map(([shard, reason]) => ({ shard, reason })),
  })
  let cursor: string | null = null
  do {
    const place = cursor === null ? {} : { cursor }
    const page = await archive.search(query, { order: 'date', limit: PAGE_MESSAGES, labels, now, ...place })
    for (const { shard, reason } of page.unsearched) unsearched.set(shard, reason)
    for (const { message } of page.hits) {
      signal?.throwIfAborted()
      const read = await readBack(archive, message.id)
      if ('reason' in read) {
        counts.failed++
        if (failures.length < FAILURES_LISTED_MAX) failures.push({ id: message.id, reason: read.reason })
      } else {
        await writer.write(message, read.raw)
        counts.messages++
        counts.bytes += read.raw.byteLength
      }
    }
    options.onProgress?.(report())
    cursor = page.next
  } while (cursor !== null)
  return report()
}

/** A message whose bytes are damaged must not keep the others from being exported. */
async function readBack(archive: Archive, id: string): Promise<{ raw: Uint8Array } | { reason: string }> {
  try {
    return { raw: await archive.raw(id) }
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (error.kind === 'bug') throw error
    return { reason: error.message }
  }
}

async function openWriter(options: ExportOptions): Promise<Writer> {
  const target = { path: options.target, force: options.force ?? false }
  switch (options.format) {
    case 'mbox':
      return mboxWriter(await FileTarget.open(target), options.labelNames ?? new Map())
    case 'eml':
      return emlWriter(await FolderTarget.open(target))
    case 'maildir':
      return await maildirWriter(await FolderTarget.open(target))
  }
}

function mboxWriter(file: FileTarget, names: ReadonlyMap<string, string>): Writer {
  return {
    write: ({ id, threadId, labelIds, internalMs }, raw) => {
      const labelNames = labelNamesOf(labelIds, names)
      return file.write(formatMboxMessage({ id, threadId, labelNames, arrivedMs: internalMs, raw }))
    },
    finish: () => file.finish(),
    abandon: () => file.abandon(),
  }
}

/** A folder per year. The id makes names unique; the rest is for people. */
function emlWriter(folder: FolderTarget): Writer {
  return {
    write: async (message, bytes) => {
      const { internalMs: modifiedMs, id } = message
      const day = new Date(modifiedMs).toISOString().slice(0, 10)
      const year = day.slice(0, 4)
      await folder.folders([year])
      const safeId = safeFileName(id, 'message')
      const subject = safeFileName(clip(message.subject, SUBJECT_CHARS_MAX), 'no subject')
      const name = `${year}/${day} ${subject} ${safeId}.eml`
      await folder.write({ name, through: `${name}.partial`, bytes, modifiedMs })
    },
    finish: () => folder.finish(),
    abandon: () => folder.abandon(),
  }
}

/** Messages that are there are left alone, whatever flags a mail program has given them since. */
async function maildirWriter(folder: FolderTarget): Promise<Writer> {
  await folder.folders(['tmp', 'new', 'cur'])
  const there = new Set([...(await folder.names('cur')), ...(await folder.names('new'))].map(withoutFlags))
  return {
    write: async (message, bytes) => {
      const name = maildirName(message)
      if (there.has(withoutFlags(name))) return
      const through = `tmp/${withoutFlags(name)}`
      await folder.write({ name: `cur/${name}`, through, bytes, modifiedMs: message.internalMs })
    },
    finish: () => folder.finish(),
    abandon: () => folder.abandon(),
  }
}

function withoutFlags(name: string): string {
  return name.split(':', 1)[0]!
}
