/** Words of mail: queries as they are typed, labels, people, and when a message came. */
import { formatDay } from '../../../../../web/src/format.ts'

/** Where the last word begins; spaces inside quotes belong to it. */
export function lastWordAt(query: string): number {
  let at = 0
  let isQuoted = false
  for (let i = 0; i < query.length; i++) {
    const char = query[i]
    if (char === '"') isQuoted = !isQuoted
    else if (!isQuoted && (char === ' ' || char === '(')) at = i + 1
  }
  return at
}

/** A suggestion is either the whole query, or what its last word becomes. */
export function applySuggestion(query: string, suggestion: string): string {
  const before = query.slice(0, lastWordAt(query))
  const isWhole = suggestion.toLowerCase().startsWith(before.toLowerCase())
  const next = isWhole ? suggestion : before + suggestion
  // After an operator's colon its value is typed; after a whole word the next one.
  return next.endsWith(':') ? next : `${next.trimEnd()} `
}

/** Ends with an operator that has no value yet: nothing to search for before more is typed. */
export const isUnfinished = (query: string): boolean => /(?:^|[\s({-])[a-z_]+:["(]?$/i.test(query)

/** Quoted where a label, a name or an address would otherwise fall into several words. */
export function operatorText(operator: string, value: string): string {
  const plain = value.replaceAll('"', ' ').trim()
  return /^[\p{L}\p{N}@._+-]+$/u.test(plain) ? `${operator}:${plain}` : `${operator}:"${plain}"`
}

const SYSTEM = /^(?:CATEGORY_)?[A-Z]+$/
/** What most mail carries says nothing about this one. */
const QUIET = new Set(['INBOX', 'UNREAD', 'SENT', 'IMPORTANT', 'CATEGORY_PERSONAL'])

export const isQuietLabel = (name: string): boolean => QUIET.has(name.toUpperCase())

export function labelText(name: string): string {
  if (name === 'CATEGORY_PERSONAL') return 'Primary'
  if (!SYSTEM.test(name)) return name
  const plain = name.replace('CATEGORY_', '')
  return plain[0] + plain.slice(1).toLowerCase()
}

/** What finds all mail with that label. */
export function labelQuery(name: string): string {
  return name.startsWith('CATEGORY_')
    ? `category:${labelText(name).toLowerCase()}`
    : operatorText('label', name)
}

export type Person = { name: string; address: string }

export const personName = ({ name, address }: Person): string => name.trim() || address || 'unknown'

/** `Ann Lee, Bo`, and how many there are beyond. */
export function peopleNames(people: readonly Person[], most = 2): string {
  if (people.length === 0) return 'unknown'
  const shown = people.slice(0, most).map(personName).join(', ')
  return people.length > most ? `${shown} +${people.length - most}` : shown
}

/** With the address, which names can lie about. */
export function personFull({ name, address }: Person): string {
  if (name.trim() === '' || name.trim() === address) return address || 'unknown'
  return address === '' ? name : `${name} <${address}>`
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })

export function mailTime(at: number, now: number): string {
  if (!Number.isFinite(at) || Math.abs(at) > 8.64e15) return formatDay(at)
  const then = new Date(at)
  const today = new Date(now)
  if (then.toDateString() === today.toDateString()) return clock.format(at)
  return then.getFullYear() === today.getFullYear() ? dayOfYear.format(at) : formatDay(at)
}
