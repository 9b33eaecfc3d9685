/**
 * Everything read again: each file by SQLite's own check, each message by its hash, and all that follows from its bytes
 * by deriving it again. One page at a time, so that memory stays small and the caller can stop between two pages.
 */
import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { ArchiveReader } from './archive-reader.ts'
import { decompressed } from './compression.ts'
import type { VerifyEvent } from './contract.ts'
import { ActualDigests, type Digests, ExpectedDigests } from './index-digest.ts'
import { rawOf, TEXT_BYTES_MAX } from './message-bytes.ts'
import { type Derived, derivedOf, type Words } from './prepared-message.ts'
import { DERIVATION } from './schema.ts'
import { openForReading } from './shard-file.ts'
import { isInPlace } from './shard-router.ts'
import { areTexts, MESSAGE_COLUMNS, type MessageRow, textsOf } from './shard-row.ts'
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
/** Rows of the search index in one step: around a second. */
const INDEX_ROWS_MAX = 300_000

export type VerifyFile = { name: string; kind: 'shard' | 'attachments' }
export type VerifyPage = {
  events: Extract<VerifyEvent, { type: 'message' }>[]
  messages: number
  bytes: number
  isOver: boolean
}

type MessageEvent = VerifyPage['events'][number]
type Row = MessageRow & { has_attachment: number; raw: Uint8Array | null; text: Uint8Array | null }

/** What there is to verify, in the order of the list. */
export function filesToVerify(reader: ArchiveReader, only: readonly string[] | undefined): VerifyFile[] {
  const { shards, attachmentFiles } = reader.shards.archive.read()
  const files: VerifyFile[] = [
    ...attachmentFiles.map(({ name }) => ({ name, kind: 'attachments' as const })),
    ...shards.map(({ name }) => ({ name, kind: 'shard' as const })),
  ]
  return only ? files.filter(({ name }) => only.includes(name)) : files
}

