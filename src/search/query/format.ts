/** A search as text again, as it was understood: what it says reads back as the same. */
import { searchBareWords } from './parse.ts'
import type { Query, TextLeaf } from './query.ts'

export function formatSearch(query: Query): string {
  switch (query.is) {
    case 'all':
      return ''
    case 'and':
      return query.of.map(formatPart).join(' ')
    case 'or':
      return query.of.map(formatPart).join(' OR ')
    case 'not':
      return `-${formatPart(query.of)}`
    case 'text':
      return formatText(query)
    case 'source':
    case 'type':
      return `${query.is}:${query.value}`
    case 'before':
    case 'after':
      return `${query.is}:${formatMoment(query.atMs)}`
  }
}

/** OR binds closer than what stands side by side, and brackets say it. */
function formatPart(query: Query): string {
  return query.is === 'and' || query.is === 'or' ? `(${formatSearch(query)})` : formatSearch(query)
}

function formatText({ field, typed, exact, prefix }: TextLeaf): string {
  const operator = field === null ? '' : `${field}:`
  const star = prefix ? '*' : ''
  return exact || !canStandBare(typed, field !== null)
    ? `${operator}"${typed.replaceAll(/["\\]/g, '\\$&')}"${star}`
    : `${operator}${typed}${star}`
}

function canStandBare(word: string, isValue: boolean): boolean {
  if (!/^[^\s(){}"“”]+$/.test(word) || /^[-+]/.test(word) || /^(?:and|or|not|me)$/i.test(word)) return false
  if (searchBareWords.looksLikeOperator(word) !== null) return false
  return isValue || searchBareWords.namedOperator(word, false) === null
}

const DAY_MS = 86_400_000

/** A day where one begins then, else seconds with a decimal point, so that they are not taken for a date. */
function formatMoment(atMs: number): string {
  if (atMs >= 0 && atMs % DAY_MS === 0 && atMs < Date.UTC(9_999, 0)) {
    return new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '/')
  }
  const ms = String(Math.abs(atMs) % 1_000).padStart(3, '0')
  return `${atMs < 0 ? '-' : ''}${Math.floor(Math.abs(atMs) / 1_000)}.${ms}`
}
