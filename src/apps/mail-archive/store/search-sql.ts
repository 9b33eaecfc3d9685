/**
 * A query as SQL over one shard. Text becomes an FTS5 expression, everything else conditions. What a query must hold
 * in any case decides where SQLite starts reading, always in the order of `pos`, so that it stops when a page is full:
 *
 *   exact      an id, a Message-ID, a thread: their indexes
 *   label      a label, where no text is asked for or few messages of the shard have it
 *   words      text: the full-text index
 *   facts      the rest: an index that holds what conditions ask for, and nothing else
 *
 * Invariant: nothing of a query is ever part of the SQL, and FTS5 only sees words that its own tokenizer made, in
 * quotes: no query is a syntax error. A word without letters and digits matches nothing; it is never left out, since
 * that would find (and let an archiver take) more than was asked for.
 */
import type { Query, TextField } from '../query/query.ts'
import type { TimeRange } from './shard-router.ts'
import { indexedWords } from './words.ts'

export type SqlValue = string | number

export type Sql = { sql: string; params: readonly SqlValue[] }

/** Words in a row that a hit may have in its text; `prefix`: the last may go on. */
export type Mark = { words: readonly string[]; prefix: boolean }

export type CompiledQuery = {
  /** Nothing outside can match. */
  range: TimeRange
  /** FTS5's expression that every hit matches; null where text does not decide. */
  match: string | null
  /** Labels of which every hit has one: a list for each that the query names. */
  labels: readonly (readonly string[])[]
  isExact: boolean
  conditions: readonly Condition[]
  marks: readonly Mark[]
}

/** A condition in terms of the tables that a statement reads from. */
type Condition = { asksFacts: boolean; sql: (names: Names) => Sql }

/** `pos`: an expression; `facts`: the alias of `messages` that has bytes, times and flags. */
type Names = { pos: string; facts: string }

export type CompileOptions = {
  labels?: ReadonlyMap<string, string> | undefined
  deleted?: boolean | undefined
}

/** The tree after words were looked up: constants are gone, except where nothing else is left. */
type Node =
  | boolean
  | { is: 'and' | 'or'; of: readonly Node[] }
  | { is: 'not'; of: Node }
  | { is: 'match'; match: string }
  | { is: 'label'; ids: readonly string[] }
  | { is: 'exact' | 'fact'; sql: (facts: string) => Sql }

const COLUMNS: Record<TextField, string> = {
  subject: 'subject',
  from: 'sender',
  // As in Gmail, what was sent to someone includes copies.
  to: 'recipients cc bcc',
  cc: 'cc',
  bcc: 'bcc',
  filename: 'files',
  body: 'body',
}

/** Null when nothing can match. */
export function compileQuery(query: Query, options: CompileOptions = {}): CompiledQuery | null {
  const whole = resolve(query, options)
  const root = options.deleted === false ? both(whole, NOT_DELETED) : whole
  if (root === false) return null
  const must = root === true ? [] : typeof root === 'object' && root.is === 'and' ? root.of : [root]
  const { match, rest } = splitMatch(must)
  return {
    range: rangeOf(query),
    match,
    labels: rest.flatMap((node) => (isNode(node, 'label') ? [node.ids] : [])),
    isExact: rest.some((node) => isNode(node, 'exact')),
    conditions: rest.map(conditionOf),
    marks: marksOf(query),
  }
}

// The statements.

export type StatementInput = {
  compiled: CompiledQuery
  /** Both inside. */
  posRange: { first: number; last: number }
  /** The ids of a label that few messages of the shard have: they are read first, even where there is text. */
  drivingLabel?: readonly string[] | undefined
}

/** `columns` are of `m`. */
export function pageSql(input: StatementInput & { columns: string; limit: number }): Sql {
  const { from, where, pos } = sourceOf(input, { joinsMessages: true })
  return concat([
    { sql: `SELECT ${input.columns} FROM`, params: [] },
    from,
    { sql: 'WHERE', params: [] },
    where,
    { sql: `ORDER BY ${pos} DESC LIMIT ?`, params: [input.limit] },
  ])
}

