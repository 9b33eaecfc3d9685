/**
 * Statements that ask one shard. What a query must hold in any case decides where SQLite starts reading, always in
 * the order of `pos`, so that it stops when a page is full:
 *
 *   exact   an id, a Message-ID, a thread: their indexes
 *   label   a label, where no text is asked for or few messages of the shard have it
 *   words   text: the full-text index
 *   facts   the rest: an index that holds what conditions ask for, and nothing else
 *
 * CROSS JOIN keeps SQLite to that order: it knows nothing of how often a word occurs. All other conditions name the
 * position as `+pos`, which no index answers. Otherwise SQLite may start at one of them, by each branch of an OR even,
 * and then reads the full-text index without its MATCH, which ends in an error.
 */
import { type CompiledQuery, joined, type Sql } from './compiled-query.ts'

export type StatementInput = {
  compiled: CompiledQuery
  /** Both inside. */
  posRange: { first: number; last: number }
  /** A label that few messages of the shard have: they are read first, even where there is text. */
  rareLabel?: string | undefined
}

/** Where an earlier page ended: worse scores follow, and among equals those below `pos`. */
export type RankedAfter = { score: number; pos: number }

/** Subject and sender say more about a mail than its body: subject, sender, recipients, cc, bcc, files, body. */
const RANK = 'bm25(8.0, 4.0, 2.0, 1.0, 1.0, 3.0, 1.0)'

/** The newest first. `columns` are of `m`. */
export function pageSql(input: StatementInput & { columns: string; limit: number }): Sql {
  const start = searchStart(input)
  return statement([
    `SELECT ${input.columns} FROM`,
    fromOf(input, start),
    `CROSS JOIN messages m ON m.pos = ${start.pos} WHERE`,
    whereOf(input, start),
    { sql: `ORDER BY ${start.pos} DESC LIMIT ?`, params: [input.limit] },
  ])
}

export function countSql(input: StatementInput): Sql {
  const start = searchStart(input)
  return statement([
    'SELECT count(*) AS messages, coalesce(sum(f.bytes), 0) AS bytes FROM',
    fromOf(input, start, { facts: true }),
    'WHERE',
    whereOf(input, start),
  ])
}

/** `pos` and `score` of the best, a lower score being better. For queries with a `match`. */
export function rankSql(input: StatementInput & { limit: number; after: RankedAfter | null }): Sql {
  const start = wordsStart(input.compiled.match ?? '')
  const { after } = input
  return statement([
    'SELECT w.rowid AS pos, w.rank AS score FROM',
    fromOf(input, start),
    { sql: 'WHERE w.rank MATCH ? AND', params: [RANK] },
    whereOf(input, start),
    after
      ? {
          sql: 'AND (+w.rank > ? OR (+w.rank = ? AND +w.rowid < ?))',
          params: [after.score, after.score, after.pos],
        }
      : '',
    { sql: 'ORDER BY w.rank, w.rowid DESC LIMIT ?', params: [input.limit] },
  ])
}

/** Whether at least this many messages have the label: reads no more of them. */
export function labelCountSql(label: string, atMost: number): Sql {
  return {
    sql: 'SELECT count(*) AS n FROM (SELECT 1 FROM message_labels WHERE label = ? LIMIT ?)',
    params: [label, atMost],
  }
}

type Start = {
  table: string
  where: Sql
  /** The expression for a message's position. */
  pos: string
  /** The label that is read through and need not be asked for again. */
  label?: string
}

function searchStart({ compiled, rareLabel }: StatementInput): Start {
  const { match, labels } = compiled
  if (compiled.isExact) return { table: 'messages f', where: oneMatches(match, 'f.pos'), pos: 'f.pos' }
  const label = rareLabel ?? (match === null ? labels[0] : undefined)
  if (label !== undefined) return labelStart(label, match)
  if (match !== null) return wordsStart(match)
  return { table: 'messages f INDEXED BY messages_facts', where: ANY, pos: 'f.pos' }
}

function labelStart(label: string, match: string | null): Start {
  const where = joined([{ sql: 'd.label = ?', params: [label] }, oneMatches(match, 'd.pos')], ' AND ')
  return { table: 'message_labels d', where, pos: 'd.pos', label }
}

const ANY: Sql = { sql: '1', params: [] }

/** Asked of one message at a time (20 µs): to collect all that match would take longer than to look at a few. */
function oneMatches(match: string | null, pos: string): Sql {
  if (match === null) return ANY
  return { sql: `EXISTS (SELECT 1 FROM words w WHERE w.words MATCH ? AND w.rowid = ${pos})`, params: [match] }
}

function wordsStart(match: string): Start {
  return { table: 'words w', where: { sql: 'w.words MATCH ?', params: [match] }, pos: 'w.rowid' }
}

function fromOf({ compiled }: StatementInput, start: Start, needs: { facts?: boolean } = {}): string {
  const asksFacts = needs.facts || compiled.conditions.some((condition) => condition.asksFacts)
  if (!asksFacts || start.pos === 'f.pos') return start.table
  return `${start.table} CROSS JOIN messages f INDEXED BY messages_facts ON f.pos = ${start.pos}`
}

function whereOf({ compiled, posRange }: StatementInput, start: Start): Sql {
  const conditions = compiled.conditions.filter(({ label }) => label === null || label !== start.label)
  return joined(
    [
      start.where,
      { sql: `${start.pos} BETWEEN ? AND ?`, params: [posRange.first, posRange.last] },
      ...conditions.map(({ sql }) => sql({ pos: `+${start.pos}`, facts: 'f' })),
    ],
    ' AND ',
  )
}

function statement(parts: readonly (string | Sql)[]): Sql {
  return joined(
    parts.map((part) => (typeof part === 'string' ? { sql: part, params: [] } : part)),
    ' ',
  )
}
