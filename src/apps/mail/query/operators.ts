/**
 * What the operators of a mail search mean. They are Gmail's, with `is:deleted`, `is:imported`, `body:`, `id:` and
 * `thread:` added for what only an archive knows. Dates are midnight in Los Angeles, as in Gmail.
 */
import {
  BadValue,
  type Operator as OperatorOf,
  type OperatorValue,
  readInstant,
  SPAN_ALLOWS,
  spanStart,
} from '../../../search/query/operator.ts'
import type { Leaf, Query, TextField } from './query.ts'

export type OperatorSurroundings = {
  /** Milliseconds since the epoch: what `newer_than:` counts back from. */
  now: number
  /** The account's own address: what `from:me` means. */
  me: string | undefined
}

type Operator = OperatorOf<Leaf, OperatorSurroundings>

/** What unicode61 makes words of; everything else only separates them. */
export const WORD_CHARACTER = /[\p{L}\p{N}\p{Co}]/u

const HOUR_MS = 3_600_000
const SIZE_UNITS: Record<string, number> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 }
const DATE_ALLOWS =
  'YYYY/MM/DD (midnight in Los Angeles, as in Gmail), YYYY-MM-DDTHH:MM:SSZ, or seconds since 1970'
const SIZE_ALLOWS = 'a number of bytes, or one with K, M or G, such as 10M'

export const PLACES: ReadonlyMap<string, Query> = new Map<string, Query>([
  ['anywhere', { is: 'all' }],
  ['inbox', label('INBOX')],
  ['sent', label('SENT')],
  ['trash', label('TRASH')],
  ['bin', label('TRASH')],
  ['spam', label('SPAM')],
  ['drafts', label('DRAFT')],
  ['draft', label('DRAFT')],
  ['chats', label('CHAT')],
  [
    'archive',
    { is: 'not', of: { is: 'or', of: ['INBOX', 'SENT', 'DRAFT', 'TRASH', 'SPAM', 'CHAT'].map(label) } },
  ],
])

export const STATES: ReadonlyMap<string, Query> = new Map<string, Query>([
  ['unread', label('UNREAD')],
  ['read', { is: 'not', of: label('UNREAD') }],
  ['starred', label('STARRED')],
  ['important', label('IMPORTANT')],
  ['deleted', { is: 'deleted' }],
  ['imported', { is: 'imported' }],
])

export const CATEGORIES: ReadonlyMap<string, Query> = new Map<string, Query>([
  ['primary', label('CATEGORY_PERSONAL')],
  ['social', label('CATEGORY_SOCIAL')],
  ['promotions', label('CATEGORY_PROMOTIONS')],
  ['updates', label('CATEGORY_UPDATES')],
  ['forums', label('CATEGORY_FORUMS')],
])

const DELETED = new Map<string, Query>([
  ['yes', { is: 'deleted' }],
  ['no', { is: 'not', of: { is: 'deleted' } }],
])

export const operators: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['from', textOperator('from')],
  ['to', textOperator('to')],
  ['cc', textOperator('cc')],
  ['bcc', textOperator('bcc')],
  ['subject', textOperator('subject')],
  ['filename', textOperator('filename')],
  ['body', textOperator('body')],
  ['label', { allows: 'the name of a label', read: ({ text }) => ({ is: 'label', name: named(text) }) }],
  [
    'in',
    {
      allows: `${[...PLACES.keys()].join(', ')}, or the name of a label`,
      read: ({ text }) => PLACES.get(text.trim().toLowerCase()) ?? { is: 'label', name: named(text) },
    },
  ],
  ['is', choiceOperator(STATES)],
  ['has', choiceOperator(new Map([['attachment', { is: 'has-attachment' }]]))],
  ['category', choiceOperator(CATEGORIES)],
  ['deleted', choiceOperator(DELETED)],
  ['larger', sizeOperator('larger')],
  ['size', sizeOperator('larger')],
  ['smaller', sizeOperator('smaller')],
  ['after', dateOperator('after')],
  ['newer', dateOperator('after')],
  ['before', dateOperator('before')],
  ['older', dateOperator('before')],
  ['newer_than', spanOperator('after')],
  ['older_than', spanOperator('before')],
  [
    'rfc822msgid',
    {
      allows: 'the Message-ID of a mail',
      read: ({ text }) => ({ is: 'message-id', value: named(withoutAngles(named(text))) }),
    },
  ],
  ['id', { allows: "Gmail's id of a message", read: ({ text }) => ({ is: 'id', value: named(text) }) }],
  [
    'thread',
    { allows: "Gmail's id of a conversation", read: ({ text }) => ({ is: 'thread', value: named(text) }) },
  ],
])