export function countSql(input: StatementInput): Sql {
  const { from, where } = sourceOf(input, { joinsMessages: false, needsFacts: true })
  return concat([
    { sql: 'SELECT count(*) AS messages, coalesce(sum(f.bytes), 0) AS bytes FROM', params: [] },
    from,
    { sql: 'WHERE', params: [] },
    where,
  ])
}

/** Subject and sender say more about a mail than its body: subject, sender, recipients, cc, bcc, files, body. */
const RANK = 'bm25(8.0, 4.0, 2.0, 1.0, 1.0, 3.0, 1.0)'

/** `pos` and `score` of the best, less being better; `after` of an earlier page. Needs a `match`. */
export function rankSql(
  input: StatementInput & { limit: number; after?: { score: number; includesSame: boolean; pos: number } },
): Sql {
  const { from, where } = sourceOf({ ...input, drivingLabel: undefined }, { joinsMessages: false })
  const { after } = input
  const parts: Sql[] = [
    { sql: 'SELECT w.rowid AS pos, w.rank AS score FROM', params: [] },
    from,
    { sql: 'WHERE w.rank MATCH ? AND', params: [RANK] },
    where,
  ]
  if (after) {
    const same = after.includesSame ? 'w.rank >= ?1' : 'w.rank > ?1'
    parts.push({
      sql: `AND (${same.replace('?1', '?')} OR (w.rank = ? AND w.rowid < ?))`,
      params: [after.score, after.score, after.pos],
    })
  }
  return concat([...parts, { sql: 'ORDER BY w.rank, w.rowid DESC LIMIT ?', params: [input.limit] }])
}

function sourceOf(
  { compiled, posRange, drivingLabel }: StatementInput,
  needs: { joinsMessages: boolean; needsFacts?: boolean },
): { from: Sql; where: Sql; pos: string } {
  const start = startOf(compiled, drivingLabel)
  const { pos } = start
  const readsFacts = needs.needsFacts || compiled.conditions.some(({ asksFacts }) => asksFacts)
  const from = [start.from]
  if (readsFacts && pos !== 'f.pos') {
    from.push({ sql: `CROSS JOIN messages f INDEXED BY messages_facts ON f.pos = ${pos}`, params: [] })
  }
  if (needs.joinsMessages) from.push({ sql: `CROSS JOIN messages m ON m.pos = ${pos}`, params: [] })
  const where = [
    start.where,
    { sql: `${pos} BETWEEN ? AND ?`, params: [posRange.first, posRange.last] },
    ...compiled.conditions.map(({ sql }) => sql({ pos, facts: 'f' })),
  ]
  return { from: concat(from), where: joined(where, ' AND '), pos }
}

function startOf(
  { match, labels, isExact }: CompiledQuery,
  drivingLabel: readonly string[] | undefined,
): { from: Sql; where: Sql; pos: string } {
  const always: Sql = { sql: '1', params: [] }
  if (isExact) return { from: { sql: 'messages f', params: [] }, where: matchIn(match, 'f.pos'), pos: 'f.pos' }
  const first = drivingLabel ?? (match === null ? labels.find((ids) => ids.length === 1) : undefined)
  if (first?.length === 1) {
    const label: Sql = { sql: 'd.label = ?', params: [first[0]!] }
    // One message at a time: reading all that match would take longer than looking at a few.
    const text: Sql =
      match === null
        ? always
        : { sql: 'EXISTS (SELECT 1 FROM words w WHERE w.words MATCH ? AND w.rowid = d.pos)', params: [match] }
    return {
      from: { sql: 'message_labels d', params: [] },
      where: joined([label, text], ' AND '),
      pos: 'd.pos',
    }
  }
  if (match !== null) {
    return { from: { sql: 'words w', params: [] }, where: { sql: 'w.words MATCH ?', params: [match] }, pos: 'w.rowid' }
  }
  return {
    from: { sql: 'messages f INDEXED BY messages_facts', params: [] },
    where: always,
    pos: 'f.pos',
  }
}

// From the query to nodes.

const NOT_DELETED: Node = { is: 'fact', sql: (facts) => ({ sql: `${facts}.deleted_ms IS NULL`, params: [] }) }

