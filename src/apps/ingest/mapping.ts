/** Which fields of a record are its text, its time, its id. What the mapping names and does not fit is kept in `rescue`. */
import type { MappedRecord, Mapping } from './contract.ts'
import { parseTime } from './record-time.ts'
import { EXTRA_CELLS } from './records/csv.ts'

export type RecordValue = Readonly<Record<string, unknown>>

export const TEXT_CHARS_MAX = 256 * 1024
const TITLE_CHARS_MAX = 300
const ID_CHARS_MAX = 512
const FACET_CHARS_MAX = 256
const FACET_NAME_CHARS_MAX = 128
/** Of one record, and of one list within it. */
const FACETS_MAX = 64
const LIST_FACETS_MAX = 16
const RESCUE_FIELDS_MAX = 64
const RESCUE_CHARS_MAX = 8 * 1024
const PATH_PARTS_MAX = 32
/** Items of a list that are joined, and how far down. */
const JOINED_MAX = 1_000
const JOINED_DEPTH_MAX = 8

export function mapRecord(value: RecordValue, mapping: Mapping): MappedRecord {
  const rescue = new Rescue()
  const text = textOf(value, mapping, rescue)
  const title = titleOf(value, mapping, rescue) ?? firstLine(text)
  const atMs = timeOf(value, mapping, rescue)
  const id = idOf(value, mapping, rescue)
  const facets = facetsOf(value, mapping, rescue)
  // Cells of a row that have no name fit nowhere.
  if (Object.hasOwn(value, EXTRA_CELLS)) rescue.add(EXTRA_CELLS, value[EXTRA_CELLS])
  return { title, text, atMs, id, facets, rescue: rescue.fields }
}

/**
 * The value at `detail.bucket.name`. A field that is called so, dots and all, comes first. A part that is a number
 * counts the items of a list; any other part is asked of each of them.
 */
export function valueAt(value: unknown, path: string): unknown {
  if (isFields(value) && Object.hasOwn(value, path)) return value[path]
  const parts = path.split('.', PATH_PARTS_MAX + 1)
  return parts.length > PATH_PARTS_MAX ? undefined : descend(value, parts, 0)
}

function descend(value: unknown, parts: readonly string[], from: number): unknown {
  let at: unknown = value
  for (let part = from; part < parts.length; part++) {
    const name = parts[part]!
    if (Array.isArray(at)) {
      if (/^\d{1,9}$/.test(name)) at = at[Number(name)]
      else {
        const found = at
          .slice(0, JOINED_MAX)
          .map((item) => (Array.isArray(item) ? undefined : descend(item, parts, part)))
        const present = found.flat().filter((one) => one !== undefined)
        return present.length === 0 ? undefined : present
      }
    } else if (isFields(at) && Object.hasOwn(at, name)) at = at[name]
    else return undefined
  }
  return at
}

// --- The parts of a record -----------------------------------------------------------------------------------------

function textOf(value: RecordValue, mapping: Mapping, rescue: Rescue): string {
  if (mapping.text.length === 0) return wholeText(value, rescue)
  const pieces: string[] = []
  let left = TEXT_CHARS_MAX
  for (const path of mapping.text) {
    const found = valueAt(value, path)
    if (isMissing(found)) continue
    const text = asText(found)
    if (text === undefined) rescue.add(path, found)
    else if (text !== '' && left > 0) {
      pieces.push(cut(text, left))
      left -= text.length
    }
  }
  return pieces.join('\n')
}

/** Nobody has said what the text is: then all of it is, so that no record is empty. */
function wholeText(value: RecordValue, rescue: Rescue): string {
  const fields = Object.entries(value).filter(([name, one]) => name !== EXTRA_CELLS && !isMissing(one))
  const pieces: string[] = []
  for (const [name, one] of fields) {
    const text = asText(one)
    if (text === undefined) rescue.add(name, one)
    else if (text !== '') pieces.push(fields.length === 1 ? text : `${clean(name)}: ${text}`)
  }
  return cut(pieces.join('\n'), TEXT_CHARS_MAX)
}

function titleOf(value: RecordValue, mapping: Mapping, rescue: Rescue): string | undefined {
  if (mapping.title === undefined) return mapping.text.length === 0 ? likelyTitle(value) : undefined
  const found = valueAt(value, mapping.title)
  if (isMissing(found)) return undefined
  const text = asText(found)
  if (text === undefined) rescue.add(mapping.title, found)
  return text === undefined || text.trim() === '' ? undefined : firstLine(text)
}

const LIKELY_TITLES = ['title', 'subject', 'message', 'msg', 'text', 'body', 'name', 'eventName']

