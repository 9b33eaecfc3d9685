/**
 * A first mapping for records that nobody has described: from the types, the lengths and the names of the fields in the
 * first of them. The same records give the same proposal; types that change on the way are all told.
 */
import type { Mapping } from './contract.ts'
import type { RecordValue } from './mapping.ts'
import { parseTime } from './record-time.ts'

export type ValueType = 'text' | 'number' | 'boolean' | 'time' | 'null' | 'list' | 'object'

export type FieldSchema = {
  path: string
  /** All that were seen, the most frequent first. */
  types: readonly ValueType[]
  /** Of the records: 0 to 1. */
  share: number
  examples: readonly string[]
}

export type MappingProposal = { mapping: Mapping; schema: readonly FieldSchema[]; records: number }

const FIELDS_MAX = 500
const DEPTH_MAX = 5
const LIST_ITEMS_MAX = 20
const EXAMPLES_MAX = 3
const EXAMPLE_CHARS_MAX = 80
const DISTINCT_MAX = 1_000
const FACETS_MAX = 12
const TEXTS_MAX = 4
const FACET_CHARS_MAX = 64
/** Fewer say nothing about how often values repeat. */
const RECORDS_MIN_FOR_REPEATS = 4

const TIME_NAME =
  /(^|[._-])(@?timestamp|time|date|datetime|ts|created|updated|eventtime|published)($|[._-])|(time|date|_at|At|timestamp)$/i
const TEXT_NAME = /(^|[._])(text|message|msg|body|content|description|summary|comment|log|line|raw)$/i
const TITLE_NAME = /(^|[._])(title|subject|headline|name|eventName|label)$/i
const ID_NAME = /(^|[._])(id|_id|uuid|guid|key|eventid|event_id|record_id|message_id|messageid)$/i

type Field = {
  path: string
  types: Map<ValueType, number>
  records: number
  values: Set<string>
  valueCount: number
  chars: number
  words: number
  examples: string[]
}

export function proposeMapping(records: readonly RecordValue[]): MappingProposal {
  const fields = new Map<string, Field>()
  for (const record of records) {
    const seen = new Set<string>()
    visit(record, '', 0, (path, value) => note(fields, seen, path, value))
  }
  const all = [...fields.values()]
  const schema = all.map((field) => schemaOf(field, records.length))
  return { mapping: mappingOf(all, records.length), schema, records: records.length }
}

function visit(
  value: unknown,
  path: string,
  depth: number,
  tell: (path: string, value: unknown) => void,
): void {
  if (path !== '') tell(path, value)
  if (typeof value !== 'object' || value === null || depth >= DEPTH_MAX) return
  if (Array.isArray(value)) {
    for (const item of value.slice(0, LIST_ITEMS_MAX)) {
      if (typeof item === 'object' && item !== null && !Array.isArray(item))
        visitFields(item, path, depth + 1, tell)
      else if (!Array.isArray(item)) tell(path, item)
    }
  } else visitFields(value, path, depth, tell)
}

function visitFields(
  value: object,
  path: string,
  depth: number,
  tell: (path: string, value: unknown) => void,
): void {
  for (const [name, field] of Object.entries(value).slice(0, FIELDS_MAX)) {
    visit(field, path === '' ? name : `${path}.${name}`, depth + 1, tell)
  }
}

function note(fields: Map<string, Field>, seen: Set<string>, path: string, value: unknown): void {
  let field = fields.get(path)
  if (field === undefined) {
    if (fields.size === FIELDS_MAX) return
    field = {
      path,
      types: new Map(),
      records: 0,
      values: new Set(),
      valueCount: 0,
      chars: 0,
      words: 0,
      examples: [],
    }
    fields.set(path, field)
  }
  const type = typeOf(value)
  field.types.set(type, (field.types.get(type) ?? 0) + 1)
  if (!seen.has(path)) field.records += 1
  seen.add(path)
  if (type === 'null' || type === 'list' || type === 'object') return
  const text = String(value)
  field.valueCount += 1
  field.chars += text.length
  if (type === 'text') field.words += text.slice(0, 1_000).split(/\s+/).length
  if (field.values.size < DISTINCT_MAX) field.values.add(text.slice(0, 200))
  const example = text.slice(0, EXAMPLE_CHARS_MAX)
  if (field.examples.length < EXAMPLES_MAX && !field.examples.includes(example)) field.examples.push(example)
}

