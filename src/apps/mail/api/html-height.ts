/**
 * How high a formatted message will be. Its frame runs no scripts and has no origin, so that it cannot be asked, and it
 * is to stay like that. So its HTML is read once: text is broken into lines of a width, blocks end lines, pictures and
 * spacers have the height that they say. A guess; the frame scrolls where it is too small, and people can drag it.
 */
import { Parser } from 'htmlparser2'
import { readable } from './html.ts'

const READ_CHARS_MAX = 300_000
const LINE_PX = 22.5
/** On average, of 15 px system fonts. */
const CHARACTER_PX = 7.2
const PADDING_PX = 24
/** A margin above and below, in pixels. */
const MARGINS = new Map([
  ['p', 15],
  ['blockquote', 15],
  ['ul', 15],
  ['ol', 15],
  ['dl', 15],
  ['pre', 15],
  ['figure', 15],
  ['hr', 16],
  ['h1', 42],
  ['h2', 33],
  ['h3', 24],
  ['h4', 20],
  ['h5', 20],
  ['h6', 20],
])
const BLOCKS = new Set([
  ...['address', 'article', 'aside', 'body', 'center', 'dd', 'div', 'dt', 'footer', 'header', 'html', 'li'],
  ...['main', 'nav', 'section', 'table', 'tbody', 'tr', 'caption', ...MARGINS.keys()],
])
const UNSEEN = new Set(['head', 'style', 'script', 'title', 'template', 'noscript', 'svg', 'select'])
const VOID = new Set(['br', 'hr', 'img', 'input', 'meta', 'link', 'col', 'wbr', 'area', 'base'])
const SAID_PX_MAX = 1_200
const HIDDEN =
  /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|(?:max-height|font-size)\s*:\s*0(?![.\d]))/i

export function htmlHeightPx(html: string, widthPx: number): number {
  const lineCharacters = Math.max(10, (widthPx - PADDING_PX) / CHARACTER_PX)
  let heightPx = PADDING_PX
  let characters = 0
  let tallestPx = 0
  /** Open elements of which nothing is seen. */
  let unseen = 0
  const open: boolean[] = []
  const endLine = (marginPx = 0): void => {
    const linesPx = Math.ceil(characters / lineCharacters) * LINE_PX
    heightPx += Math.max(linesPx, tallestPx) + marginPx
    characters = 0
    tallestPx = 0
  }
  const parser = new Parser({
    onopentag(name, attributes) {
      const isUnseen = UNSEEN.has(name) || HIDDEN.test(attributes.style ?? '')
      if (!VOID.has(name)) open.push(isUnseen)
      if (isUnseen && !VOID.has(name)) unseen += 1
      if (unseen > 0 || isUnseen) return
      if (name === 'br') {
        characters = Math.max(characters, 1)
        endLine()
      } else if (name === 'img') tallestPx = Math.max(tallestPx, saidPx(attributes, widthPx))
      else if (name === 'td' || name === 'th') {
        // Spacers; what is written in it may be higher anyway.
        tallestPx = Math.max(tallestPx, saidPx(attributes, widthPx))
        characters += 2
      } else if (BLOCKS.has(name)) endLine(MARGINS.get(name) ?? 0)
    },
    ontext(text) {
      if (unseen === 0) characters += text.replaceAll(/\s+/g, ' ').length
    },
    onclosetag(name) {
      if (VOID.has(name)) return
      if (open.pop()) unseen -= 1
      else if (unseen === 0 && BLOCKS.has(name)) endLine(MARGINS.get(name) ?? 0)
    },
  })
  const read = readable(html.slice(0, READ_CHARS_MAX))
  parser.write(read)
  parser.end()
  endLine()
  // What was not read is taken to be like what was.
  return Math.round(heightPx * Math.max(1, html.length / READ_CHARS_MAX))
}

function saidPx({ height, width, style }: Record<string, string>, widthPx: number): number {
  const said = Number(/(?:^|;)\s*height\s*:\s*(\d{1,4})px/i.exec(style ?? '')?.[1] ?? height ?? 0)
  const wide = Number(width ?? 0)
  if (!Number.isFinite(said) || said <= 1) return 0
  // Pictures are never wider than the frame, and keep their shape.
  const shrunk = wide > widthPx ? (said * widthPx) / wide : said
  return Math.min(SAID_PX_MAX, shrunk)
}
