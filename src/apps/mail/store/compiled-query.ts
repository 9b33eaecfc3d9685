/**
 * A query, made ready to be asked of every shard: text as an FTS5 expression, everything else as conditions.
 *
 * Invariant: nothing of a query is ever part of the SQL, and FTS5 only sees words that its own tokenizer made, in
 * quotes: no query is a syntax error. A word without letters and digits matches nothing; it is never left out, since
 * that would find (and let a clean-up take) more than was asked for.
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
  /** Labels that every hit has. */
  labels: readonly string[]
  /** Ids, Message-IDs or threads decide: few messages can match. */
  isExact: boolean
  conditions: readonly Condition[]
  marks: readonly Mark[]
}

/** A condition in terms of the tables that a statement reads from. */
export type Condition = {
  asksFacts: boolean
  /** The condition is that a message has this label, and nothing else. */
  label: string | null
  sql: (names: Names) => Sql
}

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
    range: queryRange(query),
    match,
    labels: rest.flatMap((node) => labelOf(node) ?? []),
    isExact: rest.some(isExact),
    conditions: rest.map(conditionOf),
    marks: marksOf(query),
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
  const phrases = groups.map(indexedWords)
  if (phrases.length === 0 || phrases.some((words) => words.length === 0)) return null
  const columns = query.field === null ? '' : `{${COLUMNS[query.field]}} : `
  const texts = phrases.map((words, index) => {
    const star = query.prefix && index === phrases.length - 1 ? ' *' : ''
    return `${columns}"${words.join(' ').replaceAll('"', '""')}"${star}`
  })
  return texts.length === 1 ? texts[0]! : `(${texts.join(' AND ')})`
}

/** Gmail's own labels, whose ids are known without asking. */
const OWN_LABELS = /^(?:INBOX|SENT|DRAFT|TRASH|SPAM|CHAT|UNREAD|STARRED|IMPORTANT|CATEGORY_[A-Z]+)$/

/** Gmail writes label names in searches with dashes for blanks and slashes. */
function labelIds(name: string, labels: ReadonlyMap<string, string> | undefined): string[] {
  const known = knownLabelIds(name, labels)
  return known.length > 0 ? known : [name]
}

/** Ids of the labels that a name in a query may mean; none where no label is called so. */
export function knownLabelIds(name: string, labels: ReadonlyMap<string, string> | undefined): string[] {
  const lower = name.toLowerCase()
  const found = labels?.get(lower)
  if (found !== undefined) return [found]
  const dashed = (text: string): string => text.replaceAll(/[\s/]/g, '-')
  const ids = [...(labels ?? [])].flatMap(([key, id]) => (dashed(key) === dashed(lower) ? [id] : []))
  if (ids.length > 0) return [...new Set(ids)]
  const upper = name.toUpperCase()
  return OWN_LABELS.test(upper) ? [upper] : []
}

// From nodes to what a statement needs.

/** Takes what FTS5 can answer alone out of the parts that must all hold. */
function splitMatch(must: readonly Node[]): { match: string | null; rest: readonly Node[] } {
  const wanted = must.filter((node) => expressionOf(node, 1) !== null)
  const unwanted = must.filter(
    (node) => isTree(node) && node.is === 'not' && expressionOf(node.of, 1) !== null,
  )
  const match = expressionOf({ is: 'and', of: [...wanted, ...unwanted] })
  // Without text that must be there, text that must not be is a condition like others.
  if (match === null) return { match: null, rest: must }
  const taken = new Set<Node>([...wanted, ...unwanted])
  return { match, rest: must.filter((node) => !taken.has(node)) }
}

/** FTS5's own parser gives up beyond some twenty levels: what is deeper is asked in parts. */
const MATCH_DEPTH_MAX = 12

/** A whole part as one FTS5 expression, or null: FTS5 knows NOT only as `a NOT b`. */
function expressionOf(node: Node, depth = 0): string | null {
  if (typeof node === 'boolean' || depth > MATCH_DEPTH_MAX) return null
  if (node.is === 'match') return node.match
  if (node.is !== 'and' && node.is !== 'or') return null
  const wanted: string[] = []
  const unwanted: string[] = []
  for (const part of node.of) {
    const isUnwanted = node.is === 'and' && isTree(part) && part.is === 'not'
    const expression = expressionOf(isUnwanted ? part.of : part, depth + 1)
    if (expression === null) return null
    ;(isUnwanted ? unwanted : wanted).push(expression)
  }
  if (wanted.length === 0) return null
  const positive = `(${wanted.join(node.is === 'and' ? ' AND ' : ' OR ')})`
  return unwanted.length === 0 ? positive : `(${positive} NOT (${unwanted.join(' OR ')}))`
}

function conditionOf(node: Node): Condition {
  return { asksFacts: asksFacts(node), label: labelOf(node), sql: (names) => sqlOf(node, names) }
}

function labelOf(node: Node): string | null {
  return isTree(node) && node.is === 'label' && node.ids.length === 1 ? node.ids[0]! : null
}

function isExact(node: Node): boolean {
  return isTree(node) && (node.is === 'exact' || (node.is === 'or' && node.of.every(isExact)))
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

function matchIn(match: string, pos: string): Sql {
  return { sql: `${pos} IN (SELECT w.rowid FROM words w WHERE w.words MATCH ?)`, params: [match] }
}

/** From what must hold in any case; dates within an OR or behind a minus narrow nothing. */
function queryRange(query: Query): TimeRange {
  let fromMs = Number.NEGATIVE_INFINITY
  let toMs = Number.POSITIVE_INFINITY
  for (const part of query.is === 'and' ? query.of : [query]) {
    const own =
      part.is === 'after'
        ? { fromMs: part.atMs, toMs: Number.POSITIVE_INFINITY }
        : part.is === 'before'
          ? { fromMs: Number.NEGATIVE_INFINITY, toMs: part.atMs }
          : part.is === 'and'
            ? queryRange(part)
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

/** Constants have no parts. */
function isTree(node: Node): node is Exclude<Node, boolean> {
  return typeof node === 'object'
}

export function joined(parts: readonly Sql[], between: string): Sql {
  return { sql: parts.map(({ sql }) => sql).join(between), params: parts.flatMap(({ params }) => params) }
}