/** Words in a field, or anywhere. */
export function readText(field: TextField | null, value: OperatorValue): Query {
  const trimmed = value.isQuoted ? value.text : value.text.replace(/\*+$/, '')
  const words = trimmed.split(/\s+/).filter((word) => word !== '')
  if (!words.some((word) => WORD_CHARACTER.test(word))) {
    throw new BadValue(
      words.length === 0
        ? 'there is nothing to search for here'
        : 'letters or digits are needed here: signs and pictures cannot be searched for',
    )
  }
  const prefix = value.isOpenEnded || trimmed.length < value.text.length
  return { is: 'text', field, words, phrase: words.length > 1, prefix }
}

function textOperator(field: TextField): Operator {
  return {
    allows: 'a word, a "phrase", or several in ( ) or { }',
    read(value, { me }) {
      const isMe = me !== undefined && !value.isQuoted && value.text.toLowerCase() === 'me'
      return readText(field, isMe && isAboutPeople(field) ? { ...value, text: me, isQuoted: true } : value)
    },
  }
}

/** There `me` is the account's own address. */
export function isAboutPeople(field: TextField | null): boolean {
  return field === 'from' || field === 'to' || field === 'cc' || field === 'bcc'
}

function choiceOperator(choices: ReadonlyMap<string, Query>): Operator {
  const allows = [...choices.keys()].join(', ')
  return {
    allows,
    read({ text }) {
      const choice = choices.get(text.trim().toLowerCase())
      if (choice) return choice
      throw new BadValue(`this can be ${allows}`)
    },
  }
}

function sizeOperator(is: 'larger' | 'smaller'): Operator {
  return {
    allows: SIZE_ALLOWS,
    read({ text }) {
      const match = /^(\d{1,16}(?:\.\d{1,6})?)([kmg]?)b?$/i.exec(text)
      const bytes = match ? Math.round(Number(match[1]) * SIZE_UNITS[match[2]!.toLowerCase()]!) : Number.NaN
      if (!Number.isSafeInteger(bytes)) throw new BadValue(`this must be ${SIZE_ALLOWS}`)
      return { is, bytes }
    },
  }
}

function dateOperator(is: 'after' | 'before'): Operator {
  return { allows: DATE_ALLOWS, read: ({ text }) => ({ is, atMs: readMoment(text) }) }
}

function spanOperator(is: 'after' | 'before'): Operator {
  return { allows: SPAN_ALLOWS, read: ({ text }, { now }) => ({ is, atMs: spanStart(text, now) }) }
}

function readMoment(text: string): number {
  return readInstant(text, { allows: DATE_ALLOWS, midnight: midnightInLosAngeles })
}

const losAngeles = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/Los_Angeles',
  hourCycle: 'h23',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
})

/** The day that begins there at that moment, as it is written in a query; null where none does. */
export function dayBeginningAt(atMs: number): string | null {
  if (atMs < 0 || atMs % HOUR_MS !== 0) return null
  const parts = new Map(losAngeles.formatToParts(atMs).map(({ type, value }) => [type, value]))
  const [year, month, day] = [parts.get('year'), parts.get('month'), parts.get('day')].map(Number)
  if (Number(parts.get('hour')) !== 0 || year! < 1_970 || year! > 9_999) return null
  const two = (part: number | undefined): string => String(part).padStart(2, '0')
  return `${year}/${two(month)}/${two(day)}`
}

/** The year of which `after:YEAR/01/01` speaks: on that day it has always been eight hours earlier there since 1970. */
export function yearAt(atMs: number): number {
  return new Date(atMs - 8 * HOUR_MS).getUTCFullYear()
}

/** There it is seven or eight hours earlier than in Greenwich, and clocks never change at midnight. */
function midnightInLosAngeles({ year, month, day }: { year: number; month: number; day: number }): number {
  const midnightUtc = Date.UTC(year, month - 1, day)
  const there = new Date(midnightUtc)
  if (year < 1_970 || there.getUTCMonth() !== month - 1 || there.getUTCDate() !== day) {
    throw new BadValue('there is no such day since 1970')
  }
  for (const hours of [7, 8]) {
    const candidate = midnightUtc + hours * HOUR_MS
    const parts = new Map(losAngeles.formatToParts(candidate).map(({ type, value }) => [type, value]))
    if (Number(parts.get('day')) === day && Number(parts.get('hour')) === 0) return candidate
  }
  return midnightUtc + 8 * HOUR_MS
}

/** As headers write it, or without its angle brackets. */
function withoutAngles(text: string): string {
  if (!text.startsWith('<') || !text.endsWith('>')) return text
  let [start, end] = [0, text.length]
  while (text[start] === '<') start += 1
  while (end > start && text[end - 1] === '>') end -= 1
  return text.slice(start, end)
}

function label(name: string): Query {
  return { is: 'label', name }
}

function named(text: string): string {
  const trimmed = text.trim()
  if (trimmed === '') throw new BadValue('a name is missing here')
  return trimmed
}
