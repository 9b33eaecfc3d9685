/**
 * Gmail's search language: a query becomes a tree of conditions. Words stand side by side for "and";
 * `OR` joins its two neighbours; `{ }` joins all inside; `-` negates; `( )` groups, also behind an
 * operator. A word with an unknown operator is searched as text.
 */
import { mailboxFault } from './mailbox-fault.ts'
import { dateMs, relativeMs } from './search-time.ts'

const QUERY_CHARS_MAX = 16_384
const DEPTH_MAX = 50

export type TextField =
  | 'from'
  | 'to'
  | 'cc'
  | 'bcc'
  | 'subject'
  | 'list'
  | 'deliveredto'
  | 'filename'
  | 'anywhere'

export type Condition =
  | { kind: 'and' | 'or'; terms: Condition[] }
  | { kind: 'not'; term: Condition }
  /** From the first millisecond to before the last. */
  | { kind: 'time'; fromMs: number; toMs: number }
  | { kind: 'label'; name: string }
  | { kind: 'in'; place: string }
  | { kind: 'is'; state: string }
  | { kind: 'category'; name: string }
  | { kind: 'has'; what: string }
  | { kind: 'size'; bytesMin: number; bytesMax: number }
  | { kind: 'message-id'; messageId: string }
  | { kind: 'text'; field: TextField; text: string }

/** The tree of a query; `nowMs` is what newer_than: and older_than: count from. */
export function parseSearch(query: string, nowMs: number): Condition {
  if (query.length > QUERY_CHARS_MAX) throw mailboxFault('sim-invalid', 'The query is too long')
  return new SearchParser(query, nowMs).parse()
}

class SearchParser {
  readonly #text: string
  readonly #nowMs: number
  #at = 0

  constructor(text: string, nowMs: number) {
    this.#text = text
    this.#nowMs = nowMs
  }

  parse(): Condition {
    const terms: Condition[] = []
    // A closing bracket that nothing opened ends a list; what follows counts all the same.
    while (this.#at < this.#text.length) {
      terms.push(this.#list('and', { close: '', depth: 0 }))
      this.#at += 1
    }
    return terms.length === 1 ? terms[0]! : { kind: 'and', terms }
  }

  #list(kind: 'and' | 'or', options: { close: string; depth: number; operator?: string }): Condition {
    const terms: Condition[] = []
    let joinNext = false
    for (;;) {
      this.#skipSpace()
      const next = this.#text[this.#at]
      if (next === undefined || next === ')' || next === '}') break
      if (this.#takeWord('OR') || this.#take('|')) {
        joinNext = terms.length > 0
        continue
      }
      if (this.#takeWord('AND')) continue
      const term = this.#term(options.depth, options.operator)
      if (!term) continue
      const previous = joinNext ? terms.pop() : undefined
      terms.push(previous ? either(previous, term) : term)
      joinNext = false
    }
    if (options.close) this.#take(options.close)
    // Empty brackets ask for nothing, so they forbid nothing.
    if (terms.length === 0) return { kind: 'and', terms }
    return terms.length === 1 ? terms[0]! : { kind, terms }
  }

  #term(depth: number, outer: string | undefined): Condition | undefined {
    let negated = false
    for (let sign = this.#text[this.#at]; sign === '-' || sign === '+'; sign = this.#text[this.#at]) {
      negated = negated !== (sign === '-')
      this.#at += 1
    }
    const term = this.#positiveTerm(depth, outer)
    return term && negated ? { kind: 'not', term } : term
  }

  #positiveTerm(depth: number, outer: string | undefined): Condition | undefined {
    const operator = outer ?? this.#operator()
    const group = this.#group(depth, operator)
    if (group) return group
    const value = this.#value()
    if (operator) return value ? operatorTerm(operator, value, this.#nowMs) : undefined
    return value ? { kind: 'text', field: 'anywhere', text: value } : undefined
  }