function resolve(query: Query, options: CompileOptions): Node {
  switch (query.is) {
    case 'all':
      return true
    case 'and':
    case 'or':
      return combine(
        query.is,
        query.of.map((part) => resolve(part, options)),
      )
    case 'not': {
      const of = resolve(query.of, options)
      if (typeof of === 'boolean') return !of
      return of.is === 'not' ? of.of : { is: 'not', of }
    }
    case 'text': {
      const match = matchOf(query)
      return match === null ? false : { is: 'match', match }
    }
    case 'label':
      return { is: 'label', ids: labelIds(query.name, options.labels) }
    case 'id':
      return exact('id', [query.value])
    case 'thread':
      return exact('thread_id', [query.value])
    case 'message-id':
      return exact('message_id', [query.value, `<${query.value}>`])
    case 'before':
      return fact('internal_ms < ?', query.atMs)
    case 'after':
      return fact('internal_ms >= ?', query.atMs)
    case 'larger':
      return fact('bytes > ?', query.bytes)
    case 'smaller':
      return fact('bytes < ?', query.bytes)
    case 'has-attachment':
      return fact('has_attachment <> 0')
    case 'deleted':
      return fact('deleted_ms IS NOT NULL')
    case 'imported':
      return fact(`source = 'import'`)
  }
}

function fact(condition: string, ...params: number[]): Node {
  return { is: 'fact', sql: (facts) => ({ sql: `${facts}.${condition}`, params }) }
}

function exact(column: 'id' | 'thread_id' | 'message_id', values: readonly string[]): Node {
  const marks = values.map(() => '?').join(', ')
  return { is: 'exact', sql: (facts) => ({ sql: `${facts}.${column} IN (${marks})`, params: values }) }
}

function both(a: Node, b: Node): Node {
  return combine('and', [a, b])
}

function combine(is: 'and' | 'or', parts: readonly Node[]): Node {
  const settles = is === 'or'
  const of: Node[] = []
  for (const part of parts) {
    if (part === settles) return settles
    if (typeof part === 'boolean') continue
    if (part.is === is) of.push(...part.of)
    else of.push(part)
  }
  if (of.length === 0) return !settles
  return of.length === 1 ? of[0]! : { is, of }
}

/** FTS5's expression for words or a phrase; null when none of it can be in the index. */
function matchOf(query: Extract<Query, { is: 'text' }>): string | null {
  const groups = query.phrase ? [query.words.join(' ')] : query.words
  const phrases = groups.map(indexedWords).filter((words) => words.length > 0)
  if (phrases.length === 0) return null
  const columns = query.field === null ? '' : `{${COLUMNS[query.field]}} : `
  const texts = phrases.map((words, index) => {
    const star = query.prefix && index === phrases.length - 1 ? ' *' : ''
    return `${columns}"${words.join(' ').replaceAll('"', '""')}"${star}`
  })
  return texts.length === 1 ? texts[0]! : `(${texts.join(' AND ')})`
}

/** Gmail writes label names in searches with dashes for blanks and slashes. */
function labelIds(name: string, labels: ReadonlyMap<string, string> | undefined): string[] {
  const lower = name.toLowerCase()
  const found = labels?.get(lower)
  if (found !== undefined) return [found]
  const dashed = (text: string): string => text.replaceAll(/[\s/]/g, '-')
  const ids = [...(labels ?? [])].flatMap(([key, id]) => (dashed(key) === dashed(lower) ? [id] : []))
  if (ids.length > 0) return [...new Set(ids)]
  // Gmail's own are in capitals, those of people are not: as it is, and as one of Gmail's own.
  return [...new Set([name, name.toUpperCase()])]
}

// From nodes to what a statement needs.

/** Takes what FTS5 can answer alone out of the parts that must all hold. */
function splitMatch(must: readonly Node[]): { match: string | null; rest: readonly Node[] } {
  const wanted = must.filter((node) => expressionOf(node) !== null)
  if (wanted.length === 0) return { match: null, rest: must }
  const unwanted = must.filter((node) => isNode(node, 'not') && expressionOf(node.of) !== null)
  const taken = new Set<Node>([...wanted, ...unwanted])
  const match = expressionOf({ is: 'and', of: [...wanted, ...unwanted] })
  return { match, rest: must.filter((node) => !taken.has(node)) }
}

