/**
 * The search index of a shard in numbers: for every message the sum of the hashes of its words with their columns and
 * places. The same sum is made from the texts that should be in it, by an index of its own in memory: a word that is
 * missing, too many or elsewhere makes another sum. Reads the index from one end to the other, once.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Words } from './prepared-message.ts'
import { WORDS_TOKENIZER } from './schema.ts'

const COLUMNS = ['subject', 'sender', 'recipients', 'cc', 'bcc', 'files', 'body'] as const
const COLUMN_NUMBERS = new Map<string, number>(COLUMNS.map((column, at) => [column, at + 1]))
const INSTANCES = 'SELECT term, doc, col, offset FROM temp.instances'

type Instance = { term: string; doc: number; col: string; offset: number }

/** Sums by position. */
export type Digests = Map<number, number>

/** Makes the sums that texts should have. */
export class ExpectedDigests {
  readonly #db = new DatabaseSync(':memory:')
  readonly #insert: StatementSync
  readonly #read: StatementSync

  constructor() {
    this.#db.exec(
      `CREATE VIRTUAL TABLE words USING fts5(${COLUMNS.join(', ')}, content='', tokenize="${WORDS_TOKENIZER}")`,
    )
    openInstances(this.#db)
    this.#insert = this.#db.prepare(
      `INSERT INTO words(rowid, ${COLUMNS.join(', ')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    this.#read = this.#db.prepare(INSTANCES)
  }

  add(digests: Digests, messages: readonly { pos: number; words: Words }[]): void {
    for (const { pos, words } of messages) {
      digests.set(pos, 0)
      this.#insert.run(pos, ...COLUMNS.map((column) => words[column]))
    }
    addInstances(digests, this.#read.iterate() as unknown as Iterable<Instance>)
    this.#db.exec(`INSERT INTO words(words) VALUES ('delete-all')`)
  }

  close(): void {
    this.#db.close()
  }
}

/** The sums that a shard's index has, some rows at a time. */
export class ActualDigests {
  readonly digests: Digests = new Map()
  readonly #rows: Iterator<Instance>

  /** `db` is not set to `query_only`, which keeps from looking into the index. */
  constructor(db: DatabaseSync) {
    openInstances(db)
    this.#rows = db.prepare(INSTANCES).iterate() as unknown as Iterator<Instance>
  }

  /** Whether it is at the end. */
  step(rowsMax: number): boolean {
    let isOver = false
    const rows = this.#rows
    addInstances(this.digests, {
      *[Symbol.iterator]() {
        for (let n = 0; n < rowsMax; n++) {
          const next = rows.next()
          isOver = next.done === true
          if (isOver) return
          yield next.value
        }
      },
    })
    return isOver
  }
}

function openInstances(db: DatabaseSync): void {
  db.exec(`CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, words, 'instance')`)
}

function addInstances(digests: Digests, instances: Iterable<Instance>): void {
  let last = ''
  let hash = textHash(last)
  for (const { term, doc, col, offset } of instances) {
    if (term !== last) {
      last = term
      hash = textHash(term)
    }
    digests.set(doc, (digests.get(doc) ?? 0) + mixed(hash, COLUMN_NUMBERS.get(col) ?? 0, offset))
  }
}

/** FNV-1a. */
function textHash(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}

/** 32 bits: a million of them add up to less than 2^53. */
function mixed(hash: number, column: number, offset: number): number {
  let all = hash ^ Math.imul(offset + 1, 0x9e3779b1) ^ Math.imul(column, 0x85ebca6b)
  all = Math.imul(all ^ (all >>> 16), 0x7feb352d)
  return (all ^ (all >>> 15)) >>> 0
}
