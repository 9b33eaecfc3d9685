/**
 * The rules of `<style>` blocks that bear on being seen. A selector is held to its last part with all that it asks
 * for, and before it only to the names of what must be around; what cannot be told counts as true. Rules are found by
 * one name of the element, and at most BUCKET_MAX by each: from there on the bare name is enough, so that neither many
 * rules nor many elements multiply.
 */
import type { Attributes } from '../../../search/extract/markup.ts'
import { type Look, styleLook, unescapeCss, withoutComments } from './style.ts'

const BUCKET_MAX = 16
const CLASSES_MAX = 48
/**
 * Of all selectors that are read. Rules within a rule repeat its selectors, so that few bytes could ask for billions;
 * the characters are more than a message has.
 */
const SELECTORS_MAX = 20_000
const SELECTORS_CHARS_MAX = 1_000_000
/** More than there are rules. */
const RANK = 1e9
/** Screens up to this width are telephones and half a window. */
const SMALL_SCREEN_PX = 1_024

type Compound = {
  tag: string
  id: string
  classes: string[]
  attributes: { name: string; sign: string; value: string }[]
}
/** `rank`: by how much its selector says, then by its place. */
type Rule = { last: Compound; around: string[]; look: Look; rank: number }

export class StyleSheet {
  readonly #rules = new Map<string, Rule[]>()
  /** How many open elements have a name: `.class`, `#id` or a tag. */
  readonly #open = new Map<string, number>()
  #count = 0
  #selectors = 0
  #selectorsChars = 0
  #isFull = false
  /** Some `--name` may have a value. */
  hasNames = false
  /** Selectors read and rules compared with an element: what must grow with the input and no faster. */
  work = 0

  add(css: string): void {
    const bare = withoutComments(css).replace(/<!--|-->/g, ' ')
    this.hasNames ||= /(?:^|[\s;{}])--|@property/i.test(unescapeCss(bare))
    this.#addBlock(bare)
  }

  /** Its looks in the order of the rules, and the names to `leave` with. */
  enter(tag: string, attributes: Attributes): { looks: Look[]; names: string[]; isCrowded: boolean } {
    const classes = (attributes.class ?? '').split(/\s+/, CLASSES_MAX + 1).filter((name) => name !== '')
    const names = [tag, '*', ...classes.map((name) => `.${name.toLowerCase()}`)]
    if (attributes.id) names.push(`#${attributes.id.trim().toLowerCase()}`)
    const held: Rule[] = []
    for (const name of this.#count === 0 ? [] : names) {
      for (const rule of this.#rules.get(name) ?? []) {
        this.work += 1
        if (this.#holds(rule, tag, attributes, names)) held.push(rule)
      }
    }
    for (const name of names) this.#open.set(name, (this.#open.get(name) ?? 0) + 1)
    const looks = held.sort((one, other) => one.rank - other.rank).map(({ look }) => look)
    return { looks, names, isCrowded: classes.length > CLASSES_MAX }
  }

  leave(names: readonly string[]): void {
    for (const name of names) {
      const left = (this.#open.get(name) ?? 1) - 1
      if (left === 0) this.#open.delete(name)
      else this.#open.set(name, left)
    }
  }

  #holds(rule: Rule, tag: string, attributes: Attributes, names: readonly string[]): boolean {
    const { last, around } = rule
    if (last.tag !== '*' && last.tag !== tag) return false
    if (last.id !== '' && !names.includes(last.id)) return false
    if (!last.classes.every((name) => names.includes(name))) return false
    if (!last.attributes.every((wanted) => fits(wanted, attributes))) return false
    return around.every((name) => ALWAYS_AROUND.has(name) || this.#open.has(name))
  }

  /**
   * Rules within rules and conditions stand as if they were outside, unless most people do not meet them: what they ask
   * for around them is not looked at.
   */
  #addBlock(css: string): void {
    /** A condition has the head of the rule around it, whose declarations it holds. */
    const open: { head: string; style: string }[] = []
    const end = (piece: string): void => {
      const one = open.pop()
      if (one && one.head !== '' && !one.head.startsWith('@')) {
        this.#addRules(one.head, `${one.style}${piece}`)
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
      const declared = piece.lastIndexOf(';') + 1
      const outer = open.at(-1)
      if (outer) outer.style += piece.slice(0, declared)
      const head = piece.slice(declared).trim()
      if (GROUP.test(head) && isRare(head)) from = blockEnd(css, at)
      else
        open.push({
          head: (GROUP.test(head) ? '' : head.replaceAll('&', '')) || (outer?.head ?? ''),
          style: '',
        })
    }
    for (let rest = css.slice(from); open.length > 0; rest = '') end(rest)
  }

  #addRules(selectors: string, style: string): void {
    this.work += 1
    if (this.#isFull) return
    const look = styleLook(style)
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
      const rule = ruleOf(selector, look)
      if (rule) this.#addRule(rule)
    }
  }

  /** What further rules do is not known, and any of them could hide anything: nothing counts as seen. */
  #fill(): void {
    this.#isFull = true
    this.#addRule({ last: compoundOf('*'), around: [], look: { hidden: 'display-none' }, rank: 0 })
  }

