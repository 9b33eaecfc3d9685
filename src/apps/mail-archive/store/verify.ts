/**
 * Everything read again: each file by SQLite's own check, each message by its hash. One page at a time, so that memory
 * stays small and the caller can stop between two pages.
 */
import type { VerifyEvent } from './contract.ts'
import { type BytesRow, readRaw } from './message-bytes.ts'
import type { ReaderDesk } from './reader-desk.ts'
import { openForReading } from './shard-file.ts'
import {
  bytesMismatch,
  classifyStore,
  isContentUnreadable,
  isUnreadable,
  shardCorrupt,
} from './store-errors.ts'

const PAGE_MESSAGES_MAX = 200
const PAGE_BYTES_MAX = 16 * 1_048_576
const CHECK_LINES_MAX = 5

export type VerifyFile = { name: string; kind: 'shard' | 'attachments' }
export type VerifyPage = {
  events: Extract<VerifyEvent, { type: 'message' }>[]
  messages: number
  bytes: number
  /** The position to go on after; null at the end. */
  last: number | null
}

/** What there is to verify, in the order of the list. */
export function filesToVerify(desk: ReaderDesk, only: readonly string[] | undefined): VerifyFile[] {
  const { shards, attachmentFiles } = desk.shards.archive.read()
  const files: VerifyFile[] = [
    ...attachmentFiles.map(({ name }) => ({ name, kind: 'attachments' as const })),
    ...shards.map(({ name }) => ({ name, kind: 'shard' as const })),
  ]
  return only ? files.filter(({ name }) => only.includes(name)) : files
}

/** Throws `shard-missing`, `shard-corrupt` … with what SQLite says. */
export function checkFile(desk: ReaderDesk, { name, kind }: VerifyFile): void {
  const { archive } = desk.shards
  const file = archive.pathOf(name)
  const db = openForReading(file, { kind, name, archiveId: archive.archiveId })
  try {
    const rows = db.prepare(`PRAGMA integrity_check(${CHECK_LINES_MAX})`).all() as {
      integrity_check: string
    }[]
    const wrong = rows.map(({ integrity_check: line }) => line).filter((line) => line !== 'ok')
    if (wrong.length > 0) throw shardCorrupt(name, file, wrong.join('; '))
  } catch (thrown) {
    throw classifyStore(thrown, name, file)
  } finally {
    db.close()
  }
}

/** Throws `shard-…` where the shard itself cannot be read. */
export function verifyPage(desk: ReaderDesk, shard: string, after: number | null): VerifyPage {
  const { shards, contents } = desk
  const sql = 'SELECT pos, id, bytes, sha256 FROM messages WHERE pos > ? ORDER BY pos LIMIT ?'
  const start = after ?? Number.MIN_SAFE_INTEGER
  const rows = shards.guarded(shard, () =>
    shards.prepare(shard, sql).all(start, PAGE_MESSAGES_MAX),
  ) as unknown as BytesRow[]
  const page: VerifyPage = { events: [], messages: 0, bytes: 0, last: null }
  for (const row of rows) {
    if (page.bytes >= PAGE_BYTES_MAX) break
    try {
      readRaw({ shards, contents }, shard, row)
    } catch (thrown) {
      page.events.push(eventOf(shard, row.id, thrown))
    }
    page.messages += 1
    page.bytes += row.bytes
    page.last = row.pos
  }
  if (page.messages === rows.length && rows.length < PAGE_MESSAGES_MAX) page.last = null
  return page
}

function eventOf(shard: string, id: string, thrown: unknown): VerifyPage['events'][number] {
  if (isContentUnreadable(thrown)) {
    return { type: 'message', shard, id, state: 'unreadable', detail: (thrown as Error).message }
  }
  if (isUnreadable(thrown)) throw thrown
  if ((thrown as { code?: string }).code !== bytesMismatch(id, '').code) throw thrown
  return { type: 'message', shard, id, state: 'mismatch', detail: (thrown as Error).message }
}
