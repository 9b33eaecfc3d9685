/**
 * Reads a search in the language that people know from Gmail: `from:amy (budget OR "cost plan") -in:trash`. What operators
 * there are and what they mean is given; how they are put together is the same for every search. In one pass from left
 * to right, within limits; what cannot be read is a UsageError that shows the place.
 *
 * - what stands side by side must all hold; OR binds closer, as in Gmail: `a b OR c` is a and (b or c)
 * - { } holds when any of its parts does; an operator before ( ) or { } applies to each part
 * - NOT and a minus leave out what follows; a plus asks for a word exactly, as every word is asked for here
 * - what looks like an operator and is none is refused, and never searched for as a word unless it is quoted
 * - a bare word of other signs alone, such as the slash in `plan / draft`, says nothing and is passed over
 */
import { UsageError } from '../../base/errors.ts'
import { type BareWordRules, isSmallJoint } from './bare-word.ts'
import { BadValue, type Operator, type OperatorValue } from './operator.ts'
import type { Tree } from './query.ts'
import { slipsBetween } from './slips.ts'

/** A search language. `L`: what its operators and words become; `S`: what they are read with, such as the time. */
export type Syntax<L extends { is: string }, S> = {
  operators: ReadonlyMap<string, Operator<L, S>>
  bareWords: BareWordRules
  /** A word, or what was in quotes. Throws BadValue. */
  readText(value: OperatorValue): Tree<L>
  /** How many words it is; null where it is none. */
  wordsIn(query: Tree<L>): number | null
}

export type ReadOptions<S> = {
  surroundings: S
  /** Commands that take something away: a small `or` or `not` has to be in quotes or in capitals. */
  smallJoints?: 'refuse' | undefined
}

export const QUERY_CHARS_MAX = 2_000
export const QUERY_TERMS_MAX = 100
export const QUERY_DEPTH_MAX = 20

/** Of the text around a mistake that a message shows. */
const SHOWN_BEFORE_CHARS = 50
const SHOWN_CHARS = 70

export function readQuery<L extends { is: string }, S>(
  text: string,
  syntax: Syntax<L, S>,
  options: ReadOptions<S>,
): Tree<L> {
  if (text.length > QUERY_CHARS_MAX) {
    throw new UsageError(
      `The query is ${text.length} characters long; at most ${QUERY_CHARS_MAX} can be read.`,
      {
        code: 'bad-query',
      },
    )
  }
  return new Parser(text, syntax, options).parse()
}

type Close = ')' | '}'
type Joint = 'OR' | 'AND' | '&'

const QUOTE_IT = 'Put it in quotes to search for the text itself.'
/** As much as a joint and blanks before it are looked for in. */
const JOINT_CHARS_MAX = 10
const LEAVE_OUT = 'what is to be left out follows a minus or NOT, as in -draft'

