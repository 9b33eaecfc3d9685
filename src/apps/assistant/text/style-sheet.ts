/**
 * The rules of `<style>` blocks that bear on being seen. Selectors of elements within elements are judged exactly. What
 * cannot be judged (siblings, places among them, brackets, conditions, rules within rules, and selectors that are too
 * long) is in doubt: such a rule may hide, but never shows what the others hide. Rules are found by one name of the
 * element; comparisons have a bound for a whole message, behind which nothing counts as seen, so that neither many
 * rules nor many elements block anybody.
 */
import type { Attributes } from '../../../search/extract/markup.ts'
import { type Look, styleLook, unescapeCss, withoutComments } from './style.ts'

const CLASSES_MAX = 48
/**
 * Of all selectors that are read. Rules within a rule repeat its selectors, so that few bytes could ask for billions;
 * the characters are more than a message has.
 */
const SELECTORS_MAX = 20_000
const SELECTORS_CHARS_MAX = 1_000_000
/** Of braces that open, also around nothing: ten times what large newsletters have, in about a tenth of a second. */
export const BLOCKS_MAX = 20_000
/** Of rules with elements. Newsletters need some ten thousands; this many take about a second. */
export const COMPARISONS_MAX = 1_000_000
/** More than there are rules. */
const RANK = 1e6
/** Of each kind of name in a selector: more of them do not make it say more. */
const SAID_MAX = 99
/** Screens up to this width are telephones and half a window. */
const SMALL_SCREEN_PX = 1_024

/** Names as they are written: programs tell `.a` from `.A`, but for those that read mail as pages were in 1999. */
type Compound = {
  tag: string
  id: string
  classes: string[]
  attributes: { name: string; sign: string; value: string }[]
  /** Something of it was not understood. */
  isOdd: boolean
}
type Rule = {
  last: Compound
  /** Directly around it, from inside; undefined for anything. */
  parents: readonly (string | undefined)[]
  /** Around these, from inside. */
  around: readonly string[]
  look: Look
  /** By how much its selector says, then by its place. */
  rank: number
  /** Those with the same words are true together; '' where it is exact. */
  doubt: string
  /** No name of it is in capitals. */
  isLower: boolean
}

export type Entered = {
  /** In the order in which they count. */
  looks: Look[]
  /** What may hold as well, by the doubt about it. */
  doubtful: ReadonlyMap<string, Look>
  isCrowded: boolean
}

export class StyleSheet {
  readonly #rules = new Map<string, Rule[]>()
  /** Compounds that must be around something, by one of their names. */
  readonly #watched = new Map<string, { compound: Compound; name: string }[]>()
  readonly #watchedNames = new Map<string, string>()
  /** How many open elements have a name: `.class`, `#id`, a tag or a watched compound. */
  readonly #open = new Map<string, number>()
  readonly #path: { tag: string; names: readonly string[] }[] = []
  #count = 0
  #blocks = 0
  #selectors = 0
  #selectorsChars = 0
  #comparisons = 0
  #doubts = 0
  #isFull = false
  /** Some `--name` may have a value. */
  hasNames = false
  /** Blocks and selectors read, and rules compared with an element: what must grow with the input and no faster. */
  work = 0

  /** `head`: the condition under which it is heeded. */
  add(css: string, head = ''): void {
    const bare = protectedCss(withoutComments(css).replace(/<!--|-->/g, ' '))
    this.hasNames ||= /(?:^|[\s;{}])--|@property/i.test(unescapeCss(css))
    this.#addBlock(head === '' ? bare : `${head}{${bare}}`)
  }