/** Where all of a record is its text, its first line is whatever field came first. */
function likelyTitle(value: RecordValue): string | undefined {
  const name = LIKELY_TITLES.find((one) => Object.hasOwn(value, one) && typeof value[one] === 'string')
  const line = name === undefined ? '' : firstLine(value[name] as string)
  return line === '' ? undefined : line
}

function timeOf(value: RecordValue, mapping: Mapping, rescue: Rescue): number | null {
  if (mapping.time === undefined) return null
  const found = valueAt(value, mapping.time)
  if (isMissing(found)) return null
  const at = parseTime(found)
  if (at === undefined) rescue.add(mapping.time, found)
  return at ?? null
}

/** An id that would have to be cut is none: two records would become one. */
function idOf(value: RecordValue, mapping: Mapping, rescue: Rescue): string | null {
  if (mapping.id === undefined) return null
  const found = valueAt(value, mapping.id)
  if (isMissing(found)) return null
  const id = typeof found === 'string' ? found : Number.isSafeInteger(found) ? String(found) : undefined
  if (id !== undefined && id !== '' && id.length <= ID_CHARS_MAX && id === clean(id)) return id
  rescue.add(mapping.id, found)
  return null
}

function facetsOf(value: RecordValue, mapping: Mapping, rescue: Rescue): { name: string; value: string }[] {
  const facets: { name: string; value: string }[] = []
  for (const path of mapping.facets) {
    const found = valueAt(value, path)
    if (isMissing(found)) continue
    const values = Array.isArray(found) ? found : [found]
    const texts = new Set<string>()
    for (const one of values.slice(0, LIST_FACETS_MAX)) {
      const text = scalarText(one)
      if (text !== undefined && text !== '' && text.length <= FACET_CHARS_MAX) texts.add(text)
    }
    const isWhole =
      texts.size > 0 && values.length <= LIST_FACETS_MAX && values.every((one) => fitsFacet(one))
    if (!isWhole && found !== '' && values.length > 0) rescue.add(path, found)
    for (const text of texts) {
      if (facets.length < FACETS_MAX) facets.push({ name: path.slice(0, FACET_NAME_CHARS_MAX), value: text })
    }
  }
  return facets
}

function fitsFacet(value: unknown): boolean {
  const text = scalarText(value)
  return isMissing(value) || (text !== undefined && text.length <= FACET_CHARS_MAX)
}

// --- Values --------------------------------------------------------------------------------------------------------

/** A list is joined, an object is written as its fields; undefined where it is nested too deep. */
function asText(value: unknown): string | undefined {
  const pieces: string[] = []
  return collect(value, pieces, JOINED_DEPTH_MAX)
    ? pieces.join(Array.isArray(value) ? ', ' : '\n')
    : undefined
}

function collect(value: unknown, pieces: string[], depthLeft: number): boolean {
  if (isMissing(value)) return true
  const text = scalarText(value)
  if (text !== undefined) {
    pieces.push(text)
    return true
  }
  if (depthLeft === 0 || pieces.length > JOINED_MAX) return false
  if (Array.isArray(value)) return value.every((one) => collect(one, pieces, depthLeft - 1))
  return Object.entries(value as RecordValue).every(([name, one]) => {
    const inner: string[] = []
    if (!collect(one, inner, depthLeft - 1)) return false
    if (inner.length > 0) pieces.push(`${clean(name)}: ${inner.join(', ')}`)
    return true
  })
}

function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return clean(value)
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/** No NUL and no half of a pair: databases refuse them. */
function clean(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '\ufffd') : whole
}

function firstLine(text: string): string {
  const line = text
    .trimStart()
    .slice(0, 2 * TITLE_CHARS_MAX)
    .split(/[\r\n]/, 1)[0]!
  return cut(line.trim(), TITLE_CHARS_MAX)
}

/** Never through the middle of a pair. */
function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : text.slice(0, charsMax).replace(/[\ud800-\udbff]$/, '')
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null
}

function isFields(value: unknown): value is RecordValue {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** As they were, unless they are longer than all of them may be: then their beginning, as JSON. */
class Rescue {
  readonly fields: Record<string, unknown> = {}
  #count = 0
  #charsLeft = RESCUE_CHARS_MAX

  add(path: string, value: unknown): void {
    if (Object.hasOwn(this.fields, path) || this.#count === RESCUE_FIELDS_MAX) return
    this.#count += 1
    const json = JSON.stringify(value) ?? 'null'
    const kept = json.length <= this.#charsLeft ? value : cut(json, this.#charsLeft)
    this.#charsLeft = Math.max(0, this.#charsLeft - json.length)
    Object.defineProperty(this.fields, path, { value: kept, enumerable: true })
  }
}
