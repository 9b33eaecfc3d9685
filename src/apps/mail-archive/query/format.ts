/**
 * A query as text again. What the parser made reads back as the same tree; of trees made otherwise, those with
 * parts that no text can say (a word of two words, an `and` of one) read back as one that finds the same.
 */
import { operators } from './operators.ts'
import type { Query } from './query.ts'

const NAMES = { id: 'id', 'message-id': 'rfc822msgid', thread: 'thread' } as const

export function formatQuery(query: Query): string {
  switch (query.is) {
    case 'all':
      return 'in:anywhere'
    case 'and':
      return query.of.map(formatQuery).join(' ')
    case 'or':
      return `{${query.of.map(formatPart).join(' ')}}`
    case 'not':
      return `-${formatPart(query.of)}`
    case 'text':
      return formatText(query)
    case 'label':
      return `label:${formatValue(query.name)}`
    case 'id':
    case 'message-id':
    case 'thread':
      return `${NAMES[query.is]}:${formatValue(query.value)}`
    case 'before':
    case 'after':
      return `${query.is}:${formatMoment(query.atMs)}`
    case 'larger':
    case 'smaller':
      return `${query.is}:${query.bytes}`
    case 'has-attachment':
      return 'has:attachment'
    case 'deleted':
    case 'imported':
      return `is:${query.is}`
  }
}

function formatPart(query: Query): string {
  return query.is === 'and' ? `(${formatQuery(query)})` : formatQuery(query)
}

function formatText(query: Extract<Query, { is: 'text' }>): string {
  const operator = query.field === null ? '' : `${query.field}:`
  const star = query.prefix ? '*' : ''
  if (query.phrase) return `${operator}${quote(query.words.join(' '))}${star}`
  const isWhole = query.field !== null && query.words.length === 1
  const words = query.words.map((word, index) => {
    const end = index === query.words.length - 1 ? star : ''
    return canStandBare(word) && (isWhole || readsAsWord(`${word}${end}`))
      ? `${word}${end}`
      : `${quote(word)}${end}`
  })
  return words.length === 1 ? `${operator}${words[0]}` : `${operator}(${words.join(' ')})`
}

function canStandBare(word: string): boolean {
  return /^[^\s(){}"“”]+$/.test(word) && !word.endsWith('*')
}

/** Not as a joint, as left out, or as an operator. */
function readsAsWord(word: string): boolean {
  return !word.startsWith('-') && word !== 'OR' && word !== 'AND' && !readsAsOperator(word)
}

/** As in the parser: `http://x` and `Re:` are words. */
function readsAsOperator(word: string): boolean {
  const [, name, rest] = /^([a-z][a-z0-9_-]+):(.*)$/is.exec(word) ?? []
  if (name === undefined) return false
  return operators.has(name.toLowerCase()) || !(rest === '' || rest?.startsWith('//'))
}

function formatValue(value: string): string {
  return /^[^\s(){}"“”]+$/.test(value) ? value : quote(value)
}

function quote(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

/** Nine digits or a decimal point, so that it is not taken for a date. */
function formatMoment(atMs: number): string {
  const seconds = Math.floor(Math.abs(atMs) / 1_000)
  const ms = Math.abs(atMs) % 1_000
  const isPlain = ms === 0 && seconds >= 1e8 && seconds < 1e11
  const fraction = isPlain ? '' : `.${String(ms).padStart(3, '0')}`
  return `${atMs < 0 ? '-' : ''}${seconds}${fraction}`
}
