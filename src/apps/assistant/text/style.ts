/**
 * What declarations of style do to being seen. Where a value cannot be told, the text counts as hidden: a reader who
 * misses a line of decoration loses less than one whose assistant reads what they do not see.
 */
import { BLACK, type Colour, colourOf } from './colours.ts'

/** Why a text is not seen: codes for programs, said to people by whoever shows them. */
export type HiddenBy =
  | 'display-none'
  | 'visibility'
  | 'opacity'
  | 'tiny-font'
  | 'same-colour'
  | 'off-screen'
  | 'clipped'
  | 'zero-size'
  | 'attribute'
  | 'far-below'

export type Look = {
  hidden?: HiddenBy
  /** Relative to that of the parent, or of its own. */
  font?: { px: number } | { times: number }
  colour?: Colour | 'inherit'
  /** What letters are filled with, over any colour; `none` for nothing of its own. */
  fill?: Colour | 'inherit' | 'none'
  background?: Colour
  /** Of all that is inside, from 0 to 1. */
  opacity?: number
  /** Nothing that is nearer to the element, but not important, changes it. */
  isColourForced?: boolean
  isFontForced?: boolean
  isFillForced?: boolean
  isBackgroundForced?: boolean
  /** Its text is shown with its line ends. */
  isPre?: boolean
  /** Its colours are mixed with those below it, which hides most text. */
  isBlended?: boolean
  /** It gives a value to a `--name`, for itself and all that is inside. */
  setsNames?: boolean
  /** It is as told only where no `--name` has a value. */
  isByFallback?: boolean
  /** A gap that pushes what follows out of sight. */
  isFar?: boolean
}

const OFF_SCREEN_PX = 100
const FAR_PX = 1_500
const TINY_PX = 2.5
const ZOOM_MIN = 0.2
const DEFAULT_PX = 16
/** Text with less is not seen. */
export const OPACITY_MIN = 0.12
/** Less of the difference between text and background than this is not seen, nor is text in more light. */
const CONTRAST_MIN = 0.2
const LIGHT_MAX = 1.5
const BLUR_MAX_PX = 3
const VALUE_CHARS_MAX = 400
/** Honest styles repeat a property for older programs, once or twice. */
const REPEATED_MAX = 12

const FONT_WORDS: Record<string, number> = {
  'xx-small': 9,
  'x-small': 10,
  small: 13,
  medium: 16,
  large: 18,
  'x-large': 24,
  'xx-large': 32,
  'xxx-large': 48,
}

/**
 * What the declarations of one style do together. A value that a reader's program does not understand leaves the one
 * before it in force, so that whatever hid the text on the way counts.
 */
export function styleLook(style: string): Look {
  const values = new Map<string, string>()
  const important = new Set<string>()
  const before: Look[] = []
  for (const { name, value, isImportant } of declarationsOf(style)) {
    if (important.has(name) && !isImportant) continue
    if (isImportant) important.add(name)
    if (values.has(name) && values.get(name) !== value) {
      if (before.length >= REPEATED_MAX) return { hidden: 'display-none' }
      before.push(lookOf(values))
    }
    values.set(name, value)
  }
  const look: Look = Object.assign({}, ...before, lookOf(values))
  const hidden = [...before, look].find((one) => one.hidden !== undefined)?.hidden
  if (hidden) look.hidden = hidden
  if ([...values.keys()].some((name) => name.startsWith('--'))) look.setsNames = true
  if (important.has('color')) look.isColourForced = true
  if (important.has('-webkit-text-fill-color')) look.isFillForced = true
  if (['background', 'background-color', 'background-image'].some((name) => important.has(name))) {
    look.isBackgroundForced = true
  }
  if (important.has('font-size') || important.has('font')) look.isFontForced = true
  return look
}

/** Comments are taken out, and names are in small letters. */
function* declarationsOf(style: string): Generator<{ name: string; value: string; isImportant: boolean }> {
  for (const piece of unescapeCss(withoutComments(style)).split(';')) {
    const colon = piece.indexOf(':')
    if (colon < 0) continue
    const name = piece.slice(0, colon).trim().toLowerCase()
    const said = piece
      .slice(colon + 1)
      .replace(/\s+/g, ' ')
      .trim()
      .slice(0, VALUE_CHARS_MAX)
      .toLowerCase()
    const value = said.replace(/ ?! ?important/, '')
    if (name !== '' && value !== '') yield { name, value, isImportant: value !== said }
  }
}

