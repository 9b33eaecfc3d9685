/** Archives with known content, for tests of search and statistics: written straight into the tables of shards. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { MessageSource } from '../message.ts'
import { ARCHIVE_FORMAT, type ListedShard } from './archive-file.ts'
import { compressed } from './compression.ts'
import { createFile } from './shard-file.ts'
import { ShardReader } from './shard-reader.ts'
import { firstPosOf, shardOf } from './shard-router.ts'

export type TestMessage = {
  id: string
  /** The shard it is in; the year of `at` unless given. */
  shard?: string
  /** Milliseconds since the epoch. */
  at: number
  threadId?: string
  messageId?: string
  subject?: string
  from?: string
  to?: string
  cc?: string
  bcc?: string
  files?: readonly string[]
  body?: string
  labels?: readonly string[]
  bytes?: number
  source?: MessageSource
  deletedMs?: number
}

export type TestShards = {
  folder: string
  reader: ShardReader
  add(messages: readonly TestMessage[]): void
  remove(): void
}

const ARCHIVE_ID = 'test-archive'

export function makeShards(messages: readonly TestMessage[]): TestShards {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-search-'))
  const reader = new ShardReader({ folder, archiveId: ARCHIVE_ID })
  const shards = new Map<string, ListedShard>()
  const add = (added: readonly TestMessage[]): void => {
    const byShard = Map.groupBy(
      added,
      (message) => message.shard ?? String(new Date(message.at).getUTCFullYear()),
    )
    for (const [name, own] of byShard) {
      const { fromMs, toMs } = shardOf(name)!
      if (!shards.has(name)) shards.set(name, { name, fromMs, toMs, made: shards.size + 1, imports: false })
      fill(join(folder, `${name}.db`), name, own)
    }
    const list = { format: ARCHIVE_FORMAT, archiveId: ARCHIVE_ID, account: 'amy', made: shards.size }
    writeFileSync(
      join(folder, 'archive.json'),
      JSON.stringify({ ...list, shards: [...shards.values()], attachmentFiles: [] }),
    )
  }
  add(messages)
  return {
    folder,
    reader,
    add,
    remove() {
      reader.close()
      rmSync(folder, { recursive: true })
    },
  }
}

function fill(file: string, name: string, messages: readonly TestMessage[]): void {
  createFile(file, { kind: 'shard', name, archiveId: ARCHIVE_ID, account: 'amy' }, 0)
  const db = new DatabaseSync(file)
  db.exec('PRAGMA synchronous = OFF')
  db.exec('BEGIN')
  for (const message of messages) insert(db, message)
  db.exec('COMMIT')
  db.close()
}

function insert(db: DatabaseSync, message: TestMessage): void {
  const first = firstPosOf(message.at)
  const last = db
    .prepare('SELECT max(pos) AS pos FROM messages WHERE pos >= ? AND pos < ?')
    .get(first, first + 1_024)
  const pos = typeof last?.pos === 'number' ? last.pos + 1 : first
  const { subject = '', from = '', to = '', cc = '', bcc = '', body = '', files = [], labels = [] } = message
  const people = (address: string): object[] => (address === '' ? [] : [{ name: '', address }])
  db.prepare(
    `INSERT INTO messages(pos, id, thread_id, message_id, message_id_made, history_id, internal_ms, header_ms, subject,
       sender, people, snippet, labels, bytes, sha256, attachments, has_attachment, problems, source, deleted_ms, stored_ms)
     VALUES (?, ?, ?, ?, 0, '00000000000000000001', ?, NULL, ?, ?, ?, ?, ?, ?, x'00', ?, ?, '[]', ?, ?, 0)`,
  ).run(
    pos,
    message.id,
    message.threadId ?? message.id,
    message.messageId ?? `<${message.id}@example.com>`,
    message.at,
    subject,
    JSON.stringify(people(from)),
    JSON.stringify({ to: people(to), cc: people(cc), bcc: people(bcc), replyTo: [] }),
    body.slice(0, 200),
    JSON.stringify(labels),
    message.bytes ?? 1_000,
    JSON.stringify(
      files.map((file, index) => ({ name: file, type: 'text/plain', bytes: 1, sha256: '00', index })),
    ),
    files.length > 0 ? 1 : 0,
    message.source ?? 'gmail',
    message.deletedMs ?? null,
  )
  for (const label of labels)
    db.prepare('INSERT INTO message_labels(label, pos) VALUES (?, ?)').run(label, pos)
  db.prepare(`INSERT INTO bodies(pos, raw, text) VALUES (?, x'00', ?)`).run(
    pos,
    compressed(Buffer.from(body)),
  )
  db.prepare(
    'INSERT INTO words(rowid, subject, sender, recipients, cc, bcc, files, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  ).run(pos, subject, from, to, cc, bcc, files.join('\n'), body)
}
