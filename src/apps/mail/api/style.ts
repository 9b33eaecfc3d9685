/**
 * The style attribute of a stranger's HTML, made of nothing but known properties and harmless values. What is not
 * understood is left out; no value ever loads anything, except backgrounds from https where images are wanted.
 */

/** Of a list that is written as a text. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/)
}

const DECLARATIONS_MAX = 100
const VALUE_LENGTH_MAX = 500
const STYLE_LENGTH_MAX = 10_000

const PROPERTIES = new Set(
  words(`
  color background background-color background-image background-position background-repeat
  background-size opacity font font-family font-size font-style font-variant font-weight line-height
  letter-spacing word-spacing text-align text-decoration text-indent text-transform text-overflow
  vertical-align white-space word-break word-wrap overflow-wrap direction width height min-width
  max-width min-height max-height display float clear overflow box-sizing box-shadow list-style-type
  list-style-position border-collapse border-spacing table-layout caption-side empty-cells
`),
)
const BOXED = /^(?:margin|padding)(?:-(?:top|right|bottom|left))?$/
const BORDERED =
  /^border(?:-(?:top|right|bottom|left))?(?:-(?:color|style|width|(?:left|right)-radius|radius))?$/

/** Letters, digits and what sizes, colours and names of fonts are written with: no escapes, no colons, no @. */
const PLAIN_VALUE = /^[\w\s#%.,()'"!+*/-]*$/
const FUNCTIONS = new Set(['rgb', 'rgba', 'hsl', 'hsla', 'calc', 'linear-gradient', 'radial-gradient'])
const REMOTE = /url\(\s*(['"]?)(https:\/\/[\w.~:/?#@!$&*+,;=%-]+)\1\s*\)/gi

export type StyleOptions = { images: boolean }

export function safeStyle(style: string, { images }: StyleOptions): string {
  const kept: string[] = []
  for (const declaration of declarationsOf(style.slice(0, STYLE_LENGTH_MAX))) {
    const at = declaration.indexOf(':')
    if (at < 0) continue
    const property = declaration.slice(0, at).trim().toLowerCase()
    const value = declaration.slice(at + 1).trim()
    const safe = isKnown(property) ? safeValue(property, value, images) : null
    if (safe !== null && safe !== '') kept.push(`${property}: ${safe}`)
    if (kept.length >= DECLARATIONS_MAX) break
  }
  return kept.join('; ')
}

/** A semicolon within quotes or brackets ends nothing. */
function declarationsOf(style: string): string[] {
  const found: string[] = []
  let start = 0
  let depth = 0
  let quote = ''
  for (let at = 0; at < style.length; at++) {
    const char = style[at]!
    if (quote !== '') {
      if (char === quote) quote = ''
    } else if (char === '"' || char === "'") quote = char
    else if (char === '(') depth += 1
    else if (char === ')') depth = Math.max(0, depth - 1)
    else if (char === ';' && depth === 0) {
      found.push(style.slice(start, at))
      start = at + 1
    }
  }
  found.push(style.slice(start))
  return found
}

function isKnown(property: string): boolean {
  return PROPERTIES.has(property) || BOXED.test(property) || BORDERED.test(property)
}

function safeValue(property: string, value: string, images: boolean): string | null {
  if (value.length > VALUE_LENGTH_MAX) return null
  const remote: string[] = []
  const plain = value.replace(REMOTE, (_whole, _quote, url: string) => {
    remote.push(url)
    return ' '
  })
  if (!isPlain(plain)) return null
  if (remote.length === 0) return plain
  // Without images a background keeps its colour.
  const isBackground = property === 'background' || property === 'background-image'
  if (!isBackground) return null
  if (!images) return property === 'background' ? plain.trim() : null
  const url = safeUrl(remote[0]!)
  return remote.length === 1 && url !== null ? `${plain.trim()} url("${url}")`.trim() : null
}

function isPlain(value: string): boolean {
  if (!PLAIN_VALUE.test(value)) return false
  if (value.includes('/*') || value.includes('*/')) return false
  for (const quote of ['"', "'"]) if ((value.split(quote).length - 1) % 2 !== 0) return false
  if (value.split('(').length !== value.split(')').length) return false
  for (const [, name = ''] of value.matchAll(/([\w-]*)\s*\(/g)) {
    if (!FUNCTIONS.has(name.toLowerCase())) return false
  }
  return true
}

function safeUrl(url: string): string | null {
  if (!URL.canParse(url)) return null
  const { protocol, href } = new URL(url)
  return protocol === 'https:' && /^[\w.~:/?#@!$&*+,;=%-]+$/.test(href) ? href : null
}
