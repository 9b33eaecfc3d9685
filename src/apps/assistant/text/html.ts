/**
 * The text of an HTML message that a person would see, on a screen, without doing anything. What is hidden is left out
 * and told by code; quoted parts come as lines with `> `. Works in one pass over the markup (two where it has styles),
 * with a bound on what comes in, how deep it nests and what comes out.
 */
import { SkipDocument } from '../../../search/extract/contract.ts'
import { type Attributes, markupParser } from '../../../search/extract/markup.ts'
import { BLACK, type Colour, canBeRead, colourOf, over, WHITE } from './colours.ts'
import { type HiddenBy, isTiny, type Look, OPACITY_MIN, styleLook } from './style.ts'
import { StyleSheet } from './style-sheet.ts'

export type HtmlText = {
  text: string
  hidden: string[]
  /** What stands for images where they are not shown: separate, because most people do not see it. */
  imageTexts: string[]
  /** What was done, in steps: for tests of how it grows. */
  work: number
}

export const HTML_CHARS_MAX = 600_000
export const TEXT_CHARS_MAX = 40_000
const DEPTH_MAX = 400
const IMAGE_TEXTS_MAX = 20
const LOOKS_KEPT = 500
const IMAGE_TEXT_CHARS_MAX = 200
/** Lines without a word, after which nobody looks further down. */
const GAP_LINES_MAX = 50
/** So many blanks fill a line. */
const BLANKS_A_LINE = 80

const NOT_SHOWN = new Set(
  'script style template noscript head title svg math object iframe canvas audio video datalist noframes noembed select meter progress rp'.split(
    ' ',
  ),
)
const BLOCKS = new Set(
  'address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol p pre section summary table tbody tfoot thead caption tr ul'.split(
    ' ',
  ),
)
const PARAGRAPHS = new Set(
  'p pre table ul ol dl blockquote section article figure h1 h2 h3 h4 h5 h6'.split(' '),
)

/** Gmail's editor makes images of them. */
const EMOJI =
  /^\p{Extended_Pictographic}(?:\ufe0f|\u200d|\p{Extended_Pictographic}|\p{Emoji_Modifier}){0,10}$/u

type Element = {
  names: string[]
  hidden: HiddenBy | undefined
  /** Scripts and titles are no attempt to hide something. */
  isUsual: boolean
  fontPx: number
  colour: Colour
  background: Colour
  /** What is left of it with all that is around it. */
  opacity: number
  /** Some `--name` may have a value here. */
  hasNames: boolean
  isPre: boolean
  isQuote: boolean
  /** What follows it is out of sight. */
  isFar: boolean
}

export function htmlText(html: string): HtmlText {
  const input = html.slice(0, HTML_CHARS_MAX)
  const sheet = new StyleSheet()
  if (/<style/i.test(input)) readStyles(input, sheet)
  const page = new Page(sheet)
  parse(input, {
    open: (name, attributes) => page.open(name, attributes),
    close: (name) => page.close(name),
    text: (text) => page.addText(text),
    hidden: page.hidden,
  })
  if (html.length > HTML_CHARS_MAX) page.hidden.add('cut')
  return {
    text: page.text.trim(),
    hidden: [...page.hidden],
    imageTexts: page.imageTexts,
    work: page.work + sheet.work,
  }
}

function parse(html: string, events: Parameters<typeof markupParser>[1] & { hidden?: Set<string> }): void {
  const parser = markupParser({ kind: 'html', depthMax: DEPTH_MAX }, events)
  try {
    parser.write(html)
    parser.end()
  } catch (error) {
    if (!(error instanceof SkipDocument) && !(error instanceof Full)) throw error
    events.hidden?.add(error instanceof Full ? 'cut' : 'too-deep')
  }
}

function readStyles(html: string, sheet: StyleSheet): void {
  let css: string | undefined
  parse(html, {
    open: (name) => {
      if (name === 'style') css = ''
    },
    close: (name) => {
      if (name === 'style' && css !== undefined) sheet.add(css)
      if (name === 'style') css = undefined
    },
    text: (text) => {
      if (css !== undefined) css += text
    },
  })
}

