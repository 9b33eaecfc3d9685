/**
 * The language of the search over everything: see syntax.ts for how its parts are put together.
 *
 *   source:drive type:pdf owner:ann from:bob to:carol in:legal title:plan before:2026/03/01 after:… newer_than:7d older_than:1y
 *
 * Days begin at midnight UTC; a date is when a document was last changed.
 */
import { DOCUMENT_TYPES, type DocumentType } from '../contract.ts'
import { wordsOf } from '../index/words.ts'
import { bareWordRules } from './bare-word.ts'
import {
  BadValue,
  type Day,
  type Operator,
  type OperatorValue,
  readInstant,
  SPAN_ALLOWS,
  spanStart,
} from './operator.ts'
import { type Leaf, PHRASE_WORDS_MAX, type Query, type TextField } from './query.ts'
import { readQuery, type Syntax } from './syntax.ts'

export type ParseOptions = {
  now: number
  /** The reader's own addresses, for `owner:me`. Left out, `me` is a word like any other. */
  me?: readonly string[]
}

type Surroundings = ParseOptions

const DATE_ALLOWS = 'YYYY/MM/DD (midnight UTC), YYYY-MM-DDTHH:MM:SSZ, or seconds since 1970'
const TEXT_ALLOWS = 'a word, a "phrase", or several in ( ) or { }'

/** What people call the types, besides their own names. */
const TYPE_NAMES: Record<string, readonly DocumentType[]> = {
  doc: ['document'],
  docs: ['document'],
  spreadsheet: ['sheet'],
  sheets: ['sheet'],
  presentation: ['slides'],
  email: ['mail'],
  message: ['mail'],
  picture: ['image'],
  photo: ['image'],
  video: ['media'],
  audio: ['media'],
  zip: ['archive'],
  ...Object.fromEntries(DOCUMENT_TYPES.map((type) => [type, [type]])),
}

export const searchOperators: ReadonlyMap<string, Operator<Leaf, Surroundings>> = new Map<
  string,
  Operator<Leaf, Surroundings>
>([
  ['title', textOperator('title')],
  ['owner', textOperator('owner')],
  ['from', textOperator('from')],
  ['to', textOperator('to')],
  ['in', { ...textOperator('in'), allows: 'words of the name of a folder, a drive or a label' }],
  [
    'source',
    {
      allows: 'the name of a source, such as drive, mail or files',
      read({ text }) {
        const value = text.trim().toLowerCase()
        if (!/^[a-z][a-z0-9_-]{0,40}$/.test(value))
          throw new BadValue('this must be the name of a source, such as drive')
        return { is: 'source', value }
      },
    },
  ],
  [
    'type',
    {
      allows: DOCUMENT_TYPES.join(', '),
      read({ text }) {
        const types = Object.hasOwn(TYPE_NAMES, text.trim().toLowerCase())
          ? TYPE_NAMES[text.trim().toLowerCase()]!
          : undefined
        if (types) return { is: 'type', value: types[0]! }
        throw new BadValue(`this can be ${DOCUMENT_TYPES.join(', ')}`)
      },
    },
  ],
  ['after', dateOperator('after')],
  ['newer', dateOperator('after')],
  ['before', dateOperator('before')],
  ['older', dateOperator('before')],
  ['newer_than', spanOperator('after')],
  ['older_than', spanOperator('before')],
])

export const searchBareWords = bareWordRules(searchOperators)

const SYNTAX: Syntax<Leaf, Surroundings> = {
  operators: searchOperators,
  bareWords: searchBareWords,
  readText: (value) => readText(null, value),
  wordsIn: (query) => {
    if (query.is === 'text') return query.words.length
    return query.is === 'and' ? query.of.reduce((sum, part) => sum + (SYNTAX.wordsIn(part) ?? 0), 0) : null
  },
}

/** Throws a UsageError with the code `bad-query`, which shows the place. */
export function parseSearch(text: string, options: ParseOptions): Query {
  return readQuery(text, SYNTAX, { surroundings: options })
}

/** Words that the index cannot tell from a phrase, such as an address, are one; a long phrase is several. */
function readText(field: TextField | null, value: OperatorValue): Query {
  const typed = value.isQuoted ? value.text : value.text.replace(/\*+$/, '')
  const words = wordsOf(typed)
  if (words.length === 0) {
    throw new BadValue(
      typed.trim() === ''
        ? 'there is nothing to search for here'
        : 'letters or digits are needed here: signs and pictures cannot be searched for',
    )
  }
  const isOpen = value.isOpenEnded || typed.length < value.text.length
  const of: Leaf[] = []
  for (let from = 0; from < words.length; from += PHRASE_WORDS_MAX) {
    const some = words.slice(from, from + PHRASE_WORDS_MAX)
    const isLast = from + PHRASE_WORDS_MAX >= words.length
    const shown = words.length <= PHRASE_WORDS_MAX ? typed.trim() : some.join(' ')
    of.push({ is: 'text', field, words: some, prefix: isOpen && isLast, exact: value.isQuoted, typed: shown })
  }
  return of.length === 1 ? of[0]! : { is: 'and', of }
}

function textOperator(field: TextField): Operator<Leaf, Surroundings> {
  return {
    allows: TEXT_ALLOWS,
    read(value, { me }) {
      const isMe = me && me.length > 0 && !value.isQuoted && value.text.toLowerCase() === 'me'
      if (!isMe || field === 'title' || field === 'in') return readText(field, value)
      const of = me.map((address) => readText(field, { text: address, isQuoted: true, isOpenEnded: false }))
      return of.length === 1 ? of[0]! : { is: 'or', of }
    },
  }
}

function dateOperator(is: 'after' | 'before'): Operator<Leaf, Surroundings> {
  return {
    allows: DATE_ALLOWS,
    read: ({ text }) => ({ is, atMs: readInstant(text, { allows: DATE_ALLOWS, midnight }) }),
  }
}

function spanOperator(is: 'after' | 'before'): Operator<Leaf, Surroundings> {
  return { allows: SPAN_ALLOWS, read: ({ text }, { now }) => ({ is, atMs: spanStart(text, now) }) }
}

function midnight({ year, month, day }: Day): number {
  const atMs = Date.UTC(year, month - 1, day)
  const there = new Date(atMs)
  if (year < 1_970 || there.getUTCMonth() !== month - 1 || there.getUTCDate() !== day) {
    throw new BadValue('there is no such day since 1970')
  }
  return atMs
}