  /** To be left again, in turn. */
  enter(tag: string, attributes: Attributes): Entered {
    const classes = (attributes.class ?? '').split(/\s+/, CLASSES_MAX + 1).filter((name) => name !== '')
    const names = [tag, '*', ...classes.map((name) => `.${name}`)]
    if (attributes.id) names.push(`#${attributes.id.trim()}`)
    const held: Rule[] = []
    const around: string[] = []
    const lower = names.map((name) => name.toLowerCase())
    const isLower = lower.every((name, at) => name === names[at])
    for (const name of this.#count === 0 ? [] : new Set(lower)) {
      for (const rule of this.#rules.get(name) ?? []) {
        if (!this.#compare(rule.last)) break
        if (this.#holds(rule, rule.last, { tag, attributes, names })) held.push(rule)
        else if (
          !(isLower && rule.isLower) &&
          this.#holds(rule, lowered(rule.last), { tag, attributes, names: lower })
        ) {
          held.push({ ...rule, doubt: rule.doubt || `case ${rule.rank}` })
        }
      }
      for (const { compound, name: watched } of this.#watched.get(name) ?? []) {
        if (this.#compare(compound) && isOf(compound, { tag, attributes, names })) around.push(watched)
      }
    }
    names.push(...around)
    this.#path.push({ tag, names })
    for (const name of names) this.#open.set(name, (this.#open.get(name) ?? 0) + 1)
    const isCrowded = classes.length > CLASSES_MAX || this.#comparisons > COMPARISONS_MAX
    return { ...looksOf(held), isCrowded }
  }

  leave(): void {
    for (const name of this.#path.pop()?.names ?? []) {
      const left = (this.#open.get(name) ?? 1) - 1
      if (left === 0) this.#open.delete(name)
      else this.#open.set(name, left)
    }
  }

  #compare({ classes, attributes }: Compound): boolean {
    const names = 1 + classes.length + attributes.length
    this.work += names
    this.#comparisons += names
    return this.#comparisons <= COMPARISONS_MAX
  }

  #holds({ parents, around }: Rule, last: Compound, element: Named): boolean {
    if (!isOf(last, element)) return false
    if (!around.every((name) => this.#open.has(name))) return false
    if (parents.length === 0 && around.length < 2) return true
    let at = this.#path.length
    const parent = (): { tag: string; names: readonly string[] } | undefined => {
      this.#comparisons += 1
      at -= 1
      // Programs put it into tables that have none.
      while (at > 0 && this.#path[at]!.tag === 'tbody') at -= 1
      return this.#path[at]
    }
    for (const name of parents) {
      const one = parent()
      if (!one || (name !== undefined && !one.names.includes(name))) return false
    }
    for (const name of around) {
      let one = parent()
      while (one && !one.names.includes(name)) one = parent()
      if (!one) return false
    }
    return true
  }

  /** Rules within rules and conditions stand as if they were outside, unless most people do not meet them: in doubt. */
  #addBlock(css: string): void {
    /** A condition has the head of the rule around it, whose declarations it holds. */
    const open: { head: string; style: string; doubt: string }[] = []
    const end = (piece: string): void => {
      const one = open.pop()
      if (one && one.head !== '' && !one.head.startsWith('@')) {
        this.#addRules(one.head, `${one.style}${piece}`, one.doubt)
      }
    }
    let from = 0
    for (let at = nextBrace(css, 0); at < css.length; at = nextBrace(css, from)) {
      const piece = css.slice(from, at)
      from = at + 1
      if (css[at] === '}') {
        end(piece)
        continue
      }
      this.work += 1
      this.#blocks += 1
      if (this.#blocks > BLOCKS_MAX) {
        if (!this.#isFull) this.#fill()
        return
      }
      const declared = piece.lastIndexOf(';') + 1
      const outer = open.at(-1)
      if (outer) outer.style += piece.slice(0, declared)
      // Few blanks are as good as many, of which patterns would try each.
      const head = piece.slice(declared).trim().replace(/\s+/g, ' ')
      const isGroup = GROUP.test(head)
      if (isGroup && isRare(head)) {
        from = blockEnd(css, at)
        continue
      }
      const isDoubtful = isGroup ? !isUsual(head) : (outer?.head ?? '') !== ''
      const around = outer?.doubt ?? ''
      open.push({
        head: (isGroup ? '' : head.replaceAll('&', '')) || (outer?.head ?? ''),
        style: '',
        doubt: isDoubtful ? this.#doubtOf(around, isGroup ? head : outer!.head) : around,
      })
    }
    for (let rest = css.slice(from); open.length > 0; rest = '') end(rest)
  }

  /** One that takes too many words is like no other. */
  #doubtOf(around: string, words: string): string {
    if (around.length + words.length < DOUBT_CHARS_MAX) return `${around} ${words}`.trim()
    this.#doubts += 1
    return `too long ${this.#doubts}`
  }

  #addRules(selectors: string, style: string, doubt: string): void {
    this.work += 1
    if (this.#isFull || !style.includes(':')) return
    const look = styleLook(plainCss(style))
    if (Object.keys(look).length === 0) return
    this.#selectorsChars += selectors.length
    if (this.#selectorsChars > SELECTORS_CHARS_MAX) {
      this.#fill()
      return
    }
    this.work += selectors.length / 100
    for (const selector of selectorsOf(selectors)) {
      this.#selectors += 1
      if (this.#selectors > SELECTORS_MAX) {
        this.#fill()
        return
      }
      this.work += 1
      const rule = this.#ruleOf(selector, look, doubt)
      if (rule) this.#addRule(rule)
    }
  }

  /** What further rules do is not known, and any of them could hide anything: nothing counts as seen. */
  #fill(): void {
    this.#isFull = true
    const look: Look = { hidden: 'display-none' }
    this.#addRule({ last: compoundOf('*'), parents: [], around: [], look, rank: 0, doubt: '' })
  }

  #addRule(given: Omit<Rule, 'isLower'>): void {
    this.#count += 1
    const { id, classes } = given.last
    const isLower = [id, ...classes].every((name) => name === name.toLowerCase())
    const rule: Rule = { ...given, isLower, rank: given.rank + this.#count }
    const key = keyOf(rule.last)
    const bucket = this.#rules.get(key)
    if (bucket) bucket.push(rule)
    else this.#rules.set(key, [rule])
  }

  /** The name by which a compound around something is known; undefined for anything. */
  #nameOf(text: string): string | undefined {
    const compound = compoundOf(text)
    const { tag, id, classes, attributes } = compound
    const names = [...(tag === '*' ? [] : [tag]), ...(id === '' ? [] : [id]), ...classes]
    if (names.length + attributes.length === 0) return undefined
    if (names.length === 1 && attributes.length === 0) return names[0]
    const known = this.#watchedNames.get(text)
    if (known !== undefined) return known
    const name = `&${this.#watchedNames.size}`
    this.#watchedNames.set(text, name)
    const key = keyOf(compound)
    const bucket = this.#watched.get(key)
    if (bucket) bucket.push({ compound, name })
    else this.#watched.set(key, [{ compound, name }])
    return name
  }

  #ruleOf(selector: string, look: Look, outerDoubt: string): Omit<Rule, 'isLower'> | undefined {
    const bare = withoutBrackets(selector)
    const isLong = bare.text.length > SELECTOR_CHARS_MAX
    const text = (isLong ? bare.text.slice(-SELECTOR_CHARS_MAX) : bare.text)
      .replace(/:root\b/gi, 'html')
      .replace(/:(?:any-)?link\b/gi, '')
      .replace(/[\w*-]{0,40}\|(?=[\w*.#[])/g, '')
      .trim()
    if (text === '' || DYNAMIC.test(text)) return undefined
    let doubt = outerDoubt
    const inDoubt = (): void => {
      if (doubt === outerDoubt) doubt = this.#doubtOf(outerDoubt, selector.trim())
    }
    if (bare.hasBrackets || text.includes(':') || selector.includes('|')) inDoubt()
    if (isLong) {
      inDoubt()
      return { last: compoundOf(lastOf(text)), parents: [], around: [], look, rank: 0, doubt }
    }
    const parts = partsOf(text)
    const last = compoundOf(parts.pop() ?? '*')
    if (last.isOdd) inDoubt()
    let said = saidBy(last)
    const parents: (string | undefined)[] = []
    const around: string[] = []
    let [sign, before, isGmail] = ['', keyOf(last), false]
    for (const [at, part] of parts.reverse().entries()) {
      if (/^[>+~]$/.test(part)) {
        sign = part
        continue
      }
      const compound = compoundOf(part)
      said = said.map((n, kind) => n + saidBy(compound)[kind]!)
      const key = keyOf(compound)
      if (compound.isOdd || key === 'tbody' || (before === 'tr' && sign === '>')) inDoubt()
      if (sign === '+' || sign === '~') {
        inDoubt()
        // `u + .body .k` is how newsletters mean Gmail alone, where they mix colours against its dark mode.
        if (part.toLowerCase() === 'u' && at > 1) isGmail = true
      } else if (key !== 'tbody') {
        const name = this.#nameOf(part)
        if (sign === '>' && around.length === 0) parents.push(name)
        else {
          if (sign === '>') inDoubt()
          if (name !== undefined) around.push(name)
        }
      }
      before = key
      sign = ''
    }
    const { isBlended: _, ...unblended } = look
    const [ids, classes, tags] = said.map((n) => Math.min(SAID_MAX, n)) as [number, number, number]
    const rank = ((ids * (SAID_MAX + 1) + classes) * (SAID_MAX + 1) + tags) * RANK
    return { last, parents, around, look: isGmail ? unblended : look, rank, doubt }
  }
}

function looksOf(held: Rule[]): Pick<Entered, 'looks' | 'doubtful'> {
  const looks: Look[] = []
  const doubtful = new Map<string, Look>()
  for (const { look, doubt } of held.sort((one, other) => one.rank - other.rank)) {
    if (doubt === '') looks.push(look)
    else doubtful.set(doubt, { ...doubtful.get(doubt), ...look })
  }
  return { looks, doubtful }
}

type Named = { tag: string; attributes: Attributes; names: readonly string[] }

function isOf(
  { tag: wanted, id, classes, attributes: wishes }: Compound,
  { tag, attributes, names }: Named,
): boolean {
  if (wanted !== '*' && wanted !== tag) return false
  if (id !== '' && !names.includes(id)) return false
  return (
    classes.every((name) => names.includes(name)) && wishes.every((attribute) => fits(attribute, attributes))
  )
}

function keyOf({ id, classes, tag }: Compound): string {
  return (id || classes[0] || tag).toLowerCase()
}

function lowered(compound: Compound): Compound {
  const classes = compound.classes.map((name) => name.toLowerCase())
  return { ...compound, id: compound.id.toLowerCase(), classes }
}

/** How many ids, classes and tags. */
function saidBy({ id, classes, attributes, tag }: Compound): number[] {
  return [id === '' ? 0 : 1, classes.length + attributes.length, tag === '*' ? 0 : 1]
}

/**
 * Signs that are escaped, or stand in strings, part nothing: they are put out of the way until names and values are
 * compared.
 */
const AWAY = 0xf0000

function protectedCss(css: string): string {
  const away = (code: number): string => (code > 0 && code <= 0xffff ? String.fromCodePoint(AWAY + code) : '')
  return css
    .replace(/\\(?:([0-9a-f]{1,6})\s?|([^\n]))/gi, (_, hex?: string, char?: string) =>
      away(hex === undefined ? char!.charCodeAt(0) : Number.parseInt(hex, 16)),
    )
    .replace(/"[^"\n]*"|'[^'\n]*'/g, (quoted) =>
      quoted.replace(/[{};,:()[\]<>+~\s.#]/g, (char) => away(char.charCodeAt(0))),
    )
}

function plainCss(text: string): string {
  return text.replace(/[\u{f0001}-\u{fffff}]/gu, (char) => String.fromCharCode(char.codePointAt(0)! - AWAY))
}

const GROUP = /^@(?:media|supports|layer|container|document|scope|starting-style)/i
const DOUBT_CHARS_MAX = 1_000
const CONDITION_CHARS_MAX = 500

function nextBrace(css: string, from: number): number {
  for (let at = from; at < css.length; at++) {
    const char = css.charCodeAt(at)
    if (char === 0x7b || char === 0x7d) return at
  }
  return css.length
}

/** Parted by commas that stand in no brackets. */
function* selectorsOf(list: string): Generator<string> {
  let [from, depth] = [0, 0]
  for (let at = 0; at < list.length; at++) {
    const char = list[at]
    if (char === '(') depth += 1
    else if (char === ')') depth = Math.max(0, depth - 1)
    else if (char === ',' && depth === 0) {
      yield list.slice(from, at)
      from = at + 1
    }
  }
  yield list.slice(from)
}

/** What stands in brackets cannot be told. */
function withoutBrackets(selector: string): { text: string; hasBrackets: boolean } {
  if (!selector.includes('(')) return { text: selector, hasBrackets: false }
  let [text, depth, from] = ['', 0, 0]
  for (let at = 0; at < selector.length; at++) {
    const char = selector[at]
    if (char === '(') {
      if (depth === 0) text += selector.slice(from, at)
      depth += 1
    } else if (char === ')' && depth > 0) {
      depth -= 1
      from = at + 1
    }
  }
  return { text: depth === 0 ? text + selector.slice(from) : text, hasBrackets: true }
}

/** What everybody meets who reads on a large screen. */
function isUsual(head: string): boolean {
  if (head.length > CONDITION_CHARS_MAX) return false
  const rest = head.replace(/^@media\s*(?:(?:only\s+)?(?:screen|all)\b)?/i, '')
  if (rest === head) return false
  const left = rest.replace(
    /(?:\s*and)?\s*\(\s*min-(?:device-)?width\s*:\s*(\d{1,6})px\s*\)/gi,
    (all, px: string) => (Number(px) <= SMALL_SCREEN_PX ? '' : all),
  )
  return left.trim() === ''
}

/** Paper, a dark screen, a small one: what only they hide is seen elsewhere. */
function isRare(head: string): boolean {
  // Of others, such as `@supports (max-width: 1px)`, it would say nothing about screens.
  if (!/^@media\b/i.test(head) || head.length > CONDITION_CHARS_MAX) return false
  if (/,|\bor\b|\bnot\b/i.test(head)) return false
  if (/^@media\s+(?:only\s+)?print\b/i.test(head)) return true
  if (/prefers-color-scheme\s*:\s*dark/i.test(head)) return true
  const width = /max-(?:device-)?width\s*:\s*(\d{1,6})(?:\.\d{1,4})?px/i.exec(head)?.[1]
  return width !== undefined && Number(width) <= SMALL_SCREEN_PX
}

/** Of a block within a block: two levels are all that mail needs. */
function blockEnd(css: string, open: number): number {
  let [depth, at] = [0, open]
  for (; at < css.length; at++) {
    const char = css.charCodeAt(at)
    if (char === 0x7b) depth += 1
    else if (char === 0x7d && --depth === 0) return at + 1
  }
  return at
}

const DYNAMIC =
  /::?(?:hover|focus|active|visited|target|before|after|first-line|first-letter|placeholder|selection|marker)/i
const SELECTOR_CHARS_MAX = 300

function partsOf(text: string): string[] {
  return text
    .replace(/\[[^\]]*\]/g, (inside) =>
      inside.replace(/[\s>+~]+/g, (run) => (run.trim() === '' ? '\ue000' : run.replace(/[\s>+]/g, ''))),
    )
    .split(/\s*([>+~])\s*(?![^[]*\])|\s+/)
    .filter((part) => part !== undefined && part !== '')
}

/** Of a selector that is too long to be read: its last part, or anything where that is too long as well. */
function lastOf(text: string): string {
  const last = partsOf(text)
  return last.length < 2 ? '*' : last.at(-1)!
}

const ATTRIBUTE =
  /^\[\ue000?([\w-]+)\ue000?(?:([~^$*|]?=)\ue000?(?:"([^"]*)"|'([^']*)'|([^"'\]\ue000]*))\ue000?)?\]$/

function compoundOf(text: string): Compound {
  const compound: Compound = { tag: '*', id: '', classes: [], attributes: [], isOdd: false }
  const bare = text.replace(/::?[\w-]+/g, '')
  for (const [piece] of bare.matchAll(/\[[^\]]*\]?|[.#]?[^.#[\]]+/g)) {
    if (piece.startsWith('.')) compound.classes.push(plainCss(piece))
    else if (piece.startsWith('#')) compound.id = plainCss(piece)
    else if (piece.startsWith('[')) {
      const [, name, sign = '', ...values] = ATTRIBUTE.exec(piece) ?? []
      const value = values.find((one) => one !== undefined) ?? ''
      if (name === undefined) compound.isOdd = true
      else {
        compound.attributes.push({
          name: name.toLowerCase(),
          sign,
          value: plainCss(value.replaceAll('\ue000', ' ')),
        })
      }
    } else compound.tag = plainCss(piece.trim()).toLowerCase()
  }
  return compound
}

function fits(wanted: Compound['attributes'][number], attributes: Attributes): boolean {
  const value = attributes[wanted.name]
  if (value === undefined || (/^[~^$*]=/.test(wanted.sign) && wanted.value === '')) return false
  switch (wanted.sign) {
    case '':
      return true
    case '=':
      return value === wanted.value
    case '~=':
      return value.split(/\s+/).includes(wanted.value)
    case '^=':
      return value.startsWith(wanted.value)
    case '$=':
      return value.endsWith(wanted.value)
    case '|=':
      return value === wanted.value || value.startsWith(`${wanted.value}-`)
    default:
      return value.includes(wanted.value)
  }
}