class Full extends Error {}

class Page {
  text = ''
  work = 0
  readonly hidden = new Set<string>()
  readonly imageTexts: string[] = []
  readonly #sheet: StyleSheet
  readonly #stack: Element[] = []
  readonly #looks = new Map<string, Look>()
  #quotes = 0
  /** Line ends that are owed before the next word. */
  #owed = 0
  #hasSpace = false
  #gapLines = 0
  #isFar = false

  constructor(sheet: StyleSheet) {
    this.#sheet = sheet
  }

  open(name: string, attributes: Attributes): void {
    this.work += 1
    const parent = this.#stack.at(-1)
    const element = this.#elementOf(name, attributes, parent)
    this.#stack.push(element)
    if (name === 'img' && EMOJI.test(attributes.alt ?? '')) this.#write(attributes.alt!, element)
    else if (name === 'img' || name === 'area') this.#addImageText(attributes.alt, parent)
    if (name === 'br') this.#breakLine(1, true)
    if (BLOCKS.has(name)) this.#breakLine(PARAGRAPHS.has(name) ? 2 : 1, false)
    if (element.isQuote) this.#quotes += 1
    if ((name === 'td' || name === 'th') && this.#owed === 0) this.#hasSpace = true
    if (name === 'li' && element.hidden === undefined && !this.#isFar) this.#write('- ', element)
  }

  close(name: string): void {
    const element = this.#stack.pop()
    if (!element) return
    this.#sheet.leave(element.names)
    if (element.isFar) this.#isFar = true
    if (BLOCKS.has(name)) this.#breakLine(PARAGRAPHS.has(name) ? 2 : 1, false)
    if (element.isQuote) {
      this.#quotes -= 1
      this.#breakLine(1, false)
    }
  }

  addText(text: string): void {
    const element = this.#stack.at(-1)
    this.work += 1 + text.length / 100
    if (element) this.#write(text, element)
    else this.#write(text, ROOT)
  }

  #elementOf(name: string, attributes: Attributes, parent: Element = ROOT): Element {
    const { looks, names, isCrowded } = this.#sheet.enter(name, attributes)
    const own: Look[] = [...looks]
    if (attributes.style) own.push(this.#lookOf(attributes.style))
    let { hidden, fontPx, colour, background, opacity, isPre } = parent
    const isUsual = parent.isUsual || (hidden === undefined && NOT_SHOWN.has(name))
    if (isUsual) hidden ??= 'display-none'
    hidden ??= hiddenByMarkup(name, attributes, isCrowded)
    if (name === 'details' && attributes.open === undefined) hidden ??= 'attribute'
    const said = colourOf(attributes.color ?? attributes.text ?? '')
    if (said && said !== 'unknown' && (name === 'font' || name === 'body')) colour = said
    const below = colourOf(attributes.bgcolor ?? '')
    if (below && below !== 'unknown') background = below
    if (name === 'font' && attributes.size && Number(attributes.size) >= 1) fontPx = Math.max(fontPx, 10)
    let isFar = Number.parseInt(attributes.height ?? '0', 10) >= 1_500 && name !== 'img' && name !== 'table'
    const hasNames = parent.hasNames || this.#sheet.hasNames || own.some((look) => look.setsNames)
    for (const look of own) {
      hidden ??= look.hidden
      if (look.isBlended) hidden ??= 'opacity'
      if (look.isByFallback && hasNames) hidden ??= 'display-none'
      if (look.font) fontPx = 'px' in look.font ? look.font.px : fontPx * look.font.times
      if (look.colour) colour = look.colour
      if (look.background) background = over(look.background, background)
      if (look.opacity !== undefined) opacity = parent.opacity * look.opacity
      isPre ||= look.isPre === true
      isFar ||= look.isFar === true
    }
    for (const look of own) {
      if (look.isColourForced && look.colour) colour = look.colour
      if (look.isFontForced && look.font) fontPx = 'px' in look.font ? look.font.px : fontPx * look.font.times
    }
    const isQuote = name === 'blockquote' && hidden === undefined
    isPre ||= name === 'pre'
    return { names, hidden, isUsual, fontPx, colour, background, opacity, hasNames, isPre, isQuote, isFar }
  }

  /** Mail repeats its styles: reading each once halves the time of a newsletter. */
  #lookOf(style: string): Look {
    const known = this.#looks.get(style)
    if (known) return known
    const look = styleLook(style)
    if (this.#looks.size < LOOKS_KEPT) this.#looks.set(style, look)
    return look
  }

  #write(text: string, element: Element): void {
    const hidden = this.#hiddenBy(element)
    if (hidden !== undefined) {
      if (!element.isUsual && text.trim() !== '') this.hidden.add(hidden)
      return
    }
    if (element.isPre) {
      for (const [at, line] of text.split('\n').entries()) {
        if (at > 0) this.#breakLine(this.#owed + 1, true)
        this.#writeWords(line)
      }
    } else this.#writeWords(text)
  }

  #hiddenBy(element: Element): HiddenBy | undefined {
    if (element.hidden !== undefined) return element.hidden
    if (this.#isFar) return 'far-below'
    if (isTiny(element.fontPx)) return 'tiny-font'
    if (element.opacity <= OPACITY_MIN) return 'opacity'
    return canBeRead(element.colour, element.background) ? undefined : 'same-colour'
  }

  #writeWords(text: string): void {
    const words = text.replace(/[^\S\u00a0]+/g, ' ')
    if (words.trim() === '') {
      if (words !== '') this.#hasSpace = true
      // A blank that does not give way has the height of a line; others have none.
      if (words.includes('\u00a0')) this.#gapLines += 1 + words.length / BLANKS_A_LINE
      return
    }
    if (this.#gapLines > GAP_LINES_MAX) {
      this.#isFar = true
      this.hidden.add('far-below')
      return
    }
    this.#gapLines = 0
    if (this.text.length > TEXT_CHARS_MAX) throw new Full()
    if (this.#owed > 0 || this.text === '') this.#startLine()
    else if (this.#hasSpace || /^\s/.test(words)) this.text += ' '
    this.text += words.trim().replaceAll('\u00a0', ' ')
    this.#hasSpace = /\s$/.test(words)
  }

  #startLine(): void {
    const mark = '> '.repeat(Math.min(this.#quotes, 5))
    const lineEnds = this.text === '' ? 0 : Math.min(this.#owed, 2)
    this.text += '\n'.repeat(Math.max(0, lineEnds)) + mark
    this.#owed = 0
    this.#hasSpace = false
  }

  #breakLine(lineEnds: number, isDrawn: boolean): void {
    this.#owed = Math.max(this.#owed, lineEnds)
    this.#hasSpace = false
    if (isDrawn) this.#gapLines += 1
  }

  #addImageText(alt: string | undefined, parent: Element = ROOT): void {
    const text = (alt ?? '').trim().slice(0, IMAGE_TEXT_CHARS_MAX)
    if (text === '' || this.imageTexts.length >= IMAGE_TEXTS_MAX || this.#hiddenBy(parent)) return
    this.imageTexts.push(text)
  }
}

const ROOT: Element = {
  names: [],
  hidden: undefined,
  isUsual: false,
  fontPx: 16,
  colour: BLACK,
  background: WHITE,
  opacity: 1,
  hasNames: false,
  isPre: false,
  isQuote: false,
  isFar: false,
}

function hiddenByMarkup(name: string, attributes: Attributes, isCrowded: boolean): HiddenBy | undefined {
  if (attributes.hidden !== undefined || attributes.popover !== undefined || isCrowded) return 'attribute'
  if (/^true$/i.test(attributes['aria-hidden'] ?? '')) return 'attribute'
  if (name === 'dialog' && attributes.open === undefined) return 'attribute'
  if (name === 'marquee') return 'off-screen'
  return undefined
}
