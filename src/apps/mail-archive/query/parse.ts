/**
 * Reads a mail search in Gmail's language: `from:amy (budget OR "cost plan") -in:trash`. In one pass from left to
 * right, within limits; what cannot be read is a UsageError that shows the place.
 *
 * - what stands side by side must all hold; OR binds closer, as in Gmail: `a b OR c` is a and (b or c)
 * - { } holds when any of its parts does; an operator before ( ) or { } applies to each part
 * - a bare word of signs alone, such as the dash in `plan - draft`, says nothing and is passed over
 */
import { UsageError } from '../../../errors.ts'
import { BadValue, type OperatorSurroundings, type OperatorValue, operators, readText } from './operators.ts'
import type { Query } from './query.ts'

export const QUERY_CHARS_MAX = 2_000
export const QUERY_TERMS_MAX = 100
export const QUERY_DEPTH_MAX = 20

/** Of the text around a mistake that a message shows. */
const SHOWN_BEFORE_CHARS = 50
const SHOWN_CHARS = 70

export type ParseOptions = {
  now: number
  /** The account's own address, for `from:me`. Left out, `me` is a word like any other. */
  me?: string
}

export function parseQuery(text: string, options: ParseOptions): Query {
  if (text.length > QUERY_CHARS_MAX) {
    throw new UsageError(
      `The query is ${text.length} characters long; at most ${QUERY_CHARS_MAX} can be read.`,
      {
        code: 'bad-query',
      },
    )
  }
  return new Parser(text, { now: options.now, me: options.me }).parse()
}

type Close = ')' | '}'

