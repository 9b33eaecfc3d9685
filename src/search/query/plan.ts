/** What a query asks of words, of documents and of meaning. */

import { UsageError } from '../../base/errors.ts'
import type { Facet } from '../contract.ts'
import { ALWAYS, allOf, type Condition } from '../index/dialect.ts'
import type { Leaf, Query, TextLeaf, TextTree, Tree } from './query.ts'

export type Plan = {
  /** What must hold of words for the whole query to hold; null where nothing of words alone must. */
  text: TextTree | null
  /** What else must hold. */
  rest: Query
  /** What is asked for, and not left out: by these the score is made. */
  leaves: readonly TextLeaf[]
  /** One of several is enough somewhere: what has all that is asked for need not have every leaf. */
  hasChoice: boolean
  /** What must hold of a document that is near by meaning: all but bare words. */
  near: Query
  /** No bare word is asked for: what is near must hold the whole query. */
  isNearWhole: boolean
  /** What is looked for by meaning; '' where nothing is. */
  meaning: string
}

export function planOf(query: Query): Plan {
  const leaves = positiveLeaves(query)
  return {
    ...parted(query),
    leaves,
    hasChoice: hasChoice(query),
    near: relaxed(query),
    isNearWhole: !leaves.some(isBare),
    meaning: leaves
      .filter(({ field }) => field === null)
      .map(({ typed }) => typed)
      .join(' '),
  }
}

/** What must hold of words alone, and what else. */
export function parted(query: Query): Pick<Plan, 'text' | 'rest'> {
  const parts = query.is === 'and' ? query.of : [query]
  const text = parts.filter(isTextTree)
  const rest = parts.filter((part) => !isTextTree(part))
  return {
    text: text.length === 0 ? null : text.length === 1 ? text[0]! : { is: 'and', of: text },
    rest: rest.length === 0 ? { is: 'all' } : rest.length === 1 ? rest[0]! : { is: 'and', of: rest },
  }
}

function hasChoice(query: Query): boolean {
  if (query.is === 'or') return true
  return query.is === 'and' && query.of.some(hasChoice)
}

export function isTextTree(query: Tree<Leaf>): query is TextTree {
  if (query.is === 'text') return true
  return (query.is === 'and' || query.is === 'or') && query.of.every(isTextTree)
}

function positiveLeaves(query: Query): TextLeaf[] {
  if (query.is === 'text') return [query]
  return query.is === 'and' || query.is === 'or' ? query.of.flatMap(positiveLeaves) : []
}

function isBare({ field, exact }: TextLeaf): boolean {
  return field === null && !exact
}

/** Without the bare words, which another word may stand for. What is in quotes, in a field or left out stays. */
function relaxed(query: Query): Query {
  if (query.is === 'text') return isBare(query) ? { is: 'all' } : query
  if (query.is !== 'and' && query.is !== 'or') return query
  const of = query.of.map(relaxed)
  if (query.is === 'or') return of.some(({ is }) => is === 'all') ? { is: 'all' } : { is: 'or', of }
  const kept = of.filter(({ is }) => is !== 'all')
  if (kept.length === 0) return { is: 'all' }
  return kept.length === 1 ? kept[0]! : { is: 'and', of: kept }
}

/** What is said of words within what else must hold: what is left out, and choices between words and other things. */
export function textTreesOf(query: Query): TextTree[] {
  if (isTextTree(query)) return [query]
  if (query.is === 'not') return textTreesOf(query.of)
  return query.is === 'and' || query.is === 'or' ? query.of.flatMap(textTreesOf) : []
}

/** Of documents as `d`; `hasWords`: whether the document has what one of `textTreesOf` says. */
export function conditionOf(query: Query, hasWords: (tree: TextTree) => Condition): Condition {
  if (isTextTree(query)) return hasWords(query)
  switch (query.is) {
    case 'all':
      return ALWAYS
    case 'and':
    case 'or': {
      const of = query.of.map((part) => conditionOf(part, hasWords))
      return {
        sql: of.map(({ sql }) => `(${sql})`).join(query.is === 'and' ? ' AND ' : ' OR '),
        params: of.flatMap(({ params }) => params),
      }
    }
    case 'not': {
      const { sql, params } = conditionOf(query.of, hasWords)
      // What is unknown, such as a date that is missing, does not hold, so that its opposite does.
      return { sql: `(${sql}) IS NOT TRUE`, params }
    }
    case 'source':
      return { sql: 'd.source = ?', params: [query.value] }
    case 'type':
      return { sql: 'd.type = ?', params: [query.value] }
    case 'before':
      return { sql: 'd.at < ?', params: [query.atMs] }
    case 'after':
      return { sql: 'd.at >= ?', params: [query.atMs] }
  }
}

export type Filters = Readonly<Partial<Record<Facet, readonly string[]>>>

/** Names of facets come from requests: no text of theirs gets into a statement. */
const COLUMNS = { source: 'd.source', type: 'd.type', owner: 'd.owner' } as const

const FILTER_VALUES_MAX = 100

function badFilter(message: string): UsageError {
  return new UsageError(message, {
    code: 'bad-filter',
    hint: 'The filters are source, type, owner, folder and year.',
  })
}

/** One of the values of each facet. */
export function filterCondition(filters: Filters): Condition {
  const conditions: Condition[] = []
  for (const [facet, values] of Object.entries(filters) as [Facet, readonly string[]][]) {
    const marks = values.map(() => '?').join(', ')
    if (values.length === 0) continue
    if (values.length > FILTER_VALUES_MAX)
      throw badFilter(`A filter has at most ${FILTER_VALUES_MAX} values.`)
    if (facet === 'folder') {
      conditions.push({
        sql: `EXISTS (SELECT 1 FROM search_folders f WHERE f.doc_id = d.id AND f.name IN (${marks}))`,
        params: values,
      })
    } else if (facet === 'year') {
      const years = values
        .map(Number)
        .filter((year) => Number.isInteger(year) && year >= 1_000 && year < 10_000)
      conditions.push({
        sql: years.length === 0 ? 'FALSE' : years.map(() => '(d.at >= ? AND d.at < ?)').join(' OR '),
        params: years.flatMap((year) => [Date.UTC(year, 0), Date.UTC(year + 1, 0)]),
      })
    } else if (Object.hasOwn(COLUMNS, facet)) {
      conditions.push({ sql: `${COLUMNS[facet]} IN (${marks})`, params: values })
    } else throw badFilter(`There is no filter ${JSON.stringify(facet)}.`)
  }
  return allOf(conditions)
}
