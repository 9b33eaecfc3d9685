/**
 * The writing side of one shard: messages added and changed in transactions of their own, each all or nothing.
 * Who calls `store` holds the lock of the messages' year, so that no id comes in twice.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { isMadeId, type MessageChange, type StoreOutcome } from '../message.ts'
import type { Derived, PreparedMessage, Words } from './prepared-message.ts'
import { DERIVATION, POS_PER_SECOND } from './schema.ts'
import { firstPosOf, isInPlace } from './shard-router.ts'
import { areTexts, MESSAGE_COLUMNS, type MessageRow, textsOf } from './shard-row.ts'
import { classifyStore } from './store-errors.ts'
import { changedState, isOutdated, type RowState, type StoredView, takenOver, upsertOf } from './upsert.ts'

/** How many changes changed something; `newer`: ids about which the archive knew more than the change. */
export type ShardApplied = { changed: number; newer: string[] }

/** `isIntact`: of the stored bytes, where the message is stored already. */
export type Arrival = { message: PreparedMessage; isIntact: boolean }

/** A stored message, and what follows from its bytes; `text` is packed. */
/** `bytes`: of the message itself. */
export type Rederived = {
  pos: number
  bytes: number
  sha256: Uint8Array
  derived: Derived
  text: Uint8Array
}

type Insertion = { pos: number; message: PreparedMessage; state: RowState; storedMs: number }

export class ShardWriter {
  readonly name: string
  readonly file: string
  readonly db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  #hasChanged = false

  constructor(options: { name: string; file: string; db: DatabaseSync }) {
    this.name = options.name
    this.file = options.file
    this.db = options.db
  }

  /** How many transactions have changed this file, since that is counted. */
  get generation(): number {
    const row = this.#get(`SELECT value FROM meta WHERE key = 'generation'`) as { value: string } | undefined
    return Number(row?.value ?? 0)
  }

  /** Those of the ids that it does not have. */
  without(ids: readonly string[]): string[] {
    const sql = 'SELECT id FROM messages WHERE id IN (SELECT value FROM json_each(?))'
    const here = new Set(
      this.#statement(sql)
        .all(JSON.stringify(ids))
        .map(({ id }) => id),
    )
    return ids.filter((id) => !here.has(id))
  }