  #group(depth: number, operator: string | undefined): Condition | undefined {
    const open = this.#text[this.#at]
    if (open !== '(' && open !== '{') return undefined
    if (depth >= DEPTH_MAX) throw mailboxFault('sim-invalid', 'The query is nested too deeply')
    this.#at += 1
    return open === '('
      ? this.#list('and', { close: ')', depth: depth + 1, operator })
      : this.#list('or', { close: '}', depth: depth + 1, operator })
  }

  /** A known operator with its colon, or nothing. */
  #operator(): string | undefined {
    const match = /^([a-z0-9_]{2,20}):/i.exec(this.#text.slice(this.#at, this.#at + 24))
    const name = match?.[1]?.toLowerCase()
    if (!name || !OPERATORS.has(name)) return undefined
    this.#at += match![0].length
    return name
  }

  #value(): string {
    if (this.#take('"')) {
      const end = this.#text.indexOf('"', this.#at)
      const value = this.#text.slice(this.#at, end < 0 ? undefined : end)
      this.#at = end < 0 ? this.#text.length : end + 1
      return value.trim()
    }
    const start = this.#at
    while (this.#at < this.#text.length && !/[\s(){}"]/.test(this.#text[this.#at]!)) this.#at += 1
    // A lone bracket or quote in an odd place must not hold the parser up.
    if (this.#at === start && !/[\s)}]/.test(this.#text[this.#at] ?? ' ')) this.#at += 1
    return this.#text.slice(start, this.#at)
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false
    this.#at += 1
    return true
  }

  #takeWord(word: string): boolean {
    const after = this.#text[this.#at + word.length] ?? ' '
    if (!this.#text.startsWith(word, this.#at) || !/[\s(){}]/.test(after)) return false
    this.#at += word.length
    return true
  }
}

type Make = (value: string, nowMs: number) => Condition | undefined

const text =
  (field: TextField): Make =>
  (value) => ({ kind: 'text', field, text: value })
const from: Make = (value) => since(dateMs(value))
const until: Make = (value) => before(dateMs(value))

const OPERATORS: ReadonlyMap<string, Make> = new Map<string, Make>([
  ['after', from],
  ['newer', from],
  ['before', until],
  ['older', until],
  ['newer_than', (value, nowMs) => since(relativeMs(value, nowMs))],
  ['older_than', (value, nowMs) => before(relativeMs(value, nowMs))],
  ['in', (value) => ({ kind: 'in', place: value.toLowerCase() })],
  ['is', (value) => ({ kind: 'is', state: value.toLowerCase() })],
  ['label', (value) => ({ kind: 'label', name: value })],
  ['category', (value) => ({ kind: 'category', name: value })],
  ['has', (value) => ({ kind: 'has', what: value.toLowerCase() })],
  ['larger', (value) => sized(value, 'min')],
  ['size', (value) => sized(value, 'min')],
  ['smaller', (value) => sized(value, 'max')],
  ['rfc822msgid', (value) => ({ kind: 'message-id', messageId: value.replaceAll(/^<|>$/g, '') })],
  ['from', text('from')],
  ['to', text('to')],
  ['cc', text('cc')],
  ['bcc', text('bcc')],
  ['subject', text('subject')],
  ['list', text('list')],
  ['deliveredto', text('deliveredto')],
  ['filename', text('filename')],
])

/** An operand that makes no sense is looked for as text, as Gmail does: it finds nothing. */
function operatorTerm(operator: string, value: string, nowMs: number): Condition {
  const term = OPERATORS.get(operator)?.(value, nowMs)
  return term ?? { kind: 'text', field: 'anywhere', text: `${operator}:${value}` }
}

function since(ms: number | undefined): Condition | undefined {
  return ms === undefined ? undefined : { kind: 'time', fromMs: ms, toMs: Number.POSITIVE_INFINITY }
}

function before(ms: number | undefined): Condition | undefined {
  return ms === undefined ? undefined : { kind: 'time', fromMs: Number.NEGATIVE_INFINITY, toMs: ms }
}

const SIZE_UNITS: Record<string, number> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }

function sized(value: string, bound: 'min' | 'max'): Condition | undefined {
  const match = /^(\d{1,15})(?:([kmg])b?)?$/i.exec(value)
  if (!match) return undefined
  const bytes = Number(match[1]) * SIZE_UNITS[match[2]?.toLowerCase() ?? '']!
  return bound === 'min'
    ? { kind: 'size', bytesMin: bytes + 1, bytesMax: Number.POSITIVE_INFINITY }
    : { kind: 'size', bytesMin: 0, bytesMax: bytes - 1 }
}

function either(first: Condition, second: Condition): Condition {
  const terms = first.kind === 'or' ? first.terms : [first]
  return { kind: 'or', terms: [...terms, second] }
}
