/** Reads a mail search in Gmail's language: see search/query/syntax.ts for how its parts are put together. */
import { bareWordRules } from '../../../search/query/bare-word.ts'
import { readQuery, type Syntax } from '../../../search/query/syntax.ts'
import { type OperatorSurroundings, operators, readText } from './operators.ts'
import type { Leaf, Query } from './query.ts'

export type ParseOptions = {
  now: number
  /** The account's own address, for `from:me`. Left out, `me` is a word like any other. */
  me?: string
  /** Commands that take mail away: a small `or` or `not` has to be in quotes or in capitals. */
  smallJoints?: 'refuse'
}

export const bareWords = bareWordRules(operators)

const SYNTAX: Syntax<Leaf, OperatorSurroundings> = {
  operators,
  bareWords,
  readText: (value) => readText(null, value),
  wordsIn: (query) => (query.is === 'text' ? query.words.length : null),
}

export function parseQuery(text: string, { now, me, smallJoints }: ParseOptions): Query {
  return readQuery(text, SYNTAX, { surroundings: { now, me }, smallJoints })
}