/** Throws `shard-missing`, `shard-corrupt` … with what SQLite says. */
export function checkFile(reader: ArchiveReader, { name, kind }: VerifyFile): void {
  const { archive } = reader.shards
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

/**
 * One shard, as it was when it was opened: what is written meanwhile is not mixed in.
 *
 *   messages, page by page ──▶ the search index and the labels, step by step ──▶ over
 */
export class ShardVerification {
  readonly shard: string
  readonly #reader: ArchiveReader
  readonly #db: DatabaseSync
  readonly #isOutdated: boolean
  readonly #overrunSeconds: number
  readonly #expected: Digests = new Map()
  readonly #expectedLabels: Digests = new Map()
  readonly #maker = new ExpectedDigests()
  #actual: ActualDigests | undefined
  #after = Number.MIN_SAFE_INTEGER
  #phase: 'messages' | 'index' = 'messages'

  constructor(reader: ArchiveReader, shard: string) {
    this.shard = shard
    this.#reader = reader
    const { archive } = reader.shards
    this.#db = openForReading(archive.pathOf(shard), {
      kind: 'shard',
      name: shard,
      archiveId: archive.archiveId,
    })
    // Looking into the search index takes a table of its own, in memory; the file itself is open for reading only.
    this.#db.exec('PRAGMA query_only = OFF')
    this.#db.exec('BEGIN')
    this.#isOutdated = this.#meta('derivation', 1) < DERIVATION
    this.#overrunSeconds = this.#meta('overrun_s', 0)
  }

  #meta(key: string, otherwise: number): number {
    const row = this.#db.prepare('SELECT value FROM meta WHERE key = ?').get(key)
    return Number((row as { value: string } | undefined)?.value ?? otherwise)
  }

  /** Throws `shard-…` where the shard itself cannot be read. */
  page(): VerifyPage {
    try {
      return this.#phase === 'messages' ? this.#messages() : this.#index()
    } catch (thrown) {
      throw classifyStore(thrown, this.shard, this.#reader.shards.archive.pathOf(this.shard))
    }
  }

  close(): void {
    this.#maker.close()
    this.#db.close()
  }

  #messages(): VerifyPage {
    const page: VerifyPage = { events: [], messages: 0, bytes: 0, isOver: false }
    const words: { pos: number; words: Words }[] = []
    let isFull = false
    for (const row of this.#rows()) {
      const derived = this.#checked(row, page)
      if (derived) words.push({ pos: row.pos, words: derived.words })
      this.#expectedLabels.set(row.pos, digestSum(textsOf(row.labels)))
      page.messages += 1
      page.bytes += row.bytes
      this.#after = row.pos
      isFull = page.messages >= PAGE_MESSAGES_MAX || page.bytes >= PAGE_BYTES_MAX
      if (isFull) break
    }
    this.#maker.add(this.#expected, words)
    if (!isFull) this.#phase = 'index'
    return page
  }

  #rows(): Iterable<Row> {
    const sql = `SELECT ${MESSAGE_COLUMNS}, m.has_attachment, b.raw, b.text FROM messages m LEFT JOIN bodies b ON b.pos = m.pos
      WHERE m.pos > ? ORDER BY m.pos`
    return this.#db.prepare(sql).iterate(this.#after) as unknown as Iterable<Row>
  }

  /** What follows from its bytes, where they are sound. */
  #checked(row: Row, page: VerifyPage): Derived | null {
    const { shard } = this
    const { id } = row
    try {
      if (row.raw === null) throw bytesMismatch(id, 'they are not in the shard')
      const raw = rawOf(row.raw, row, this.#reader.contents)
      const derived = derivedOf(raw, row.sha256)
      const parts = differences(row, derived)
      if (row.bytes !== raw.byteLength) parts.push('its size')
      if (!isInPlace(row, this.#overrunSeconds)) parts.push('its time of arrival')
      if (parts.length > 0) page.events.push(this.#differs(id, parts.join(', ')))
      // Nothing but the cloud can tell what they were.
      if (!areTexts(row.labels)) {
        page.events.push({
          type: 'message',
          shard,
          id,
          state: 'mismatch',
          detail: 'its labels cannot be read',
        })
      }
      return derived
    } catch (thrown) {
      page.events.push(eventOf(shard, id, thrown))
      return null
    }
  }

  #differs(id: string, parts: string): MessageEvent {
    const state = this.#isOutdated ? 'outdated' : 'differs'
    const detail = `${parts}: not what follows from its bytes`
    return { type: 'message', shard: this.shard, id, state, detail }
  }

  #index(): VerifyPage {
    this.#actual ??= new ActualDigests(this.#db)
    const isOver = this.#actual.step(INDEX_ROWS_MAX)
    const page: VerifyPage = { events: [], messages: 0, bytes: 0, isOver }
    if (!isOver) return page
    const { digests } = this.#actual
    this.#compare(page, 'the search index', { expected: this.#expected, actual: digests })
    this.#compare(page, 'the index of labels', { expected: this.#expectedLabels, actual: this.#labels() })
    return page
  }

  #labels(): Digests {
    const actual: Digests = new Map()
    for (const row of this.#db.prepare('SELECT label, pos FROM message_labels').iterate()) {
      const { label, pos } = row as { label: string; pos: number }
      actual.set(pos, (actual.get(pos) ?? 0) + digestSum([label]))
    }
    return actual
  }

  #compare(
    page: VerifyPage,
    what: string,
    { expected, actual }: { expected: Digests; actual: Digests },
  ): void {
    const idAt = this.#db.prepare('SELECT id FROM messages WHERE pos = ?')
    for (const [pos, digest] of expected) {
      if ((actual.get(pos) ?? 0) === digest) continue
      page.events.push(this.#differs((idAt.get(pos) as { id: string }).id, what))
    }
    for (const pos of actual.keys()) {
      // One whose bytes are damaged is told already.
      if (!expected.has(pos) && !idAt.get(pos))
        page.events.push(this.#differs(`at ${pos}`, `${what} of no message`))
    }
  }
}

/** In words: what is stored, and does not follow from the bytes. */
function differences(row: Row, derived: Derived): string[] {
  const same = (stored: unknown, made: string): boolean => stored === made.toWellFormed()
  const parts: [string, boolean][] = [
    [
      'its Message-ID',
      same(row.message_id, derived.messageId) &&
        row.message_id_made === (derived.messageIdIsSurrogate ? 1 : 0),
    ],
    ['its date', row.header_ms === derived.headerMs],
    ['its subject', same(row.subject, derived.subject)],
    ['its sender', same(row.sender, derived.sender)],
    ['its recipients', same(row.people, derived.people)],
    ['its snippet', same(row.snippet, derived.snippet)],
    [
      'its attachments',
      same(row.attachments, derived.attachments) && row.has_attachment === (derived.hasAttachment ? 1 : 0),
    ],
    ['its problems', derived.problems.every((one) => textsOf(row.problems).includes(one.toWellFormed()))],
    ['its text', isText(row.text, derived.text)],
  ]
  return parts.filter(([, isSame]) => !isSame).map(([part]) => part)
}

function isText(packed: Uint8Array | null, text: string): boolean {
  if (packed === null) return false
  try {
    return Buffer.compare(decompressed(packed, TEXT_BYTES_MAX), Buffer.from(text, 'utf8')) === 0
  } catch {
    return false // it cannot be unpacked
  }
}

/** Of texts in any order. */
function digestSum(texts: readonly string[]): number {
  const one = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE(0)
  return texts.reduce((sum, text) => sum + one(text), 0)
}

function eventOf(shard: string, id: string, thrown: unknown): VerifyPage['events'][number] {
  if (isContentUnreadable(thrown)) {
    return { type: 'message', shard, id, state: 'unreadable', detail: (thrown as Error).message }
  }
  if (isUnreadable(thrown)) throw thrown
  if ((thrown as { code?: string }).code !== bytesMismatch(id, '').code) throw thrown
  return { type: 'message', shard, id, state: 'mismatch', detail: (thrown as Error).message }
}
