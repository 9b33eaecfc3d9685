/**
 * The writing side of one shard: messages added and changed in transactions of their own, each all or nothing.
 * Who calls `store` holds the lock of the messages' year, so that no id comes in twice.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { MessageChange, StoreOutcome } from '../message.ts'
import type { PreparedMessage } from './prepared-message.ts'
import { POS_PER_SECOND } from './schema.ts'
import { firstPosOf } from './shard-router.ts'
import { MESSAGE_COLUMNS, type MessageRow } from './shard-row.ts'
import { classifyStore } from './store-errors.ts'
import { changedState, type RowState, type StoredView, upsertOf } from './upsert.ts'

/** `isIntact`: of the stored bytes, where the message is stored already. */
export type Arrival = { message: PreparedMessage; isIntact: boolean }

type Insertion = { pos: number; message: PreparedMessage; state: RowState }

export class ShardWriter {
  readonly name: string
  readonly file: string
  readonly db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(options: { name: string; file: string; db: DatabaseSync }) {
    this.name = options.name
    this.file = options.file
    this.db = options.db
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
        const view = row && viewOf(row)
        const upsert = view && upsertOf(view, message, isIntact)
        const tell = upsert?.tell ?? []
        const status = !upsert ? 'added' : upsert.do === 'keep' ? 'kept' : 'updated'
        outcomes.push({ id: message.id, status, shard: this.name, problems: [...message.problems, ...tell] })
        if (row && upsert && upsert.do !== 'keep') {
          if (upsert.do === 'touch') this.#touch(row, upsert.state)
          else this.#remove(row)
        }
        if (upsert && upsert.do !== 'replace') continue
        const state = upsert?.state ?? newState(message)
        insertions.push({ pos: places.next(state.internalMs), message, state })
      }
      this.#insert(insertions, nowMs)
      this.#noteOverrun(places.overrunSeconds)
      return outcomes
    })
  }

  /** The changes whose messages are here, in order: how many of them changed something. */
  apply(changes: readonly MessageChange[]): number {
    return this.#transaction(() => {
      let changed = 0
      for (const change of changes) {
        const row = this.#row(change.id)
        const state = row && changedState(viewOf(row), change)
        if (!row || !state) continue
        this.#touch(row, state)
        changed += 1
      }
      return changed
    })
  }

  close(): void {
    this.db.close()
  }

  #insert(insertions: Insertion[], nowMs: number): void {
    // The search index writes out what it has whenever a rowid goes down.
    insertions.sort((a, b) => a.pos - b.pos)
    for (const { pos, message, state } of insertions) {
      this.#run(INSERT_MESSAGE, ...messageValues(pos, message, state, nowMs))
      this.#run('INSERT INTO bodies(pos, raw, text) VALUES (?, ?, ?)', pos, message.raw, message.text)
      for (const label of state.labelIds) this.#run(INSERT_LABEL, label, pos)
      const { words } = message
      this.#run(
        INSERT_WORDS,
        pos,
        words.subject,
        words.sender,
        words.recipients,
        words.cc,
        words.bcc,
        words.files,
        words.body,
      )
    }
  }

  #touch(row: MessageRow, state: RowState): void {
    const labels = JSON.stringify(state.labelIds)
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
    const before = new Set(JSON.parse(row.labels) as string[])
    const after = new Set(state.labelIds)
    for (const label of before) if (!after.has(label)) this.#run(DELETE_LABEL, label, row.pos)
    for (const label of after) if (!before.has(label)) this.#run(INSERT_LABEL, label, row.pos)
  }

  /** Only ever followed by `#insert` of the same message in the same transaction. */
  #remove(row: MessageRow): void {
    this.#run('DELETE FROM words WHERE rowid = ?', row.pos)
    for (const label of JSON.parse(row.labels) as string[]) this.#run(DELETE_LABEL, label, row.pos)
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

  #row(id: string): MessageRow | undefined {
    return this.#get(`SELECT ${MESSAGE_COLUMNS} FROM messages m WHERE m.id = ?`, id) as MessageRow | undefined
  }

  #transaction<Result>(work: () => Result): Result {
    try {
      this.db.exec('BEGIN IMMEDIATE')
      const result = work()
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
const INSERT_LABEL = 'INSERT OR IGNORE INTO message_labels(label, pos) VALUES (?, ?)'
const DELETE_LABEL = 'DELETE FROM message_labels WHERE label = ? AND pos = ?'
const INSERT_WORDS = `INSERT INTO words(rowid, subject, sender, recipients, cc, bcc, files, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

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
    const row = this.#get(
      'SELECT max(pos) AS last FROM messages WHERE pos >= ? AND pos < ?',
      second,
      second + POS_PER_SECOND,
    ) as { last: number | null }
    return row.last === null ? second : row.last + 1
  }
}

function messageValues(
  pos: number,
  message: PreparedMessage,
  state: RowState,
  nowMs: number,
): SQLInputValue[] {
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
    nowMs,
  ]
}

function newState(message: PreparedMessage): RowState {
  const { threadId, historyId, labelIds, internalMs, source, problems } = message
  return { threadId, historyId, labelIds, internalMs, source, problems, deletedMs: null }
}

function viewOf(row: MessageRow): StoredView {
  return {
    threadId: row.thread_id,
    historyId: row.history_id,
    labelIds: JSON.parse(row.labels) as string[],
    internalMs: row.internal_ms,
    sha256: row.sha256,
    source: row.source,
    deletedMs: row.deleted_ms,
    problems: JSON.parse(row.problems) as string[],
  }
}