const BLANK = /\s*/y
/** What a bare word or a bare value is made of. */
const RUN = /[^\s(){}"“”]*/y
/** Single letters are drives (`C:\`), and what starts with a digit is a time. */
const OPERATOR = /^([a-z][a-z0-9_-]+):/i
const SIGNS_ONLY = /^[!-/:-@[-`{-~–—…·•]+$/
const OPENS_VALUE = new Set(['(', '{', '"', '“', '”'])
/** A quote from a keyboard ends with one; curly ones end with whichever comes. */
const QUOTE_ENDS: Record<string, string> = { '"': '"', '“': '"“”', '”': '"“”' }

class Parser {
  readonly #text: string
  readonly #surroundings: OperatorSurroundings
  #at = 0
  #terms = 0

  constructor(text: string, surroundings: OperatorSurroundings) {
    this.#text = text
    this.#surroundings = surroundings
  }

  parse(): Query {
    if (this.#text.trim() === '') return { is: 'all' }
    const query = this.#sequence({ close: null, operator: null, depth: 0 })
    if (query) return query
    throw this.#bad(0, 'there is nothing to search for here')
  }

  /** Until `close` (null: the end of the text). Null when only signs stood there. */
  #sequence(input: { close: Close | null; operator: string | null; depth: number }): Query | null {
    const openAt = this.#at - 1
    const alternatives: Query[][] = []
    let joint: { word: 'OR' | 'AND'; at: number } | null = null
    for (;;) {
      this.#take(BLANK)
      if (this.#ends(input.close, openAt)) break
      const at = this.#at
      const word = this.#keyword()
      if (word) {
        if (alternatives.length === 0 || joint) throw this.#bad(at, `${word} needs something before it`)
        if (word === 'AND' && input.close === '}') throw this.#bad(at, 'in { } any part is enough: use ( )')
        joint = { word, at }
        continue
      }
      const item = this.#item(input.operator, input.depth)
      if (!item) continue
      const last = alternatives.at(-1)
      if (last && (joint?.word === 'OR' || input.close === '}')) last.push(item)
      else alternatives.push([item])
      joint = null
    }
    if (joint) throw this.#bad(joint.at, `${joint.word} needs something after it`)
    return alternatives.length === 0
      ? null
      : join(
          'and',
          alternatives.map((any) => join('or', any)),
        )
  }

  /** Whether a sequence is over; takes the bracket that closes it. */
  #ends(close: Close | null, openAt: number): boolean {
    const char = this.#text[this.#at]
    if (char === undefined) {
      if (close) throw this.#bad(openAt, `the ${this.#text[openAt]} is never closed by ${close}`)
      return true
    }
    if (char !== ')' && char !== '}') return false
    if (char !== close) throw this.#bad(this.#at, `this ${char} closes nothing`)
    this.#at += 1
    return true
  }

  #keyword(): 'OR' | 'AND' | null {
    const start = this.#at
    const run = this.#take(RUN)
    const next = this.#text[this.#at]
    if ((run === 'OR' || run === 'AND') && !(next && '"“”'.includes(next))) return run
    this.#at = start
    return null
  }

  #item(operator: string | null, depth: number): Query | null {
    const at = this.#at
    if (depth > QUERY_DEPTH_MAX) throw this.#bad(at, `more than ${QUERY_DEPTH_MAX} levels deep`)
    const char = this.#text[at]!
    if (char === '(' || char === '{') return this.#group(operator, depth)
    if (char in QUOTE_ENDS) return this.#term(operator, { at, value: this.#quoted() })
    const run = this.#take(RUN)
    const opensValue = OPENS_VALUE.has(this.#text[this.#at] ?? '')
    if (SIGNS_ONLY.test(run) && !(run.endsWith('-') && opensValue)) return null
    if (run.startsWith('-')) {
      this.#at = at + 1
      const of = this.#item(operator, depth + 1)
      // Signs before a bracket, as in `-&-(a b)`: which of them is meant cannot be told.
      if (!of) throw this.#bad(at, 'there is nothing to leave out here')
      return { is: 'not', of }
    }
    const named = operator === null ? this.#operatorIn(run, at, opensValue) : null
    if (!named) return this.#term(operator, { at, value: bare(run) })
    this.#at = at + named.length + 1
    return this.#operand(named.toLowerCase(), at, depth)
  }

  /** The operator that a word begins with. `http://x` and `Re: x` begin with none. */
  #operatorIn(run: string, at: number, opensValue: boolean): string | null {
    const name = OPERATOR.exec(run)?.[1]
    if (!name || operators.has(name.toLowerCase())) return name ?? null
    const rest = run.slice(name.length + 1)
    if (rest.startsWith('//') || (rest === '' && !opensValue)) return null
    const near = nearestOperator(name.toLowerCase())
    const guess = near ? `; did you mean ${near}:?` : ''
    throw this.#bad(at, `there is no operator ${name}:${guess}`, [
      `Put it in quotes to search for the text itself. The operators are ${operatorList()}.`,
    ])
  }

  #operand(operator: string, operatorAt: number, depth: number): Query {
    const at = this.#at
    const char = this.#text[at]
    if (char === '(' || char === '{') {
      const group = this.#group(operator, depth)
      if (!group) throw this.#bad(at, `${operator}: needs a value here`)
      return group
    }
    const value = char !== undefined && char in QUOTE_ENDS ? this.#quoted() : bare(this.#take(RUN))
    if (value.text !== '' || value.isQuoted) return this.#term(operator, { at, value })
    const { allows } = operators.get(operator)!
    throw this.#bad(operatorAt, `${operator}: needs a value right behind the colon`, [`It takes ${allows}.`])
  }

  #group(operator: string | null, depth: number): Query {
    const at = this.#at
    if (depth >= QUERY_DEPTH_MAX) throw this.#bad(at, `more than ${QUERY_DEPTH_MAX} levels deep`)
    const close = this.#text[at] === '(' ? ')' : '}'
    this.#at += 1
    const group = this.#sequence({ close, operator, depth: depth + 1 })
    if (group) return group
    throw this.#bad(at, 'there is nothing in these brackets')
  }

  #quoted(): OperatorValue {
    const start = this.#at
    const ends = QUOTE_ENDS[this.#text[start]!]!
    let text = ''
    for (let at = start + 1; at < this.#text.length; at++) {
      const char = this.#text[at]!
      if (ends.includes(char)) {
        const isOpenEnded = this.#text[at + 1] === '*'
        this.#at = at + (isOpenEnded ? 2 : 1)
        return { text, isQuoted: true, isOpenEnded }
      }
      const next = this.#text[at + 1]
      const isEscape = char === '\\' && (next === '\\' || (next !== undefined && ends.includes(next)))
      if (isEscape) at += 1
      text += isEscape ? next : char
    }
    throw this.#bad(start, 'this quote is never closed')
  }

  #term(operator: string | null, { at, value }: { at: number; value: OperatorValue }): Query {
    try {
      const query =
        operator === null ? readText(null, value) : operators.get(operator)!.read(value, this.#surroundings)
      this.#terms += query.is === 'text' ? query.words.length : 1
      if (this.#terms > QUERY_TERMS_MAX)
        throw new BadValue(`more than ${QUERY_TERMS_MAX} words and conditions`)
      return query
    } catch (thrown) {
      if (!(thrown instanceof BadValue)) throw thrown
      throw this.#bad(at, operator === null ? thrown.message : `${operator}: ${thrown.message}`)
    }
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }

  #bad(at: number, what: string, hints: readonly string[] = []): UsageError {
    const from = Math.max(0, at - SHOWN_BEFORE_CHARS)
    // Line breaks would move the caret away from its place.
    const shown = this.#text.slice(from, from + SHOWN_CHARS).replaceAll(/[\s\p{Cc}]/gu, ' ')
    const caret = `${' '.repeat(at - from)}^`
    return new UsageError(
      `The query cannot be read at character ${at + 1}: ${what}${what.endsWith('?') ? '' : '.'}\n  ${shown}\n  ${caret}`,
      {
        code: 'bad-query',
        hint: hints.length > 0 ? hints.join(' ') : undefined,
      },
    )
  }
}

/** One of them alone is itself, and an `and` within an `and` is the same one. */
function join(is: 'and' | 'or', parts: readonly Query[]): Query {
  const of = parts.flatMap((part) => (part.is === is ? part.of : [part]))
  return of.length === 1 ? of[0]! : { is, of }
}

function bare(text: string): OperatorValue {
  return { text, isQuoted: false, isOpenEnded: false }
}

export function operatorList(): string {
  return [...operators.keys()].map((name) => `${name}:`).join(' ')
}

const NAME_CHARS_MAX = 20

/** One slip for every three letters begun. */
function nearestOperator(name: string): string | undefined {
  if (name.length > NAME_CHARS_MAX) return undefined
  let best: string | undefined
  let least = Math.ceil(name.length / 3) + 1
  for (const candidate of operators.keys()) {
    const slips = slipsBetween(name, candidate)
    if (slips < least) [best, least] = [candidate, slips]
  }
  return best
}

/** Letters added, left out, replaced, or swapped with their neighbour. */
function slipsBetween(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      let least = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, replaced)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) least = Math.min(least, rows[i - 2]![j - 2]! + 1)
      row.push(least)
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