  #addRule(rule: Rule): void {
    this.#count += 1
    rule.rank += this.#count
    const { last } = rule
    const key = last.id || last.classes[0] || last.tag
    const bucket = this.#rules.get(key)
    if (!bucket) this.#rules.set(key, [rule])
    else if (bucket.length < BUCKET_MAX) bucket.push(rule)
    else this.#merge(bucket, key, rule.look)
  }

  /** More rules than are compared: the last of them holds for whatever has the name. */
  #merge(bucket: Rule[], key: string, look: Look): void {
    const last = bucket[BUCKET_MAX - 1]!
    bucket[BUCKET_MAX - 1] = {
      last: { tag: '*', id: key.startsWith('#') ? key : '', classes: [], attributes: [] },
      around: [],
      rank: last.rank + 0.5,
      look: {
        ...last.look,
        ...look,
        ...((look.hidden ?? last.look.hidden) && { hidden: (look.hidden ?? last.look.hidden)! }),
      },
    }
  }
}

/** Programs put them around mail that has none. */
const ALWAYS_AROUND = new Set(['html', 'body'])
const GROUP = /^@(?:media|supports|layer|container|document|scope|starting-style)/i

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

/** What stands in brackets cannot be told, and counts as true. */
function withoutBrackets(selector: string): string {
  let text = selector
  for (let before = ''; before !== text; ) {
    before = text
    text = text.replace(/\([^()]*\)/g, '')
  }
  return text
}

/** Paper, a dark screen, a small one: what only they hide is seen elsewhere. */
function isRare(head: string): boolean {
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
  /::?(?:hover|focus|active|visited|link|target|before|after|first-line|first-letter|placeholder|selection|marker|checked|disabled)/i
const SELECTOR_CHARS_MAX = 300

function ruleOf(selector: string, look: Look): Rule | undefined {
  if (selector.trim().length > SELECTOR_CHARS_MAX) {
    return { last: compoundOf('*'), around: [], look, rank: 0 }
  }
  const text = withoutBrackets(selector).trim()
  if (text === '' || DYNAMIC.test(text)) return undefined
  const parts = text
    .replace(/\[[^\]]*\]/g, (inside) =>
      inside.replace(/[\s>+~]+/g, (run) => (run.trim() === '' ? '\u0001' : run.replace(/[\s>+]/g, ''))),
    )
    .split(/\s*([>+~])\s*(?![^[]*\])|\s+/)
    .filter((part) => part !== undefined && part !== '')
  const last = compoundOf(parts.pop() ?? '*')
  const around: string[] = []
  let [isSibling, isGmail] = [false, false]
  for (const [at, part] of parts.reverse().entries()) {
    if (part === '+' || part === '~') isSibling = true
    else if (part !== '>') {
      const compound = compoundOf(part)
      const name = compound.id || compound.classes[0] || compound.tag
      if (!isSibling && name !== '*') around.push(name)
      // `u + .body .k` is how newsletters mean Gmail alone, where they mix colours against its dark mode.
      if (isSibling && part.toLowerCase() === 'u' && at > 1) isGmail = true
      isSibling = false
    }
  }
  const isClass = last.classes.length + last.attributes.length > 0
  const { isBlended: _, ...unblended } = look
  const shown = isGmail ? unblended : look
  return { last, around, look: shown, rank: last.id !== '' ? 2 * RANK : isClass ? RANK : 0 }
}

function compoundOf(text: string): Compound {
  const compound: Compound = { tag: '*', id: '', classes: [], attributes: [] }
  const bare = text.replace(/::?[\w-]+/g, '')
  for (const [piece] of bare.matchAll(/\[[^\]]*\]|[.#]?[^.#[\]]+/g)) {
    if (piece.startsWith('.')) compound.classes.push(piece.toLowerCase())
    else if (piece.startsWith('#')) compound.id = piece.toLowerCase()
    else if (piece.startsWith('[')) {
      const [, name, sign, value] = /^\[([\w-]+)([~^$*|]?=)?["']?([^"'\]]*)/.exec(piece) ?? []
      if (name) {
        compound.attributes.push({
          name: name.toLowerCase(),
          sign: sign ?? '',
          value: (value ?? '').replaceAll('\u0001', ' '),
        })
      }
    } else compound.tag = piece.trim().toLowerCase()
  }
  return compound
}

function fits(wanted: Compound['attributes'][number], attributes: Attributes): boolean {
  const value = attributes[wanted.name]
  if (value === undefined) return false
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
    default:
      return value.includes(wanted.value)
  }
}