export function withoutComments(css: string): string {
  let [out, at] = ['', 0]
  for (;;) {
    const from = css.indexOf('/*', at)
    if (from < 0) return out + css.slice(at)
    out += css.slice(at, from)
    const to = css.indexOf('*/', from + 2)
    if (to < 0) return out
    at = to + 2
  }
}

/** `d\69splay` is `display`. */
export function unescapeCss(css: string): string {
  if (!css.includes('\\')) return css
  return css.replace(/\\(?:([0-9a-f]{1,6})\s?|([^\n]))/gi, (_, hex: string | undefined, char?: string) => {
    if (hex === undefined) return char ?? ''
    const code = Number.parseInt(hex, 16)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ''
  })
}

const FALLBACK = /^var\( ?--[\w-]{1,100} ?, ?([\w.%-]{1,40}) ?\)$/

function lookOf(said: Map<string, string>): Look {
  const look: Look = {}
  const style = new Map(said)
  for (const name of ['display', 'visibility', 'opacity']) {
    const fallback = FALLBACK.exec(style.get(name) ?? '')?.[1]
    if (fallback === undefined) continue
    style.set(name, fallback)
    look.isByFallback = true
  }
  const hidden = hiddenBy(style)
  if (hidden) look.hidden = hidden
  const font = fontOf(style)
  if (font === 'unknown') look.hidden ??= 'tiny-font'
  else if (font) look.font = font
  const colour = textColourOf(style.get('color') ?? '')
  if (colour === 'unknown') look.hidden ??= 'same-colour'
  else if (colour) look.colour = colour
  const filled = style.get('-webkit-text-fill-color') ?? ''
  const fill = /^(?:currentcolor|initial)$/.test(filled) ? 'none' : textColourOf(filled)
  if (fill === 'unknown') look.hidden ??= 'same-colour'
  else if (fill) look.fill = fill
  const background = backgroundOf(style)
  if (background) look.background = background
  const opacity = shareOf(style.get('opacity') ?? '')
  const left = Math.min(leftBy(style.get('filter') ?? ''), leftBy(style.get('-webkit-filter') ?? ''))
  if (opacity !== undefined || left < 1) look.opacity = Math.max(0, Math.min(1, opacity ?? 1)) * left
  if (!/^(?:normal|inherit|initial|unset)?$/.test(style.get('mix-blend-mode') ?? '')) look.isBlended = true
  if (/^(?:pre|break-spaces)/.test(style.get('white-space') ?? '')) look.isPre = true
  const gaps = ['margin-top', 'padding-top', 'margin', 'padding', 'height', 'min-height', 'margin-bottom']
  const far = gaps.some((name) => Math.max(...lengthsOf(style.get(name) ?? '')) >= FAR_PX)
  if (far || Math.max(...lengthsOf(style.get('padding-bottom') ?? '')) >= FAR_PX) look.isFar = true
  return look
}

function textColourOf(value: string): Colour | 'inherit' | 'unknown' | undefined {
  if (/^(?:inherit|unset|revert(?:-layer)?|currentcolor)$/.test(value)) return 'inherit'
  return value === 'initial' ? BLACK : colourOf(value)
}

function hiddenBy(style: Map<string, string>): HiddenBy | undefined {
  const get = (name: string): string => style.get(name) ?? ''
  if (/\bnone\b/.test(get('display')) || get('mso-hide') === 'all') return 'display-none'
  if (['display', 'visibility', 'opacity'].some((name) => get(name).includes('var('))) return 'display-none'
  if (/^(?:hidden|collapse)/.test(get('visibility')) || get('content-visibility') === 'hidden') {
    return 'visibility'
  }
  if (isFaded(get)) return 'opacity'
  if ((shareOf(get('zoom')) ?? 1) < ZOOM_MIN) return 'tiny-font'
  if (/currentcolor/.test(`${get('background')} ${get('background-color')}`)) return 'same-colour'
  if (isOffScreen(get)) return 'off-screen'
  const clips = [
    'clip',
    'clip-path',
    '-webkit-clip-path',
    'mask',
    'mask-image',
    '-webkit-mask',
    '-webkit-mask-image',
  ]
  if (clips.map(get).some((clip) => clip !== '' && !/^(?:auto|none|inherit|initial)/.test(clip)))
    return 'clipped'
  if (isZeroSize(get)) return 'zero-size'
  return undefined
}

