/**
 * A query as text again, as it was understood: every joint is written out, names and times are what they stand for.
 * What the parser made reads back as the same tree; of trees made otherwise, those with parts that no text can say
 * (a word of two words, an `and` of one) read back as one that finds the same.
 */
import { CATEGORIES, dayBeginningAt, isAboutPeople, PLACES, STATES } from './operators.ts'
import { bareWords } from './parse.ts'
import type { Query } from './query.ts'

const NAMES = { id: 'id', 'message-id': 'rfc822msgid', thread: 'thread' } as const
const NOTHING = 'NOT in:anywhere'

export function formatQuery(query: Query): string {
  switch (query.is) {
    case 'all':
      return 'in:anywhere'
    case 'and':
      return query.of.length === 0 ? 'in:anywhere' : query.of.map(formatPart).join(' AND ')
    case 'or':
      return query.of.length === 0 ? NOTHING : query.of.map(formatPart).join(' OR ')
    case 'not':
      return `NOT ${formatPart(query.of)}`
    case 'text':
      return formatText(query)
    case 'label':
      return OWN_LABELS.get(query.name) ?? `label:${formatValue(query.name)}`
    case 'id':
    case 'message-id':
    case 'thread':
      return `${NAMES[query.is]}:${formatValue(query.value)}`
    case 'before':
    case 'after':
      return `${query.is}:${formatMoment(query.atMs)}`
    case 'larger':
    case 'smaller':
      return `${query.is}:${formatSize(query.bytes)}`
    case 'has-attachment':
      return 'has:attachment'
    case 'deleted':
    case 'imported':
      return `is:${query.is}`
  }
}

function formatPart(query: Query): string {
  return query.is === 'and' || query.is === 'or' ? `(${formatQuery(query)})` : formatQuery(query)
}

/** Gmail's own labels, by the operators that people know them by. */
const OWN_LABELS = new Map<string, string>()
for (const [operator, choices] of [
  ['category', CATEGORIES],
  ['is', STATES],
  ['in', PLACES],
] as const) {
  for (const [name, query] of choices) {
    if (query.is === 'label' && !OWN_LABELS.has(query.name)) OWN_LABELS.set(query.name, `${operator}:${name}`)
  }
}

function formatText({ field, words, phrase, prefix }: Extract<Query, { is: 'text' }>): string {
  const operator = field === null ? '' : `${field}:`
  const star = prefix ? '*' : ''
  if (phrase) return `${operator}${quote(words.join(' '))}${star}`
  const pieces = words.map((word, index) => {
    const end = index === words.length - 1 ? star : ''
    const isOwn = isAboutPeople(field) && word.toLowerCase() === 'me'
    return !isOwn && canStandBare(`${word}${end}`, word) ? `${word}${end}` : `${quote(word)}${end}`
  })
  return pieces.length === 1 ? `${operator}${pieces[0]}` : `${operator}(${pieces.join(' AND ')})`
}

/** Not as a joint, as left out, or as an operator; small `or` and `not` are words, and are shown to be. */
function canStandBare(written: string, word: string): boolean {
  if (!/^[^\s(){}"“”]+$/.test(word) || word.endsWith('*') || /^[-+]/.test(word)) return false
  if (/^(?:and|or|not|around)$/i.test(word)) return false
  return bareWords.looksLikeOperator(written) === null && bareWords.namedOperator(written, false) === null
}

function formatValue(value: string): string {
  return /^[^\s(){}"“”]+$/.test(value) ? value : quote(value)
}

function quote(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

function formatSize(bytes: number): string {
  for (const [power, unit] of [
    [30, 'G'],
    [20, 'M'],
    [10, 'K'],
  ] as const) {
    if (bytes > 0 && bytes % 2 ** power === 0) return `${bytes / 2 ** power}${unit}`
  }
  return String(bytes)
}

/** As a day, as a moment of four-digit years, or as seconds with a decimal point, so that it is not taken for a date. */
function formatMoment(atMs: number): string {
  const day = dayBeginningAt(atMs)
  if (day !== null) return day
  const date = new Date(atMs)
  const iso = Number.isNaN(date.getTime()) ? '' : date.toISOString()
  if (/^\d{4}-/.test(iso)) return iso.replace('.000Z', 'Z')
  const ms = String(Math.abs(atMs) % 1_000).padStart(3, '0')
  return `${atMs < 0 ? '-' : ''}${Math.floor(Math.abs(atMs) / 1_000)}.${ms}`
}