function typeOf(value: unknown): ValueType {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'list'
  if (typeof value === 'object') return 'object'
  if (typeof value === 'boolean') return 'boolean'
  if (typeof value === 'number') return 'number'
  // A text of digits alone is a time only where the name says so.
  return typeof value === 'string' && !/^[\d.]*$/.test(value) && parseTime(value) !== undefined
    ? 'time'
    : 'text'
}

function schemaOf({ path, types, records: withIt, examples }: Field, records: number): FieldSchema {
  const sorted = [...types].sort(([a, many], [b, more]) => more - many || (a < b ? -1 : 1))
  return { path, types: sorted.map(([type]) => type), share: withIt / records, examples }
}

// --- What a field could be -----------------------------------------------------------------------------------------

function mappingOf(fields: readonly Field[], records: number): Mapping {
  const time = best(fields, (field) => timeScore(field, records))
  const id = best(fields, (field) => (field === time ? 0 : idScore(field, records)))
  const rest = fields.filter((field) => field !== time && field !== id)
  const text = ranked(rest, textScore).slice(0, TEXTS_MAX)
  const title = best(rest, (field) => (text.includes(field) && text.length === 1 ? 0 : titleScore(field)))
  // Something is to be found, even where nothing looks like prose.
  const found = text.length > 0 ? text : rest.filter(isScalar).slice(0, TEXTS_MAX)
  const facets = ranked(rest, (field) => (text.includes(field) ? 0 : facetScore(field))).slice(0, FACETS_MAX)
  const mapping: Mapping = { text: found.map(({ path }) => path), facets: facets.map(({ path }) => path) }
  if (title) mapping.title = title.path
  if (time) mapping.time = time.path
  if (id) mapping.id = id.path
  return mapping
}

function ranked(fields: readonly Field[], score: (field: Field) => number): Field[] {
  const scored = fields
    .map((field, at) => ({ field, at, score: score(field) }))
    .filter((one) => one.score > 0)
  return scored.sort((a, b) => b.score - a.score || a.at - b.at).map(({ field }) => field)
}

function best(fields: readonly Field[], score: (field: Field) => number): Field | undefined {
  return ranked(fields, score)[0]
}

function shareOf(field: Field, type: ValueType): number {
  let all = 0
  for (const [other, count] of field.types) if (other !== 'null') all += count
  return all === 0 ? 0 : (field.types.get(type) ?? 0) / all
}

function isScalar(field: Field): boolean {
  return field.valueCount > 0 && !field.types.has('object')
}

function timeScore(field: Field, records: number): number {
  const isNamed = TIME_NAME.test(field.path)
  const isTime =
    shareOf(field, 'time') > 0.9 ||
    (isNamed && [...field.values].every((one) => parseTime(one) !== undefined))
  if (!isTime || field.valueCount === 0 || field.types.has('list')) return 0
  return field.records / records + (isNamed ? 1 : 0) + 1 / (1 + field.path.split('.').length)
}

/** In every record, and never twice. */
function idScore(field: Field, records: number): number {
  const isUnique = field.values.size === Math.min(records, DISTINCT_MAX) && field.valueCount === records
  if (!isUnique || field.records < records || field.words > field.valueCount) return 0
  const isNamed = ID_NAME.test(field.path) || /id$/i.test(field.path)
  return isNamed ? 1 + 1 / field.path.length : 0
}

function textScore(field: Field): number {
  if (!isScalar(field) || shareOf(field, 'text') < 0.5) return 0
  const words = field.words / field.valueCount
  const isNamed = TEXT_NAME.test(field.path)
  return words >= 4 || isNamed ? words + (isNamed ? 100 : 0) : 0
}

function titleScore(field: Field): number {
  if (!isScalar(field) || !TITLE_NAME.test(field.path) || shareOf(field, 'text') < 0.5) return 0
  return field.chars / field.valueCount <= 200 ? 1 / field.path.split('.').length : 0
}

/** Values that are short and come again. */
function facetScore(field: Field): number {
  if (!isScalar(field) || shareOf(field, 'time') > 0.5) return 0
  if (field.chars / field.valueCount > FACET_CHARS_MAX) return 0
  const isBoolean = shareOf(field, 'boolean') > 0.9
  const repeats = 1 - field.values.size / field.valueCount
  if (isBoolean) return 0.5
  if (field.valueCount < RECORDS_MIN_FOR_REPEATS || repeats < 0.5) return 0
  // A number that comes again is as likely a measure as a code.
  return shareOf(field, 'number') > 0.5 ? repeats * 0.4 : repeats
}
