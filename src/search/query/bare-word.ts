/**
 * What a word without quotes may not look like. People write operators of other search languages, or known ones where a
 * place does not allow them; searched for as words, they would find something else than was meant, and a clean-up of mail
 * would take it.
 */

/** Single letters are drives (`C:\\`), and what starts with a digit is a time. */
const NAMED = /^([a-z][a-z0-9_-]+):/i
/** How subjects of answers begin, in some languages: what is pasted from one is a word. */
const ANSWERS = new Set([
  're',
  'fw',
  'fwd',
  'aw',
  'wg',
  'sv',
  'vs',
  'vb',
  'tr',
  'rv',
  'res',
  'enc',
  'antw',
  'ref',
])
/** Dashes that phones put in place of a minus, and the sign of other languages for NOT. */
const NEGATION = /^[-!\u2010-\u2015\u2212](?=.)/u
const SIGN = /\|+|&&+/
const SIGN_WORDS: Record<string, string> = { '|': 'OR', '&': 'AND' }
/** The colon of `is :starred`; `:smile:` is a picture. */
const LONE_VALUE = /^[:：](?=\p{L})(?!.*[:：]$)/u
const INNER_STAR = /\*(?=[^*])/
/** Small, these are words of letters, and of questions as people say them. */
const SMALL_JOINT = /^(?:and|or|not)$/i

export type BareWordRules = {
  /** What is wrong with a bare word, and where in it; null where it can be searched for. */
  looksLikeOperator(text: string): { at: number; what: string } | null
  /** The name before a colon, of an operator or of what is taken for one; `opensValue`: a bracket or quote follows. */
  namedOperator(run: string, opensValue: boolean): string | null
}

/** For a language with these operators, in small letters. */
export function bareWordRules(operators: {
  has(name: string): boolean
  keys(): Iterable<string>
}): BareWordRules {
  const names = [...operators.keys()].join('|')
  /** Behind a sign, as in `a,-is:starred` and `[is:starred]`; the colon of other keyboards; an equals sign. */
  const misplacedName = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${names})[:：]|^(?:${names})=`, 'iu')
  return {
    looksLikeOperator: (text) => mistakenIn(text, misplacedName),
    namedOperator: (run, opensValue) => nameIn(run, { isKnown: (name) => operators.has(name), opensValue }),
  }
}

function mistakenIn(text: string, misplacedName: RegExp): { at: number; what: string } | null {
  // Letters of double width look the same.
  const plain = text.normalize('NFKC')
  if (plain === 'OR' || plain === 'AND' || plain === 'NOT') {
    return { at: 0, what: `${plain} is an operator, and has no place here` }
  }
  const [, name] = /^(AROUND|NEAR|ADJ|XOR|NOR|ANDNOT)\/?\d*$/.exec(plain) ?? []
  if (name) return { at: 0, what: `${name} is not known here; words in a row are written "a b"` }
  const sign = SIGN.exec(text)
  if (sign) return { at: sign.index, what: `${sign[0]} is not known here: write ${SIGN_WORDS[sign[0][0]!]}` }
  if (NEGATION.test(text)) {
    return { at: 0, what: 'to leave something out, write a minus or NOT before it and before its operator' }
  }
  const misplaced = misplacedName.exec(text)
  if (misplaced) return { at: misplaced.index, what: `${misplaced[0].slice(0, -1)}: has no place here` }
  if (LONE_VALUE.test(text)) return { at: 0, what: 'a colon follows its operator, without a blank' }
  const star = INNER_STAR.exec(text)
  return star && { at: star.index, what: 'a star is known at the end of a word only' }
}

/** Is it an operator but for its capitals? */
export function isSmallJoint(text: string): boolean {
  return SMALL_JOINT.test(text) && text !== text.toUpperCase()
}

function nameIn(
  run: string,
  { isKnown, opensValue }: { isKnown: (name: string) => boolean; opensValue: boolean },
): string | null {
  const name = NAMED.exec(run)?.[1]
  if (name === undefined) return null
  if (isKnown(name.toLowerCase())) return name
  const rest = run.slice(name.length + 1)
  if (rest.startsWith('//')) return null
  return rest === '' && !opensValue && ANSWERS.has(name.toLowerCase()) ? null : name
}
