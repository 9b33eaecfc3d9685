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
  /** The beginning of what was left out as hidden. */
  hiddenText: string
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
/** Ways in which one text may be shown: more of them are in no honest mail. */
const DOUBTS_MAX = 16
/** What a font with a size of its own has at least. */
const SIZED_PX = 10
const IMAGE_TEXT_CHARS_MAX = 200
export const HIDDEN_CHARS_MAX = 1_000
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

/** What is inherited of how a text is shown. */
type Shown = {
  fontPx: number
  colour: Colour
  /** Of letters, over their colour. */
  fill: Colour | undefined
  background: Colour
  /** What is left of it with all that is around it. */
  opacity: number
}

type Element = {
  /** A further tag of the page itself, of which there is one. */
  isMerged: boolean
  hidden: HiddenBy | undefined
  /** Scripts and titles are no attempt to hide something. */
  isUsual: boolean
  shown: Shown
  /** As it may be shown instead, by the doubt about it (style-sheet.ts). */
  instead: ReadonlyMap<string, Shown>
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
  const page = new Page(sheet, /<(?:style|html|body)/i.test(input) ? readPage(input, sheet) : {})
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
    hiddenText: page.hiddenText.trim(),
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

/** Styles; and what is said of the page itself, which programs add up wherever it stands. */
function readPage(html: string, sheet: StyleSheet): PageAttributes {
  const page: PageAttributes = {}
  let css: string | undefined
  let head = ''
  let hiddenIn = 0
  parse(html, {
    open: (name, attributes) => {
      if (name === 'html' || name === 'body') page[name] = { ...attributes, ...page[name] }
      if (NOT_SHOWN.has(name) && name !== 'head' && name !== 'style') hiddenIn += 1
      if (name !== 'style') return
      css = ''
      const { media = '', type = '', title } = attributes
      // A sheet that not every program heeds is a condition as well.
      const isSure = /^(?:text\/css)?$/i.test(type.trim()) && title === undefined && hiddenIn === 0
      head = !isSure ? `@supports (style ${type}) ` : media.trim() === '' ? '' : `@media ${media}`
    },
    close: (name) => {
      if (NOT_SHOWN.has(name) && name !== 'head' && name !== 'style') hiddenIn -= 1
      if (name === 'style' && css !== undefined) sheet.add(css, head.replace(/[{};]/g, ''))
      if (name === 'style') css = undefined
    },
    text: (text) => {
      if (css !== undefined) css += text
    },
  })
  return page
}

type PageAttributes = { html?: Attributes; body?: Attributes }

class Full extends Error {}

class Page {
  text = ''
  work = 0
  readonly hidden = new Set<string>()
  hiddenText = ''
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
  #isTagSince = false

  /** The page itself, which is there without any tag. */
  readonly #root: Element

  constructor(sheet: StyleSheet, page: PageAttributes) {
    this.#sheet = sheet
    const html = this.#elementOf('html', page.html ?? {}, ROOT)
    this.#root = this.#elementOf('body', page.body ?? {}, html)
  }

  open(name: string, attributes: Attributes): void {
    this.work += 1
    this.#isTagSince = true
    const parent = this.#stack.at(-1) ?? this.#root
    const isPage = name === 'html' || name === 'body'
    const element = isPage ? { ...parent, isMerged: true } : this.#elementOf(name, attributes, parent)
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
    this.#isTagSince = true
    const element = this.#stack.pop()
    if (!element) return
    if (!element.isMerged) this.#sheet.leave()
    if (element.isFar && !element.isMerged) this.#isFar = true
    if (BLOCKS.has(name)) this.#breakLine(PARAGRAPHS.has(name) ? 2 : 1, false)
    if (element.isQuote) {
      this.#quotes -= 1
      this.#breakLine(1, false)
    }
  }

  addText(text: string): void {
    this.work += 1 + text.length / 100
    this.#write(text, this.#stack.at(-1) ?? this.#root)
  }

  #elementOf(name: string, attributes: Attributes, parent: Element): Element {
    const { looks, doubtful, isCrowded } = this.#sheet.enter(name, attributes)
    const inline = attributes.style ? [this.#lookOf(attributes.style)] : []
    const own = [hintsOf(name, attributes), ...looks]
    let { hidden, isPre } = parent
    const isUsual = parent.isUsual || (hidden === undefined && NOT_SHOWN.has(name))
    if (isUsual) hidden ??= 'display-none'
    hidden ??= hiddenByMarkup(name, attributes, isCrowded)
    if (name === 'details' && attributes.open === undefined) hidden ??= 'attribute'
    let isFar = Number.parseInt(attributes.height ?? '0', 10) >= 1_500 && name !== 'img' && name !== 'table'
    const all = [...own, ...doubtful.values(), ...inline]
    const hasNames = parent.hasNames || this.#sheet.hasNames || all.some((look) => look.setsNames)
    for (const look of all) {
      hidden ??= look.hidden
      if (look.isBlended) hidden ??= 'opacity'
      if (look.isByFallback && hasNames) hidden ??= 'display-none'
      isPre ||= look.isPre === true
      isFar ||= look.isFar === true
    }
    const isSized = name === 'font' && Number(attributes.size ?? 0) >= 1
    const shown = shownWith(parent.shown, [...own, ...inline], isSized)
    const instead = new Map<string, Shown>()
    for (const doubt of new Set([...parent.instead.keys(), ...doubtful.keys()])) {
      const look = doubtful.get(doubt)
      const around = parent.instead.get(doubt) ?? parent.shown
      const one = shownWith(around, [...own, ...(look ? [look] : []), ...inline], isSized)
      this.work += 1
      if (!isSame(one, shown)) instead.set(doubt, one)
      if (instead.size <= DOUBTS_MAX) continue
      hidden ??= 'display-none'
      instead.clear()
      break
    }
    const isQuote = name === 'blockquote' && hidden === undefined
    isPre ||= name === 'pre'
    return { isMerged: false, hidden, isUsual, shown, instead, hasNames, isPre, isQuote, isFar }
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
      if (!element.isUsual && text.trim() !== '') this.#noteHidden(hidden, text)
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
    const how = hiddenAs(element.shown)
    if (how !== undefined || element.instead.size === 0) return how
    return [...element.instead.values()].map(hiddenAs).find((one) => one !== undefined)
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
      this.#noteHidden('far-below', words)
      return
    }
    this.#gapLines = 0
    if (this.text.length > TEXT_CHARS_MAX) throw new Full()
    if (this.#owed > 0 || this.text === '') this.#startLine()
    else if (this.#hasSpace || /^\s/.test(words)) this.text += ' '
    this.text += words.trim().replaceAll('\u00a0', ' ')
    this.#hasSpace = /\s$/.test(words)
  }

  #noteHidden(how: HiddenBy, text: string): void {
    this.hidden.add(how)
    const left = HIDDEN_CHARS_MAX - this.hiddenText.length
    if (left <= 0) return
    // What is escaped in the markup comes in pieces: only tags part words.
    this.hiddenText += `${this.#isTagSince ? ' ' : ''}${text.slice(0, left).replace(/\s+/g, ' ')}`
    this.#isTagSince = false
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

  #addImageText(alt: string | undefined, parent: Element): void {
    const text = (alt ?? '').trim().slice(0, IMAGE_TEXT_CHARS_MAX)
    if (text === '' || this.imageTexts.length >= IMAGE_TEXTS_MAX || this.#hiddenBy(parent)) return
    this.imageTexts.push(text)
  }
}

const PLAIN: Shown = { fontPx: 16, colour: BLACK, fill: undefined, background: WHITE, opacity: 1 }

const ROOT: Element = {
  isMerged: false,
  hidden: undefined,
  isUsual: false,
  shown: PLAIN,
  instead: new Map(),
  hasNames: false,
  isPre: false,
  isQuote: false,
  isFar: false,
}

/** What attributes say of how it is shown. */
function hintsOf(name: string, { color, text, bgcolor }: Attributes): Look {
  const look: Look = {}
  const said = name === 'font' ? colourOf(color ?? '') : name === 'body' ? colourOf(text ?? '') : undefined
  if (said && said !== 'unknown') look.colour = said
  const below = colourOf(bgcolor ?? '')
  if (below && below !== 'unknown') look.background = below
  return look
}

/** How an element is shown within another, by its looks in the order in which they count. */
function shownWith(parent: Shown, own: readonly Look[], isSized: boolean): Shown {
  const shown = { ...parent, fontPx: isSized ? Math.max(parent.fontPx, SIZED_PX) : parent.fontPx }
  const forced: Look[] = own.map((look) => ({
    ...(look.isColourForced && look.colour && { colour: look.colour }),
    ...(look.isFillForced && look.fill && { fill: look.fill }),
    ...(look.isFontForced && look.font && { font: look.font }),
    ...(look.isBackgroundForced && look.background && { background: look.background }),
  }))
  for (const { font, colour, fill, background, opacity } of [...own, ...forced]) {
    if (font) shown.fontPx = 'px' in font ? font.px : parent.fontPx * font.times
    if (colour) shown.colour = colour === 'inherit' ? parent.colour : colour
    if (fill) shown.fill = fill === 'inherit' ? parent.fill : fill === 'none' ? undefined : fill
    if (background) shown.background = over(background, parent.background)
    if (opacity !== undefined) shown.opacity = parent.opacity * opacity
  }
  return shown
}

function isSame(one: Shown, other: Shown): boolean {
  const text = (colour: Colour | undefined): string => String(colour)
  return (
    one.fontPx === other.fontPx &&
    one.opacity === other.opacity &&
    text(one.colour) === text(other.colour) &&
    text(one.fill) === text(other.fill) &&
    text(one.background) === text(other.background)
  )
}

function hiddenAs({ fontPx, opacity, colour, fill, background }: Shown): HiddenBy | undefined {
  if (isTiny(fontPx)) return 'tiny-font'
  if (opacity <= OPACITY_MIN) return 'opacity'
  return canBeRead(fill ?? colour, background) ? undefined : 'same-colour'
}

function hiddenByMarkup(name: string, attributes: Attributes, isCrowded: boolean): HiddenBy | undefined {
  if (attributes.hidden !== undefined || attributes.popover !== undefined || isCrowded) return 'attribute'
  if (/^true$/i.test(attributes['aria-hidden'] ?? '')) return 'attribute'
  if (name === 'dialog' && attributes.open === undefined) return 'attribute'
  if (name === 'marquee') return 'off-screen'
  return undefined
}
