/**
 * What can still be read in files that were set aside. The cloud may no longer have it, and what need not be fetched
 * again costs nothing. Only bytes that have the hash noted beside them count; the file itself is not changed.
 *
 * A damaged file may give its rows in one order and not in another, so that each is asked for in several; a page that
 * is broken costs the rows on it and no others.
 */
import { hash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { FetchedMessage } from '../message.ts'
import type { AttachmentReader } from './attachment-files.ts'
import { readContent } from './attachment-files.ts'
import { rawOf } from './message-bytes.ts'
import type { Content } from './prepared-message.ts'
import type { FileIdentity } from './shard-file.ts'
import { shardOf } from './shard-router.ts'
import { areTexts, hexOf, MESSAGE_COLUMNS, type MessageRow, plainHistoryId, textsOf } from './shard-row.ts'

export type AsideFile = { file: string; name: string; kind: FileIdentity['kind'] }

export type SalvagedMessage = { message: FetchedMessage; deletedAtMs: number | null }

const ASIDE_NAME = /^(.{1,60})\.db\.corrupt-[0-9TZ]{10,20}(?:-\d+)?$/
const MESSAGE_SCANS = [
  'SELECT pos FROM messages ORDER BY pos',
  'SELECT pos FROM messages ORDER BY pos DESC',
  'SELECT pos FROM messages INDEXED BY messages_facts ORDER BY pos',
  'SELECT pos FROM messages INDEXED BY messages_facts ORDER BY pos DESC',
  'SELECT pos FROM bodies ORDER BY pos',
]
const CONTENT_SCANS = [
  'SELECT sha256 AS pos FROM contents ORDER BY sha256',
  'SELECT sha256 AS pos FROM contents ORDER BY sha256 DESC',
  'SELECT sha256 AS pos FROM contents ORDER BY rowid',
]

/** Files with attachments first: messages need them. */
export function asideFiles(folder: string): AsideFile[] {
  const files = readdirSync(folder).flatMap((entry): AsideFile[] => {
    const name = ASIDE_NAME.exec(entry)?.[1]
    if (name === undefined) return []
    const file = join(folder, entry)
    if (/^attachments-\d{1,9}$/.test(name)) return [{ file, name, kind: 'attachments' }]
    return shardOf(name) ? [{ file, name, kind: 'shard' }] : []
  })
  return files.sort((a, b) => (a.kind === b.kind ? (a.file < b.file ? -1 : 1) : a.kind < b.kind ? -1 : 1))
}

/** Null for each row that is known to have been there and cannot be had. */
export function* salvagedMessages(
  db: DatabaseSync,
  contents: AttachmentReader,
): Generator<SalvagedMessage | null> {
  const places = scanned<number>(db, MESSAGE_SCANS)
  const rowAt = prepared(db, `SELECT ${MESSAGE_COLUMNS} FROM messages m WHERE m.pos = ?`)
  const bodyAt = prepared(db, 'SELECT raw FROM bodies WHERE pos = ?')
  if (!rowAt || !bodyAt) return
  for (const pos of places.values()) {
    yield attempt(() => {
      const row = rowAt.get(pos) as MessageRow | undefined
      const body = bodyAt.get(pos) as { raw: Uint8Array } | undefined
      if (!row || !body) return null
      return salvagedMessage(row, rawOf(body.raw, row, contents))
    })
  }
}

export function* salvagedContents(db: DatabaseSync): Generator<Content | null> {
  const keys = scanned<Uint8Array>(db, CONTENT_SCANS)
  for (const key of keys.values()) {
    const sha256 = hexOf(key)
    yield attempt(() => {
      const content = readContent(db, sha256)
      return content && hash('sha256', content, 'hex') === sha256 ? { sha256, content } : null
    })
  }
}

/** All that any of the scans finds before it breaks off, each once. */
function scanned<Key extends number | Uint8Array>(
  db: DatabaseSync,
  scans: readonly string[],
): Map<string, Key> {
  const found = new Map<string, Key>()
  for (const sql of scans) {
    attempt(() => {
      for (const row of db.prepare(sql).iterate()) {
        const { pos } = row as { pos: Key }
        found.set(typeof pos === 'number' ? String(pos) : hexOf(pos), pos)
      }
      return null
    })
  }
  return found
}

function salvagedMessage(row: MessageRow, raw: Uint8Array): SalvagedMessage | null {
  const isWhole =
    typeof row.id === 'string' &&
    row.id.length > 0 &&
    typeof row.thread_id === 'string' &&
    Number.isSafeInteger(row.internal_ms)
  if (!isWhole) return null
  const { id, thread_id: threadId, internal_ms: internalMs, source } = row
  const labelIds = textsOf(row.labels)
  // Labels that cannot be read are none to hold against what the cloud says.
  const historyId = areTexts(row.labels) ? plainHistoryId(row.history_id) : '0'
  return {
    message: { id, threadId, historyId, labelIds, internalMs, source, raw },
    deletedAtMs: row.deleted_ms,
  }
}

function prepared(db: DatabaseSync, sql: string): StatementSync | null {
  return attempt(() => db.prepare(sql))
}

/** In a damaged file anything may fail, and says only that this part of it is lost. */
function attempt<T>(read: () => T | null): T | null {
  try {
    return read()
  } catch {
    return null
  }
}