/** A whole part as one FTS5 expression, or null: FTS5 knows NOT only as `a NOT b`. */
function expressionOf(node: Node): string | null {
  if (typeof node === 'boolean') return null
  if (node.is === 'match') return node.match
  if (node.is !== 'and' && node.is !== 'or') return null
  const wanted: string[] = []
  const unwanted: string[] = []
  for (const part of node.of) {
    const isUnwanted = node.is === 'and' && isNode(part, 'not')
    const expression = expressionOf(isUnwanted ? part.of : part)
    if (expression === null) return null
    ;(isUnwanted ? unwanted : wanted).push(expression)
  }
  if (wanted.length === 0) return null
  const positive = `(${wanted.join(node.is === 'and' ? ' AND ' : ' OR ')})`
  return unwanted.length === 0 ? positive : `(${positive} NOT (${unwanted.join(' OR ')}))`
}

function conditionOf(node: Node): Condition {
  return { asksFacts: asksFacts(node), sql: (names) => sqlOf(node, names) }
}

function asksFacts(node: Node): boolean {
  if (typeof node === 'boolean') return false
  if (node.is === 'and' || node.is === 'or') return node.of.some(asksFacts)
  return node.is === 'not' ? asksFacts(node.of) : node.is === 'fact' || node.is === 'exact'
}

function sqlOf(node: Node, names: Names): Sql {
  if (typeof node === 'boolean') return { sql: node ? '1' : '0', params: [] }
  const expression = expressionOf(node)
  if (expression !== null) return matchIn(expression, names.pos)
  switch (node.is) {
    case 'and':
    case 'or': {
      const parts = node.of.map((part) => sqlOf(part, names))
      const { sql, params } = joined(parts, node.is === 'and' ? ' AND ' : ' OR ')
      return { sql: `(${sql})`, params }
    }
    case 'not': {
      const { sql, params } = sqlOf(node.of, names)
      return { sql: `NOT (${sql})`, params }
    }
    case 'label': {
      const marks = node.ids.map(() => '?').join(', ')
      return {
        sql: `EXISTS (SELECT 1 FROM message_labels l WHERE l.label IN (${marks}) AND l.pos = ${names.pos})`,
        params: node.ids,
      }
    }
    case 'match':
      return matchIn(node.match, names.pos)
    case 'exact':
    case 'fact':
      return node.sql(names.facts)
  }
}

function matchIn(match: string | null, pos: string): Sql {
  if (match === null) return { sql: '1', params: [] }
  return { sql: `${pos} IN (SELECT w.rowid FROM words w WHERE w.words MATCH ?)`, params: [match] }
}

/** From what must hold in any case; dates within an OR or behind a minus narrow nothing. */
function rangeOf(query: Query): TimeRange {
  let fromMs = Number.NEGATIVE_INFINITY
  let toMs = Number.POSITIVE_INFINITY
  for (const part of query.is === 'and' ? query.of : [query]) {
    const own =
      part.is === 'after'
        ? { fromMs: part.atMs, toMs: Number.POSITIVE_INFINITY }
        : part.is === 'before'
          ? { fromMs: Number.NEGATIVE_INFINITY, toMs: part.atMs }
          : part.is === 'and'
            ? rangeOf(part)
            : null
    if (!own) continue
    fromMs = Math.max(fromMs, own.fromMs)
    toMs = Math.min(toMs, own.toMs)
  }
  return { fromMs, toMs }
}

/** What an excerpt of the text may show: nothing of what must not be there. */
function marksOf(query: Query): Mark[] {
  if (query.is === 'and' || query.is === 'or') return query.of.flatMap(marksOf)
  if (query.is !== 'text' || (query.field !== null && query.field !== 'body')) return []
  const groups = query.phrase ? [query.words.join(' ')] : query.words
  return groups.flatMap((group, index) => {
    const words = indexedWords(group)
    return words.length === 0 ? [] : [{ words, prefix: query.prefix && index === groups.length - 1 }]
  })
}

function isNode<Is extends Exclude<Node, boolean>['is']>(
  node: Node,
  is: Is,
): node is Extract<Exclude<Node, boolean>, { is: Is }> {
  return typeof node === 'object' && node.is === is
}

function concat(parts: readonly Sql[]): Sql {
  return joined(parts, ' ')
}

function joined(parts: readonly Sql[], between: string): Sql {
  return { sql: parts.map(({ sql }) => sql).join(between), params: parts.flatMap(({ params }) => params) }
}