const BLANK = /\s*/y
/** What a bare word or a bare value is made of. */
const RUN = /[^\s(){}"“”]*/y
const SIGNS_ONLY = /^[!-/:-@[-`{-~–—…·•]+$/
/** Alone, with a blank behind it, it leaves nothing out, though somebody may have meant it to. */
const LONE_NEGATION = /^[-!]+$/
const OPENS_VALUE = new Set(['(', '{', '"', '“', '”'])
/** A quote from a keyboard ends with one; curly ones end with whichever comes. */
const QUOTE_ENDS: Record<string, string> = { '"': '"', '“': '"“”', '”': '"“”' }

class Parser<L extends { is: string }, S> {
  readonly #text: string
  readonly #syntax: Syntax<L, S>
  readonly #options: ReadOptions<S>
  #at = 0
  #terms = 0

  constructor(text: string, syntax: Syntax<L, S>, options: ReadOptions<S>) {
    this.#text = text
    this.#syntax = syntax
    this.#options = options
  }

  parse(): Tree<L> {
    if (this.#text.trim() === '') return { is: 'all' }
    const query = this.#sequence({ close: null, operator: null, depth: 0 })
    if (query) return query
    throw this.#bad(0, 'there is nothing to search for here')
  }

  /** Until `close` (null: the end of the text). Null when only signs stood there. */
  #sequence(input: { close: Close | null; operator: string | null; depth: number }): Tree<L> | null {
    const openAt = this.#at - 1
    const alternatives: Tree<L>[][] = []
    let joint: { word: Joint; at: number } | null = null
    for (;;) {
      this.#take(BLANK)
      if (this.#ends(input.close, openAt)) break
      const at = this.#at
      const word = this.#joint()
      if (word) {
        if (alternatives.length === 0 || joint) throw this.#bad(at, `${word} needs something before it`)
        if (word !== 'OR' && input.close === '}') throw this.#bad(at, 'in { } any part is enough: use ( )')
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

  #joint(): Joint | null {
    const start = this.#at
    const run = this.#take(RUN)
    if (run === 'OR' || run === 'AND' || run === '&') return run
    this.#at = start
    return null
  }

  #item(operator: string | null, depth: number): Tree<L> | null {
    const at = this.#at
    if (depth > QUERY_DEPTH_MAX) throw this.#bad(at, `more than ${QUERY_DEPTH_MAX} levels deep`)
    const char = this.#text[at]!
    if (char === '(' || char === '{') return this.#group(operator, depth)
    if (char in QUOTE_ENDS) return this.#term(operator, { at, value: this.#quoted() })
    const run = this.#take(RUN)
    if (run === 'NOT') return this.#leftOut(operator, { at, depth, from: this.#at })
    const opensValue = OPENS_VALUE.has(this.#text[this.#at] ?? '')
    if (SIGNS_ONLY.test(run) && !(run.endsWith('-') && opensValue)) {
      if (LONE_NEGATION.test(run)) throw this.#bad(at, `${run} stands alone; ${LEAVE_OUT}`, [QUOTE_IT])
      const mistaken = this.#syntax.bareWords.looksLikeOperator(run)
      if (mistaken) throw this.#bad(at + mistaken.at, mistaken.what, [QUOTE_IT])
      return null
    }
    if (run.startsWith('-')) return this.#leftOut(operator, { at, depth, from: at + 1 })
    if (run.startsWith('+')) {
      this.#at = at + 1
      return this.#item(operator, depth + 1)
    }
    const named = this.#operatorIn(run, { at, opensValue, within: operator })
    if (
      !named &&
      isSmallJoint(run) &&
      (this.#options.smallJoints === 'refuse' || this.#isAmongOperators(at))
    ) {
      throw this.#bad(at, `${run} is read as a word here; as an operator it is ${run.toUpperCase()}`, [
        QUOTE_IT,
      ])
    }
    if (!named) return this.#term(operator, { at, value: bare(run) })
    this.#at = at + named.length + 1
    return this.#operand(named.toLowerCase(), at, depth)
  }

  /** Does the word at `at`, which was just taken, follow a joint, or stand before an operator, a minus or a bracket? */
  #isAmongOperators(at: number): boolean {
    if (/(?:^|[\s)}])(?:AND|OR|NOT|&)\s+$/.test(this.#text.slice(Math.max(0, at - JOINT_CHARS_MAX), at)))
      return true
    const end = this.#at
    this.#take(BLANK)
    const run = this.#take(RUN)
    const next = this.#text[this.#at] ?? ''
    this.#at = end
    if (run === '') return next === '(' || next === '{'
    if (run === 'NOT' || run === 'AND' || run === 'OR' || /^-./.test(run)) return true
    const named = this.#syntax.bareWords.namedOperator(run, OPENS_VALUE.has(next))
    return named !== null && this.#syntax.operators.has(named.toLowerCase())
  }

  /** What follows a minus or NOT at `at`. */
  #leftOut(
    operator: string | null,
    { at, depth, from }: { at: number; depth: number; from: number },
  ): Tree<L> {
    this.#at = from
    this.#take(BLANK)
    const next = this.#text[this.#at]
    const isOver = next === undefined || next === ')' || next === '}'
    const of = isOver ? null : this.#item(operator, depth + 1)
    // Signs before a bracket, as in `-&-(a b)`: which of them is meant cannot be told.
    if (!of) throw this.#bad(at, 'there is nothing to leave out here')
    return { is: 'not', of }
  }

  /** The operator that a word begins with. `http://x` and `Re: x` begin with none. */
  #operatorIn(
    run: string,
    { at, opensValue, within }: { at: number; opensValue: boolean; within: string | null },
  ): string | null {
    const name = this.#syntax.bareWords.namedOperator(run, opensValue)
    if (name === null) return null
    const isKnown = this.#syntax.operators.has(name.toLowerCase())
    if (isKnown && within === null) return name
    if (isKnown) throw this.#bad(at, `${name}: cannot stand within ${within}:( )`, [QUOTE_IT])
    const near = nearestName(name.toLowerCase(), this.#syntax.operators.keys())
    const guess = near ? `; did you mean ${near}:?` : ''
    throw this.#bad(at, `there is no operator ${name}:${guess}`, [
      `${QUOTE_IT} The operators are ${operatorList(this.#syntax.operators)}.`,
    ])
  }

  #operand(operator: string, operatorAt: number, depth: number): Tree<L> {
    const at = this.#at
    const char = this.#text[at]
    if (char === '(' || char === '{') {
      const group = this.#group(operator, depth)
      if (!group) throw this.#bad(at, `${operator}: needs a value here`)
      return group
    }
    const value = char !== undefined && char in QUOTE_ENDS ? this.#quoted() : bare(this.#take(RUN))
    if (value.text !== '' || value.isQuoted) return this.#term(operator, { at, value })
    const { allows } = this.#syntax.operators.get(operator)!
    throw this.#bad(operatorAt, `${operator}: needs a value right behind the colon`, [`It takes ${allows}.`])
  }

  #group(operator: string | null, depth: number): Tree<L> {
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

  #term(operator: string | null, { at, value }: { at: number; value: OperatorValue }): Tree<L> {
    try {
      const query =
        operator === null
          ? this.#syntax.readText(value)
          : this.#syntax.operators.get(operator)!.read(value, this.#options.surroundings)
      const words = this.#syntax.wordsIn(query)
      // Ids and names of labels are taken as they are.
      const mistaken =
        words !== null && !value.isQuoted ? this.#syntax.bareWords.looksLikeOperator(value.text) : null
      if (mistaken) throw this.#bad(at + mistaken.at, mistaken.what, [QUOTE_IT])
      this.#terms += words ?? 1
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
function join<L extends { is: string }>(is: 'and' | 'or', parts: readonly Tree<L>[]): Tree<L> {
  const of = parts.flatMap((part) => (isJoined(part, is) ? part.of : [part]))
  return of.length === 1 ? of[0]! : { is, of }
}

function isJoined<L extends { is: string }>(
  query: Tree<L>,
  is: 'and' | 'or',
): query is { is: 'and' | 'or'; of: readonly Tree<L>[] } {
  return query.is === is
}

function bare(text: string): OperatorValue {
  return { text, isQuoted: false, isOpenEnded: false }
}

export function operatorList(operators: { keys(): Iterable<string> }): string {
  return [...operators.keys()].map((name) => `${name}:`).join(' ')
}

const NAME_CHARS_MAX = 20

/** One slip for every three letters begun. */
function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > NAME_CHARS_MAX) return undefined
  let best: string | undefined
  let least = Math.ceil(name.length / 3) + 1
  for (const candidate of candidates) {
    const slips = slipsBetween(name, candidate)
    if (slips < least) [best, least] = [candidate, slips]
  }
  return best
}
