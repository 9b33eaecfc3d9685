/**
 * Patterns as in a .gitignore. They come from the cloud, too, so none may cost more than its length: a path takes at
 * most (characters of the rules) × (characters of the path) steps, whatever the rules say. A regular expression made
 * of the same patterns can need longer than anyone lives.
 *
 * As in OneDrive, upper and lower case are the same, and so are the ways to compose an accented letter.
 */
import { UsageError } from '../../base/errors.ts'

export const RULES_MAX = 1_000
export const RULE_CHARS_MAX = 512
/** Without comments. Several times what the longest collections of such patterns have. */
export const RULES_CHARS_MAX = 16 * 1024
/** Of those that are more than a name with a star at one end: what a path costs grows with these. */
export const WILD_CHARS_MAX = 4 * 1024
/** With so many characters of such rules and a path of 400, judging all of a turn takes some tenths of a second at worst. */
const TURN_CHARS = 200 * 1024
const TURN_PATHS_MAX = 2_000
/** Folders whose verdict is remembered: what lies in them needs it again. */
const FOLDERS_KEPT_MAX = 10_000

/** What is wanted of a path, one after the other: the code of a character, or one of these, or a class of characters. */
type Token = number | CharClass
type CharClass = { negated: boolean; ranges: readonly (readonly [low: number, high: number])[] }
const ANY = -1
/** Any number of characters of one name. */
const STAR = -2
/** Any number of whole folders. */
const FOLDERS = -3
const SLASH = '/'.charCodeAt(0)

/** Most rules are a name, or its beginning or end, anywhere: the platform compares these at once. */
type Plain = { part: 'whole' | 'start' | 'end'; text: string }
type Rule = { negated: boolean; foldersOnly: boolean; tokens: readonly Token[]; plain: Plain | undefined }

export class IgnoreRules {
  readonly #rules: readonly Rule[]
  readonly #folders = new Map<string, boolean>()
  /** How many paths may be judged before others have their turn. */
  readonly turnPaths: number

  /** `source`: where the lines stand, for the person who must mend them. */
  constructor(lines: readonly string[], source: string) {
    const rules = lines.map(parseRule).filter((rule) => rule !== undefined)
    const chars = rules.reduce((sum, { tokens }) => sum + matchSteps(tokens), 0)
    const wild = rules.reduce((sum, { tokens, plain }) => sum + (plain ? 0 : matchSteps(tokens)), 0)
    checkLimits({ lines: rules.length, chars, wild, longest: longestOf(lines) }, source)
    this.#rules = rules
    this.turnPaths = Math.min(TURN_PATHS_MAX, Math.ceil(TURN_CHARS / Math.max(1, wild)))
  }