function isFaded(get: (name: string) => string): boolean {
  const opacity = shareOf(get('opacity'))
  if (opacity !== undefined && opacity <= OPACITY_MIN) return true
  const filters = [get('filter'), get('-webkit-filter')]
  if (filters.some((filter) => /alpha\(\s*opacity\s*=\s*(?:0|[0-9])\)/.test(filter))) return true
  return filters.some((filter) => leftBy(filter) === 0)
}

/** What filters leave to see, from 0 to 1: each has its share of what the ones before it left. */
function leftBy(filter: string): number {
  if (filter.length >= VALUE_CHARS_MAX) return 0
  let [opacity, contrast, light, blurPx] = [1, 1, 1, 0]
  for (const [, name, said] of filter.matchAll(/\b(opacity|blur|brightness|contrast|invert)\(([^()]*)/g)) {
    const value = said!.trim()
    if (/\de[+-]?\d/.test(value)) return 0
    const share = value === '' ? 1 : (shareOf(value) ?? Number.NaN)
    if (name === 'opacity') opacity *= Math.min(1, share)
    else if (name === 'blur') blurPx += value === '' ? 0 : (lengthsOf(value)[0] ?? Number.NaN)
    // Halfway to their opposites all colours are one grey.
    else if (name === 'invert') contrast *= Math.abs(1 - 2 * Math.min(1, share))
    else {
      contrast *= Math.min(1, share)
      light *= Math.max(1, share)
    }
  }
  const isClear =
    opacity > OPACITY_MIN && contrast > CONTRAST_MIN && light < LIGHT_MAX && blurPx < BLUR_MAX_PX
  return isClear ? opacity * contrast : 0
}

function isOffScreen(get: (name: string) => string): boolean {
  const isPlaced = /absolute|fixed|relative|sticky/.test(get('position'))
  if (isPlaced && ['left', 'right', 'top', 'bottom', 'inset'].some((name) => isBeyond(get(name)))) return true
  if (isBeyond(get('text-indent'))) return true
  if (['margin', 'margin-left', 'margin-top', 'margin-right'].some((name) => isBefore(get(name)))) return true
  if (lengthsOf(get('letter-spacing')).some((px) => px <= -4)) return true
  const transform = `${get('transform')} ${get('-webkit-transform')} ${get('translate')} ${get('scale')}`
  for (const [, values] of transform.matchAll(/(?:scale(?:x|y|3d)?|matrix(?:3d)?)\(([^)]{0,80})\)?/g)) {
    if (Math.abs(Number.parseFloat(values!)) < 0.1) return true
    if (
      transform.includes('scale') &&
      values!.split(',').some((one) => Math.abs(Number.parseFloat(one)) < 0.1)
    ) {
      return true
    }
  }
  if (
    /^[\d. ]/.test(get('scale')) &&
    get('scale')
      .split(' ')
      .some((one) => Number.parseFloat(one) < 0.1)
  ) {
    return true
  }
  if (/rotate[xy]\(\s*-?(?:90|270|\.25|0\.25)/.test(transform)) return true
  if (!/translate/.test(transform) && get('translate') === '') return false
  return isBeyond(transform.replace(/[a-z0-9]{1,20}\(/g, ' '))
}

/** Far to either side. */
function isBeyond(value: string): boolean {
  return lengthsOf(value).some((px) => px <= -OFF_SCREEN_PX || px >= FAR_PX)
}

function isBefore(value: string): boolean {
  return lengthsOf(value).some((px) => px <= -OFF_SCREEN_PX)
}

function isZeroSize(get: (name: string) => string): boolean {
  const isNothing = (name: string): boolean => {
    const [px] = lengthsOf(get(name))
    return px !== undefined && px <= 1
  }
  const caps = ['max-height', 'max-width'].filter(isNothing)
  if (caps.length > 0) return true
  const isCut = /hidden|clip|scroll|auto/.test(`${get('overflow')} ${get('overflow-x')} ${get('overflow-y')}`)
  const sizes = ['height', 'width', 'line-height'].filter(isNothing)
  return sizes.length > (isCut ? 0 : 1)
}

function fontOf(style: Map<string, string>): Look['font'] | 'unknown' | undefined {
  const shorthand = style.get('font') ?? ''
  const value =
    style.get('font-size') ?? /(?:^|\s)([\d.]{1,10}(?:px|pt|em|rem|%|ex|ch|vw|vh))/.exec(shorthand)?.[1]
  if (value === undefined) return undefined
  if (/calc|min\(|max\(|clamp|var\(/.test(value)) return 'unknown'
  if (/^(?:inherit|unset|revert)/.test(value)) return { times: 1 }
  if (value === 'initial') return { px: DEFAULT_PX }
  if (value in FONT_WORDS) return { px: FONT_WORDS[value]! }
  if (value === 'smaller') return { times: 0.83 }
  if (value === 'larger') return { times: 1.2 }
  const match = /^\+?([\d.]{1,20}(?:e-?\d{1,3})?)\s*(em|ex|ch|%)?/.exec(value)
  if (!match) return undefined
  const number = Number.parseFloat(match[1]!)
  if (match[2] === '%') return { times: number / 100 }
  if (match[2]) return { times: match[2] === 'em' ? number : number / 2 }
  return { px: lengthsOf(value)[0] ?? DEFAULT_PX }
}

export function isTiny(px: number): boolean {
  return px < TINY_PX
}

function backgroundOf(style: Map<string, string>): Colour | undefined {
  const drawn = gradientOf(`${style.get('background-image') ?? ''} ${style.get('background') ?? ''}`)
  if (drawn) return drawn
  const own = colourOf(style.get('background-color') ?? '')
  if (own && own !== 'unknown') return own
  const shorthand = style.get('background') ?? ''
  for (const word of shorthand.split(/\s+(?![^(]*\))/, 8)) {
    const colour = colourOf(word)
    if (colour && colour !== 'unknown') return colour
  }
  return undefined
}

/** Its first colour: text that can be read on one end of it is seen. */
function gradientOf(value: string): Colour | undefined {
  const at = value.indexOf('gradient(')
  if (at < 0) return undefined
  for (const [word] of value.slice(at + 9).matchAll(/#?[a-z0-9]{3,30}(?:\([^()]{1,80}\))?/g)) {
    const colour = /^(?:\d|to$)/.test(word) ? undefined : colourOf(word)
    if (colour && colour !== 'unknown') return colour
  }
  return undefined
}

const UNITS: Record<string, number> = {
  px: 1,
  pt: 4 / 3,
  pc: 16,
  em: 16,
  rem: 16,
  ex: 8,
  ch: 8,
  in: 96,
  cm: 37.8,
  mm: 3.78,
  q: 0.945,
  vw: 12,
  vh: 8,
  vmin: 8,
  vmax: 12,
  '%': 10,
}

/** In pixels, about: shares and heights of the window are taken for those of a common one. */
function lengthsOf(value: string): number[] {
  if (value === '' || !/\d/.test(value)) return []
  return [
    ...value.matchAll(
      /([+-]?(?:\d{1,12}(?:\.\d{0,12})?|\.\d{1,12}))(px|pt|pc|rem|em|ex|ch|in|cm|mm|q|vmin|vmax|vw|vh|%)?/g,
    ),
  ]
    .slice(0, 8)
    .map(([, number, unit]) => Number.parseFloat(number!) * (UNITS[unit ?? 'px'] ?? 1))
}

function shareOf(value: string): number | undefined {
  const number = Number.parseFloat(value)
  if (!Number.isFinite(number)) return undefined
  return value.endsWith('%') ? number / 100 : number
}
