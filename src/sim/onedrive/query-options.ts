/**
 * OData's options of a call. The dollar sign may be left out, as Graph has it. What a route does not know is refused and
 * never passed over: a filter that is not applied looks like one that found everything.
 */
import type { Drive } from './drive.ts'
import { GraphError, graphFault, invalid } from './errors.ts'
import { type Item, sizeOf } from './item.ts'

/** Those that OData has; any of them is refused where a route does not take it. */
const KNOWN = [
  'select',
  'expand',
  'filter',
  'orderby',
  'top',
  'skip',
  'skiptoken',
  'count',
  'search',
  'format',
]

export type QueryOption = 'select' | 'expand' | 'filter' | 'orderby' | 'top' | 'skiptoken' | 'deltatoken'

export function queryOption(query: URLSearchParams, name: QueryOption): string | undefined {
  for (const [key, value] of query) if (optionName(key) === name) return value
  return undefined
}

/** Without the dollar sign; capitals do not matter. */
export function optionName(key: string): string {
  return key.replace(/^\$/, '').toLowerCase()
}

export function checkOptions(query: URLSearchParams, taken: readonly QueryOption[]): void {
  for (const key of query.keys()) {
    const name = optionName(key)
    if ((taken as readonly string[]).includes(name)) continue
    if (key.startsWith('$') || KNOWN.includes(name)) {
      const title = name.slice(0, 1).toUpperCase() + name.slice(1)
      throw invalid(`The query specified in the URI is not valid. Query option '${title}' is not allowed.`)
    }
  }
}

/** Of what a filter lets through: one comparison, as the service has it for children of a folder. */
export function filterOf(query: URLSearchParams, drive: Drive): (item: Item) => boolean {
  const text = queryOption(query, 'filter')?.trim()
  if (text === undefined) return () => true
  const equal = /^name eq '((?:[^']|'')*)'$/i.exec(text)
  if (equal) return named(equal[1]!, (key, wanted) => key === wanted)
  const begins = /^startswith\(\s*name\s*,\s*'((?:[^']|'')*)'\s*\)$/i.exec(text)
  if (begins) return named(begins[1]!, (key, wanted) => key.startsWith(wanted))
  const facet = /^(file|folder) (eq|ne) null$/i.exec(text)
  if (facet && drive.type === 'personal') {
    const isThere = facet[2]!.toLowerCase() === 'ne'
    return ({ kind }) => (kind === facet[1]!.toLowerCase()) === isThere
  }
  if (facet || / (?:and|or) |^not /i.test(text)) throw notSupported('Operation not supported')
  throw invalid('Invalid request')
}

function named(quoted: string, test: (key: string, wanted: string) => boolean): (item: Item) => boolean {
  const wanted = quoted.replaceAll("''", "'").normalize('NFC').toLowerCase()
  return ({ key }) => test(key, wanted)
}

export type Order = { value(item: Item): string | number; isDescending: boolean }

/** What rows are sorted by; rows that are equal in it stay in the order of their names. */
export function orderOf(query: URLSearchParams): Order {
  const text = queryOption(query, 'orderby') ?? 'name'
  const [, field = '', direction = 'asc'] = /^(\w+)(?: (asc|desc))?$/i.exec(text.trim()) ?? []
  const value = ORDERS[field.toLowerCase()]
  if (!value) throw notSupported(`Items cannot be ordered by ${text}.`)
  return { value, isDescending: direction.toLowerCase() === 'desc' }
}

const ORDERS: Readonly<Record<string, Order['value']>> = {
  name: ({ key }) => key,
  size: sizeOf,
  lastmodifieddatetime: ({ modifiedMs }) => modifiedMs,
}

export type Expansion = { name: string; select: string | undefined }

/** `children($select=id,name),thumbnails`; the dollar sign within may be left out, too. */
export function expansionsOf(query: URLSearchParams): readonly Expansion[] {
  const text = queryOption(query, 'expand')
  if (text === undefined) return []
  return text.split(/,(?![^(]*\))/).map((one) => {
    const match = /^\s*(\w+)\s*(?:\(\s*\$?select=([\w,.@ ]+)\))?\s*$/.exec(one)
    if (!match) throw invalid('Invalid value of $expand.')
    return { name: match[1]!, select: match[2] }
  })
}

/** A field that has nothing to be expanded. */
export function notExpandable(name: string): GraphError {
  return invalid(
    `Parsing OData Select and Expand failed: Could not find a property named '${name}' on type 'microsoft.graph.driveItem'.`,
  )
}

export function notSupported(message: string): GraphError {
  return new GraphError(graphFault(501, { code: 'notSupported', message }))
}
