/**
 * Partial responses: `fields=messages(id,threadId),nextPageToken`, with `a/b` for `a(b)` and `*` for all.
 * A selection is a tree; an empty node takes everything below it.
 */
import { GoogleError } from './errors.ts'

export type Selection = { [field: string]: Selection | true }

const TEXT_MAX = 4_000
const DEPTH_MAX = 20
const CACHE_MAX = 500

const cache = new Map<string, Selection>()

/** Undefined where everything is wanted. */
export function parseFields(text: string | null): Selection | undefined {
  if (text === null || text === '' || text === '*') return undefined
  const known = cache.get(text)
  if (known) return known
  if (text.length > TEXT_MAX) throw wrongFields(text.slice(0, 40))
  const reader = { text, at: 0 }
  const selection = parseList(reader, 0)
  if (reader.at < text.length) throw wrongFields(text)
  if (cache.size >= CACHE_MAX) cache.clear()
  cache.set(text, selection)
  return selection
}

export function selects(selection: Selection | undefined, field: string): boolean {
  return selection === undefined || field in selection || '*' in selection
}

export function applyFields(value: unknown, selection: Selection | undefined): unknown {
  if (selection === undefined || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => applyFields(item, selection))
  const kept: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value)) {
    const below = Object.hasOwn(selection, name) ? selection[name] : selection['*']
    if (below === undefined) continue
    kept[name] = below === true ? item : applyFields(item, below)
  }
  return kept
}

type Reader = { text: string; at: number }

function parseList(reader: Reader, depth: number): Selection {
  if (depth > DEPTH_MAX) throw wrongFields(reader.text)
  const selection: Selection = Object.create(null)
  for (;;) {
    parseEntry(reader, selection, depth)
    if (reader.text[reader.at] !== ',') return selection
    reader.at += 1
  }
}

function parseEntry(reader: Reader, into: Selection, depth: number): void {
  const name = /^\s*([\w*-]+)\s*/.exec(reader.text.slice(reader.at, reader.at + 200))
  if (!name) throw wrongFields(reader.text)
  reader.at += name[0].length
  const field = name[1]!
  const next = reader.text[reader.at]
  let below: Selection | true = true
  if (next === '/') {
    reader.at += 1
    if (depth >= DEPTH_MAX) throw wrongFields(reader.text)
    below = Object.create(null) as Selection
    parseEntry(reader, below, depth + 1)
  } else if (next === '(') {
    reader.at += 1
    below = parseList(reader, depth + 1)
    if (reader.text[reader.at] !== ')') throw wrongFields(reader.text)
    reader.at += 1
  }
  const known = into[field]
  into[field] = known === undefined ? below : merge(known, below)
}

function merge(one: Selection | true, other: Selection | true): Selection | true {
  if (one === true || other === true) return true
  for (const [name, below] of Object.entries(other)) {
    const known = one[name]
    one[name] = known === undefined ? below : merge(known, below)
  }
  return one
}

function wrongFields(text: string): GoogleError {
  return new GoogleError({
    status: 400,
    message: `Invalid field selection ${text}`,
    reason: 'invalidParameter',
    location: 'fields',
    locationType: 'parameter',
  })
}