  /** Begins to count, in a file of an earlier version, which did not. */
  beginCount(): void {
    this.#transaction(() => {
      this.#hasChanged = true
    })
  }

  /** What the file takes, its log counted in. */
  get fileBytes(): number {
    const { bytes } = this.#get(
      'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
    ) as { bytes: number }
    return bytes
  }

  /** Ids are unique among the arrivals. One outcome each, in order; on disk when it returns. */
  store(arrivals: readonly Arrival[], nowMs: number): StoreOutcome[] {
    return this.#transaction(() => {
      const outcomes: StoreOutcome[] = []
      const insertions: Insertion[] = []
      const places = new Places((sql, ...values) => this.#get(sql, ...values))
      for (const { message, isIntact } of arrivals) {
        const row = this.#row(message.id)
        const before = row ? undefined : this.#sameBefore(message)
        const view = row && storedView(row)
        const upsert = view && upsertOf(view, message, isIntact)
        const tell = upsert?.tell ?? []
        const status = upsert?.do === 'keep' ? 'kept' : upsert || before ? 'updated' : 'added'
        outcomes.push({ id: message.id, status, shard: this.name, problems: [...message.problems, ...tell] })
        if (row && upsert && upsert.do !== 'keep') {
          if (upsert.do === 'touch')
            this.#touch(row, upsert.state, upsert.state.labelIds === message.labelIds)
          else this.#remove(row)
        }
        if (before) this.#remove(before)
        if (upsert && upsert.do !== 'replace') continue
        const fresh = before
          ? takenOver({ ...storedView(before), id: before.id }, message)
          : newState(message)
        const state = upsert?.state ?? fresh
        const storedMs = before?.source === 'gmail' ? before.stored_ms : nowMs
        insertions.push({ pos: places.next(state.internalMs), message, state, storedMs })
      }
      this.#insert(insertions)
      this.#noteOverrun(places.overrunSeconds)
      return outcomes
    })
  }

  /** The changes whose messages are here, in order. */
  apply(changes: readonly MessageChange[]): ShardApplied {
    return this.#transaction(() => {
      let changed = 0
      const newer = new Set<string>()
      for (const change of changes) {
        const row = this.#row(change.id)
        if (!row) continue
        const stored = storedView(row)
        if (isOutdated(change, stored)) newer.add(change.id)
        const state = changedState(stored, change)
        if (!state) continue
        this.#touch(row, state, change.setLabelIds !== undefined)
        changed += 1
      }
      return { changed, newer: [...newer] }
    })
  }

  /** Writes anew what follows from the bytes of messages that are still the same; `upTo`: how far that is, to go on. */
  rederive(messages: readonly Rederived[], upTo: number | null): void {
    this.#transaction(() => {
      const overrun = this.#get(`SELECT value FROM meta WHERE key = 'overrun_s'`) as
        | { value: string }
        | undefined
      for (const { pos, bytes, sha256, derived, text } of messages) {
        const row = this.#get('SELECT pos, sha256, internal_ms, problems FROM messages WHERE pos = ?', pos) as
          | Pick<MessageRow, 'pos' | 'sha256' | 'internal_ms' | 'problems'>
          | undefined
        if (!row || Buffer.compare(row.sha256, sha256) !== 0) continue
        const problems = new Set([...derived.problems, ...textsOf(row.problems)])
        this.#run(UPDATE_DERIVED, ...derivedValues(derived), JSON.stringify([...problems]), bytes, pos)
        // The second is known by where it stands.
        if (!isInPlace(row, Number(overrun?.value ?? 0)))
          this.#run('UPDATE messages SET internal_ms = ? WHERE pos = ?', secondMsOf(pos), pos)
        this.#run('UPDATE bodies SET text = ? WHERE pos = ?', text, pos)
        this.#run('DELETE FROM words WHERE rowid = ?', pos)
        this.#run(INSERT_WORDS, pos, ...wordValues(derived.words))
      }
      if (upTo !== null) this.#setMeta('reindexed_to', String(upTo))
    })
  }

  /**
   * What is there twice is made the same again, and what belongs to no message goes. `isWhole`: all messages were done,
   * in a `run` over all shards or alone.
   */
  endRederive({ isWhole, run }: { isWhole: boolean; run: string | null }): void {
    this.#transaction(() => {
      for (const { id } of this.#all(
        'SELECT id FROM words_docsize WHERE id NOT IN (SELECT pos FROM messages)',
      )) {
        this.#run('DELETE FROM words WHERE rowid = ?', id as number)
      }
      this.#run('DELETE FROM message_labels')
      this.#run(COPY_LABELS)
      if (!isWhole) return
      this.#run(`DELETE FROM meta WHERE key = 'reindexed_to'`)
      this.#setMeta('derivation', String(DERIVATION))
      if (run !== null) this.#setMeta('reindex_run', run)
    })
  }

  close(): void {
    this.db.close()
  }

  #insert(insertions: Insertion[]): void {
    // The search index writes out what it has whenever a rowid goes down.
    insertions.sort((a, b) => a.pos - b.pos)
    for (const { pos, message, state, storedMs } of insertions) {
      this.#run(INSERT_MESSAGE, ...messageValues({ pos, message, state, storedMs }))
      this.#run('INSERT INTO bodies(pos, raw, text) VALUES (?, ?, ?)', pos, message.raw, message.text)
      for (const label of state.labelIds) this.#run(INSERT_LABEL, label, pos)
      this.#run(INSERT_WORDS, pos, ...wordValues(message.words))
    }
  }

  /** `isTold`: all labels are told. A change to labels that are damaged would only hide that they are. */
  #touch(row: MessageRow, state: RowState, isTold: boolean): void {
    const labels = isTold || areTexts(row.labels) ? JSON.stringify(state.labelIds) : row.labels
    this.#run(
      `UPDATE messages SET thread_id = ?, history_id = ?, labels = ?, source = ?, deleted_ms = ?, problems = ? WHERE pos = ?`,
      state.threadId,
      state.historyId,
      labels,
      state.source,
      state.deletedMs,
      JSON.stringify(state.problems),
      row.pos,
    )
    if (labels === row.labels) return
    const before = new Set(textsOf(row.labels))
    const after = new Set(state.labelIds)
    for (const label of before) if (!after.has(label)) this.#run(DELETE_LABEL, label, row.pos)
    for (const label of after) if (!before.has(label)) this.#run(INSERT_LABEL, label, row.pos)
  }

  /** The same message under another id, whose place it takes. */
  #sameBefore(message: PreparedMessage): MessageRow | undefined {
    const row = message.replaces === null ? undefined : this.#row(message.replaces)
    return row && isSameMessage(row, message) ? row : undefined
  }

  /** Only ever followed by `#insert` of the same message in the same transaction. */
  #remove(row: MessageRow): void {
    this.#run('DELETE FROM words WHERE rowid = ?', row.pos)
    for (const label of textsOf(row.labels)) this.#run(DELETE_LABEL, label, row.pos)
    this.#run('DELETE FROM bodies WHERE pos = ?', row.pos)
    this.#run('DELETE FROM messages WHERE pos = ?', row.pos)
  }

  #noteOverrun(seconds: number): void {
    if (seconds === 0) return
    this.#run(
      `INSERT INTO meta(key, value) VALUES ('overrun_s', ?) ON CONFLICT (key) DO UPDATE
       SET value = excluded.value WHERE CAST(meta.value AS INTEGER) < CAST(excluded.value AS INTEGER)`,
      String(seconds),
    )
  }

  #setMeta(key: string, value: string): void {
    const sql =
      'INSERT INTO meta(key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value'
    this.#run(sql, key, value)
  }

  #all(sql: string): Record<string, unknown>[] {
    return this.#statement(sql).all()
  }

  #row(id: string): MessageRow | undefined {
    return this.#get(`SELECT ${MESSAGE_COLUMNS} FROM messages m WHERE m.id = ?`, id) as MessageRow | undefined
  }

  #transaction<Result>(work: () => Result): Result {
    this.#hasChanged = false
    try {
      this.db.exec('BEGIN IMMEDIATE')
      const result = work()
      if (this.#hasChanged) this.#run(COUNT_UP)
      this.db.exec('COMMIT')
      return result
    } catch (thrown) {
      // A full disk may have rolled it back already.
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
      throw classifyStore(thrown, this.name, this.file)
    }
  }

  #run(sql: string, ...values: SQLInputValue[]): void {
    const statement = this.#statement(sql)
    // Its answer names the last rowid, and where the search index notes deletions those are beyond 2^53.
    statement.setReadBigInts(true)
    statement.run(...values)
    this.#hasChanged = true
  }

  #get(sql: string, ...values: SQLInputValue[]): unknown {
    return this.#statement(sql).get(...values)
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (!statement) {
      statement = this.db.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

const INSERT_MESSAGE = `INSERT INTO messages(pos, id, thread_id, message_id, message_id_made, history_id, internal_ms,
  header_ms, subject, sender, people, snippet, labels, bytes, sha256, attachments, has_attachment, problems, source,
  deleted_ms, stored_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const UPDATE_DERIVED = `UPDATE messages SET message_id = ?, message_id_made = ?, header_ms = ?, subject = ?, sender = ?,
  people = ?, snippet = ?, attachments = ?, has_attachment = ?, problems = ?, bytes = ? WHERE pos = ?`
const COPY_LABELS = `INSERT OR IGNORE INTO message_labels(label, pos) SELECT l.value, m.pos FROM messages m
  JOIN json_each(iif(json_valid(m.labels), m.labels, '[]')) l WHERE typeof(l.value) = 'text'`
const COUNT_UP = `INSERT INTO meta(key, value) VALUES ('generation', '1') ON CONFLICT (key) DO UPDATE
  SET value = CAST(meta.value AS INTEGER) + 1`
const INSERT_LABEL = 'INSERT OR IGNORE INTO message_labels(label, pos) VALUES (?, ?)'
const DELETE_LABEL = 'DELETE FROM message_labels WHERE label = ? AND pos = ?'
const INSERT_WORDS = `INSERT INTO words(rowid, subject, sender, recipients, cc, bcc, files, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

function secondMsOf(pos: number): number {
  return Math.floor(pos / POS_PER_SECOND) * 1_000
}

/** Where the row of a message was lost, what else was stored of it is in its place still. */
const LAST_IN_SECOND = `SELECT max(pos) AS last FROM (
  SELECT max(pos) AS pos FROM messages WHERE pos >= ? AND pos < ?
  UNION ALL SELECT max(pos) FROM bodies WHERE pos >= ? AND pos < ?
  UNION ALL SELECT max(id) FROM words_docsize WHERE id >= ? AND id < ?)`

/** Gives out positions within one transaction: the next free one of a message's second, or of a second after it. */
class Places {
  overrunSeconds = 0
  readonly #get: (sql: string, ...values: SQLInputValue[]) => unknown
  readonly #next = new Map<number, number>()

  constructor(get: (sql: string, ...values: SQLInputValue[]) => unknown) {
    this.#get = get
  }

  next(internalMs: number): number {
    const first = firstPosOf(internalMs)
    for (let second = first; ; second += POS_PER_SECOND) {
      const pos = this.#next.get(second) ?? this.#nextInFile(second)
      if (pos >= second + POS_PER_SECOND) continue
      this.#next.set(second, pos + 1)
      this.overrunSeconds = Math.max(this.overrunSeconds, (second - first) / POS_PER_SECOND)
      return pos
    }
  }

  #nextInFile(second: number): number {
    const range = [second, second + POS_PER_SECOND]
    const row = this.#get(LAST_IN_SECOND, ...range, ...range, ...range) as { last: number | null }
    return row.last === null ? second : row.last + 1
  }
}

function messageValues({ pos, message, state, storedMs }: Insertion): SQLInputValue[] {
  return [
    pos,
    message.id,
    state.threadId,
    message.messageId,
    message.messageIdIsSurrogate ? 1 : 0,
    state.historyId,
    state.internalMs,
    message.headerMs,
    message.subject,
    message.sender,
    message.people,
    message.snippet,
    JSON.stringify(state.labelIds),
    message.bytes,
    message.sha256,
    message.attachments,
    message.hasAttachment ? 1 : 0,
    JSON.stringify(state.problems),
    state.source,
    state.deletedMs,
    storedMs,
  ]
}

function derivedValues(derived: Omit<Derived, 'text'>): SQLInputValue[] {
  const { messageId, messageIdIsSurrogate, headerMs, subject, sender, people, snippet } = derived
  const { attachments, hasAttachment } = derived
  const flags = [messageIdIsSurrogate ? 1 : 0, hasAttachment ? 1 : 0]
  return [messageId, flags[0]!, headerMs, subject, sender, people, snippet, attachments, flags[1]!]
}

function wordValues({ subject, sender, recipients, cc, bcc, files, body }: Words): SQLInputValue[] {
  return [subject, sender, recipients, cc, bcc, files, body]
}

function newState(message: PreparedMessage): RowState {
  const { threadId, historyId, labelIds, internalMs, source, problems } = message
  return { threadId, historyId, labelIds, internalMs, source, problems, deletedMs: null }
}

function storedView(row: MessageRow): StoredView {
  return {
    threadId: row.thread_id,
    historyId: row.history_id,
    labelIds: textsOf(row.labels),
    internalMs: row.internal_ms,
    sha256: row.sha256,
    source: row.source,
    deletedMs: row.deleted_ms,
    problems: textsOf(row.problems),
  }
}

/** Of the row under the id that a message replaces. An id that an import made says what the bytes are, line ends aside. */
export function isSameMessage(
  row: { id: string; sha256: Uint8Array },
  { sha256 }: Pick<PreparedMessage, 'sha256'>,
): boolean {
  return isMadeId(row.id) || Buffer.compare(row.sha256, sha256) === 0
}