  /** What lies in an ignored folder is ignored, and no later rule brings it back. */
  ignores(path: string, isFolder: boolean): boolean {
    if (this.#rules.length === 0) return false
    const folded = fold(path)
    // From the top, not by recursion: a path may be thousands of folders deep.
    for (let end = this.#knownUpTo(folded); ; ) {
      if (end > 0 && this.#folders.get(folded.slice(0, end))) return true
      end = folded.indexOf('/', end + 1)
      if (end < 0) return this.#judge(folded, isFolder)
      if (this.#folders.size >= FOLDERS_KEPT_MAX) this.#folders.clear()
      const folder = folded.slice(0, end)
      this.#folders.set(folder, this.#judge(folder, true))
    }
  }

  /** The end of the deepest folder above that was judged before; 0 where none was. */
  #knownUpTo(path: string): number {
    let end = path.lastIndexOf('/')
    while (end > 0 && !this.#folders.has(path.slice(0, end))) end = path.lastIndexOf('/', end - 1)
    return Math.max(0, end)
  }

  /** The last rule that matches decides. */
  #judge(path: string, isFolder: boolean): boolean {
    const rule = this.#rules.findLast(
      ({ foldersOnly, tokens, plain }) =>
        (isFolder || !foldersOnly) && (plain ? matchesPlain(plain, path) : matches(tokens, path)),
    )
    return rule !== undefined && !rule.negated
  }
}

type Sizes = { lines: number; chars: number; wild: number; longest: number }

function checkLimits({ lines, chars, wild, longest }: Sizes, source: string): void {
  const isFew = lines <= RULES_MAX && chars <= RULES_CHARS_MAX
  if (isFew && wild <= WILD_CHARS_MAX && longest <= RULE_CHARS_MAX) return
  throw new UsageError(
    `${source} holds more patterns than Tidemark reads: ${lines} with ${chars} characters, ${wild} of them in patterns with more than a star at one end; the longest line has ${longest}.`,
    {
      code: 'patterns-too-long',
      hint: `Keep to ${RULES_MAX} patterns, ${RULE_CHARS_MAX} characters a line, ${RULES_CHARS_MAX} in all and ${WILD_CHARS_MAX} in those with more than a star at one end. Until then nothing is changed on either side.`,
    },
  )
}

/** What a character of a path may cost: a class is looked through, member by member. */
function matchSteps(tokens: readonly Token[]): number {
  return tokens.reduce<number>((sum, token) => sum + (typeof token === 'number' ? 1 : token.ranges.length), 0)
}

function longestOf(lines: readonly string[]): number {
  return lines.reduce((most, line) => (line.startsWith('#') ? most : Math.max(most, line.length)), 0)
}

function fold(text: string): string {
  return text.normalize('NFC').toLowerCase()
}

/** Undefined: a comment, an empty line, or what is malformed and so matches nothing. */
function parseRule(line: string): Rule | undefined {
  const text = fold(withoutTrailingSpaces(line))
  if (text === '' || text.startsWith('#')) return undefined
  const negated = text.startsWith('!')
  const whole = negated ? text.slice(1) : text
  const foldersOnly = whole.endsWith('/')
  const names = (foldersOnly ? whole.slice(0, -1) : whole).split('/')
  // A slash at the beginning or in the middle ties the rule to the top.
  if (names.length === 1) names.unshift('**')
  else if (names[0] === '') names.shift()
  const tokens: Token[] = []
  for (const [index, name] of names.entries()) {
    const isLast = index === names.length - 1
    if (!/^\*{2,}$/.test(name)) {
      const ofName = parseName(name)
      if (ofName === undefined) return undefined
      tokens.push(...ofName, ...(isLast ? [] : [SLASH]))
    } else {
      if (tokens.at(-1) !== FOLDERS) tokens.push(FOLDERS)
      // `a/**` is everything in a, but not a itself.
      if (isLast) tokens.push(STAR)
    }
  }
  return { negated, foldersOnly, tokens, plain: toPlainPattern(tokens) }
}

function toPlainPattern([first, ...rest]: readonly Token[]): Plain | undefined {
  if (first !== FOLDERS) return undefined
  const isEnd = rest[0] === STAR
  const isStart = rest.at(-1) === STAR
  const text = rest.slice(isEnd ? 1 : 0, isStart ? -1 : undefined)
  const isText = (token: Token): token is number => typeof token === 'number' && token >= 0 && token !== SLASH
  if (text.length === 0 || !text.every(isText) || (isEnd && isStart)) return undefined
  return { part: isEnd ? 'end' : isStart ? 'start' : 'whole', text: String.fromCharCode(...text) }
}

function matchesPlain({ part, text }: Plain, path: string): boolean {
  // There is no slash in it, so that it ends within the last name.
  if (part === 'end') return path.endsWith(text)
  const at = path.lastIndexOf('/') + 1
  if (part === 'start') return path.startsWith(text, at)
  return path.length - at === text.length && path.startsWith(text, at)
}

/** A backslash keeps a space. */
function withoutTrailingSpaces(line: string): string {
  let end = line.endsWith('\r') ? line.length - 1 : line.length
  while (end > 0 && line[end - 1] === ' ') {
    let backslashes = 0
    while (line[end - 2 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 1) break
    end -= 1
  }
  return line.slice(0, end)
}

function parseName(name: string): Token[] | undefined {
  const tokens: Token[] = []
  for (let at = 0; at < name.length; at++) {
    const char = name[at]
    if (char === '\\') {
      at += 1
      if (at === name.length) return undefined
      tokens.push(name.charCodeAt(at))
    } else if (char === '[') {
      const scanned = scanClass(name, at)
      if (scanned === undefined) return undefined
      tokens.push(scanned.charClass)
      at = scanned.end
    } else if (char === '*') {
      if (tokens.at(-1) !== STAR) tokens.push(STAR)
    } else {
      tokens.push(char === '?' ? ANY : name.charCodeAt(at))
    }
  }
  return tokens.length === 0 ? undefined : tokens
}

/** What the classes of POSIX hold: first and last character of each range. */
const NAMED_CLASSES: Record<string, readonly string[]> = {
  alnum: ['09', 'az'],
  alpha: ['az'],
  blank: ['  ', '\t\t'],
  cntrl: ['\x00\x1f', '\x7f\x7f'],
  digit: ['09'],
  graph: ['!~'],
  lower: ['az'],
  print: [' ~'],
  punct: ['!/', ':@', '[`', '{~'],
  space: ['  ', '\t\r'],
  upper: ['az'],
  xdigit: ['09', 'af'],
}

/** `end`: where its closing bracket stands. Undefined where there is none. */
function scanClass(name: string, start: number): { charClass: CharClass; end: number } | undefined {
  let at = start + 1
  const negated = name[at] === '!' || name[at] === '^'
  if (negated) at += 1
  const ranges: (readonly [number, number])[] = []
  // A bracket that closes nothing yet stands for itself.
  for (let isFirst = true; isFirst || name[at] !== ']'; isFirst = false) {
    const named = /^\[:([a-z]{1,6}):\]/.exec(name.slice(at, at + 12))
    if (named) {
      const members = NAMED_CLASSES[named[1]!]
      if (members === undefined) return undefined
      ranges.push(...members.map((range) => [range.charCodeAt(0), range.charCodeAt(1)] as const))
      at += named[0].length
      continue
    }
    const low = memberAt(name, at)
    if (low === undefined) return undefined
    at = low.next
    const high = name[at] === '-' && name[at + 1] !== ']' ? memberAt(name, at + 1) : undefined
    if (high) at = high.next
    // Of a range the wrong way round only its beginning counts.
    ranges.push([low.code, Math.max(low.code, high?.code ?? low.code)])
  }
  return { charClass: { negated, ranges }, end: at }
}

function memberAt(name: string, at: number): { code: number; next: number } | undefined {
  const where = name[at] === '\\' ? at + 1 : at
  return where < name.length ? { code: name.charCodeAt(where), next: where + 1 } : undefined
}

/**
 * A mismatch starts again behind the last star of the same name, else behind the last `**` with the next folder: what an
 * earlier one took is as good as anything else that it could take. So no pair of token and character is looked at twice.
 */
function matches(tokens: readonly Token[], path: string): boolean {
  let [token, at] = [0, 0]
  let star = { token: -1, at: 0 }
  const folders = { token: -1, at: 0 }
  while (at < path.length) {
    const wanted = tokens[token]
    const code = path.charCodeAt(at)
    if (wanted === STAR) {
      token += 1
      star = { token, at }
    } else if (wanted === FOLDERS) {
      token += 1
      folders.token = token
      folders.at = at
      star.token = -1
    } else if (wanted !== undefined && fits(wanted, code)) {
      if (code === SLASH) star.token = -1
      token += 1
      at += 1
    } else if (star.token >= 0 && path.charCodeAt(star.at) !== SLASH) {
      star.at += 1
      ;({ token, at } = star)
    } else if (folders.token >= 0) {
      const next = path.indexOf('/', folders.at)
      if (next < 0) return false
      folders.at = next + 1
      star.token = -1
      ;({ token, at } = folders)
    } else {
      return false
    }
  }
  while (tokens[token] === STAR) token += 1
  return token === tokens.length
}

function fits(wanted: Token, code: number): boolean {
  if (typeof wanted === 'number') return wanted === code || (wanted === ANY && code !== SLASH)
  if (code === SLASH) return false
  return wanted.ranges.some(([low, high]) => low <= code && code <= high) !== wanted.negated
}
